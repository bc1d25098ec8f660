/* Running scatter: a slice of output channels at a time. */
#include <string.h>

#include "base/checked.h"
#include "op/scatter_plan.h"

enum { MAX_COLUMNS = 64 };

typedef struct scatter_run {
  const pph_scatter_plan *plan;
  const pph_conv_spec *spec;
  const pph_conv_tensors *tensors;
  size_t thread_bytes;
} scatter_run;

/* A slice under way. */
typedef struct scatter_slice {
  const scatter_run *run;
  size_t first, channels; /* output channels */
  const float *panels;
  float *sums;          /* [output pixel][channel] */
  const float *weights; /* of the taps */
  const float *next;    /* of the taps after them */
  size_t next_step;     /* floats that a tile fetches per input channel */
} scatter_slice;

/* Packing the input */

static void pack_tile(const scatter_run *run, size_t tile, float *panel) {
  const pph_scatter_plan *plan = run->plan;
  const pph_problem *p = &run->spec->problem;
  size_t channels = (size_t)p->in_channels;
  size_t image = plan->pixels / (size_t)p->batch, first = tile * plan->rows;
  size_t rows = plan->pixels - first;
  rows = rows < plan->rows ? rows : plan->rows;
  bool planes = run->spec->input_channels_first;
  const float *sources[PPH_GEMM_MAX_ROWS];
  for (size_t i = 0; i < rows; i++) {
    size_t pixel = first + i, n = pixel / image;
    sources[i] =
        run->tensors->input +
        (planes ? n * channels * image + pixel % image : pixel * channels);
  }
  plan->run_pack(&(pph_pack_run){.rows = (uint32_t)rows,
                                 .count = channels,
                                 .step = planes ? image : 1,
                                 .sources = sources,
                                 .panel = panel});
}

/* Products */

/* Where the products of one pixel go: floats from the sums' start, which may
   lie outside; of the joined columns [begin, end) are inside. */
typedef struct scatter_row {
  int64_t target, begin, end;
} scatter_row;

/* taps: kernel index along depth and height; the width's joined columns. */
typedef struct scatter_taps {
  int64_t depth, height;
  pph_scatter_taps width;
} scatter_taps;

static bool is_inside(int64_t at, const pph_axis *axis) {
  return at >= 0 && at < axis->output;
}

/* Output position of an input position and a kernel index. */
static int64_t find_output(const pph_axis *axis, int64_t input, int64_t k) {
  return input * axis->stride + k * axis->dilation - axis->pad_begin;
}

static scatter_row find_row(const scatter_slice *slice, size_t pixel,
                            const scatter_taps *taps) {
  const pph_axis *axes = slice->run->spec->problem.axes;
  const pph_axis *width = &axes[PPH_WIDTH];
  int64_t rest = (int64_t)pixel, x, y, z;
  x = find_output(width, rest % width->input, taps->width.first);
  rest /= width->input;
  y = find_output(&axes[PPH_HEIGHT], rest % axes[PPH_HEIGHT].input,
                  taps->height);
  rest /= axes[PPH_HEIGHT].input;
  z = find_output(&axes[PPH_DEPTH], rest % axes[PPH_DEPTH].input, taps->depth);
  rest /= axes[PPH_DEPTH].input;
  if (!is_inside(y, &axes[PPH_HEIGHT]) || !is_inside(z, &axes[PPH_DEPTH]))
    return (scatter_row){0};
  int64_t line =
      (rest * axes[PPH_DEPTH].output + z) * axes[PPH_HEIGHT].output + y;
  return (scatter_row){
      .target = (line * width->output + x) * (int64_t)slice->channels,
      .begin = pph_min_i64(pph_max_i64(0, -x), taps->width.count),
      .end = pph_max_i64(0, pph_min_i64(width->output - x, taps->width.count))};
}

/* Between the sums and a tile; elements outside stay as they are. */
static void move_rows(const scatter_slice *slice, const scatter_row *rows,
                      size_t count, float *tile, bool back) {
  size_t channels = slice->channels;
  for (size_t i = 0; i < count; i++) {
    if (rows[i].begin >= rows[i].end)
      continue;
    size_t first = (size_t)rows[i].begin * channels;
    size_t bytes =
        (size_t)(rows[i].end - rows[i].begin) * channels * sizeof(float);
    float *inside = tile + i * MAX_COLUMNS + first;
    float *sums = slice->sums + (rows[i].target + (int64_t)first);
    memcpy(back ? sums : inside, back ? inside : sums, bytes);
  }
}

/* Whether all rows are whole and lie at one distance from the next. */
static bool is_regular(const scatter_row *rows, size_t count, int64_t joined) {
  for (size_t i = 0; i < count; i++)
    if (rows[i].begin > 0 || rows[i].end < joined ||
        (i > 1 && rows[i].target - rows[i - 1].target !=
                      rows[1].target - rows[0].target))
      return false;
  return true;
}

static void multiply_tile(const scatter_slice *slice, size_t number,
                          const scatter_taps *taps) {
  const pph_scatter_plan *plan = slice->run->plan;
  scatter_row rows[PPH_GEMM_MAX_ROWS];
  size_t depth = (size_t)slice->run->spec->problem.in_channels;
  size_t first = number * plan->rows, count = plan->pixels - first;
  count = count < plan->rows ? count : plan->rows;
  bool any = false;
  for (size_t i = 0; i < count; i++) {
    rows[i] = find_row(slice, first + i, taps);
    any = any || rows[i].begin < rows[i].end;
  }
  if (!any)
    return;
  pph_gemm_tile tile = {
      .rows = (uint32_t)count,
      .columns = (uint32_t)((size_t)taps->width.count * slice->channels),
      .depth = depth,
      .a = slice->panels + number * plan->panel_floats,
      .b = slice->weights,
      .accumulate = true,
      .ahead = plan->streams ? slice->next + number * slice->next_step * depth
                             : NULL,
      .ahead_step = slice->next_step};
  if (is_regular(rows, count, taps->width.count)) {
    tile.c = slice->sums + rows[0].target;
    tile.c_stride = count > 1 ? (size_t)(rows[1].target - rows[0].target) : 0;
    plan->run_gemm(&tile);
    return;
  }
  float sums[PPH_GEMM_MAX_ROWS * MAX_COLUMNS] = {0};
  tile.c = sums;
  tile.c_stride = MAX_COLUMNS;
  move_rows(slice, rows, count, sums, false);
  plan->run_gemm(&tile);
  move_rows(slice, rows, count, sums, true);
}

static void multiply_line(scatter_slice *slice, scatter_taps *taps) {
  const pph_scatter_plan *plan = slice->run->plan;
  const pph_problem *p = &slice->run->spec->problem;
  const pph_axis *width = &p->axes[PPH_WIDTH];
  for (int64_t end = width->kernel; end > 0; end = taps->width.first) {
    taps->width = pph_scatter_next(plan, width, end);
    size_t columns =
        pph_scatter_width(plan, (size_t)taps->width.count * slice->channels);
    slice->next = slice->weights + (size_t)p->in_channels * columns;
    slice->next_step = (columns + plan->tiles - 1) / plan->tiles;
    for (size_t i = 0; i < plan->tiles; i++)
      multiply_tile(slice, i, taps);
    slice->weights = slice->next;
  }
}

/* Sums to the output */

static void store_slice(const scatter_slice *slice) {
  const pph_conv_spec *spec = slice->run->spec;
  const pph_conv_tensors *tensors = slice->run->tensors;
  const pph_scatter_plan *plan = slice->run->plan;
  size_t images = (size_t)spec->problem.batch;
  size_t pixels = plan->outputs / images;
  size_t all = (size_t)spec->problem.out_channels;
  bool planes = spec->output_channels_first;
  for (size_t n = 0; n < images; n++) {
    size_t at = n * pixels * all + slice->first * (planes ? pixels : 1);
    pph_epilogue epilogue = {
        .bias = spec->bias ? spec->bias + slice->first : NULL,
        .slopes = spec->slopes ? spec->slopes + slice->first : NULL,
        .residual = spec->residual ? tensors->residual + at : NULL,
        .residual_stride = all,
        .low = spec->low,
        .high = spec->high};
    pph_finish_block block = {.rows = (uint32_t)pixels,
                              .columns = slice->channels,
                              .sums =
                                  slice->sums + n * pixels * slice->channels,
                              .sum_stride = slice->channels,
                              .target = tensors->output + at,
                              .target_stride = planes ? 1 : all,
                              .plane = planes ? pixels : 1,
                              .epilogue = &epilogue};
    (planes ? plan->run_finish_planes : plan->run_finish)(&block);
  }
}

static void run_slice(const scatter_run *run, size_t number,
                      const float *panels, float *sums) {
  const pph_scatter_plan *plan = run->plan;
  const pph_problem *p = &run->spec->problem;
  size_t first = number * plan->channels;
  size_t left = (size_t)p->out_channels - first;
  scatter_slice slice = {
      .run = run,
      .first = first,
      .channels = left < plan->channels ? left : plan->channels,
      .panels = panels,
      .sums = sums,
      .weights = plan->weights + number * plan->slice_floats};
  memset(sums, 0, plan->outputs * slice.channels * sizeof(float));
  scatter_taps taps;
  for (taps.depth = p->axes[PPH_DEPTH].kernel; taps.depth-- > 0;)
    for (taps.height = p->axes[PPH_HEIGHT].kernel; taps.height-- > 0;)
      multiply_line(&slice, &taps);
  store_slice(&slice);
}

static void run_lot(void *context, uint32_t worker, size_t lot) {
  const scatter_run *run = context;
  const pph_scatter_plan *plan = run->plan;
  char *workspace = run->tensors->workspace;
  float *panels = (float *)(void *)(workspace + worker * run->thread_bytes);
  for (size_t i = 0; i < plan->tiles; i++)
    pack_tile(run, i, panels + i * plan->panel_floats);
  float *sums = panels + plan->tiles * plan->panel_floats;
  size_t end = plan->slices * (lot + 1) / plan->lots;
  for (size_t i = plan->slices * lot / plan->lots; i < end; i++)
    run_slice(run, i, panels, sums);
}

void pph_scatter_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                     const pph_conv_tensors *tensors) {
  scatter_run run = {plan->state, spec, tensors, plan->thread_bytes};
  pph_algo_parallelize(tensors->pool, spec->threads, run.plan->lots, run_lot,
                       &run);
}
