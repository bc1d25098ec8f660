/* Import of normalizations, as means, differences and products. */
#include "base/fail.h"
#include "pte/import_call.h"

static pph_status add_binary(const pph_pte_call *call, pph_node_kind kind,
                             pph_id a, pph_id b, pph_id *id) {
  pph_id inputs[] = {a, b};
  pph_node *node;
  return pph_pte_add_node(call, kind, inputs, 2, &node, id);
}

/* The mean over the axes, which stay with length 1. */
static pph_status add_mean(const pph_pte_call *call, pph_id input,
                           const int64_t *axes, uint32_t count, pph_id *id) {
  pph_graph *graph = call->import->graph;
  pph_id inputs[] = {input, PPH_NO_VALUE};
  pph_node *node;
  PPH_TRY(pph_graph_add_ints(graph, NULL, axes, count, &inputs[1],
                             call->import->error));
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_REDUCE_MEAN, inputs, 2, &node, id));
  return pph_node_set_int(graph, node, PPH_ATTR_KEEPDIMS, 1,
                          call->import->error);
}

/* (x - mean) / sqrt(mean of squares of that + epsilon) */
static pph_status normalize(const pph_pte_call *call, pph_id x,
                            const int64_t *axes, uint32_t count,
                            uint32_t epsilon_arg, pph_id *id) {
  pph_id mean, difference, square, variance, sum, root, epsilon;
  float number;
  pph_node *node;
  PPH_TRY(pph_pte_arg_float(call, epsilon_arg, &number));
  PPH_TRY(pph_pte_add_float(call, number, &epsilon));
  PPH_TRY(add_mean(call, x, axes, count, &mean));
  PPH_TRY(add_binary(call, PPH_NODE_SUB, x, mean, &difference));
  PPH_TRY(
      add_binary(call, PPH_NODE_MUL, difference, difference, &square));
  PPH_TRY(add_mean(call, square, axes, count, &variance));
  PPH_TRY(add_binary(call, PPH_NODE_ADD, variance, epsilon, &sum));
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_SQRT, &sum, 1, &node, &root));
  return add_binary(call, PPH_NODE_DIV, difference, root, id);
}

static pph_status reshape(const pph_pte_call *call, pph_id input,
                          const int64_t *shape, uint32_t count, pph_id *id) {
  pph_id ints;
  PPH_TRY(pph_graph_add_ints(call->import->graph, NULL, shape, count, &ints,
                             call->import->error));
  return add_binary(call, PPH_NODE_RESHAPE, input, ints, id);
}

/* Times weight plus bias, each of which may be absent. `axes` dimensions of
   length 1 are put behind theirs. */
static pph_status scale(const pph_pte_call *call, uint32_t weight_arg,
                        uint32_t axes, pph_id *x) {
  static const pph_node_kind kinds[] = {PPH_NODE_MUL, PPH_NODE_ADD};
  int64_t shape[PPH_MAX_RANK] = {-1, 1, 1, 1, 1, 1, 1, 1};
  for (uint32_t i = 0; i < 2; i++) {
    pph_id factor;
    if (pph_pte_arg_is_null(call, weight_arg + i))
      continue;
    PPH_TRY(pph_pte_arg_tensor(call, weight_arg + i, &factor));
    if (axes)
      PPH_TRY(reshape(call, factor, shape, axes + 1, &factor));
    PPH_TRY(add_binary(call, kinds[i], *x, factor, x));
  }
  call->import->ids[call->result] = *x;
  return PPH_OK;
}

/* self, normalized shape, weight, bias, epsilon */
pph_status pph_pte_import_layer_norm(pph_pte_call *call, pph_node_kind kind) {
  pph_id x;
  int64_t axes[PPH_PTE_MOST_INTS];
  uint32_t count, rank = pph_pte_arg_rank(call, 0);
  PPH_TRY(pph_pte_arg_tensor(call, 0, &x));
  PPH_TRY(pph_pte_arg_ints(call, 1, axes, &count)); /* only how many */
  if (!count || count > rank)
    return pph_pte_call_fail(call, PPH_BAD_MODEL,
                             "normalizes %u of %u dimensions", count, rank);
  for (uint32_t i = 0; i < count; i++)
    axes[i] = (int64_t)rank - count + i;
  PPH_TRY(normalize(call, x, axes, count, 4, &x));
  return scale(call, 2, 0, &x);
}

/* self, weight, bias, N, C, elements per channel, groups, epsilon */
pph_status pph_pte_import_group_norm(pph_pte_call *call, pph_node_kind kind) {
  pph_id x, y, shape;
  static const int64_t axis = 2;
  int64_t parts[3] = {0, 0, -1}; /* 0 in a Reshape: as it was */
  uint32_t rank = pph_pte_arg_rank(call, 0);
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &x));
  PPH_TRY(pph_pte_arg_int(call, 6, &parts[1]));
  if (rank < 2 || parts[1] < 1)
    return pph_pte_call_fail(call, PPH_BAD_MODEL,
                             "has %d groups and %u dimensions", (int)parts[1],
                             rank);
  PPH_TRY(reshape(call, x, parts, 3, &y));
  PPH_TRY(normalize(call, y, &axis, 1, 7, &y));
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_SHAPE, &x, 1, &node, &shape));
  PPH_TRY(add_binary(call, PPH_NODE_RESHAPE, y, shape, &y));
  return scale(call, 1, rank - 2, &y);
}
