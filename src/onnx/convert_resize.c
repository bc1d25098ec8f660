/* Resize and what it was before. */
#include "base/fail.h"
#include "onnx/import.h"

/* A constant of no elements stands for an omitted input. */
static void drop_empty(pph_import_op *op, uint32_t slot) {
  pph_id id = pph_import_input(op, slot);
  if (id == PPH_NO_VALUE)
    return;
  const pph_value *value = pph_graph_value(op->import->graph, id);
  if (value->data && value->shape.rank == 1 && value->shape.dims[0] == 0)
    pph_import_set_input(op, slot, PPH_NO_VALUE);
}

/* How the old form rounds to the nearest element. The specification leaves it
   open; as ONNX Runtime: down when enlarging, up when reducing. Scales that are
   no constant enlarge: that is what the operator is for. */
static pph_status choose_nearest(pph_import_op *op, const char **nearest) {
  pph_id id = pph_import_input(op, 2);
  const pph_value *scales = pph_graph_value(op->import->graph, id);
  bool up = false, down = false;
  *nearest = "floor";
  if (!scales->data || scales->type != PPH_F32 || scales->shape.rank != 1)
    return PPH_OK;
  for (int64_t i = 0; i < scales->shape.dims[0]; i++) {
    float scale = ((const float *)scales->data)[i];
    up |= scale > 1;
    down |= scale < 1;
  }
  if (up && down)
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "enlarging one axis and reducing another before "
                           "opset 11 is not supported");
  if (down)
    *nearest = "ceil";
  return PPH_OK;
}

/* Asymmetric coordinates, scales in slot 2. */
static pph_status emit_old(pph_import_op *op) {
  pph_node *node;
  const char *nearest;
  pph_graph *graph = op->import->graph;
  pph_error *error = op->import->error;
  PPH_TRY(choose_nearest(op, &nearest));
  PPH_TRY(pph_import_emit(op, &node));
  PPH_TRY(pph_node_set_text(graph, node,
                            PPH_ATTR_COORDINATE_TRANSFORMATION_MODE,
                            "asymmetric", error));
  return pph_node_set_text(graph, node, PPH_ATTR_NEAREST_MODE, nearest, error);
}

static pph_status move_scales_input(pph_import_op *op) {
  if (op->input_count != 2 || op->inputs[1] == PPH_NO_VALUE)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "must have two inputs, data and scales");
  pph_id scales = op->inputs[1];
  pph_import_set_input(op, 2, scales);
  pph_import_set_input(op, 1, PPH_NO_VALUE);
  return PPH_OK;
}

static pph_status move_scales_attribute(pph_import_op *op) {
  const float *scales = NULL;
  size_t count = 0;
  bool present;
  PPH_TRY(pph_import_get_floats(op, "scales", &scales, &count, &present));
  if (!present || op->input_count != 1)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "must have one input and an attribute \"scales\"");
  /* The cast is safe: add_constant copies. */
  pph_tensor tensor = {
      PPH_F32, {1, {(int64_t)count}}, (void *)(uintptr_t)scales};
  pph_id id;
  PPH_TRY(pph_graph_add_constant(op->import->graph, NULL, &tensor, &id,
                                 op->import->error));
  pph_import_set_input(op, 2, id);
  return PPH_OK;
}

pph_status pph_convert_upsample(pph_import_op *op) {
  if (op->import->opset < 9)
    PPH_TRY(move_scales_attribute(op));
  else if (pph_import_find_attribute(op->source, "scales"))
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attribute \"scales\" is an input from opset 9 on");
  else
    PPH_TRY(move_scales_input(op));
  return emit_old(op);
}

pph_status pph_convert_resize(pph_import_op *op) {
  if (op->import->opset == 10) {
    PPH_TRY(move_scales_input(op));
    return emit_old(op);
  }
  if (op->input_count > 4)
    return pph_import_emit(op, NULL); /* which refuses it */
  for (uint32_t slot = 3; slot > 0; slot--)
    drop_empty(op, slot);
  bool scales = pph_import_input(op, 2) != PPH_NO_VALUE;
  bool sizes = pph_import_input(op, 3) != PPH_NO_VALUE;
  if (scales == sizes)
    return pph_import_fail(op, PPH_BAD_MODEL, "must have scales or sizes%s",
                           scales ? ", not both" : "");
  return pph_import_emit(op, NULL);
}
