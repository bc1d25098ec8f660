/* Adding, subtracting, multiplying or dividing what a convolution gives by one
   constant per channel goes into the convolution's own constants. */
#include <math.h>

#include "base/fail.h"
#include "pass/conv_edit.h"
#include "pass/match.h"
#include "pass/pass.h"

/* A node of these kinds maps y to scale * y + shift; k is the constant. */
static bool find_line(pph_node_kind kind, double k, bool right, double *scale,
                      double *shift) {
  *scale = 1;
  *shift = 0;
  switch ((int)kind) {
  case PPH_NODE_ADD:
    *shift = k;
    break;
  case PPH_NODE_SUB:
    *scale = right ? 1 : -1;
    *shift = right ? -k : k;
    break;
  case PPH_NODE_MUL:
    *scale = k;
    break;
  case PPH_NODE_DIV:
    *scale = 1 / k;
    return right && isfinite(*scale) && isfinite(k);
  default:
    return false;
  }
  return isfinite(k);
}

static bool find_lines(const pph_node *node, const float *constant,
                       size_t step, bool right, int64_t channels,
                       double *scale) {
  for (int64_t c = 0; c < channels; c++)
    if (!find_line(node->kind, constant[(size_t)c * step], right, &scale[c],
                   &scale[c + channels]))
      return false;
  return true;
}

static pph_status fuse(pph_rewrite *rewrite, pph_node *node, pph_node *conv,
                       uint32_t slot, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  int64_t channels;
  size_t step;
  if (!pph_conv_edit_supports(graph, conv, &channels) ||
      !pph_match_same(graph, node->inputs[slot], node->outputs[0]))
    return PPH_OK;
  int32_t rank = pph_graph_value(graph, node->outputs[0])->shape.rank;
  const float *constant = pph_match_per_channel(graph, node, 1 - slot, rank,
                                                channels, &step);
  if (!constant)
    return PPH_OK;
  double *scale = pph_heap_allocate(graph->heap, (size_t)channels,
                                    2 * sizeof *scale);
  if (!scale)
    return pph_fail_memory(error);
  pph_status status = PPH_OK;
  if (find_lines(node, constant, step, slot == 0, channels, scale)) {
    status = pph_conv_edit_apply(rewrite, conv, scale, scale + channels,
                                 error);
    if (status == PPH_OK)
      status = pph_rewrite_take_over(rewrite, node, conv, error);
  }
  pph_heap_release(graph->heap, scale);
  return status;
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  if (node->input_count != 2 || node->activation != PPH_ACTIVATION_NONE ||
      (node->kind != PPH_NODE_ADD && node->kind != PPH_NODE_SUB &&
       node->kind != PPH_NODE_MUL && node->kind != PPH_NODE_DIV))
    return PPH_OK;
  for (uint32_t slot = 0; slot < 2; slot++) {
    pph_node *conv = pph_rewrite_find_private(rewrite, node, slot);
    if (conv && pph_node_find_input(rewrite->graph, node, 1 - slot)->data)
      return fuse(rewrite, node, conv, slot, error);
  }
  return PPH_OK;
}

pph_status pph_pass_fuse_bias(pph_graph *graph,
                              const pph_pass_options *options,
                              pph_error *error) {
  (void)options;
  return pph_rewrite_walk(graph, visit, error);
}
