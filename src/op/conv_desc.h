/* Checking what a caller asks for, and turning it into a pph_conv_spec. */
#ifndef PPH_OP_CONV_DESC_H
#define PPH_OP_CONV_DESC_H

#include "op/algo.h"

/* Everything but lengths. Writes the number of weights. */
PPH_NODISCARD pph_status pph_conv_desc_check(const pph_conv_desc *desc,
                                             bool transposed,
                                             size_t *weight_count,
                                             pph_error *error);

/* Checks a desc and starts the heap that its operator takes memory from, and
   may lie in itself. */
PPH_NODISCARD pph_status pph_conv_desc_start(const pph_conv_desc *desc,
                                             bool transposed, pph_heap *heap,
                                             pph_error *error);

/* A checked desc's part of the spec: no lengths, pointers NULL. */
void pph_conv_desc_fill(const pph_conv_desc *desc, bool transposed,
                        pph_conv_spec *spec);

/* Resolves spec's lengths for an input shape, and checks that tensors stay
   within the limits. */
PPH_NODISCARD pph_status pph_conv_desc_resolve(const pph_conv_desc *desc,
                                               int64_t batch,
                                               const int64_t *input,
                                               pph_conv_spec *spec,
                                               pph_error *error);

#endif
