#include "pass/conv_edit.h"

#include "base/checked.h"
#include "base/fail.h"

static bool is_transposed(const pph_node *node) {
  return node->kind == PPH_NODE_CONV_TRANSPOSE;
}

static int64_t count_channels(const pph_node *node, const pph_tensor *weight) {
  return is_transposed(node)
             ? weight->shape.dims[1] * pph_node_int(node, PPH_ATTR_GROUP, 1)
             : weight->shape.dims[0];
}

bool pph_conv_edit_supports(const pph_graph *graph, const pph_node *node,
                            int64_t *channels) {
  pph_tensor weight, bias;
  size_t count;
  if ((node->kind != PPH_NODE_CONV && node->kind != PPH_NODE_CONV_TRANSPOSE) ||
      node->activation != PPH_ACTIVATION_NONE || pph_node_adds_residual(node) ||
      pph_node_int(node, PPH_ATTR_EXACT_SUMS, 0) ||
      !pph_node_find_constant(graph, node, 1, &weight) ||
      weight.type != PPH_F32 || weight.shape.rank < 3 ||
      !pph_shape_count(&weight.shape, &count) || count == 0)
    return false;
  *channels = count_channels(node, &weight);
  if (!pph_node_find_input(graph, node, 2))
    return true;
  return pph_node_find_constant(graph, node, 2, &bias) &&
         bias.type == PPH_F32 && pph_shape_count(&bias.shape, &count) &&
         (int64_t)count == *channels;
}

static pph_status add_constant(pph_graph *graph, const pph_value *like,
                               const pph_tensor *tensor, pph_id *id,
                               pph_error *error) {
  pph_origin origin = like->origin;
  const char *name = pph_graph_make_name(graph, like->name);
  if (!name)
    return pph_fail_memory(error);
  PPH_TRY(pph_graph_add_constant(graph, name, tensor, id, error));
  pph_graph_value(graph, *id)->origin = origin;
  return PPH_OK;
}

/* A transposed convolution's channel g * outer + j has its taps in rows
   [ci][j] of the inputs ci of group g. */
static void scale_transposed(const pph_tensor *weight, int64_t group,
                             const double *scale, float *to) {
  size_t inner = (size_t)(weight->shape.dims[0] / group);
  size_t outer = (size_t)weight->shape.dims[1], taps = 1;
  for (int32_t i = 2; i < weight->shape.rank; i++)
    taps *= (size_t)weight->shape.dims[i];
  const float *from = weight->data;
  size_t count = (size_t)weight->shape.dims[0] * outer * taps;
  for (size_t i = 0; i < count; i++) {
    size_t in = i / taps / outer, j = i / taps % outer;
    to[i] = (float)(from[i] * scale[in / inner * outer + j]);
  }
}

static void scale_rows(const pph_tensor *weight, size_t count,
                       const double *scale, float *to) {
  const float *from = weight->data;
  size_t row = count / (size_t)weight->shape.dims[0];
  for (size_t i = 0; i < count; i++)
    to[i] = (float)(from[i] * scale[i / row]);
}

static pph_status scale_weight(pph_graph *graph, const pph_node *node,
                               const double *scale, pph_id *id,
                               pph_error *error) {
  pph_tensor weight;
  size_t count;
  pph_node_find_constant(graph, node, 1, &weight);
  if (!pph_shape_count(&weight.shape, &count))
    return pph_fail_memory(error);
  float *data = pph_heap_allocate(graph->heap, count, sizeof *data);
  if (!data)
    return pph_fail_memory(error);
  if (is_transposed(node))
    scale_transposed(&weight, pph_node_int(node, PPH_ATTR_GROUP, 1), scale,
                     data);
  else
    scale_rows(&weight, count, scale, data);
  pph_tensor made = {PPH_F32, weight.shape, data};
  pph_status status = add_constant(graph, pph_node_find_input(graph, node, 1),
                                   &made, id, error);
  pph_heap_release(graph->heap, data);
  return status;
}

static pph_status move_bias(pph_graph *graph, const pph_node *node,
                            const double *scale, const double *shift,
                            int64_t channels, pph_id *id, pph_error *error) {
  pph_tensor bias;
  bool present = pph_node_find_constant(graph, node, 2, &bias);
  float *data = pph_heap_allocate(graph->heap, (size_t)channels, sizeof *data);
  if (!data)
    return pph_fail_memory(error);
  for (int64_t c = 0; c < channels; c++) {
    double old = present ? ((const float *)bias.data)[c] : 0;
    data[c] = (float)(old * scale[c] + shift[c]);
  }
  pph_tensor made = {PPH_F32, {1, {channels}}, data};
  pph_status status =
      add_constant(graph, pph_node_find_input(graph, node, present ? 2 : 1),
                   &made, id, error);
  pph_heap_release(graph->heap, data);
  return status;
}

static bool all_are(const double *numbers, int64_t count, double what) {
  for (int64_t i = 0; i < count; i++)
    if (numbers[i] != what)
      return false;
  return true;
}

pph_status pph_conv_edit_apply(pph_rewrite *rewrite, pph_node *node,
                               const double *scale, const double *shift,
                               pph_error *error) {
  pph_graph *graph = rewrite->graph;
  pph_tensor weight;
  pph_node_find_constant(graph, node, 1, &weight);
  int64_t channels = count_channels(node, &weight);
  bool scales = !all_are(scale, channels, 1);
  bool has_bias = pph_node_find_input(graph, node, 2) != NULL;
  pph_id ids[3] = {node->inputs[0], node->inputs[1],
                   has_bias ? node->inputs[2] : PPH_NO_VALUE};
  if (scales)
    PPH_TRY(scale_weight(graph, node, scale, &ids[1], error));
  bool moves = !all_are(shift, channels, 0) || (has_bias && scales);
  if (moves)
    PPH_TRY(move_bias(graph, node, scale, shift, channels, &ids[2], error));
  uint32_t count = ids[2] == PPH_NO_VALUE ? 2 : 3;
  return pph_rewrite_set_inputs(rewrite, node, ids, count, error);
}
