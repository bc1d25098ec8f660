/* Values, nodes and their links. Attributes are in attribute.c. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

void pph_graph_init(pph_graph *graph, pph_heap *heap,
                    const pph_limits *limits) {
  pph_limits standard;
  if (!limits) {
    pph_limits_init(&standard);
    limits = &standard;
  }
  *graph = (pph_graph){.heap = heap,
                       .name = "",
                       .tensor_limit = limits->tensor_bytes,
                       .node_limit = limits->nodes};
  pph_arena_init(&graph->arena, heap);
}

void pph_graph_clear(pph_graph *graph) {
  pph_heap_release(graph->heap, graph->values);
  pph_arena_clear(&graph->arena);
  pph_heap *heap = graph->heap;
  *graph = (pph_graph){.heap = heap, .name = ""};
}

/* Values */

const char *pph_graph_make_name(pph_graph *graph, const char *stem) {
  /* '~' is legal in a name but no exporter uses it, so that a name made here
     meets no name of the file; the counter keeps ours apart. */
  char text[160];
  snprintf(text, sizeof text, "%.120s~%u", stem, graph->name_counter++);
  return pph_arena_copy_text(&graph->arena, text, strlen(text));
}

static pph_status reserve_value(pph_graph *graph, pph_error *error) {
  if (graph->value_count < graph->value_capacity)
    return PPH_OK;
  uint32_t capacity = graph->value_capacity ? graph->value_capacity * 2 : 64;
  if (graph->value_count >= UINT32_MAX / 4)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "", "more than %u values",
                    UINT32_MAX / 4);
  pph_value *grown = pph_heap_grow(graph->heap, graph->values,
                                   graph->value_count * sizeof *grown,
                                   capacity, sizeof *grown);
  if (!grown)
    return pph_fail_memory(error);
  graph->values = grown;
  graph->value_capacity = capacity;
  return PPH_OK;
}

/* Keeps pph_graph_make_name away from names like "v~12". */
static void reserve_name(pph_graph *graph, const char *name) {
  const char *tail = strrchr(name, '~');
  uint32_t number = 0;
  if (!tail || !tail[1] || strlen(tail) > 9)
    return;
  while (*++tail) {
    if (*tail < '0' || *tail > '9')
      return;
    number = number * 10 + (uint32_t)(*tail - '0');
  }
  if (number >= graph->name_counter)
    graph->name_counter = number + 1;
}

pph_status pph_graph_add_value(pph_graph *graph, const char *name, pph_id *id,
                               pph_error *error) {
  *id = PPH_NO_VALUE;
  PPH_TRY(reserve_value(graph, error));
  const char *own = name ? pph_arena_copy_text(&graph->arena, name,
                                               strlen(name))
                         : pph_graph_make_name(graph, "v");
  if (!own)
    return pph_fail_memory(error);
  if (name)
    reserve_name(graph, own);
  graph->values[graph->value_count] = (pph_value){.name = own};
  *id = graph->value_count++;
  return PPH_OK;
}

pph_status pph_graph_add_constant(pph_graph *graph, const char *name,
                                  const pph_tensor *tensor, pph_id *id,
                                  pph_error *error) {
  *id = PPH_NO_VALUE;
  size_t bytes;
  if (!pph_shape_bytes(&tensor->shape, tensor->type, &bytes) ||
      !pph_shape_fits(&tensor->shape, tensor->type, graph->tensor_limit))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "",
                    "a constant is larger than the limit of %llu bytes",
                    (unsigned long long)graph->tensor_limit);
  /* 64 more: XNNPACK may read past a tensor's end. */
  void *data = bytes > SIZE_MAX - 64
                   ? NULL
                   : pph_arena_allocate(&graph->arena, bytes + 64, 1);
  if (!data)
    return pph_fail_memory(error);
  if (bytes)
    memcpy(data, tensor->data, bytes);
  PPH_TRY(pph_graph_add_value(graph, name, id, error));
  pph_value *value = pph_graph_value(graph, *id);
  value->type = tensor->type;
  value->has_rank = true;
  value->shape = tensor->shape;
  value->data = data;
  return PPH_OK;
}

pph_status pph_graph_add_ints(pph_graph *graph, const char *name,
                              const int64_t *ints, size_t count, pph_id *id,
                              pph_error *error) {
  int64_t *copy = pph_arena_allocate(&graph->arena, count + 1, sizeof *copy);
  if (!copy)
    return pph_fail_memory(error);
  if (count)
    memcpy(copy, ints, count * sizeof *copy);
  pph_tensor tensor = {PPH_I64, {1, {(int64_t)count}}, copy};
  return pph_graph_add_constant(graph, name, &tensor, id, error);
}

pph_value *pph_node_find_input(const pph_graph *graph, const pph_node *node,
                               uint32_t slot) {
  if (slot >= node->input_count || node->inputs[slot] == PPH_NO_VALUE)
    return NULL;
  return pph_graph_value(graph, node->inputs[slot]);
}

pph_value *pph_node_find_result(const pph_graph *graph, const pph_node *node) {
  for (uint32_t i = 0; i < node->output_count; i++)
    if (node->outputs[i] != PPH_NO_VALUE)
      return pph_graph_value(graph, node->outputs[i]);
  return NULL;
}

bool pph_node_adds_residual(const pph_node *node) {
  return (node->kind == PPH_NODE_CONV ||
          node->kind == PPH_NODE_CONV_TRANSPOSE) &&
         node->input_count > 3;
}

bool pph_node_find_constant(const pph_graph *graph, const pph_node *node,
                            uint32_t slot, pph_tensor *tensor) {
  const pph_value *value = pph_node_find_input(graph, node, slot);
  if (!value || !value->data)
    return false;
  /* The cast is safe: the contract says that nobody writes through it. */
  tensor->data = (void *)(uintptr_t)value->data;
  tensor->type = value->type;
  tensor->shape = value->shape;
  return true;
}

void pph_tensor_copy_ints(const pph_tensor *tensor, size_t count,
                          int64_t *ints) {
  for (size_t i = 0; i < count; i++)
    ints[i] = tensor->type == PPH_I64 ? ((const int64_t *)tensor->data)[i]
                                      : ((const int32_t *)tensor->data)[i];
}

bool pph_node_read_ints(const pph_graph *graph, const pph_node *node,
                        uint32_t slot, int64_t *ints, size_t capacity,
                        size_t *count) {
  pph_tensor tensor;
  *count = 0;
  if (!pph_node_find_constant(graph, node, slot, &tensor) ||
      tensor.shape.rank > 1 || !pph_shape_count(&tensor.shape, count) ||
      *count > capacity || (tensor.type != PPH_I64 && tensor.type != PPH_I32)) {
    *count = 0;
    return false;
  }
  pph_tensor_copy_ints(&tensor, *count, ints);
  return true;
}

/* Nodes */

static void link_before(pph_graph *graph, pph_node *node, pph_node *before) {
  node->next = before;
  node->previous = before ? before->previous : graph->last;
  if (node->previous)
    node->previous->next = node;
  else
    graph->first = node;
  if (before)
    before->previous = node;
  else
    graph->last = node;
}

pph_status pph_graph_add_node(pph_graph *graph, pph_node_kind kind,
                              const char *name, pph_node *before,
                              pph_node **node, pph_error *error) {
  *node = NULL;
  if (graph->node_count >= graph->node_limit)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "",
                    "the graph has more than %u nodes", graph->node_limit);
  pph_node *made = pph_arena_allocate(&graph->arena, 1, sizeof *made);
  const char *own =
      name && *name ? pph_arena_copy_text(&graph->arena, name, strlen(name))
                    : "";
  if (!made || !own)
    return pph_fail_memory(error);
  made->kind = kind;
  made->name = own;
  made->index = before ? before->index : graph->node_count;
  link_before(graph, made, before);
  graph->node_count++;
  *node = made;
  return PPH_OK;
}

static pph_status copy_ids(pph_graph *graph, const pph_id *ids, uint32_t count,
                           pph_id **copy, pph_error *error) {
  *copy = pph_arena_allocate(&graph->arena, (size_t)count + 1, sizeof **copy);
  if (!*copy)
    return pph_fail_memory(error);
  if (count)
    memcpy(*copy, ids, count * sizeof *ids);
  return PPH_OK;
}

pph_status pph_node_set_inputs(pph_graph *graph, pph_node *node,
                               const pph_id *ids, uint32_t count,
                               pph_error *error) {
  PPH_TRY(copy_ids(graph, ids, count, &node->inputs, error));
  node->input_count = count;
  return PPH_OK;
}

pph_status pph_node_set_outputs(pph_graph *graph, pph_node *node,
                                const pph_id *ids, uint32_t count,
                                pph_error *error) {
  PPH_TRY(copy_ids(graph, ids, count, &node->outputs, error));
  node->output_count = count;
  for (uint32_t i = 0; i < count; i++)
    if (ids[i] != PPH_NO_VALUE)
      pph_graph_value(graph, ids[i])->producer = node;
  return PPH_OK;
}

pph_status pph_graph_insert(pph_graph *graph, pph_node_kind kind,
                            pph_node *before, const pph_id *inputs,
                            uint32_t input_count, pph_node **node,
                            pph_error *error) {
  pph_id output;
  PPH_TRY(pph_graph_add_node(graph, kind, before ? before->name : NULL, before,
                             node, error));
  PPH_TRY(pph_node_set_inputs(graph, *node, inputs, input_count, error));
  PPH_TRY(pph_graph_add_value(graph, NULL, &output, error));
  return pph_node_set_outputs(graph, *node, &output, 1, error);
}

void pph_graph_remove_node(pph_graph *graph, pph_node *node) {
  if (node->previous)
    node->previous->next = node->next;
  else
    graph->first = node->next;
  if (node->next)
    node->next->previous = node->previous;
  else
    graph->last = node->previous;
  graph->node_count--;
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i] == PPH_NO_VALUE)
      continue;
    pph_value *value = pph_graph_value(graph, node->outputs[i]);
    if (value->producer == node)
      value->producer = NULL;
  }
}

void pph_graph_replace_uses(pph_graph *graph, pph_id from, pph_id to) {
  for (pph_node *node = graph->first; node; node = node->next)
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] == from)
        node->inputs[i] = to;
  for (uint32_t i = 0; i < graph->output_count; i++)
    if (graph->outputs[i] == from)
      graph->outputs[i] = to;
}

void pph_graph_index_uses(pph_graph *graph) {
  for (uint32_t i = 0; i < graph->value_count; i++) {
    graph->values[i].uses = 0;
    graph->values[i].user = NULL;
  }
  for (pph_node *node = graph->first; node; node = node->next)
    for (uint32_t i = 0; i < node->input_count; i++) {
      pph_value *value = pph_node_find_input(graph, node, i);
      if (!value)
        continue;
      value->uses++;
      if (!value->user)
        value->user = node;
    }
  for (uint32_t i = 0; i < graph->output_count; i++)
    graph->values[graph->outputs[i]].uses++;
}

static bool contains(const pph_id *ids, uint32_t count, pph_id id) {
  for (uint32_t i = 0; i < count; i++)
    if (ids[i] == id)
      return true;
  return false;
}

bool pph_graph_is_output(const pph_graph *graph, pph_id id) {
  return contains(graph->outputs, graph->output_count, id);
}

bool pph_graph_is_input(const pph_graph *graph, pph_id id) {
  return contains(graph->inputs, graph->input_count, id);
}

pph_status pph_graph_set_inputs(pph_graph *graph, const pph_id *ids,
                                uint32_t count, pph_error *error) {
  PPH_TRY(copy_ids(graph, ids, count, &graph->inputs, error));
  graph->input_count = count;
  return PPH_OK;
}

pph_status pph_graph_set_outputs(pph_graph *graph, const pph_id *ids,
                                 uint32_t count, pph_error *error) {
  PPH_TRY(copy_ids(graph, ids, count, &graph->outputs, error));
  graph->output_count = count;
  return PPH_OK;
}

/* Messages and notes */

const char *pph_node_place(const pph_node *node, char *text, size_t size) {
  const char *kind = pph_node_kind_find_info(node->kind)->name;
  if (node->name[0])
    snprintf(text, size, "node %u %s \"%.100s\"", node->index, kind,
             node->name);
  else
    snprintf(text, size, "node %u %s", node->index, kind);
  return text;
}

pph_status pph_node_fail(const pph_node *node, pph_error *error,
                         pph_status status, const char *format, ...) {
  char place[160], message[sizeof error->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pph_fail(error, status, pph_node_place(node, place, sizeof place),
                  "%s", message);
}

static pph_status copy_note_text(pph_graph *graph, const char *text,
                                 const char **copy, pph_error *error) {
  *copy = NULL;
  if (!text)
    return PPH_OK;
  *copy = pph_arena_copy_text(&graph->arena, text, strlen(text));
  return *copy ? PPH_OK : pph_fail_memory(error);
}

static pph_note *find_note(pph_graph *graph, const char *name) {
  for (pph_note *note = graph->first_note; note; note = note->next)
    if (strcmp(note->node_name, name) == 0)
      return note;
  return NULL;
}

static pph_status append_note(pph_graph *graph, const char *name,
                              pph_node_kind kind, pph_note **made,
                              pph_error *error) {
  pph_note *note = pph_arena_allocate(&graph->arena, 1, sizeof *note);
  if (!note)
    return pph_fail_memory(error);
  PPH_TRY(copy_note_text(graph, name, &note->node_name, error));
  note->kind = pph_node_kind_find_info(kind)->name;
  if (graph->last_note)
    graph->last_note->next = note;
  else
    graph->first_note = note;
  graph->last_note = note;
  graph->note_count++;
  *made = note;
  return PPH_OK;
}

/* Finding a node's note is linear, and nobody reads more than this. */
enum { MAX_NOTES = 10000 };

pph_status pph_graph_add_note(pph_graph *graph, const pph_node *node,
                              const char *lowered, const char *reason,
                              pph_error *error) {
  char unnamed[32];
  const char *name = node->name;
  if (!name[0]) {
    snprintf(unnamed, sizeof unnamed, "node %u", node->index);
    name = unnamed;
  }
  pph_note *note = find_note(graph, name);
  if (!note && graph->note_count == MAX_NOTES)
    return PPH_OK;
  if (!note)
    PPH_TRY(append_note(graph, name, node->kind, &note, error));
  PPH_TRY(copy_note_text(graph, lowered, &note->lowered, error));
  return copy_note_text(graph, reason, &note->reason, error);
}
