/* The narrow row: what it supports, what it costs, and packing. */
#include <math.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "op/algo_rows.h"
#include "op/cost.h"
#include "op/narrow_plan.h"

enum {
  MAX_OUT_CHANNELS = 48, /* beyond, gather's vectors are full as well */
  MAX_WORKSPACE = 1 << 20,
  /* Planes and sums of a block: level 1 if that gives tiles of some width, else
     level 2. */
  TILE_BYTES = 24 * 1024,
  WIDE_BYTES = 256 * 1024,
  LEAST_TILE = 64,
  LINE = 16,   /* floats of a cache line */
  PERIOD = 256 /* elements of a row that are finished at once */
};

/* Whether the axis may as well not be there. */
static bool is_plain(const pph_axis *axis) {
  return axis->kernel == 1 && axis->stride == 1 && axis->pad_begin == 0 &&
         axis->output == axis->input;
}

/* The two axes that count, the width the longer one where there is a choice. */
static void find_axes(const pph_problem *problem, pph_axis *height,
                      pph_axis *width) {
  *height = problem->axes[PPH_HEIGHT];
  *width = problem->axes[PPH_WIDTH];
  if (is_plain(width) && width->input == 1) {
    *width = problem->axes[PPH_HEIGHT];
    *height = problem->axes[PPH_WIDTH];
  } else if (is_plain(width) && is_plain(height)) {
    width->input = width->output = width->input * height->input;
    height->input = height->output = 1;
  }
}

/* Neighbours: kernel rows whose products go to output rows at whole steps. */
static void order_kernel_rows(pph_narrow_plan *plan) {
  const pph_axis *axis = &plan->height;
  int64_t step = 1;
  if (!plan->transposed)
    while (step * axis->dilation % axis->stride != 0)
      step++;
  size_t count = 0;
  for (int64_t first = 0; first < step; first++)
    for (int64_t k = first; k < axis->kernel; k += step)
      plan->kernel_rows[count++] = k;
}

/* Runs of x phases. False when there are too many. */
static bool list_groups(pph_narrow_plan *plan) {
  const pph_axis_view *width = &plan->width;
  size_t taps = 0;
  for (int64_t first = 0; first < width->output_step;) {
    if (plan->group_count == PPH_NARROW_MAX_GROUPS)
      return false;
    pph_narrow_group *group = &plan->groups[plan->group_count++];
    group->run = pph_axis_view_run(width, first, INT64_MAX);
    group->columns = (size_t)group->run.count * plan->out_channels;
    group->rows = (size_t)plan->height.kernel * group->columns;
    group->packed = plan->packed_floats;
    group->first_tap = taps;
    plan->packed_floats +=
        (size_t)group->run.taps * plan->in_channels * group->rows;
    taps += (size_t)group->run.taps;
    first += group->run.count;
  }
  return true;
}

/* Extent of the taps along the width; returns the pixels beyond a tile's own
   that a plane holds. */
static int64_t find_reach(pph_narrow_plan *plan) {
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (size_t g = 0; g < plan->group_count; g++) {
    const pph_phase_run *run = &plan->groups[g].run;
    if (!run->taps)
      continue;
    least = pph_min_i64(least, -run->pad_begin);
    most = pph_max_i64(most, (run->taps - 1) * run->tap_step - run->pad_begin);
  }
  plan->reach = most < least ? 0 : least;
  return most < least ? 0 : (most - least) / plan->width.input_step;
}

/* Sizes for tiles of so many columns. Returns the floats of the workspace. */
static size_t shape_tile(pph_narrow_plan *plan, size_t tile, size_t beyond) {
  size_t step = (size_t)plan->width.input_step;
  plan->tile = tile;
  plan->tiles = ((size_t)plan->width.length + tile - 1) / tile;
  plan->line = pph_round_up(tile, LINE);
  plan->plane = pph_round_up(plan->line + beyond, LINE);
  /* An odd number of lines: channels spread over the sets of a cache. */
  plan->channel_step = plan->plane * step;
  plan->channel_step += plan->channel_step / LINE % 2 ? 0 : LINE;
  return plan->in_channels * plan->channel_step +
         plan->ring_rows * plan->sum_planes * plan->line;
}

/* Blocks: tiles that fit the cache, bands enough for the threads. */
static bool shape_blocks(const pph_conv_spec *spec, pph_narrow_plan *plan,
                         size_t *bytes) {
  size_t beyond = (size_t)find_reach(plan);
  size_t length = (size_t)plan->width.length;
  size_t wanted = spec->threads > 1 ? 4 * (size_t)spec->threads : 1;
  size_t rows = (size_t)plan->height.output;
  size_t column =
      sizeof(float) * (plan->in_channels * (size_t)plan->width.input_step +
                       plan->ring_rows * plan->sum_planes);
  size_t limit = column * LEAST_TILE > TILE_BYTES ? WIDE_BYTES : TILE_BYTES;
  size_t tiles = pph_divide_up(column * length, limit);
  /* Rows are cut where there are enough of them, else columns. */
  if (plan->images * tiles * rows < 2 * wanted)
    tiles = pph_divide_up(2 * wanted, plan->images);
  size_t tile = pph_round_up(pph_divide_up(length, tiles), LINE);
  size_t least = 2 * (beyond > 2 * LINE ? beyond : 2 * LINE);
  tile = tile < least ? least : tile;
  tile = pph_round_up(tile < length ? tile : length, LINE);
  *bytes = sizeof(float) * shape_tile(plan, tile, beyond);
  size_t bands = pph_divide_up(wanted, plan->images * plan->tiles);
  plan->band = pph_divide_up(rows, bands);
  plan->bands = pph_divide_up(rows, plan->band);
  return *bytes <= MAX_WORKSPACE;
}

/* Columns of an average tile. */
static double count_columns(const pph_narrow_plan *plan) {
  return (double)plan->width.length / (double)plan->tiles;
}

static double count_vectors(const pph_narrow_plan *plan) {
  return ceil(count_columns(plan) / plan->narrow->lanes);
}

/* Kernel rows that an input row meets. */
static size_t count_meets(const pph_narrow_plan *plan) {
  int64_t kernel = plan->height.kernel;
  return (size_t)(plan->transposed ? kernel
                                   : pph_ceil_div(kernel, plan->height.stride));
}

/* Cycles of the narrow kernel for one row of inputs and `rows` planes. */
static double cost_rows(const pph_narrow_plan *plan, double vectors,
                        double steps, size_t rows) {
  size_t most = plan->narrow->rows;
  size_t tiles = (rows + most - 1) / most;
  double each = (double)rows / (double)tiles;
  double fit = floor((most > 6 ? 31 : 15) / (ceil(each) + 1));
  fit = fit < 8 ? fit : 8;
  double chunks = ceil(vectors / fit);
  double some = vectors / chunks * pph_cpu_passes(plan->narrow->cpu);
  /* Multiply-adds; loads, which cross cache lines; chains of few sums. */
  double work = each * some / 2, loads = (each + 2 * some) / 2;
  double step = work > loads ? work : loads;
  step = step > 4 ? step : 4;
  return (double)tiles * chunks * (step * steps + 2 * each * some + 30);
}

/* Cycles for one input row of a tile. */
static double cost_tile(const pph_narrow_plan *plan) {
  double cycles = 0, vectors = count_vectors(plan);
  for (size_t g = 0; g < plan->group_count; g++) {
    const pph_narrow_group *group = &plan->groups[g];
    if (group->run.taps)
      cycles += cost_rows(plan, vectors,
                          (double)(plan->in_channels * (size_t)group->run.taps),
                          count_meets(plan) * group->columns);
  }
  return cycles;
}

/* Everything but the weights, for one way to number the phases. False when it
   does not support the problem. */
static bool make_framed(const pph_conv_spec *spec, pph_frame_kind frame,
                        pph_narrow_plan *plan, size_t *bytes) {
  const pph_problem *p = &spec->problem;
  const int64_t most_length = INT64_C(1) << 30, most_step = 4096;
  *plan = (pph_narrow_plan){.transposed = p->transposed};
  if (p->group != 1 || p->out_channels > MAX_OUT_CHANNELS ||
      p->in_channels > MAX_WORKSPACE || !is_plain(&p->axes[PPH_DEPTH]))
    return false;
  pph_axis width;
  find_axes(p, &plan->height, &width);
  if (width.kernel > PPH_NARROW_MAX_KERNEL ||
      plan->height.kernel > PPH_NARROW_MAX_KERNEL ||
      width.dilation > most_step || plan->height.dilation > most_step ||
      width.stride > PPH_NARROW_MAX_KERNEL || plan->height.stride > most_step ||
      width.output > most_length || width.input > most_length)
    return false;
  pph_axis_view_make(&width, p->transposed, frame, &plan->width);
  plan->images = (size_t)(p->batch * p->axes[PPH_DEPTH].input);
  plan->in_channels = (size_t)p->in_channels;
  plan->out_channels = (size_t)p->out_channels;
  plan->narrow = pph_kernel_find("f32_narrow", spec->cpu);
  size_t span = (size_t)((plan->height.kernel - 1) * plan->height.dilation);
  plan->ring_rows =
      (p->transposed ? span : span / (size_t)plan->height.stride) + 1;
  plan->sum_planes = (size_t)plan->width.output_step * plan->out_channels;
  plan->period = pph_round_up(PERIOD, plan->out_channels);
  order_kernel_rows(plan);
  return list_groups(plan) && shape_blocks(spec, plan, bytes);
}

/* Aligned phases share windows, tight ones may need a vector less. */
static bool make_plan(const pph_conv_spec *spec, pph_narrow_plan *plan,
                      size_t *bytes) {
  if (!make_framed(spec, PPH_FRAME_ALIGNED, plan, bytes))
    return false;
  pph_narrow_plan tight;
  size_t tight_bytes;
  if (plan->transposed && plan->width.trim > 0 &&
      make_framed(spec, PPH_FRAME_TIGHT, &tight, &tight_bytes) &&
      cost_tile(&tight) * (double)tight.tiles <
          cost_tile(plan) * (double)plan->tiles) {
    *plan = tight;
    *bytes = tight_bytes;
  }
  return true;
}

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_narrow_plan plan;
  size_t bytes;
  return make_plan(spec, &plan, &bytes);
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_narrow_plan plan;
  size_t bytes;
  if (!make_plan(spec, &plan, &bytes))
    return (pph_algo_cost){.us = INFINITY};
  const pph_axis *height = &plan.height, *width = &plan.width.axis;
  double images = (double)plan.images, channels = (double)plan.in_channels;
  double lanes = plan.narrow->lanes, passes = pph_cpu_passes(spec->cpu);
  double rows = (double)height->input, steps = 0;
  if (!plan.transposed) /* a stride may pass over some */
    rows = fmin(rows, (double)(height->output * height->kernel));
  for (size_t g = 0; g < plan.group_count; g++)
    steps += (double)plan.groups[g].run.taps * (double)plan.groups[g].columns;
  steps *= channels * (double)count_meets(&plan);
  double all = images * rows * (double)plan.tiles;
  double inputs = images * rows * (double)width->input * channels;
  double outputs = images * (double)height->output * (double)width->output *
                   (double)plan.out_channels;
  /* Turning rows into planes, and sums into the output. */
  double turned =
      inputs * (spec->input_channels_first ? 2 : 3) * passes / lanes;
  double stored =
      outputs * (0.1 + (plan.sum_planes > 1 ? 6 : 2) * passes / lanes);
  double moved = 4 * (inputs + outputs);
  return (pph_algo_cost){
      .us = 0.3 + (all * cost_tile(&plan) + turned + stored) / 3000 +
            pph_cost_memory(moved, moved),
      .done_flops = 2 * all * steps * count_vectors(&plan) * lanes,
      .packed_bytes = 4 * plan.packed_floats};
}

/* Packing */

static void pack_group(const pph_conv_spec *spec, const pph_narrow_plan *plan,
                       const pph_narrow_group *group) {
  const pph_problem *p = &spec->problem;
  size_t ins = plan->in_channels, outs = plan->out_channels;
  size_t kernels = (size_t)(plan->height.kernel * plan->width.axis.kernel);
  /* The width may be the problem's height; then the other kernel is 1. */
  size_t row_step = (size_t)p->axes[PPH_WIDTH].kernel;
  float *target = plan->weights + group->packed;
  for (int64_t u = 0; u < group->run.taps; u++)
    for (size_t in = 0; in < ins; in++)
      for (int64_t k = 0; k < plan->height.kernel; k++)
        for (int64_t i = 0; i < group->run.count; i++) {
          size_t at =
              (size_t)plan->kernel_rows[k] * row_step +
              (size_t)pph_axis_view_tap(&plan->width, group->run.first + i, u);
          for (size_t out = 0; out < outs; out++)
            *target++ = spec->weights[(p->transposed ? in * outs + out
                                                     : out * ins + in) *
                                          kernels +
                                      at];
        }
}

static void place_taps(pph_narrow_plan *plan) {
  int64_t step = plan->width.input_step;
  for (size_t g = 0; g < plan->group_count; g++) {
    const pph_phase_run *run = &plan->groups[g].run;
    for (int64_t u = 0; u < run->taps; u++) {
      int64_t at = u * run->tap_step - run->pad_begin - plan->reach;
      plan->offsets[plan->groups[g].first_tap + (size_t)u] =
          (size_t)(at % step) * plan->plane + (size_t)(at / step);
    }
  }
}

/* See pph_narrow_plan's period. */
static pph_status repeat_values(const pph_conv_spec *spec, pph_heap *heap,
                                const float *values, size_t period,
                                float **repeated, pph_error *error) {
  size_t channels = (size_t)spec->problem.out_channels;
  size_t count = spec->output_channels_first ? channels * period : period;
  if (!values)
    return PPH_OK;
  *repeated = pph_heap_allocate(heap, count, sizeof(float));
  if (!*repeated)
    return pph_fail_memory(error);
  for (size_t i = 0; i < count; i++)
    (*repeated)[i] =
        values[spec->output_channels_first ? i / period : i % channels];
  return PPH_OK;
}

static void release(pph_heap *heap, pph_algo_plan *plan) {
  pph_narrow_plan *state = plan->state;
  if (!state)
    return;
  pph_heap_release(heap, state->weights);
  pph_heap_release(heap, state->bias);
  pph_heap_release(heap, state->slopes);
  pph_heap_release(heap, state);
  plan->state = NULL;
}

static pph_status fill_plan(const pph_conv_spec *spec, pph_heap *heap,
                            pph_narrow_plan *plan, pph_error *error) {
  pph_cpu cpu = spec->cpu;
  plan->run_narrow = (pph_narrow_kernel)pph_kernel_find("f32_narrow", cpu)->run;
  plan->run_transpose =
      (pph_transpose_kernel)pph_kernel_find("f32_transpose", cpu)->run;
  plan->run_finish = (pph_finish_kernel)pph_kernel_find("f32_finish", cpu)->run;
  plan->weights = pph_heap_allocate(heap, plan->packed_floats, sizeof(float));
  if (!plan->weights)
    return pph_fail_memory(error);
  for (size_t g = 0; g < plan->group_count; g++)
    pack_group(spec, plan, &plan->groups[g]);
  place_taps(plan);
  PPH_TRY(
      repeat_values(spec, heap, spec->bias, plan->period, &plan->bias, error));
  return repeat_values(spec, heap, spec->slopes, plan->period, &plan->slopes,
                       error);
}

static pph_status prepare(const pph_algo *algo, const pph_conv_spec *spec,
                          pph_heap *heap, pph_algo_plan *plan,
                          pph_error *error) {
  size_t bytes;
  pph_narrow_plan *state = pph_heap_allocate_zeroed(heap, 1, sizeof *state);
  if (!state)
    return pph_fail_memory(error);
  plan->state = state;
  pph_status status = PPH_OK;
  if (!make_plan(spec, state, &bytes))
    status = pph_fail(error, PPH_UNSUPPORTED, "", "narrow: too large");
  if (status == PPH_OK)
    status = fill_plan(spec, heap, state, error);
  if (status != PPH_OK) {
    release(heap, plan);
    return status;
  }
  plan->thread_bytes = pph_round_up(bytes, PPH_ALIGNMENT);
  plan->kernel = state->narrow->name;
  return PPH_OK;
}

const pph_algo pph_algo_narrow = {.name = "narrow",
                                  .error_bound = 4,
                                  .direct = true,
                                  .supports = supports,
                                  .cost = cost,
                                  .prepare = prepare,
                                  .run = pph_narrow_run,
                                  .release = release};
