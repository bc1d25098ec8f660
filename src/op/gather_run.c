/* Running gather: blocks of tiles; per block panels, then products. */
#include "op/gather.h"

/* What a run shares. */
typedef struct gather_run {
  const pph_gather_plan *plan;
  const pph_conv_spec *spec;
  const pph_conv_tensors *tensors;
  size_t thread_bytes;
} gather_run;

/* The pixels of one tile. */
typedef struct gather_tile {
  int64_t n, q[PPH_PROBLEM_AXES]; /* width: of the first row */
  uint32_t rows;
} gather_tile;

static gather_tile find_tile(const gather_run *run,
                             const pph_gather_part *part, size_t index) {
  const pph_axis_view *axes = run->plan->axes;
  size_t segment = index % part->segments, row = index / part->segments;
  size_t heights = (size_t)axes[PPH_HEIGHT].length;
  size_t depths = (size_t)axes[PPH_DEPTH].length;
  gather_tile tile = {
      .n = (int64_t)(row / heights / depths),
      .q = {(int64_t)(row / heights % depths), (int64_t)(row % heights),
            (int64_t)(segment * part->rows)}};
  int64_t left = axes[PPH_WIDTH].length - tile.q[PPH_WIDTH];
  tile.rows = left < part->rows ? (uint32_t)left : part->rows;
  return tile;
}

/* Packing: where the inputs of a tap lie. */

typedef struct tap_source {
  const float *row; /* the input row, channels of the group; NULL: outside */
  size_t pixel;     /* floats between pixels */
  size_t step;      /* floats between channels */
} tap_source;

static tap_source find_source(const gather_run *run,
                              const pph_gather_part *part, size_t group,
                              const gather_tile *tile, const int64_t *u) {
  const pph_problem *p = &run->spec->problem;
  const pph_axis *axes = p->axes;
  int64_t at[2];
  for (int i = 0; i < 2; i++) {
    const pph_phase_run *phase = &part->runs[i];
    at[i] = tile->q[i] * run->plan->axes[i].input_step +
            u[i] * phase->tap_step - phase->pad_begin;
    if (at[i] < 0 || at[i] >= axes[i].input)
      return (tap_source){0};
  }
  size_t line = (size_t)(at[0] * axes[PPH_HEIGHT].input + at[1]);
  size_t width = (size_t)axes[PPH_WIDTH].input;
  size_t plane = (size_t)axes[0].input * (size_t)axes[1].input * width;
  size_t channels = (size_t)p->in_channels, n = (size_t)tile->n;
  size_t first = group * run->plan->in_channels;
  const float *input = run->tensors->input;
  if (run->spec->input_channels_first)
    return (tap_source){
        input + (n * channels + first) * plane + line * width, 1, plane};
  return (tap_source){input + (n * plane + line * width) * channels + first,
                      channels, 1};
}

/* All taps along the width of one input row at once, where pixels lie together
   and none is outside. */
static bool pack_together(const gather_run *run, const pph_gather_part *part,
                          const gather_tile *tile, const tap_source *source,
                          size_t offset, float *panel) {
  const pph_phase_run *width = &part->runs[PPH_WIDTH];
  const pph_axis_view *view = &run->plan->axes[PPH_WIDTH];
  int64_t begin = tile->q[PPH_WIDTH] * view->input_step - width->pad_begin;
  int64_t last = begin + (int64_t)(tile->rows - 1) * view->input_step +
                 width->taps - 1;
  bool together = source->row && source->step == 1 &&
                  source->pixel == run->plan->in_channels &&
                  width->tap_step == 1;
  if (!together || begin < 0 || last >= view->axis.input)
    return false;
  const float *sources[PPH_GEMM_MAX_ROWS];
  for (uint32_t i = 0; i < tile->rows; i++)
    sources[i] = source->row + (size_t)(begin + i * view->input_step) *
                                   source->pixel;
  run->plan->run_pack(&(pph_pack_run){
      .rows = tile->rows,
      .offset = offset,
      .count = (size_t)width->taps * run->plan->in_channels,
      .step = 1,
      .sources = sources,
      .panel = panel});
  return true;
}

static void pack_width(const gather_run *run, const pph_gather_part *part,
                       const gather_tile *tile, const tap_source *source,
                       size_t offset, float *panel) {
  const pph_phase_run *width = &part->runs[PPH_WIDTH];
  const pph_axis_view *view = &run->plan->axes[PPH_WIDTH];
  if (pack_together(run, part, tile, source, offset, panel))
    return;
  for (int64_t u = 0; u < width->taps; u++) {
    const float *sources[PPH_GEMM_MAX_ROWS];
    for (uint32_t i = 0; i < tile->rows; i++) {
      int64_t at = (tile->q[PPH_WIDTH] + i) * view->input_step +
                   u * width->tap_step - width->pad_begin;
      bool inside = source->row && at >= 0 && at < view->axis.input;
      sources[i] = inside ? source->row + (size_t)at * source->pixel : NULL;
    }
    run->plan->run_pack(&(pph_pack_run){.rows = tile->rows,
                                        .offset = offset,
                                        .count = run->plan->in_channels,
                                        .step = source->step,
                                        .sources = sources,
                                        .panel = panel});
    offset += run->plan->in_channels;
  }
}

static void pack_tile(const gather_run *run, const pph_gather_part *part,
                      size_t group, const gather_tile *tile, float *panel) {
  size_t offset = 0;
  size_t line = (size_t)part->runs[PPH_WIDTH].taps * run->plan->in_channels;
  int64_t u[2];
  for (u[0] = 0; u[0] < part->runs[0].taps; u[0]++)
    for (u[1] = 0; u[1] < part->runs[1].taps; u[1]++) {
      tap_source source = find_source(run, part, group, tile, u);
      pack_width(run, part, tile, &source, offset, panel);
      offset += line;
    }
}

/* Products */

/* One GEMM call's place: a tile, a (depth, height) phase pair and a column
   block. */
typedef struct gather_product {
  const gather_run *run;
  const pph_gather_part *part;
  const gather_tile *tile;
  size_t group, column, columns; /* column: within (phase x, channel) */
  int64_t out[2];                /* output depth and height */
  const float *panel, *weights;
  const float *ahead; /* the tile's share of the next weights; NULL: none */
  size_t ahead_step;  /* floats of it per step of the depth */
  float *sums; /* room for one tile */
  pph_epilogue epilogue;
} gather_product;

/* The output element (row 0 of the tile, first column), which may lie left of
   the output's row: an index, not yet a pointer. */
static int64_t find_output(const gather_product *product, int64_t *x) {
  const gather_run *run = product->run;
  const pph_problem *p = &run->spec->problem;
  const pph_axis *axes = p->axes;
  const pph_axis_view *view = &run->plan->axes[PPH_WIDTH];
  int64_t channels = (int64_t)run->plan->out_channels;
  int64_t phase = product->part->runs[PPH_WIDTH].first +
                  (int64_t)product->column / channels;
  int64_t channel = (int64_t)product->group * channels +
                    (int64_t)product->column % channels;
  *x = product->tile->q[PPH_WIDTH] * view->output_step + phase - view->trim;
  int64_t line = (product->tile->n * axes[0].output + product->out[0]) *
                     axes[1].output +
                 product->out[1];
  return (line * axes[2].output + *x) * p->out_channels + channel;
}

/* Whether all rows and columns of the tile exist in the output. */
static bool is_whole(const gather_product *product, int64_t x) {
  const pph_axis_view *view = &product->run->plan->axes[PPH_WIDTH];
  int64_t channels = (int64_t)product->run->plan->out_channels;
  int64_t within = (int64_t)product->column % channels +
                   (int64_t)product->columns - 1;
  int64_t last = x + (product->tile->rows - 1) * view->output_step +
                 within / channels;
  return x >= 0 && last < view->axis.output;
}

static void multiply(const gather_product *product, float *target,
                     size_t stride, const pph_epilogue *epilogue) {
  product->run->plan->run_gemm(&(pph_gemm_tile){
      .rows = product->tile->rows,
      .columns = (uint32_t)product->columns,
      .depth = product->part->depth,
      .a = product->panel,
      .b = product->weights,
      .c = target,
      .c_stride = stride,
      .epilogue = epilogue,
      .ahead = product->ahead,
      .ahead_step = product->ahead_step});
}

/* Stores the pixels of the tile's row that exist, from sums. One row is the
   columns of several phases: one pixel each, cut by column blocks. */
static void store_row(const gather_product *product, int64_t at, int64_t x,
                      const float *sums) {
  const gather_run *run = product->run;
  const pph_axis *width = &run->spec->problem.axes[PPH_WIDTH];
  int64_t channels = (int64_t)run->plan->out_channels;
  int64_t pixels = run->spec->problem.out_channels;
  int64_t begin = 0, end = (int64_t)product->columns;
  int64_t inside = (int64_t)product->column % channels;
  if (x < 0) /* begins with the first column of pixel 0 */
    begin = -x * channels - inside;
  if ((width->output - x) * channels - inside < end)
    end = (width->output - x) * channels - inside;
  if (begin >= end)
    return;
  /* With one group the columns of neighbouring phases lie together; with
     several there is one phase. */
  int64_t first = at + (pixels == channels ? begin : 0);
  pph_epilogue epilogue = product->epilogue;
  if (epilogue.bias)
    epilogue.bias += begin;
  if (epilogue.slopes)
    epilogue.slopes += begin;
  if (run->tensors->residual)
    epilogue.residual = run->tensors->residual + first;
  run->plan->run_finish(&(pph_finish_block){.rows = 1,
                                            .columns = (size_t)(end - begin),
                                            .sums = sums + begin,
                                            .target = run->tensors->output +
                                                      first,
                                            .epilogue = &epilogue});
}

static void store_rows(const gather_product *product, int64_t at, int64_t x) {
  const pph_axis_view *view = &product->run->plan->axes[PPH_WIDTH];
  int64_t step = view->output_step;
  multiply(product, product->sums, product->columns, NULL);
  for (uint32_t i = 0; i < product->tile->rows; i++)
    store_row(product,
              at + i * step * product->run->spec->problem.out_channels,
              x + i * step, product->sums + i * product->columns);
}

/* Channels first: a column goes to its plane, at the step of the phases. */
static void store_planes(const gather_product *product) {
  const gather_run *run = product->run;
  const pph_problem *p = &run->spec->problem;
  const pph_axis_view *view = &run->plan->axes[PPH_WIDTH];
  size_t channels = run->plan->out_channels;
  const pph_axis *axes = p->axes;
  int64_t plane = axes[0].output * axes[1].output * axes[2].output;
  int64_t line = (product->out[0] * axes[1].output + product->out[1]) *
                 axes[2].output;
  multiply(product, product->sums, product->columns, NULL);
  for (size_t done = 0; done < product->columns;) {
    size_t column = product->column + done, channel = column % channels;
    size_t count = channels - channel;
    count = count < product->columns - done ? count : product->columns - done;
    int64_t phase = product->part->runs[PPH_WIDTH].first +
                    (int64_t)(column / channels);
    int64_t begin, end, q = product->tile->q[PPH_WIDTH];
    pph_axis_view_range(view, phase, &begin, &end);
    begin = begin > q ? begin : q;
    end = end < q + product->tile->rows ? end : q + product->tile->rows;
    int64_t c = (int64_t)(product->group * channels + channel);
    int64_t at = (product->tile->n * p->out_channels + c) * plane + line +
                 begin * view->output_step + phase - view->trim;
    pph_epilogue epilogue = product->epilogue;
    epilogue.bias = epilogue.bias ? epilogue.bias + done : NULL;
    epilogue.slopes = epilogue.slopes ? epilogue.slopes + done : NULL;
    epilogue.residual =
        run->tensors->residual ? run->tensors->residual + at : NULL;
    if (begin < end)
      run->plan->run_finish_planes(&(pph_finish_block){
          .rows = (uint32_t)(end - begin),
          .columns = count,
          .sums = product->sums +
                  (size_t)(begin - q) * product->columns + done,
          .sum_stride = product->columns,
          .target = run->tensors->output + at,
          .target_stride = (size_t)view->output_step,
          .plane = (size_t)plane,
          .epilogue = &epilogue});
    done += count;
  }
}

static void run_product(gather_product *product) {
  const gather_run *run = product->run;
  if (run->spec->output_channels_first) {
    store_planes(product);
    return;
  }
  int64_t x, at = find_output(product, &x);
  if (!is_whole(product, x)) {
    store_rows(product, at, x);
    return;
  }
  size_t stride = (size_t)run->plan->axes[PPH_WIDTH].output_step *
                  (size_t)run->spec->problem.out_channels;
  pph_epilogue epilogue = product->epilogue;
  if (run->tensors->residual) {
    epilogue.residual = run->tensors->residual + at;
    epilogue.residual_stride = stride;
  }
  multiply(product, run->tensors->output + at, stride, &epilogue);
}

/* Blocks */

/* Whether the (depth, height) phases of `pair` exist at the tile. */
static bool find_rows(const gather_product *product, size_t pair,
                      int64_t *out) {
  const pph_gather_part *part = product->part;
  size_t heights = (size_t)part->runs[PPH_HEIGHT].count;
  int64_t phase[2] = {part->runs[0].first + (int64_t)(pair / heights),
                      part->runs[1].first + (int64_t)(pair % heights)};
  for (int i = 0; i < 2; i++) {
    const pph_axis_view *view = &product->run->plan->axes[i];
    out[i] = product->tile->q[i] * view->output_step + phase[i] - view->trim;
    if (out[i] < 0 || out[i] >= view->axis.output)
      return false;
  }
  return true;
}

/* All tiles of a block times one column block. Where weights do not stay in
   cache the tiles fetch the next ones meanwhile, each a part. */
static void run_columns(gather_product *product, const gather_tile *tiles,
                        size_t count, const float *panels, size_t pair) {
  const pph_gather_plan *plan = product->run->plan;
  size_t panel = pph_gather_panel_floats(product->part);
  size_t depth = product->part->depth;
  size_t width = pph_gather_round(plan, product->columns);
  const float *next = product->weights + depth * width;
  bool fetch = plan->fetch && next < plan->weights + plan->weight_floats;
  product->ahead_step = (width + count - 1) / count;
  for (size_t i = 0; i < count; i++) {
    product->tile = &tiles[i];
    product->panel = panels + i * panel;
    product->ahead = fetch ? next + i * product->ahead_step * depth : NULL;
    if (find_rows(product, pair, product->out))
      run_product(product);
  }
}

static void set_columns(gather_product *product, size_t group, size_t pair,
                        size_t block) {
  const pph_gather_part *part = product->part;
  const pph_gather_plan *plan = product->run->plan;
  size_t channels = plan->repeats * plan->out_channels;
  product->group = group;
  product->column = block * plan->column_step;
  size_t left = part->columns - product->column;
  product->columns = left < plan->column_step ? left : plan->column_step;
  product->weights = plan->weights + part->packed +
                     (group * pph_gather_pairs(part) + pair) *
                         part->packed_each +
                     product->column * part->depth;
  size_t at = group * channels + product->column;
  product->epilogue.bias = plan->bias ? plan->bias + at : NULL;
  product->epilogue.slopes = plan->slopes ? plan->slopes + at : NULL;
}

enum { MAX_TILES = 64 };

/* `block` within the part: [group][tile block][chunk]. */
static void run_part(const gather_run *run, const pph_gather_part *part,
                     size_t block, float *workspace) {
  size_t chunk = block % part->chunks;
  size_t blocks = (part->tiles + part->block_tiles - 1) / part->block_tiles;
  size_t first = block / part->chunks % blocks * part->block_tiles;
  size_t group = block / part->chunks / blocks;
  size_t count = part->tiles - first;
  count = count < part->block_tiles ? count : part->block_tiles;
  gather_tile tiles[MAX_TILES];
  size_t panel = pph_gather_panel_floats(part);
  for (size_t i = 0; i < count; i++) {
    tiles[i] = find_tile(run, part, first + i);
    pack_tile(run, part, group, &tiles[i], workspace + i * panel);
  }
  gather_product product = {.run = run,
                            .part = part,
                            .sums = workspace + run->plan->panel_floats,
                            .epilogue = {.low = run->spec->low,
                                         .high = run->spec->high}};
  size_t column_blocks = pph_gather_column_blocks(run->plan, part);
  size_t all = column_blocks * pph_gather_pairs(part);
  size_t end = all * (chunk + 1) / part->chunks;
  for (size_t i = all * chunk / part->chunks; i < end; i++) {
    size_t pair = i / column_blocks;
    set_columns(&product, group, pair, i % column_blocks);
    run_columns(&product, tiles, count, workspace, pair);
  }
}

static void run_block(void *context, uint32_t worker, size_t block) {
  const gather_run *run = context;
  const pph_gather_part *part = run->plan->parts;
  while (block >= part->first_block + part->blocks)
    part++;
  char *workspace = run->tensors->workspace;
  run_part(run, part, block - part->first_block,
           (float *)(void *)(workspace + worker * run->thread_bytes));
}

void pph_gather_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                    const pph_conv_tensors *tensors) {
  gather_run run = {plan->state, spec, tensors, plan->thread_bytes};
  pph_algo_parallelize(tensors->pool, spec->threads, run.plan->blocks,
                       run_block, &run);
}
