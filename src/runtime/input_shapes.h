/* Errors that come of the shapes that inputs were given. */
#ifndef PPH_RUNTIME_INPUT_SHAPES_H
#define PPH_RUNTIME_INPUT_SHAPES_H

#include "graph/graph.h"

/* Gives `status`, of passes over a copy of `model` whose inputs got shapes, and
   says in *error which of them do not fit: those that the model leaves open.
   What breaks the model's rules is then the caller's mistake; where nothing is
   open, it stays the model's. `shape(context, i)` is that of input i. */
pph_status pph_blame_inputs(const pph_graph *model,
                            const pph_shape *(*shape)(const void *context,
                                                      uint32_t input),
                            const void *context, pph_status status,
                            pph_error *error);

#endif
