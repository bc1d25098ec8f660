/* Import of resizing. */
#include "base/fail.h"
#include "pte/import_call.h"

static pph_status read_scales(const pph_pte_call *call, uint32_t arg,
                              float *scales) {
  const pph_flat_choice *choice = pph_pte_arg(call, arg);
  const pph_pte_double_list *list = choice->value;
  if (choice->type != PPH_PTE_DOUBLE_LIST || list->items.count != 2)
    return pph_pte_call_fail(call, PPH_BAD_MODEL,
                             "needs a list of 2 sizes or of 2 scales");
  scales[2] = (float)list->items.at[0];
  scales[3] = (float)list->items.at[1];
  return PPH_OK;
}

/* The target sizes, of all four dimensions; N and C from the input's shape. */
static pph_status add_sizes(const pph_pte_call *call, pph_id input,
                            pph_id *sizes) {
  pph_graph *graph = call->import->graph;
  pph_error *error = call->import->error;
  int64_t target[PPH_PTE_MOST_INTS], first[] = {0, 1};
  pph_id shape, parts[2], gather[2];
  uint32_t count;
  pph_node *node;
  PPH_TRY(pph_pte_arg_ints(call, 1, target, &count));
  if (count != 2)
    return pph_pte_call_fail(call, PPH_BAD_MODEL, "has %u sizes, needs 2",
                             count);
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_SHAPE, &input, 1, &node, &shape));
  gather[0] = shape;
  PPH_TRY(pph_graph_add_ints(graph, NULL, first, 2, &gather[1], error));
  PPH_TRY(
      pph_pte_add_node(call, PPH_NODE_GATHER, gather, 2, &node, &parts[0]));
  PPH_TRY(pph_graph_add_ints(graph, NULL, target, 2, &parts[1], error));
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_CONCAT, parts, 2, &node, sizes));
  return pph_node_set_int(graph, node, PPH_ATTR_AXIS, 0, error);
}

/* self, sizes or null, ..., scales or null in `scales_arg` */
static pph_status resize(const pph_pte_call *call, pph_node_kind kind,
                         uint32_t scales_arg, pph_node **node) {
  pph_graph *graph = call->import->graph;
  pph_id inputs[4] = {PPH_NO_VALUE, PPH_NO_VALUE, PPH_NO_VALUE, PPH_NO_VALUE};
  float scales[] = {1, 1, 1, 1};
  uint32_t used = 3;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  if (pph_pte_arg_is_null(call, 1)) {
    pph_tensor tensor = {PPH_F32, {1, {4}}, scales};
    PPH_TRY(read_scales(call, scales_arg, scales));
    PPH_TRY(pph_graph_add_constant(graph, NULL, &tensor, &inputs[2],
                                   call->import->error));
  } else {
    PPH_TRY(add_sizes(call, inputs[0], &inputs[3]));
    used = 4;
  }
  return pph_pte_add_result(call, kind, inputs, used, node);
}

static pph_status set_texts(const pph_pte_call *call, pph_node *node,
                            const char *mode, const char *places) {
  pph_graph *graph = call->import->graph;
  PPH_TRY(pph_node_set_text(graph, node, PPH_ATTR_MODE, mode,
                            call->import->error));
  return pph_node_set_text(graph, node,
                           PPH_ATTR_COORDINATE_TRANSFORMATION_MODE, places,
                           call->import->error);
}

pph_status pph_pte_import_nearest(pph_pte_call *call, pph_node_kind kind) {
  pph_node *node;
  PPH_TRY(resize(call, kind, 2, &node));
  PPH_TRY(set_texts(call, node, "nearest", "asymmetric"));
  return pph_node_set_text(call->import->graph, node, PPH_ATTR_NEAREST_MODE,
                           "floor", call->import->error);
}

/* self, sizes or null, whether corners stay, scales or null */
pph_status pph_pte_import_bilinear(pph_pte_call *call, pph_node_kind kind) {
  bool corners;
  pph_node *node;
  PPH_TRY(pph_pte_arg_bool(call, 2, &corners));
  PPH_TRY(resize(call, kind, 3, &node));
  return set_texts(call, node, "linear",
                   corners ? "align_corners" : "half_pixel");
}
