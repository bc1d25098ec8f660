/* Convolutions, transposed convolutions, pools, and what else works on
   [N,C,spatial...]. Lengths and pads come from src/geometry. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "geometry/geometry.h"
#include "graph/shape_rules.h"

static bool is_transposed(const pph_node *node) {
  return node->kind == PPH_NODE_CONV_TRANSPOSE;
}

static bool has_weight(const pph_node *node) {
  return is_transposed(node) || node->kind == PPH_NODE_CONV;
}

/* An input whose shape can be relied on, else NULL. */
static const pph_value *find_shaped(const pph_graph *graph,
                                    const pph_node *node, uint32_t slot,
                                    bool loading) {
  const pph_value *value = pph_node_find_input(graph, node, slot);
  bool claimed = value && loading && value->producer && !value->data;
  return value && value->has_rank && !claimed ? value : NULL;
}

/* Attribute lists: their length once the number of spatial axes is known, and
   the least legal entry. */
typedef struct list_rule {
  pph_attribute_key key;
  uint32_t per_axis;
  int64_t least;
} list_rule;

static const list_rule lists[] = {
    {PPH_ATTR_KERNEL_SHAPE, 1, 1}, {PPH_ATTR_STRIDES, 1, 1},
    {PPH_ATTR_DILATIONS, 1, 1},    {PPH_ATTR_PADS, 2, 0},
    {PPH_ATTR_OUTPUT_PADDING, 1, 0}, {PPH_ATTR_OUTPUT_SHAPE, 1, 0},
};

/* ONNX allows a leading batch and channel in output_shape; nobody writes it. */
static pph_status check_list(const pph_node *node, const list_rule *rule,
                             uint32_t axes, pph_error *error) {
  uint32_t count;
  const int64_t *values = pph_node_ints(node, rule->key, &count);
  const char *name = pph_attribute_key_name(rule->key);
  for (uint32_t i = 0; i < count; i++)
    if (values[i] < rule->least)
      return pph_node_fail(node, error, PPH_BAD_MODEL,
                           "%s[%u] is %lld, must be at least %lld", name, i,
                           (long long)values[i], (long long)rule->least);
  if (values && axes && count != axes * rule->per_axis)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "%s has %u entries, must have %u", name, count,
                         axes * rule->per_axis);
  return PPH_OK;
}

static pph_status check_output_padding(const pph_node *node,
                                       pph_error *error) {
  uint32_t count, strides, dilations;
  const int64_t *extra = pph_node_ints(node, PPH_ATTR_OUTPUT_PADDING, &count);
  const int64_t *stride = pph_node_ints(node, PPH_ATTR_STRIDES, &strides);
  const int64_t *dilation =
      pph_node_ints(node, PPH_ATTR_DILATIONS, &dilations);
  for (uint32_t i = 0; i < count; i++) {
    int64_t s = i < strides ? stride[i] : 1;
    int64_t d = i < dilations ? dilation[i] : 1;
    if (extra[i] >= (s > d ? s : d))
      return pph_node_fail(node, error, PPH_BAD_MODEL,
                           "output_padding[%u] is %lld, must be below "
                           "max(stride, dilation) = %lld",
                           i, (long long)extra[i],
                           (long long)(s > d ? s : d));
  }
  return PPH_OK;
}

/* The weight against group, kernel_shape, bias and (where known) channels. */
static pph_status check_weight(const pph_graph *graph, const pph_node *node,
                               bool loading, pph_error *error) {
  const pph_value *w = find_shaped(graph, node, 1, loading);
  const pph_value *x = find_shaped(graph, node, 0, loading);
  int64_t group = pph_node_int(node, PPH_ATTR_GROUP, 1);
  if (group < 1)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "group is %lld, must be at least 1",
                         (long long)group);
  if (!w || !pph_shape_known(&w->shape))
    return PPH_OK;
  int64_t first = w->shape.dims[0], second = w->shape.dims[1], in_channels;
  if (first % group)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "the weight's %lld %s channels are no multiple of "
                         "group %lld",
                         (long long)first, is_transposed(node) ? "in" : "out",
                         (long long)group);
  if (is_transposed(node))
    in_channels = first;
  else if (!pph_checked_mul_i64(second, group, &in_channels))
    return pph_node_fail(node, error, PPH_BAD_MODEL, "group %lld is too large",
                         (long long)group);
  if (x && x->shape.rank >= 2 && x->shape.dims[1] >= 0 &&
      x->shape.dims[1] != in_channels)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "the input has %lld channels, the weight is made for "
                         "%lld (group %lld)",
                         (long long)x->shape.dims[1], (long long)in_channels,
                         (long long)group);
  uint32_t count;
  const int64_t *kernel = pph_node_ints(node, PPH_ATTR_KERNEL_SHAPE, &count);
  for (uint32_t i = 0; i < count; i++)
    if (kernel[i] != w->shape.dims[i + 2])
      return pph_node_fail(node, error, PPH_BAD_MODEL,
                           "kernel_shape[%u] is %lld, the weight has %lld", i,
                           (long long)kernel[i],
                           (long long)w->shape.dims[i + 2]);
  return PPH_OK;
}

static pph_status out_channels(const pph_graph *graph, const pph_node *node,
                               int64_t *channels, pph_error *error) {
  const pph_value *w = pph_node_find_input(graph, node, 1);
  int64_t group = pph_node_int(node, PPH_ATTR_GROUP, 1);
  *channels = w->shape.dims[0];
  if (is_transposed(node) &&
      !pph_checked_mul_i64(w->shape.dims[1], group, channels))
    return pph_node_fail(node, error, PPH_BAD_MODEL, "group %lld is too large",
                         (long long)group);
  return PPH_OK;
}

static pph_status check_bias(const pph_graph *graph, const pph_node *node,
                             bool loading, pph_error *error) {
  const pph_value *w = find_shaped(graph, node, 1, loading);
  const pph_value *bias = find_shaped(graph, node, 2, loading);
  int64_t channels;
  if (!bias || !pph_shape_known(&bias->shape) || !w ||
      !pph_shape_known(&w->shape))
    return PPH_OK;
  PPH_TRY(out_channels(graph, node, &channels, error));
  char text[96];
  if (bias->shape.rank != 1 || bias->shape.dims[0] != channels)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "the bias has shape %s, must be [%lld]",
                         pph_shape_text(&bias->shape, text, sizeof text),
                         (long long)channels);
  return PPH_OK;
}

/* The number of spatial axes as far as it is known, else 0. */
static pph_status find_axes(const pph_graph *graph, const pph_node *node,
                            bool loading, uint32_t *axes, pph_error *error) {
  const pph_value *x = find_shaped(graph, node, 0, loading);
  const pph_value *w =
      has_weight(node) ? find_shaped(graph, node, 1, loading) : NULL;
  *axes = 0;
  if (has_weight(node) && !pph_node_find_input(graph, node, 1))
    return pph_node_fail(node, error, PPH_BAD_MODEL, "the weight is missing");
  if (!w && !x)
    return PPH_OK;
  int32_t rank = w ? w->shape.rank : x->shape.rank;
  if (rank < 3)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "the %s has rank %d, must be at least 3",
                         w ? "weight" : "input", rank);
  if (rank > 5)
    return pph_node_fail(node, error, PPH_UNSUPPORTED,
                         "%d spatial axes, at most 3 are supported", rank - 2);
  if (w && x && x->shape.rank != rank)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "the input has rank %d, the weight %d",
                         x->shape.rank, rank);
  *axes = (uint32_t)rank - 2;
  return PPH_OK;
}

pph_status pph_rule_check_window(const pph_graph *graph, const pph_node *node,
                                 bool loading, pph_error *error) {
  uint32_t axes;
  pph_auto_pad auto_pad;
  const char *text = pph_node_text(node, PPH_ATTR_AUTO_PAD, "NOTSET");
  PPH_TRY(find_axes(graph, node, loading, &axes, error));
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    PPH_TRY(check_list(node, &lists[i], axes, error));
  PPH_TRY(check_output_padding(node, error));
  if (!pph_auto_pad_parse(text, &auto_pad))
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "auto_pad is \"%.40s\", must be NOTSET, SAME_UPPER, "
                         "SAME_LOWER or VALID",
                         text);
  if (!has_weight(node)) {
    if (!pph_node_find_attribute(node, PPH_ATTR_KERNEL_SHAPE))
      return pph_node_fail(node, error, PPH_BAD_MODEL,
                           "kernel_shape is missing");
    return PPH_OK;
  }
  PPH_TRY(check_weight(graph, node, loading, error));
  return check_bias(graph, node, loading, error);
}

static int64_t entry(const pph_node *node, pph_attribute_key key, uint32_t i,
                     int64_t fallback) {
  uint32_t count;
  const int64_t *values = pph_node_ints(node, key, &count);
  return i < count ? values[i] : fallback;
}

static pph_status resolve_axis(const pph_node *node, const pph_shape *x,
                               const pph_shape *w, uint32_t i,
                               pph_window *window, pph_error *error) {
  pph_auto_pad auto_pad;
  pph_auto_pad_parse(pph_node_text(node, PPH_ATTR_AUTO_PAD, ""), &auto_pad);
  pph_axis axis = {
      .input = x->dims[i + 2],
      .kernel = w ? w->dims[i + 2]
                  : entry(node, PPH_ATTR_KERNEL_SHAPE, i, 1),
      .stride = entry(node, PPH_ATTR_STRIDES, i, 1),
      .dilation = entry(node, PPH_ATTR_DILATIONS, i, 1),
      .pad_begin = entry(node, PPH_ATTR_PADS, i, 0),
      .pad_end = entry(node, PPH_ATTR_PADS, i + window->axes, 0),
      .output_padding = is_transposed(node)
                            ? entry(node, PPH_ATTR_OUTPUT_PADDING, i, 0)
                            : 0};
  pph_error cause = {0};
  pph_status status =
      is_transposed(node)
          ? pph_axis_resolve_transposed(
                &axis, auto_pad, entry(node, PPH_ATTR_OUTPUT_SHAPE, i, -1),
                &cause)
          : pph_axis_resolve_conv(
                &axis, auto_pad,
                pph_node_int(node, PPH_ATTR_CEIL_MODE, 0) != 0, &cause);
  if (status != PPH_OK)
    return pph_node_fail(node, error, status, "spatial axis %u: %s", i,
                         cause.message);
  pph_window_set_axis(window, i, &axis);
  return PPH_OK;
}

pph_axis pph_window_axis(const pph_window *window, uint32_t i) {
  return (pph_axis){.input = window->input[i],
                    .kernel = window->kernel[i],
                    .stride = window->stride[i],
                    .dilation = window->dilation[i],
                    .pad_begin = window->pad_begin[i],
                    .pad_end = window->pad_end[i],
                    .output_padding = window->output_padding[i],
                    .output = window->output[i]};
}

void pph_window_set_axis(pph_window *window, uint32_t i,
                         const pph_axis *axis) {
  window->input[i] = axis->input;
  window->output[i] = axis->output;
  window->kernel[i] = axis->kernel;
  window->stride[i] = axis->stride;
  window->dilation[i] = axis->dilation;
  window->pad_begin[i] = axis->pad_begin;
  window->pad_end[i] = axis->pad_end;
  window->output_padding[i] = axis->output_padding;
}

pph_status pph_shape_find_window(const pph_graph *graph, const pph_node *node,
                                 pph_window *window, pph_error *error) {
  const pph_value *x = pph_node_find_input(graph, node, 0);
  const pph_value *w = has_weight(node) ? pph_node_find_input(graph, node, 1)
                                        : NULL;
  *window = (pph_window){0};
  PPH_TRY(pph_rule_check_window(graph, node, false, error));
  PPH_TRY(find_axes(graph, node, false, &window->axes, error));
  if (!x || !window->axes || !pph_shape_known(&x->shape))
    return pph_node_fail(node, error, PPH_UNSUPPORTED,
                         "the input's shape is not known");
  window->batch = x->shape.dims[0];
  window->in_channels = window->out_channels = x->shape.dims[1];
  window->group = 1;
  if (w) {
    window->group = pph_node_int(node, PPH_ATTR_GROUP, 1);
    PPH_TRY(out_channels(graph, node, &window->out_channels, error));
  }
  for (uint32_t i = 0; i < window->axes; i++)
    PPH_TRY(resolve_axis(node, &x->shape, w ? &w->shape : NULL, i, window,
                         error));
  return PPH_OK;
}

pph_status pph_rule_window(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  pph_window window;
  PPH_TRY(pph_rule_rank(at, 0, 3, 5));
  if (has_weight(at->node))
    PPH_TRY(pph_rule_same_types(at, 0, at->node->input_count));
  PPH_TRY(pph_shape_find_window(at->graph, at->node, &window, at->error));
  pph_shape shape = x->shape;
  shape.dims[1] = window.out_channels;
  for (uint32_t i = 0; i < window.axes; i++)
    shape.dims[i + 2] = window.output[i];
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_global_pool(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  PPH_TRY(pph_rule_rank(at, 0, 2, PPH_MAX_RANK));
  pph_shape shape = x->shape;
  for (int32_t i = 2; i < shape.rank; i++)
    shape.dims[i] = 1;
  return pph_rule_set_output(at, 0, x->type, &shape);
}

static bool is_float(pph_dtype type) {
  return type == PPH_F32 || type == PPH_F16 || type == PPH_F64;
}

pph_status pph_rule_batch_normalization(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  PPH_TRY(pph_rule_rank(at, 0, 1, PPH_MAX_RANK));
  int64_t channels = x->shape.rank > 1 ? x->shape.dims[1] : 1;
  static const char *const names[] = {"", "scale", "bias", "mean", "var"};
  for (uint32_t i = 1; i < 5; i++) {
    const pph_value *one = pph_rule_input(at, i);
    char text[96];
    /* ONNX lets them be of another float type than the input. */
    if (!is_float(one->type))
      return pph_rule_bad(at, "%s has type %s, must be a float", names[i],
                          pph_dtype_name(one->type));
    if (one->shape.rank != 1 || one->shape.dims[0] != channels)
      return pph_rule_bad(at, "%s has shape %s, must be [%lld]", names[i],
                          pph_shape_text(&one->shape, text, sizeof text),
                          (long long)channels);
  }
  return pph_rule_same(at);
}

/* DepthToSpace and SpaceToDepth */

pph_status pph_rule_check_block(const pph_graph *graph, const pph_node *node,
                                bool loading, pph_error *error) {
  uint32_t count;
  const int64_t *block = pph_node_ints(node, PPH_ATTR_BLOCKSIZE, &count);
  if (!count)
    return pph_node_fail(node, error, PPH_BAD_MODEL, "blocksize is missing");
  if (count > 3)
    return pph_node_fail(node, error, PPH_UNSUPPORTED,
                         "blocksize has %u entries, at most 3 are supported",
                         count);
  int64_t phases = 1;
  for (uint32_t i = 0; i < count; i++)
    if (block[i] < 1 || !pph_checked_mul_i64(phases, block[i], &phases))
      return pph_node_fail(node, error, PPH_BAD_MODEL,
                           "blocksize is %lld, must be at least 1",
                           (long long)block[i]);
  const char *mode = pph_node_text(node, PPH_ATTR_MODE, "DCR");
  if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "mode is \"%.40s\", must be DCR or CRD", mode);
  const pph_value *x = find_shaped(graph, node, 0, loading);
  if (!x)
    return PPH_OK;
  if (x->shape.rank != (int32_t)count + 2)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "the input has rank %d, must be %u", x->shape.rank,
                         count + 2);
  if (node->kind == PPH_NODE_DEPTH_TO_SPACE && x->shape.dims[1] >= 0 &&
      x->shape.dims[1] % phases)
    return pph_node_fail(node, error, PPH_BAD_MODEL,
                         "the input has %lld channels, must be a multiple of "
                         "%lld (blocksize %lld)",
                         (long long)x->shape.dims[1], (long long)phases,
                         (long long)block[0]);
  return PPH_OK;
}

static pph_status infer_block(const pph_shape_at *at, bool to_space) {
  const pph_value *x = pph_rule_input(at, 0);
  PPH_TRY(pph_rule_check_block(at->graph, at->node, false, at->error));
  uint32_t count;
  const int64_t *block = pph_node_ints(at->node, PPH_ATTR_BLOCKSIZE, &count);
  pph_shape shape = x->shape;
  for (uint32_t i = 0; i < count; i++) {
    int64_t *grows = to_space ? &shape.dims[i + 2] : &shape.dims[1];
    int64_t *shrinks = to_space ? &shape.dims[1] : &shape.dims[i + 2];
    if (*shrinks % block[i])
      return pph_rule_bad(at, "spatial axis %u has %lld elements, must be a "
                              "multiple of blocksize %lld",
                          i, (long long)*shrinks, (long long)block[i]);
    if (!pph_checked_mul_i64(*grows, block[i], grows))
      return pph_rule_bad(at, "the sizes overflow");
    *shrinks /= block[i];
  }
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_depth_to_space(const pph_shape_at *at) {
  return infer_block(at, true);
}

pph_status pph_rule_space_to_depth(const pph_shape_at *at) {
  return infer_block(at, false);
}
