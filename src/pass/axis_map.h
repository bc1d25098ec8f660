/* Where the elements of a value come from after a chain of Transpose and
   Reshape nodes: each axis of the result is a list of atoms, pieces of axes of
   the source, outermost first. Chains that look different but move the same
   have the same atoms. */
#ifndef PPH_PASS_AXIS_MAP_H
#define PPH_PASS_AXIS_MAP_H

#include "graph/graph.h"

enum { PPH_AXIS_MAP_ATOMS = 16 };

/* index on source axis `axis` = ... + stride * (index of the atom). Atoms of
   length 1 are left out. `place` is the result's axis. */
typedef struct pph_axis_atom {
  int32_t axis, place;
  int64_t stride, length;
} pph_axis_atom;

typedef struct pph_axis_map {
  int32_t rank; /* of the result */
  uint32_t count;
  pph_axis_atom atoms[PPH_AXIS_MAP_ATOMS]; /* by place, outermost first */
} pph_axis_map;

/* The result is the source. Dimensions must be at least 1. */
void pph_axis_map_init(pph_axis_map *map, const pph_shape *shape);

/* Appends an atom to axis `place`, the last so far; false when full. */
bool pph_axis_map_append(pph_axis_map *map, pph_axis_atom atom);

void pph_axis_map_transpose(pph_axis_map *map, const int64_t *perm);

/* False when a new dimension ends inside a piece that it does not divide. */
bool pph_axis_map_reshape(pph_axis_map *map, const pph_shape *shape);

/* Follows one Transpose or Reshape node (shapes inferred); false for another
   kind too. */
bool pph_axis_map_follow(pph_axis_map *map, const pph_graph *graph,
                         const pph_node *node);

/* Walks up from `id` over Transpose and Reshape nodes to *source, and maps `id`
   as a result of it. False when the chain cannot be mapped. */
bool pph_axis_map_trace(pph_axis_map *map, const pph_graph *graph, pph_id id,
                        pph_id *source);

#endif
