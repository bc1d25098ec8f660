/* Attributes of ONNX nodes. */
#include <string.h>

#include "base/fail.h"
#include "onnx/import.h"

/* Names are looked up one by one: many attributes would make that slow. */
enum { MAX_ATTRIBUTES = 64 };

bool pph_import_has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  while (length && list && *list) {
    if (strncmp(list, word, length) == 0 &&
        (list[length] == ' ' || !list[length]))
      return true;
    list = strchr(list, ' ');
    if (list)
      list++;
  }
  return false;
}

const pph_onnx_attribute *pph_import_find_attribute(const pph_onnx_node *node,
                                                    const char *name) {
  for (size_t i = 0; i < node->n_attribute; i++)
    if (node->attribute[i]->name && strcmp(node->attribute[i]->name, name) == 0)
      return node->attribute[i];
  return NULL;
}

static pph_status check_attribute(const pph_import_op *op, size_t at) {
  const pph_onnx_attribute *attribute = op->source->attribute[at];
  const char *name = attribute->name;
  if (!name || !*name)
    return pph_import_fail(op, PPH_BAD_MODEL, "attribute %zu has no name", at);
  if (pph_import_find_attribute(op->source, name) != attribute)
    return pph_import_fail(op, PPH_BAD_MODEL, "attribute \"%.60s\" is twice",
                           name);
  if (attribute->ref_attr_name && *attribute->ref_attr_name)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attribute \"%.60s\" refers to a function's, which "
                           "only a function may",
                           name);
  if (!pph_import_has_word(op->row->copied, name) &&
      !pph_import_has_word(op->row->handled, name))
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "attribute \"%.60s\" is not supported", name);
  return PPH_OK;
}

pph_status pph_import_check_attributes(const pph_import_op *op) {
  if (op->source->n_attribute > MAX_ATTRIBUTES)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "has %zu attributes, no operator has more than %d",
                           op->source->n_attribute, MAX_ATTRIBUTES);
  for (size_t i = 0; i < op->source->n_attribute; i++)
    PPH_TRY(check_attribute(op, i));
  return PPH_OK;
}

/* Whether a field of another type than `wanted` is filled in; files older than
   ONNX's third version do not say the type. */
static int32_t guess_type(const pph_onnx_attribute *attribute, int32_t wanted) {
  const struct {
    bool there;
    int32_t type;
  } fields[] = {{attribute->has_f, PPH_ONNX_FLOAT},
                {attribute->has_i, PPH_ONNX_INT},
                {attribute->has_s, PPH_ONNX_STRING},
                {attribute->t != NULL, PPH_ONNX_TENSOR},
                {attribute->n_floats > 0, PPH_ONNX_FLOATS},
                {attribute->n_ints > 0, PPH_ONNX_INTS},
                {attribute->n_strings > 0, PPH_ONNX_STRINGS}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (fields[i].there)
      return fields[i].type;
  return wanted;
}

static const char *name_type(int32_t type) {
  static const char *const names[] = {
      "undefined", "a float",         "an int",         "a string", "a tensor",
      "a graph",   "floats",          "ints",           "strings",  "tensors",
      "graphs",    "a sparse tensor", "sparse tensors", "a type",   "types"};
  return type >= 0 && (size_t)type < sizeof names / sizeof *names ? names[type]
                                                                  : "unknown";
}

/* The attribute if it is there and of type `wanted`. */
static pph_status find_typed(const pph_import_op *op, const char *name,
                             int32_t wanted, const pph_onnx_attribute **found,
                             bool *present) {
  *found = pph_import_find_attribute(op->source, name);
  if (present)
    *present = *found != NULL;
  if (!*found)
    return PPH_OK;
  int32_t type = (*found)->type;
  if (!type)
    type = guess_type(*found, wanted);
  if (type != wanted)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attribute \"%.60s\" is %s, must be %s", name,
                           name_type(type), name_type(wanted));
  return PPH_OK;
}

pph_status pph_import_get_int(const pph_import_op *op, const char *name,
                              int64_t *value, bool *present) {
  const pph_onnx_attribute *found;
  PPH_TRY(find_typed(op, name, PPH_ONNX_INT, &found, present));
  if (found)
    *value = found->i;
  return PPH_OK;
}

pph_status pph_import_get_float(const pph_import_op *op, const char *name,
                                float *value, bool *present) {
  const pph_onnx_attribute *found;
  PPH_TRY(find_typed(op, name, PPH_ONNX_FLOAT, &found, present));
  if (found)
    *value = found->f;
  return PPH_OK;
}

pph_status pph_import_get_ints(const pph_import_op *op, const char *name,
                               const int64_t **ints, size_t *count,
                               bool *present) {
  const pph_onnx_attribute *found;
  PPH_TRY(find_typed(op, name, PPH_ONNX_INTS, &found, present));
  if (found) {
    *ints = found->ints;
    *count = found->n_ints;
  }
  return PPH_OK;
}

pph_status pph_import_get_floats(const pph_import_op *op, const char *name,
                                 const float **floats, size_t *count,
                                 bool *present) {
  const pph_onnx_attribute *found;
  PPH_TRY(find_typed(op, name, PPH_ONNX_FLOATS, &found, present));
  if (found) {
    *floats = found->floats;
    *count = found->n_floats;
  }
  return PPH_OK;
}

pph_status pph_import_get_text(const pph_import_op *op, const char *name,
                               const char **text, bool *present) {
  const pph_onnx_attribute *found;
  PPH_TRY(find_typed(op, name, PPH_ONNX_STRING, &found, present));
  if (!found)
    return PPH_OK;
  if (found->s.len && memchr(found->s.data, 0, found->s.len))
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attribute \"%.60s\" has a zero byte in its text",
                           name);
  *text = pph_arena_copy_text(&op->import->graph->arena,
                              found->s.len ? (const char *)found->s.data : "",
                              found->s.len);
  return *text ? PPH_OK : pph_fail_memory(op->import->error);
}

pph_status pph_import_get_tensor(const pph_import_op *op, const char *name,
                                 pph_onnx_tensor **tensor) {
  const pph_onnx_attribute *found;
  PPH_TRY(find_typed(op, name, PPH_ONNX_TENSOR, &found, NULL));
  *tensor = found ? found->t : NULL;
  if (found && !found->t)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "attribute \"%.60s\" has no tensor", name);
  return PPH_OK;
}

static pph_status read_attribute(const pph_import_op *op, const char *name,
                                 pph_attribute *attribute) {
  size_t count = 0;
  switch (pph_attribute_key_type(attribute->key)) {
  case PPH_ATTRIBUTE_INT:
    return pph_import_get_int(op, name, &attribute->i, NULL);
  case PPH_ATTRIBUTE_FLOAT:
    return pph_import_get_float(op, name, &attribute->f, NULL);
  case PPH_ATTRIBUTE_TEXT:
    return pph_import_get_text(op, name, &attribute->text, NULL);
  case PPH_ATTRIBUTE_INTS:
    PPH_TRY(pph_import_get_ints(op, name, &attribute->ints, &count, NULL));
    break;
  case PPH_ATTRIBUTE_FLOATS:
    PPH_TRY(pph_import_get_floats(op, name, &attribute->floats, &count, NULL));
    break;
  }
  if (count > UINT32_MAX)
    return pph_import_fail(op, PPH_BAD_MODEL, "attribute \"%.60s\" is too long",
                           name);
  attribute->count = (uint32_t)count;
  return PPH_OK;
}

pph_status pph_import_copy_attributes(const pph_import_op *op, pph_node *node) {
  for (size_t i = 0; i < op->source->n_attribute; i++) {
    const char *name = op->source->attribute[i]->name;
    if (!pph_import_has_word(op->row->copied, name))
      continue;
    pph_attribute attribute = {.key = pph_attribute_key_find(name)};
    PPH_TRY(read_attribute(op, name, &attribute));
    PPH_TRY(pph_node_set_attribute(op->import->graph, node, &attribute,
                                   op->import->error));
  }
  return PPH_OK;
}
