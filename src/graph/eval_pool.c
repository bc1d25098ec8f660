/* Pooling and batch normalization, one channel plane at a time. */
#include <float.h>
#include <math.h>

#include "graph/eval_rules.h"

/* The taps of one output position: which are inside the input, and how many
   count for an average that includes the pads. */
typedef struct pool_sums {
  double sum, largest;
  int64_t inside, counted;
} pool_sums;

/* The taps [first, last) of one axis that lie inside the input, where tap 0
   lies, and how many do not reach beyond the end pad, as the last window of
   ceil_mode may. By arithmetic: a kernel may be far longer than the input. */
typedef struct pool_taps {
  int64_t start, first, last, counted;
} pool_taps;

static pool_taps find_taps(const pph_window *w, int a, int64_t o) {
  pool_taps taps;
  int64_t step = w->dilation[a], end = w->input[a] + w->pad_end[a];
  taps.start = o * w->stride[a] - w->pad_begin[a];
  taps.first = pph_max_i64(0, pph_ceil_div(-taps.start, step));
  taps.last =
      pph_min_i64(w->kernel[a], pph_ceil_div(w->input[a] - taps.start, step));
  taps.counted =
      pph_min_i64(w->kernel[a], pph_ceil_div(end - taps.start, step));
  taps.counted = pph_max_i64(0, taps.counted);
  return taps;
}

static void pool_line(const double *line, const pool_taps *taps, int64_t step,
                      pool_sums *sums) {
  for (int64_t k = taps->first; k < taps->last; k++) {
    double x = line[taps->start + k * step];
    sums->sum += x;
    if (sums->inside == 0 || x > sums->largest || isnan(x))
      sums->largest = x;
    sums->inside++;
  }
}

static pool_sums pool_at(const pph_window *w, const double *plane,
                         const int64_t o[3]) {
  pool_sums sums = {0, -FLT_MAX, 0, 1};
  pool_taps taps[3];
  for (int a = 0; a < 3; a++) {
    taps[a] = find_taps(w, a, o[a]);
    if (__builtin_mul_overflow(sums.counted, taps[a].counted, &sums.counted))
      sums.counted = INT64_MAX;
  }
  for (int64_t kz = taps[0].first; kz < taps[0].last; kz++)
    for (int64_t ky = taps[1].first; ky < taps[1].last; ky++) {
      int64_t z = taps[0].start + kz * w->dilation[0];
      int64_t y = taps[1].start + ky * w->dilation[1];
      pool_line(plane + (z * w->input[1] + y) * w->input[2], &taps[2],
                w->dilation[2], &sums);
    }
  return sums;
}

static double pool_result(const pph_node *node, const pool_sums *sums) {
  if (node->kind == PPH_NODE_MAX_POOL)
    return sums->largest;
  int64_t count = pph_node_int(node, PPH_ATTR_COUNT_INCLUDE_PAD, 0)
                      ? sums->counted
                      : sums->inside;
  return count > 0 ? sums->sum / (double)count : 0;
}

pph_status pph_eval_pool(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  pph_heap *heap = eval->graph->heap;
  pph_window window;
  PPH_TRY(pph_eval_find_window(eval, &window));
  const int64_t *in = window.input, *out = window.output;
  int64_t inputs = in[0] * in[1] * in[2], outputs = out[0] * out[1] * out[2];
  if (!pph_number_is_real(input->type) && eval->node->kind != PPH_NODE_MAX_POOL)
    return pph_eval_fail_type(eval, input->type);
  if (pph_eval_count(output) == 0)
    return PPH_OK;
  double *plane = pph_heap_allocate(heap, (size_t)inputs, sizeof *plane);
  double *line = pph_heap_allocate(heap, (size_t)outputs, sizeof *line);
  int64_t planes = window.batch * window.in_channels;
  for (int64_t p = 0; plane && line && p < planes; p++) {
    pph_number_load_reals(input, p * inputs, 1, plane, inputs);
    for (int64_t i = 0; i < outputs; i++) {
      int64_t o[3];
      pph_eval_split_index(i, out, o);
      pool_sums sums = pool_at(&window, plane, o);
      line[i] = pool_result(eval->node, &sums);
    }
    pph_number_store_reals(output, p * outputs, line, outputs);
  }
  bool failed = !plane || !line;
  pph_heap_release(heap, plane);
  pph_heap_release(heap, line);
  return failed ? pph_fail_memory(eval->error) : PPH_OK;
}

static double reduce_plane(const pph_tensor *input, int64_t begin,
                           int64_t count, bool largest) {
  double sum = 0, most = -INFINITY;
  for (int64_t i = 0; i < count; i++) {
    double x;
    pph_number_load_reals(input, begin + i, 0, &x, 1);
    sum += x;
    most = x > most || isnan(x) ? x : most;
  }
  return largest ? most : sum / (double)count;
}

pph_status pph_eval_global_pool(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  if (!pph_number_is_real(input->type))
    return pph_eval_fail_type(eval, input->type);
  bool largest = eval->node->kind == PPH_NODE_GLOBAL_MAX_POOL;
  int64_t planes = (int64_t)pph_eval_count(output);
  int64_t size = pph_eval_product(&input->shape, 2, input->shape.rank);
  for (int64_t p = 0; p < planes; p++) {
    double result = reduce_plane(input, p * size, size, largest);
    pph_number_store_reals(output, p, &result, 1);
  }
  return PPH_OK;
}

/* One channel: y = (x - mean) / sqrt(variance + epsilon) * scale + bias. */
static void normalize(const pph_eval *eval, int64_t channel, int64_t begin,
                      int64_t count) {
  double parameters[5] = {0}; /* unused, scale, bias, mean, variance */
  for (uint32_t i = 1; i < 5; i++)
    pph_number_load_reals(&eval->inputs[i], channel, 0, &parameters[i], 1);
  double epsilon = pph_node_float(eval->node, PPH_ATTR_EPSILON, 1e-5f);
  double factor = parameters[1] / sqrt(parameters[4] + epsilon);
  for (int64_t i = begin; i < begin + count; i++) {
    double x;
    pph_number_load_reals(&eval->inputs[0], i, 0, &x, 1);
    x = (x - parameters[3]) * factor + parameters[2];
    pph_number_store_reals(&eval->outputs[0], i, &x, 1);
  }
}

pph_status pph_eval_batch_normalization(const pph_eval *eval) {
  const pph_shape *shape = &eval->inputs[0].shape;
  for (uint32_t i = 0; i < 5; i++)
    if (!pph_number_is_real(eval->inputs[i].type))
      return pph_eval_fail_type(eval, eval->inputs[i].type);
  if (pph_eval_count(&eval->outputs[0]) == 0)
    return PPH_OK;
  int64_t channels = shape->rank > 1 ? shape->dims[1] : 1;
  int64_t batch = shape->rank > 0 ? shape->dims[0] : 1;
  int64_t size = pph_eval_product(shape, 2, shape->rank);
  for (int64_t n = 0; n < batch; n++)
    for (int64_t c = 0; c < channels; c++)
      normalize(eval, c, (n * channels + c) * size, size);
  return PPH_OK;
}
