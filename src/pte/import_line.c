/* Import of operators that go through each line of one dimension. */
#include "base/fail.h"
#include "pte/import_call.h"

static pph_status read_axis(const pph_pte_call *call, uint32_t arg,
                            int64_t *axis) {
  PPH_TRY(pph_pte_arg_int(call, arg, axis));
  return pph_pte_find_axis(call, pph_pte_arg_rank(call, 0), axis);
}

pph_status pph_pte_import_softmax(pph_pte_call *call, pph_node_kind kind) {
  pph_id input;
  int64_t axis;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &input));
  PPH_TRY(read_axis(call, 1, &axis));
  PPH_TRY(pph_pte_add_result(call, kind, &input, 1, &node));
  return pph_node_set_int(call->import->graph, node, PPH_ATTR_AXIS, axis,
                          call->import->error);
}

/* self, dim, dtype or null */
pph_status pph_pte_import_cumsum(pph_pte_call *call, pph_node_kind kind) {
  pph_id inputs[2];
  int64_t axis;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  PPH_TRY(read_axis(call, 1, &axis));
  if (!pph_pte_arg_is_null(call, 2))
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "a dtype for the result is not supported");
  PPH_TRY(pph_graph_add_ints(call->import->graph, NULL, &axis, 1, &inputs[1],
                             call->import->error));
  return pph_pte_add_result(call, kind, inputs, 2, &node);
}

/* The first `count` (a vector of one) of each line, and where they were: the
   call's two results. */
static pph_status add_sorted(const pph_pte_call *call, pph_node_kind kind,
                             pph_id input, pph_id count, int64_t axis,
                             bool largest) {
  const pph_pte_importer *import = call->import;
  pph_id inputs[] = {input, count}, outputs[2];
  pph_node *node;
  if (call->all_count < call->arg_count + 2)
    return pph_pte_call_fail(call, PPH_BAD_MODEL, "has no two results");
  PPH_TRY(pph_graph_add_node(import->graph, kind, NULL, NULL, &node,
                             import->error));
  PPH_TRY(
      pph_node_set_inputs(import->graph, node, inputs, 2, import->error));
  for (int i = 0; i < 2; i++) {
    PPH_TRY(
        pph_graph_add_value(import->graph, NULL, &outputs[i], import->error));
    import->ids[call->args[call->arg_count + (uint32_t)i]] = outputs[i];
  }
  PPH_TRY(
      pph_node_set_outputs(import->graph, node, outputs, 2, import->error));
  PPH_TRY(pph_node_set_int(import->graph, node, PPH_ATTR_LARGEST, largest,
                           import->error));
  return pph_node_set_int(import->graph, node, PPH_ATTR_AXIS, axis,
                          import->error);
}

/* self, dim, descending: all of each line */
pph_status pph_pte_import_sort(pph_pte_call *call, pph_node_kind kind) {
  pph_id input, gather[2], count;
  int64_t axis;
  bool descending;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &input));
  PPH_TRY(read_axis(call, 1, &axis));
  PPH_TRY(pph_pte_arg_bool(call, 2, &descending));
  PPH_TRY(
      pph_pte_add_node(call, PPH_NODE_SHAPE, &input, 1, &node, &gather[0]));
  PPH_TRY(pph_graph_add_ints(call->import->graph, NULL, &axis, 1, &gather[1],
                             call->import->error));
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_GATHER, gather, 2, &node, &count));
  return add_sorted(call, kind, input, count, axis, descending);
}

/* self, k, dim, largest, sorted: here they always are */
pph_status pph_pte_import_topk(pph_pte_call *call, pph_node_kind kind) {
  pph_id input, count;
  int64_t axis, most;
  bool largest;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &input));
  PPH_TRY(pph_pte_arg_int(call, 1, &most));
  PPH_TRY(read_axis(call, 2, &axis));
  PPH_TRY(pph_pte_arg_bool(call, 3, &largest));
  PPH_TRY(pph_graph_add_ints(call->import->graph, NULL, &most, 1, &count,
                             call->import->error));
  return add_sorted(call, kind, input, count, axis, largest);
}
