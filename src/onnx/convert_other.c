/* Operators with forms that are refused, and small differences between ONNX's
   attributes and ours. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "onnx/import.h"

static pph_status refuse_int(const pph_import_op *op, const char *name,
                             int64_t legal) {
  int64_t value = legal;
  PPH_TRY(pph_import_get_int(op, name, &value, NULL));
  if (value == legal)
    return PPH_OK;
  return pph_import_fail(op, PPH_UNSUPPORTED,
                         "%s is %" PRId64 ", only %" PRId64 " is supported",
                         name, value, legal);
}

/* Whether the second or a later output is asked for. */
static bool has_more_outputs(const pph_import_op *op) {
  for (size_t i = 1; i < op->source->n_output; i++)
    if (op->source->output[i][0])
      return true;
  return false;
}

pph_status pph_convert_batch_norm(pph_import_op *op) {
  PPH_TRY(refuse_int(op, "spatial", 1));
  PPH_TRY(refuse_int(op, "training_mode", 0));
  if (has_more_outputs(op))
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "outputs of training are not supported");
  return pph_import_emit(op, NULL);
}

pph_status pph_convert_max_pool(pph_import_op *op) {
  PPH_TRY(refuse_int(op, "storage_order", 0));
  if (has_more_outputs(op))
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "the output of indices is not supported");
  return pph_import_emit(op, NULL);
}

/* blocksize: one number for both axes in ONNX, one per axis here. */
pph_status pph_convert_block(pph_import_op *op) {
  int64_t sizes[2] = {0};
  const char *mode = "DCR";
  bool present;
  PPH_TRY(pph_import_get_int(op, "blocksize", &sizes[0], &present));
  if (!present)
    return pph_import_fail(op, PPH_BAD_MODEL, "has no attribute \"blocksize\"");
  if (op->row->kind == PPH_NODE_SPACE_TO_DEPTH)
    PPH_TRY(pph_import_get_text(op, "mode", &mode, NULL));
  if (strcmp(mode, "DCR") != 0)
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "mode is \"%.20s\", only \"DCR\" is supported",
                           mode);
  sizes[1] = sizes[0];
  pph_node *node;
  PPH_TRY(pph_import_emit(op, &node));
  return pph_node_set_ints(op->import->graph, node, PPH_ATTR_BLOCKSIZE, sizes,
                           2, op->import->error);
}

pph_status pph_convert_cast(pph_import_op *op) {
  int64_t to = 0;
  PPH_TRY(pph_import_get_int(op, "to", &to, NULL));
  if (!pph_import_dtype(to))
    return pph_import_fail(
        op, to < 1 ? PPH_BAD_MODEL : PPH_UNSUPPORTED,
        "to is %" PRId64 ", no element type that is supported", to);
  return pph_import_emit(op, NULL);
}

/* An all-true mask of input 0's shape, for a Dropout that names its second
   output. */
static pph_status emit_mask(pph_import_op *op) {
  unsigned char yes = 1;
  pph_tensor tensor = {PPH_BOOL, {0}, &yes};
  pph_import_op mask = *op;
  pph_id x = pph_import_input(op, 0), ids[PPH_IMPORT_SLOTS] = {PPH_NO_VALUE};
  PPH_TRY(pph_import_insert(op, PPH_NODE_SHAPE, &x, 1, NULL, &ids[0]));
  PPH_TRY(pph_graph_add_constant(op->import->graph, NULL, &tensor, &ids[1],
                                 op->import->error));
  mask.inputs = ids;
  mask.input_count = 2;
  mask.outputs = &op->outputs[1];
  mask.output_count = 1;
  return pph_import_emit_bare(&mask, PPH_NODE_CONSTANT_OF_SHAPE, NULL);
}

static pph_status check_training(const pph_import_op *op) {
  pph_id id = pph_import_input(op, 2);
  if (id == PPH_NO_VALUE)
    return PPH_OK;
  const pph_value *value = pph_graph_value(op->import->graph, id);
  if (value->type == PPH_BOOL && value->shape.rank == 0 && value->data &&
      !*(const unsigned char *)value->data)
    return PPH_OK;
  return pph_import_fail(op, PPH_UNSUPPORTED,
                         "training_mode that is not a constant false is not "
                         "supported");
}

/* Drops nothing outside training. */
pph_status pph_convert_dropout(pph_import_op *op) {
  uint32_t most = op->import->opset < 12 ? 1 : 3;
  if (op->input_count < 1 || op->input_count > most)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "has %u inputs, must have 1 to %u", op->input_count,
                           most);
  if (op->output_count > 2)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "has %u outputs, must have 1 to 2",
                           op->output_count);
  PPH_TRY(check_training(op));
  op->input_count = 1;
  if (has_more_outputs(op))
    PPH_TRY(emit_mask(op));
  op->output_count = 1;
  return pph_import_emit_bare(op, PPH_NODE_IDENTITY, NULL);
}

/* The gates must be the usual Sigmoid and Tanh, for each direction. */
static pph_status check_activations(const pph_import_op *op) {
  static const char *const usual[] = {"Sigmoid", "Tanh"};
  const pph_onnx_attribute *attribute =
      pph_import_find_attribute(op->source, "activations");
  if (!attribute)
    return PPH_OK;
  for (size_t i = 0; i < attribute->n_strings; i++) {
    const ProtobufCBinaryData *text = &attribute->strings[i];
    if (text->len != strlen(usual[i % 2]) ||
        memcmp(text->data, usual[i % 2], text->len) != 0)
      return pph_import_fail(op, PPH_UNSUPPORTED,
                             "activations other than Sigmoid and Tanh are not "
                             "supported");
  }
  return PPH_OK;
}

pph_status pph_convert_gru(pph_import_op *op) {
  PPH_TRY(check_activations(op));
  PPH_TRY(refuse_int(op, "layout", 0));
  if (pph_import_find_attribute(op->source, "clip"))
    return pph_import_fail(op, PPH_UNSUPPORTED, "clip is not supported");
  return pph_import_emit(op, NULL);
}

static bool has_zero(const pph_import_op *op, uint32_t slot) {
  int64_t ints[PPH_MAX_RANK];
  size_t count;
  if (!pph_import_read_ints(op, slot, ints, PPH_MAX_RANK, &count))
    return true;
  for (size_t i = 0; i < count; i++)
    if (ints[i] == 0)
      return true;
  return false;
}

/* Where no 0 can be, allowzero says nothing. */
pph_status pph_convert_reshape(pph_import_op *op) {
  int64_t allow = 0;
  PPH_TRY(pph_import_get_int(op, "allowzero", &allow, NULL));
  if (allow && has_zero(op, 1))
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "allowzero with a shape that may have a 0 is not "
                           "supported");
  return pph_import_emit(op, NULL);
}

/* Shape of a range of dimensions: all of them, then a slice. */
pph_status pph_convert_shape(pph_import_op *op) {
  int64_t start = 0, end = INT64_MAX;
  bool has_start, has_end;
  PPH_TRY(pph_import_get_int(op, "start", &start, &has_start));
  PPH_TRY(pph_import_get_int(op, "end", &end, &has_end));
  if ((has_start || has_end) && op->import->opset < 15)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attributes \"start\" and \"end\" are there from "
                           "opset 15 on");
  if (start == 0 && !has_end)
    return pph_import_emit(op, NULL);
  if (op->input_count != 1)
    return pph_import_fail(op, PPH_BAD_MODEL, "has %u inputs, must have 1",
                           op->input_count);
  pph_id x = op->inputs[0], shape;
  PPH_TRY(pph_import_insert(op, PPH_NODE_SHAPE, &x, 1, NULL, &shape));
  pph_import_set_input(op, 0, shape);
  PPH_TRY(pph_import_set_ints(op, 1, &start, 1));
  PPH_TRY(pph_import_set_ints(op, 2, &end, 1));
  return pph_import_emit_bare(op, PPH_NODE_SLICE, NULL);
}
