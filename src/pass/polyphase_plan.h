/* How one transposed convolution becomes stride-1 convolutions: which phases
   share a convolution, and what that is expected to cost. The arithmetic of
   phases is geometry's; this only groups them. */
#ifndef PPH_PASS_POLYPHASE_PLAN_H
#define PPH_PASS_POLYPHASE_PLAN_H

#include "base/heap.h"
#include "geometry/geometry.h"
#include "graph/shape.h"

/* More phases than this are left alone (dense ones are single convolutions of
   many channels, others one convolution per phase). */
enum { PPH_POLYPHASE_MAX_PHASES = 4096, PPH_POLYPHASE_MAX_CONVS = 256 };

/* Neighbouring phases of one axis that share a window. taps 0: only bias. */
typedef struct pph_phase_run {
  int64_t first, count; /* phase indices */
  int64_t taps, tap_step, pad_begin, pad_end;
} pph_phase_run;

typedef struct pph_axis_plan {
  pph_axis axis;
  pph_phase_frame frame;
  pph_phase_run *runs; /* heap; at most stride */
  uint32_t run_count;
} pph_axis_plan;

/* One convolution: phases [first, first + count) of both axes. */
typedef struct pph_phase_block {
  int64_t first[2], count[2];
  const pph_phase_run *run[2];
} pph_phase_block;

typedef struct pph_polyphase_plan {
  pph_heap *heap;
  pph_window window;
  bool group_phases; /* dense: phases may share a convolution */
  pph_axis_plan axes[2]; /* height, width; 1-D has a trivial height */
  double microseconds;
} pph_polyphase_plan;

/* Estimated microseconds of a plan. */
typedef double pph_polyphase_cost(const pph_polyphase_plan *plan);

/* Chooses frames and groupings with the least estimated time. `window` has one
   or two axes, output at least 1, and a product of strides of at most
   PPH_POLYPHASE_MAX_PHASES. Runs come from `heap`; clear also after failure. */
PPH_NODISCARD pph_status pph_polyphase_plan_make(pph_polyphase_plan *plan,
                                                 pph_heap *heap,
                                                 const pph_window *window,
                                                 pph_polyphase_cost *cost,
                                                 pph_error *error);
void pph_polyphase_plan_clear(pph_polyphase_plan *plan);

/* The blocks in the order in which their channels, one after the other, are
   block-major: (ay * stride_x + ax) * C + c. Start with *position = 0; false
   after the last. */
bool pph_polyphase_plan_next(const pph_polyphase_plan *plan, uint32_t *position,
                             pph_phase_block *block);
uint32_t pph_polyphase_plan_count(const pph_polyphase_plan *plan);

/* No tap of the block reads inside the input. */
bool pph_phase_block_is_bias(const pph_polyphase_plan *plan,
                             const pph_phase_block *block);

/* One phase of one axis inside its block's window: tap u of the window takes
   kernel element last - (u - skip) * step if 0 <= u - skip < taps. */
typedef struct pph_tap_map {
  int64_t skip, taps, last, step;
} pph_tap_map;
pph_tap_map pph_phase_map_taps(const pph_axis_plan *plan,
                               const pph_phase_run *run, int64_t index);

/* The cost rule of all who choose between phases and XNNPACK's deconvolution:
   estimated microseconds of either (polyphase_cost.c); infinite for what the
   deconvolution cannot do. */
pph_polyphase_cost pph_polyphase_plan_cost;
double pph_deconvolution_cost(const pph_window *window);

/* Whether phases are expected to be the faster. With stride 1 there is nothing
   to interleave, and they always are. `ratio` gets their time by the
   deconvolution's. */
bool pph_polyphase_plan_gains(const pph_polyphase_plan *plan, double *ratio);

#endif
