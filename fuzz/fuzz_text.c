/* Any text into the parser; what it takes must print and parse to the same
   text again. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_common.h"
#include "graph/text.h"
#include "graph/verify.h"

static void parse_again(const pph_graph *graph, const pph_limits *limits) {
  char *text, *second;
  if (pph_text_print(graph, SIZE_MAX, &text, NULL) != PPH_OK)
    return;
  pph_graph again;
  pph_error error;
  pph_graph_init(&again, graph->heap, limits);
  pph_status status = pph_text_parse(text, strlen(text), &again, &error);
  if (status == PPH_BAD_MODEL)
    abort(); /* only the heap's limit may stop it */
  if (status == PPH_OK && pph_text_print(&again, SIZE_MAX, &second, NULL) == PPH_OK) {
    if (strcmp(text, second) != 0)
      abort();
    pph_heap_release(graph->heap, second);
  }
  pph_graph_clear(&again);
  pph_heap_release(graph->heap, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pph_limits limits = fuzz_limits();
  pph_heap heap;
  pph_graph graph;
  pph_error error;
  pph_heap_init(&heap, NULL, limits.heap_bytes);
  pph_graph_init(&graph, &heap, &limits);
  if (pph_text_parse((const char *)data, size, &graph, &error) == PPH_OK &&
      pph_graph_verify(&graph, &error) == PPH_OK)
    parse_again(&graph, &limits);
  pph_graph_clear(&graph);
  if (atomic_load(&heap.used))
    abort();
  return 0;
}
