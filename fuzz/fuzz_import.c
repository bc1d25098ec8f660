/* Any bytes into the ONNX importer; what it takes must export and import
   again. */
#include <stdlib.h>

#include "fuzz_common.h"
#include "onnx/onnx.h"

static void import_again(const pph_graph *graph, const pph_limits *limits) {
  void *bytes;
  size_t length;
  if (pph_onnx_export(graph, &bytes, &length, NULL) != PPH_OK)
    return;
  pph_graph again;
  pph_graph_init(&again, graph->heap, limits);
  pph_status status =
      pph_onnx_import(bytes, length, NULL, limits, &again, NULL);
  if (status == PPH_OK && again.input_count != graph->input_count)
    abort();
  pph_graph_clear(&again);
  pph_heap_release(graph->heap, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pph_limits limits = fuzz_limits();
  pph_heap heap;
  pph_graph graph;
  pph_error error;
  pph_heap_init(&heap, NULL, limits.heap_bytes);
  pph_graph_init(&graph, &heap, &limits);
  if (pph_onnx_import(data, size, NULL, &limits, &graph, &error) == PPH_OK)
    import_again(&graph, &limits);
  pph_graph_clear(&graph);
  if (atomic_load(&heap.used))
    abort(); /* a leak */
  return 0;
}
