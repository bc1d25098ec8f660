/* Running gather: per block its inputs, then products. */
#include "base/checked.h"
#include "op/gather.h"

/* Neighbouring pixels of one row. */
typedef struct gather_tile {
  int64_t q; /* of the first pixel */
  uint32_t rows;
  const pph_gather_reads *reads;
  const float *inputs;
} gather_tile;

/* Products */

/* What all tiles of a block multiply with: a column block of a (depth, height)
   phase pair. */
typedef struct gather_panel {
  int64_t phase[PPH_PROBLEM_AXES]; /* width: of the first column */
  int64_t line; /* of the row of tiles under way: its outputs' first pixel in an
                   image; negative where there are none */
  size_t column, columns;          /* within (phase x, channel) */
  int64_t channel;                 /* of the first column, in the output */
  int64_t spread; /* phases x from the first column to the last */
  const float *weights, *bias, *slopes;
} gather_panel;

/* One GEMM call's place: a tile and a panel. */
typedef struct gather_product {
  const pph_gather_job *job;
  const pph_gather_part *part;
  int64_t n, depth; /* the image, and the outputs' depth */
  int64_t plane;    /* pixels of an image of outputs */
  gather_tile tile;
  const gather_panel *panel;
  const float *ahead; /* what the tile is to fetch; NULL: nothing */
  size_t ahead_step;  /* floats of it per step of the depth */
  float *sums; /* room for one tile */
} gather_product;

/* Made anew for each tile: a copy of what was just written field by field would
   wait until all stores before it, the last tile's sums, are done. */
static pph_epilogue make_epilogue(const gather_product *product) {
  const pph_conv_spec *spec = product->job->spec;
  return (pph_epilogue){.bias = product->panel->bias,
                        .slopes = product->panel->slopes,
                        .low = spec->low,
                        .high = spec->high};
}

/* The output element (row 0 of the tile, first column), which may lie left of
   the output's row: an index, not yet a pointer. */
static int64_t find_output(const gather_product *product, int64_t *x) {
  const pph_gather_job *job = product->job;
  const pph_axis_view *view = &job->plan->axes[PPH_WIDTH];
  const gather_panel *panel = product->panel;
  *x = product->tile.q * view->output_step + panel->phase[PPH_WIDTH] -
       view->trim;
  return (product->n * product->plane + panel->line + *x) *
             job->spec->problem.out_channels +
         panel->channel;
}

/* Whether all rows and columns of the tile exist in the output. */
static bool is_whole(const gather_product *product, int64_t x) {
  const pph_axis_view *view = &product->job->plan->axes[PPH_WIDTH];
  int64_t last = x + (product->tile.rows - 1) * view->output_step +
                 product->panel->spread;
  return x >= 0 && last < view->axis.output;
}

static void multiply(const gather_product *product, float *target,
                     size_t stride, const pph_epilogue *epilogue) {
  const pph_gather_plan *plan = product->job->plan;
  plan->run_gemm(&(pph_gemm_tile){
      .rows = product->tile.rows,
      .columns = (uint32_t)product->panel->columns,
      .depth = product->part->depth,
      .a = product->tile.inputs,
      .starts = plan->starts + product->tile.reads->starts,
      .row_step = product->tile.reads->row_step,
      .run = product->tile.reads->run,
      .b = product->panel->weights,
      .c = target,
      .c_stride = stride,
      .epilogue = epilogue,
      .far = plan->far,
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
  int64_t begin = 0, end = (int64_t)product->panel->columns;
  int64_t inside = (int64_t)product->panel->column % channels;
  if (x < 0) /* begins with the first column of pixel 0 */
    begin = -x * channels - inside;
  if ((width->output - x) * channels - inside < end)
    end = (width->output - x) * channels - inside;
  if (begin >= end)
    return;
  /* With one group the columns of neighbouring phases lie together; with
     several there is one phase. */
  int64_t first = at + (pixels == channels ? begin : 0);
  pph_epilogue epilogue = make_epilogue(product);
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
  size_t columns = product->panel->columns;
  multiply(product, product->sums, columns, NULL);
  for (uint32_t i = 0; i < product->tile.rows; i++)
    store_row(product,
              at + i * step * product->job->spec->problem.out_channels,
              x + i * step, product->sums + i * columns);
}

/* Channels first: a column goes to its plane, at the step of the phases. */
static void store_planes(const gather_product *product) {
  const pph_gather_job *job = product->job;
  const gather_panel *panel = product->panel;
  const pph_problem *p = &job->spec->problem;
  const pph_axis_view *view = &job->plan->axes[PPH_WIDTH];
  size_t channels = job->plan->out_channels;
  multiply(product, product->sums, panel->columns, NULL);
  for (size_t done = 0; done < panel->columns;) {
    size_t column = panel->column + done, channel = column % channels;
    size_t count = channels - channel;
    count = count < panel->columns - done ? count : panel->columns - done;
    int64_t phase = product->part->runs[PPH_WIDTH].first +
                    (int64_t)(column / channels);
    int64_t begin, end, q = product->tile.q;
    pph_axis_view_range(view, phase, &begin, &end);
    begin = begin > q ? begin : q;
    end = end < q + product->tile.rows ? end : q + product->tile.rows;
    int64_t c = panel->channel + (int64_t)channel -
                (int64_t)(panel->column % channels);
    int64_t at = (product->n * p->out_channels + c) * product->plane +
                 panel->line + begin * view->output_step + phase - view->trim;
    pph_epilogue epilogue = make_epilogue(product);
    epilogue.bias = epilogue.bias ? epilogue.bias + done : NULL;
    epilogue.slopes = epilogue.slopes ? epilogue.slopes + done : NULL;
    epilogue.residual =
        job->tensors->residual ? job->tensors->residual + at : NULL;
    if (begin < end)
      job->plan->run_finish_planes(&(pph_finish_block){
          .rows = (uint32_t)(end - begin),
          .columns = count,
          .sums = product->sums +
                  (size_t)(begin - q) * panel->columns + done,
          .sum_stride = panel->columns,
          .target = job->tensors->output + at,
          .target_stride = (size_t)view->output_step,
          .plane = (size_t)product->plane,
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
  pph_epilogue epilogue = make_epilogue(product);
  if (job->tensors->residual) {
    epilogue.residual = job->tensors->residual + at;
    epilogue.residual_stride = stride;
  }
  multiply(product, job->tensors->output + at, stride, &epilogue);
}

/* Blocks */

/* Where the panel's outputs of a row of pixels lie, if they exist. */
static void set_line(const gather_product *product, int64_t height,
                     gather_panel *panel) {
  const pph_axis_view *axes = product->job->plan->axes;
  const int64_t q[2] = {product->depth, height};
  panel->line = 0;
  for (int i = 0; i < 2; i++) {
    int64_t length = axes[i].axis.output;
    int64_t out = q[i] * axes[i].output_step + panel->phase[i] - axes[i].trim;
    panel->line = panel->line * length + out;
    if (out < 0 || out >= length) {
      panel->line = -1;
      return;
    }
  }
  panel->line *= axes[PPH_WIDTH].axis.output;
}

static void set_tile(gather_product *product, const pph_gather_block *block,
                     int64_t height, size_t segment) {
  gather_tile *tile = &product->tile;
  const pph_gather_part *part = product->part;
  bool inner = height >= block->inner_rows[0] &&
               height < block->inner_rows[1] &&
               segment >= block->inner_segments[0] &&
               segment < block->inner_segments[1];
  const pph_gather_source *from = inner ? &block->direct : &block->copied;
  tile->q = pph_gather_tile_first(part, segment);
  tile->rows = (uint32_t)(pph_gather_tile_first(part, segment + 1) - tile->q);
  tile->reads = from->reads;
  tile->inputs = from->base +
                 (from->at + (height - block->first[PPH_HEIGHT]) * from->line +
                  (tile->q - block->first[PPH_WIDTH]) *
                      (int64_t)from->reads->row_step);
}

/* What is fetched beside products: `floats` from `first` on, shared out over
   the steps of `shares` tiles but those in which a tile fetches where its sums
   go. */
typedef struct gather_fetch {
  const float *first; /* NULL: nothing */
  size_t each, step;
} gather_fetch;

static gather_fetch share_fetch(const gather_product *product,
                                const float *first, size_t floats,
                                size_t shares) {
  size_t depth = product->part->depth;
  size_t targets = product->job->plan->far ? product->part->rows : 0;
  if (!first || depth <= targets)
    return (gather_fetch){NULL, 0, 0};
  size_t steps = depth - targets;
  size_t step = pph_divide_up(floats, steps * shares);
  return (gather_fetch){first, steps * step, step};
}

/* The weights behind a panel's. */
static gather_fetch fetch_weights(const gather_product *product,
                                  const pph_gather_block *block,
                                  const gather_panel *panel) {
  const pph_gather_plan *plan = product->job->plan;
  size_t tiles = (size_t)block->count[PPH_HEIGHT] * block->segments;
  size_t floats =
      product->part->depth * pph_gather_round(plan, panel->columns);
  const float *next = panel->weights + floats;
  if (next >= plan->weights + plan->weight_floats)
    next = NULL;
  return share_fetch(product, next, floats, tiles);
}

static void run_panels(gather_product *product, const gather_fetch *fetch,
                       size_t index, const gather_panel *panels,
                       size_t count) {
  product->ahead_step = fetch->step;
  for (size_t j = 0; j < count; j++) {
    product->panel = &panels[j];
    product->ahead =
        fetch->first ? fetch->first + (index + j) * fetch->each : NULL;
    if (product->panel->line >= 0)
      run_product(product);
  }
}

/* Each tile of a block times the panels. Where weights do not stay in cache,
   that is one, and tiles fetch the next meanwhile; where they do, outputs and
   inputs come one after another, and the next inputs are fetched, but not
   copies. */
static void run_tiles(gather_product *product, const pph_gather_block *block,
                      gather_panel *panels, size_t count) {
  const pph_gather_plan *plan = product->job->plan;
  size_t tile = 0, end = block->segment + block->segments;
  size_t ahead = product->part->rows * product->part->direct.row_step;
  gather_fetch fetch = {NULL, 0, 0};
  if (plan->fetch)
    fetch = fetch_weights(product, block, panels);
  for (int64_t h = block->first[PPH_HEIGHT];
       h < block->first[PPH_HEIGHT] + block->count[PPH_HEIGHT]; h++) {
    for (size_t j = 0; j < count; j++)
      set_line(product, h, &panels[j]);
    for (size_t i = block->segment; i < end; i++) {
      set_tile(product, block, h, i);
      if (plan->far && !plan->fetch)
        fetch = share_fetch(product,
                            product->tile.reads == &product->part->direct &&
                                    i + 1 < end
                                ? product->tile.inputs + ahead
                                : NULL,
                            ahead, count);
      run_panels(product, &fetch, tile, panels, count);
      tile += plan->fetch;
    }
  }
}

static void set_panel(const gather_product *product, size_t group,
                      size_t index, gather_panel *panel) {
  const pph_gather_part *part = product->part;
  const pph_gather_plan *plan = product->job->plan;
  const pph_phase_run *runs = part->runs;
  size_t blocks = pph_gather_column_blocks(plan, part);
  size_t pair = index / blocks, channels = plan->out_channels;
  size_t heights = (size_t)runs[PPH_HEIGHT].count;
  size_t column = index % blocks * plan->column_step;
  size_t left = part->columns - column, inside = column % channels;
  size_t columns = left < plan->column_step ? left : plan->column_step;
  size_t at = group * plan->repeats * channels + column;
  *panel = (gather_panel){
      .phase = {runs[0].first + (int64_t)(pair / heights),
                runs[1].first + (int64_t)(pair % heights),
                runs[2].first + (int64_t)(column / channels)},
      .column = column,
      .columns = columns,
      .channel = (int64_t)(group * channels + inside),
      .spread = (int64_t)((inside + columns - 1) / channels),
      .weights = plan->weights + part->packed +
                 (group * pph_gather_pairs(part) + pair) * part->packed_each +
                 column * part->depth,
      .bias = plan->bias ? plan->bias + at : NULL,
      .slopes = plan->slopes ? plan->slopes + at : NULL};
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
  block.first[PPH_WIDTH] = pph_gather_tile_first(part, block.segment);
  block.count[PPH_WIDTH] =
      pph_gather_tile_first(part, block.segment + block.segments) -
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
  const pph_axis *axes = job->spec->problem.axes;
  gather_product product = {
      .job = job,
      .part = part,
      .n = block.n,
      .depth = block.first[PPH_DEPTH],
      .plane = axes[0].output * axes[1].output * axes[2].output,
      .sums = workspace + job->plan->copy_floats};
  size_t all =
      pph_gather_column_blocks(job->plan, part) * pph_gather_pairs(part);
  size_t end = all * (chunk + 1) / part->chunks;
  for (size_t i = all * chunk / part->chunks; i < end;) {
    gather_panel panels[PPH_GATHER_PANELS];
    size_t count = end - i < part->panels ? end - i : part->panels;
    for (size_t j = 0; j < count; j++)
      set_panel(&product, block.group, i + j, &panels[j]);
    run_tiles(&product, &block, panels, count);
    i += count;
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
