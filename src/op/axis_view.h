/* An axis of an ordinary or a transposed convolution as correlations: what the
   two have in common. Output element o = output_step*q + phase - trim is
     sum over u in [0, taps) of
       x[q*input_step + u*tap_step - pad_begin] * w[first_tap + u*kernel_step]
   An ordinary convolution has one phase (output_step 1); a transposed one has
   input_step 1 and the phases of geometry's table. */
#ifndef PPH_OP_AXIS_VIEW_H
#define PPH_OP_AXIS_VIEW_H

#include "geometry/geometry.h"

typedef struct pph_axis_view {
  pph_axis axis;
  bool transposed;
  pph_phase_frame frame;
  int64_t input_step, output_step, length, trim; /* q in [0, length) */
} pph_axis_view;

/* Neighbouring phases [first, first + count) that read the same inputs. */
typedef struct pph_phase_run {
  int64_t first, count;
  int64_t taps, tap_step, pad_begin;
} pph_phase_run;

void pph_axis_view_make(const pph_axis *axis, bool transposed,
                        pph_frame_kind kind, pph_axis_view *view);

/* The run that starts at phase `first`, which is below output_step; at most
   `most` phases. */
pph_phase_run pph_axis_view_run(const pph_axis_view *view, int64_t first,
                                int64_t most);

/* How many runs (of at most `most` phases) there are. */
int64_t pph_axis_view_count_runs(const pph_axis_view *view, int64_t most);

/* The kernel index of tap u of a phase. */
int64_t pph_axis_view_tap(const pph_axis_view *view, int64_t phase, int64_t u);

/* The outputs of the phase that exist are those of q in [*begin, *end). */
void pph_axis_view_range(const pph_axis_view *view, int64_t phase,
                         int64_t *begin, int64_t *end);

#endif
