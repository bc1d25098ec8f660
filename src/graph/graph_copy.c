/* Copying a graph and putting its nodes in order. */
#include <string.h>

#include "base/fail.h"
#include "graph/graph.h"

static pph_status copy_text(pph_graph *copy, const char **text,
                            pph_error *error) {
  if (!*text)
    return PPH_OK;
  *text = pph_arena_copy_text(&copy->arena, *text, strlen(*text));
  return *text ? PPH_OK : pph_fail_memory(error);
}

static pph_status copy_values(pph_graph *copy, const pph_graph *source,
                              pph_error *error) {
  copy->values = pph_heap_allocate(copy->heap, source->value_count + 64,
                                   sizeof *copy->values);
  if (!copy->values)
    return pph_fail_memory(error);
  copy->value_capacity = source->value_count + 64;
  for (uint32_t i = 0; i < source->value_count; i++) {
    pph_value *value = &copy->values[i];
    *value = source->values[i];
    value->producer = NULL;
    value->user = NULL;
    copy->value_count = i + 1;
    PPH_TRY(copy_text(copy, &value->name, error));
    PPH_TRY(copy_text(copy, &value->origin.external, error));
    for (int axis = 0; axis < PPH_MAX_RANK; axis++)
      PPH_TRY(copy_text(copy, &value->dim_names[axis], error));
  }
  return PPH_OK;
}

static pph_status copy_node(pph_graph *copy, const pph_node *source,
                            pph_error *error) {
  pph_node *node;
  PPH_TRY(pph_graph_add_node(copy, source->kind, source->name, NULL, &node,
                             error));
  node->index = source->index;
  node->lowered = source->lowered;
  PPH_TRY(copy_text(copy, &node->lowered, error));
  PPH_TRY(pph_node_set_inputs(copy, node, source->inputs, source->input_count,
                              error));
  PPH_TRY(pph_node_set_outputs(copy, node, source->outputs,
                               source->output_count, error));
  return pph_node_copy_attributes(copy, node, source, error);
}

static pph_status copy_note(pph_graph *copy, const pph_note *source,
                            pph_error *error) {
  pph_note *note = pph_arena_allocate(&copy->arena, 1, sizeof *note);
  if (!note)
    return pph_fail_memory(error);
  *note = (pph_note){NULL, source->node_name, source->kind, source->lowered,
                     source->reason};
  PPH_TRY(copy_text(copy, &note->node_name, error));
  PPH_TRY(copy_text(copy, &note->lowered, error));
  PPH_TRY(copy_text(copy, &note->reason, error));
  if (copy->last_note)
    copy->last_note->next = note;
  else
    copy->first_note = note;
  copy->last_note = note;
  copy->note_count++;
  return PPH_OK;
}

static pph_status fill_copy(pph_graph *copy, const pph_graph *source,
                            pph_error *error) {
  copy->name = source->name;
  PPH_TRY(copy_text(copy, &copy->name, error));
  copy->method = source->method;
  PPH_TRY(copy_text(copy, &copy->method, error));
  copy->name_counter = source->name_counter;
  copy->bounds = source->bounds;
  copy->state_count = source->state_count;
  copy->states = source->states;
  PPH_TRY(copy_values(copy, source, error));
  for (const pph_node *node = source->first; node; node = node->next)
    PPH_TRY(copy_node(copy, node, error));
  for (const pph_note *note = source->first_note; note; note = note->next)
    PPH_TRY(copy_note(copy, note, error));
  PPH_TRY(pph_graph_set_inputs(copy, source->inputs, source->input_count,
                               error));
  return pph_graph_set_outputs(copy, source->outputs, source->output_count,
                               error);
}

pph_status pph_graph_copy(pph_graph *copy, const pph_graph *source,
                          pph_heap *heap, pph_error *error) {
  pph_graph_init(copy, heap, NULL);
  copy->tensor_limit = source->tensor_limit;
  copy->node_limit = source->node_limit;
  pph_status status = fill_copy(copy, source, error);
  if (status != PPH_OK)
    pph_graph_clear(copy);
  return status;
}

/* Sorting: a depth-first walk with a stack of its own over the nodes' inputs,
   so that the order stays close to the file's. */

typedef enum mark { MARK_NEW, MARK_OPEN, MARK_DONE } mark;

typedef struct walk_frame {
  pph_node *node;
  uint32_t next_input;
} walk_frame;

typedef struct sorter {
  pph_graph *graph;
  unsigned char *marks; /* per node position */
  uint32_t *position;   /* per value: its producer's position */
  pph_node **nodes;
  walk_frame *stack;
  pph_node *head, *tail;
  pph_node *on_cycle; /* set when visit fails */
} sorter;

static void emit(sorter *sort, pph_node *node) {
  node->previous = sort->tail;
  node->next = NULL;
  if (sort->tail)
    sort->tail->next = node;
  else
    sort->head = node;
  sort->tail = node;
}

/* The producer of input `slot` as a position, or UINT32_MAX. */
static uint32_t producer_position(const sorter *sort, const pph_node *node,
                                  uint32_t slot) {
  pph_id id = node->inputs[slot];
  if (id == PPH_NO_VALUE || !sort->graph->values[id].producer)
    return UINT32_MAX;
  return sort->position[id];
}

static pph_status visit(sorter *sort, uint32_t start) {
  uint32_t depth = 0;
  if (sort->marks[start] == MARK_DONE)
    return PPH_OK;
  sort->marks[start] = MARK_OPEN;
  sort->stack[depth++] = (walk_frame){sort->nodes[start], 0};
  while (depth) {
    walk_frame *frame = &sort->stack[depth - 1];
    if (frame->next_input == frame->node->input_count) {
      pph_node *node = frame->node;
      emit(sort, node);
      sort->marks[node->index] = MARK_DONE;
      depth--;
      continue;
    }
    uint32_t next = producer_position(sort, frame->node, frame->next_input++);
    if (next == UINT32_MAX || sort->marks[next] == MARK_DONE)
      continue;
    if (sort->marks[next] == MARK_OPEN) {
      sort->on_cycle = sort->nodes[next];
      return PPH_BAD_MODEL;
    }
    sort->marks[next] = MARK_OPEN;
    sort->stack[depth++] = (walk_frame){sort->nodes[next], 0};
  }
  return PPH_OK;
}

static pph_status sort_with(sorter *sort, uint32_t *saved, pph_error *error) {
  pph_graph *graph = sort->graph;
  uint32_t count = 0;
  for (pph_node *node = graph->first; node; node = node->next) {
    saved[count] = node->index;
    node->index = count; /* the position while sorting */
    sort->nodes[count++] = node;
    for (uint32_t i = 0; i < node->output_count; i++)
      if (node->outputs[i] != PPH_NO_VALUE)
        sort->position[node->outputs[i]] = node->index;
  }
  pph_status status = PPH_OK;
  for (uint32_t i = 0; i < count && status == PPH_OK; i++)
    status = visit(sort, i);
  for (uint32_t i = 0; i < count; i++)
    sort->nodes[i]->index = saved[i];
  if (status != PPH_OK)
    return pph_node_fail(sort->on_cycle, error, status,
                         "the node depends on its own output: the graph has a "
                         "cycle");
  graph->first = sort->head;
  graph->last = sort->tail;
  return PPH_OK;
}

pph_status pph_graph_sort(pph_graph *graph, pph_error *error) {
  size_t nodes = (size_t)graph->node_count + 1;
  pph_heap *heap = graph->heap;
  sorter sort = {.graph = graph};
  sort.marks = pph_heap_allocate_zeroed(heap, nodes, 1);
  sort.position = pph_heap_allocate_zeroed(
      heap, (size_t)graph->value_count + 1, sizeof *sort.position);
  sort.nodes = pph_heap_allocate(heap, nodes, sizeof *sort.nodes);
  sort.stack = pph_heap_allocate(heap, nodes, sizeof *sort.stack);
  uint32_t *saved = pph_heap_allocate(heap, nodes, sizeof *saved);
  pph_status status;
  if (sort.marks && sort.position && sort.nodes && sort.stack && saved)
    status = sort_with(&sort, saved, error);
  else
    status = pph_fail_memory(error);
  pph_heap_release(heap, sort.marks);
  pph_heap_release(heap, sort.position);
  pph_heap_release(heap, sort.nodes);
  pph_heap_release(heap, sort.stack);
  pph_heap_release(heap, saved);
  return status;
}
