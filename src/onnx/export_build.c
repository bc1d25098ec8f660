/* Nodes and constants of the file. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "onnx/export.h"

static void *unconst(const void *pointer) { return (void *)(uintptr_t)pointer; }

const char *pph_export_make_name(pph_export *export, const char *stem) {
  char text[160];
  do
    snprintf(text, sizeof text, "%.120s~x%u", stem, export->name_counter++);
  while (pph_text_names_find(&export->names, text, strlen(text)) !=
         PPH_NO_VALUE);
  return pph_arena_copy_text(&export->arena, text, strlen(text));
}

static pph_status copy_names(pph_export *export, pph_export_names names,
                             char ***copy) {
  void *block;
  PPH_TRY(pph_export_allocate(export, (size_t)names.count + 1, sizeof **copy,
                              &block));
  *copy = block;
  for (uint32_t i = 0; i < names.count; i++)
    (*copy)[i] = unconst(names.names[i]);
  return PPH_OK;
}

/* A node's name, changed if another node has it: ONNX Runtime refuses two of
   the same, and a pass gives all that it makes the name of the original. */
static pph_status name_node(pph_export *export, const char *stem,
                            Pph__Onnx__NodeProto *node) {
  char text[200];
  const char *name = stem;
  pph_id id, existing;
  for (uint32_t i = 1; pph_text_names_find(&export->node_table, name,
                                           strlen(name)) != PPH_NO_VALUE;
       i = export->name_counter++) {
    snprintf(text, sizeof text, "%.160s~x%u", stem, i);
    name = text;
  }
  PPH_TRY(pph_graph_add_value(&export->node_names, name, &id, export->error));
  PPH_TRY(
      pph_text_names_add(&export->node_table, id, &existing, export->error));
  /* The text lives in the table's arena: its place is fixed. */
  node->name = unconst(pph_graph_value(&export->node_names, id)->name);
  return PPH_OK;
}

pph_status pph_export_add_node(pph_export *export, const pph_node *source,
                               const char *op_type, pph_export_names inputs,
                               pph_export_names outputs) {
  void *block, *attributes;
  Pph__Onnx__NodeProto *node;
  PPH_TRY(pph_export_allocate(export, 1, sizeof *node, &block));
  PPH_TRY(pph_export_allocate(export, (size_t)source->attribute_count + 4,
                              sizeof *node->attribute, &attributes));
  node = block;
  pph__onnx__node_proto__init(node);
  if (source->name[0])
    PPH_TRY(name_node(export, source->name, node));
  node->op_type = unconst(op_type);
  node->attribute = attributes;
  PPH_TRY(copy_names(export, inputs, &node->input));
  PPH_TRY(copy_names(export, outputs, &node->output));
  node->n_input = inputs.count;
  node->n_output = outputs.count;
  export->nodes[export->node_count++] = node;
  return PPH_OK;
}

pph_status pph_export_add_unary(pph_export *export, const pph_node *source,
                                const char *op_type, const char *from,
                                const char *to) {
  return pph_export_add_node(export, source, op_type,
                             (pph_export_names){&from, 1},
                             (pph_export_names){&to, 1});
}

static pph_status add_tensor(pph_export *export, const pph_tensor *tensor,
                             const char **name) {
  *name = pph_export_make_name(export, "c");
  if (!*name)
    return pph_fail_memory(export->error);
  PPH_TRY(pph_export_make_tensor(export, *name, tensor,
                                 &export->tensors[export->tensor_count]));
  export->tensor_count++;
  return PPH_OK;
}

pph_status pph_export_add_ints(pph_export *export, const int64_t *ints,
                               size_t count, const char **name) {
  void *copy;
  PPH_TRY(pph_export_allocate(export, count + 1, sizeof *ints, &copy));
  memcpy(copy, ints, count * sizeof *ints);
  pph_tensor tensor = {PPH_I64, {1, {(int64_t)count}}, copy};
  return add_tensor(export, &tensor, name);
}

pph_status pph_export_add_scalar(pph_export *export, pph_dtype type,
                                 float value, const char **name) {
  void *copy;
  PPH_TRY(pph_export_allocate(export, 1, sizeof(double), &copy));
  if (type == PPH_F64)
    *(double *)copy = value;
  else
    *(float *)copy = value;
  pph_tensor tensor = {type, {0}, copy};
  return add_tensor(export, &tensor, name);
}

static pph_status add_attribute(pph_export *export, const char *name,
                                int32_t type,
                                Pph__Onnx__AttributeProto **made) {
  Pph__Onnx__NodeProto *node = export->nodes[export->node_count - 1];
  void *block;
  PPH_TRY(pph_export_allocate(export, 1, sizeof **made, &block));
  *made = block;
  pph__onnx__attribute_proto__init(*made);
  (*made)->name = unconst(name);
  (*made)->has_type = 1;
  (*made)->type = type;
  node->attribute[node->n_attribute++] = *made;
  return PPH_OK;
}

/* AttributeProto.AttributeType by ours */
static const int32_t onnx_types[] = {
    [PPH_ATTRIBUTE_FLOAT] = 1, [PPH_ATTRIBUTE_INT] = 2,
    [PPH_ATTRIBUTE_TEXT] = 3,  [PPH_ATTRIBUTE_FLOATS] = 6,
    [PPH_ATTRIBUTE_INTS] = 7,
};

pph_status pph_export_set_attribute(pph_export *export, const char *name,
                                    pph_attribute_type type,
                                    const pph_attribute *attribute) {
  Pph__Onnx__AttributeProto *made;
  PPH_TRY(add_attribute(export, name, onnx_types[type], &made));
  switch (type) {
  case PPH_ATTRIBUTE_INT:
    made->has_i = 1;
    made->i = attribute->i;
    break;
  case PPH_ATTRIBUTE_FLOAT:
    made->has_f = 1;
    made->f = attribute->f;
    break;
  case PPH_ATTRIBUTE_TEXT:
    made->has_s = 1;
    made->s.data = unconst(attribute->text);
    made->s.len = strlen(attribute->text);
    break;
  case PPH_ATTRIBUTE_INTS:
    made->ints = unconst(attribute->ints);
    made->n_ints = attribute->count;
    break;
  case PPH_ATTRIBUTE_FLOATS:
    made->floats = unconst(attribute->floats);
    made->n_floats = attribute->count;
    break;
  }
  return PPH_OK;
}

pph_status pph_export_set_int(pph_export *export, const char *name,
                              int64_t value) {
  pph_attribute attribute = {.i = value};
  return pph_export_set_attribute(export, name, PPH_ATTRIBUTE_INT, &attribute);
}

pph_status pph_export_set_tensor(pph_export *export, const char *name,
                                 const pph_tensor *tensor) {
  Pph__Onnx__AttributeProto *made;
  PPH_TRY(add_attribute(export, name, 4, &made));
  return pph_export_make_tensor(export, "", tensor, &made->t);
}
