/* The filtered rows: what they support, what they cost, and packing. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "op/algo_rows.h"
#include "op/cost.h"
#include "op/filtered.h"

/* Workspace in floats: all of it; products that stay close; panels, where more
   tiles at once spare reading the weights again. */
enum {
  MAX_FLOATS = 256 * 1024,
  PRODUCT_FLOATS = 48 * 1024,
  PANEL_FLOATS = 112 * 1024,
  MAX_BLOCKS = 4, /* tile blocks per panel B */
  MAX_STRIDE = 64,
  STREAM_BYTES = 4 << 20,
  LINE_FLOATS = 16
};

/* Parts */

static const pph_axis *axis_of(const pph_conv_spec *spec, int axis) {
  return &spec->problem.axes[axis == PPH_FILTERED_HEIGHT ? PPH_HEIGHT
                                                         : PPH_WIDTH];
}

static void make_views(const pph_conv_spec *spec, pph_axis_view *views) {
  for (int i = 0; i < PPH_FILTERED_AXES; i++)
    pph_axis_view_make(axis_of(spec, i), spec->problem.transposed,
                       PPH_FRAME_ALIGNED, &views[i]);
}

/* The filter of a run of phases; false when there is none. */
static bool choose_filter(pph_filter_id filter, const pph_phase_run *run,
                          pph_filter_id *chosen) {
  *chosen = run->taps == 1 ? PPH_FILTER_1_1 : filter;
  return run->taps == 1 || run->taps == (int64_t)pph_filters[filter].taps;
}

/* Lists the parts, runs and filters only. False when some phases have other
   numbers of taps, or nothing would be filtered. */
static bool list_parts(pph_filter_id filter, pph_filtered_plan *plan) {
  const pph_axis_view *v = plan->axes;
  bool filtered = false;
  plan->part_count = 0;
  for (int64_t y = 0; y < v[0].output_step;) {
    pph_phase_run height = pph_axis_view_run(&v[0], y, INT64_MAX);
    y += height.count;
    for (int64_t x = 0; x < v[1].output_step;) {
      pph_phase_run width = pph_axis_view_run(&v[1], x, INT64_MAX);
      x += width.count;
      if (plan->part_count == PPH_FILTERED_MAX_PARTS)
        return false;
      pph_filtered_part *part = &plan->parts[plan->part_count++];
      *part = (pph_filtered_part){.runs = {height, width}};
      for (int i = 0; i < PPH_FILTERED_AXES; i++) {
        if (!choose_filter(filter, &part->runs[i], &part->filters[i]))
          return false;
        filtered |= part->filters[i] != PPH_FILTER_1_1;
      }
    }
  }
  return filtered;
}

/* Rows of a GEMM call, and tiles at once. */
static void shape_block(const pph_filtered_plan *plan,
                        pph_filtered_part *part) {
  size_t tile = part->points * (pph_filtered_panel(plan, 1) +
                                plan->gemm->columns + PPH_GEMM_CHUNK);
  size_t most = MAX_FLOATS / tile;
  most = most < plan->gemm->rows ? most : plan->gemm->rows;
  size_t blocks = (part->tiles + most - 1) / most;
  part->rows = (uint32_t)((part->tiles + blocks - 1) / blocks);
  size_t panel = part->points * pph_filtered_panel(plan, part->rows);
  size_t at_once = PANEL_FLOATS / panel;
  at_once = at_once < MAX_BLOCKS ? at_once : MAX_BLOCKS;
  at_once = at_once < blocks ? at_once : blocks;
  part->block_tiles = part->rows * (at_once ? at_once : 1);
}

/* Columns of a group: whole lines of phases x if that is possible. */
static void shape_group(const pph_filtered_plan *plan,
                        pph_filtered_part *part) {
  size_t step = plan->gemm->columns;
  size_t line = (size_t)part->runs[PPH_FILTERED_WIDTH].count *
                plan->out_channels;
  size_t most = PRODUCT_FLOATS / (part->points * part->block_tiles);
  if (most >= line && line % step == 0)
    step = line;
  most = most / step * step;
  part->group_columns = most > step ? most : step;
  if (part->group_columns > part->columns)
    part->group_columns = (part->columns + plan->gemm->columns - 1) /
                          plan->gemm->columns * plan->gemm->columns;
}

/* Enough blocks for all threads; columns are split where tiles are few. */
static void split_work(const pph_conv_spec *spec,
                       const pph_filtered_plan *plan,
                       pph_filtered_part *part) {
  size_t wanted = spec->threads > 1 ? 4 * (size_t)spec->threads : 1;
  while (part->block_tiles > part->rows &&
         (part->tiles + part->block_tiles - 1) / part->block_tiles < wanted)
    part->block_tiles -= part->rows;
  size_t blocks = (part->tiles + part->block_tiles - 1) / part->block_tiles;
  size_t most = (part->columns * blocks + wanted - 1) / wanted;
  size_t step = plan->gemm->columns;
  if (blocks < wanted && most < part->group_columns)
    part->group_columns = (most + step - 1) / step * step;
  size_t groups =
      (part->columns + part->group_columns - 1) / part->group_columns;
  part->chunks = (wanted + blocks - 1) / blocks;
  part->chunks = part->chunks < groups ? part->chunks : groups;
  part->blocks = blocks * part->chunks;
}

static void shape_part(const pph_conv_spec *spec, pph_filtered_plan *plan,
                       pph_filtered_part *part) {
  part->tiles = plan->images;
  part->points = 1;
  part->columns = plan->out_channels;
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    size_t outputs = pph_filtered_outputs(part, i);
    size_t length = (size_t)plan->axes[i].length;
    part->lengths[i] = (length + outputs - 1) / outputs;
    part->tiles *= part->lengths[i];
    part->points *= pph_filters[part->filters[i]].points;
    part->columns *= (size_t)part->runs[i].count;
  }
  shape_block(plan, part);
  shape_group(plan, part);
  split_work(spec, plan, part);
}

static void init_plan(const pph_conv_spec *spec, pph_filtered_plan *plan) {
  const pph_problem *p = &spec->problem;
  plan->gemm = pph_kernel_find("f32_gemm", spec->cpu);
  plan->run_gemm = (pph_gemm_kernel)plan->gemm->run;
  plan->run_in =
      (pph_filter_in_kernel)pph_kernel_find("f32_filter_in", spec->cpu)->run;
  plan->run_out =
      (pph_filter_out_kernel)pph_kernel_find("f32_filter_out", spec->cpu)->run;
  plan->in_channels = (size_t)p->in_channels;
  plan->out_channels = (size_t)p->out_channels;
  plan->images = (size_t)(p->batch * p->axes[PPH_DEPTH].input);
  make_views(spec, plan->axes);
}

/* Support */

static bool is_plain(const pph_conv_spec *spec) {
  const pph_problem *p = &spec->problem;
  const pph_axis *depth = &p->axes[PPH_DEPTH];
  bool flat = depth->kernel == 1 && depth->stride == 1 &&
              depth->output == depth->input && depth->pad_begin == 0;
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    const pph_axis *axis = axis_of(spec, i);
    if (axis->dilation != 1 ||
        axis->stride > (p->transposed ? MAX_STRIDE : 1))
      return false;
  }
  return flat && p->group == 1 && !spec->input_channels_first &&
         !spec->output_channels_first;
}

/* The fewest input channels with which a row stays within its E: sums of few
   terms may be small by chance, and those of an output with one tap inside the
   picture are the smallest. Fewer would hardly pay either. */
static const int64_t least_line = 16;
static const int64_t least_square[PPH_FILTER_COUNT] = {
    [PPH_FILTER_2_2] = 16, [PPH_FILTER_3_2] = 32, [PPH_FILTER_4_2] = 32,
    [PPH_FILTER_5_2] = INT64_MAX, [PPH_FILTER_2_3] = 16,
    [PPH_FILTER_3_3] = 32, [PPH_FILTER_4_3] = 16};

/* Whether all outputs of these phases have at least so many taps inside. With
   none, what is left of the other inputs is no zero. */
static bool is_covered(const pph_axis_view *view, const pph_phase_run *run,
                       int64_t least) {
  for (int64_t i = 0; i < run->count; i++) {
    int64_t begin, end;
    pph_axis_view_range(view, run->first + i, &begin, &end);
    if (begin < end && (begin - run->pad_begin + run->taps < least ||
                        end - 1 - run->pad_begin > view->axis.input - least))
      return false;
  }
  return true;
}

static bool is_accurate(const pph_filtered_plan *plan,
                        const pph_filtered_part *part) {
  const pph_filter_id *filters = part->filters;
  bool line = filters[0] == PPH_FILTER_1_1 || filters[1] == PPH_FILTER_1_1;
  for (int i = 0; i < PPH_FILTERED_AXES; i++)
    if (!is_covered(&plan->axes[i], &part->runs[i],
                    !line && part->runs[i].taps > 2 ? 2 : 1))
      return false;
  return (int64_t)plan->in_channels >=
         (line ? least_line : least_square[filters[0]]);
}

static bool supports(const pph_algo *algo, const pph_conv_spec *spec) {
  if (!is_plain(spec))
    return false;
  pph_filtered_plan plan = {0};
  init_plan(spec, &plan);
  const pph_filter *filter = &pph_filters[algo->variant];
  size_t most = MAX_FLOATS / (filter->points * filter->points);
  if (plan.in_channels + plan.gemm->columns + 2 * PPH_GEMM_CHUNK > most ||
      !list_parts((pph_filter_id)algo->variant, &plan))
    return false;
  for (size_t i = 0; i < plan.part_count; i++)
    if (!is_accurate(&plan, &plan.parts[i]))
      return false;
  return true;
}

/* Packing */

/* The weight of tap (u, v) of phases (y, x). */
static size_t weight_at(const pph_conv_spec *spec, size_t in, size_t out,
                        const int64_t *taps) {
  const pph_problem *p = &spec->problem;
  size_t at = p->transposed ? in * (size_t)p->out_channels + out
                            : out * (size_t)p->in_channels + in;
  for (int i = 0; i < PPH_FILTERED_AXES; i++)
    at = at * (size_t)axis_of(spec, i)->kernel + (size_t)taps[i];
  return at;
}

/* What one column's weights are made from. */
typedef struct packed_column {
  size_t out;
  const pph_filter *filters[PPH_FILTERED_AXES];
  int64_t taps[PPH_FILTERED_AXES][PPH_FILTER_MAX_TAPS];
} packed_column;

static packed_column find_column(const pph_filtered_plan *plan,
                                 const pph_filtered_part *part,
                                 size_t column) {
  size_t phase = column / plan->out_channels;
  size_t width = (size_t)part->runs[PPH_FILTERED_WIDTH].count;
  int64_t phases[2] = {part->runs[0].first + (int64_t)(phase / width),
                       part->runs[1].first + (int64_t)(phase % width)};
  packed_column result = {.out = column % plan->out_channels};
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    result.filters[i] = &pph_filters[part->filters[i]];
    for (int64_t u = 0; u < part->runs[i].taps; u++)
      result.taps[i][u] = pph_axis_view_tap(&plan->axes[i], phases[i], u);
  }
  return result;
}

/* The points of one channel of a column; in double, so that each is rounded
   once. target[point * step]. */
static void transform_weights(const pph_conv_spec *spec,
                              const packed_column *column, size_t in,
                              float *target, size_t step) {
  const pph_filter *height = column->filters[0], *width = column->filters[1];
  double half[PPH_FILTER_MAX_TAPS][PPH_FILTER_MAX_POINTS];
  for (uint32_t u = 0; u < height->taps; u++)
    for (uint32_t j = 0; j < width->points; j++) {
      double sum = 0;
      for (uint32_t v = 0; v < width->taps; v++) {
        int64_t taps[2] = {column->taps[0][u], column->taps[1][v]};
        sum += width->weights[j][v] *
               (double)spec->weights[weight_at(spec, in, column->out, taps)];
      }
      half[u][j] = sum;
    }
  /* Points in the order of a kernel's window: an upright line's lie along
     the height alone. */
  for (uint32_t i = 0; i < height->points; i++)
    for (uint32_t j = 0; j < width->points; j++) {
      double sum = 0;
      for (uint32_t u = 0; u < height->taps; u++)
        sum += height->weights[i][u] * half[u][j];
      target[(i * width->points + j) * step] = (float)sum;
    }
}

static void pack_part(const pph_conv_spec *spec, const pph_filtered_plan *plan,
                      const pph_filtered_part *part) {
  size_t depth = plan->in_channels, step = plan->gemm->columns;
  for (size_t column = 0; column < part->columns; column++) {
    size_t begin = column / part->group_columns * part->group_columns;
    size_t width = part->columns - begin;
    width = width < part->group_columns ? width : part->group_columns;
    /* Where the column block starts in a point's panels, and its width. */
    size_t block = (column - begin) / step * step;
    size_t lanes = width - block < step ? width - block : step;
    lanes = pph_filtered_round(plan, lanes);
    float *target = plan->weights + part->packed +
                    part->points * depth * begin + depth * block +
                    (column - begin - block);
    packed_column source = find_column(plan, part, column);
    for (size_t in = 0; in < depth; in++)
      transform_weights(spec, &source, in, target + in * lanes,
                        depth * pph_filtered_round(plan, width));
  }
}

/* Places of the parts' weights and blocks. False when a size overflows. */
static bool place_parts(pph_filtered_plan *plan, size_t *packed,
                        size_t *products) {
  *packed = *products = plan->panel_floats = plan->blocks = 0;
  for (size_t i = 0; i < plan->part_count; i++) {
    pph_filtered_part *part = &plan->parts[i];
    part->first_block = plan->blocks;
    plan->blocks += part->blocks;
    part->packed = *packed;
    size_t floats;
    if (!pph_checked_mul(pph_filtered_round(plan, part->columns),
                         plan->in_channels, &floats) ||
        !pph_checked_mul(floats, part->points, &floats) ||
        !pph_checked_add(*packed, floats, packed))
      return false;
    size_t panels = part->points * pph_filtered_panel(plan, part->block_tiles);
    plan->panel_floats =
        plan->panel_floats > panels ? plan->panel_floats : panels;
    size_t blocks = (part->block_tiles + part->rows - 1) / part->rows;
    floats = part->points *
             (part->group_columns * part->block_tiles +
              blocks * pph_filtered_products(0, 0));
    *products = *products > floats ? *products : floats;
    size_t repeats = (size_t)part->runs[PPH_FILTERED_WIDTH].count;
    plan->repeats = plan->repeats > repeats ? plan->repeats : repeats;
  }
  return true;
}

static float *repeat_channels(const pph_filtered_plan *plan, pph_heap *heap,
                              const float *values) {
  size_t channels = plan->out_channels;
  float *repeated =
      pph_heap_allocate(heap, plan->repeats, channels * sizeof(float));
  for (size_t i = 0; repeated && i < plan->repeats; i++)
    memcpy(repeated + i * channels, values, channels * sizeof(float));
  return repeated;
}

static pph_status pack(const pph_conv_spec *spec, pph_heap *heap,
                       pph_filtered_plan *plan, size_t floats,
                       pph_error *error) {
  plan->weights = pph_heap_allocate_zeroed(heap, floats, sizeof(float));
  if (!plan->weights)
    return pph_fail_memory(error);
  for (size_t i = 0; i < plan->part_count; i++)
    pack_part(spec, plan, &plan->parts[i]);
  if (spec->bias)
    plan->bias = repeat_channels(plan, heap, spec->bias);
  if (spec->slopes)
    plan->slopes = repeat_channels(plan, heap, spec->slopes);
  bool complete = (!spec->bias || plan->bias) &&
                  (!spec->slopes || plan->slopes);
  return complete ? PPH_OK : pph_fail_memory(error);
}

static void release(pph_heap *heap, pph_algo_plan *plan) {
  pph_filtered_plan *state = plan->state;
  pph_heap_release(heap, state->weights);
  pph_heap_release(heap, state->bias);
  pph_heap_release(heap, state->slopes);
  pph_heap_release(heap, state);
  plan->state = NULL;
}

/* Whether stores should go past the caches. */
static bool wants_stream(const pph_conv_spec *spec,
                         const pph_filtered_plan *plan) {
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
  init_plan(spec, state);
  list_parts((pph_filter_id)algo->variant, state);
  for (size_t i = 0; i < state->part_count; i++)
    shape_part(spec, state, &state->parts[i]);
  state->stream = wants_stream(spec, state);
  size_t packed, products;
  pph_status status =
      place_parts(state, &packed, &products)
          ? pack(spec, heap, state, packed, error)
          : pph_fail(error, PPH_LIMIT_EXCEEDED, "", "weights too large");
  if (status != PPH_OK) {
    release(heap, plan);
    return status;
  }
  size_t floats = state->panel_floats + products;
  floats = (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
  plan->thread_bytes = floats * sizeof(float);
  plan->kernel = state->gemm->name;
  return PPH_OK;
}

/* Cost */

/* Cycles to transform one vector of a tile along one axis, from the number of
   points: what was measured, loads and stores included. */
static double transform_cycles(const pph_filtered_part *part, size_t kept) {
  static const double operations[PPH_FILTER_MAX_POINTS + 1] = {0, 0, 0, 2,
                                                               4, 10, 12};
  double points = 1, work = 0;
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    uint32_t n = pph_filters[part->filters[i]].points;
    points *= n;
    work += operations[n] / n;
  }
  return points * (0.5 + work / 2) + 1.5 * (double)kept;
}

static double cost_part(const pph_conv_spec *spec,
                        const pph_filtered_plan *plan,
                        const pph_filtered_part *part, pph_algo_cost *cost) {
  double tiles = (double)part->tiles, points = (double)part->points;
  double depth = (double)plan->in_channels, lanes = plan->gemm->lanes;
  double calls = points * (double)((part->tiles + part->rows - 1) /
                                   part->rows);
  double columns = (double)pph_filtered_round(plan, part->columns);
  size_t rest = part->columns % plan->gemm->columns;
  double us = pph_cost_gemm(
      spec->cpu, calls * (double)(part->columns / plan->gemm->columns),
      part->rows, plan->gemm->columns, depth);
  if (rest)
    us += pph_cost_gemm(spec->cpu, calls, part->rows, (double)rest, depth);
  double bytes = 4 * points * depth * columns;
  us += 0.7 * pph_cost_memory(bytes * tiles / (double)part->block_tiles, bytes);
  size_t outputs = pph_filtered_outputs(part, 0) *
                   pph_filtered_outputs(part, 1);
  double in = transform_cycles(part, part->points) * depth / lanes + 40;
  double out = transform_cycles(part, outputs) * columns / lanes +
               40 * (double)part->runs[0].count;
  us += pph_cost_flops(spec->cpu,
                       tiles * 4 * lanes * (in * (double)part->chunks + out));
  cost->packed_bytes += (size_t)bytes;
  cost->done_flops += 2 * tiles * points * depth * (double)part->columns;
  return us;
}

static pph_algo_cost cost(const pph_algo *algo, const pph_conv_spec *spec) {
  pph_filtered_plan plan = {0};
  pph_algo_cost total = {.us = 0.5};
  init_plan(spec, &plan);
  list_parts((pph_filter_id)algo->variant, &plan);
  for (size_t i = 0; i < plan.part_count; i++) {
    shape_part(spec, &plan, &plan.parts[i]);
    total.us += cost_part(spec, &plan, &plan.parts[i], &total);
  }
  return total;
}

#define FILTERED(row, text, filter, bound)                                     \
  const pph_algo pph_algo_filtered_##row = {.name = "filtered." text,          \
                                            .error_bound = bound,              \
                                            .variant = PPH_FILTER_##filter,    \
                                            .supports = supports,              \
                                            .cost = cost,                      \
                                            .prepare = prepare,                \
                                            .run = pph_filtered_run,           \
                                            .release = release};
FILTERED(w2, "w2", 2_2, 4)
FILTERED(w3, "w3", 3_2, 4)
FILTERED(w4, "w4", 4_2, 24)
FILTERED(w5, "w5", 5_2, 24)
FILTERED(c2, "c2", 2_3, 4)
FILTERED(c3, "c3", 3_3, 4)
FILTERED(c4, "c4", 4_3, 24)
