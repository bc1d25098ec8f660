/* The one owner of the arithmetic of transposed (and ordinary) convolutions:
   output lengths and pads by ONNX's rules, and the phase table. Everything is
   per axis; callers loop over axes. No allocation, no globals; any thread. */
#ifndef PPH_GEOMETRY_GEOMETRY_H
#define PPH_GEOMETRY_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "polyphase/status.h"

typedef enum pph_auto_pad {
  PPH_AUTO_PAD_NOTSET,
  PPH_AUTO_PAD_SAME_UPPER,
  PPH_AUTO_PAD_SAME_LOWER,
  PPH_AUTO_PAD_VALID
} pph_auto_pad;

/* False for an unknown text. "" is NOTSET. */
bool pph_auto_pad_parse(const char *text, pph_auto_pad *result);

/* One axis of a convolution or transposed convolution. pads may be negative
   after resolving (a crop of the natural result for transposed ones). */
typedef struct pph_axis {
  int64_t input, kernel, stride, dilation;
  int64_t pad_begin, pad_end;
  int64_t output_padding; /* transposed only, else 0 */
  int64_t output;
} pph_axis;

/* Bounds that keep every product below 2^62: input, output < 2^40,
   kernel, stride, dilation < 2^31, (kernel-1)*dilation < 2^40, explicit pads
   < 2^40 and (input-1)*stride < 2^42. */

/* Resolves a transposed axis. On entry input, kernel, stride, dilation,
   output_padding and (for NOTSET) the explicit pads are set. `output_shape` is
   the requested output length or -1. Sets pads and output. As ONNX defines it
   and ONNX Runtime reads it where open:
   output = (input-1)*stride + output_padding + (kernel-1)*dilation + 1
            - pad_begin - pad_end;
   output_shape given: total = the natural length minus it, split with the odd
   one at the end for SAME_UPPER, else at the begin; a negative total (the
   output is longer than natural) leaves pads 0 / total so that the extra part
   is at the end (see bug case P01: it holds bias only).
   Explicit pads are ignored then.
   SAME_*: output = input*stride. VALID: pads 0.
   Errors (PPH_BAD_MODEL, message names attribute, value, legal range; `where`
   left for the caller): stride or dilation < 1, kernel < 1, output_padding < 0
   or >= max(stride, dilation), explicit pad < 0, output < 0, bounds above
   (PPH_LIMIT_EXCEEDED). input 0 is legal (output as the formula, at least 0).*/
PPH_NODISCARD pph_status pph_axis_resolve_transposed(pph_axis *axis,
                                                     pph_auto_pad auto_pad,
                                                     int64_t output_shape,
                                                     pph_error *error);

/* The same for an ordinary convolution or (with ceil_mode) a pooling axis:
   output = floor_or_ceil((input + pads - ((kernel-1)*dilation+1)) / stride)
            + 1;
   ceil_mode drops a last window that starts in the end padding, as ONNX does.
   A padded input shorter than that kernel is PPH_BAD_MODEL; if input is 0,
   output is 0 instead.
   SAME_*: output = ceil(input / stride). */
PPH_NODISCARD pph_status pph_axis_resolve_conv(pph_axis *axis,
                                               pph_auto_pad auto_pad,
                                               bool ceil_mode,
                                               pph_error *error);

/* One of the two, with explicit pads, for an axis that no model has, but a
   caller of operators: PPH_BAD_MODEL becomes PPH_INVALID_ARGUMENT at `where`,
   and input and output must be at least 1. */
PPH_NODISCARD pph_status pph_axis_resolve_argument(pph_axis *axis,
                                                   bool transposed,
                                                   const char *where,
                                                   pph_error *error);

/* One phase of a transposed axis: outputs o = stride*q + index - shift, for q
   in [0, length). Its stride-1 correlation over the input reads
     y[q] = bias + sum over u in [0, taps) of
            x[q + u*tap_step - pad_begin] * w[kernel_last - u*kernel_step]
   with x = 0 outside [0, input). So the phase is an ordinary convolution with
   kernel length `taps`, dilation tap_step, pads pad_begin / pad_end (negative:
   a crop), and output length exactly `length`. A phase that would read nothing
   but zeros (all of its window outside the input) is given no taps, so a crop
   always leaves at least one element. Without taps both pads are 0. */
typedef struct pph_phase {
  int64_t index;       /* 0 .. stride-1 */
  int64_t taps;        /* 0: the phase is its bias */
  int64_t kernel_last; /* kernel index of tap u = 0 */
  int64_t kernel_step; /* = stride / gcd(stride, dilation) */
  int64_t tap_step;    /* = dilation / gcd(stride, dilation), at least 1 */
  int64_t pad_begin, pad_end;
} pph_phase;

/* How the phases of an axis fit together: the interleaved sequence of
   stride*length elements has the output in [trim_begin, trim_begin+output). */
typedef struct pph_phase_frame {
  int64_t stride;
  int64_t length; /* Q, common to all phases */
  int64_t trim_begin, trim_end;
} pph_phase_frame;

/* Frames. TIGHT starts at output 0: trim_begin 0, phases differ in their pads.
   ALIGNED starts at the multiple of the stride at or before pad_begin, so that
   with dilation 1 phase index equals kernel residue, all phases of equal tap
   count share their pads (and can be one convolution); trim_begin =
   floor_mod(pad_begin, stride). */
typedef enum pph_frame_kind {
  PPH_FRAME_TIGHT,
  PPH_FRAME_ALIGNED
} pph_frame_kind;

/* `axis` must be resolved with output >= 1. */
void pph_phase_frame_make(const pph_axis *axis, pph_frame_kind kind,
                          pph_phase_frame *frame);

/* Phase `index` in [0, stride) of that frame. */
void pph_phase_make(const pph_axis *axis, const pph_phase_frame *frame,
                    int64_t index, pph_phase *phase);

/* Same taps count, tap_step and pads: the phases can share one convolution. */
bool pph_phase_same_window(const pph_phase *a, const pph_phase *b);

#endif
