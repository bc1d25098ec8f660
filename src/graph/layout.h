/* How a value's logical axes lie in memory. */
#ifndef PPH_GRAPH_LAYOUT_H
#define PPH_GRAPH_LAYOUT_H

#include "graph/graph.h"

/* The logical axis at every place in memory, outermost first: channels last
   moves axis 1 to the end for rank >= 3. */
void pph_layout_axes(pph_layout layout, int32_t rank, int32_t *logical_axis);

/* The same for a value in its layout, and its dimensions in that order. */
void pph_layout_order(const pph_value *value, int32_t *logical_axis);
void pph_layout_physical(const pph_value *value, pph_shape *physical);

#endif
