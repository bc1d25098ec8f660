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
  const pph_filtered_grid *grid;
  size_t count;
  filtered_tile tiles[PPH_FILTERED_MAX_TILES];
  float *panels, *products;
} filtered_block;

/* The first position of a tile of so many outputs. */
static int64_t find_place(int64_t index, int64_t outputs, int64_t step) {
  return step == 1 ? index * outputs
                   : index / step * step * outputs + index % step;
}

static void list_tiles(filtered_block *block, size_t first) {
  const pph_filtered_grid *grid = block->grid;
  int64_t height = (int64_t)grid->lengths[PPH_FILTERED_HEIGHT];
  int64_t width = (int64_t)grid->lengths[PPH_FILTERED_WIDTH];
  int64_t rows = grid->outputs[PPH_FILTERED_HEIGHT];
  int64_t columns = grid->outputs[PPH_FILTERED_WIDTH];
  int64_t x = (int64_t)first % width, y = (int64_t)first / width % height;
  int64_t image = (int64_t)first / width / height;
  for (size_t i = 0; i < block->count; i++) {
    block->tiles[i] =
        (filtered_tile){image,
                        {find_place(y, rows, grid->steps[PPH_FILTERED_HEIGHT]),
                         find_place(x, columns,
                                    grid->steps[PPH_FILTERED_WIDTH])}};
    x = x + 1 < width ? x + 1 : 0;
    y = x ? y : y + 1 < height ? y + 1 : 0;
    image += !x && !y;
  }
}

/* A kernel's row axis: a line runs along the other one. */
static int row_axis(const pph_filtered_grid *grid) {
  return grid->points[PPH_FILTERED_WIDTH] == 1 ? PPH_FILTERED_WIDTH
                                               : PPH_FILTERED_HEIGHT;
}

/* Which of `length` positions from `at` on lie in [begin, end). */
static void clip(int64_t begin, int64_t end, int64_t at, int64_t step,
                 uint32_t length, int32_t *clipped_begin,
                 int32_t *clipped_end) {
  int64_t most = (int64_t)length;
  if (begin <= at && at + (most - 1) * step < end) {
    *clipped_begin = 0;
    *clipped_end = (int32_t)most;
    return;
  }
  int64_t first = pph_ceil_div(begin - at, step);
  int64_t last = pph_ceil_div(end - at, step);
  *clipped_begin = (int32_t)pph_min_i64(pph_max_i64(first, 0), most);
  *clipped_end = (int32_t)pph_min_i64(pph_max_i64(last, 0), most);
}

/* Inputs */

/* What all windows of a part have in common, and their places. */
typedef struct filtered_input {
  pph_filter_in_run run;
  int64_t base, steps[PPH_FILTERED_AXES], image_step;
} filtered_input;

static filtered_input find_input(const filtered_block *block) {
  const pph_filtered_grid *grid = block->grid;
  const pph_filtered_plan *plan = block->run->plan;
  int64_t channels = (int64_t)plan->in_channels;
  int64_t line = plan->axes[1].axis.input * channels;
  int row = row_axis(grid);
  filtered_input input = {
      .base = -(grid->pads[0] * line + grid->pads[1] * channels),
      .steps = {line, channels},
      .image_step = plan->axes[0].axis.input * line,
      .run = {.points = grid->points[1 - row],
              .square = grid->points[row] > 1,
              .channels = plan->in_channels,
              .input = block->run->tensors->input}};
  input.run.row_step = input.steps[row] * grid->steps[row];
  input.run.column_step = input.steps[1 - row] * grid->steps[1 - row];
  return input;
}

/* The window of the tile whose first input is `at`, pads not yet taken off. */
static void transform_window(const filtered_block *block, int64_t image,
                             const int64_t *at, filtered_input *input) {
  const pph_filtered_grid *grid = block->grid;
  const pph_axis_view *axes = block->run->plan->axes;
  pph_filter_in_run *run = &input->run;
  int row = row_axis(grid), column = 1 - row;
  run->offset = input->base + image * input->image_step +
                at[0] * input->steps[0] + at[1] * input->steps[1];
  clip(0, axes[row].axis.input, at[row] - grid->pads[row], grid->steps[row],
       grid->points[row], &run->extent.row_begin, &run->extent.row_end);
  clip(0, axes[column].axis.input, at[column] - grid->pads[column],
       grid->steps[column], grid->points[column], &run->extent.column_begin,
       &run->extent.column_end);
  block->run->plan->run_in(run);
}

/* All pieces of a tile; panels of the pieces are piece_step floats apart. */
static void transform_tile(const filtered_block *block,
                           const filtered_tile *tile, float *panel,
                           size_t piece_step, filtered_input *input) {
  const pph_filtered_grid *grid = block->grid;
  for (int64_t y = 0; y < grid->pieces[0]; y++)
    for (int64_t x = 0; x < grid->pieces[1]; x++, panel += piece_step) {
      int64_t at[PPH_FILTERED_AXES] = {
          tile->at[0] + y * grid->piece_steps[0],
          tile->at[1] + x * grid->piece_steps[1]};
      input->run.panel = panel;
      transform_window(block, tile->image, at, input);
    }
}

/* Tiles [*done, result) of the block share a panel. */
static size_t next_rows(const filtered_block *block, size_t done) {
  size_t left = block->count - done;
  return left < block->grid->rows ? left : block->grid->rows;
}

static void transform_tiles(const filtered_block *block) {
  filtered_input input = find_input(block);
  float *panel = block->panels;
  for (size_t done = 0, rows; done < block->count; done += rows) {
    rows = next_rows(block, done);
    input.run.chunk_step = rows * PPH_GEMM_CHUNK;
    input.run.point_step = pph_filtered_panel(block->run->plan, rows);
    for (size_t i = 0; i < rows; i++)
      transform_tile(block, &block->tiles[done + i], panel + i * PPH_GEMM_CHUNK,
                     pph_filtered_points(block->grid) * input.run.point_step,
                     &input);
    panel += pph_filtered_panels(block->grid) * input.run.point_step;
  }
}

/* Products */

/* Columns [begin, end) of a part, whose products lie rounded up to whole
   vectors. */
typedef struct filtered_group {
  const pph_filtered_part *part;
  size_t begin, end, width;
} filtered_group;

/* The place of a part's point among the grid's. */
static size_t find_point(const filtered_block *block,
                         const pph_filtered_part *part, size_t point) {
  size_t width = pph_filters[part->filters[PPH_FILTERED_WIDTH]].points;
  size_t y = point / width + part->shifts[PPH_FILTERED_HEIGHT];
  size_t x = point % width + part->shifts[PPH_FILTERED_WIDTH];
  return y * block->grid->points[PPH_FILTERED_WIDTH] + x;
}

/* A panel B, of one point and piece, with those of all tiles: it serves them
   all before the next one is read, which follows in memory: they fetch it
   meanwhile, each a part. */
static void multiply_panel(const filtered_block *block,
                           const filtered_group *group, size_t point,
                           size_t piece, size_t column, const float *weights) {
  const pph_filtered_plan *plan = block->run->plan;
  size_t depth = plan->in_channels, columns = group->end - column;
  columns = columns < plan->gemm->columns ? columns : plan->gemm->columns;
  size_t width = pph_filtered_round(plan, columns);
  size_t from = piece * pph_filtered_points(block->grid) +
                find_point(block, group->part, point);
  const float *panel = block->panels;
  float *products = block->products;
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
        .a = panel + from * pph_filtered_panel(plan, rows),
        .b = weights,
        .c = products + point * product + column - group->begin,
        .c_stride = group->width,
        .join = piece > 0,
        .ahead = ahead,
        .ahead_step = width * rows / block->count});
    if (ahead)
      ahead += depth * (width * rows / block->count);
    panel += pph_filtered_panels(block->grid) * pph_filtered_panel(plan, rows);
    products += group->part->points * product;
  }
}

static void multiply_group(const filtered_block *block,
                           const filtered_group *group) {
  const pph_filtered_plan *plan = block->run->plan;
  const pph_filtered_part *part = group->part;
  size_t pieces = pph_filtered_pieces(block->grid), step = plan->gemm->columns;
  const float *weights =
      plan->weights + part->packed +
      part->points * pieces * plan->in_channels * group->begin;
  for (size_t point = 0; point < part->points; point++)
    for (size_t column = group->begin; column < group->end; column += step) {
      size_t columns = group->end - column;
      columns = pph_filtered_round(plan, columns < step ? columns : step);
      for (size_t piece = 0; piece < pieces; piece++) {
        multiply_panel(block, group, point, piece, column, weights);
        weights += plan->in_channels * columns;
      }
    }
}

/* Outputs */

/* Columns [begin, end) of one phase y and some phases x: what all tiles have
   in common, and the places of their outputs. */
typedef struct filtered_piece {
  const pph_filtered_part *part;
  size_t begin, end;
  const pph_filtered_range *height, *first, *last; /* of phase y, phases x */
  int64_t base, steps[PPH_FILTERED_AXES], image_step;
  pph_epilogue epilogue;
  pph_filter_out_run run;
} filtered_piece;

/* The phases (y, x) of a column. */
static void find_phases(const pph_filtered_plan *plan,
                        const pph_filtered_part *part, size_t column,
                        int64_t *phases) {
  const pph_phase_run *runs = part->runs;
  size_t phase = column / plan->out_channels;
  size_t width = (size_t)runs[PPH_FILTERED_WIDTH].count;
  phases[0] = runs[PPH_FILTERED_HEIGHT].first + (int64_t)(phase / width);
  phases[1] = runs[PPH_FILTERED_WIDTH].first + (int64_t)(phase % width);
}

/* Places and ranges; the steps between positions are those of phases. */
static void place_piece(const pph_filtered_plan *plan, filtered_piece *piece) {
  const pph_axis_view *axes = plan->axes;
  int64_t channels = (int64_t)plan->out_channels, first[2], last[2];
  int64_t line = axes[1].axis.output * channels;
  find_phases(plan, piece->part, piece->begin, first);
  find_phases(plan, piece->part, piece->end - 1, last);
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

static void make_piece(const filtered_block *block,
                       const pph_filtered_part *part, size_t begin, size_t end,
                       filtered_piece *piece) {
  const filtered_run *run = block->run;
  const pph_filtered_plan *plan = run->plan;
  piece->part = part;
  piece->begin = begin;
  piece->end = end;
  place_piece(plan, piece);
  size_t channel = begin % plan->out_channels;
  piece->epilogue =
      (pph_epilogue){.bias = plan->bias ? plan->bias + channel : NULL,
                     .residual = run->tensors->residual,
                     .slopes = plan->slopes ? plan->slopes + channel : NULL,
                     .low = run->spec->low,
                     .high = run->spec->high};
  const pph_filtered_grid *grid = block->grid;
  int row = row_axis(grid), column = 1 - row;
  piece->run = (pph_filter_out_run){
      .filter = part->filters[column],
      .row_filter = part->filters[row],
      .stream = run->stream,
      .columns = end - begin,
      .output = run->tensors->output,
      .row_step = piece->steps[row] * grid->steps[row],
      .column_step = piece->steps[column] * grid->steps[column],
      .ahead = grid->steps[column] > 1
                   ? piece->steps[column]
                   : piece->steps[column] * grid->outputs[column],
      .epilogue = &piece->epilogue};
}

/* The outputs of the tile that exist in a phase x. */
static pph_filter_extent find_extent(const filtered_block *block,
                                     const filtered_piece *piece,
                                     const filtered_tile *tile,
                                     const pph_filtered_range *width) {
  const pph_filtered_grid *grid = block->grid;
  const pph_filtered_range *ranges[] = {piece->height, width};
  int row = row_axis(grid), column = 1 - row;
  pph_filter_extent extent;
  clip(ranges[row]->begin, ranges[row]->end, tile->at[row], grid->steps[row],
       grid->outputs[row], &extent.row_begin, &extent.row_end);
  clip(ranges[column]->begin, ranges[column]->end, tile->at[column],
       grid->steps[column], grid->outputs[column], &extent.column_begin,
       &extent.column_end);
  return extent;
}

static bool same_extent(const pph_filter_extent *a,
                        const pph_filter_extent *b) {
  return a->row_begin == b->row_begin && a->row_end == b->row_end &&
         a->column_begin == b->column_begin && a->column_end == b->column_end;
}

/* A corner's sums of some columns, a multiple of the GEMM's from the part's
   first: a pixel is a panel A of one row. */
static void multiply_corner(const filtered_block *block,
                            const pph_filtered_part *part, int64_t image,
                            const int64_t *at, size_t first, float *sums) {
  const filtered_run *run = block->run;
  const pph_filtered_plan *plan = run->plan;
  size_t depth = plan->in_channels;
  size_t columns = part->columns - first;
  columns = columns < plan->gemm->columns ? columns : plan->gemm->columns;
  const float *weights =
      plan->weights + part->direct + first * pph_filtered_taps(part) * depth;
  bool started = false;
  for (int64_t u = 0; u < part->runs[0].taps; u++)
    for (int64_t v = 0; v < part->runs[1].taps; v++) {
      const pph_phase_run *runs = part->runs;
      int64_t y = at[0] - runs[0].pad_begin + u * runs[0].tap_step;
      int64_t x = at[1] - runs[1].pad_begin + v * runs[1].tap_step;
      int64_t height = plan->axes[0].axis.input;
      int64_t width = plan->axes[1].axis.input;
      if (y >= 0 && y < height && x >= 0 && x < width) {
        int64_t pixel = (image * height + y) * width + x;
        plan->run_gemm(
            &(pph_gemm_tile){.rows = 1,
                             .columns = (uint32_t)columns,
                             .depth = depth,
                             .a = run->tensors->input + pixel * (int64_t)depth,
                             .b = weights,
                             .c = sums,
                             .c_stride = columns,
                             .accumulate = started});
        started = true;
      }
      weights += depth * pph_filtered_round(plan, columns);
    }
}

/* In the place of what was stored. */
static void store_corner(const filtered_block *block,
                         const filtered_piece *piece, int64_t image,
                         const int64_t *at) {
  const pph_filtered_plan *plan = block->run->plan;
  float sums[PPH_FILTERED_MAX_COLUMNS];
  size_t step = plan->gemm->columns;
  for (size_t begin = piece->begin, end; begin < piece->end; begin = end) {
    size_t first = begin / step * step;
    end = first + step < piece->end ? first + step : piece->end;
    multiply_corner(block, piece->part, image, at, first, sums);
    pph_filter_out_run run = piece->run;
    pph_epilogue epilogue = piece->epilogue;
    size_t skipped = begin - piece->begin;
    if (epilogue.bias)
      epilogue.bias += skipped;
    if (epilogue.slopes)
      epilogue.slopes += skipped;
    run.filter = run.row_filter = PPH_FILTER_1_1;
    run.columns = end - begin;
    run.sums = sums + (begin - first);
    run.offset = piece->base + image * piece->image_step +
                 at[0] * piece->steps[0] + at[1] * piece->steps[1] +
                 (int64_t)skipped;
    run.extent = (pph_filter_extent){0, 1, 0, 1};
    run.epilogue = &epilogue;
    plan->run_out(&run);
  }
}

/* The corners among a tile's outputs that exist. */
static void store_corners(const filtered_block *block,
                          const filtered_piece *piece,
                          const filtered_tile *tile) {
  const pph_filtered_plan *plan = block->run->plan;
  const pph_filter_extent *extent = &piece->run.extent;
  int row = row_axis(block->grid), column = 1 - row;
  int64_t at[PPH_FILTERED_AXES];
  for (int32_t i = extent->row_begin; i < extent->row_end; i++) {
    at[row] = tile->at[row] + i * block->grid->steps[row];
    if (!pph_filtered_is_cut(plan, piece->part, row, at[row]))
      continue;
    for (int32_t j = extent->column_begin; j < extent->column_end; j++) {
      at[column] = tile->at[column] + j * block->grid->steps[column];
      if (pph_filtered_is_cut(plan, piece->part, column, at[column]))
        store_corner(block, piece, tile->image, at);
    }
  }
}

static void store_phases(const filtered_block *block,
                         const filtered_piece *piece,
                         const filtered_tile *tile);

/* The sums are those of the piece's first column. Phases x lie together in the
   output. Where a tile has all of them, or the same ones, they are stored at
   once; else one by one. */
static void store_tile(const filtered_block *block, filtered_piece *piece,
                       const filtered_tile *tile) {
  pph_filter_out_run *run = &piece->run;
  run->extent = find_extent(block, piece, tile, piece->first);
  if (piece->last != piece->first) {
    pph_filter_extent last = find_extent(block, piece, tile, piece->last);
    if (!same_extent(&run->extent, &last)) {
      store_phases(block, piece, tile);
      return;
    }
  }
  run->offset = piece->base + tile->image * piece->image_step +
                tile->at[0] * piece->steps[0] + tile->at[1] * piece->steps[1];
  block->run->plan->run_out(run);
  if (piece->part->corners)
    store_corners(block, piece, tile);
}

static void store_phases(const filtered_block *block,
                         const filtered_piece *piece,
                         const filtered_tile *tile) {
  size_t channels = block->run->plan->out_channels;
  for (size_t begin = piece->begin, end; begin < piece->end; begin = end) {
    end = (begin / channels + 1) * channels;
    end = end < piece->end ? end : piece->end;
    filtered_piece one;
    make_piece(block, piece->part, begin, end, &one);
    one.run.sums = piece->run.sums + (begin - piece->begin);
    one.run.point_step = piece->run.point_step;
    store_tile(block, &one, tile);
  }
}

/* The part of a group that belongs to one phase y. */
static void store_columns(const filtered_block *block,
                          const filtered_group *group, size_t begin,
                          size_t end) {
  const float *products = block->products + (begin - group->begin);
  filtered_piece piece;
  make_piece(block, group->part, begin, end, &piece);
  for (size_t done = 0, rows; done < block->count; done += rows) {
    rows = next_rows(block, done);
    piece.run.point_step = pph_filtered_products(group->width, rows);
    for (size_t i = 0; i < rows; i++) {
      piece.run.sums = products + i * group->width;
      store_tile(block, &piece, &block->tiles[done + i]);
    }
    products += group->part->points * piece.run.point_step;
  }
}

static void store_group(const filtered_block *block,
                        const filtered_group *group) {
  size_t line = (size_t)group->part->runs[PPH_FILTERED_WIDTH].count *
                block->run->plan->out_channels;
  for (size_t begin = group->begin, end; begin < group->end; begin = end) {
    end = (begin / line + 1) * line;
    end = end < group->end ? end : group->end;
    store_columns(block, group, begin, end);
  }
}

/* Blocks */

/* Groups [first, end) of the grid's parts, in their order. */
static void run_groups(const filtered_block *block, size_t first, size_t end) {
  const pph_filtered_plan *plan = block->run->plan;
  const pph_filtered_part *part = plan->parts + block->grid->first_part;
  for (size_t i = first, before = 0; i < end; i++) {
    for (; i >= before + part->groups; part++)
      before += part->groups;
    filtered_group group = {.part = part,
                            .begin = (i - before) * part->group_columns};
    group.end = group.begin + part->group_columns;
    group.end = group.end < part->columns ? group.end : part->columns;
    group.width = pph_filtered_round(plan, group.end - group.begin);
    multiply_group(block, &group);
    store_group(block, &group);
  }
}

static void run_block(void *context, uint32_t worker, size_t index) {
  const filtered_run *run = context;
  const pph_filtered_plan *plan = run->plan;
  const pph_filtered_grid *grid = plan->grids;
  while (index >= grid->first_block + grid->blocks)
    grid++;
  index -= grid->first_block;
  char *workspace = (char *)run->tensors->workspace;
  filtered_block block;
  block.run = run;
  block.grid = grid;
  size_t first = index / grid->chunks * grid->block_tiles;
  block.count = grid->tiles - first;
  block.count =
      block.count < grid->block_tiles ? block.count : grid->block_tiles;
  list_tiles(&block, first);
  block.panels = (float *)(void *)(workspace + worker * run->thread_bytes);
  block.products = block.panels + plan->panel_floats;
  transform_tiles(&block);
  size_t chunk = index % grid->chunks;
  run_groups(&block, grid->groups * chunk / grid->chunks,
             grid->groups * (chunk + 1) / grid->chunks);
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
  pph_algo_parallelize(tensors->pool, spec->threads, state->blocks, run_block,
                       &run);
}
