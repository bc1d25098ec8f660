/* Running gather: per block its inputs, then products. */
#include "base/checked.h"
#include "op/gather.h"

/* Neighbouring pixels of one row. */
typedef struct gather_tile {
  int64_t n, q[PPH_PROBLEM_AXES]; /* width: of the first pixel */
  uint32_t rows;
  const float *inputs;
} gather_tile;

/* Products */

/* One GEMM call's place: a tile, a (depth, height) phase pair and a column
   block. */
typedef struct gather_product {
  const pph_gather_job *job;
  const pph_gather_part *part;
  const gather_tile *tile;
  size_t group, column, columns; /* column: within (phase x, channel) */
  int64_t out[2];                /* output depth and height */
  const pph_gather_reads *reads;
  const float *weights;
  const float *ahead; /* the tile's share of the next weights; NULL: none */
  size_t ahead_step;  /* floats of it per step of the depth */
  float *sums; /* room for one tile */
  pph_epilogue epilogue;
} gather_product;

/* The output element (row 0 of the tile, first column), which may lie left of
   the output's row: an index, not yet a pointer. */
static int64_t find_output(const gather_product *product, int64_t *x) {
  const pph_gather_job *job = product->job;
  const pph_problem *p = &job->spec->problem;
  const pph_axis *axes = p->axes;
  const pph_axis_view *view = &job->plan->axes[PPH_WIDTH];
  int64_t channels = (int64_t)job->plan->out_channels;
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
  const pph_axis_view *view = &product->job->plan->axes[PPH_WIDTH];
  int64_t channels = (int64_t)product->job->plan->out_channels;
  int64_t within = (int64_t)product->column % channels +
                   (int64_t)product->columns - 1;
  int64_t last = x + (product->tile->rows - 1) * view->output_step +
                 within / channels;
  return x >= 0 && last < view->axis.output;
}

static void multiply(const gather_product *product, float *target,
                     size_t stride, const pph_epilogue *epilogue) {
  const pph_gather_plan *plan = product->job->plan;
  plan->run_gemm(&(pph_gemm_tile){
      .rows = product->tile->rows,
      .columns = (uint32_t)product->columns,
      .depth = product->part->depth,
      .a = product->tile->inputs,
      .starts = plan->starts + product->reads->starts,
      .row_step = product->reads->row_step,
      .run = product->reads->run,
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
  const pph_gather_job *job = product->job;
  const pph_axis *width = &job->spec->problem.axes[PPH_WIDTH];
  int64_t channels = (int64_t)job->plan->out_channels;
  int64_t pixels = job->spec->problem.out_channels;
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
  if (job->tensors->residual)
    epilogue.residual = job->tensors->residual + first;
  job->plan->run_finish(&(pph_finish_block){.rows = 1,
                                            .columns = (size_t)(end - begin),
                                            .sums = sums + begin,
                                            .target = job->tensors->output +
                                                      first,
                                            .epilogue = &epilogue});
}

static void store_rows(const gather_product *product, int64_t at, int64_t x) {
  const pph_axis_view *view = &product->job->plan->axes[PPH_WIDTH];
  int64_t step = view->output_step;
  multiply(product, product->sums, product->columns, NULL);
  for (uint32_t i = 0; i < product->tile->rows; i++)
    store_row(product,
              at + i * step * product->job->spec->problem.out_channels,
              x + i * step, product->sums + i * product->columns);
}

/* Channels first: a column goes to its plane, at the step of the phases. */
static void store_planes(const gather_product *product) {
  const pph_gather_job *job = product->job;
  const pph_problem *p = &job->spec->problem;
  const pph_axis_view *view = &job->plan->axes[PPH_WIDTH];
  size_t channels = job->plan->out_channels;
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
        job->tensors->residual ? job->tensors->residual + at : NULL;
    if (begin < end)
      job->plan->run_finish_planes(&(pph_finish_block){
          .rows = (uint32_t)(end - begin),
          .columns = count,
          .sums = product->sums +
                  (size_t)(begin - q) * product->columns + done,
          .sum_stride = product->columns,
          .target = job->tensors->output + at,
          .target_stride = (size_t)view->output_step,
          .plane = (size_t)plane,
          .epilogue = &epilogue});
    done += count;
  }
}

static void run_product(gather_product *product) {
  const pph_gather_job *job = product->job;
  if (job->spec->output_channels_first) {
    store_planes(product);
    return;
  }
  int64_t x, at = find_output(product, &x);
  if (!is_whole(product, x)) {
    store_rows(product, at, x);
    return;
  }
  size_t stride = (size_t)job->plan->axes[PPH_WIDTH].output_step *
                  (size_t)job->spec->problem.out_channels;
  pph_epilogue epilogue = product->epilogue;
  if (job->tensors->residual) {
    epilogue.residual = job->tensors->residual + at;
    epilogue.residual_stride = stride;
  }
  multiply(product, job->tensors->output + at, stride, &epilogue);
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
    const pph_axis_view *view = &product->job->plan->axes[i];
    out[i] = product->tile->q[i] * view->output_step + phase[i] - view->trim;
    if (out[i] < 0 || out[i] >= view->axis.output)
      return false;
  }
  return true;
}

/* All tiles of a block times one column block. Where weights do not stay in
   cache the tiles fetch the next ones meanwhile, each a part. */
static void run_columns(gather_product *product,
                        const pph_gather_block *block, size_t pair) {
  const pph_gather_plan *plan = product->job->plan;
  const pph_gather_part *part = product->part;
  int64_t length = plan->axes[PPH_WIDTH].length;
  gather_tile tile = {.n = block->n, .q = {block->first[PPH_DEPTH]}};
  size_t segments = block->segments;
  size_t tiles = (size_t)block->count[PPH_HEIGHT] * segments;
  size_t depth = part->depth;
  size_t width = pph_gather_round(plan, product->columns);
  const float *next = product->weights + depth * width;
  bool fetch = plan->fetch && next < plan->weights + plan->weight_floats;
  product->tile = &tile;
  product->ahead_step = (width + tiles - 1) / tiles;
  for (size_t i = 0; i < tiles; i++) {
    size_t h = i / segments, segment = block->segment + i % segments;
    int64_t w = pph_gather_tile_first(part, length, segment);
    tile.q[PPH_HEIGHT] = block->first[PPH_HEIGHT] + (int64_t)h;
    tile.q[PPH_WIDTH] = w;
    tile.rows =
        (uint32_t)(pph_gather_tile_first(part, length, segment + 1) - w);
    tile.inputs =
        block->inputs + h * block->line +
        (size_t)(w - block->first[PPH_WIDTH]) * block->reads->row_step;
    product->ahead = fetch ? next + i * product->ahead_step * depth : NULL;
    if (find_rows(product, pair, product->out))
      run_product(product);
  }
}

static void set_columns(gather_product *product, size_t group, size_t pair,
                        size_t block) {
  const pph_gather_part *part = product->part;
  const pph_gather_plan *plan = product->job->plan;
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

/* Block `index` of the part, without its chunk: [group][image][depth][height]
   [width]. */
static pph_gather_block find_block(const pph_gather_job *job,
                                   const pph_gather_part *part,
                                   size_t index) {
  const pph_axis_view *axes = job->plan->axes;
  pph_gather_block block = {0};
  block.segment = index % part->counts[PPH_WIDTH] * part->block_segments;
  size_t left = part->segments - block.segment;
  block.segments = left < part->block_segments ? left : part->block_segments;
  for (int i = PPH_PROBLEM_AXES - 1; i >= 0; i--) {
    int64_t most = part->windows[i].positions;
    block.first[i] = (int64_t)(index % part->counts[i]) * most;
    block.count[i] = pph_min_i64(most, axes[i].length - block.first[i]);
    index /= part->counts[i];
  }
  int64_t length = axes[PPH_WIDTH].length;
  block.first[PPH_WIDTH] = pph_gather_tile_first(part, length, block.segment);
  block.count[PPH_WIDTH] =
      pph_gather_tile_first(part, length, block.segment + block.segments) -
      block.first[PPH_WIDTH];
  size_t batch = (size_t)job->spec->problem.batch;
  block.n = (int64_t)(index % batch);
  block.group = index / batch;
  return block;
}

static void run_part(const pph_gather_job *job, const pph_gather_part *part,
                     size_t index, float *workspace) {
  size_t chunk = index % part->chunks;
  pph_gather_block block = find_block(job, part, index / part->chunks);
  pph_gather_find_inputs(job, part, &block, workspace);
  gather_product product = {.job = job,
                            .part = part,
                            .reads = block.reads,
                            .sums = workspace + job->plan->copy_floats,
                            .epilogue = {.low = job->spec->low,
                                         .high = job->spec->high}};
  size_t column_blocks = pph_gather_column_blocks(job->plan, part);
  size_t all = column_blocks * pph_gather_pairs(part);
  size_t end = all * (chunk + 1) / part->chunks;
  for (size_t i = all * chunk / part->chunks; i < end; i++) {
    size_t pair = i / column_blocks;
    set_columns(&product, block.group, pair, i % column_blocks);
    run_columns(&product, &block, pair);
  }
}

static void run_block(void *context, uint32_t worker, size_t block) {
  const pph_gather_job *job = context;
  const pph_gather_part *part = job->plan->parts;
  while (block >= part->first_block + part->blocks)
    part++;
  char *workspace = job->tensors->workspace;
  run_part(job, part, block - part->first_block,
           (float *)(void *)(workspace + worker * job->thread_bytes));
}

void pph_gather_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                    const pph_conv_tensors *tensors) {
  pph_gather_job job = {plan->state, spec, tensors, plan->thread_bytes};
  pph_algo_parallelize(tensors->pool, spec->threads, job.plan->blocks,
                       run_block, &job);
}
