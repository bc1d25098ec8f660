/* A convolution along one axis whose input comes in pieces: which inputs must
   be remembered, and what an operator over the remembered and the new ones has
   to compute so that the pieces' outputs are those of the whole signal. */
#ifndef PPH_GEOMETRY_STREAM_AXIS_H
#define PPH_GEOMETRY_STREAM_AXIS_H

#include "geometry/geometry.h"

/* After every piece of n inputs, n / step * outputs more positions cannot
   change any more: an operator with the pads of `piece` computes them from the
   last `history` inputs (zeros before the first) and the n new ones. At the end
   one with the pads of `end` computes the `flushed` last positions from the
   last `history` inputs. Of all of them together, the first `skipped` are not
   part of the output. */
typedef struct pph_stream_axis {
  int64_t step, outputs;
  int64_t history, skipped, flushed;
  pph_axis piece, end; /* no lengths */
} pph_stream_axis;

/* `axis` has kernel, stride, dilation, pads (explicit, at least 0) and output
   padding, no lengths. Errors (`where` left for the caller):
   PPH_LIMIT_EXCEEDED when the kernel's extent and pads pass 2^31;
   PPH_UNSUPPORTED when a pad of an ordinary convolution is as long as the
   kernel's extent, so that outputs read nothing else. */
PPH_NODISCARD pph_status pph_stream_axis_make(const pph_axis *axis,
                                              bool transposed,
                                              pph_stream_axis *stream,
                                              pph_error *error);

#endif
