/* aten::upsample_nearest2d before a delegate moves into it, and the delegate
   before it too. Then XNNPACK does all of it, in its own layout. */
#ifndef PPH_OPTIMIZE_JOIN_UPSAMPLING_H
#define PPH_OPTIMIZE_JOIN_UPSAMPLING_H

#include "optimize/constant_store.h"
#include "optimize/optimize.h"

/* Only for f32 of fixed sizes and whole factors. What is moved is marked
   (nearest.h); *changes counts. */
PPH_NODISCARD pph_status pph_join_upsampling(
    pph_pte_plan *plan, pph_constant_store *store,
    const pph_optimize_options *options, uint32_t *changes, pph_error *error);

#endif
