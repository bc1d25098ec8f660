/* What rewriting counts on beyond pph_payload_check: nodes that move or keep
   elements have values of the dimensions that they say, so that axes and
   permutations may be followed. */
#ifndef PPH_OPTIMIZE_DIMS_CHECK_H
#define PPH_OPTIMIZE_DIMS_CHECK_H

#include "pte/xnn_check.h"

/* Element by element, one input. */
bool pph_payload_is_unary(uint32_t kind);
bool pph_payload_is_concat(uint32_t kind);

/* `payload` is checked. PPH_UNSUPPORTED names the first node that does not
   hold. */
PPH_NODISCARD pph_status pph_payload_check_dims(
    const pph_payload *payload, const pph_payload_index *index,
    pph_error *error);

#endif
