/* Constant nodes become constants: no node is left of them. */
#include <string.h>

#include "base/fail.h"
#include "onnx/import.h"

static const pph_import_row constant_row = {
    .name = "Constant",
    .copied = "value value_float value_floats value_int value_ints",
    .handled = "",
};

static pph_status add(pph_import_op *op, const char *name,
                      const pph_tensor *tensor, pph_id *id) {
  return pph_graph_add_constant(op->import->graph, name, tensor, id,
                                op->import->error);
}

/* The casts are safe: add_constant copies. */
static pph_tensor make_vector(pph_dtype type, const void *data, size_t count) {
  return (pph_tensor){type, {1, {(int64_t)count}}, (void *)(uintptr_t)data};
}

static pph_status make_value(pph_import_op *op, const char *name, pph_id *id) {
  pph_onnx_tensor *tensor;
  PPH_TRY(pph_import_get_tensor(op, "value", &tensor));
  return pph_import_add_constant(op->import, name, tensor, id);
}

static pph_status make_float(pph_import_op *op, const char *name, pph_id *id) {
  float value = 0;
  PPH_TRY(pph_import_get_float(op, "value_float", &value, NULL));
  pph_tensor tensor = {PPH_F32, {0}, &value};
  return add(op, name, &tensor, id);
}

static pph_status make_floats(pph_import_op *op, const char *name, pph_id *id) {
  const float *values = NULL;
  size_t count = 0;
  PPH_TRY(pph_import_get_floats(op, "value_floats", &values, &count, NULL));
  pph_tensor tensor = make_vector(PPH_F32, values, count);
  return add(op, name, &tensor, id);
}

static pph_status make_int(pph_import_op *op, const char *name, pph_id *id) {
  int64_t value = 0;
  PPH_TRY(pph_import_get_int(op, "value_int", &value, NULL));
  pph_tensor tensor = {PPH_I64, {0}, &value};
  return add(op, name, &tensor, id);
}

static pph_status make_ints(pph_import_op *op, const char *name, pph_id *id) {
  const int64_t *values = NULL;
  size_t count = 0;
  PPH_TRY(pph_import_get_ints(op, "value_ints", &values, &count, NULL));
  pph_tensor tensor = make_vector(PPH_I64, values, count);
  return add(op, name, &tensor, id);
}

static pph_status make(pph_import_op *op, pph_id *id) {
  static const struct {
    const char *attribute;
    pph_status (*make)(pph_import_op *op, const char *name, pph_id *id);
  } forms[] = {{"value", make_value},
               {"value_float", make_float},
               {"value_floats", make_floats},
               {"value_int", make_int},
               {"value_ints", make_ints}};
  PPH_TRY(pph_import_check_attributes(op));
  if (op->source->n_attribute != 1)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "has %zu attributes, must have one value",
                           op->source->n_attribute);
  if (op->source->n_input != 0)
    return pph_import_fail(op, PPH_BAD_MODEL, "has %zu inputs, must have none",
                           op->source->n_input);
  if (op->source->n_output != 1 || !op->source->output[0][0])
    return pph_import_fail(op, PPH_BAD_MODEL, "must have one output");
  const char *attribute = op->source->attribute[0]->name;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (strcmp(forms[i].attribute, attribute) == 0)
      return forms[i].make(op, op->source->output[0], id);
  return PPH_BAD_MODEL; /* not reached: check_attributes knows the forms */
}

pph_status pph_import_constant_node(pph_import *import,
                                    const pph_onnx_node *node, uint32_t index,
                                    pph_id *id) {
  pph_import_op op = {
      .import = import, .source = node, .row = &constant_row, .index = index};
  pph_status status = make(&op, id);
  if (status != PPH_OK)
    pph_import_set_where(import->error, node, index);
  return status;
}
