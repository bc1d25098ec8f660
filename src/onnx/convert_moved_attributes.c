/* Operators whose attributes became inputs, each at its own opset. */
#include <string.h>

#include "base/fail.h"
#include "onnx/import.h"

/* The ints attribute `name` becomes input `slot`; from opset `until` on it may
   not be there. */
static pph_status move_ints(pph_import_op *op, const char *name, uint32_t slot,
                            int until, bool *moved) {
  const int64_t *ints = NULL;
  size_t count = 0;
  PPH_TRY(pph_import_get_ints(op, name, &ints, &count, moved));
  if (!*moved)
    return PPH_OK;
  if (op->import->opset >= until)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attribute \"%s\" is an input from opset %d on",
                           name, until);
  return pph_import_set_ints(op, slot, ints, count);
}

static pph_status move_float(pph_import_op *op, const char *name, uint32_t slot,
                             int until) {
  float value = 0;
  bool moved;
  PPH_TRY(pph_import_get_float(op, name, &value, &moved));
  if (!moved)
    return PPH_OK;
  if (op->import->opset >= until)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attribute \"%s\" is an input from opset %d on",
                           name, until);
  return pph_import_set_scalar(op, slot, value);
}

/* Before the change the operator had fewer inputs. */
static pph_status check_old_inputs(pph_import_op *op, int until,
                                   uint32_t most) {
  if (op->import->opset < until && op->input_count > most)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "has %u inputs, before opset %d it has %u",
                           op->input_count, until, most);
  return PPH_OK;
}

pph_status pph_convert_clip(pph_import_op *op) {
  PPH_TRY(check_old_inputs(op, 11, 1));
  PPH_TRY(move_float(op, "min", 1, 11));
  PPH_TRY(move_float(op, "max", 2, 11));
  return pph_import_emit(op, NULL);
}

pph_status pph_convert_pad(pph_import_op *op) {
  bool moved;
  PPH_TRY(check_old_inputs(op, 11, 1));
  PPH_TRY(move_ints(op, "pads", 1, 11, &moved));
  PPH_TRY(move_float(op, "value", 2, 11));
  if (op->import->opset < 11 && !moved)
    return pph_import_fail(op, PPH_BAD_MODEL, "has no attribute \"pads\"");
  return pph_import_emit(op, NULL);
}

pph_status pph_convert_slice(pph_import_op *op) {
  bool starts, ends, axes;
  PPH_TRY(check_old_inputs(op, 10, 1));
  PPH_TRY(move_ints(op, "starts", 1, 10, &starts));
  PPH_TRY(move_ints(op, "ends", 2, 10, &ends));
  PPH_TRY(move_ints(op, "axes", 3, 10, &axes));
  if (op->import->opset < 10 && !(starts && ends))
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "has no attribute \"starts\" or none \"ends\"");
  return pph_import_emit(op, NULL);
}

/* Squeeze and Unsqueeze */
pph_status pph_convert_squeeze(pph_import_op *op) {
  bool moved;
  PPH_TRY(check_old_inputs(op, 13, 1));
  PPH_TRY(move_ints(op, "axes", 1, 13, &moved));
  return pph_import_emit(op, NULL);
}

static pph_status check_output_number(pph_import_op *op) {
  int64_t number = 0;
  bool present;
  PPH_TRY(pph_import_get_int(op, "num_outputs", &number, &present));
  if (!present)
    return PPH_OK;
  if (op->import->opset < 18)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attribute \"num_outputs\" is there from opset 18 "
                           "on");
  if (number != op->output_count)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "num_outputs is %lld, the node has %u outputs",
                           (long long)number, op->output_count);
  if (pph_import_input(op, 1) != PPH_NO_VALUE)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "has num_outputs and an input \"split\", must have "
                           "one of them");
  return PPH_OK;
}

pph_status pph_convert_split(pph_import_op *op) {
  bool moved;
  PPH_TRY(check_old_inputs(op, 13, 1));
  PPH_TRY(move_ints(op, "split", 1, 13, &moved));
  PPH_TRY(check_output_number(op));
  return pph_import_emit(op, NULL);
}

/* Axes that are an empty list mean all of them, or none of them when
   noop_with_empty_axes is 1. Until opset 18 (ReduceSum: 13) axes are an
   attribute. */
pph_status pph_convert_reduce(pph_import_op *op) {
  int until = op->row->kind == PPH_NODE_REDUCE_SUM ? 13 : 18;
  bool moved;
  int64_t keep = 0, axes[PPH_MAX_RANK];
  size_t count = 0;
  PPH_TRY(check_old_inputs(op, until, 1));
  PPH_TRY(move_ints(op, "axes", 1, until, &moved));
  PPH_TRY(pph_import_get_int(op, "noop_with_empty_axes", &keep, NULL));
  bool none = pph_import_input(op, 1) == PPH_NO_VALUE;
  bool known = pph_import_read_ints(op, 1, axes, PPH_MAX_RANK, &count);
  if (!none && !known && keep)
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "noop_with_empty_axes with axes that are no "
                           "constant is not supported");
  if (known && count == 0) {
    none = true;
    pph_import_set_input(op, 1, PPH_NO_VALUE);
  }
  if (none && keep)
    return pph_import_emit_bare(op, PPH_NODE_IDENTITY, NULL);
  return pph_import_emit(op, NULL);
}

pph_status pph_convert_constant_of_shape(pph_import_op *op) {
  pph_onnx_tensor *value;
  PPH_TRY(pph_import_get_tensor(op, "value", &value));
  if (op->input_count > 1)
    return pph_import_fail(op, PPH_BAD_MODEL, "has %u inputs, must have 1",
                           op->input_count);
  if (value) {
    pph_id id;
    PPH_TRY(pph_import_add_constant(op->import, NULL, value, &id));
    const pph_shape *shape = &pph_graph_value(op->import->graph, id)->shape;
    if (shape->rank > 1 || (shape->rank == 1 && shape->dims[0] != 1))
      return pph_import_fail(op, PPH_BAD_MODEL,
                             "value has another shape than [1]");
    pph_import_set_input(op, 1, id);
  }
  return pph_import_emit(op, NULL);
}
