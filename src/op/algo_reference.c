/* reference: the definition, one fused multiply-add after the other in the
   order of EXACT. The judge of the other algorithms, and what runs when no
   other one supports a problem. */
#include <math.h>
#include <string.h>

#include "op/algo_rows.h"
#include "op/axis_view.h"

/* Where an element lies: [N, spatial, C] or [N, C, spatial]. */
static size_t place(bool channels_first, const int64_t *lengths,
                    int64_t channels, int64_t n, int64_t c,
                    const int64_t *at) {
  int64_t pixel = (at[0] * lengths[1] + at[1]) * lengths[2] + at[2];
  int64_t pixels = lengths[0] * lengths[1] * lengths[2];
  return (size_t)(channels_first ? (n * channels + c) * pixels + pixel
                                 : (n * pixels + pixel) * channels + c);
}

typedef struct reference_view {
  const pph_conv_spec *spec;
  const pph_conv_tensors *tensors;
  pph_axis_view axes[PPH_PROBLEM_AXES];
  int64_t input[PPH_PROBLEM_AXES], output[PPH_PROBLEM_AXES];
} reference_view;

/* Everything that one output element reads. */
typedef struct element {
  int64_t n, channel, group;
  int64_t at[PPH_PROBLEM_AXES], q[PPH_PROBLEM_AXES], phase[PPH_PROBLEM_AXES];
  pph_phase_run runs[PPH_PROBLEM_AXES];
} element;

static size_t weight_index(const reference_view *view, const element *e,
                           int64_t channel, const int64_t *taps) {
  const pph_problem *p = &view->spec->problem;
  int64_t in = p->in_channels / p->group, out = p->out_channels / p->group;
  int64_t row = p->transposed
                    ? (e->group * in + channel) * out + e->channel % out
                    : e->channel * in + channel;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    row = row * p->axes[i].kernel + taps[i];
  return (size_t)row;
}

static float add_tap(const reference_view *view, const element *e,
                     const int64_t *u, float sum) {
  const pph_problem *p = &view->spec->problem;
  int64_t at[PPH_PROBLEM_AXES], taps[PPH_PROBLEM_AXES];
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    at[i] = e->q[i] * view->axes[i].input_step + u[i] * e->runs[i].tap_step -
            e->runs[i].pad_begin;
    if (at[i] < 0 || at[i] >= view->input[i])
      return sum;
    taps[i] = pph_axis_view_tap(&view->axes[i], e->phase[i], u[i]);
  }
  int64_t in = p->in_channels / p->group;
  for (int64_t c = 0; c < in; c++)
    sum = fmaf(
        view->tensors->input[place(view->spec->input_channels_first,
                                   view->input, p->in_channels, e->n,
                                   e->group * in + c, at)],
        view->spec->weights[weight_index(view, e, c, taps)], sum);
  return sum;
}

static float finish(const pph_conv_spec *spec, float sum, int64_t channel,
                    const float *residual) {
  if (spec->bias)
    sum += spec->bias[channel];
  if (residual)
    sum += *residual;
  if (spec->slopes && sum < 0)
    sum *= spec->slopes[channel];
  if (sum < spec->low)
    sum = spec->low;
  return sum > spec->high ? spec->high : sum;
}

static void compute(const reference_view *view, element *e) {
  const pph_conv_spec *spec = view->spec;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    int64_t covered = e->at[i] + view->axes[i].trim;
    e->q[i] = covered / view->axes[i].output_step;
    e->phase[i] = covered % view->axes[i].output_step;
    e->runs[i] = pph_axis_view_run(&view->axes[i], e->phase[i], 1);
  }
  float sum = 0;
  int64_t u[PPH_PROBLEM_AXES];
  for (u[0] = 0; u[0] < e->runs[0].taps; u[0]++)
    for (u[1] = 0; u[1] < e->runs[1].taps; u[1]++)
      for (u[2] = 0; u[2] < e->runs[2].taps; u[2]++)
        sum = add_tap(view, e, u, sum);
  size_t at = place(spec->output_channels_first, view->output,
                    spec->problem.out_channels, e->n, e->channel, e->at);
  const float *residual =
      spec->residual ? view->tensors->residual + at : NULL;
  view->tensors->output[at] = finish(spec, sum, e->channel, residual);
}

/* One block is one output channel of one image. */
static void run_block(void *context, uint32_t worker, size_t block) {
  const reference_view *view = context;
  const pph_problem *p = &view->spec->problem;
  element e = {.n = (int64_t)block / p->out_channels,
               .channel = (int64_t)block % p->out_channels};
  e.group = e.channel / (p->out_channels / p->group);
  for (e.at[0] = 0; e.at[0] < view->output[0]; e.at[0]++)
    for (e.at[1] = 0; e.at[1] < view->output[1]; e.at[1]++)
      for (e.at[2] = 0; e.at[2] < view->output[2]; e.at[2]++)
        compute(view, &e);
}

static void run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                const pph_conv_tensors *tensors) {
  reference_view view = {.spec = spec, .tensors = tensors};
  const pph_problem *p = &spec->problem;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    pph_axis_view_make(&p->axes[i], p->transposed, PPH_FRAME_TIGHT,
                       &view.axes[i]);
    view.input[i] = p->axes[i].input;
    view.output[i] = p->axes[i].output;
  }
  pph_algo_parallelize(tensors->pool, spec->threads,
                       (size_t)(p->batch * p->out_channels), run_block, &view);
}

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  return true;
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  const double us_per_flop = 0.01; /* far more than anything else */
  double flops = pph_problem_flops(&spec->problem);
  return (pph_algo_cost){.us = 1000 + us_per_flop * flops,
                         .done_flops = flops};
}

static pph_status prepare(const pph_algo *algo, const pph_conv_spec *spec,
                          pph_heap *heap, pph_algo_plan *plan,
                          pph_error *error) {
  plan->kernel = "plain C";
  return PPH_OK;
}

const pph_algo pph_algo_reference = {.name = "reference",
                                     .error_bound = 4,
                                     .direct = true,
                                     .supports = supports,
                                     .cost = cost,
                                     .prepare = prepare,
                                     .run = run};
