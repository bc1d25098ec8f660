/* Removes nodes whose results nobody reads, and forgets constants that nobody
   reads. Producers stand before readers, so one walk from the end sees every
   reader first. */
#include "base/fail.h"
#include "pass/pass.h"

static bool is_dead(const pph_graph *graph, const pph_node *node) {
  for (uint32_t i = 0; i < node->output_count; i++)
    if (node->outputs[i] != PPH_NO_VALUE &&
        pph_graph_value(graph, node->outputs[i])->uses)
      return false;
  return true;
}

pph_status pph_pass_drop_dead_nodes(pph_graph *graph,
                                    const pph_pass_options *options,
                                    pph_error *error) {
  (void)options;
  (void)error;
  pph_graph_index_uses(graph);
  for (pph_node *node = graph->last, *previous; node; node = previous) {
    previous = node->previous;
    if (!is_dead(graph, node))
      continue;
    for (uint32_t i = 0; i < node->input_count; i++) {
      pph_value *value = pph_node_find_input(graph, node, i);
      if (value)
        value->uses--;
    }
    pph_graph_remove_node(graph, node);
  }
  for (pph_id id = 0; id < graph->value_count; id++)
    if (graph->values[id].uses == 0)
      graph->values[id].data = NULL;
  return PPH_OK;
}
