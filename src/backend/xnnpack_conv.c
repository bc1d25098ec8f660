/* Conv and ConvTranspose over channels-last values with constant weights. */
#include <string.h>

#include "backend/xnnpack_kind.h"
#include "base/fail.h"

/* Upper bounds of XNNPACK's tiles (rows, columns, depth) on any processor. */
enum { MAX_ROWS = 16, MAX_COLUMNS = 64, MAX_DEPTH = 32 };

typedef bool find_pads(const pph_window *source, pph_xnn_window *window);

/* Pads and adjustment of a deconvolution. XNNPACK's pads are not negative and
   its adjustment is below the stride. An output shorter than the stride makes
   its sub-convolutions count below zero. */
static bool find_deconvolution_pads(const pph_window *source,
                                    pph_xnn_window *window) {
  const int64_t limit = INT64_C(1) << 28;
  for (uint32_t i = 0; i < source->axes; i++) {
    uint32_t to = source->axes == 1 ? 1 : i;
    int64_t begin = source->pad_begin[i], stride = source->stride[i];
    int64_t full = stride * (source->input[i] - 1) +
                   source->dilation[i] * (source->kernel[i] - 1) + 1;
    if (begin < 0 || begin > limit || source->output[i] < stride)
      return false;
    int64_t end = full - begin - source->output[i];
    if (end > limit || -end >= stride)
      return false;
    window->pad_begin[to] = (uint32_t)begin;
    window->pad_end[to] = end > 0 ? (uint32_t)end : 0;
    window->adjustment[to] = end < 0 ? (uint32_t)-end : 0;
  }
  return true;
}

static size_t count_taps(const pph_xnn_window *window) {
  return (size_t)window->kernel[0] * window->kernel[1];
}

/* Bytes of one group's packed weights, which XNNPACK counts in 32 bits. */
static size_t group_bytes(const pph_xnn_window *window) {
  size_t phases = (size_t)window->stride[0] * window->stride[1];
  size_t depth = pph_xnn_times(count_taps(window),
                               pph_xnn_round_up(window->group_in, MAX_DEPTH));
  size_t column = pph_xnn_times(pph_xnn_plus(depth, phases), sizeof(float));
  return pph_xnn_times(column,
                       pph_xnn_round_up(window->group_out, MAX_COLUMNS));
}

static bool find_problem(const pph_graph *graph, const pph_node *node,
                         find_pads *pads, pph_xnn_window *window) {
  pph_window source;
  pph_tensor weight;
  size_t count;
  if (pph_node_adds_residual(node) ||
      !pph_xnn_channels_last(pph_node_find_input(graph, node, 0)) ||
      !pph_xnn_channels_last(pph_xnn_output(graph, node)) ||
      !pph_xnn_find_window(graph, node, &source, window) ||
      !pads(&source, window) || !pph_xnn_find_floats(graph, node, 1, &weight))
    return false;
  size_t per_tap = pph_xnn_times((size_t)source.out_channels, window->group_in);
  if (!pph_shape_count(&weight.shape, &count) ||
      count != pph_xnn_times(per_tap, count_taps(window)))
    return false;
  return group_bytes(window) < INT32_MAX &&
         pph_xnn_optional_floats(graph, node, 2, (size_t)source.out_channels);
}

bool pph_xnn_supports_conv(const pph_graph *graph, const pph_node *node) {
  pph_xnn_window window;
  return find_problem(graph, node, pph_xnn_find_pads, &window);
}

bool pph_xnn_supports_conv_transpose(const pph_graph *graph,
                                     const pph_node *node) {
  pph_xnn_window window;
  return find_problem(graph, node, find_deconvolution_pads, &window);
}

/* [group][rows][columns][taps] to [group][rows][taps][columns], or, when
   `swapped`, from [group][columns][rows][taps]. The target, all zeros before,
   has the taps of `wide`, which lie in rows of its width. */
static void transpose(const pph_xnn_window *window, const pph_xnn_window *wide,
                      const void *source, bool swapped, float *target) {
  size_t rows = window->group_out, columns = window->group_in;
  size_t taps = count_taps(window), width = window->kernel[1];
  size_t row_step = swapped ? taps : columns * taps;
  size_t column_step = swapped ? rows * taps : taps;
  for (size_t g = 0; g < window->groups; g++)
    for (size_t r = 0; r < rows; r++) {
      size_t from = g * rows * columns * taps + r * row_step;
      for (size_t t = 0; t < taps; t++) {
        size_t to = t / width * wide->kernel[1] + t % width;
        for (size_t c = 0; c < columns; c++)
          target[to * columns + c] =
              pph_xnn_float_at(source, from + c * column_step + t);
      }
      target += count_taps(wide) * columns;
    }
}

static bool is_depthwise(const pph_xnn_window *window) {
  return window->group_in == 1 && window->group_out == 1;
}

/* XNNPACK of 2022 has depthwise kernels of these sizes only and runs others
   five to twenty times slower, as convolutions of one channel: zero taps at the
   end reach the next size. (They turn an infinite pixel into NaN.) */
static void widen_depthwise(pph_xnn_window *window) {
  static const uint32_t sizes[][2] = {{1, 3},  {3, 1}, {1, 4}, {2, 2},
                                      {4, 1},  {1, 9}, {3, 3}, {9, 1},
                                      {1, 25}, {5, 5}, {25, 1}};
  if (PPH_XNN_ANY_DEPTHWISE)
    return;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (sizes[i][0] < window->kernel[0] || sizes[i][1] < window->kernel[1])
      continue;
    for (int axis = 0; axis < 2; axis++) {
      uint32_t more = sizes[i][axis] - window->kernel[axis];
      window->kernel[axis] += more;
      window->pad_end[axis] += more * window->dilation[axis];
    }
    return;
  }
}

static void swap_axes(uint32_t pair[2]) {
  uint32_t first = pair[0];
  pair[0] = pair[1];
  pair[1] = first;
}

/* XNNPACK gives rows of depthwise output to threads, so a signal must lie
   along the height to be shared. */
static void stand_up(pph_xnn_window *window) {
  if (window->input[0] != 1 || window->output[0] != 1 ||
      window->kernel[0] != 1 || window->pad_begin[0] || window->pad_end[0])
    return;
  uint32_t *const pairs[] = {window->kernel, window->stride, window->dilation,
                             window->pad_begin, window->pad_end};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    swap_axes(pairs[i]);
  window->input[0] = window->input[1];
  window->output[0] = window->output[1];
  window->input[1] = window->output[1] = 1;
}

/* One tap without steps or pads is a multiplication, which is fast. */
static void tune_depthwise(pph_xnn_window *window, size_t threads) {
  bool one_tap = count_taps(window) == 1 && window->stride[0] == 1 &&
                 window->stride[1] == 1 && !window->pad_begin[0] &&
                 !window->pad_begin[1] && !window->pad_end[0] &&
                 !window->pad_end[1];
  if (one_tap)
    return;
  widen_depthwise(window);
  if (threads > 1)
    stand_up(window);
}

static size_t conv_indirection(const pph_xnn_window *window) {
  if (is_depthwise(window))
    return pph_xnn_row_indirection(window);
  size_t pixels = pph_xnn_times(window->output[0], window->output[1]);
  return pph_xnn_times(sizeof(void *) * count_taps(window),
                       pph_xnn_round_up(pixels, MAX_ROWS));
}

static size_t deconvolution_indirection(const pph_xnn_window *window) {
  size_t stride = window->stride[1];
  size_t width = pph_xnn_plus(window->output[1] / stride, 1);
  width = pph_xnn_times(stride, pph_xnn_round_up(width, MAX_ROWS));
  return pph_xnn_times(sizeof(void *) * count_taps(window),
                       pph_xnn_times(window->output[0], width));
}

static pph_status check_memory(const pph_heap *heap,
                               const pph_xnn_window *window, size_t indirection,
                               pph_error *error) {
  size_t weights = pph_xnn_times(group_bytes(window), window->groups);
  PPH_TRY(pph_xnn_check_bytes(heap, "packed weights", weights, error));
  return pph_xnn_check_bytes(heap, "indirection buffer", indirection, error);
}

/* What create makes an operator of: the problem, and how XNNPACK runs it. */
typedef struct conv_plan {
  pph_xnn_window window, wide;
  pph_xnn_create_weighted *call;
  bool swapped;
} conv_plan;

/* Transposed weights and an aligned bias live just as long as create. */
static pph_status create(pph_xnn_job *job, const conv_plan *plan,
                         pph_error *error) {
  pph_heap *heap = job->context->heap;
  pph_tensor weight, bias = {0};
  float *aligned_bias, *kernel;
  size_t channels = plan->window.groups * plan->window.group_out;
  pph_node_find_constant(job->graph, job->node, 1, &weight);
  if (!pph_node_find_constant(job->graph, job->node, 2, &bias))
    bias.data = NULL;
  PPH_TRY(pph_xnn_copy_floats(heap, bias.data, channels, &aligned_bias, error));
  pph_status status = PPH_OK;
  kernel = pph_heap_allocate_zeroed(heap, channels * plan->window.group_in,
                                    count_taps(&plan->wide) * sizeof *kernel);
  if (kernel) {
    transpose(&plan->window, &plan->wide, weight.data, plan->swapped, kernel);
    status =
        plan->call(&plan->wide, kernel, aligned_bias, &job->state->op, error);
  } else {
    status = pph_fail_memory(error);
  }
  pph_heap_release(heap, kernel);
  pph_heap_release(heap, aligned_bias);
  return status;
}

pph_status pph_xnn_prepare_conv(pph_xnn_job *job, pph_error *error) {
  conv_plan plan = {.call = pph_xnn_create_convolution};
  if (!find_problem(job->graph, job->node, pph_xnn_find_pads, &plan.window))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's convolution");
  plan.window.min = job->min;
  plan.window.max = job->max;
  plan.wide = plan.window;
  bool depthwise = is_depthwise(&plan.window);
  if (depthwise)
    tune_depthwise(&plan.wide,
                   pthreadpool_get_threads_count(job->context->pool));
  PPH_TRY(check_memory(job->context->heap, &plan.wide,
                       conv_indirection(&plan.wide), error));
  job->step->algorithm =
      depthwise ? "xnnpack.depthwise" : "xnnpack.convolution";
  return create(job, &plan, error);
}

pph_status pph_xnn_prepare_conv_transpose(pph_xnn_job *job, pph_error *error) {
  conv_plan plan = {.call = pph_xnn_create_deconvolution, .swapped = true};
  if (!find_problem(job->graph, job->node, find_deconvolution_pads,
                    &plan.window))
    return pph_fail(error, PPH_UNSUPPORTED, NULL,
                    "not XNNPACK's deconvolution");
  plan.window.min = job->min;
  plan.window.max = job->max;
  plan.wide = plan.window;
  PPH_TRY(check_memory(job->context->heap, &plan.wide,
                       deconvolution_indirection(&plan.wide), error));
  job->step->algorithm = "xnnpack.deconvolution";
  return create(job, &plan, error);
}
