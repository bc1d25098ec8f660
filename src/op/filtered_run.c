/* Running a filtered plan. */
#include <stdatomic.h>

#include "base/checked.h"
#include "op/filtered.h"

enum { LINE = 64 }; /* bytes of a cache line */

typedef struct filtered_run {
  const pph_filtered_plan *plan;
  const pph_conv_spec *spec;
  const pph_conv_tensors *tensors;
  size_t thread_bytes;
  bool stream;
} filtered_run;

/* A tile's picture and its first position. */
typedef struct filtered_tile {
  int64_t image, at[PPH_FILTERED_AXES];
} filtered_tile;

/* A block of tiles times a chunk of groups. */
typedef struct filtered_block {
  const filtered_run *run;
  const pph_filtered_part *part;
  size_t count;
  filtered_tile tiles[PPH_FILTERED_MAX_TILES];
  float *panels, *products;
} filtered_block;

static void list_tiles(filtered_block *block, size_t first) {
  const pph_filtered_part *part = block->part;
  int64_t height = (int64_t)part->lengths[PPH_FILTERED_HEIGHT];
  int64_t width = (int64_t)part->lengths[PPH_FILTERED_WIDTH];
  int64_t rows = (int64_t)pph_filtered_outputs(part, PPH_FILTERED_HEIGHT);
  int64_t columns = (int64_t)pph_filtered_outputs(part, PPH_FILTERED_WIDTH);
  int64_t x = (int64_t)first % width, y = (int64_t)first / width % height;
  int64_t image = (int64_t)first / width / height;
  for (size_t i = 0; i < block->count; i++) {
    block->tiles[i] = (filtered_tile){image, {y * rows, x * columns}};
    x = x + 1 < width ? x + 1 : 0;
    y = x ? y : y + 1 < height ? y + 1 : 0;
    image += !x && !y;
  }
}

/* A kernel's row and column axis: a line runs along its columns. */
static bool is_upright(const pph_filtered_part *part) {
  return part->filters[PPH_FILTERED_WIDTH] == PPH_FILTER_1_1;
}
static int row_axis(const pph_filtered_part *part) {
  return is_upright(part) ? PPH_FILTERED_WIDTH : PPH_FILTERED_HEIGHT;
}
static bool is_square(const pph_filtered_part *part) {
  return part->filters[PPH_FILTERED_HEIGHT] != PPH_FILTER_1_1 &&
         part->filters[PPH_FILTERED_WIDTH] != PPH_FILTER_1_1;
}
static pph_filter_id column_filter(const pph_filtered_part *part) {
  return part->filters[is_upright(part) ? PPH_FILTERED_HEIGHT
                                        : PPH_FILTERED_WIDTH];
}

/* [begin, end) as seen from `at`, within [0, length). */
static void clip(int64_t begin, int64_t end, int64_t at, uint32_t length,
                 int32_t *clipped_begin, int32_t *clipped_end) {
  int64_t most = (int64_t)length;
  *clipped_begin =
      (int32_t)pph_min_i64(pph_max_i64(begin - at, 0), most);
  *clipped_end = (int32_t)pph_min_i64(pph_max_i64(end - at, 0), most);
}

/* Inputs */

/* What all windows of a part have in common, and their places. */
typedef struct filtered_input {
  pph_filter_in_run run;
  int64_t base, steps[PPH_FILTERED_AXES], image_step;
} filtered_input;

static filtered_input find_input(const filtered_block *block) {
  const pph_filtered_part *part = block->part;
  const pph_filtered_plan *plan = block->run->plan;
  int64_t channels = (int64_t)plan->in_channels;
  int64_t line = plan->axes[1].axis.input * channels;
  int row = row_axis(part);
  filtered_input input = {
      .base = -(part->runs[0].pad_begin * line +
                part->runs[1].pad_begin * channels),
      .steps = {line, channels},
      .image_step = plan->axes[0].axis.input * line,
      .run = {.filter = column_filter(part),
              .square = is_square(part),
              .channels = plan->in_channels,
              .input = block->run->tensors->input}};
  input.run.row_step = input.steps[row];
  input.run.column_step = input.steps[1 - row];
  return input;
}

static void transform_tile(const filtered_block *block,
                           const filtered_tile *tile, filtered_input *input) {
  const pph_filtered_part *part = block->part;
  const pph_axis_view *axes = block->run->plan->axes;
  pph_filter_in_run *run = &input->run;
  int row = row_axis(part), column = 1 - row;
  run->offset = input->base + tile->image * input->image_step +
                tile->at[0] * input->steps[0] + tile->at[1] * input->steps[1];
  clip(0, axes[row].axis.input, tile->at[row] - part->runs[row].pad_begin,
       pph_filters[part->filters[row]].points, &run->extent.row_begin,
       &run->extent.row_end);
  clip(0, axes[column].axis.input,
       tile->at[column] - part->runs[column].pad_begin,
       pph_filters[part->filters[column]].points, &run->extent.column_begin,
       &run->extent.column_end);
  block->run->plan->run_in(run);
}

/* Tiles [*done, result) of the block share a panel. */
static size_t next_rows(const filtered_block *block, size_t done) {
  size_t left = block->count - done;
  return left < block->part->rows ? left : block->part->rows;
}

static void transform_tiles(const filtered_block *block) {
  filtered_input input = find_input(block);
  float *panel = block->panels;
  for (size_t done = 0, rows; done < block->count; done += rows) {
    rows = next_rows(block, done);
    input.run.chunk_step = rows * PPH_GEMM_CHUNK;
    input.run.point_step = pph_filtered_panel(block->run->plan, rows);
    for (size_t i = 0; i < rows; i++) {
      input.run.panel = panel + i * PPH_GEMM_CHUNK;
      transform_tile(block, &block->tiles[done + i], &input);
    }
    panel += block->part->points *
             pph_filtered_panel(block->run->plan, rows);
  }
}

/* Products */

/* Columns [begin, end), whose products lie rounded up to whole vectors. */
typedef struct filtered_group {
  size_t begin, end, width;
} filtered_group;

/* One point: each panel B serves all tiles before the next one is read, which
   follows in memory: they fetch it meanwhile, each a part. */
static void multiply_point(const filtered_block *block,
                           const filtered_group *group, size_t point,
                           const float *weights) {
  const pph_filtered_plan *plan = block->run->plan;
  size_t depth = plan->in_channels, points = block->part->points;
  for (size_t column = group->begin; column < group->end;) {
    size_t columns = group->end - column;
    columns = columns < plan->gemm->columns ? columns : plan->gemm->columns;
    const float *panel = block->panels;
    float *products = block->products;
    size_t width = pph_filtered_round(plan, columns);
    const float *ahead = plan->fetch ? weights + depth * width : NULL;
    if (ahead && ahead >= plan->weights + plan->weight_floats)
      ahead = NULL;
    for (size_t done = 0, rows; done < block->count; done += rows) {
      rows = next_rows(block, done);
      size_t product = pph_filtered_products(group->width, rows);
      plan->run_gemm(&(pph_gemm_tile){
          .rows = (uint32_t)rows,
          .columns = (uint32_t)columns,
          .depth = depth,
          .a = panel + point * pph_filtered_panel(plan, rows),
          .b = weights,
          .c = products + point * product + column - group->begin,
          .c_stride = group->width,
          .ahead = ahead,
          .ahead_step = width * rows / block->count});
      if (ahead)
        ahead += depth * (width * rows / block->count);
      panel += points * pph_filtered_panel(plan, rows);
      products += points * product;
    }
    weights += depth * width;
    column += columns;
  }
}

static void multiply_group(const filtered_block *block,
                           const filtered_group *group) {
  const pph_filtered_plan *plan = block->run->plan;
  size_t depth = plan->in_channels, points = block->part->points;
  const float *weights = plan->weights + block->part->packed +
                         points * depth * group->begin;
  for (size_t point = 0; point < points; point++)
    multiply_point(block, group, point,
                   weights + point * depth * group->width);
}

/* Outputs */

/* Columns [begin, end) of one phase y and some phases x: what all tiles have
   in common, and the places of their outputs. */
typedef struct filtered_piece {
  size_t begin, end;
  const pph_filtered_range *height, *first, *last; /* of phase y, phases x */
  int64_t base, steps[PPH_FILTERED_AXES], image_step;
  pph_epilogue epilogue;
  pph_filter_out_run run;
} filtered_piece;

/* The phases (y, x) of a column. */
static void find_phases(const filtered_block *block, size_t column,
                        int64_t *phases) {
  const pph_phase_run *runs = block->part->runs;
  size_t phase = column / block->run->plan->out_channels;
  size_t width = (size_t)runs[PPH_FILTERED_WIDTH].count;
  phases[0] = runs[PPH_FILTERED_HEIGHT].first + (int64_t)(phase / width);
  phases[1] = runs[PPH_FILTERED_WIDTH].first + (int64_t)(phase % width);
}

/* Places and ranges; the steps between positions are those of phases. */
static void place_piece(const filtered_block *block, filtered_piece *piece) {
  const pph_filtered_plan *plan = block->run->plan;
  const pph_axis_view *axes = plan->axes;
  int64_t channels = (int64_t)plan->out_channels, first[2], last[2];
  int64_t line = axes[1].axis.output * channels;
  find_phases(block, piece->begin, first);
  find_phases(block, piece->end - 1, last);
  piece->height = &plan->ranges[PPH_FILTERED_HEIGHT][first[0]];
  piece->first = &plan->ranges[PPH_FILTERED_WIDTH][first[1]];
  piece->last = &plan->ranges[PPH_FILTERED_WIDTH][last[1]];
  piece->base = (first[0] - axes[0].trim) * line +
                (first[1] - axes[1].trim) * channels +
                (int64_t)piece->begin % channels;
  piece->steps[0] = axes[0].output_step * line;
  piece->steps[1] = axes[1].output_step * channels;
  piece->image_step = axes[0].axis.output * line;
}

static void make_piece(const filtered_block *block, size_t begin, size_t end,
                       filtered_piece *piece) {
  const filtered_run *run = block->run;
  const pph_filtered_plan *plan = run->plan;
  piece->begin = begin;
  piece->end = end;
  place_piece(block, piece);
  size_t channel = begin % plan->out_channels;
  piece->epilogue =
      (pph_epilogue){.bias = plan->bias ? plan->bias + channel : NULL,
                     .residual = run->tensors->residual,
                     .slopes = plan->slopes ? plan->slopes + channel : NULL,
                     .low = run->spec->low,
                     .high = run->spec->high};
  int row = row_axis(block->part);
  piece->run = (pph_filter_out_run){.filter = column_filter(block->part),
                                    .square = is_square(block->part),
                                    .stream = run->stream,
                                    .columns = end - begin,
                                    .output = run->tensors->output,
                                    .row_step = piece->steps[row],
                                    .column_step = piece->steps[1 - row],
                                    .epilogue = &piece->epilogue};
}

/* The outputs of the tile that exist in a phase x. */
static pph_filter_extent find_extent(const filtered_block *block,
                                     const filtered_piece *piece,
                                     const filtered_tile *tile,
                                     const pph_filtered_range *width) {
  const pph_filtered_part *part = block->part;
  const pph_filtered_range *ranges[] = {piece->height, width};
  int row = row_axis(part), column = 1 - row;
  pph_filter_extent extent;
  clip(ranges[row]->begin, ranges[row]->end, tile->at[row],
       pph_filters[part->filters[row]].outputs, &extent.row_begin,
       &extent.row_end);
  clip(ranges[column]->begin, ranges[column]->end, tile->at[column],
       pph_filters[part->filters[column]].outputs, &extent.column_begin,
       &extent.column_end);
  return extent;
}

static bool same_extent(const pph_filter_extent *a,
                        const pph_filter_extent *b) {
  return a->row_begin == b->row_begin && a->row_end == b->row_end &&
         a->column_begin == b->column_begin && a->column_end == b->column_end;
}

/* The sums are those of the piece's first column. Phases x lie together in the
   output. Where a tile has all of them, or the same ones, they are stored at
   once; else one by one. */
static void store_tile(const filtered_block *block, filtered_piece *piece,
                       const filtered_tile *tile) {
  pph_filter_out_run *run = &piece->run;
  run->extent = find_extent(block, piece, tile, piece->first);
  pph_filter_extent last = find_extent(block, piece, tile, piece->last);
  if (same_extent(&run->extent, &last)) {
    run->offset = piece->base + tile->image * piece->image_step +
                  tile->at[0] * piece->steps[0] +
                  tile->at[1] * piece->steps[1];
    block->run->plan->run_out(run);
    return;
  }
  size_t channels = block->run->plan->out_channels;
  for (size_t begin = piece->begin, end; begin < piece->end; begin = end) {
    end = (begin / channels + 1) * channels;
    end = end < piece->end ? end : piece->end;
    filtered_piece one;
    make_piece(block, begin, end, &one);
    one.run.sums = run->sums + (begin - piece->begin);
    one.run.point_step = run->point_step;
    store_tile(block, &one, tile);
  }
}

/* The part of a group that belongs to one phase y. */
static void store_columns(const filtered_block *block,
                          const filtered_group *group, size_t begin,
                          size_t end) {
  const float *products = block->products + (begin - group->begin);
  filtered_piece piece;
  make_piece(block, begin, end, &piece);
  for (size_t done = 0, rows; done < block->count; done += rows) {
    rows = next_rows(block, done);
    piece.run.point_step = pph_filtered_products(group->width, rows);
    for (size_t i = 0; i < rows; i++) {
      piece.run.sums = products + i * group->width;
      store_tile(block, &piece, &block->tiles[done + i]);
    }
    products += block->part->points * piece.run.point_step;
  }
}

static void store_group(const filtered_block *block,
                        const filtered_group *group) {
  size_t line = (size_t)block->part->runs[PPH_FILTERED_WIDTH].count *
                block->run->plan->out_channels;
  for (size_t begin = group->begin, end; begin < group->end; begin = end) {
    end = (begin / line + 1) * line;
    end = end < group->end ? end : group->end;
    store_columns(block, group, begin, end);
  }
}

/* Blocks */

static void run_block(void *context, uint32_t worker, size_t index) {
  const filtered_run *run = context;
  const pph_filtered_plan *plan = run->plan;
  const pph_filtered_part *part = plan->parts;
  while (index >= part->first_block + part->blocks)
    part++;
  index -= part->first_block;
  char *workspace = (char *)run->tensors->workspace;
  filtered_block block;
  block.run = run;
  block.part = part;
  size_t first = index / part->chunks * part->block_tiles;
  block.count = part->tiles - first;
  block.count = block.count < part->block_tiles ? block.count
                                                : part->block_tiles;
  list_tiles(&block, first);
  block.panels = (float *)(void *)(workspace + worker * run->thread_bytes);
  block.products = block.panels + plan->panel_floats;
  transform_tiles(&block);
  size_t step = part->group_columns;
  size_t groups = (part->columns + step - 1) / step;
  size_t chunk = index % part->chunks;
  size_t end = groups * (chunk + 1) / part->chunks;
  for (size_t i = groups * chunk / part->chunks; i < end; i++) {
    filtered_group group = {.begin = i * step, .end = (i + 1) * step};
    group.end = group.end < part->columns ? group.end : part->columns;
    group.width = pph_filtered_round(plan, group.end - group.begin);
    multiply_group(&block, &group);
    store_group(&block, &group);
  }
  if (run->stream)
    atomic_thread_fence(memory_order_seq_cst);
}

void pph_filtered_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                      const pph_conv_tensors *tensors) {
  const pph_filtered_plan *state = plan->state;
  filtered_run run = {.plan = state,
                      .spec = spec,
                      .tensors = tensors,
                      .thread_bytes = plan->thread_bytes,
                      .stream = state->stream &&
                                (uintptr_t)tensors->output % LINE == 0};
  pph_algo_parallelize(tensors->pool, spec->threads, state->blocks,
                       run_block, &run);
}
