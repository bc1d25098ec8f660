/* Operators that lined their operands up in other ways before opset 7, and
   those that are several nodes now. */
#include "base/fail.h"
#include "onnx/import.h"

/* Input 1 gets `count` dimensions of 1 from `first` on. */
static pph_status unsqueeze(pph_import_op *op, int64_t first, int64_t count) {
  int64_t axes[PPH_MAX_RANK];
  pph_id ids[2] = {op->inputs[1]}, output;
  for (int64_t i = 0; i < count; i++)
    axes[i] = first + i;
  PPH_TRY(pph_graph_add_ints(op->import->graph, NULL, axes, (size_t)count,
                             &ids[1], op->import->error));
  PPH_TRY(pph_import_insert(op, PPH_NODE_UNSQUEEZE, ids, 2, NULL, &output));
  pph_import_set_input(op, 1, output);
  return PPH_OK;
}

static int32_t rank_of(const pph_import_op *op, uint32_t slot) {
  return pph_import_find_fact(op->import, pph_import_input(op, slot)).rank;
}

/* B's dimensions begin at A's dimension `axis`: NumPy's rule after B got
   dimensions of 1 behind. */
static pph_status line_up(pph_import_op *op, int64_t axis) {
  int32_t a = rank_of(op, 0), b = rank_of(op, 1);
  if (b == 0)
    return PPH_OK;
  if (a < 0 || b < 0)
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "attribute \"axis\" with operands of unknown rank "
                           "is not supported");
  if (axis < 0)
    axis += a;
  if (axis < 0 || axis > a - b)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "axis is %lld, must be 0 to %d for operands of "
                           "rank %d and %d",
                           (long long)axis, a - b, a, b);
  int64_t behind = a - b - axis;
  return behind == 0 ? PPH_OK : unsqueeze(op, b, behind);
}

pph_status pph_convert_broadcast(pph_import_op *op) {
  int64_t broadcast = 0, axis = 0;
  bool has_broadcast, has_axis;
  PPH_TRY(pph_import_get_int(op, "broadcast", &broadcast, &has_broadcast));
  PPH_TRY(pph_import_get_int(op, "axis", &axis, &has_axis));
  if ((has_broadcast || has_axis) && op->import->opset >= 7)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attributes \"broadcast\" and \"axis\" are there "
                           "until opset 6");
  if (broadcast && has_axis && op->input_count == 2 &&
      op->inputs[0] != PPH_NO_VALUE && op->inputs[1] != PPH_NO_VALUE)
    PPH_TRY(line_up(op, axis));
  return pph_import_emit(op, NULL);
}

/* Until opset 6 the slope is one number per channel: [C] for [N,C,...]. */
pph_status pph_convert_prelu(pph_import_op *op) {
  if (op->import->opset >= 7 || op->input_count != 2 || rank_of(op, 1) != 1)
    return pph_import_emit(op, NULL);
  const pph_value *slope = pph_graph_value(op->import->graph, op->inputs[1]);
  int32_t rank = rank_of(op, 0);
  if (slope->has_rank && slope->shape.dims[0] == 1)
    return pph_import_emit(op, NULL);
  if (rank < 0)
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "a slope per channel for an input of unknown rank "
                           "is not supported");
  if (rank > 2)
    PPH_TRY(unsqueeze(op, 1, rank - 2));
  return pph_import_emit(op, NULL);
}

/* Sum of any number: a chain of Add. */
pph_status pph_convert_sum(pph_import_op *op) {
  if (op->input_count == 1)
    return pph_import_emit_bare(op, PPH_NODE_IDENTITY, NULL);
  for (uint32_t i = 0; i < op->input_count; i++)
    if (op->inputs[i] == PPH_NO_VALUE)
      return pph_import_fail(op, PPH_BAD_MODEL,
                             "input %u is omitted, must be there", i);
  pph_id pair[2] = {pph_import_input(op, 0)};
  for (uint32_t i = 1; i + 1 < op->input_count; i++) {
    pair[1] = op->inputs[i];
    PPH_TRY(pph_import_insert(op, PPH_NODE_ADD, pair, 2, NULL, &pair[0]));
  }
  if (op->input_count > 2) {
    op->inputs[0] = pair[0];
    op->inputs[1] = op->inputs[op->input_count - 1];
    op->input_count = 2;
  }
  return pph_import_emit(op, NULL);
}

/* Reshape(Softmax(Flatten(x, axis)), Shape(x)) */
static pph_status flatten_softmax(pph_import_op *op, int64_t axis) {
  pph_id x = pph_import_input(op, 0), ids[2];
  pph_node *node;
  PPH_TRY(pph_import_insert(op, PPH_NODE_FLATTEN, &x, 1, &node, &ids[0]));
  PPH_TRY(pph_node_set_int(op->import->graph, node, PPH_ATTR_AXIS, axis,
                           op->import->error));
  PPH_TRY(pph_import_insert(op, PPH_NODE_SOFTMAX, &ids[0], 1, &node, &ids[0]));
  PPH_TRY(pph_node_set_int(op->import->graph, node, PPH_ATTR_AXIS, 1,
                           op->import->error));
  PPH_TRY(pph_import_insert(op, PPH_NODE_SHAPE, &x, 1, NULL, &ids[1]));
  pph_import_set_input(op, 0, ids[0]);
  pph_import_set_input(op, 1, ids[1]);
  return pph_import_emit_bare(op, PPH_NODE_RESHAPE, NULL);
}

/* Until opset 12 Softmax goes over all dimensions from `axis` on at once. */
pph_status pph_convert_softmax(pph_import_op *op) {
  bool old = op->import->opset < 13;
  int64_t axis = old ? 1 : -1;
  PPH_TRY(pph_import_get_int(op, "axis", &axis, NULL));
  if (op->input_count != 1)
    return pph_import_fail(op, PPH_BAD_MODEL, "has %u inputs, must have 1",
                           op->input_count);
  int32_t rank = rank_of(op, 0);
  bool is_last = axis == -1 || (rank > 0 && axis == rank - 1);
  if (old && !is_last)
    return flatten_softmax(op, axis);
  pph_node *node;
  PPH_TRY(pph_import_emit(op, &node));
  return pph_node_set_int(op->import->graph, node, PPH_ATTR_AXIS, axis,
                          op->import->error);
}
