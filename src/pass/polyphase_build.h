/* Builds the nodes of a polyphase plan. */
#ifndef PPH_PASS_POLYPHASE_BUILD_H
#define PPH_PASS_POLYPHASE_BUILD_H

#include "pass/polyphase_plan.h"
#include "pass/rewrite.h"

/* Replaces `node`, a ConvTranspose with constant f32 weight (and bias, if any),
   by the convolutions of `plan`, a Concat, a DepthToSpace and a Slice, as far
   as needed. The last of them produces the node's output value. `lowered`
   (arena) is written into the new nodes. */
PPH_NODISCARD pph_status pph_polyphase_build(pph_rewrite *rewrite,
                                             pph_node *node,
                                             const pph_polyphase_plan *plan,
                                             const char *lowered,
                                             pph_error *error);

#endif
