/* grouped: a few channels per group, and depthwise with a multiplier. As
   depthwise, but every lane picks its group's inputs out of the pixel. */
#include "op/algo_rows.h"
#include "op/channelwise_plan.h"

enum { MAX_INS = 32 };

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  return p->in_channels / p->group <= MAX_INS && pph_channelwise_supports(spec);
}

/* A block of one group loads its inputs for all lanes at once; one operation
   picks out of one or two vectors; gathering from memory takes as many as there
   are lanes, but one input serves several multiply-adds. */
static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  int64_t lanes = pph_kernel_find("f32_grouped", spec->cpu)->lanes;
  int64_t ins = p->in_channels / p->group, outs = p->out_channels / p->group;
  bool gathered = lanes * ins > 2 * lanes * outs;
  double picking = outs % lanes == 0 ? 0.45 : gathered ? (double)lanes / 2 : 1;
  return pph_channelwise_cost(spec, picking);
}

static pph_status prepare(const pph_algo *algo, const pph_conv_spec *spec,
                          pph_heap *heap, pph_algo_plan *plan,
                          pph_error *error) {
  return pph_channelwise_prepare(spec, "f32_grouped", heap, plan, error);
}

const pph_algo pph_algo_grouped = {.name = "grouped",
                                   .error_bound = 4,
                                   .direct = true,
                                   .supports = supports,
                                   .cost = cost,
                                   .prepare = prepare,
                                   .run = pph_channelwise_run,
                                   .release = pph_channelwise_release};
