/* depthwise: one input channel for each output channel. Every vector is a
   block of channels of one pixel; all phases of a pixel that read the same
   inputs are computed together. */
#include "op/algo_rows.h"
#include "op/channelwise_plan.h"

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  return p->group == p->in_channels && p->group == p->out_channels &&
         pph_channelwise_supports(spec);
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  return pph_channelwise_cost(spec, 0);
}

static pph_status prepare(const pph_algo *algo, const pph_conv_spec *spec,
                          pph_heap *heap, pph_algo_plan *plan,
                          pph_error *error) {
  return pph_channelwise_prepare(spec, "f32_depthwise", heap, plan, error);
}

const pph_algo pph_algo_depthwise = {.name = "depthwise",
                                     .error_bound = 4,
                                     .direct = true,
                                     .supports = supports,
                                     .cost = cost,
                                     .prepare = prepare,
                                     .run = pph_channelwise_run,
                                     .release = pph_channelwise_release};
