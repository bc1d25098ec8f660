/* Convolutions of signals that come piece by piece: sound while it is spoken.
   A stream remembers the end of what came before, so that the outputs of all
   pieces, one after the other, are those of the whole signal. */
#ifndef POLYPHASE_CONV_STREAM_H
#define POLYPHASE_CONV_STREAM_H

#include "polyphase/conv_transpose.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stream belongs to one thread at a time. */
typedef struct pph_conv_stream pph_conv_stream;

/* Set by pph_conv_stream_options_init, then change fields. */
typedef struct pph_conv_stream_options {
  size_t struct_size;
  int64_t batch;         /* signals side by side, at least 1, the default */
  int64_t longest;       /* most input positions of one push, at least 1; to be
                            set */
  pph_thread_pool *pool; /* NULL: the caller's thread. As pph_conv_tensors.pool,
                            and must outlive the stream */
} pph_conv_stream_options;

void pph_conv_stream_options_init(pph_conv_stream_options *options);

typedef struct pph_conv_stream_info {
  int64_t step;    /* a push has a multiple of so many positions: 1, but the
                      stride of an ordinary convolution */
  int64_t outputs; /* positions that a step gives: the stride of a transposed
                      convolution, or 1 */
  int64_t skipped; /* output positions that the first pushes give less */
  int64_t flushed; /* that the flush gives */
  pph_operator_info longest; /* of a push of options.longest positions */
} pph_conv_stream_info;

/* A stream of a transposed convolution along one axis. `desc`, `weights` and
   `bias` as for pph_conv_transpose_create, all copied; desc->axes must be 1 and
   desc->residual false. Chooses algorithms and packs weights once, for pushes
   of 1, 2, 4, 8, 32, 128, ... and `longest` steps, each at most an equal share
   of desc->weight_bytes; other lengths take the time of the next longer one.
   *stream belongs to the caller; NULL on failure. Errors: as create and
   reshape of the operator. */
PPH_NODISCARD pph_status pph_conv_stream_create_transposed(
    const pph_conv_desc *desc, const pph_conv_stream_options *options,
    const float *weights, const float *bias, pph_conv_stream **stream,
    pph_error *error);

/* The same of an ordinary convolution: weights as for pph_conv_create,
   options->longest a multiple of the stride. A causal one has pad_begin
   (kernel-1)*dilation. PPH_UNSUPPORTED: a pad above that. */
PPH_NODISCARD pph_status pph_conv_stream_create(
    const pph_conv_desc *desc, const pph_conv_stream_options *options,
    const float *weights, const float *bias, pph_conv_stream **stream,
    pph_error *error);

/* NULL is allowed. */
void pph_conv_stream_destroy(pph_conv_stream *stream);

/* Takes the next `count` positions of every signal, 0 to options.longest and a
   multiple of info.step: `input` is a dense tensor of that length in the desc's
   memory order. Writes what is complete by now, count / step * outputs
   positions except for those skipped at the signal's begin, as a dense tensor,
   and their number to *written. `output` has room for all; it may be NULL when
   none comes, `input` when count is 0. They must not overlap.
   EXACT: the same bits as the whole signal's, however it is cut. Other levels:
   within their E. Allocates nothing. Errors: PPH_INVALID_ARGUMENT; the stream
   is then as before. */
PPH_NODISCARD pph_status pph_conv_stream_push(pph_conv_stream *stream,
                                              const float *input, int64_t count,
                                              float *output, int64_t *written,
                                              pph_error *error);

/* Ends the signal: writes the remaining positions, info.flushed of them (less
   what is still to be skipped), and their number. The next push begins a new
   signal. Nothing comes of a signal of no positions. */
PPH_NODISCARD pph_status pph_conv_stream_flush(pph_conv_stream *stream,
                                               float *output, int64_t *written,
                                               pph_error *error);

/* Forgets the signal: the next push begins a new one. */
void pph_conv_stream_reset(pph_conv_stream *stream);

pph_conv_stream_info pph_conv_stream_explain(const pph_conv_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
