/* Plans of the depthwise and the grouped algorithm: parts of the axes, packed
   weights, and which inputs a block of channels picks. */
#include "op/channelwise_plan.h"

#include "base/checked.h"
#include "base/fail.h"
#include "op/cost.h"

enum { MAX_STRIDE = 4096 };

static void make_axes(const pph_conv_spec *spec, pph_axis_view *axes) {
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    pph_axis_view_make(&spec->problem.axes[i], spec->problem.transposed,
                       PPH_FRAME_ALIGNED, &axes[i]);
}

bool pph_channelwise_supports(const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  const pph_axis *depth = &p->axes[PPH_DEPTH];
  return !spec->input_channels_first && !spec->output_channels_first &&
         depth->kernel == 1 && depth->stride == 1 && depth->pad_begin == 0 &&
         depth->input == depth->output &&
         p->axes[PPH_HEIGHT].stride <= MAX_STRIDE &&
         p->axes[PPH_WIDTH].stride <= MAX_STRIDE &&
         pph_channelwise_packed(spec) > 0;
}

size_t pph_channelwise_packed(const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  size_t lanes = pph_kernel_find("f32_depthwise", spec->cpu)->lanes;
  size_t blocks = ((size_t)p->out_channels + lanes - 1) / lanes;
  size_t count = (size_t)(p->in_channels / p->group);
  bool fits =
      pph_checked_mul(count, (size_t)p->axes[PPH_HEIGHT].kernel, &count) &&
      pph_checked_mul(count, (size_t)p->axes[PPH_WIDTH].kernel, &count) &&
      pph_checked_mul(count, blocks * lanes, &count) &&
      count <= SIZE_MAX / sizeof(float);
  return fits ? count : 0;
}

/* Where all of a part is there and reads nothing but the input. */
static void find_inside(const pph_axis_view *view, pph_channelwise_part *part) {
  const pph_phase_run *run = &part->run;
  int64_t begin = 0, end = view->length;
  for (int64_t p = 0; p < run->count; p++) {
    int64_t from, to;
    pph_axis_view_range(view, run->first + p, &from, &to);
    begin = pph_max_i64(begin, from);
    end = pph_min_i64(end, to);
  }
  if (run->taps) {
    int64_t reach = (run->taps - 1) * run->tap_step - run->pad_begin;
    begin = pph_max_i64(begin, pph_ceil_div(run->pad_begin, view->input_step));
    end = pph_min_i64(
        end, pph_floor_div(view->axis.input - 1 - reach, view->input_step) + 1);
  }
  part->inside_begin = begin;
  part->inside_end = pph_max_i64(begin, end);
}

/* Lists the parts of an axis, each of at most `most` phases; returns how many
   taps they have. */
static size_t list_parts(const pph_axis_view *view, int64_t most,
                         pph_channelwise_part *parts) {
  size_t slot = 0;
  for (int64_t first = 0; first < view->output_step; parts++) {
    *parts = (pph_channelwise_part){pph_axis_view_run(view, first, most), slot,
                                    0, 0};
    find_inside(view, parts);
    first += parts->run.count;
    slot += (size_t)(parts->run.count * parts->run.taps);
  }
  return slot;
}

/* One block's weights of one row tap and one column tap. */
typedef struct packed_tap {
  size_t block;
  int64_t row, column; /* kernel indices */
} packed_tap;

static void pack_tap(const pph_conv_spec *spec,
                     const pph_channelwise_plan *plan, packed_tap tap,
                     float *target) {
  const pph_problem *p = &spec->problem;
  size_t lanes = plan->kernel->lanes, ins = plan->ins;
  size_t channels = (size_t)p->out_channels;
  size_t outs = channels / (size_t)p->group;
  for (size_t in = 0; in < ins; in++)
    for (size_t lane = 0; lane < lanes; lane++, target++) {
      size_t c = tap.block * lanes + lane;
      size_t at = p->transposed ? (c / outs * ins + in) * outs + c % outs
                                : c * ins + in;
      at = (at * (size_t)p->axes[PPH_HEIGHT].kernel + (size_t)tap.row) *
               (size_t)p->axes[PPH_WIDTH].kernel +
           (size_t)tap.column;
      *target = c < channels ? spec->weights[at] : 0;
    }
}

/* All column taps of one row tap of one block. */
static float *pack_row(const pph_conv_spec *spec,
                       const pph_channelwise_plan *plan, packed_tap tap,
                       float *target) {
  const pph_axis_view *width = &plan->axes[PPH_WIDTH];
  for (size_t i = 0; i < plan->column_parts; i++) {
    const pph_phase_run *run = &plan->columns[i].run;
    for (int64_t u = 0; u < run->taps; u++)
      for (int64_t p = 0; p < run->count; p++) {
        tap.column = pph_axis_view_tap(width, run->first + p, u);
        pack_tap(spec, plan, tap, target);
        target += plan->ins * plan->kernel->lanes;
      }
  }
  return target;
}

static void pack_weights(const pph_conv_spec *spec,
                         const pph_channelwise_plan *plan) {
  const pph_axis_view *height = &plan->axes[PPH_HEIGHT];
  float *target = plan->weights;
  packed_tap tap = {0};
  for (; tap.block < plan->blocks; tap.block++)
    for (int64_t phase = 0; phase < height->output_step; phase++)
      for (int64_t u = 0; u < plan->rows[phase].run.taps; u++) {
        tap.row = pph_axis_view_tap(height, phase, u);
        target = pack_row(spec, plan, tap, target);
      }
}

/* Which inputs every block of channels reads. */
static void make_picks(const pph_conv_spec *spec, pph_channelwise_plan *plan) {
  const pph_problem *p = &spec->problem;
  size_t channels = (size_t)p->out_channels, lanes = plan->kernel->lanes;
  size_t outs = channels / (size_t)p->group;
  for (size_t block = 0; block < plan->blocks; block++) {
    size_t first = block * lanes, end = first + lanes;
    end = end < channels ? end : channels;
    size_t group = first / outs, groups = (end - 1) / outs - group + 1;
    pph_channelwise_pick pick = {group * plan->ins, groups * plan->ins};
    plan->picks[block] = pick;
    plan->span = pick.span > plan->span ? pick.span : plan->span;
    for (size_t in = 0; plan->index && in < plan->ins; in++)
      for (size_t lane = 0; lane < lanes; lane++) {
        size_t c = first + lane;
        size_t from = c < end ? (c / outs - group) * plan->ins + in : 0;
        plan->index[(block * plan->ins + in) * lanes + lane] = (int32_t)from;
      }
  }
}

static bool allocate(const pph_conv_spec *spec, pph_heap *heap,
                     pph_channelwise_plan *plan) {
  const pph_problem *p = &spec->problem;
  size_t lanes = plan->kernel->lanes;
  plan->rows = pph_heap_allocate(
      heap, (size_t)plan->axes[PPH_HEIGHT].output_step, sizeof *plan->rows);
  plan->columns = pph_heap_allocate(
      heap, (size_t)plan->axes[PPH_WIDTH].output_step, sizeof *plan->columns);
  plan->weights = pph_heap_allocate(heap, pph_channelwise_packed(spec),
                                    sizeof *plan->weights);
  bool complete = plan->rows && plan->columns && plan->weights;
  if (!complete || plan->kernel->family != PPH_KERNEL_GROUPED)
    return complete;
  plan->picks = pph_heap_allocate(heap, plan->blocks, sizeof *plan->picks);
  if ((size_t)(p->out_channels / p->group) % lanes == 0)
    return plan->picks;
  plan->index = pph_heap_allocate(heap, plan->blocks * plan->ins * lanes,
                                  sizeof *plan->index);
  return plan->picks && plan->index;
}

pph_status pph_channelwise_prepare(const pph_conv_spec *spec, const char *stem,
                                   pph_heap *heap, pph_algo_plan *plan,
                                   pph_error *error) {
  const pph_problem *p = &spec->problem;
  pph_channelwise_plan *state =
      pph_heap_allocate_zeroed(heap, 1, sizeof *state);
  if (!state)
    return pph_fail_memory(error);
  plan->state = state;
  make_axes(spec, state->axes);
  state->kernel = pph_kernel_find(stem, spec->cpu);
  plan->kernel = state->kernel->name;
  state->ins = (size_t)(p->in_channels / p->group);
  state->blocks = ((size_t)p->out_channels + state->kernel->lanes - 1) /
                  state->kernel->lanes;
  if (!allocate(spec, heap, state)) {
    pph_channelwise_release(heap, plan);
    return pph_fail_memory(error);
  }
  state->row_slots = list_parts(&state->axes[PPH_HEIGHT], 1, state->rows);
  state->column_slots =
      list_parts(&state->axes[PPH_WIDTH], INT64_MAX, state->columns);
  state->column_parts =
      (size_t)pph_axis_view_count_runs(&state->axes[PPH_WIDTH], INT64_MAX);
  pack_weights(spec, state);
  if (state->picks)
    make_picks(spec, state);
  return PPH_OK;
}

void pph_channelwise_release(pph_heap *heap, pph_algo_plan *plan) {
  pph_channelwise_plan *state = plan->state;
  pph_heap_release(heap, state->index);
  pph_heap_release(heap, state->picks);
  pph_heap_release(heap, state->weights);
  pph_heap_release(heap, state->columns);
  pph_heap_release(heap, state->rows);
  pph_heap_release(heap, state);
  plan->state = NULL;
}

/* Multiply-adds go at nearly two a cycle (weights come from level 1), the
   operations of picking as well; a vector of the output takes some more to
   finish and store. At the borders pixels are computed alone, each multiply-add
   waiting for the one before. */
pph_algo_cost pph_channelwise_cost(const pph_conv_spec *spec, double picking) {
  const pph_problem *p = &spec->problem;
  const double work = 1.2, store = 3, edge = 12, call = 40;
  double lanes = pph_kernel_find("f32_depthwise", spec->cpu)->lanes;
  pph_axis_view axes[PPH_PROBLEM_AXES];
  make_axes(spec, axes);
  const pph_axis_view *height = &axes[PPH_HEIGHT], *width = &axes[PPH_WIDTH];
  double blocks = (double)pph_ceil_div(p->out_channels, (int64_t)lanes);
  double images = (double)p->batch * p->axes[PPH_DEPTH].output;
  double ins = (double)(p->in_channels / p->group);
  double rows = (double)height->axis.output;
  double taps = ins * (double)height->axis.kernel * width->axis.kernel /
                ((double)height->output_step * width->output_step);
  double pixels = images * rows * width->axis.output;
  double reach = (double)(width->axis.kernel - 1) * width->axis.dilation /
                 (double)(width->output_step * width->input_step);
  reach = reach < width->length ? reach : (double)width->length;
  double edges = images * rows * reach * width->output_step;
  double vectors = pixels * blocks;
  double cycles = vectors * (taps / 2 * (work + picking) + store) +
                  edges * (blocks * (taps + edge) + call) +
                  images * rows * call * width->output_step;
  double in_bytes =
      4 * images * height->axis.input * width->axis.input * p->in_channels;
  double bytes = in_bytes + 4 * pixels * p->out_channels;
  pph_algo_cost cost = {.done_flops = 2 * vectors * lanes * taps};
  cost.packed_bytes = 4 * pph_channelwise_packed(spec);
  double weights = pph_cost_memory((double)cost.packed_bytes, bytes);
  double memory = pph_cost_memory(bytes, bytes);
  double compute = pph_cost_flops(spec->cpu, cycles * 4 * lanes);
  cost.us = 0.5 + weights + pph_cost_overlap(memory, compute);
  return cost;
}
