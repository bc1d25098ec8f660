/* The gather row: what it supports, what it costs, and packing. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "op/algo_rows.h"
#include "op/cost.h"
#include "op/gather.h"

/* Inputs of one output element, and kinds of phases. */
enum { MAX_DEPTH = 192 * 1024, MAX_PARTS = 4096 };

/* Cycles that storing part of a vector takes more than storing one. */
enum { MASKED = 7 };

static void make_views(const pph_conv_spec *spec, pph_frame_kind width_frame,
                       pph_axis_view *views) {
  const pph_problem *p = &spec->problem;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    pph_axis_view_make(&p->axes[i], p->transposed,
                       i == PPH_WIDTH ? width_frame : PPH_FRAME_ALIGNED,
                       &views[i]);
}

/* Phases x of a group's tile lie together only when there is one group. */
static int64_t most_phases(const pph_conv_spec *spec) {
  return spec->problem.group == 1 ? INT64_MAX : 1;
}

/* The x phases of a run share tiles of columns, but edge pixels of the aligned
   frame compute phases that are cut off: the tight one is better where a phase
   fills tiles by itself, or rows are short. */
static pph_frame_kind choose_frame(const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  const pph_axis *axis = &p->axes[PPH_WIDTH];
  int64_t tile = pph_kernel_find("f32_gemm", spec->cpu)->columns;
  int64_t channels = p->out_channels / p->group;
  pph_axis_view aligned, tight;
  pph_axis_view_make(axis, p->transposed, PPH_FRAME_ALIGNED, &aligned);
  pph_axis_view_make(axis, p->transposed, PPH_FRAME_TIGHT, &tight);
  int64_t step = aligned.output_step, joined = p->group == 1 ? step : 1;
  double aligned_tiles =
      (double)aligned.length * (double)(step / joined) *
      (double)pph_ceil_div(joined * channels, tile);
  double tight_tiles = (double)tight.length * (double)step *
                       (double)pph_ceil_div(channels, tile);
  return tight_tiles < aligned_tiles ? PPH_FRAME_TIGHT : PPH_FRAME_ALIGNED;
}

static bool count_parts(const pph_axis_view *views, int64_t most,
                        size_t *parts) {
  *parts = 1;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    if (views[i].output_step > MAX_PARTS) /* do not even count */
      return false;
    *parts *= (size_t)pph_axis_view_count_runs(
        &views[i], i == PPH_WIDTH ? most : INT64_MAX);
    if (*parts > MAX_PARTS)
      return false;
  }
  return true;
}

/* All triples of runs. */
static void list_parts(const pph_conv_spec *spec, pph_gather_plan *plan) {
  const pph_axis_view *v = plan->axes;
  int64_t most = most_phases(spec);
  size_t count = 0;
  for (int64_t d = 0; d < v[0].output_step;) {
    pph_phase_run depth = pph_axis_view_run(&v[0], d, INT64_MAX);
    d += depth.count;
    for (int64_t h = 0; h < v[1].output_step;) {
      pph_phase_run height = pph_axis_view_run(&v[1], h, INT64_MAX);
      h += height.count;
      for (int64_t w = 0; w < v[2].output_step;) {
        pph_phase_run width = pph_axis_view_run(&v[2], w, most);
        w += width.count;
        pph_gather_part *part = &plan->parts[count++];
        *part = (pph_gather_part){.runs = {depth, height, width}};
        pph_gather_shape(spec, plan, part);
      }
    }
  }
}

/* Places of the parts' weights, runs and blocks; sums up what is needed. False
   when a size overflows. */
static bool place_parts(const pph_conv_spec *spec, pph_gather_plan *plan,
                        size_t *packed, size_t *starts) {
  size_t groups = (size_t)spec->problem.group;
  *packed = *starts = 0;
  for (size_t i = 0; i < plan->part_count; i++) {
    pph_gather_part *part = &plan->parts[i];
    size_t all;
    part->first_block = plan->blocks;
    plan->blocks += part->blocks;
    part->packed = *packed;
    if (!pph_checked_mul(part->depth, pph_gather_round(plan, part->columns),
                         &part->packed_each) ||
        !pph_checked_mul(part->packed_each, groups, &all) ||
        !pph_checked_mul(all, pph_gather_pairs(part), &all) ||
        !pph_checked_add(*packed, all, packed))
      return false;
    part->copied.starts = *starts;
    *starts += pph_gather_runs(part, &part->copied);
    part->direct.starts = *starts;
    *starts += pph_gather_runs(part, &part->direct);
    size_t copy = (size_t)pph_gather_copy_floats(part);
    plan->copy_floats = plan->copy_floats > copy ? plan->copy_floats : copy;
    size_t repeats = (size_t)part->runs[PPH_WIDTH].count;
    plan->repeats = plan->repeats > repeats ? plan->repeats : repeats;
  }
  return true;
}

static size_t weight_at(const pph_conv_spec *spec, size_t in, size_t out,
                        size_t group, const int64_t *taps) {
  const pph_problem *p = &spec->problem;
  size_t ins = (size_t)(p->in_channels / p->group);
  size_t outs = (size_t)(p->out_channels / p->group);
  size_t at = p->transposed ? (group * ins + in) * outs + out
                            : (group * outs + out) * ins + in;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    at = at * (size_t)p->axes[i].kernel + (size_t)taps[i];
  return at;
}

/* One panel row: all columns of a block for one tap and channel. */
typedef struct packed_row {
  size_t group, in, first, count, width;
  int64_t taps[PPH_PROBLEM_AXES]; /* width: filled in per phase */
  int64_t u;                      /* tap number along the width */
} packed_row;

static void pack_row(const pph_conv_spec *spec, const pph_gather_plan *plan,
                     const pph_gather_part *part, packed_row *row,
                     float *target) {
  const pph_axis_view *width = &plan->axes[PPH_WIDTH];
  int64_t known = -1;
  for (size_t i = 0; i < row->count; i++) {
    size_t column = row->first + i;
    int64_t phase = part->runs[PPH_WIDTH].first +
                    (int64_t)(column / plan->out_channels);
    if (phase != known)
      row->taps[PPH_WIDTH] = pph_axis_view_tap(width, phase, row->u);
    known = phase;
    target[i] = spec->weights[weight_at(spec, row->in,
                                        column % plan->out_channels,
                                        row->group, row->taps)];
  }
  for (size_t i = row->count; i < row->width; i++)
    target[i] = 0;
}

/* Panels of one (group, depth phase, height phase): column block by column
   block, each [depth][width]. */
static void pack_pair(const pph_conv_spec *spec, const pph_gather_plan *plan,
                      const pph_gather_part *part, size_t group,
                      const int64_t *phases, float *target) {
  const pph_phase_run *runs = part->runs;
  packed_row row = {.group = group};
  for (row.first = 0; row.first < part->columns;
       row.first += plan->column_step) {
    size_t left = part->columns - row.first;
    row.count = left < plan->column_step ? left : plan->column_step;
    row.width = pph_gather_round(plan, row.count);
    int64_t u[2];
    for (u[0] = 0; u[0] < runs[0].taps; u[0]++)
      for (u[1] = 0; u[1] < runs[1].taps; u[1]++)
        for (row.u = 0; row.u < runs[2].taps; row.u++) {
          for (int i = 0; i < 2; i++)
            row.taps[i] = pph_axis_view_tap(&plan->axes[i], phases[i], u[i]);
          for (row.in = 0; row.in < plan->in_channels; row.in++) {
            pack_row(spec, plan, part, &row, target);
            target += row.width;
          }
        }
  }
}

static void pack_part(const pph_conv_spec *spec, const pph_gather_plan *plan,
                      const pph_gather_part *part) {
  float *target = plan->weights + part->packed;
  for (size_t group = 0; group < (size_t)spec->problem.group; group++)
    for (int64_t d = 0; d < part->runs[PPH_DEPTH].count; d++)
      for (int64_t h = 0; h < part->runs[PPH_HEIGHT].count; h++) {
        int64_t phases[2] = {part->runs[PPH_DEPTH].first + d,
                             part->runs[PPH_HEIGHT].first + h};
        pack_pair(spec, plan, part, group, phases, target);
        target += part->packed_each;
      }
}

/* Per group the channels' values, once per phase x. */
static float *repeat_channels(const pph_conv_spec *spec,
                              const pph_gather_plan *plan, pph_heap *heap,
                              const float *values) {
  size_t groups = (size_t)spec->problem.group, channels = plan->out_channels;
  float *repeated = pph_heap_allocate(heap, groups * plan->repeats,
                                      channels * sizeof(float));
  for (size_t g = 0; repeated && g < groups; g++)
    for (size_t r = 0; r < plan->repeats; r++)
      memcpy(repeated + (g * plan->repeats + r) * channels,
             values + g * channels, channels * sizeof(float));
  return repeated;
}

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_axis_view views[PPH_PROBLEM_AXES];
  size_t parts;
  make_views(spec, choose_frame(spec), views);
  const pph_problem *p = &spec->problem;
  int64_t depth = p->in_channels / p->group;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    if (!pph_checked_mul_i64(depth, p->axes[i].kernel, &depth))
      return false;
  return depth <= MAX_DEPTH &&
         count_parts(views, most_phases(spec), &parts);
}

static void init_plan(const pph_conv_spec *spec, pph_gather_plan *plan) {
  const pph_problem *p = &spec->problem;
  plan->gemm = pph_kernel_find("f32_gemm", spec->cpu);
  plan->run_gemm = (pph_gemm_kernel)plan->gemm->run;
  plan->run_transpose =
      (pph_transpose_kernel)pph_kernel_find("f32_transpose", spec->cpu)->run;
  plan->run_finish =
      (pph_finish_kernel)pph_kernel_find("f32_finish", spec->cpu)->run;
  plan->run_finish_planes =
      (pph_finish_kernel)pph_kernel_find("f32_finish_planes", spec->cpu)->run;
  plan->in_channels = (size_t)(p->in_channels / p->group);
  plan->out_channels = (size_t)(p->out_channels / p->group);
  plan->column_step = plan->gemm->columns;
  make_views(spec, choose_frame(spec), plan->axes);
}

static void release(pph_heap *heap, pph_algo_plan *plan) {
  pph_gather_plan *state = plan->state;
  pph_heap_release(heap, state->weights);
  pph_heap_release(heap, state->starts);
  pph_heap_release(heap, state->bias);
  pph_heap_release(heap, state->slopes);
  pph_heap_release(heap, state);
  plan->state = NULL;
}

/* Whether all that a run touches outgrows the level-2 cache. Narrow vectors
   leave it more time, and have fewer loads to spare for fetching. */
static bool is_far(const pph_conv_spec *spec, const pph_gather_plan *plan,
                   size_t packed) {
  const pph_problem *p = &spec->problem;
  if (plan->gemm->lanes < 16)
    return false;
  double in = (double)(p->batch * p->in_channels);
  double out = (double)(p->batch * p->out_channels);
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    in *= (double)p->axes[i].input;
    out *= (double)p->axes[i].output;
  }
  return 4 * (in + out + (double)packed) > (double)pph_cpu_cache2();
}

/* Panels that stay in cache beside inputs and outputs; where all does, one,
   which level 1 may hold. */
static size_t count_panels(const pph_gather_plan *plan,
                           const pph_gather_part *part) {
  size_t bytes = part->depth * plan->column_step * sizeof(float);
  size_t room = pph_cpu_cache2() / PPH_GATHER_PANEL_SHARE;
  if (!plan->far || plan->fetch || bytes > room)
    return 1;
  size_t count = bytes ? room / bytes : PPH_GATHER_PANELS;
  return count < PPH_GATHER_PANELS ? count : PPH_GATHER_PANELS;
}

static pph_status fill_plan(const pph_conv_spec *spec, pph_heap *heap,
                            pph_gather_plan *plan, pph_error *error) {
  size_t packed, starts;
  list_parts(spec, plan);
  if (!place_parts(spec, plan, &packed, &starts))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "", "weights too large");
  plan->weights = pph_heap_allocate(heap, packed, sizeof(float));
  plan->starts = pph_heap_allocate(heap, starts, sizeof *plan->starts);
  if (!plan->weights || !plan->starts)
    return pph_fail_memory(error);
  plan->weight_floats = packed;
  plan->fetch = packed * sizeof(float) > pph_cpu_cache2() / 2;
  plan->far = is_far(spec, plan, packed);
  for (size_t i = 0; i < plan->part_count; i++) {
    plan->parts[i].panels = count_panels(plan, &plan->parts[i]);
    pph_gather_list_starts(spec, plan, &plan->parts[i]);
    pack_part(spec, plan, &plan->parts[i]);
  }
  if (spec->bias)
    plan->bias = repeat_channels(spec, plan, heap, spec->bias);
  if (spec->slopes)
    plan->slopes = repeat_channels(spec, plan, heap, spec->slopes);
  bool complete = (!spec->bias || plan->bias) &&
                  (!spec->slopes || plan->slopes);
  return complete ? PPH_OK : pph_fail_memory(error);
}

static pph_status prepare(const pph_algo *algo, const pph_conv_spec *spec,
                          pph_heap *heap, pph_algo_plan *plan,
                          pph_error *error) {
  pph_axis_view views[PPH_PROBLEM_AXES];
  size_t parts;
  make_views(spec, choose_frame(spec), views);
  if (!count_parts(views, most_phases(spec), &parts))
    return pph_fail(error, PPH_UNSUPPORTED, "", "too many phases");
  pph_gather_plan *state = pph_heap_allocate_zeroed(
      heap, 1, sizeof *state + parts * sizeof *state->parts);
  if (!state)
    return pph_fail_memory(error);
  plan->state = state;
  state->part_count = parts;
  init_plan(spec, state);
  pph_status status = fill_plan(spec, heap, state, error);
  if (status != PPH_OK) {
    release(heap, plan);
    return status;
  }
  size_t tile = (size_t)state->gemm->rows * state->gemm->columns;
  size_t floats = (state->copy_floats + tile + 15) / 16 * 16;
  plan->thread_bytes = floats * sizeof(float);
  plan->kernel = state->gemm->name;
  return PPH_OK;
}

/* Rows of outputs (or planes of them) of a run of phases. */
static double count_outputs(const pph_axis_view *view,
                            const pph_phase_run *run) {
  double count = 0;
  for (int64_t phase = run->first; phase < run->first + run->count; phase++) {
    int64_t begin, end;
    pph_axis_view_range(view, phase, &begin, &end);
    count += (double)(end - begin);
  }
  return count;
}

/* Products, while weights come from where they are; inputs and outputs. */
static double cost_part(const pph_conv_spec *spec, const pph_gather_plan *plan,
                        const pph_gather_part *part, pph_algo_cost *cost) {
  const pph_problem *p = &spec->problem;
  double groups = (double)p->group, depth = (double)part->depth;
  double rows = part->rows, columns = (double)part->columns;
  double full = (double)(part->columns / plan->column_step);
  double rest = (double)(part->columns % plan->column_step);
  double lines = groups * (double)p->batch;
  for (int i = 0; i < PPH_WIDTH; i++)
    lines *= count_outputs(&plan->axes[i], &part->runs[i]);
  double pixels = lines * (double)plan->axes[PPH_WIDTH].length;
  double tiles = pixels / rows;
  double us = pph_cost_products(spec->cpu, tiles * full, rows,
                                (double)plan->column_step, depth);
  if (rest > 0)
    us += pph_cost_products(spec->cpu, tiles, rows, rest, depth);
  if (part->columns % plan->gemm->lanes) /* a row's last vector is masked */
    us += pixels * pph_cost_flops(spec->cpu, MASKED * 4 *
                                                 (double)plan->gemm->lanes);
  double weights = 4 * groups * depth *
                   (double)pph_gather_round(plan, part->columns) *
                   (double)pph_gather_pairs(part);
  double blocks = (double)(part->blocks / part->chunks);
  /* From memory, slower than what is read as one stream. */
  if (weights > (double)pph_cpu_cache2())
    us = pph_cost_overlap(
        us, 2.3 * pph_cost_weights(weights * blocks / groups, weights));
  double inputs = 4 * blocks * pph_gather_copy_floats(part) *
                  pph_gather_copied(spec, plan, part);
  double outputs = 4 * pixels * columns;
  us += pph_cost_memory(inputs + outputs, inputs + outputs);
  us += pph_cost_flops(spec->cpu, inputs * (spec->input_channels_first ? 4
                                                                       : 1));
  if (spec->output_channels_first)
    us += pixels * columns * 1.5 / 3000;
  cost->packed_bytes += (size_t)weights;
  cost->done_flops += 2 * pixels * depth * columns;
  return us;
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_gather_plan plan = {0};
  pph_algo_cost total = {.us = 0.3};
  init_plan(spec, &plan);
  const pph_axis_view *v = plan.axes;
  int64_t most = most_phases(spec);
  for (int64_t d = 0; d < v[0].output_step;) {
    pph_phase_run depth = pph_axis_view_run(&v[0], d, INT64_MAX);
    d += depth.count;
    for (int64_t h = 0; h < v[1].output_step;) {
      pph_phase_run height = pph_axis_view_run(&v[1], h, INT64_MAX);
      h += height.count;
      for (int64_t w = 0; w < v[2].output_step;) {
        pph_gather_part part = {
            .runs = {depth, height, pph_axis_view_run(&v[2], w, most)}};
        w += part.runs[PPH_WIDTH].count;
        pph_gather_shape(spec, &plan, &part);
        total.us += cost_part(spec, &plan, &part, &total);
      }
    }
  }
  return total;
}

const pph_algo pph_algo_gather = {.name = "gather",
                                  .error_bound = 4,
                                  .direct = true,
                                  .supports = supports,
                                  .cost = cost,
                                  .prepare = prepare,
                                  .run = pph_gather_run,
                                  .release = release};
