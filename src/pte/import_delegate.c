/* Import of a call of the XNNPACK delegate: its payload's nodes take the call's
   place. */
#include "base/fail.h"
#include "pte/import_call.h"
#include "pte/xnn_import.h"

/* The delegate sees dimensions in the order in which they lie in memory; our
   values have the logical order. `inverse` leads back from the first. */
static pph_status reorder(pph_pte_importer *import,
                          const pph_pte_tensor *tensor, bool inverse,
                          pph_id *id) {
  int64_t perm[PPH_MAX_RANK];
  bool moves = false;
  pph_node *node;
  for (uint32_t i = 0; i < tensor->dim_order.count; i++) {
    uint8_t from = tensor->dim_order.at[i];
    perm[inverse ? from : i] = inverse ? (int64_t)i : from;
    moves |= from != i;
  }
  if (!moves)
    return PPH_OK;
  PPH_TRY(pph_graph_insert(import->graph, PPH_NODE_TRANSPOSE, NULL, id, 1,
                           &node, import->error));
  *id = node->outputs[0];
  return pph_node_set_ints(import->graph, node, PPH_ATTR_PERM, perm,
                           tensor->dim_order.count, import->error);
}

/* NULL for an argument that is no tensor. */
static const pph_pte_tensor *find_tensor(const pph_pte_importer *import,
                                         const pph_pte_delegate_call *call,
                                         uint32_t arg) {
  const pph_flat_choice *value =
      &import->plan->values.at[call->args.at[arg]].val;
  return value->type == PPH_PTE_TENSOR ? value->value : NULL;
}

/* What the payload reads must have been written before. */
static pph_status require_inputs(const pph_pte_importer *import,
                                 const pph_payload_index *index,
                                 const pph_id *arguments, uint32_t count) {
  for (uint32_t i = 0; i < index->count; i++) {
    const pph_payload_tensor *tensor = index->slots[i].tensor;
    if (tensor->flags == PPH_PAYLOAD_INPUT && tensor->external_id < count &&
        arguments[tensor->external_id] == PPH_NO_VALUE)
      return pph_fail(import->error, PPH_UNSUPPORTED, "payload",
                      "its argument %u is no tensor with contents",
                      tensor->external_id);
  }
  return PPH_OK;
}

static pph_status import_payload(pph_pte_importer *import,
                                 const pph_pte_delegate_call *call,
                                 pph_id *arguments) {
  pph_graph *graph = import->graph;
  pph_payload payload;
  pph_payload_index index;
  pph_pte_bytes bytes = pph_pte_delegate_payload(
      import->pte, &import->plan->delegates.at[call->delegate_index]);
  PPH_TRY(pph_payload_read(bytes, &graph->arena, &payload, import->error));
  PPH_TRY(
      pph_payload_check(&payload, &graph->arena, &index, import->error));
  PPH_TRY(require_inputs(import, &index, arguments, call->args.count));
  return pph_payload_import(&index, import->pte, graph, arguments,
                            call->args.count, import->error);
}

pph_status pph_pte_import_delegate(pph_pte_importer *import,
                                   const pph_pte_delegate_call *call) {
  uint32_t count = call->args.count;
  pph_id *arguments = pph_arena_allocate(
      &import->graph->arena, 2 * (size_t)count + 1, sizeof *arguments);
  if (!arguments)
    return pph_fail_memory(import->error);
  pph_id *before = arguments + count;
  for (uint32_t i = 0; i < count; i++) {
    const pph_pte_tensor *tensor = find_tensor(import, call, i);
    arguments[i] = tensor ? import->ids[call->args.at[i]] : PPH_NO_VALUE;
    if (arguments[i] != PPH_NO_VALUE)
      PPH_TRY(reorder(import, tensor, false, &arguments[i]));
    before[i] = arguments[i];
  }
  PPH_TRY(import_payload(import, call, arguments));
  for (uint32_t i = 0; i < count; i++) {
    const pph_pte_tensor *tensor = find_tensor(import, call, i);
    if (!tensor || arguments[i] == before[i])
      continue;
    PPH_TRY(reorder(import, tensor, true, &arguments[i]));
    import->ids[call->args.at[i]] = arguments[i];
  }
  return PPH_OK;
}
