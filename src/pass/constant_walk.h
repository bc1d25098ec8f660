/* The walk that infer_shapes and fold_constants share: in node order each node
   gets its shapes, then, if all it reads is known, its value. In one walk,
   because a shape may depend on a value that depends on a shape. */
#ifndef PPH_PASS_CONSTANT_WALK_H
#define PPH_PASS_CONSTANT_WALK_H

#include "graph/graph.h"

/* What may be computed ahead. A result larger than `result_bytes` is folded
   only if it is no larger than what it is made from (`shrink` says so). */
typedef struct pph_constant_budget {
  size_t result_bytes;
  bool shrink;
  double node_work;  /* multiply-adds or element moves of one node */
  double total_work; /* of all nodes together; counts down */
  double total_bytes;
} pph_constant_budget;

PPH_NODISCARD pph_status pph_constant_walk(pph_graph *graph,
                                           pph_constant_budget *budget,
                                           pph_error *error);

#endif
