/* Convolution and transposed convolution by their definitions, in double. */
#include <string.h>

#include "graph/eval_rules.h"

/* Positions computed at once, and rows of products added at once: what fits
   the caches beside the sums. */
enum { TILE = 128, CHUNK = 64 };

typedef struct conv_plan {
  pph_window window;
  int64_t inputs, outputs, taps;       /* positions of one channel */
  int64_t group_inputs, group_outputs; /* channels per group */
  const float *x, *weight, *bias;      /* bias may be NULL */
  float *y;
  double *sums, *rows;
} conv_plan;

static int64_t volume(const int64_t lengths[3]) {
  return lengths[0] * lengths[1] * lengths[2];
}

static pph_status make_plan(const pph_eval *eval, conv_plan *plan) {
  *plan = (conv_plan){0};
  for (uint32_t i = 0; i < 4; i++)
    if (pph_eval_has(eval, i) && eval->inputs[i].type != PPH_F32)
      return pph_eval_fail_type(eval, eval->inputs[i].type);
  if (pph_eval_has(eval, 3) &&
      !pph_shape_equal(&eval->inputs[3].shape, &eval->outputs[0].shape))
    return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                         "what is added has another shape than the output");
  pph_window *window = &plan->window;
  PPH_TRY(pph_eval_find_window(eval, window));
  plan->inputs = volume(window->input);
  plan->outputs = volume(window->output);
  plan->taps = volume(window->kernel);
  plan->group_inputs = window->in_channels / window->group;
  plan->group_outputs = window->out_channels / window->group;
  plan->x = eval->inputs[0].data;
  plan->weight = eval->inputs[1].data;
  plan->bias = pph_eval_has(eval, 2) ? eval->inputs[2].data : NULL;
  plan->y = eval->outputs[0].data;
  return PPH_OK;
}

static pph_status allocate(const pph_eval *eval, conv_plan *plan, int64_t sums,
                           int64_t rows) {
  pph_heap *heap = eval->graph->heap;
  plan->sums = pph_heap_allocate(heap, (size_t)sums, sizeof(double));
  plan->rows = pph_heap_allocate(heap, (size_t)rows, TILE * sizeof(double));
  if (plan->sums && plan->rows)
    return PPH_OK;
  pph_heap_release(heap, plan->sums);
  pph_heap_release(heap, plan->rows);
  return pph_fail_memory(eval->error);
}

static void release(const pph_eval *eval, conv_plan *plan) {
  pph_heap_release(eval->graph->heap, plan->sums);
  pph_heap_release(eval->graph->heap, plan->rows);
}

/* `n` elements of an input line (NULL: outside) from x on, a stride apart. */
static void see_line(const pph_window *w, const float *line, int64_t x,
                     int64_t n, double *row) {
  int64_t stride = w->stride[2];
  int64_t first = pph_max_i64(0, pph_ceil_div(-x, stride));
  int64_t last = pph_min_i64(n, pph_ceil_div(w->input[2] - x, stride));
  if (!line || first >= last)
    first = last = n;
  memset(row, 0, (size_t)n * sizeof *row);
  if (stride == 1)
    for (int64_t i = first; i < last; i++)
      row[i] = line[x + i];
  else
    for (int64_t i = first; i < last; i++)
      row[i] = line[x + i * stride];
}

/* What tap `tap` of one input channel sees at the output positions
   [begin, begin + width): 0 outside the input. */
static void see_tap(const conv_plan *plan, const float *channel, int64_t tap,
                    int64_t begin, int64_t width, double *row) {
  const pph_window *w = &plan->window;
  int64_t k[3], o[3];
  pph_eval_split_index(tap, w->kernel, k);
  pph_eval_split_index(begin, w->output, o);
  for (int64_t done = 0; done < width;) {
    int64_t n = pph_min_i64(width - done, w->output[2] - o[2]);
    int64_t z = o[0] * w->stride[0] + k[0] * w->dilation[0] - w->pad_begin[0];
    int64_t y = o[1] * w->stride[1] + k[1] * w->dilation[1] - w->pad_begin[1];
    int64_t x = o[2] * w->stride[2] + k[2] * w->dilation[2] - w->pad_begin[2];
    bool inside = z >= 0 && z < w->input[0] && y >= 0 && y < w->input[1];
    const float *line =
        inside ? channel + (z * w->input[1] + y) * w->input[2] : NULL;
    see_line(w, line, x, n, row + done);
    done += n;
    o[2] = 0;
    if (++o[1] == w->output[1]) {
      o[1] = 0;
      o[0]++;
    }
  }
}

/* Sums of all output channels of a group at [begin, begin + width). */
static void sum_tile(const conv_plan *plan, const float *x, const float *weight,
                     int64_t begin, int64_t width) {
  int64_t depth = plan->group_inputs * plan->taps;
  for (int64_t first = 0; first < depth; first += CHUNK) {
    int64_t count = pph_min_i64(CHUNK, depth - first);
    for (int64_t t = 0; t < count; t++)
      see_tap(plan, x + (first + t) / plan->taps * plan->inputs,
              (first + t) % plan->taps, begin, width, plan->rows + t * TILE);
    for (int64_t c = 0; c < plan->group_outputs; c++) {
      pph_product product = {
          weight + c * depth + first, 1, plan->rows, TILE, count, width};
      pph_product_add(&product, plan->sums + c * TILE);
    }
  }
}

/* One group of one batch element: x and y are its first channels. */
static void convolve(const conv_plan *plan, int64_t group, const float *x,
                     float *y) {
  int64_t channels = plan->group_outputs;
  const float *weight =
      plan->weight + group * channels * plan->group_inputs * plan->taps;
  for (int64_t begin = 0; begin < plan->outputs; begin += TILE) {
    int64_t width = pph_min_i64(TILE, plan->outputs - begin);
    for (int64_t c = 0; c < channels; c++)
      for (int64_t i = 0; i < width; i++)
        plan->sums[c * TILE + i] =
            plan->bias ? plan->bias[group * channels + c] : 0;
    sum_tile(plan, x, weight, begin, width);
    for (int64_t c = 0; c < channels; c++)
      for (int64_t i = 0; i < width; i++)
        y[c * plan->outputs + begin + i] = (float)plan->sums[c * TILE + i];
  }
}

typedef void group_function(const conv_plan *plan, int64_t group,
                            const float *x, float *y);

static void run_groups(const conv_plan *plan, group_function *run) {
  for (int64_t n = 0; n < plan->window.batch; n++)
    for (int64_t g = 0; g < plan->window.group; g++) {
      int64_t at = n * plan->window.group + g;
      run(plan, g, plan->x + at * plan->group_inputs * plan->inputs,
          plan->y + at * plan->group_outputs * plan->outputs);
    }
}

/* As an Add behind the convolution would. */
static void add_residual(const pph_eval *eval) {
  if (!pph_eval_has(eval, 3))
    return;
  const float *residual = eval->inputs[3].data;
  float *y = eval->outputs[0].data;
  size_t count = pph_eval_count(&eval->outputs[0]);
  for (size_t i = 0; i < count; i++)
    y[i] += residual[i];
}

pph_status pph_eval_conv(const pph_eval *eval) {
  conv_plan plan;
  PPH_TRY(make_plan(eval, &plan));
  if (pph_eval_count(&eval->outputs[0]) == 0)
    return PPH_OK;
  PPH_TRY(allocate(eval, &plan, plan.group_outputs * TILE, CHUNK));
  run_groups(&plan, convolve);
  release(eval, &plan);
  add_residual(eval);
  return PPH_OK;
}

/* The products of one tap at the input positions [begin, begin + width) go to
   the output positions that it reaches. */
static void scatter(const conv_plan *plan, int64_t tap, int64_t begin,
                    int64_t width, const double *products) {
  const pph_window *w = &plan->window;
  int64_t k[3], at[3];
  pph_eval_split_index(tap, w->kernel, k);
  pph_eval_split_index(begin, w->input, at);
  for (int64_t done = 0; done < width;) {
    int64_t n = pph_min_i64(width - done, w->input[2] - at[2]);
    int64_t z = at[0] * w->stride[0] + k[0] * w->dilation[0] - w->pad_begin[0];
    int64_t y = at[1] * w->stride[1] + k[1] * w->dilation[1] - w->pad_begin[1];
    int64_t x = at[2] * w->stride[2] + k[2] * w->dilation[2] - w->pad_begin[2];
    if (z >= 0 && z < w->output[0] && y >= 0 && y < w->output[1]) {
      double *line = plan->sums + (z * w->output[1] + y) * w->output[2];
      for (int64_t i = 0; i < n; i++, x += w->stride[2])
        if (x >= 0 && x < w->output[2])
          line[x] += products[done + i];
    }
    done += n;
    at[2] = 0;
    if (++at[1] == w->input[1]) {
      at[1] = 0;
      at[0]++;
    }
  }
}

/* All input channels at [begin, begin + width) onto one output channel, whose
   weights for input channel 0 are at `weight`. */
static void scatter_tile(const conv_plan *plan, const float *x,
                         const float *weight, int64_t begin, int64_t width) {
  for (int64_t c = 0; c < plan->group_inputs; c++)
    for (int64_t i = 0; i < width; i++)
      plan->rows[c * TILE + i] = x[c * plan->inputs + begin + i];
  double products[TILE];
  for (int64_t tap = 0; tap < plan->taps; tap++) {
    memset(products, 0, sizeof products);
    pph_product product = {weight + tap,       plan->group_outputs * plan->taps,
                           plan->rows,         TILE,
                           plan->group_inputs, width};
    pph_product_add(&product, products);
    scatter(plan, tap, begin, width, products);
  }
}

static void transpose_convolve(const conv_plan *plan, int64_t group,
                               const float *x, float *y) {
  int64_t channels = plan->group_outputs;
  const float *weight =
      plan->weight + group * plan->group_inputs * channels * plan->taps;
  for (int64_t c = 0; c < channels; c++) {
    double bias = plan->bias ? plan->bias[group * channels + c] : 0;
    for (int64_t i = 0; i < plan->outputs; i++)
      plan->sums[i] = bias;
    for (int64_t begin = 0; begin < plan->inputs; begin += TILE)
      scatter_tile(plan, x, weight + c * plan->taps, begin,
                   pph_min_i64(TILE, plan->inputs - begin));
    for (int64_t i = 0; i < plan->outputs; i++)
      y[c * plan->outputs + i] = (float)plan->sums[i];
  }
}

/* By the scatter definition: every input element adds its multiple of the
   kernel. Never by phases, which this judges. */
pph_status pph_eval_conv_transpose(const pph_eval *eval) {
  conv_plan plan;
  PPH_TRY(make_plan(eval, &plan));
  if (pph_eval_count(&eval->outputs[0]) == 0)
    return PPH_OK;
  PPH_TRY(allocate(eval, &plan, plan.outputs, plan.group_inputs));
  run_groups(&plan, transpose_convolve);
  release(eval, &plan);
  add_residual(eval);
  return PPH_OK;
}
