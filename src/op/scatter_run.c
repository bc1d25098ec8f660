/* Running scatter: a lot of output channels at a time, product by product. */
#include <string.h>

#include "base/checked.h"
#include "op/scatter_plan.h"

/* A single tile, which takes weights as fast as they come, fetches what it
   needs itself a few steps later. */
enum { NEAR_FLOATS = 512 };

typedef struct scatter_run {
  const pph_scatter_plan *plan;
  const pph_conv_spec *spec;
  const pph_conv_tensors *tensors;
  size_t thread_bytes;
} scatter_run;

/* A row of a product: input pixel, and where its columns go: floats from the
   sums' start, which may lie outside; columns [begin, end) are inside. */
typedef struct scatter_row {
  size_t input;
  int64_t target, begin, end;
} scatter_row;

/* A lot under way. */
typedef struct scatter_lot {
  const scatter_run *run;
  size_t first, slices; /* of the lot */
  size_t channels;      /* output channels of the lot */
  const float *input;   /* channels last */
  float *panels, *sums, *edges;
  const float *weights; /* of the product's slice */
  const pph_scatter_product *product;
  scatter_row rows[PPH_SCATTER_MAX_ROWS];
  size_t places[PPH_SCATTER_MAX_ROWS]; /* of them: floats from sums */
  size_t tiles, tile_rows; /* the product's rows; the last tile has less */
} scatter_lot;

/* Input */

/* Turns planes over: [image][pixel][channel]. */
static const float *turn_input(const scatter_run *run, float *target) {
  const pph_scatter_plan *plan = run->plan;
  size_t batch = (size_t)run->spec->problem.batch;
  size_t channels = (size_t)run->spec->problem.in_channels;
  size_t image = plan->pixels / batch;
  if (!plan->input_floats)
    return run->tensors->input;
  for (size_t n = 0; n < batch; n++)
    plan->run_transpose(&(pph_transpose_block){
        .rows = channels,
        .columns = image,
        .source = run->tensors->input + n * channels * image,
        .source_step = image,
        .target = target + n * channels * image,
        .target_step = channels});
  return target;
}

static void pack_panels(const scatter_lot *lot) {
  const pph_scatter_plan *plan = lot->run->plan;
  size_t channels = (size_t)lot->run->spec->problem.in_channels;
  size_t row_floats = plan->panel_floats / plan->rows;
  for (size_t first = 0; first < lot->product->rows; first += lot->tile_rows) {
    size_t rows = lot->product->rows - first;
    rows = rows < lot->tile_rows ? rows : lot->tile_rows;
    const float *sources[PPH_GEMM_MAX_ROWS];
    for (size_t i = 0; i < rows; i++)
      sources[i] = lot->input + lot->rows[first + i].input * channels;
    plan->run_pack(&(pph_pack_run){.rows = (uint32_t)rows,
                                   .count = channels,
                                   .step = 1,
                                   .sources = sources,
                                   .panel = lot->panels + first * row_floats});
  }
}

/* Products */

static bool is_whole(const scatter_lot *lot, const scatter_row *row) {
  return row->begin == 0 && row->end == lot->product->joined;
}

/* Rows of one line of pixels. */
static scatter_row *list_line(const scatter_lot *lot, int64_t input_line,
                              int64_t output_line, scatter_row *row) {
  const pph_axis *width = &lot->run->spec->problem.axes[PPH_WIDTH];
  const pph_scatter_span *span = &lot->product->spans[PPH_WIDTH];
  int64_t in = input_line * width->input + span->input, x = span->output;
  int64_t out = output_line * width->output;
  for (int64_t i = 0; i < span->count; i++) {
    *row++ = (scatter_row){
        .input = (size_t)in,
        .target = (out + x) * (int64_t)lot->channels,
        .begin = pph_max_i64(0, -x),
        .end = pph_min_i64(lot->product->joined, width->output - x)};
    in += span->input_step;
    x += span->output_step;
  }
  return row;
}

static void list_rows(scatter_lot *lot) {
  const pph_problem *p = &lot->run->spec->problem;
  const pph_axis *depth = &p->axes[PPH_DEPTH], *height = &p->axes[PPH_HEIGHT];
  const pph_scatter_span *planes = &lot->product->spans[PPH_DEPTH];
  const pph_scatter_span *lines = &lot->product->spans[PPH_HEIGHT];
  scatter_row *row = lot->rows;
  for (int64_t n = 0; n < p->batch; n++)
    for (int64_t d = 0; d < planes->count; d++) {
      int64_t in = n * depth->input + planes->input + d * planes->input_step;
      int64_t out =
          n * depth->output + planes->output + d * planes->output_step;
      in = in * height->input + lines->input;
      out = out * height->output + lines->output;
      for (int64_t h = 0; h < lines->count; h++)
        row = list_line(lot, in + h * lines->input_step,
                        out + h * lines->output_step, row);
    }
}

/* Where the kernel finds the rows' sums: those that lie in part outside have a
   place among the edges, as row i of their tile. */
static void find_places(scatter_lot *lot) {
  size_t columns = lot->run->plan->gemm->columns;
  size_t edges = (size_t)(lot->edges - lot->sums);
  for (size_t i = 0; i < lot->product->rows; i++)
    lot->places[i] = is_whole(lot, &lot->rows[i])
                         ? (size_t)lot->rows[i].target
                         : edges + i % lot->tile_rows * columns;
}

/* Copies rows that have edges: from the sums, or back. */
static void move_edges(const scatter_lot *lot, size_t first, size_t count,
                       bool back) {
  for (size_t i = first; i < first + count; i++) {
    const scatter_row *row = &lot->rows[i];
    if (is_whole(lot, row))
      continue;
    size_t begin = (size_t)row->begin * lot->channels;
    size_t bytes = (size_t)(row->end - row->begin) * lot->channels *
                   sizeof(float);
    float *edge = lot->sums + lot->places[i] + begin;
    float *sums = lot->sums + (row->target + (int64_t)begin);
    memcpy(back ? sums : edge, back ? edge : sums, bytes);
  }
}

/* A tile of slice `number` of the lot. */
static void multiply_tile(const scatter_lot *lot, size_t number,
                          size_t columns, size_t first) {
  const pph_scatter_plan *plan = lot->run->plan;
  size_t depth = (size_t)lot->run->spec->problem.in_channels;
  size_t count = lot->product->rows - first;
  count = count < lot->tile_rows ? count : lot->tile_rows;
  size_t width = pph_scatter_width(plan, columns);
  const float *end = plan->weights + plan->weight_floats;
  const float *next = lot->weights + depth * width;
  size_t step = pph_divide_up(width, lot->tiles);
  if (lot->tiles == 1 && depth * width > NEAR_FLOATS)
    next = lot->weights + NEAR_FLOATS;
  move_edges(lot, first, count, false);
  plan->run_gemm(&(pph_gemm_tile){
      .rows = (uint32_t)count,
      .columns = (uint32_t)columns,
      .depth = depth,
      .a = lot->panels + first * (plan->panel_floats / plan->rows),
      .b = lot->weights,
      .c = lot->sums + number * plan->channels,
      .places = lot->places + first,
      .accumulate = true,
      .ahead = plan->streams && next < end
                   ? next + first / lot->tile_rows * step * depth
                   : NULL,
      .ahead_step = step});
  move_edges(lot, first, count, true);
}

static void multiply(scatter_lot *lot) {
  const pph_scatter_plan *plan = lot->run->plan;
  const pph_problem *p = &lot->run->spec->problem;
  for (size_t i = 0; i < lot->slices; i++) {
    size_t columns = (size_t)lot->product->joined *
                     pph_scatter_channels(plan, p, lot->first + i);
    for (size_t row = 0; row < lot->product->rows; row += lot->tile_rows)
      multiply_tile(lot, i, columns, row);
    lot->weights +=
        (size_t)p->in_channels * pph_scatter_width(plan, columns);
  }
}

static void run_products(scatter_lot *lot) {
  const pph_scatter_plan *plan = lot->run->plan;
  for (size_t i = 0; i < plan->count; i++) {
    lot->product = &plan->products[i];
    lot->tiles = pph_divide_up(lot->product->rows, plan->gemm->rows);
    lot->tile_rows = pph_divide_up(lot->product->rows, lot->tiles);
    lot->tiles = pph_divide_up(lot->product->rows, lot->tile_rows);
    list_rows(lot);
    find_places(lot);
    if (i == 0 || !pph_scatter_same(lot->product, lot->product - 1))
      pack_panels(lot);
    multiply(lot);
  }
}

/* Sums to the output */

static void store_lot(const scatter_lot *lot) {
  const pph_conv_spec *spec = lot->run->spec;
  const pph_conv_tensors *tensors = lot->run->tensors;
  const pph_scatter_plan *plan = lot->run->plan;
  size_t images = (size_t)spec->problem.batch;
  size_t pixels = plan->outputs / images;
  size_t all = (size_t)spec->problem.out_channels;
  size_t first = lot->first * plan->channels;
  bool planes = spec->output_channels_first;
  for (size_t n = 0; n < images; n++) {
    size_t at = n * pixels * all + first * (planes ? pixels : 1);
    pph_epilogue epilogue = {
        .bias = spec->bias ? spec->bias + first : NULL,
        .slopes = spec->slopes ? spec->slopes + first : NULL,
        .residual = spec->residual ? tensors->residual + at : NULL,
        .residual_stride = all,
        .low = spec->low,
        .high = spec->high};
    pph_finish_block block = {.rows = (uint32_t)pixels,
                              .columns = lot->channels,
                              .sums = lot->sums + n * pixels * lot->channels,
                              .sum_stride = lot->channels,
                              .target = tensors->output + at,
                              .target_stride = planes ? 1 : all,
                              .plane = planes ? pixels : 1,
                              .epilogue = &epilogue};
    (planes ? plan->run_finish_planes : plan->run_finish)(&block);
  }
}

static void run_lot(void *context, uint32_t worker, size_t number) {
  const scatter_run *run = context;
  const pph_scatter_plan *plan = run->plan;
  char *workspace = (char *)run->tensors->workspace +
                    worker * run->thread_bytes;
  scatter_lot lot; /* not cleared: it is large */
  lot.run = run;
  lot.first = number * plan->lot_slices;
  lot.panels = (float *)(void *)workspace;
  float *input = lot.panels + plan->panel_floats;
  lot.sums = input + plan->input_floats;
  lot.edges = lot.sums + plan->sum_floats;
  lot.input = turn_input(run, input);
  size_t left = plan->slices - lot.first;
  lot.slices = left < plan->lot_slices ? left : plan->lot_slices;
  lot.channels = (lot.slices - 1) * plan->channels +
                 pph_scatter_channels(plan, &run->spec->problem,
                                      lot.first + lot.slices - 1);
  lot.weights = plan->weights + lot.first * plan->slice_floats;
  memset(lot.sums, 0, plan->outputs * lot.channels * sizeof(float));
  run_products(&lot);
  store_lot(&lot);
}

void pph_scatter_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                     const pph_conv_tensors *tensors) {
  scatter_run run = {plan->state, spec, tensors, plan->thread_bytes};
  pph_algo_parallelize(tensors->pool, spec->threads, run.plan->lots, run_lot,
                       &run);
}
