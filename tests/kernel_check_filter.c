/* Both filter kernels together: window to points, products with the points of
   the weights, points to outputs; that must be the correlation. */
#include <math.h>
#include <stdio.h>

#include "kernel/filter.h"
#include "kernel/gemm.h"
#include "kernel_check.h"

enum {
  MAX_SIDE = PPH_FILTER_MAX_POINTS,
  MAX_POINTS = MAX_SIDE * MAX_SIDE,
  MAX_CHANNELS = 40,
  CHUNK = PPH_GEMM_CHUNK
};

/* A filter along one axis, and its place in the window. */
typedef struct filter_axis {
  pph_filter_id id;
  int32_t outputs, taps, points;
  int32_t shift, window; /* its first point in the window, whose points */
} filter_axis;

/* A window of a filter; lines have F(1, 1) along rows. */
typedef struct filter_case {
  filter_axis row, column;
  size_t channels;
  const float *weights; /* [tap row][tap column][channel] */
  double window[MAX_POINTS][MAX_CHANNELS];
  float points[MAX_POINTS][MAX_CHANNELS];
  float largest;
} filter_case;

static pph_filter_extent draw_extent(kernel_check *check, int32_t rows,
                                     int32_t columns) {
  pph_filter_extent e = {0, rows, 0, columns};
  if (kernel_draw(check, 0, 1))
    return e;
  e.row_begin = (int32_t)kernel_draw(check, 0, rows - 1);
  e.row_end = (int32_t)kernel_draw(check, e.row_begin + 1, rows);
  e.column_begin = (int32_t)kernel_draw(check, 0, columns - 1);
  e.column_end = (int32_t)kernel_draw(check, e.column_begin + 1, columns);
  return e;
}

static bool is_inside(const pph_filter_extent *e, int32_t row, int32_t column) {
  return row >= e->row_begin && row < e->row_end && column >= e->column_begin &&
         column < e->column_end;
}

/* Floats from the extent's first element to the end of its last. */
static size_t span(const pph_filter_extent *e, int64_t row_step,
                   int64_t column_step, size_t channels) {
  return (size_t)((e->row_end - e->row_begin - 1) * row_step +
                  (e->column_end - e->column_begin - 1) * column_step) +
         channels;
}

static void run_in(kernel_check *check, filter_case *c) {
  int32_t height = c->row.window, width = c->column.window;
  pph_filter_extent extent = draw_extent(check, height, width);
  int64_t column_step = (int64_t)c->channels + kernel_draw(check, 0, 5);
  int64_t row_step = width * column_step + kernel_draw(check, 0, 5);
  int64_t offset =
      -(extent.row_begin * row_step + extent.column_begin * column_step);
  const float *input =
      kernel_data(check, 0, span(&extent, row_step, column_step, c->channels));
  size_t chunks = (c->channels + CHUNK - 1) / CHUNK;
  size_t rows = (size_t)kernel_draw(check, 1, 3), stored = chunks * rows;
  size_t row = (size_t)kernel_draw(check, 0, (int64_t)rows - 1);
  size_t points = (size_t)(height * width), step = stored * CHUNK;
  float *panel = kernel_target(check, 1, points * step);
  for (int32_t i = 0; i < height; i++)
    for (int32_t j = 0; j < width; j++)
      for (size_t k = 0; k < c->channels; k++) {
        float x = 0;
        if (is_inside(&extent, i, j))
          x = input[offset + i * row_step + j * column_step + (int64_t)k];
        c->window[i * width + j][k] = (double)x;
        c->largest = fmaxf(c->largest, fabsf(x));
      }
  pph_filter_in_kernel kernel =
      (pph_filter_in_kernel)pph_kernel_find("f32_filter_in",
                                            check->kernel->cpu)
          ->run;
  kernel(&(pph_filter_in_run){.points = (uint32_t)width,
                              .square = height > 1,
                              .channels = c->channels,
                              .input = input,
                              .offset = offset,
                              .row_step = row_step,
                              .column_step = column_step,
                              .extent = extent,
                              .panel = panel + row * CHUNK,
                              .chunk_step = rows * CHUNK,
                              .point_step = step});
  for (size_t at = 0; at < points * step; at++) {
    size_t k = at % step / (rows * CHUNK) * CHUNK + at % CHUNK;
    if (at / CHUNK % rows != row)
      assert_true(panel[at] == check->expected[at]); /* another tile row's */
    else if (k < c->channels)
      c->points[at / step][k] = panel[at];
  }
}

/* The points of one channel's weights. */
static double weigh(const filter_case *c, int32_t row, int32_t column,
                    size_t channel) {
  double sum = 0;
  for (int32_t a = 0; a < c->row.taps; a++)
    for (int32_t b = 0; b < c->column.taps; b++)
      sum += pph_filters[c->row.id].weights[row][a] *
             pph_filters[c->column.id].weights[column][b] *
             (double)c->weights[(size_t)(a * c->column.taps + b) *
                                    c->channels +
                                channel];
  return sum;
}

static double correlate(const filter_case *c, int32_t row, int32_t column,
                        size_t channel, double *size) {
  double sum = 0;
  *size = 0;
  for (int32_t a = 0; a < c->row.taps; a++)
    for (int32_t b = 0; b < c->column.taps; b++) {
      double w = (double)c->weights[(size_t)(a * c->column.taps + b) *
                                        c->channels +
                                    channel];
      int32_t y = c->row.shift + row + a, x = c->column.shift + column + b;
      sum += w * c->window[y * c->column.window + x][channel];
      *size += fabs(w) * (double)c->largest;
    }
  return sum;
}

/* Outputs within the extent nearly right, all else as it was. */
static void compare(kernel_check *check, const filter_case *c,
                    const pph_filter_out_run *run, size_t stored) {
  for (int32_t i = 0; i < c->row.outputs; i++)
    for (int32_t j = 0; j < c->column.outputs; j++)
      for (size_t k = 0; k < c->channels; k++) {
        if (!is_inside(&run->extent, i, j))
          continue;
        size_t at = (size_t)(run->offset + i * run->row_step +
                             j * run->column_step + (int64_t)k);
        double size;
        float right = (float)correlate(c, i, j, k, &size);
        right = kernel_finish(run->epilogue, right, k, at);
        double error = fabs((double)run->output[at] - (double)right);
        if (!(error <= 4e-5 * (size + 1)))
          fail_msg("%s, filters %d, %d, %zu channels: output %d, %d is "
                   "%.9g, not %.9g",
                   check->kernel->name, (int)c->row.id, (int)c->column.id,
                   c->channels, i, j, (double)run->output[at], (double)right);
        check->expected[at] = run->output[at];
      }
  kernel_compare(check, run->output, stored, "outputs");
}

static void run_out(kernel_check *check, const filter_case *c) {
  int32_t width = c->column.points;
  pph_filter_extent extent =
      draw_extent(check, c->row.outputs, c->column.outputs);
  bool stream = c->channels % 16 == 0 && kernel_draw(check, 0, 1);
  int64_t unit = stream ? 16 : 1;
  int64_t column_step =
      (int64_t)c->channels + unit * kernel_draw(check, 0, 3);
  int64_t row_step = c->column.outputs * column_step +
                     unit * kernel_draw(check, 0, 3);
  size_t stored = span(&extent, row_step, column_step, c->channels);
  size_t points = (size_t)(c->row.points * width);
  size_t step = c->channels + (size_t)kernel_draw(check, 0, 5);
  float *sums = kernel_data(check, 3, (points - 1) * step + c->channels);
  for (int32_t i = 0; i < (int32_t)points; i++) {
    int32_t at = (c->row.shift + i / width) * c->column.window +
                 c->column.shift + i % width;
    for (size_t k = 0; k < c->channels; k++)
      sums[(size_t)i * step + k] = (float)((double)c->points[at][k] *
                                           weigh(c, i / width, i % width, k));
  }
  float *output = kernel_target(check, 4, stored);
  pph_epilogue epilogue = kernel_epilogue(check, c->channels, stored);
  pph_filter_out_run run = {
      .filter = c->column.id,
      .row_filter = c->row.id,
      .stream = stream,
      .columns = c->channels,
      .sums = sums,
      .point_step = step,
      .output = output,
      .offset =
          -(extent.row_begin * row_step + extent.column_begin * column_step),
      .row_step = row_step,
      .column_step = column_step,
      .extent = extent,
      .epilogue = &epilogue};
  ((pph_filter_out_kernel)pph_kernel_find("f32_filter_out",
                                          check->kernel->cpu)
       ->run)(&run);
  compare(check, c, &run, stored);
}

static bool is_low(pph_filter_id id) {
  return id == PPH_FILTER_2_2L || id == PPH_FILTER_4_2L;
}
static bool is_high(pph_filter_id id) {
  return id == PPH_FILTER_2_2H || id == PPH_FILTER_4_2H;
}

static filter_axis find_axis(pph_filter_id id) {
  const pph_filter *filter = &pph_filters[id];
  return (filter_axis){.id = id,
                       .outputs = (int32_t)filter->outputs,
                       .taps = (int32_t)filter->taps,
                       .points = (int32_t)filter->points,
                       .shift = is_high(id),
                       .window = (int32_t)filter->points +
                                 (is_low(id) || is_high(id))};
}

/* Whether there is a kernel for lines, or for squares, of these. */
static bool is_pair(pph_filter_id row, pph_filter_id column) {
  if (row == PPH_FILTER_1_1)
    return true;
  filter_axis a = find_axis(row), b = find_axis(column);
  bool shared = is_low(row) || is_high(row) || is_low(column) ||
                is_high(column);
  return row == column ? row != PPH_FILTER_7_2
                       : shared && a.outputs == b.outputs &&
                             a.window == b.window;
}

static void check_pair(kernel_check *check, pph_filter_id row,
                       pph_filter_id column, size_t channels) {
  filter_case c = {.row = find_axis(row),
                   .column = find_axis(column),
                   .channels = channels};
  c.weights = kernel_data(check, 2,
                          (size_t)(c.row.taps * c.column.taps) * channels);
  run_in(check, &c);
  run_out(check, &c);
}

void kernel_check_filter(kernel_check *check) {
  for (int row = 0; row < PPH_FILTER_COUNT; row++)
    for (int column = 0; column < PPH_FILTER_COUNT; column++)
      for (size_t channels = 1; channels <= MAX_CHANNELS; channels++)
        for (int i = 0; i < 3; i++)
          if (is_pair((pph_filter_id)row, (pph_filter_id)column))
            check_pair(check, (pph_filter_id)row, (pph_filter_id)column,
                       channels);
}
