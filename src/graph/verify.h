/* Invariants of a graph, checked after import and, in debug builds, after every
   pass. */
#ifndef PPH_GRAPH_VERIFY_H
#define PPH_GRAPH_VERIFY_H

#include "graph/graph.h"

/* PPH_BAD_MODEL at the first breach: ids in range, names unique and not empty,
   every value produced once and before it is read (inputs and constants never),
   counts of inputs and outputs as the kind allows, attribute types, every graph
   output produced, constant data present with known shapes. O(graph log). */
PPH_NODISCARD pph_status pph_graph_verify(const pph_graph *graph,
                                          pph_error *error);

#endif
