/* y = (x - mean) / sqrt(var + epsilon) * scale + bias goes into the weight and
   bias of the convolution that makes x and nothing else reads. One that stands
   alone becomes a multiplication and an addition. */
#include <math.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"
#include "pass/conv_edit.h"
#include "pass/pass.h"

/* scale[c] and shift[c] such that y = scale * x + shift. */
static bool find_line(const pph_graph *graph, const pph_node *node,
                      int64_t channels, double *scale, double *shift) {
  const float *parameters[4];
  for (uint32_t i = 0; i < 4; i++) {
    pph_tensor tensor;
    size_t count;
    if (!pph_node_find_constant(graph, node, i + 1, &tensor) ||
        tensor.type != PPH_F32 || !pph_shape_count(&tensor.shape, &count) ||
        (int64_t)count != channels)
      return false;
    parameters[i] = tensor.data;
  }
  double epsilon = (double)pph_node_float(node, PPH_ATTR_EPSILON, 1e-5f);
  for (int64_t c = 0; c < channels; c++) {
    scale[c] = parameters[0][c] / sqrt(parameters[3][c] + epsilon);
    shift[c] = parameters[1][c] - parameters[2][c] * scale[c];
    if (!isfinite(scale[c]) || !isfinite(shift[c]))
      return false;
  }
  return true;
}

static pph_status add_column(pph_graph *graph, const double *numbers,
                             int64_t channels, int32_t rank, pph_id *id,
                             pph_error *error) {
  float *data =
      pph_heap_allocate(graph->heap, (size_t)channels, sizeof *data);
  if (!data)
    return pph_fail_memory(error);
  for (int64_t c = 0; c < channels; c++)
    data[c] = (float)numbers[c];
  pph_tensor tensor = {PPH_F32, {.rank = rank - 1}, data};
  for (int32_t i = 0; i < tensor.shape.rank; i++)
    tensor.shape.dims[i] = i == 0 ? channels : 1;
  pph_status status = pph_graph_add_constant(graph, NULL, &tensor, id, error);
  pph_heap_release(graph->heap, data);
  return status;
}

static pph_status split(pph_rewrite *rewrite, pph_node *node,
                        int64_t channels, const double *scale,
                        const double *shift, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  int32_t rank = pph_node_find_input(graph, node, 0)->shape.rank;
  pph_id first[2] = {node->inputs[0]}, second[2];
  PPH_TRY(add_column(graph, scale, channels, rank, &first[1], error));
  PPH_TRY(add_column(graph, shift, channels, rank, &second[1], error));
  pph_node *mul;
  PPH_TRY(pph_rewrite_insert(rewrite, PPH_NODE_MUL, node, first, 2, &mul,
                             error));
  PPH_TRY(pph_shape_infer_node(graph, mul, error));
  second[0] = mul->outputs[0];
  node->kind = PPH_NODE_ADD;
  node->attribute_count = 0;
  return pph_rewrite_set_inputs(rewrite, node, second, 2, error);
}

static pph_status fold(pph_rewrite *rewrite, pph_node *node, int64_t channels,
                       const double *scale, const double *shift,
                       pph_error *error) {
  pph_node *conv = pph_rewrite_find_private(rewrite, node, 0);
  int64_t rows;
  if (!conv || !pph_conv_edit_supports(rewrite->graph, conv, &rows) ||
      rows != channels)
    return split(rewrite, node, channels, scale, shift, error);
  PPH_TRY(pph_conv_edit_apply(rewrite, conv, scale, shift, error));
  return pph_rewrite_take_over(rewrite, node, conv, error);
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  const pph_value *in = pph_node_find_input(rewrite->graph, node, 0);
  if (node->kind != PPH_NODE_BATCH_NORMALIZATION || in->type != PPH_F32 ||
      in->shape.rank < 2 || in->data || in->shape.dims[1] < 1)
    return PPH_OK;
  int64_t channels = in->shape.dims[1];
  double *scale = pph_heap_allocate(rewrite->graph->heap, (size_t)channels,
                                    2 * sizeof *scale);
  if (!scale)
    return pph_fail_memory(error);
  pph_status status = PPH_OK;
  if (find_line(rewrite->graph, node, channels, scale, scale + channels))
    status = fold(rewrite, node, channels, scale, scale + channels, error);
  pph_heap_release(rewrite->graph->heap, scale);
  return status;
}

pph_status pph_pass_fold_batch_normalization(pph_graph *graph,
                                             const pph_pass_options *options,
                                             pph_error *error) {
  (void)options;
  return pph_rewrite_walk(graph, visit, error);
}
