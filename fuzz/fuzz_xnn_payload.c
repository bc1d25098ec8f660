/* Any bytes as a payload of the XNNPACK delegate: what reads and makes sense is
   imported, its shapes inferred, and what is written of it reads again. */
#include <stdlib.h>

#include "base/fail.h"
#include "fuzz_common.h"
#include "graph/shape.h"
#include "graph/verify.h"
#include "pte/xnn_import.h"

enum { ARGUMENTS = 64 };

/* Inputs with the shapes that the payload says. */
static pph_status add_inputs(const pph_payload_index *index, pph_graph *graph,
                             pph_id *arguments) {
  pph_id inputs[ARGUMENTS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < ARGUMENTS; i++)
    arguments[i] = PPH_NO_VALUE;
  for (uint32_t i = 0; i < index->count; i++) {
    const pph_payload_tensor *tensor = index->slots[i].tensor;
    if (tensor->flags != PPH_PAYLOAD_INPUT || tensor->external_id >= ARGUMENTS)
      continue;
    pph_id *id = &arguments[tensor->external_id];
    PPH_TRY(pph_graph_add_value(graph, NULL, id, NULL));
    pph_value *value = pph_graph_value(graph, *id);
    value->type = PPH_F32;
    value->has_rank = true;
    value->shape.rank = (int32_t)tensor->dims.count;
    for (uint32_t d = 0; d < tensor->dims.count; d++)
      value->shape.dims[d] = tensor->dims.at[d];
    inputs[count++] = *id;
  }
  return pph_graph_set_inputs(graph, inputs, count, NULL);
}

static void import(const pph_payload *payload, pph_graph *graph) {
  pph_payload_index index;
  pph_id arguments[ARGUMENTS];
  if (pph_payload_check(payload, &graph->arena, &index, NULL) != PPH_OK ||
      add_inputs(&index, graph, arguments) != PPH_OK ||
      pph_payload_import(&index, NULL, graph, arguments, ARGUMENTS, NULL) !=
          PPH_OK)
    return;
  if (pph_graph_verify(graph, NULL) != PPH_OK)
    abort(); /* what is imported is a graph */
  for (pph_node *node = graph->first; node; node = node->next)
    if (pph_shape_check_node(graph, node, NULL) != PPH_OK)
      return;
  (void)!pph_shape_infer(graph, NULL);
}

static void write_again(const pph_payload *payload, pph_heap *heap,
                        pph_arena *arena) {
  void *bytes;
  size_t length;
  pph_payload again;
  if (pph_payload_write(payload, heap, &bytes, &length, NULL) != PPH_OK)
    return;
  if (pph_payload_read((pph_pte_bytes){bytes, length}, arena, &again, NULL) ==
          PPH_OK &&
      !pph_payload_equal(payload, &again))
    abort();
  pph_heap_release(heap, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pph_limits limits = fuzz_limits();
  pph_heap heap;
  pph_graph graph;
  pph_payload payload;
  pph_heap_init(&heap, NULL, limits.heap_bytes);
  pph_graph_init(&graph, &heap, &limits);
  if (pph_payload_read((pph_pte_bytes){data, size}, &graph.arena, &payload,
                       NULL) == PPH_OK) {
    import(&payload, &graph);
    write_again(&payload, &heap, &graph.arena);
  }
  pph_graph_clear(&graph);
  if (atomic_load(&heap.used))
    abort(); /* a leak */
  return 0;
}
