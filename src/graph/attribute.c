/* Attributes of nodes. */
#include <string.h>

#include "base/fail.h"
#include "graph/graph.h"

const pph_attribute *pph_node_find_attribute(const pph_node *node,
                                             pph_attribute_key key) {
  for (uint32_t i = 0; i < node->attribute_count; i++)
    if (node->attributes[i].key == key)
      return &node->attributes[i];
  return NULL;
}

int64_t pph_node_int(const pph_node *node, pph_attribute_key key,
                     int64_t fallback) {
  const pph_attribute *attribute = pph_node_find_attribute(node, key);
  return attribute ? attribute->i : fallback;
}

float pph_node_float(const pph_node *node, pph_attribute_key key,
                     float fallback) {
  const pph_attribute *attribute = pph_node_find_attribute(node, key);
  return attribute ? attribute->f : fallback;
}

const char *pph_node_text(const pph_node *node, pph_attribute_key key,
                          const char *fallback) {
  const pph_attribute *attribute = pph_node_find_attribute(node, key);
  return attribute ? attribute->text : fallback;
}

const int64_t *pph_node_ints(const pph_node *node, pph_attribute_key key,
                             uint32_t *count) {
  const pph_attribute *attribute = pph_node_find_attribute(node, key);
  *count = attribute ? attribute->count : 0;
  return attribute ? attribute->ints : NULL;
}

/* Moves what `attribute` points to into the arena. */
static pph_status own_payload(pph_graph *graph, pph_attribute *attribute,
                              pph_error *error) {
  pph_attribute_type type = pph_attribute_key_type(attribute->key);
  const void *source = NULL;
  size_t bytes = 0;
  if (type == PPH_ATTRIBUTE_TEXT) {
    source = attribute->text;
    bytes = strlen(attribute->text);
  } else if (type == PPH_ATTRIBUTE_INTS) {
    source = attribute->ints;
    bytes = attribute->count * sizeof *attribute->ints;
  } else if (type == PPH_ATTRIBUTE_FLOATS) {
    source = attribute->floats;
    bytes = attribute->count * sizeof *attribute->floats;
  } else {
    return PPH_OK;
  }
  char *copy = pph_arena_allocate(&graph->arena, bytes + 8, 1);
  if (!copy)
    return pph_fail_memory(error);
  if (bytes)
    memcpy(copy, source, bytes);
  if (type == PPH_ATTRIBUTE_TEXT)
    attribute->text = copy;
  else if (type == PPH_ATTRIBUTE_INTS)
    attribute->ints = (const int64_t *)(void *)copy;
  else
    attribute->floats = (const float *)(void *)copy;
  return PPH_OK;
}

static pph_status grow_attributes(pph_graph *graph, pph_node *node,
                                  pph_error *error) {
  if (node->attribute_count < node->attribute_capacity)
    return PPH_OK;
  uint32_t capacity = node->attribute_capacity * 2 + 4;
  pph_attribute *grown =
      pph_arena_allocate(&graph->arena, capacity, sizeof *grown);
  if (!grown)
    return pph_fail_memory(error);
  if (node->attribute_count)
    memcpy(grown, node->attributes, node->attribute_count * sizeof *grown);
  node->attributes = grown;
  node->attribute_capacity = capacity;
  return PPH_OK;
}

pph_status pph_node_set_attribute(pph_graph *graph, pph_node *node,
                                  const pph_attribute *attribute,
                                  pph_error *error) {
  pph_attribute own = *attribute;
  PPH_TRY(own_payload(graph, &own, error));
  for (uint32_t i = 0; i < node->attribute_count; i++)
    if (node->attributes[i].key == own.key) {
      node->attributes[i] = own;
      return PPH_OK;
    }
  PPH_TRY(grow_attributes(graph, node, error));
  node->attributes[node->attribute_count++] = own;
  return PPH_OK;
}

pph_status pph_node_set_int(pph_graph *graph, pph_node *node,
                            pph_attribute_key key, int64_t value,
                            pph_error *error) {
  pph_attribute attribute = {.key = key, .i = value};
  return pph_node_set_attribute(graph, node, &attribute, error);
}

pph_status pph_node_set_float(pph_graph *graph, pph_node *node,
                              pph_attribute_key key, float value,
                              pph_error *error) {
  pph_attribute attribute = {.key = key, .f = value};
  return pph_node_set_attribute(graph, node, &attribute, error);
}

pph_status pph_node_set_text(pph_graph *graph, pph_node *node,
                             pph_attribute_key key, const char *text,
                             pph_error *error) {
  pph_attribute attribute = {.key = key, .text = text};
  return pph_node_set_attribute(graph, node, &attribute, error);
}

pph_status pph_node_set_ints(pph_graph *graph, pph_node *node,
                             pph_attribute_key key, const int64_t *ints,
                             uint32_t count, pph_error *error) {
  pph_attribute attribute = {.key = key, .count = count, .ints = ints};
  return pph_node_set_attribute(graph, node, &attribute, error);
}

void pph_node_remove_attribute(pph_node *node, pph_attribute_key key) {
  for (uint32_t i = 0; i < node->attribute_count; i++)
    if (node->attributes[i].key == key) {
      node->attributes[i] = node->attributes[--node->attribute_count];
      return;
    }
}

pph_status pph_node_copy_attributes(pph_graph *graph, pph_node *node,
                                    const pph_node *source, pph_error *error) {
  for (uint32_t i = 0; i < source->attribute_count; i++)
    PPH_TRY(
        pph_node_set_attribute(graph, node, &source->attributes[i], error));
  node->activation = source->activation;
  return PPH_OK;
}
