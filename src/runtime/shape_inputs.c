/* Graph inputs whose values, not only whose shapes, decide the shapes inside: a
   Resize's sizes, a Reshape's target. A plan is made for their values too. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/loaded_model.h"

/* Input slots that shape inference reads, as bits. */
static const struct {
  pph_node_kind kind;
  uint32_t slots;
} rows[] = {
    {PPH_NODE_CONSTANT_OF_SHAPE, 1}, {PPH_NODE_EXPAND, 2},
    {PPH_NODE_PAD, 2 | 8},           {PPH_NODE_RANGE, 7},
    {PPH_NODE_REDUCE_MAX, 2},        {PPH_NODE_REDUCE_MEAN, 2},
    {PPH_NODE_REDUCE_MIN, 2},        {PPH_NODE_REDUCE_SUM, 2},
    {PPH_NODE_RESHAPE, 2},           {PPH_NODE_RESIZE, 2 | 4 | 8},
    {PPH_NODE_SLICE, 2 | 4 | 8 | 16}, {PPH_NODE_SPLIT, 2},
    {PPH_NODE_SQUEEZE, 2},           {PPH_NODE_TILE, 2},
    {PPH_NODE_TOP_K, 2},             {PPH_NODE_UNSQUEEZE, 2},
};

static uint32_t shape_slots(pph_node_kind kind) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].kind == kind)
      return rows[i].slots;
  return 0;
}

/* Marks what `node` needs the values of. Nodes are visited last to first, so
   that a marked output is known before its producer is asked. */
static void mark_node(const pph_graph *graph, const pph_node *node,
                      bool *marked) {
  bool all = false;
  for (uint32_t i = 0; i < node->output_count; i++)
    all |= node->outputs[i] != PPH_NO_VALUE && marked[node->outputs[i]];
  if (node->kind == PPH_NODE_SHAPE || node->kind == PPH_NODE_SIZE)
    return; /* these answer from shapes alone */
  uint32_t slots = all ? UINT32_MAX : shape_slots(node->kind);
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] != PPH_NO_VALUE &&
        (all || (i < 32 && (slots >> i & 1))))
      marked[node->inputs[i]] = true;
}

pph_status pph_session_find_shape_inputs(const pph_graph *graph,
                                         pph_heap *heap, bool *is_shape_input,
                                         pph_error *error) {
  bool *marked = pph_heap_allocate_zeroed(heap, graph->value_count, 1);
  if (!marked)
    return pph_fail_memory(error);
  for (const pph_node *node = graph->last; node; node = node->previous)
    mark_node(graph, node, marked);
  for (uint32_t i = 0; i < graph->input_count; i++)
    is_shape_input[i] = marked[graph->inputs[i]];
  pph_heap_release(heap, marked);
  return PPH_OK;
}
