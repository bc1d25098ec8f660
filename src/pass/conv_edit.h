/* Scaling and shifting what a convolution gives, by its constants. */
#ifndef PPH_PASS_CONV_EDIT_H
#define PPH_PASS_CONV_EDIT_H

#include "pass/rewrite.h"

/* Whether `node` is a Conv or ConvTranspose with f32 constants for weight and
   bias (if any), neither a fourth input nor an activation yet, and no need of
   exact sums; gives *channels. */
bool pph_conv_edit_supports(const pph_graph *graph, const pph_node *node,
                            int64_t *channels);

/* Each output channel c becomes scale[c] * y + shift[c], by new constants
   rounded once from double. Scales that are all 1 keep the weight. */
PPH_NODISCARD pph_status pph_conv_edit_apply(pph_rewrite *rewrite,
                                             pph_node *node,
                                             const double *scale,
                                             const double *shift,
                                             pph_error *error);

#endif
