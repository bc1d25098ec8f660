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

/* A filter along an axis: the length of its window, its first point among the
   window's, and its first tap. */
typedef struct filter_axis {
  pph_filter_id id;
  const pph_filter *filter;
  int32_t window, point, tap;
} filter_axis;

/* Windows of rows and columns; lines have one row. */
typedef struct filter_case {
  filter_axis row, column;
  size_t channels;
  const float *weights; /* [tap row][tap column][channel] */
  double window[MAX_POINTS][MAX_CHANNELS];
  float points[MAX_POINTS][MAX_CHANNELS];
  float largest;
} filter_case;

static filter_axis make_axis(pph_filter_id id) {
  const pph_filter *filter = &pph_filters[id];
  bool low = id == PPH_FILTER_2_2L || id == PPH_FILTER_4_2L;
  bool high = id == PPH_FILTER_2_2H || id == PPH_FILTER_4_2H;
  int32_t window = (int32_t)filter->points + (low || high);
  return (filter_axis){id, filter, window, high, high};
}

/* Whether both may be the filters of one window, see pph_filter_out_run. */
static bool go_together(const filter_axis *row, const filter_axis *column) {
  bool shared = (row->window > (int32_t)row->filter->points ||
                 column->window > (int32_t)column->filter->points) &&
                row->filter->outputs == column->filter->outputs;
  return row->id == PPH_FILTER_1_1 ||
         (row->id == column->id && row->id != PPH_FILTER_7_2 &&
          row->id <= PPH_FILTER_4_2H) ||
         (shared && row->window == column->window);
}

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
  int32_t rows_in = c->row.window, columns_in = c->column.window;
  pph_filter_extent extent = draw_extent(check, rows_in, columns_in);
  int64_t column_step = (int64_t)c->channels + kernel_draw(check, 0, 5);
  int64_t row_step = columns_in * column_step + kernel_draw(check, 0, 5);
  int64_t offset =
      -(extent.row_begin * row_step + extent.column_begin * column_step);
  const float *input =
      kernel_data(check, 0, span(&extent, row_step, column_step, c->channels));
  size_t chunks = (c->channels + CHUNK - 1) / CHUNK;
  size_t rows = (size_t)kernel_draw(check, 1, 3), stored = chunks * rows;
  size_t row = (size_t)kernel_draw(check, 0, (int64_t)rows - 1);
  size_t points = (size_t)(rows_in * columns_in), step = stored * CHUNK;
  float *panel = kernel_target(check, 1, points * step);
  for (int32_t i = 0; i < rows_in; i++)
    for (int32_t j = 0; j < columns_in; j++)
      for (size_t k = 0; k < c->channels; k++) {
        float x = 0;
        if (is_inside(&extent, i, j))
          x = input[offset + i * row_step + j * column_step + (int64_t)k];
        c->window[i * columns_in + j][k] = (double)x;
        c->largest = fmaxf(c->largest, fabsf(x));
      }
  pph_filter_in_kernel kernel =
      (pph_filter_in_kernel)pph_kernel_find("f32_filter_in",
                                            check->kernel->cpu)
          ->run;
  kernel(&(pph_filter_in_run){.points = (uint32_t)columns_in,
                              .square = rows_in > 1,
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
static double weigh(const filter_case *c, uint32_t row, uint32_t column,
                    size_t channel) {
  const pph_filter *rows = c->row.filter, *columns = c->column.filter;
  double sum = 0;
  for (uint32_t a = 0; a < rows->taps; a++)
    for (uint32_t b = 0; b < columns->taps; b++)
      sum += rows->weights[row][a] * columns->weights[column][b] *
             (double)c->weights[(a * columns->taps + b) * c->channels +
                                channel];
  return sum;
}

static double correlate(const filter_case *c, int32_t row, int32_t column,
                        size_t channel, double *size) {
  const pph_filter *rows = c->row.filter, *columns = c->column.filter;
  double sum = 0;
  *size = 0;
  for (int32_t a = 0; a < (int32_t)rows->taps; a++)
    for (int32_t b = 0; b < (int32_t)columns->taps; b++) {
      double w = (double)c->weights[(size_t)(a * (int32_t)columns->taps + b) *
                                        c->channels +
                                    channel];
      sum += w * c->window[(row + a + c->row.tap) * c->column.window + column +
                           b + c->column.tap][channel];
      *size += fabs(w) * (double)c->largest;
    }
  return sum;
}

/* Outputs within the extent nearly right, all else as it was. */
static void compare(kernel_check *check, const filter_case *c,
                    const pph_filter_out_run *run, size_t stored) {
  for (int32_t i = 0; i < (int32_t)c->row.filter->outputs; i++)
    for (int32_t j = 0; j < (int32_t)c->column.filter->outputs; j++)
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
          fail_msg("%s, filters %d and %d, %zu channels: output %d, %d is "
                   "%.9g, not %.9g",
                   check->kernel->name, (int)c->row.id, (int)c->column.id,
                   c->channels, i, j, (double)run->output[at], (double)right);
        check->expected[at] = run->output[at];
      }
  kernel_compare(check, run->output, stored, "outputs");
}

/* Products of the filters' points, which are a part of the window's. */
static void fill_sums(const filter_case *c, size_t step, float *sums) {
  uint32_t columns = c->column.filter->points;
  for (uint32_t i = 0; i < c->row.filter->points; i++)
    for (uint32_t j = 0; j < columns; j++)
      for (size_t k = 0; k < c->channels; k++) {
        size_t point = (i + (size_t)c->row.point) * (size_t)c->column.window +
                       j + (size_t)c->column.point;
        sums[(i * columns + j) * step + k] =
            (float)((double)c->points[point][k] * weigh(c, i, j, k));
      }
}

static void run_out(kernel_check *check, const filter_case *c) {
  const pph_filter *rows = c->row.filter, *columns = c->column.filter;
  pph_filter_extent extent = draw_extent(check, (int32_t)rows->outputs,
                                         (int32_t)columns->outputs);
  bool stream = c->channels % 16 == 0 && kernel_draw(check, 0, 1);
  int64_t unit = stream ? 16 : 1;
  int64_t column_step =
      (int64_t)c->channels + unit * kernel_draw(check, 0, 3);
  int64_t row_step = (int64_t)columns->outputs * column_step +
                     unit * kernel_draw(check, 0, 3);
  size_t stored = span(&extent, row_step, column_step, c->channels);
  size_t points = (size_t)rows->points * columns->points;
  size_t step = c->channels + (size_t)kernel_draw(check, 0, 5);
  float *sums = kernel_data(check, 3, (points - 1) * step + c->channels);
  fill_sums(c, step, sums);
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

static void check_filter(kernel_check *check, const filter_axis *row,
                         const filter_axis *column, size_t channels) {
  filter_case c = {.row = *row, .column = *column, .channels = channels};
  size_t taps = (size_t)row->filter->taps * column->filter->taps;
  c.weights = kernel_data(check, 2, taps * channels);
  run_in(check, &c);
  run_out(check, &c);
}

void kernel_check_filter(kernel_check *check) {
  for (int i = 0; i < PPH_FILTER_COUNT; i++)
    for (int j = 0; j < PPH_FILTER_COUNT; j++) {
      filter_axis row = make_axis((pph_filter_id)i);
      filter_axis column = make_axis((pph_filter_id)j);
      for (size_t channels = 1;
           go_together(&row, &column) && channels <= MAX_CHANNELS; channels++)
        for (int repeat = 0; repeat < 3; repeat++)
          check_filter(check, &row, &column, channels);
    }
}
