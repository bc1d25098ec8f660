/* A convolution of what nearest upsampling repeats becomes a transposed
   convolution of the pixels themselves: taps that read copies of one pixel are
   one tap, so that of a 3x3 kernel behind x2 each phase keeps 2x2. Copies are
   not made. Weights are summed first, which other levels of accuracy than
   `normal` do not allow. */
#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval.h"
#include "graph/shape.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

typedef struct folding {
  pph_node *resize;
  pph_window window; /* of the convolution */
  pph_tensor weight; /* [out][in][y][x], or without y */
  int64_t times[2], kernel[2]; /* of the transposed one; 1 of no axis */
} folding;

/* Spatial axes count from the last: a line has columns alone. */
static int64_t kernel_of(const folding *f, uint32_t i) {
  uint32_t none = 2 - f->window.axes;
  return i < none ? 1 : f->window.kernel[i - none];
}

static bool find_times(const pph_graph *graph, folding *f) {
  int64_t factors[PPH_MAX_RANK];
  uint32_t none = 2 - f->window.axes;
  if (!pph_eval_resize_repeats(graph, f->resize, factors) || factors[0] != 1 ||
      factors[1] != 1)
    return false;
  for (uint32_t i = 0; i < 2; i++)
    f->times[i] = i < none ? 1 : factors[2 + i - none];
  return true;
}

/* A tap that reads copies of as many pixels as others do gains nothing. */
static bool pays(folding *f) {
  int64_t before = 1, after = 1;
  for (uint32_t i = 0; i < 2; i++) {
    int64_t kernel = kernel_of(f, i);
    before *= kernel;
    after *= pph_ceil_div(kernel - 1, f->times[i]) + 1;
    f->kernel[i] = kernel + f->times[i] - 1;
  }
  return after < before;
}

static bool has_form(const pph_window *window) {
  for (uint32_t i = 0; i < window->axes; i++)
    if (window->stride[i] != 1 || window->dilation[i] != 1 ||
        window->output[i] < 1 || window->pad_begin[i] < 0 ||
        window->pad_end[i] < 0 || window->pad_begin[i] >= window->kernel[i] ||
        window->pad_end[i] >= window->kernel[i])
      return false;
  return window->group == 1 && window->batch > 0;
}

static pph_status find_folding(pph_rewrite *rewrite, const pph_node *node,
                               folding *f, bool *found, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  *found = false;
  if (node->kind != PPH_NODE_CONV || node->activation != PPH_ACTIVATION_NONE ||
      pph_node_adds_residual(node) ||
      pph_node_int(node, PPH_ATTR_EXACT_SUMS, 0) ||
      !pph_node_find_constant(graph, node, 1, &f->weight) ||
      f->weight.type != PPH_F32 || f->weight.shape.rank < 3 ||
      f->weight.shape.rank > 4)
    return PPH_OK;
  f->resize = pph_rewrite_find_private(rewrite, node, 0);
  if (!f->resize || f->resize->kind != PPH_NODE_RESIZE)
    return PPH_OK;
  PPH_TRY(pph_shape_find_window(graph, node, &f->window, error));
  *found = has_form(&f->window) && find_times(graph, f) && pays(f);
  return PPH_OK;
}

/* Row or column `at` of the new kernel is the sum of `times` old taps, those
   that there are. */
static void find_range(int64_t kernel, int64_t times, int64_t at,
                       int64_t *begin, int64_t *end) {
  *begin = pph_max_i64(kernel - 1 - at, 0);
  *end = pph_min_i64(kernel - 1 - at + times, kernel);
}

/* [in][out][y][x] of [out][in][y][x]. */
static void sum_taps(const folding *f, float *to) {
  const float *from = f->weight.data;
  int64_t out_channels = f->window.out_channels;
  int64_t in_channels = f->window.in_channels;
  int64_t height = kernel_of(f, 0), width = kernel_of(f, 1);
  for (int64_t in = 0; in < in_channels; in++)
    for (int64_t out = 0; out < out_channels; out++)
      for (int64_t v = 0; v < f->kernel[0]; v++)
        for (int64_t u = 0; u < f->kernel[1]; u++) {
          const float *taps =
              from + (out * in_channels + in) * height * width;
          int64_t y, x, y_end, x_begin, x_end;
          double sum = 0;
          find_range(height, f->times[0], v, &y, &y_end);
          find_range(width, f->times[1], u, &x_begin, &x_end);
          for (; y < y_end; y++)
            for (x = x_begin; x < x_end; x++)
              sum += taps[y * width + x];
          *to++ = (float)sum;
        }
}

static pph_status make_weight(pph_rewrite *rewrite, const pph_node *node,
                              const folding *f, pph_id *id,
                              pph_error *error) {
  pph_graph *graph = rewrite->graph;
  const pph_value *old = pph_node_find_input(graph, node, 1);
  pph_origin origin = old->origin;
  pph_tensor made = {.type = PPH_F32, .shape = f->weight.shape};
  size_t count;
  made.shape.dims[0] = f->window.in_channels;
  made.shape.dims[1] = f->window.out_channels;
  for (uint32_t i = 0; i < f->window.axes; i++)
    made.shape.dims[2 + i] = f->kernel[i + 2 - f->window.axes];
  const char *name = pph_graph_make_name(graph, old->name);
  if (!name || !pph_shape_count(&made.shape, &count))
    return pph_fail_memory(error);
  float *data = pph_heap_allocate(graph->heap, count, sizeof *data);
  if (!data)
    return pph_fail_memory(error);
  sum_taps(f, data);
  made.data = data;
  pph_status status = pph_graph_add_constant(graph, name, &made, id, error);
  pph_heap_release(graph->heap, data);
  if (status == PPH_OK)
    pph_graph_value(graph, *id)->origin = origin;
  return status;
}

static pph_status set_attributes(pph_graph *graph, pph_node *made,
                                 const folding *f, pph_error *error) {
  uint32_t axes = f->window.axes;
  int64_t pads[4];
  for (uint32_t i = 0; i < axes; i++) {
    pads[i] = f->window.kernel[i] - 1 - f->window.pad_begin[i];
    pads[axes + i] = f->window.kernel[i] - 1 - f->window.pad_end[i];
  }
  PPH_TRY(pph_node_set_ints(graph, made, PPH_ATTR_STRIDES,
                            f->times + 2 - axes, axes, error));
  return pph_node_set_ints(graph, made, PPH_ATTR_PADS, pads, 2 * axes, error);
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  pph_graph *graph = rewrite->graph;
  folding f;
  bool found;
  pph_node *made;
  PPH_TRY(find_folding(rewrite, node, &f, &found, error));
  if (!found)
    return PPH_OK;
  pph_id ids[3] = {f.resize->inputs[0], PPH_NO_VALUE,
                   node->input_count > 2 ? node->inputs[2] : PPH_NO_VALUE};
  uint32_t count = ids[2] == PPH_NO_VALUE ? 2 : 3;
  PPH_TRY(make_weight(rewrite, node, &f, &ids[1], error));
  PPH_TRY(pph_rewrite_insert(rewrite, PPH_NODE_CONV_TRANSPOSE, node, ids,
                             count, &made, error));
  made->name = node->name;
  PPH_TRY(set_attributes(graph, made, &f, error));
  PPH_TRY(pph_shape_infer_node(graph, made, error));
  PPH_TRY(pph_rewrite_take_over(rewrite, node, made, error));
  pph_rewrite_remove(rewrite, f.resize);
  return PPH_OK;
}

pph_status pph_pass_fold_nearest(pph_graph *graph,
                                 const pph_pass_options *options,
                                 pph_error *error) {
  if (!options->folds_upsampling || options->polyphase == PPH_POLYPHASE_NEVER)
    return PPH_OK;
  return pph_rewrite_walk(graph, visit, error);
}
