/* The rules of simplify for Reshape and Transpose. */
#ifndef PPH_PASS_SIMPLIFY_MOVE_H
#define PPH_PASS_SIMPLIFY_MOVE_H

#include "pass/rewrite.h"

/* `node` is a Reshape, Flatten, Squeeze or Unsqueeze (a Transpose): joins it
   with the Reshape and Transpose nodes in front of it where all of them only
   permute whole axes of their source, into nothing, one Reshape, one Transpose,
   or a Transpose and a Reshape. Else with the same kind of node only. */
pph_status pph_simplify_reshape(pph_rewrite *rewrite, pph_node *node,
                                pph_error *error);
pph_status pph_simplify_transpose(pph_rewrite *rewrite, pph_node *node,
                                  pph_error *error);

#endif
