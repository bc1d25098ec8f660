/* The scatter row: what it supports, what it costs, and packing. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "op/algo_rows.h"
#include "op/cost.h"
#include "op/scatter_plan.h"

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_scatter_plan plan;
  return pph_scatter_make(spec, &plan);
}

/* Products of all slices, and packing the panels of those whose pixels are not
   those of the one before. */
static double cost_products(const pph_conv_spec *spec,
                            const pph_scatter_plan *plan, double *flops) {
  const pph_problem *p = &spec->problem;
  double depth = (double)p->in_channels, us = 0;
  double slices = (double)plan->slices, lots = (double)plan->lots;
  pph_scatter_product last = {.rows = 0};
  for (size_t i = 0; i < plan->all; i++) {
    pph_scatter_product product = pph_scatter_find(plan, p, i);
    if (!product.rows)
      continue;
    double rows = (double)product.rows;
    double columns = (double)product.joined * (double)plan->channels;
    double tiles = (double)pph_divide_up(product.rows, plan->gemm->rows);
    us += pph_cost_products(spec->cpu, tiles * slices, rows / tiles, columns,
                            depth);
    /* Sums come from level 2 and go back; panels; finding rows. */
    us += 2 * pph_cost_memory(8 * rows * columns * slices, 0);
    if (!pph_scatter_same(&product, &last))
      us += rows * depth / plan->gemm->lanes * 2 * lots / 3000;
    us += (50 + 10 * rows) * lots / 3000;
    *flops += 2 * rows * depth * (double)product.joined *
              (double)p->out_channels;
    last = product;
  }
  return us;
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_scatter_plan plan;
  pph_algo_cost total = {.us = INFINITY};
  if (!pph_scatter_make(spec, &plan))
    return total;
  double lanes = plan.gemm->lanes / (double)pph_cpu_passes(spec->cpu);
  double gemm = cost_products(spec, &plan, &total.done_flops);
  total.packed_bytes = sizeof(float) * plan.slice_floats * plan.slices;
  double packed = (double)total.packed_bytes;
  /* Weights are fetched while others are multiplied. */
  total.us = 0.3 + pph_cost_overlap(gemm, pph_cost_weights(packed, packed));
  double inputs = (double)(plan.pixels * (size_t)spec->problem.in_channels);
  double outputs = (double)(plan.outputs * (size_t)spec->problem.out_channels);
  total.us += 3 * outputs / lanes / 3000;
  total.us += inputs * (spec->input_channels_first ? 1.0 : 0) / 3000;
  total.us += outputs * (spec->output_channels_first ? 1.5 : 0) / 3000;
  return total;
}

/* Packing */

/* The weights of input channel `in` and a product's taps for output channels
   [first, first + channels). */
static float *pack_row(const pph_conv_spec *spec, size_t in,
                       const pph_scatter_product *product, size_t first,
                       size_t channels, float *target) {
  const pph_problem *p = &spec->problem;
  size_t ins = (size_t)p->in_channels, outs = (size_t)p->out_channels;
  size_t tap = 0, taps = 1;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    tap = tap * (size_t)p->axes[i].kernel + (size_t)product->taps[i];
    taps *= (size_t)p->axes[i].kernel;
  }
  for (size_t k = 0; k < (size_t)product->joined; k++)
    for (size_t out = first; out < first + channels; out++)
      *target++ = spec->weights[(p->transposed ? in * outs + out
                                               : out * ins + in) *
                                    taps +
                                tap + k];
  return target;
}

static float *pack_slice(const pph_conv_spec *spec,
                         const pph_scatter_plan *plan,
                         const pph_scatter_product *product, size_t number,
                         float *target) {
  size_t channels = pph_scatter_channels(plan, &spec->problem, number);
  size_t columns = (size_t)product->joined * channels;
  size_t rest = pph_scatter_width(plan, columns) - columns;
  for (size_t in = 0; in < (size_t)spec->problem.in_channels; in++) {
    target = pack_row(spec, in, product, number * plan->channels, channels,
                      target);
    memset(target, 0, rest * sizeof(float));
    target += rest;
  }
  return target;
}

static void pack_weights(const pph_conv_spec *spec,
                         const pph_scatter_plan *plan) {
  for (size_t first = 0; first < plan->slices; first += plan->lot_slices) {
    float *target = plan->weights + first * plan->slice_floats;
    size_t end = first + plan->lot_slices;
    end = end < plan->slices ? end : plan->slices;
    for (size_t i = 0; i < plan->count; i++)
      for (size_t slice = first; slice < end; slice++)
        target = pack_slice(spec, plan, &plan->products[i], slice, target);
  }
}

static void release(pph_heap *heap, pph_algo_plan *plan) {
  pph_scatter_plan *state = plan->state;
  if (state) {
    pph_heap_release(heap, state->weights);
    pph_heap_release(heap, state->products);
  }
  pph_heap_release(heap, state);
  plan->state = NULL;
}

static void list_products(const pph_problem *problem,
                          pph_scatter_plan *plan) {
  size_t count = 0;
  for (size_t i = 0; i < plan->all; i++) {
    pph_scatter_product product = pph_scatter_find(plan, problem, i);
    if (product.rows)
      plan->products[count++] = product;
  }
}

static void find_kernels(pph_cpu cpu, pph_scatter_plan *plan) {
  plan->run_gemm = (pph_gemm_kernel)plan->gemm->run;
  plan->run_pack = (pph_pack_kernel)pph_kernel_find("f32_pack", cpu)->run;
  plan->run_finish = (pph_finish_kernel)pph_kernel_find("f32_finish", cpu)->run;
  plan->run_finish_planes =
      (pph_finish_kernel)pph_kernel_find("f32_finish_planes", cpu)->run;
  plan->run_transpose =
      (pph_transpose_kernel)pph_kernel_find("f32_transpose", cpu)->run;
}

static pph_status prepare(const pph_algo *algo, const pph_conv_spec *spec,
                          pph_heap *heap, pph_algo_plan *plan,
                          pph_error *error) {
  pph_scatter_plan *state = pph_heap_allocate_zeroed(heap, 1, sizeof *state);
  if (!state)
    return pph_fail_memory(error);
  plan->state = state;
  if (!pph_scatter_make(spec, state)) {
    release(heap, plan);
    return pph_fail(error, PPH_UNSUPPORTED, "", "scatter: not a short input");
  }
  if (pph_checked_mul(state->slices, state->slice_floats,
                      &state->weight_floats))
    state->weights =
        pph_heap_allocate(heap, state->weight_floats, sizeof(float));
  state->products =
      pph_heap_allocate(heap, state->count, sizeof *state->products);
  if (!state->weights || !state->products) {
    release(heap, plan);
    return pph_fail_memory(error);
  }
  find_kernels(spec->cpu, state);
  list_products(&spec->problem, state);
  pack_weights(spec, state);
  plan->thread_bytes = state->bytes;
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
