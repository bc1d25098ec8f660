#include "pass/rewrite.h"

#include <string.h>

#include "base/fail.h"

enum { FIXED_INPUT = 1, FIXED_OUTPUT = 2 };

pph_status pph_rewrite_begin(pph_rewrite *rewrite, pph_graph *graph,
                             pph_error *error) {
  uint32_t count = graph->value_count;
  *rewrite = (pph_rewrite){.graph = graph, .count = count};
  rewrite->forward =
      pph_heap_allocate(graph->heap, count, sizeof *rewrite->forward);
  rewrite->fixed = pph_heap_allocate_zeroed(graph->heap, count, 1);
  if (!rewrite->forward || !rewrite->fixed) {
    pph_heap_release(graph->heap, rewrite->forward);
    pph_heap_release(graph->heap, rewrite->fixed);
    *rewrite = (pph_rewrite){0};
    return pph_fail_memory(error);
  }
  for (uint32_t i = 0; i < count; i++)
    rewrite->forward[i] = i;
  for (uint32_t i = 0; i < graph->input_count; i++)
    rewrite->fixed[graph->inputs[i]] |= FIXED_INPUT;
  for (uint32_t i = 0; i < graph->output_count; i++)
    rewrite->fixed[graph->outputs[i]] |= FIXED_OUTPUT;
  pph_graph_index_uses(graph);
  return PPH_OK;
}

void pph_rewrite_end(pph_rewrite *rewrite) {
  pph_graph *graph = rewrite->graph;
  if (!graph)
    return;
  for (uint32_t i = 0; i < graph->output_count; i++)
    graph->outputs[i] = pph_rewrite_find(rewrite, graph->outputs[i]);
  pph_heap_release(graph->heap, rewrite->forward);
  pph_heap_release(graph->heap, rewrite->fixed);
  *rewrite = (pph_rewrite){0};
}

pph_id pph_rewrite_find(const pph_rewrite *rewrite, pph_id id) {
  /* Halving the path keeps long chains of replacements cheap. */
  while (id < rewrite->count && rewrite->forward[id] != id) {
    pph_id next = rewrite->forward[id];
    if (next < rewrite->count)
      rewrite->forward[id] = rewrite->forward[next];
    id = next;
  }
  return id;
}

void pph_rewrite_visit(pph_rewrite *rewrite, pph_node *node) {
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] != PPH_NO_VALUE)
      node->inputs[i] = pph_rewrite_find(rewrite, node->inputs[i]);
}

pph_status pph_rewrite_walk(pph_graph *graph, pph_rewrite_rule change,
                            pph_error *error) {
  pph_rewrite rewrite;
  PPH_TRY(pph_rewrite_begin(&rewrite, graph, error));
  pph_status status = PPH_OK;
  for (pph_node *node = graph->first, *next; node && status == PPH_OK;
       node = next) {
    next = node->next;
    pph_rewrite_visit(&rewrite, node);
    status = change(&rewrite, node, error);
  }
  pph_rewrite_end(&rewrite);
  return status;
}

bool pph_rewrite_is_output(const pph_rewrite *rewrite, pph_id id) {
  return id < rewrite->count && (rewrite->fixed[id] & FIXED_OUTPUT);
}

bool pph_rewrite_can_replace(const pph_rewrite *rewrite, pph_id from,
                             pph_id to) {
  if (!pph_rewrite_is_output(rewrite, from))
    return true;
  return (to >= rewrite->count || !rewrite->fixed[to]) &&
         pph_graph_value(rewrite->graph, to)->producer;
}

/* Room for values that were added since begin. */
static bool cover(pph_rewrite *rewrite, pph_id id) {
  if (id < rewrite->count)
    return true;
  pph_heap *heap = rewrite->graph->heap;
  uint32_t old = rewrite->count, count = rewrite->graph->value_capacity;
  pph_id *forward = pph_heap_grow(heap, rewrite->forward,
                                  old * sizeof *forward, count,
                                  sizeof *forward);
  if (!forward)
    return false;
  rewrite->forward = forward;
  unsigned char *fixed = pph_heap_grow(heap, rewrite->fixed, old, count, 1);
  if (!fixed)
    return false;
  rewrite->fixed = fixed;
  memset(fixed + old, 0, count - old);
  for (uint32_t i = old; i < count; i++)
    forward[i] = i;
  rewrite->count = count;
  return true;
}

/* The value keeps its id and gets the name that the outside knows. */
static void swap_names(pph_value *a, pph_value *b) {
  const char *name = a->name;
  a->name = b->name;
  b->name = name;
  const char *dim_names[PPH_MAX_RANK];
  memcpy(dim_names, a->dim_names, sizeof dim_names);
  memcpy(a->dim_names, b->dim_names, sizeof dim_names);
  memcpy(b->dim_names, dim_names, sizeof dim_names);
}

bool pph_rewrite_replace(pph_rewrite *rewrite, pph_id from, pph_id to) {
  if (!pph_rewrite_can_replace(rewrite, from, to) || !cover(rewrite, from) ||
      !cover(rewrite, to))
    return false;
  pph_value *old = pph_graph_value(rewrite->graph, from);
  pph_value *new = pph_graph_value(rewrite->graph, to);
  if (rewrite->fixed[from] & FIXED_OUTPUT) {
    swap_names(old, new);
    rewrite->fixed[to] |= FIXED_OUTPUT;
    rewrite->fixed[from] = 0;
  }
  rewrite->forward[from] = to;
  new->uses += old->uses;
  old->uses = 0;
  rewrite->changes++;
  return true;
}

static void drop_use(pph_rewrite *rewrite, pph_id id) {
  if (id != PPH_NO_VALUE && pph_graph_value(rewrite->graph, id)->uses)
    pph_graph_value(rewrite->graph, id)->uses--;
}

static void add_use(pph_rewrite *rewrite, pph_id id) {
  if (id != PPH_NO_VALUE)
    pph_graph_value(rewrite->graph, id)->uses++;
}

void pph_rewrite_remove(pph_rewrite *rewrite, pph_node *node) {
  for (uint32_t i = 0; i < node->input_count; i++)
    drop_use(rewrite, node->inputs[i]);
  pph_graph_remove_node(rewrite->graph, node);
  rewrite->changes++;
}

bool pph_rewrite_bypass(pph_rewrite *rewrite, pph_node *node, pph_id to) {
  if (!pph_rewrite_replace(rewrite, node->outputs[0], to))
    return false;
  pph_rewrite_remove(rewrite, node);
  return true;
}

pph_status pph_rewrite_take_over(pph_rewrite *rewrite, pph_node *node,
                                 pph_node *from, pph_error *error) {
  pph_id output = node->outputs[0];
  pph_graph_value(rewrite->graph, from->outputs[0])->producer = NULL;
  pph_rewrite_remove(rewrite, node);
  return pph_node_set_outputs(rewrite->graph, from, &output, 1, error);
}

void pph_rewrite_set_input(pph_rewrite *rewrite, pph_node *node, uint32_t slot,
                           pph_id id) {
  drop_use(rewrite, node->inputs[slot]);
  node->inputs[slot] = id;
  add_use(rewrite, id);
  rewrite->changes++;
}

pph_status pph_rewrite_set_inputs(pph_rewrite *rewrite, pph_node *node,
                                  const pph_id *ids, uint32_t count,
                                  pph_error *error) {
  for (uint32_t i = 0; i < count; i++)
    add_use(rewrite, ids[i]);
  for (uint32_t i = 0; i < node->input_count; i++)
    drop_use(rewrite, node->inputs[i]);
  rewrite->changes++;
  return pph_node_set_inputs(rewrite->graph, node, ids, count, error);
}

pph_status pph_rewrite_insert(pph_rewrite *rewrite, pph_node_kind kind,
                              pph_node *before, const pph_id *inputs,
                              uint32_t count, pph_node **node,
                              pph_error *error) {
  PPH_TRY(pph_graph_insert(rewrite->graph, kind, before, inputs, count, node,
                           error));
  for (uint32_t i = 0; i < count; i++)
    add_use(rewrite, inputs[i]);
  pph_graph_value(rewrite->graph, (*node)->outputs[0])->uses = 0;
  rewrite->changes++;
  return PPH_OK;
}

pph_node *pph_rewrite_find_private(const pph_rewrite *rewrite,
                                   const pph_node *node, uint32_t slot) {
  const pph_value *value = pph_node_find_input(rewrite->graph, node, slot);
  if (!value || !value->producer || value->uses != 1 ||
      pph_rewrite_is_output(rewrite, node->inputs[slot]))
    return NULL;
  return value->producer;
}

pph_status pph_rewrite_become_reshape(pph_rewrite *rewrite, pph_node *node,
                                      pph_id source, pph_error *error) {
  /* By value: adding a constant may move it. */
  pph_shape shape = pph_graph_value(rewrite->graph, node->outputs[0])->shape;
  pph_id ids[2] = {source};
  PPH_TRY(pph_graph_add_ints(rewrite->graph, NULL, shape.dims,
                             (size_t)shape.rank, &ids[1], error));
  node->kind = PPH_NODE_RESHAPE;
  node->attribute_count = 0;
  return pph_rewrite_set_inputs(rewrite, node, ids, 2, error);
}
