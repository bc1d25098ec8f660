/* Equal constants become one value, then nodes that do the same to the same
   values become one node. One walk: a node's inputs are merged before it is
   looked at. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* Slots looked at before a search gives up, so that a model made of collisions
   costs no more than others. */
enum { PROBES = 32, SAMPLE_BYTES = 128 };

/* Open addressing; `slots` is a power of two. An entry is a value id for
   constants, a node for nodes. */
typedef struct table {
  uint64_t *hashes; /* 0: free */
  union entry {
    pph_id id;
    pph_node *node;
  } *entries;
  size_t slots;
} table;

static pph_status make_table(pph_heap *heap, size_t count, table *made,
                             pph_error *error) {
  *made = (table){.slots = 64};
  while (made->slots < count * 2)
    made->slots *= 2;
  made->hashes =
      pph_heap_allocate_zeroed(heap, made->slots, sizeof *made->hashes);
  made->entries = pph_heap_allocate(heap, made->slots, sizeof *made->entries);
  return made->hashes && made->entries ? PPH_OK : pph_fail_memory(error);
}

static void release_table(pph_heap *heap, table *made) {
  pph_heap_release(heap, made->hashes);
  pph_heap_release(heap, made->entries);
}

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  for (; length >= 8; at += 8, length -= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    hash = mix(hash, word);
  }
  uint64_t word = 0;
  if (length)
    memcpy(&word, at, length);
  return mix(hash, word ^ (uint64_t)length << 56);
}

/* Constants */

static uint64_t hash_constant(const pph_value *value, size_t bytes) {
  uint64_t hash = mix((uint64_t)value->type, (uint64_t)value->shape.rank);
  hash = mix_bytes(hash, value->shape.dims,
                   (size_t)value->shape.rank * sizeof *value->shape.dims);
  /* The ends are enough to tell most apart; equality looks at all. */
  size_t head = bytes < SAMPLE_BYTES ? bytes : SAMPLE_BYTES;
  hash = mix_bytes(hash, value->data, head);
  return mix_bytes(hash, (const char *)value->data + bytes - head, head) | 1;
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_constant(const pph_value *a, const pph_value *b,
                          size_t bytes) {
  return a->type == b->type && a->layout == b->layout &&
         pph_shape_equal(&a->shape, &b->shape) &&
         same_text(a->origin.external, b->origin.external) &&
         (a->data == b->data || memcmp(a->data, b->data, bytes) == 0);
}

static void merge_constant(pph_rewrite *rewrite, table *seen, pph_id id) {
  pph_graph *graph = rewrite->graph;
  const pph_value *value = pph_graph_value(graph, id);
  size_t bytes;
  if (!value->data || value->uses == 0 ||
      !pph_shape_bytes(&value->shape, value->type, &bytes))
    return;
  uint64_t hash = hash_constant(value, bytes);
  for (size_t i = 0; i < PROBES; i++) {
    size_t slot = (hash + i) & (seen->slots - 1);
    if (seen->hashes[slot] == 0) {
      seen->hashes[slot] = hash;
      seen->entries[slot].id = id;
      return;
    }
    pph_id other = seen->entries[slot].id;
    if (seen->hashes[slot] == hash &&
        same_constant(pph_graph_value(graph, other), value, bytes)) {
      pph_rewrite_replace(rewrite, id, other);
      return;
    }
  }
}

static pph_status merge_constants(pph_rewrite *rewrite, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  table seen;
  pph_status status =
      make_table(graph->heap, graph->value_count, &seen, error);
  for (pph_id id = 0; status == PPH_OK && id < graph->value_count; id++)
    merge_constant(rewrite, &seen, id);
  release_table(graph->heap, &seen);
  return status;
}

/* Nodes */

static uint64_t hash_attribute(const pph_attribute *attribute) {
  uint64_t hash = mix(1, (uint64_t)attribute->key);
  switch (pph_attribute_key_type(attribute->key)) {
  case PPH_ATTRIBUTE_INT:
    return mix(hash, (uint64_t)attribute->i);
  case PPH_ATTRIBUTE_FLOAT:
    return mix_bytes(hash, &attribute->f, sizeof attribute->f);
  case PPH_ATTRIBUTE_TEXT:
    return mix_bytes(hash, attribute->text, strlen(attribute->text));
  case PPH_ATTRIBUTE_INTS:
    return mix_bytes(hash, attribute->ints,
                     attribute->count * sizeof *attribute->ints);
  case PPH_ATTRIBUTE_FLOATS:
    return mix_bytes(hash, attribute->floats,
                     attribute->count * sizeof *attribute->floats);
  }
  return hash;
}

static bool same_attribute(const pph_attribute *a, const pph_attribute *b) {
  switch (pph_attribute_key_type(a->key)) {
  case PPH_ATTRIBUTE_INT:
    return a->i == b->i;
  case PPH_ATTRIBUTE_FLOAT:
    return memcmp(&a->f, &b->f, sizeof a->f) == 0;
  case PPH_ATTRIBUTE_TEXT:
    return strcmp(a->text, b->text) == 0;
  case PPH_ATTRIBUTE_INTS:
    return a->count == b->count &&
           memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0;
  case PPH_ATTRIBUTE_FLOATS:
    return a->count == b->count &&
           memcmp(a->floats, b->floats, a->count * sizeof *a->floats) == 0;
  }
  return false;
}

static uint64_t hash_node(const pph_node *node) {
  uint64_t hash = mix((uint64_t)node->kind, (uint64_t)node->activation);
  hash = mix(hash, node->output_count);
  hash = mix_bytes(hash, node->inputs,
                   node->input_count * sizeof *node->inputs);
  uint64_t attributes = 0; /* a sum: their order does not matter */
  for (uint32_t i = 0; i < node->attribute_count; i++)
    attributes += hash_attribute(&node->attributes[i]);
  return mix(hash, attributes) | 1;
}

static bool same_outputs(const pph_graph *graph, const pph_node *a,
                         const pph_node *b) {
  for (uint32_t i = 0; i < a->output_count; i++) {
    if ((a->outputs[i] == PPH_NO_VALUE) != (b->outputs[i] == PPH_NO_VALUE))
      return false;
    if (a->outputs[i] == PPH_NO_VALUE)
      continue;
    const pph_value *left = pph_graph_value(graph, a->outputs[i]);
    const pph_value *right = pph_graph_value(graph, b->outputs[i]);
    if (left->type != right->type || left->layout != right->layout ||
        !pph_shape_equal(&left->shape, &right->shape))
      return false;
  }
  return true;
}

static bool same_node(const pph_graph *graph, const pph_node *a,
                      const pph_node *b) {
  if (a->kind != b->kind || a->activation != b->activation ||
      a->input_count != b->input_count ||
      a->output_count != b->output_count ||
      a->attribute_count != b->attribute_count ||
      memcmp(a->inputs, b->inputs, a->input_count * sizeof *a->inputs) != 0)
    return false;
  for (uint32_t i = 0; i < a->attribute_count; i++) {
    const pph_attribute *other =
        pph_node_find_attribute(b, a->attributes[i].key);
    if (!other || !same_attribute(&a->attributes[i], other))
      return false;
  }
  return same_outputs(graph, a, b);
}

static void replace_node(pph_rewrite *rewrite, pph_node *node,
                         const pph_node *by) {
  for (uint32_t i = 0; i < node->output_count; i++)
    if (node->outputs[i] != PPH_NO_VALUE &&
        !pph_rewrite_can_replace(rewrite, node->outputs[i], by->outputs[i]))
      return;
  for (uint32_t i = 0; i < node->output_count; i++)
    if (node->outputs[i] != PPH_NO_VALUE)
      pph_rewrite_replace(rewrite, node->outputs[i], by->outputs[i]);
  pph_rewrite_remove(rewrite, node);
}

static void merge_node(pph_rewrite *rewrite, table *seen, pph_node *node) {
  pph_rewrite_visit(rewrite, node);
  uint64_t hash = hash_node(node);
  for (size_t i = 0; i < PROBES; i++) {
    size_t slot = (hash + i) & (seen->slots - 1);
    if (seen->hashes[slot] == 0) {
      seen->hashes[slot] = hash;
      seen->entries[slot].node = node;
      return;
    }
    if (seen->hashes[slot] == hash &&
        same_node(rewrite->graph, seen->entries[slot].node, node)) {
      replace_node(rewrite, node, seen->entries[slot].node);
      return;
    }
  }
}

static pph_status merge_nodes(pph_rewrite *rewrite, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  table seen;
  pph_status status = make_table(graph->heap, graph->node_count, &seen, error);
  for (pph_node *node = graph->first, *next; status == PPH_OK && node;
       node = next) {
    next = node->next;
    merge_node(rewrite, &seen, node);
  }
  release_table(graph->heap, &seen);
  return status;
}

pph_status pph_pass_merge_duplicates(pph_graph *graph,
                                     const pph_pass_options *options,
                                     pph_error *error) {
  (void)options;
  pph_rewrite rewrite;
  PPH_TRY(pph_rewrite_begin(&rewrite, graph, error));
  pph_status status = merge_constants(&rewrite, error);
  if (status == PPH_OK)
    status = merge_nodes(&rewrite, error);
  pph_rewrite_end(&rewrite);
  return status;
}
