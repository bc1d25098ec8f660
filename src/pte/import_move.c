/* Import of operators that move elements, and of those on shapes. */
#include "base/fail.h"
#include "pte/import_call.h"

/* A list of numbers, some of which the program computes, as one vector. */
static pph_status add_int_vector(const pph_pte_call *call,
                                 const pph_pte_int_list *list, pph_id *id) {
  const pph_pte_importer *import = call->import;
  pph_id parts[PPH_PTE_MOST_INTS];
  pph_node *node;
  uint32_t count = list->items.count;
  if (!count || count > PPH_PTE_MOST_INTS)
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "a shape of %u dimensions is not supported",
                             count);
  for (uint32_t i = 0; i < count; i++) {
    int64_t value = list->items.at[i];
    const pph_pte_int *number = import->plan->values.at[value].val.value;
    parts[i] = import->ids[value];
    if (parts[i] == PPH_NO_VALUE)
      PPH_TRY(pph_graph_add_ints(import->graph, NULL, &number->int_val, 1,
                                 &parts[i], import->error));
  }
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_CONCAT, parts, count, &node, id));
  return pph_node_set_int(import->graph, node, PPH_ATTR_AXIS, 0,
                          import->error);
}

static bool is_computed(const pph_pte_call *call,
                        const pph_pte_int_list *list) {
  for (uint32_t i = 0; i < list->items.count; i++)
    if (call->import->ids[list->items.at[i]] != PPH_NO_VALUE)
      return true;
  return false;
}

pph_status pph_pte_import_reshape(pph_pte_call *call, pph_node_kind kind) {
  pph_graph *graph = call->import->graph;
  pph_error *error = call->import->error;
  const pph_flat_choice *choice = pph_pte_arg(call, 1);
  pph_id inputs[2];
  int64_t shape[PPH_PTE_MOST_INTS];
  uint32_t count;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  if (choice->type == PPH_PTE_INT_LIST && is_computed(call, choice->value)) {
    PPH_TRY(add_int_vector(call, choice->value, &inputs[1]));
  } else {
    PPH_TRY(pph_pte_arg_ints(call, 1, shape, &count));
    PPH_TRY(pph_graph_add_ints(graph, NULL, shape, count, &inputs[1], error));
  }
  return pph_pte_add_result(call, kind, inputs, 2, &node);
}

pph_status pph_pte_import_permute(pph_pte_call *call, pph_node_kind kind) {
  pph_id input;
  int64_t perm[PPH_PTE_MOST_INTS];
  uint32_t count;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &input));
  PPH_TRY(pph_pte_arg_ints(call, 1, perm, &count));
  for (uint32_t i = 0; i < count; i++)
    PPH_TRY(pph_pte_find_axis(call, count, &perm[i]));
  PPH_TRY(pph_pte_add_result(call, kind, &input, 1, &node));
  return pph_node_set_ints(call->import->graph, node, PPH_ATTR_PERM, perm,
                           count, call->import->error);
}

/* One dimension more or less. */
pph_status pph_pte_import_axis(pph_pte_call *call, pph_node_kind kind) {
  pph_id inputs[2];
  int64_t axis;
  pph_node *node;
  uint32_t rank = pph_pte_arg_rank(call, 0) + (kind == PPH_NODE_UNSQUEEZE);
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  PPH_TRY(pph_pte_arg_int(call, 1, &axis));
  PPH_TRY(pph_pte_find_axis(call, rank, &axis));
  PPH_TRY(pph_graph_add_ints(call->import->graph, NULL, &axis, 1, &inputs[1],
                             call->import->error));
  return pph_pte_add_result(call, kind, inputs, 2, &node);
}

pph_status pph_pte_import_cat(pph_pte_call *call, pph_node_kind kind) {
  enum { MOST = 64 };
  const pph_flat_choice *choice = pph_pte_arg(call, 0);
  const pph_pte_tensor_list *list = choice->value;
  pph_id inputs[MOST];
  int64_t axis;
  pph_node *node;
  if (choice->type != PPH_PTE_TENSOR_LIST || !list->items.count ||
      list->items.count > MOST)
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "needs a list of 1 to %d tensors", MOST);
  for (uint32_t i = 0; i < list->items.count; i++) {
    pph_pte_call item = *call;
    item.args = &list->items.at[i];
    PPH_TRY(pph_pte_arg_tensor(&item, 0, &inputs[i]));
    if (!i)
      PPH_TRY(pph_pte_arg_int(call, 1, &axis));
    if (!i)
      PPH_TRY(pph_pte_find_axis(call, pph_pte_arg_rank(&item, 0), &axis));
  }
  PPH_TRY(pph_pte_add_result(call, kind, inputs, list->items.count, &node));
  return pph_node_set_int(call->import->graph, node, PPH_ATTR_AXIS, axis,
                          call->import->error);
}

/* self, dim, start or null, end or null, step */
pph_status pph_pte_import_slice(pph_pte_call *call, pph_node_kind kind) {
  pph_id inputs[5];
  static const int64_t absent[2] = {0, INT64_MAX};
  pph_graph *graph = call->import->graph;
  pph_error *error = call->import->error;
  int64_t axis;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  PPH_TRY(pph_pte_arg_int(call, 1, &axis));
  PPH_TRY(pph_pte_find_axis(call, pph_pte_arg_rank(call, 0), &axis));
  for (uint32_t i = 0; i < 2; i++) /* starts, ends */
    if (pph_pte_arg_is_null(call, 2 + i))
      PPH_TRY(pph_graph_add_ints(graph, NULL, &absent[i], 1, &inputs[1 + i],
                                 error));
    else
      PPH_TRY(pph_pte_arg_number(call, 2 + i, &inputs[1 + i]));
  PPH_TRY(pph_graph_add_ints(graph, NULL, &axis, 1, &inputs[3], error));
  PPH_TRY(pph_pte_arg_number(call, 4, &inputs[4]));
  return pph_pte_add_result(call, kind, inputs, 5, &node);
}

pph_status pph_pte_import_shuffle(pph_pte_call *call, pph_node_kind kind) {
  pph_graph *graph = call->import->graph;
  pph_error *error = call->import->error;
  pph_id input;
  int64_t block[2];
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &input));
  if (pph_pte_arg_rank(call, 0) != 4)
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "an input of %u dimensions is not supported, "
                             "only 4 are",
                             pph_pte_arg_rank(call, 0));
  PPH_TRY(pph_pte_arg_int(call, 1, &block[0]));
  block[1] = block[0];
  PPH_TRY(pph_pte_add_result(call, kind, &input, 1, &node));
  PPH_TRY(pph_node_set_text(graph, node, PPH_ATTR_MODE, "CRD", error));
  return pph_node_set_ints(graph, node, PPH_ATTR_BLOCKSIZE, block, 2, error);
}

/* self, dim, index */
pph_status pph_pte_import_select(pph_pte_call *call, pph_node_kind kind) {
  const pph_pte_importer *import = call->import;
  pph_id inputs[2], index, empty;
  int64_t axis;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  PPH_TRY(pph_pte_arg_int(call, 1, &axis));
  PPH_TRY(pph_pte_find_axis(call, pph_pte_arg_rank(call, 0), &axis));
  PPH_TRY(pph_pte_arg_number(call, 2, &index));
  PPH_TRY(
      pph_graph_add_ints(import->graph, NULL, NULL, 0, &empty, import->error));
  pph_id scalar[] = {index, empty};
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_RESHAPE, scalar, 2, &node,
                           &inputs[1]));
  PPH_TRY(pph_pte_add_result(call, kind, inputs, 2, &node));
  return pph_node_set_int(import->graph, node, PPH_ATTR_AXIS, axis,
                          import->error);
}

/* to, from, index: from becomes row `index` of to. A loop makes rows in their
   order, each behind those before. */
pph_status pph_pte_import_row(pph_pte_call *call, pph_node_kind kind) {
  static const int64_t axis = 0;
  pph_pte_importer *import = call->import;
  pph_id *to = &import->ids[call->args[0]], axes, parts[2], inputs[2];
  int64_t index;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 1, &inputs[0]));
  PPH_TRY(pph_pte_arg_int(call, 2, &index));
  const pph_node *before = NULL;
  if (*to != PPH_NO_VALUE)
    before = pph_graph_value(import->graph, *to)->producer;
  int64_t rows = before && before->kind == PPH_NODE_UNSQUEEZE ? 1
                 : before && before->kind == kind ? before->input_count
                                                  : 0;
  if (index != 0 && (!rows || index < rows))
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "row %lld is written out of order",
                             (long long)index);
  PPH_TRY(pph_graph_add_ints(import->graph, NULL, &axis, 1, &axes,
                             import->error));
  inputs[1] = axes;
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_UNSQUEEZE, inputs, 2, &node,
                           &parts[1]));
  if (index == 0) {
    *to = parts[1];
    return PPH_OK;
  }
  parts[0] = *to;
  PPH_TRY(pph_pte_add_node(call, kind, parts, 2, &node, to));
  return pph_node_set_int(import->graph, node, PPH_ATTR_AXIS, 0,
                          import->error);
}

/* weight, indices; the others matter in training only */
pph_status pph_pte_import_embedding(pph_pte_call *call, pph_node_kind kind) {
  pph_id inputs[2];
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  PPH_TRY(pph_pte_arg_tensor(call, 1, &inputs[1]));
  return pph_pte_add_result(call, kind, inputs, 2, &node);
}

/* A copy in another order in memory, which means nothing here, or of another
   type: that of the result. */
pph_status pph_pte_import_copy(pph_pte_call *call, pph_node_kind kind) {
  const pph_pte_importer *import = call->import;
  const pph_flat_choice *to = &import->plan->values.at[call->result].val;
  pph_id input;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &input));
  if (to->type != PPH_PTE_TENSOR)
    return pph_pte_call_fail(call, PPH_BAD_MODEL, "has no tensor as result");
  const pph_pte_tensor *tensor = to->value;
  PPH_TRY(pph_pte_add_result(call, kind, &input, 1, &node));
  return pph_node_set_int(import->graph, node, PPH_ATTR_TO,
                          pph_scalar_type_find(tensor->scalar_type)->type,
                          import->error);
}

/* self, source: self's elements become source's, of self's type and sizes.
   Another value from here on, so nothing is written in place. */
pph_status pph_pte_import_overwrite(pph_pte_call *call, pph_node_kind kind) {
  const pph_pte_importer *import = call->import;
  const pph_flat_choice *choice = pph_pte_arg(call, 0);
  const pph_pte_tensor *to = choice->value;
  pph_id source, shape, inputs[2];
  pph_node *node;
  if (choice->type != PPH_PTE_TENSOR)
    return pph_pte_call_fail(call, PPH_BAD_MODEL, "writes no tensor");
  PPH_TRY(pph_pte_arg_tensor(call, 1, &source));
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  PPH_TRY(
      pph_pte_add_node(call, PPH_NODE_SHAPE, inputs, 1, &node, &shape));
  inputs[0] = source;
  inputs[1] = shape;
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_EXPAND, inputs, 2, &node, inputs));
  PPH_TRY(pph_pte_add_result(call, kind, inputs, 1, &node));
  return pph_node_set_int(import->graph, node, PPH_ATTR_TO,
                          pph_scalar_type_find(to->scalar_type)->type,
                          import->error);
}
