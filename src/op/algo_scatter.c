/* The scatter row: what it supports, what it costs, and packing. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "op/algo_rows.h"
#include "op/cost.h"
#include "op/scatter_plan.h"

enum {
  MAX_PIXELS = 256,
  MAX_WORKSPACE = 1 << 20,
  MAX_CHANNELS = 1 << 16,
  MAX_TAPS = 1 << 16
};

static size_t count_taps(const pph_problem *problem) {
  size_t taps = 1;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    taps *= (size_t)problem->axes[i].kernel;
  return taps;
}

/* Floats of a slice's packed weights. */
static size_t count_slice(const pph_problem *problem,
                          const pph_scatter_plan *plan) {
  const pph_axis *width = &problem->axes[PPH_WIDTH];
  size_t floats = 0;
  for (int64_t end = width->kernel; end > 0;) {
    pph_scatter_taps taps = pph_scatter_next(plan, width, end);
    floats += pph_scatter_width(plan, (size_t)taps.count * plan->channels);
    end = taps.first;
  }
  return floats * (size_t)problem->in_channels *
         (count_taps(problem) / (size_t)width->kernel);
}

/* Whether sizes are such that nothing below can overflow. */
static bool is_short(const pph_problem *problem) {
  size_t pixels = 1, outputs = 1, taps = 1;
  if (problem->batch > MAX_PIXELS || problem->in_channels > MAX_CHANNELS ||
      problem->out_channels > MAX_CHANNELS)
    return false;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    const pph_axis *axis = &problem->axes[i];
    if (axis->input > MAX_PIXELS || axis->output > MAX_WORKSPACE ||
        axis->kernel > MAX_TAPS)
      return false;
    pixels *= (size_t)axis->input;
    outputs *= (size_t)axis->output;
    taps *= (size_t)axis->kernel;
    if (taps > MAX_TAPS || outputs > MAX_WORKSPACE)
      return false;
  }
  return pixels * (size_t)problem->batch <= MAX_PIXELS;
}

/* Everything but the weights. False when it does not support the problem. */
static bool make_plan(const pph_conv_spec *spec, pph_scatter_plan *plan,
                      size_t *bytes) {
  const pph_problem *p = &spec->problem;
  if (!p->transposed || p->group != 1 || !is_short(p))
    return false;
  *plan = (pph_scatter_plan){.gemm = pph_kernel_find("f32_gemm", spec->cpu)};
  plan->pixels = plan->outputs = (size_t)p->batch;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    plan->pixels *= (size_t)p->axes[i].input;
    plan->outputs *= (size_t)p->axes[i].output;
  }
  plan->tiles = pph_divide_up(plan->pixels, plan->gemm->rows);
  plan->rows = pph_divide_up(plan->pixels, plan->tiles);
  plan->tiles = pph_divide_up(plan->pixels, plan->rows);
  plan->panel_floats = pph_divide_up((size_t)p->in_channels, PPH_GEMM_CHUNK) *
                       PPH_GEMM_CHUNK * plan->rows;
  size_t channels = (size_t)p->out_channels;
  plan->channels = plan->gemm->columns;
  while (plan->channels > plan->gemm->lanes &&
         pph_divide_up(channels, plan->channels) < spec->threads)
    plan->channels -= plan->gemm->lanes;
  plan->channels = plan->channels < channels ? plan->channels : channels;
  plan->slices = pph_divide_up(channels, plan->channels);
  plan->lots = spec->threads > 1 ? 4 * (size_t)spec->threads : 1;
  plan->lots = plan->lots < plan->slices ? plan->lots : plan->slices;
  plan->joined = p->axes[PPH_WIDTH].dilation > 1
                     ? 1
                     : (int64_t)(plan->gemm->columns / plan->channels);
  plan->slice_floats = count_slice(p, plan);
  plan->streams =
      sizeof(float) * plan->slice_floats * plan->slices > pph_cpu_cache2();
  *bytes = sizeof(float) *
           (plan->tiles * plan->panel_floats + plan->outputs * plan->channels);
  return *bytes <= MAX_WORKSPACE - PPH_ALIGNMENT;
}

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_scatter_plan plan;
  size_t bytes;
  return make_plan(spec, &plan, &bytes);
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  pph_scatter_plan plan;
  size_t bytes;
  if (!make_plan(spec, &plan, &bytes))
    return (pph_algo_cost){.us = INFINITY};
  const pph_axis *width = &p->axes[PPH_WIDTH];
  double lines = (double)(count_taps(p) / (size_t)width->kernel);
  double calls = lines * (double)(plan.slices * plan.tiles);
  double depth = (double)p->in_channels, gemm = 0;
  for (int64_t end = width->kernel; end > 0;) {
    pph_scatter_taps taps = pph_scatter_next(&plan, width, end);
    gemm += pph_cost_gemm(spec->cpu, calls, (double)plan.rows,
                          (double)taps.count * (double)plan.channels, depth);
    /* Finding, loading and storing each row. */
    gemm += calls * (double)plan.rows * 40 / 3000;
    end = taps.first;
  }
  size_t packed = sizeof(float) * plan.slice_floats * plan.slices;
  double outputs = (double)plan.outputs * (double)p->out_channels;
  /* Weights are fetched while others are multiplied. */
  double memory = pph_cost_memory((double)packed, (double)packed);
  double us = 0.3 + fmax(gemm, memory) + 0.3 * fmin(gemm, memory);
  us += ((double)plan.pixels * depth + 3 * outputs) / plan.gemm->lanes / 3000;
  us += outputs * (spec->output_channels_first ? 1.5 : 0) / 3000;
  return (pph_algo_cost){.us = us,
                         .done_flops = 2 * (double)plan.pixels *
                                       (double)count_taps(p) * depth *
                                       (double)p->out_channels,
                         .packed_bytes = packed};
}

/* Packing */

/* The weights of one input channel for a product, at (depth, height) index
   `line`. */
static float *pack_row(const pph_conv_spec *spec, size_t in, size_t line,
                       const pph_scatter_taps *taps, size_t first,
                       size_t channels, float *target) {
  const pph_problem *p = &spec->problem;
  size_t kernels = count_taps(p), width = (size_t)p->axes[PPH_WIDTH].kernel;
  for (int64_t k = 0; k < taps->count; k++)
    for (size_t out = first; out < first + channels; out++)
      *target++ = spec->weights[(in * (size_t)p->out_channels + out) * kernels +
                                line * width + (size_t)(taps->first + k)];
  return target;
}

static void pack_slice(const pph_conv_spec *spec, const pph_scatter_plan *plan,
                       size_t number) {
  const pph_problem *p = &spec->problem;
  const pph_axis *width = &p->axes[PPH_WIDTH];
  size_t first = number * plan->channels;
  size_t channels = (size_t)p->out_channels - first;
  channels = channels < plan->channels ? channels : plan->channels;
  float *target = plan->weights + number * plan->slice_floats;
  for (size_t line = count_taps(p) / (size_t)width->kernel; line-- > 0;)
    for (int64_t end = width->kernel; end > 0;) {
      pph_scatter_taps taps = pph_scatter_next(plan, width, end);
      size_t columns = (size_t)taps.count * channels;
      size_t rest = pph_scatter_width(plan, columns) - columns;
      for (size_t in = 0; in < (size_t)p->in_channels; in++) {
        target = pack_row(spec, in, line, &taps, first, channels, target);
        memset(target, 0, rest * sizeof(float));
        target += rest;
      }
      end = taps.first;
    }
}

static void release(pph_heap *heap, pph_algo_plan *plan) {
  pph_scatter_plan *state = plan->state;
  if (state)
    pph_heap_release(heap, state->weights);
  pph_heap_release(heap, state);
  plan->state = NULL;
}

static void find_kernels(pph_cpu cpu, pph_scatter_plan *plan) {
  plan->run_gemm = (pph_gemm_kernel)plan->gemm->run;
  plan->run_pack = (pph_pack_kernel)pph_kernel_find("f32_pack", cpu)->run;
  plan->run_finish = (pph_finish_kernel)pph_kernel_find("f32_finish", cpu)->run;
  plan->run_finish_planes =
      (pph_finish_kernel)pph_kernel_find("f32_finish_planes", cpu)->run;
}

static pph_status prepare(const pph_algo *algo, const pph_conv_spec *spec,
                          pph_heap *heap, pph_algo_plan *plan,
                          pph_error *error) {
  size_t bytes, floats;
  pph_scatter_plan *state = pph_heap_allocate_zeroed(heap, 1, sizeof *state);
  if (!state)
    return pph_fail_memory(error);
  plan->state = state;
  if (!make_plan(spec, state, &bytes)) {
    release(heap, plan);
    return pph_fail(error, PPH_UNSUPPORTED, "", "scatter: not a short input");
  }
  if (pph_checked_mul(state->slices, state->slice_floats, &floats))
    state->weights = pph_heap_allocate(heap, floats, sizeof(float));
  if (!state->weights) {
    release(heap, plan);
    return pph_fail_memory(error);
  }
  find_kernels(spec->cpu, state);
  for (size_t i = 0; i < state->slices; i++)
    pack_slice(spec, state, i);
  plan->thread_bytes = pph_divide_up(bytes, PPH_ALIGNMENT) * PPH_ALIGNMENT;
  plan->kernel = state->gemm->name;
  return PPH_OK;
}

const pph_algo pph_algo_scatter = {.name = "scatter",
                                   .error_bound = 4,
                                   .direct = true,
                                   .supports = supports,
                                   .cost = cost,
                                   .prepare = prepare,
                                   .run = pph_scatter_run,
                                   .release = release};
