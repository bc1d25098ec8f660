/* The text form of a graph: what `--dump` prints and what tests are written
   in. print(parse(text)) == text for canonical text; docs/text-form.md. */
#ifndef PPH_GRAPH_TEXT_H
#define PPH_GRAPH_TEXT_H

#include "graph/graph.h"

/* Prints into a heap block of graph->heap ending in 0; the caller releases it
   with pph_heap_release. `data_limit`: constants of more elements are printed
   as "..." plus a checksum and cannot be parsed back (SIZE_MAX: all). */
PPH_NODISCARD pph_status pph_text_print(const pph_graph *graph,
                                        size_t data_limit, char **text,
                                        pph_error *error);

/* Parses `length` bytes into an initialised empty graph. Errors name line and
   column. Never reads beyond `length`, no recursion. */
PPH_NODISCARD pph_status pph_text_parse(const char *text, size_t length,
                                        pph_graph *graph, pph_error *error);

#endif
