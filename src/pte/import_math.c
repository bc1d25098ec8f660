/* Import of operators that compute. */
#include "base/fail.h"
#include "pte/import_call.h"

pph_status pph_pte_import_unary(pph_pte_call *call, pph_node_kind kind) {
  pph_id input;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &input));
  return pph_pte_add_result(call, kind, &input, 1, &node);
}

pph_status pph_pte_import_binary(pph_pte_call *call, pph_node_kind kind) {
  pph_id inputs[2];
  pph_node *node;
  for (uint32_t i = 0; i < 2; i++) {
    PPH_TRY(pph_pte_arg_tensor(call, i, &inputs[i]));
    pph_dtype type =
        pph_graph_value(call->import->graph, inputs[i])->type;
    if (type && type != PPH_F32)
      return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                               "argument %u has type %s, only f32 is "
                               "supported",
                               i, pph_dtype_name(type));
  }
  return pph_pte_add_result(call, kind, inputs, 2, &node);
}

/* a + alpha * b */
pph_status pph_pte_import_scaled(pph_pte_call *call, pph_node_kind kind) {
  float alpha;
  PPH_TRY(pph_pte_arg_float(call, 2, &alpha));
  if (alpha < 1 || alpha > 1)
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "alpha is %g, only 1 is supported",
                             (double)alpha);
  return pph_pte_import_binary(call, kind);
}

pph_status pph_pte_import_clamp(pph_pte_call *call, pph_node_kind kind) {
  pph_id inputs[3] = {PPH_NO_VALUE, PPH_NO_VALUE, PPH_NO_VALUE};
  pph_node *node;
  float bound;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  for (uint32_t i = 1; i < 3; i++) {
    if (pph_pte_arg_is_null(call, i))
      continue;
    PPH_TRY(pph_pte_arg_float(call, i, &bound));
    PPH_TRY(pph_pte_add_float(call, bound, &inputs[i]));
  }
  return pph_pte_add_result(call, kind, inputs, 3, &node);
}

pph_status pph_pte_import_leaky(pph_pte_call *call, pph_node_kind kind) {
  pph_id input;
  pph_node *node;
  float slope;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &input));
  PPH_TRY(pph_pte_arg_float(call, 1, &slope));
  PPH_TRY(pph_pte_add_result(call, kind, &input, 1, &node));
  return pph_node_set_float(call->import->graph, node, PPH_ATTR_ALPHA, slope,
                            call->import->error);
}

/* self, dims, keepdim, dtype */
pph_status pph_pte_import_reduce(pph_pte_call *call, pph_node_kind kind) {
  pph_graph *graph = call->import->graph;
  pph_error *error = call->import->error;
  pph_id inputs[2];
  int64_t dims[PPH_PTE_MOST_INTS];
  uint32_t count = 0, used = 1;
  bool keeps;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &inputs[0]));
  if (!pph_pte_arg_is_null(call, 1))
    PPH_TRY(pph_pte_arg_ints(call, 1, dims, &count));
  PPH_TRY(pph_pte_arg_bool(call, 2, &keeps));
  if (!pph_pte_arg_is_null(call, 3))
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "a dtype for the result is not supported");
  for (uint32_t i = 0; i < count; i++)
    PPH_TRY(
        pph_pte_find_axis(call, pph_pte_arg_rank(call, 0), &dims[i]));
  if (count)
    PPH_TRY(pph_graph_add_ints(graph, NULL, dims, count, &inputs[used++],
                               error));
  PPH_TRY(pph_pte_add_result(call, kind, inputs, used, &node));
  return pph_node_set_int(graph, node, PPH_ATTR_KEEPDIMS, keeps, error);
}

typedef struct window {
  int64_t stride[PPH_PTE_MOST_INTS], pad[2 * PPH_PTE_MOST_INTS],
      dilation[PPH_PTE_MOST_INTS], output_padding[PPH_PTE_MOST_INTS], groups;
  uint32_t axes;
  bool transposed;
} window;

/* Arguments 3 on: stride, padding, dilation, transposed, output padding,
   groups. */
static pph_status read_window(const pph_pte_call *call, window *w) {
  int64_t *const lists[] = {w->stride, w->pad, w->dilation, w->output_padding};
  static const uint32_t args[] = {3, 4, 5, 7};
  uint32_t rank = pph_pte_arg_rank(call, 0);
  w->axes = rank > 2 ? rank - 2 : 0;
  for (int i = 0; i < 4; i++) {
    uint32_t count;
    PPH_TRY(pph_pte_arg_ints(call, args[i], lists[i], &count));
    if (count != w->axes || !count)
      return pph_pte_call_fail(call, PPH_BAD_MODEL,
                               "argument %u has %u items for an input of %u "
                               "dimensions",
                               args[i], count, rank);
  }
  for (uint32_t i = 0; i < w->axes; i++)
    w->pad[w->axes + i] = w->pad[i];
  PPH_TRY(pph_pte_arg_bool(call, 6, &w->transposed));
  return pph_pte_arg_int(call, 8, &w->groups);
}

pph_status pph_pte_import_conv(pph_pte_call *call, pph_node_kind kind) {
  pph_graph *graph = call->import->graph;
  pph_error *error = call->import->error;
  pph_id inputs[3];
  pph_node *node;
  window w;
  uint32_t used = pph_pte_arg_is_null(call, 2) ? 2 : 3;
  for (uint32_t i = 0; i < used; i++)
    PPH_TRY(pph_pte_arg_tensor(call, i, &inputs[i]));
  PPH_TRY(read_window(call, &w));
  PPH_TRY(pph_pte_add_result(
      call, w.transposed ? PPH_NODE_CONV_TRANSPOSE : kind, inputs, used,
      &node));
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_STRIDES, w.stride, w.axes,
                            error));
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_PADS, w.pad, 2 * w.axes,
                            error));
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_DILATIONS, w.dilation,
                            w.axes, error));
  if (w.transposed)
    PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_OUTPUT_PADDING,
                              w.output_padding, w.axes, error));
  return pph_node_set_int(graph, node, PPH_ATTR_GROUP, w.groups, error);
}
