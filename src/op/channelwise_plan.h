/* What the depthwise and the grouped algorithm share: the plan, its packing
   and its run. Channels last; the depth axis is a second batch. */
#ifndef PPH_OP_CHANNELWISE_PLAN_H
#define PPH_OP_CHANNELWISE_PLAN_H

#include "kernel/channelwise.h"
#include "kernel/kernel_table.h"
#include "op/algo.h"
#include "op/axis_view.h"

/* Phases of one axis that read the same inputs, and the position of their
   weights among all taps of that axis. */
typedef struct pph_channelwise_part {
  pph_phase_run run;
  size_t slot; /* that of tap u and phase p is slot + u * run.count + p */
  /* Elements q with all phases, all of whose taps lie inside the input. */
  int64_t inside_begin, inside_end;
} pph_channelwise_part;

typedef struct pph_channelwise_plan {
  pph_axis_view axes[PPH_PROBLEM_AXES];
  const pph_kernel *kernel;
  size_t ins;                    /* input channels of a group */
  pph_channelwise_part *rows;    /* one per phase of the height */
  pph_channelwise_part *columns; /* of the width */
  size_t column_parts, row_slots, column_slots, blocks;
  float *weights; /* [block][row slot][column slot][in][lanes], channelwise.h
                   */
  size_t span;    /* see pph_channelwise_pick; grouped only, as these are */
  pph_channelwise_pick *picks;
  int32_t *index; /* NULL when a block is of one group */
} pph_channelwise_plan;

/* What both can do. */
bool pph_channelwise_supports(const pph_conv_spec *spec);

/* Floats of packed weights; 0 when there are too many. */
size_t pph_channelwise_packed(const pph_conv_spec *spec);

/* What both cost, with `picking` operations for each input vector that is
   loaded. */
pph_algo_cost pph_channelwise_cost(const pph_conv_spec *spec, double picking);

/* See pph_algo; `stem` is the kernel's, which decides whether inputs are
   picked. */
pph_status pph_channelwise_prepare(const pph_conv_spec *spec, const char *stem,
                                   pph_heap *heap, pph_algo_plan *plan,
                                   pph_error *error);
void pph_channelwise_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                         const pph_conv_tensors *tensors);
void pph_channelwise_release(pph_heap *heap, pph_algo_plan *plan);

#endif
