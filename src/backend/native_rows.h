/* The parts of the native backend: each runs a family of node kinds. */
#ifndef PPH_BACKEND_NATIVE_ROWS_H
#define PPH_BACKEND_NATIVE_ROWS_H

#include "backend/backend.h"
#include "kernel/strided_copy.h"

/* Moving data: copies[i] goes from input sources[i] to output targets[i]. A
   fill comes first (constant padding). */
typedef struct pph_move {
  uint32_t count, capacity;
  pph_strided_copy *copies;
  uint32_t *sources, *targets;
  bool fills;
  unsigned char fill_element[8];
  size_t fill_count, fill_size; /* elements of output 0 and their size */
} pph_move;

/* Describes a MOVE node, DepthToSpace or SpaceToDepth as copies between the
   values' layouts. False when the node is no such thing (a constant that it
   needs is missing, a padding mode, too many parts). Allocates from heap;
   pph_move_release frees, also after a failure. With heap NULL only answers,
   and keeps nothing. */
bool pph_move_make(const pph_graph *graph, const pph_node *node,
                   pph_heap *heap, pph_move *move);
void pph_move_release(pph_heap *heap, pph_move *move);

/* Whether pph_move_make would succeed; takes no memory. */
bool pph_move_supports(const pph_graph *graph, const pph_node *node);

/* The whole node is one copy that changes nothing. */
bool pph_move_is_alias(const pph_graph *graph, const pph_node *node,
                       const pph_move *move);

/* Elementwise functions of one f32 input that XNNPACK has no kernel for. */
typedef struct pph_unary {
  float (*apply)(float x, float alpha, float beta);
  float alpha, beta;
} pph_unary;
bool pph_unary_find(const pph_graph *graph, const pph_node *node,
                    pph_unary *unary);

/* Strides, in elements, of a value's logical axes in its layout. */
void pph_layout_strides(const pph_value *value, int64_t *strides);

#endif
