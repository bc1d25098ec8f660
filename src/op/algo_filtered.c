/* The filtered rows: what they support, and what they cost. */
#include "base/checked.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "op/algo_rows.h"
#include "op/cost.h"
#include "op/filtered.h"

enum { STREAM_BYTES = 4 << 20, LINE_FLOATS = 16 };

/* Support */

static bool is_plain(const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  const pph_axis *depth = &p->axes[PPH_DEPTH];
  bool plain = depth->kernel == 1 && depth->stride == 1 &&
               depth->output == depth->input && depth->pad_begin == 0;
  for (int i = PPH_HEIGHT; i <= PPH_WIDTH; i++) {
    const pph_axis *axis = &p->axes[i];
    plain = plain && (p->transposed ? axis->dilation == 1 &&
                                           axis->stride <=
                                               PPH_FILTERED_MAX_STRIDE
                                     : axis->stride == 1);
  }
  return plain && p->group == 1 && !spec->input_channels_first &&
         !spec->output_channels_first;
}

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_filtered_plan plan = {0};
  return is_plain(spec) &&
         pph_filtered_list(spec, (pph_filtered_variant)algo->variant, &plan);
}

/* Life */

static void release(pph_heap *heap, pph_algo_plan *plan) {
  pph_filtered_release(heap, plan->state);
  pph_heap_release(heap, plan->state);
  plan->state = NULL;
}

/* Whether stores should go past the caches. */
static bool wants_stream(const pph_filtered_plan *plan) {
  double bytes = (double)plan->images * 4 * (double)plan->out_channels;
  for (int i = 0; i < PPH_FILTERED_AXES; i++)
    bytes *= (double)plan->axes[i].axis.output;
  return bytes >= STREAM_BYTES && plan->out_channels % LINE_FLOATS == 0 &&
         plan->gemm->lanes == LINE_FLOATS;
}

static pph_status prepare(const pph_algo *algo, const pph_conv_spec *spec,
                          pph_heap *heap, pph_algo_plan *plan,
                          pph_error *error) {
  pph_filtered_plan *state = pph_heap_allocate_zeroed(heap, 1, sizeof *state);
  if (!state)
    return pph_fail_memory(error);
  plan->state = state;
  pph_filtered_list(spec, (pph_filtered_variant)algo->variant, state);
  pph_filtered_shape(spec, state);
  state->stream = wants_stream(state);
  pph_status status = pph_filtered_pack(spec, heap, state, error);
  if (status != PPH_OK) {
    release(heap, plan);
    return status;
  }
  size_t floats = state->panel_floats + state->product_floats;
  floats = pph_round_up(floats, LINE_FLOATS);
  plan->thread_bytes = floats * sizeof(float);
  plan->kernel = state->gemm->name;
  return PPH_OK;
}

/* Cost */

/* Cycles to transform one vector of a tile, from the numbers of points and of
   values kept: what was measured, loads and stores included. Windows come from
   farther away than sums: 1.4 and 0.8 times as long. */
static double transform_cycles(uint32_t height, uint32_t width, size_t kept) {
  static const double operations[PPH_FILTER_MAX_POINTS + 1] = {
      0, 0, 0, 2, 4, 10, 12, 18, 26};
  double work = operations[height] / height + operations[width] / width;
  return (double)height * width * (0.5 + work / 2) + 1.5 * (double)kept;
}

/* Bytes that arrive in pieces, panels or windows: slower than what is read at
   once, the more of them leave the caches between two reads. */
static double cost_pieces(double bytes, double working_set) {
  double part = working_set < PPH_COST_SHARE ? working_set / PPH_COST_SHARE : 1;
  return (1.3 + 1.5 * part) * pph_cost_memory(bytes, working_set);
}

/* Reading inputs; out of caches that is part of the transform's cycles. */
static double cost_inputs(const pph_filtered_plan *plan) {
  double bytes = 4 * (double)plan->images * (double)plan->in_channels *
                 (double)plan->axes[0].axis.input *
                 (double)plan->axes[1].axis.input;
  return bytes >= PPH_COST_SHARE ? cost_pieces(bytes, bytes) : 0;
}

/* The products of a part. */
static double cost_products(const pph_conv_spec *spec,
                            const pph_filtered_plan *plan,
                            const pph_filtered_grid *grid,
                            const pph_filtered_part *part) {
  double calls = (double)part->points * (double)pph_filtered_pieces(grid) *
                 (double)pph_divide_up(grid->tiles, grid->rows);
  double depth = (double)plan->in_channels;
  size_t step = plan->gemm->columns, rest = part->columns % step;
  double us =
      pph_cost_gemm(spec->cpu, calls * (double)(part->columns / step),
                    grid->rows, (double)step, depth);
  if (rest)
    us += pph_cost_gemm(spec->cpu, calls, grid->rows, (double)rest, depth);
  return us;
}

/* Outputs of a phase that lie in corners as far as one axis goes. */
static double count_cut(const pph_filtered_plan *plan,
                        const pph_filtered_part *part, int axis) {
  const pph_phase_run *run = &part->runs[axis];
  const pph_filtered_range *range = &plan->ranges[axis][run->first];
  int64_t inside = plan->axes[axis].axis.input + run->pad_begin -
                   pph_filtered_span(run);
  if (part->filters[axis] == PPH_FILTER_1_1)
    return (double)(range->end - range->begin);
  int64_t before = pph_min_i64(range->end, run->pad_begin) - range->begin;
  int64_t after = range->end - pph_max_i64(range->begin, inside);
  return (double)(pph_max_i64(before, 0) + pph_max_i64(after, 0));
}

/* Corners, by tiles of one row; about half of their taps are inside. */
static double cost_corners(const pph_conv_spec *spec,
                           const pph_filtered_plan *plan,
                           const pph_filtered_part *part) {
  if (!part->corners)
    return 0;
  size_t step = plan->gemm->columns;
  double calls = (double)plan->images * count_cut(plan, part, 0) *
                 count_cut(plan, part, 1) *
                 (double)pph_divide_up(part->columns, step);
  double taps = (double)pph_filtered_taps(part) / 2;
  return pph_cost_gemm(spec->cpu, calls, 1, (double)step,
                       (double)plan->in_channels * taps);
}

static double cost_grid(const pph_conv_spec *spec,
                        const pph_filtered_plan *plan,
                        const pph_filtered_grid *grid, pph_algo_cost *cost) {
  double tiles = (double)grid->tiles, lanes = plan->gemm->lanes;
  double pieces = (double)pph_filtered_pieces(grid);
  double depth = (double)plan->in_channels * pieces, products = 0;
  double transforms =
      (1.4 * depth / lanes *
           transform_cycles(grid->points[0], grid->points[1],
                            pph_filtered_points(grid)) +
       40) *
      (double)grid->chunks;
  size_t outputs = (size_t)grid->outputs[0] * grid->outputs[1];
  for (size_t i = 0; i < grid->part_count; i++) {
    const pph_filtered_part *part = &plan->parts[grid->first_part + i];
    double columns = (double)pph_filtered_round(plan, part->columns);
    products += cost_products(spec, plan, grid, part) +
                cost_corners(spec, plan, part);
    transforms +=
        0.8 * columns / lanes *
            transform_cycles(pph_filters[part->filters[0]].points,
                             pph_filters[part->filters[1]].points, outputs) +
        40 * (double)part->runs[0].count;
    if (part->corners)
      cost->packed_bytes +=
          (size_t)(4 * columns * depth) * pph_filtered_taps(part);
    cost->done_flops +=
        2 * tiles * (double)part->points * depth * (double)part->columns;
  }
  double bytes = pph_filtered_weight_bytes(plan, grid);
  double reading =
      pph_cost_weights(bytes * tiles / (double)grid->block_tiles, bytes);
  cost->packed_bytes += (size_t)bytes;
  /* Half of a transform's time is loads and stores that wait: more passes
     through an arithmetic unit do not make it longer. */
  double passes = pph_cpu_passes(spec->cpu);
  double waiting = (1 + passes) / 2 / passes;
  return (products > reading ? products + 0.3 * reading
                             : reading + 0.3 * products) +
         pph_cost_flops(spec->cpu, tiles * 4 * lanes * transforms * waiting);
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_filtered_plan plan = {0};
  pph_algo_cost total = {.us = 0.5};
  pph_filtered_list(spec, (pph_filtered_variant)algo->variant, &plan);
  pph_filtered_shape(spec, &plan);
  for (size_t i = 0; i < plan.grid_count; i++)
    total.us += cost_grid(spec, &plan, &plan.grids[i], &total);
  total.us += cost_inputs(&plan);
  return total;
}

#define FILTERED(row, text, form, bound)                                       \
  const pph_algo pph_algo_filtered_##row = {.name = "filtered." text,          \
                                            .error_bound = bound,              \
                                            .variant = PPH_FILTERED_##form,    \
                                            .supports = supports,              \
                                            .cost = cost,                      \
                                            .prepare = prepare,                \
                                            .run = pph_filtered_run,           \
                                            .release = release};
FILTERED(w2, "w2", W2, 4)
FILTERED(w3, "w3", W3, 4)
FILTERED(w4, "w4", W4, 24)
FILTERED(w5, "w5", W5, 24)
FILTERED(w7, "w7", W7, 24)
FILTERED(c2, "c2", C2, 4)
FILTERED(c3, "c3", C3, 24)
FILTERED(c4, "c4", C4, 24)
FILTERED(z2, "z2", Z2, 4)
FILTERED(z4, "z4", Z4, 24)
FILTERED(l8, "l8", L8, 24)
