/* The gather row: what it supports, what it costs, and packing. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "op/algo_rows.h"
#include "op/cost.h"
#include "op/gather.h"

/* Panels of a block stay in level 2; a panel never exceeds MAX_PANEL. */
enum {
  BLOCK_FLOATS = 64 * 1024,
  MAX_PANEL = 192 * 1024,
  MAX_PARTS = 4096
};

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

/* The x phases of a run share a panel, but edge pixels of the aligned frame
   compute phases that are cut off: the tight one is better for short rows. */
static pph_frame_kind choose_frame(const pph_conv_spec *spec) {
  const pph_axis *axis = &spec->problem.axes[PPH_WIDTH];
  pph_axis_view aligned, tight;
  pph_axis_view_make(axis, spec->problem.transposed, PPH_FRAME_ALIGNED,
                     &aligned);
  pph_axis_view_make(axis, spec->problem.transposed, PPH_FRAME_TIGHT, &tight);
  bool wasteful = 10 * (aligned.length - tight.length) > aligned.length;
  return wasteful ? PPH_FRAME_TIGHT : PPH_FRAME_ALIGNED;
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

size_t pph_gather_panel_floats(const pph_gather_part *part) {
  size_t chunks = (part->depth + PPH_GEMM_CHUNK - 1) / PPH_GEMM_CHUNK;
  return chunks * PPH_GEMM_CHUNK * part->rows;
}

/* Tiles, blocks and chunks of a part whose runs are set. */
static void shape_part(const pph_conv_spec *spec, const pph_gather_plan *plan,
                       pph_gather_part *part) {
  const pph_problem *p = &spec->problem;
  size_t length = (size_t)plan->axes[PPH_WIDTH].length;
  part->depth = plan->in_channels;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    part->depth *= (size_t)part->runs[i].taps;
  part->columns = (size_t)part->runs[PPH_WIDTH].count * plan->out_channels;
  size_t padded = part->depth + PPH_GEMM_CHUNK;
  size_t most = MAX_PANEL / padded;
  most = most < plan->gemm->rows ? most : plan->gemm->rows;
  part->segments = (length + most - 1) / most;
  part->rows = (uint32_t)((length + part->segments - 1) / part->segments);
  part->segments = (length + part->rows - 1) / part->rows;
  part->tiles = (size_t)(p->batch * plan->axes[PPH_DEPTH].length *
                         plan->axes[PPH_HEIGHT].length) *
                part->segments;
  size_t panel = pph_gather_panel_floats(part);
  size_t tiles = panel ? BLOCK_FLOATS / panel : part->tiles;
  tiles = tiles > 64 ? 64 : tiles;
  tiles = tiles < 1 ? 1 : tiles;
  size_t blocks = (part->tiles + tiles - 1) / tiles;
  part->block_tiles = (part->tiles + blocks - 1) / blocks;
}

/* Enough pieces for all threads; a single thread wants none. */
static void split_work(const pph_conv_spec *spec, pph_gather_plan *plan,
                       pph_gather_part *part) {
  size_t groups = (size_t)spec->problem.group;
  size_t wanted = spec->threads > 1 ? 4 * (size_t)spec->threads : 1;
  size_t most = part->block_tiles;
  while (most > 1 && (part->tiles + most - 1) / most * groups < wanted)
    most = (most + 1) / 2;
  part->block_tiles = most;
  size_t blocks = (part->tiles + most - 1) / most * groups;
  size_t columns =
      pph_gather_column_blocks(plan, part) * pph_gather_pairs(part);
  part->chunks = (wanted + blocks - 1) / blocks;
  part->chunks = part->chunks < columns ? part->chunks : columns;
  part->blocks = blocks * part->chunks;
}

/* Calls `visit` state by listing all triples of runs into plan->parts. */
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
        shape_part(spec, plan, part);
      }
    }
  }
}

/* Places of the parts' weights and blocks; sums up what is needed. False when
   a size overflows. */
static bool place_parts(const pph_conv_spec *spec, pph_gather_plan *plan,
                        size_t *packed) {
  size_t groups = (size_t)spec->problem.group;
  *packed = 0;
  for (size_t i = 0; i < plan->part_count; i++) {
    pph_gather_part *part = &plan->parts[i];
    size_t all;
    split_work(spec, plan, part);
    part->first_block = plan->blocks;
    plan->blocks += part->blocks;
    part->packed = *packed;
    if (!pph_checked_mul(part->depth, pph_gather_round(plan, part->columns),
                         &part->packed_each) ||
        !pph_checked_mul(part->packed_each, groups, &all) ||
        !pph_checked_mul(all, pph_gather_pairs(part), &all) ||
        !pph_checked_add(*packed, all, packed))
      return false;
    size_t panels = pph_gather_panel_floats(part) * part->block_tiles;
    plan->panel_floats =
        plan->panel_floats > panels ? plan->panel_floats : panels;
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
  return depth <= MAX_PANEL - PPH_GEMM_CHUNK &&
         count_parts(views, most_phases(spec), &parts);
}

static void init_plan(const pph_conv_spec *spec, pph_gather_plan *plan) {
  const pph_problem *p = &spec->problem;
  plan->gemm = pph_kernel_find("f32_gemm", spec->cpu);
  plan->run_gemm = (pph_gemm_kernel)plan->gemm->run;
  plan->run_pack =
      (pph_pack_kernel)pph_kernel_find("f32_pack", spec->cpu)->run;
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
  pph_heap_release(heap, state->bias);
  pph_heap_release(heap, state->slopes);
  pph_heap_release(heap, state);
  plan->state = NULL;
}

static pph_status fill_plan(const pph_conv_spec *spec, pph_heap *heap,
                            pph_gather_plan *plan, pph_error *error) {
  size_t packed;
  list_parts(spec, plan);
  if (!place_parts(spec, plan, &packed))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "", "weights too large");
  plan->weights = pph_heap_allocate(heap, packed, sizeof(float));
  if (!plan->weights)
    return pph_fail_memory(error);
  plan->weight_floats = packed;
  plan->fetch = packed * sizeof(float) > pph_cpu_cache2();
  for (size_t i = 0; i < plan->part_count; i++)
    pack_part(spec, plan, &plan->parts[i]);
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
  size_t floats = (state->panel_floats + tile + 15) / 16 * 16;
  plan->thread_bytes = floats * sizeof(float);
  plan->kernel = state->gemm->name;
  return PPH_OK;
}

/* Costs: packing, products, and what part of the weights is read from where. */
static double cost_part(const pph_conv_spec *spec, const pph_gather_plan *plan,
                        const pph_gather_part *part, pph_algo_cost *cost) {
  double groups = (double)spec->problem.group;
  double tiles = groups * (double)part->tiles;
  double pairs = (double)pph_gather_pairs(part);
  double depth = (double)part->depth, rows = part->rows;
  double full = (double)(part->columns / plan->column_step);
  double rest = (double)(part->columns % plan->column_step);
  double us = pph_cost_gemm(spec->cpu, tiles * pairs * full, rows,
                            (double)plan->column_step, depth);
  if (rest > 0)
    us += pph_cost_gemm(spec->cpu, tiles * pairs, rows, rest, depth);
  double weights =
      depth * (double)pph_gather_round(plan, part->columns) * pairs;
  double blocks = tiles / (double)part->block_tiles;
  double bytes = 4 * weights * groups;
  us += 0.7 * pph_cost_memory(bytes / groups * blocks, bytes);
  /* A copied vector takes about a cycle; scattered short runs take more. */
  double run = (double)plan->in_channels;
  double vectors = depth / plan->gemm->lanes + (run < 16 ? depth / run : 0);
  us += pph_cost_flops(spec->cpu, tiles * rows * vectors * 4 *
                                      plan->gemm->lanes *
                                      (spec->input_channels_first ? 8 : 1));
  if (spec->output_channels_first)
    us += tiles * rows * pairs * (double)part->columns * 1.5 / 3000;
  cost->packed_bytes += (size_t)(4 * weights * groups);
  cost->done_flops += 2 * tiles * rows * depth * (double)part->columns * pairs;
  return us;
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_gather_plan plan = {0};
  pph_algo_cost total = {.us = 0.5};
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
        shape_part(spec, &plan, &part);
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
