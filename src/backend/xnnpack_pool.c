/* Pooling over channels-last values. */
#include <math.h>

#include "backend/xnnpack_kind.h"
#include "base/fail.h"

/* With dilation XNNPACK replaces pixels outside by one that it takes to be
   inside: the first of the window's grid at or after output * stride - pad %
   dilation. This says whether it is inside, and in every window. */
static bool replacement_is_inside(const pph_xnn_window *window) {
  for (int i = 0; i < 2; i++) {
    size_t dilation = window->dilation[i], begin = window->pad_begin[i];
    size_t rest = begin % dilation, input = window->input[i];
    size_t last = (window->output[i] - 1) * window->stride[i];
    if (rest > 0 && dilation - rest >= input)
      return false;
    if (last >= input + rest ||
        begin / dilation + (rest > 0) >= window->kernel[i])
      return false;
  }
  return true;
}

/* One pixel is no pooling for XNNPACK. */
static bool find_pooling(const pph_graph *graph, const pph_node *node,
                         pph_xnn_window *window) {
  pph_window source;
  if (!pph_xnn_channels_last(pph_node_find_input(graph, node, 0)) ||
      !pph_xnn_channels_last(pph_xnn_output(graph, node)) ||
      !pph_xnn_find_window(graph, node, &source, window) ||
      !pph_xnn_find_pads(&source, window))
    return false;
  window->groups = 1;
  window->group_in = (size_t)source.in_channels;
  size_t pixels = (size_t)window->kernel[0] * window->kernel[1];
  return pixels > 1 && pixels < INT32_MAX / 2;
}

/* With dilation along the height only, neighbouring windows share their
   pointers along the width, and each overwrites the others' replacements. */
static bool replacements_clash(const pph_xnn_window *window) {
  return window->dilation[0] > 1 && window->dilation[1] == 1 &&
         (window->pad_begin[1] || window->pad_end[1]);
}

static bool find_max_pooling(const pph_graph *graph, const pph_node *node,
                             pph_xnn_window *window) {
  if (!find_pooling(graph, node, window))
    return false;
  if (window->dilation[0] > 1 || window->dilation[1] > 1)
    return replacement_is_inside(window) && !replacements_clash(window);
  return pph_xnn_windows_touch_input(window);
}

/* XNNPACK divides by what lies inside the input, so pads that count are only
   alike where there are none. */
static bool find_average_pooling(const pph_graph *graph, const pph_node *node,
                                 pph_xnn_window *window) {
  if (!find_pooling(graph, node, window) || window->dilation[0] > 1 ||
      window->dilation[1] > 1 || !pph_xnn_windows_touch_input(window))
    return false;
  bool padded = window->pad_begin[0] || window->pad_begin[1] ||
                window->pad_end[0] || window->pad_end[1];
  return !padded || !pph_node_int(node, PPH_ATTR_COUNT_INCLUDE_PAD, 0);
}

bool pph_xnn_supports_max_pool(const pph_graph *graph, const pph_node *node) {
  pph_xnn_window window;
  return find_max_pooling(graph, node, &window);
}

bool pph_xnn_supports_average_pool(const pph_graph *graph,
                                   const pph_node *node) {
  pph_xnn_window window;
  return find_average_pooling(graph, node, &window);
}

static pph_status create(pph_xnn_job *job, pph_xnn_window *window,
                         pph_xnn_create_pooling *call, pph_error *error) {
  window->min = job->min;
  window->max = job->max;
  size_t bytes = pph_xnn_row_indirection(window);
  PPH_TRY(pph_xnn_check_bytes(job->context->heap, "indirection buffer", bytes,
                              error));
  return call(window, &job->state->op, error);
}

pph_status pph_xnn_prepare_max_pool(pph_xnn_job *job, pph_error *error) {
  pph_xnn_window window;
  if (!find_max_pooling(job->graph, job->node, &window))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's max pooling");
  job->step->algorithm = "xnnpack.max_pooling";
  return create(job, &window, pph_xnn_create_max_pooling, error);
}

pph_status pph_xnn_prepare_average_pool(pph_xnn_job *job, pph_error *error) {
  pph_xnn_window window;
  if (!find_average_pooling(job->graph, job->node, &window))
    return pph_fail(error, PPH_UNSUPPORTED, NULL,
                    "not XNNPACK's average pooling");
  job->step->algorithm = "xnnpack.average_pooling";
  return create(job, &window, pph_xnn_create_average_pooling, error);
}

/* Positions of a [N,C,spatial...] value. */
static size_t count_positions(const pph_shape *shape) {
  size_t positions = 1;
  for (int32_t i = 2; i < shape->rank; i++)
    positions = pph_xnn_times(positions, (size_t)shape->dims[i]);
  return positions;
}

bool pph_xnn_supports_global_average_pool(const pph_graph *graph,
                                          const pph_node *node) {
  const pph_value *input = pph_node_find_input(graph, node, 0);
  return pph_xnn_channels_last(input) &&
         count_positions(&input->shape) < INT32_MAX;
}

pph_status pph_xnn_prepare_global_average_pool(pph_xnn_job *job,
                                               pph_error *error) {
  const pph_shape *shape =
      &pph_node_find_input(job->graph, job->node, 0)->shape;
  job->step->algorithm = "xnnpack.global_average_pooling";
  return pph_xnn_create_mean((size_t)shape->dims[0], count_positions(shape),
                             (size_t)shape->dims[1], &job->state->op, error);
}
