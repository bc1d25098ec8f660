/* When phases are faster than XNNPACK's own deconvolution. Fitted to the
   official ExecuTorch runtime (1.5.1) on one AVX-512 core, by
   bench/optimize_speed.py. */
#include <math.h>

#include "base/checked.h"
#include "pass/polyphase_plan.h"

/* Multiply-adds a microsecond: convolutions; the deconvolution by parts, which
   XNNPACK takes for strides up to the kernel, and the one over all outputs. */
static const double conv_macs = 90000, part_macs = 32000, whole_macs = 80000,
                    group_us = 0.02, /* an output pixel of a group */
                    bytes_per_us = 12000, node_us = 0.2;

/* Output channels of all groups, each rounded up to what is computed. */
static double count_rows(const pph_window *window, double phases) {
  enum { TILE = 16 };
  double per_group =
      phases * (double)window->out_channels / (double)window->group;
  if (window->group > 1 && window->group == window->in_channels)
    return phases * (double)window->out_channels; /* depthwise */
  return (double)(pph_ceil_div((int64_t)per_group, TILE) * TILE) *
         (double)window->group;
}

static double block_cost(const pph_polyphase_plan *plan,
                         const pph_phase_block *block, double pixels) {
  double taps = pph_phase_block_is_bias(plan, block)
                    ? 1
                    : (double)(block->run[0]->taps * block->run[1]->taps);
  double phases = (double)(block->count[0] * block->count[1]);
  double depth = (double)plan->window.in_channels / (double)plan->window.group;
  return pixels * taps * depth * count_rows(&plan->window, phases) / conv_macs +
         node_us;
}

double pph_polyphase_plan_cost(const pph_polyphase_plan *plan) {
  const pph_phase_frame *y = &plan->axes[0].frame, *x = &plan->axes[1].frame;
  double pixels =
      (double)plan->window.batch * (double)y->length * (double)x->length;
  double phases = (double)(y->stride * x->stride), cost = 0, moves = 0;
  double moved = 8 * pixels * phases * (double)plan->window.out_channels;
  bool in_place = y->stride == 1 || x->length == 1; /* as rows lie */
  uint32_t position = 0, blocks = 0;
  pph_phase_block block;
  while (pph_polyphase_plan_next(plan, &position, &block)) {
    cost += block_cost(plan, &block, pixels);
    blocks++;
  }
  moves += blocks > 1;
  moves += phases > 1 && !in_place;
  moves += y->trim_begin || y->trim_end || x->trim_begin || x->trim_end;
  return cost + moves * (moved / bytes_per_us + node_us);
}

/* XNNPACK's deconvolution makes no output shorter than its stride, adds less
   than a stride behind, and crops only. */
static bool takes_axis(const pph_window *window, uint32_t i) {
  int64_t full = window->stride[i] * (window->input[i] - 1) +
                 window->dilation[i] * (window->kernel[i] - 1) + 1;
  int64_t added = window->pad_begin[i] + window->output[i] - full;
  return window->pad_begin[i] >= 0 && added < window->stride[i] &&
         window->output[i] >= window->stride[i];
}

double pph_deconvolution_cost(const pph_window *window) {
  double taps = 1, in = (double)window->batch, out = in;
  bool by_parts = window->stride[0] > 1 || window->stride[1] > 1;
  for (uint32_t i = 0; i < window->axes; i++) {
    if (!takes_axis(window, i))
      return HUGE_VAL;
    taps *= (double)window->kernel[i];
    in *= (double)window->input[i];
    out *= (double)window->output[i];
    by_parts &= window->dilation[i] == 1 &&
                window->stride[i] <= window->kernel[i];
  }
  double depth = (double)window->in_channels / (double)window->group;
  double sums = taps * depth * count_rows(window, 1);
  return (by_parts ? in * sums / part_macs : out * sums / whole_macs) +
         out * (double)window->group * group_us + node_us;
}

bool pph_polyphase_plan_gains(const pph_polyphase_plan *plan, double *ratio) {
  *ratio = plan->microseconds / pph_deconvolution_cost(&plan->window);
  return *ratio < 1 ||
         plan->axes[0].frame.stride * plan->axes[1].frame.stride == 1;
}
