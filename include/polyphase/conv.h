/* Ordinary convolution as an operator: conv_transpose.h without the
   transposition. */
#ifndef POLYPHASE_CONV_H
#define POLYPHASE_CONV_H

#include "polyphase/conv_transpose.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pph_conv pph_conv;

/* As pph_conv_transpose_create; `weights`: [out_channels, in_channels / group,
   kernel...], ONNX's order. desc->output_padding must be 0. */
PPH_NODISCARD pph_status pph_conv_create(const pph_conv_desc *desc,
                                         const float *weights,
                                         const float *bias, pph_conv **op,
                                         pph_error *error);
/* NULL is allowed. */
void pph_conv_destroy(pph_conv *op);

/* As pph_conv_transpose_reshape; output lengths are floor((input + pad_begin +
   pad_end - (kernel-1)*dilation - 1) / stride) + 1. */
PPH_NODISCARD pph_status pph_conv_reshape(pph_conv *op, int64_t batch,
                                          const int64_t *input,
                                          int64_t *output,
                                          size_t *workspace_bytes,
                                          pph_error *error);

/* As pph_conv_transpose_run. */
PPH_NODISCARD pph_status pph_conv_run(const pph_conv *op,
                                           const pph_conv_tensors *tensors,
                                           pph_error *error);

/* As pph_conv_transpose_explain. */
pph_operator_info pph_conv_explain(const pph_conv *op);

#ifdef __cplusplus
}
#endif

#endif
