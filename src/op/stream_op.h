/* The operator behind conv_stream.h: one operator per length of a push, over
   the inputs that are remembered and the new ones. Outputs are computed once
   each, all taps at a time, as in the whole signal. */
#ifndef PPH_OP_STREAM_OP_H
#define PPH_OP_STREAM_OP_H

#include "op/conv_op.h"
#include "polyphase/conv_stream.h"

typedef struct pph_stream_op pph_stream_op;

/* As pph_conv_stream_create; memory comes from `heap`, which must outlive the
   stream. weights->borrowed is not looked at: they are copied. */
PPH_NODISCARD pph_status
pph_stream_op_create(const pph_conv_desc *desc,
                     const pph_conv_stream_options *options,
                     const pph_conv_weights *weights, pph_heap *heap,
                     pph_stream_op **stream, pph_error *error);
void pph_stream_op_destroy(pph_stream_op *stream);

/* As pph_conv_stream_push, _flush, _reset and _explain. */
PPH_NODISCARD pph_status pph_stream_op_push(pph_stream_op *stream,
                                            const float *input, int64_t count,
                                            float *output, int64_t *written,
                                            pph_error *error);
PPH_NODISCARD pph_status pph_stream_op_flush(pph_stream_op *stream,
                                             float *output, int64_t *written,
                                             pph_error *error);
void pph_stream_op_reset(pph_stream_op *stream);
pph_conv_stream_info pph_stream_op_explain(const pph_stream_op *stream);

#endif
