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

/* A block of tiles times a chunk of groups. */
typedef struct filtered_block {
  const filtered_run *run;
  const pph_filtered_part *part;
  size_t first, count; /* tiles */
  float *panels, *products;
} filtered_block;

/* A tile's picture and its first position. */
typedef struct filtered_tile {
  int64_t image, at[PPH_FILTERED_AXES];
} filtered_tile;

static filtered_tile find_tile(const pph_filtered_part *part, size_t index) {
  const size_t *lengths = part->lengths;
  size_t x = index % lengths[PPH_FILTERED_WIDTH];
  size_t y = index / lengths[PPH_FILTERED_WIDTH] % lengths[PPH_FILTERED_HEIGHT];
  return (filtered_tile){
      .image = (int64_t)(index / lengths[PPH_FILTERED_WIDTH] /
                         lengths[PPH_FILTERED_HEIGHT]),
      .at = {(int64_t)(y * pph_filtered_outputs(part, PPH_FILTERED_HEIGHT)),
             (int64_t)(x * pph_filtered_outputs(part, PPH_FILTERED_WIDTH))}};
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

static void transform_tile(const filtered_block *block, size_t index,
                           float *panel, size_t rows) {
  const pph_filtered_part *part = block->part;
  const pph_filtered_plan *plan = block->run->plan;
  filtered_tile tile = find_tile(part, index);
  int64_t channels = (int64_t)plan->in_channels, at[2], input[2];
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    at[i] = tile.at[i] - part->runs[i].pad_begin;
    input[i] = plan->axes[i].axis.input;
  }
  int64_t steps[2] = {input[1] * channels, channels};
  int row = row_axis(part), column = 1 - row;
  pph_filter_in_run run = {
      .filter = column_filter(part),
      .square = is_square(part),
      .channels = plan->in_channels,
      .input = block->run->tensors->input,
      .offset =
          ((tile.image * input[0] + at[0]) * input[1] + at[1]) * channels,
      .row_step = steps[row],
      .column_step = steps[column],
      .panel = panel,
      .chunk_step = rows * PPH_GEMM_CHUNK,
      .point_step = pph_filtered_panel(plan, rows)};
  clip(0, input[row], at[row], pph_filters[part->filters[row]].points,
       &run.extent.row_begin, &run.extent.row_end);
  clip(0, input[column], at[column],
       pph_filters[part->filters[column]].points, &run.extent.column_begin,
       &run.extent.column_end);
  plan->run_in(&run);
}

/* Tiles [*done, result) of the block share a panel. */
static size_t next_rows(const filtered_block *block, size_t done) {
  size_t left = block->count - done;
  return left < block->part->rows ? left : block->part->rows;
}

static void transform_tiles(const filtered_block *block) {
  float *panel = block->panels;
  for (size_t done = 0, rows; done < block->count; done += rows) {
    rows = next_rows(block, done);
    for (size_t i = 0; i < rows; i++)
      transform_tile(block, block->first + done + i,
                     panel + i * PPH_GEMM_CHUNK, rows);
    panel += block->part->points *
             pph_filtered_panel(block->run->plan, rows);
  }
}

/* Products */

/* Columns [begin, end), whose products lie rounded up to whole vectors. */
typedef struct filtered_group {
  size_t begin, end, width;
} filtered_group;

/* One point: each panel B serves all tiles before the next one is read. */
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
          .c_stride = group->width});
      panel += points * pph_filtered_panel(plan, rows);
      products += points * product;
    }
    weights += depth * pph_filtered_round(plan, columns);
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

/* Columns [begin, end) of one phase y, and the products of one tile. */
typedef struct filtered_piece {
  const filtered_block *block;
  filtered_tile tile;
  size_t begin, end;
  const float *products;
  size_t product_step;
} filtered_piece;

/* The phases (y, x) of a column. */
static void find_phases(const filtered_piece *piece, size_t column,
                        int64_t *phases) {
  const pph_phase_run *runs = piece->block->part->runs;
  size_t phase = column / piece->block->run->plan->out_channels;
  size_t width = (size_t)runs[PPH_FILTERED_WIDTH].count;
  phases[PPH_FILTERED_HEIGHT] =
      runs[PPH_FILTERED_HEIGHT].first + (int64_t)(phase / width);
  phases[PPH_FILTERED_WIDTH] =
      runs[PPH_FILTERED_WIDTH].first + (int64_t)(phase % width);
}

/* The outputs of the tile that exist in those phases. */
static pph_filter_extent find_extent(const filtered_piece *piece,
                                     const int64_t *phases) {
  const pph_filtered_part *part = piece->block->part;
  const pph_axis_view *axes = piece->block->run->plan->axes;
  int row = row_axis(part), column = 1 - row;
  pph_filter_extent extent;
  int64_t begin, end;
  pph_axis_view_range(&axes[row], phases[row], &begin, &end);
  clip(begin, end, piece->tile.at[row],
       pph_filters[part->filters[row]].outputs, &extent.row_begin,
       &extent.row_end);
  pph_axis_view_range(&axes[column], phases[column], &begin, &end);
  clip(begin, end, piece->tile.at[column],
       pph_filters[part->filters[column]].outputs, &extent.column_begin,
       &extent.column_end);
  return extent;
}

/* Offset of the tile's first output in that column, which may not exist. */
static int64_t find_output(const filtered_piece *piece, const int64_t *phases,
                           int64_t *steps) {
  const pph_filtered_plan *plan = piece->block->run->plan;
  int64_t channels = (int64_t)plan->out_channels, o[2];
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    const pph_axis_view *view = &plan->axes[i];
    o[i] = piece->tile.at[i] * view->output_step + phases[i] - view->trim;
  }
  int64_t height = plan->axes[0].axis.output, width = plan->axes[1].axis.output;
  steps[1] = plan->axes[1].output_step * channels;
  steps[0] = plan->axes[0].output_step * width * channels;
  return ((piece->tile.image * height + o[0]) * width + o[1]) * channels +
         (int64_t)piece->begin % channels;
}

static void store_piece(const filtered_piece *piece) {
  const filtered_run *run = piece->block->run;
  const pph_filtered_plan *plan = run->plan;
  const pph_filtered_part *part = piece->block->part;
  int64_t phases[2], steps[2];
  find_phases(piece, piece->begin, phases);
  int row = row_axis(part);
  size_t column = piece->begin % plan->out_channels;
  pph_epilogue epilogue = {
      .bias = plan->bias ? plan->bias + column : NULL,
      .residual = run->tensors->residual,
      .slopes = plan->slopes ? plan->slopes + column : NULL,
      .low = run->spec->low,
      .high = run->spec->high};
  pph_filter_out_run out = {.filter = column_filter(part),
                            .square = is_square(part),
                            .stream = run->stream,
                            .columns = piece->end - piece->begin,
                            .sums = piece->products,
                            .point_step = piece->product_step,
                            .output = run->tensors->output,
                            .offset = find_output(piece, phases, steps),
                            .row_step = steps[row],
                            .column_step = steps[1 - row],
                            .extent = find_extent(piece, phases),
                            .epilogue = &epilogue};
  plan->run_out(&out);
}

static bool same_extent(const filtered_piece *piece) {
  int64_t first[2], last[2];
  find_phases(piece, piece->begin, first);
  find_phases(piece, piece->end - 1, last);
  if (first[PPH_FILTERED_WIDTH] == last[PPH_FILTERED_WIDTH])
    return true;
  pph_filter_extent a = find_extent(piece, first), b = find_extent(piece, last);
  return a.row_begin == b.row_begin && a.row_end == b.row_end &&
         a.column_begin == b.column_begin && a.column_end == b.column_end;
}

/* Phases x lie together in the output. Where a tile has all of them, or the
   same ones, they are stored at once; else one by one. */
static void store_phases(const filtered_piece *all) {
  if (same_extent(all)) {
    store_piece(all);
    return;
  }
  size_t channels = all->block->run->plan->out_channels;
  filtered_piece piece = *all;
  for (; piece.begin < all->end; piece.begin = piece.end) {
    piece.end = (piece.begin / channels + 1) * channels;
    piece.end = piece.end < all->end ? piece.end : all->end;
    piece.products = all->products + (piece.begin - all->begin);
    store_piece(&piece);
  }
}

/* The part of a group that belongs to one phase y. */
static void store_columns(const filtered_block *block,
                          const filtered_group *group, size_t begin,
                          size_t end) {
  const float *products = block->products;
  for (size_t done = 0, rows; done < block->count; done += rows) {
    rows = next_rows(block, done);
    size_t step = pph_filtered_products(group->width, rows);
    for (size_t i = 0; i < rows; i++)
      store_phases(&(filtered_piece){
          .block = block,
          .tile = find_tile(block->part, block->first + done + i),
          .begin = begin,
          .end = end,
          .products = products + i * group->width + begin - group->begin,
          .product_step = step});
    products += block->part->points * step;
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
  filtered_block block = {.run = run, .part = part};
  block.first = index / part->chunks * part->block_tiles;
  size_t left = part->tiles - block.first;
  block.count = left < part->block_tiles ? left : part->block_tiles;
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
