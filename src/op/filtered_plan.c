/* What a filtered plan consists of: grids and parts, blocks and groups. */
#include "base/checked.h"
#include "op/filtered.h"

/* Workspace in floats: products that stay close; panels, where more tiles at
   once spare reading the weights again. */
enum {
  PRODUCT_FLOATS = 48 * 1024,
  PANEL_FLOATS = 112 * 1024,
  LARGE_PANEL_FLOATS = 208 * 1024 /* where weights do not stay in cache */
};

/* What a variant consists of, and what keeps it within its E, besides the
   points. Sums of few terms may be small by chance: the fewest input channels,
   of lines and of squares (fewer would hardly pay either). */
typedef struct variant_row {
  pph_filter_id by_taps[PPH_FILTER_MAX_TAPS + 1];
  bool shared; /* form Z */
  bool lines;  /* form L */
  pph_filter_id low, high;
  size_t least_line, least_square;
  size_t corners_below; /* so many: computed directly */
} variant_row;
static const variant_row variants[PPH_FILTERED_VARIANTS] = {
    [PPH_FILTERED_W2] = {.by_taps = {[2] = PPH_FILTER_2_2},
                         .least_line = 16,
                         .least_square = 16,
                         .corners_below = 32},
    [PPH_FILTERED_W3] = {.by_taps = {[2] = PPH_FILTER_3_2},
                         .least_line = 16,
                         .least_square = 64,
                         .corners_below = SIZE_MAX},
    [PPH_FILTERED_W4] = {.by_taps = {[2] = PPH_FILTER_4_2},
                         .least_line = 16,
                         .least_square = 32},
    [PPH_FILTERED_W5] = {.by_taps = {[2] = PPH_FILTER_5_2},
                         .least_line = 16,
                         .least_square = 64,
                         .corners_below = SIZE_MAX},
    [PPH_FILTERED_W7] = {.by_taps = {[2] = PPH_FILTER_7_2},
                         .least_line = 32,
                         .least_square = SIZE_MAX,
                         .corners_below = SIZE_MAX},
    [PPH_FILTERED_C2] = {.by_taps = {[3] = PPH_FILTER_2_3},
                         .least_line = 16,
                         .least_square = 16},
    [PPH_FILTERED_C3] = {.by_taps = {[3] = PPH_FILTER_3_3},
                         .least_line = 16,
                         .least_square = 32,
                         .corners_below = SIZE_MAX},
    [PPH_FILTERED_C4] = {.by_taps = {[3] = PPH_FILTER_4_3},
                         .least_line = 16,
                         .least_square = 16},
    [PPH_FILTERED_Z2] = {.by_taps = {[3] = PPH_FILTER_2_3},
                         .shared = true,
                         .low = PPH_FILTER_2_2L,
                         .high = PPH_FILTER_2_2H,
                         .least_line = 16,
                         .least_square = 64,
                         .corners_below = SIZE_MAX},
    [PPH_FILTERED_Z4] = {.by_taps = {[3] = PPH_FILTER_4_3},
                         .shared = true,
                         .low = PPH_FILTER_4_2L,
                         .high = PPH_FILTER_4_2H,
                         .least_line = 16,
                         .least_square = 64,
                         .corners_below = SIZE_MAX},
    [PPH_FILTERED_L8] = {.by_taps = {[4] = PPH_FILTER_5_4,
                                     [5] = PPH_FILTER_4_5},
                         .lines = true,
                         .least_line = 16}};

/* Axes */

static const pph_axis *axis_of(const pph_conv_spec *spec, int axis) {
  return &spec->problem.axes[axis == PPH_FILTERED_HEIGHT ? PPH_HEIGHT
                                                         : PPH_WIDTH];
}

static void make_axes(const pph_conv_spec *spec, pph_frame_kind frame,
                      pph_filtered_plan *plan) {
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    pph_axis_view *view = &plan->axes[i];
    pph_axis_view_make(axis_of(spec, i), spec->problem.transposed, frame,
                       view);
    for (int64_t phase = 0; phase < view->output_step; phase++) {
      pph_filtered_range *range = &plan->ranges[i][phase];
      pph_axis_view_range(view, phase, &range->begin, &range->end);
    }
  }
}

/* Taps along an axis, for form L. */
enum { LEAST_TAPS = 4, MAX_TAPS = 64 };

/* Runs of phases along one axis that share windows. */
enum { MAX_RUNS = 3, MAX_BANDS = 4 };
typedef struct band {
  pph_phase_run runs[MAX_RUNS];
  pph_filter_id filters[MAX_RUNS];
  uint32_t shifts[MAX_RUNS];
  size_t count;
  int64_t pad_begin, step;
  uint32_t outputs, points, pieces, piece_taps;
} band;

/* One tap needs no filter. */
static bool is_filtered(const variant_row *variant, int64_t taps) {
  return taps > 1 && taps <= PPH_FILTER_MAX_TAPS &&
         variant->by_taps[taps] != PPH_FILTER_1_1;
}

/* Form W: a band per run. 0: not supported. */
static size_t list_bands(const variant_row *variant, const pph_axis_view *view,
                         band *bands) {
  size_t count = 0;
  for (int64_t phase = 0; phase < view->output_step;) {
    pph_phase_run run = pph_axis_view_run(view, phase, INT64_MAX);
    if (count == MAX_BANDS ||
        !(run.taps == 1 || is_filtered(variant, run.taps)))
      return 0;
    pph_filter_id filter =
        run.taps == 1 ? PPH_FILTER_1_1 : variant->by_taps[run.taps];
    bands[count++] = (band){.runs = {run},
                            .filters = {filter},
                            .count = 1,
                            .pad_begin = run.pad_begin,
                            .step = run.taps > 1 ? run.tap_step : 1,
                            .outputs = pph_filters[filter].outputs,
                            .points = pph_filters[filter].points,
                            .pieces = 1,
                            .piece_taps = pph_filters[filter].taps};
    phase += run.count;
  }
  return count;
}

/* The filter of a run on windows of 3 taps; false when it does not fit. */
static bool share_window(const variant_row *variant, band *one, size_t index) {
  const pph_phase_run *run = &one->runs[index];
  bool late = run->pad_begin == one->pad_begin - 1;
  if (!late && run->pad_begin != one->pad_begin)
    return false;
  one->filters[index] = run->taps == 3 ? variant->by_taps[3]
                        : late         ? variant->high
                                       : variant->low;
  one->shifts[index] = late;
  return run->taps == 2 || (run->taps == 3 && !late);
}

/* Form Z: one band of all runs. */
static size_t list_shared(const variant_row *variant, const pph_axis_view *view,
                          band *bands) {
  const pph_filter *filter = &pph_filters[variant->by_taps[3]];
  band one = {.step = 1,
              .outputs = filter->outputs,
              .points = filter->points,
              .pieces = 1,
              .piece_taps = filter->taps};
  for (int64_t phase = 0; phase < view->output_step;) {
    pph_phase_run run = pph_axis_view_run(view, phase, INT64_MAX);
    if (one.count == MAX_RUNS)
      return 0;
    if (one.count == 0 || run.pad_begin > one.pad_begin)
      one.pad_begin = run.pad_begin;
    one.runs[one.count++] = run;
    phase += run.count;
  }
  if (one.count == 1)
    return one.runs[0].taps == 1 ? list_bands(variant, view, bands) : 0;
  for (size_t i = 0; i < one.count; i++)
    if (!share_window(variant, &one, i))
      return 0;
  bands[0] = one;
  return 1;
}

/* Form L: the filter of 4 or 5 taps whose pieces need fewer products. */
static pph_filter_id choose_filter(const variant_row *variant, int64_t taps) {
  const pph_filter *four = &pph_filters[variant->by_taps[4]];
  const pph_filter *five = &pph_filters[variant->by_taps[5]];
  return pph_ceil_div(taps, 4) * five->outputs <
                 pph_ceil_div(taps, 5) * four->outputs
             ? variant->by_taps[4]
             : variant->by_taps[5];
}

/* Form L: one band, of all phases. */
static size_t list_pieces(const variant_row *variant, const pph_axis_view *view,
                          bool filtered, band *bands) {
  pph_phase_run run = pph_axis_view_run(view, 0, INT64_MAX);
  if (run.count < view->output_step || run.taps > MAX_TAPS ||
      (filtered && run.taps < LEAST_TAPS))
    return 0;
  pph_filter_id id =
      filtered ? choose_filter(variant, run.taps) : PPH_FILTER_1_1;
  const pph_filter *filter = &pph_filters[id];
  bands[0] =
      (band){.runs = {run},
             .filters = {id},
             .count = 1,
             .pad_begin = run.pad_begin,
             .step = filtered ? run.tap_step : 1,
             .outputs = filter->outputs,
             .points = filter->points,
             .pieces = (uint32_t)pph_ceil_div(run.taps, filter->taps),
             .piece_taps = filter->taps};
  return 1;
}

/* The bands of an axis. Form L filters the one of more taps. */
static size_t list_axis(const variant_row *variant,
                        const pph_filtered_plan *plan, int axis, band *bands) {
  const pph_axis_view *view = &plan->axes[axis];
  bool width = plan->axes[PPH_FILTERED_WIDTH].axis.kernel >=
               plan->axes[PPH_FILTERED_HEIGHT].axis.kernel;
  if (variant->lines)
    return list_pieces(variant, view, width == (axis == PPH_FILTERED_WIDTH),
                       bands);
  return variant->shared ? list_shared(variant, view, bands)
                         : list_bands(variant, view, bands);
}

/* Parts */

/* Whether some outputs of these phases have corners along the axis. */
static bool is_cut(const pph_filtered_plan *plan, const pph_filtered_part *part,
                   int axis) {
  for (int64_t i = 0; i < part->runs[axis].count; i++) {
    const pph_filtered_range *range =
        &plan->ranges[axis][part->runs[axis].first + i];
    if (range->begin < range->end &&
        (pph_filtered_is_cut(plan, part, axis, range->begin) ||
         pph_filtered_is_cut(plan, part, axis, range->end - 1)))
      return true;
  }
  return false;
}

/* Whether all outputs of these phases have at least so many taps inside. With
   none, what is left of the other inputs is no zero. Dilated taps may miss a
   short input altogether, where there is nothing to gain. */
static bool is_covered(const pph_axis_view *view, const pph_phase_run *run,
                       int64_t least) {
  int64_t step = run->tap_step;
  if (step > 1 && run->taps > 1 && view->axis.input <= pph_filtered_span(run))
    return false;
  for (int64_t i = 0; i < run->count; i++) {
    int64_t begin, end;
    pph_axis_view_range(view, run->first + i, &begin, &end);
    if (begin < end &&
        (begin - run->pad_begin + (run->taps - least) * step < 0 ||
         end - 1 - run->pad_begin + (least - 1) * step >= view->axis.input))
      return false;
  }
  return true;
}

/* Makes a part accurate; false when it cannot be. */
static bool guard_part(const variant_row *variant,
                       const pph_filtered_plan *plan, pph_filtered_part *part) {
  bool unfiltered[PPH_FILTERED_AXES];
  for (int i = 0; i < PPH_FILTERED_AXES; i++)
    unfiltered[i] = part->filters[i] == PPH_FILTER_1_1;
  bool line = unfiltered[0] || unfiltered[1];
  for (int i = 0; i < PPH_FILTERED_AXES; i++)
    if (!is_covered(&plan->axes[i], &part->runs[i],
                    !line && part->runs[i].taps > 2 ? 2 : 1))
      return false;
  part->corners = plan->in_channels < variant->corners_below &&
                  !(unfiltered[0] && unfiltered[1]) && is_cut(plan, part, 0) &&
                  is_cut(plan, part, 1);
  return plan->in_channels >=
         (line ? variant->least_line : variant->least_square);
}

/* Inputs from a piece's window to the next one's. */
static int64_t piece_step(const band *one) {
  return one->piece_taps * one->runs[0].tap_step;
}

/* A grid for two bands, a part for each pair of their runs. */
static bool add_grid(const variant_row *variant, const band *height,
                     const band *width, pph_filtered_plan *plan) {
  if (plan->part_count + height->count * width->count > PPH_FILTERED_MAX_PARTS)
    return false;
  pph_filtered_grid *grid = &plan->grids[plan->grid_count++];
  *grid = (pph_filtered_grid){.pads = {height->pad_begin, width->pad_begin},
                              .steps = {height->step, width->step},
                              .outputs = {height->outputs, width->outputs},
                              .points = {height->points, width->points},
                              .pieces = {height->pieces, width->pieces},
                              .piece_steps = {piece_step(height),
                                              piece_step(width)},
                              .piece_taps = {height->piece_taps,
                                             width->piece_taps},
                              .first_part = plan->part_count,
                              .part_count = height->count * width->count};
  for (size_t y = 0; y < height->count; y++)
    for (size_t x = 0; x < width->count; x++) {
      pph_filtered_part *part = &plan->parts[plan->part_count++];
      *part = (pph_filtered_part){
          .runs = {height->runs[y], width->runs[x]},
          .filters = {height->filters[y], width->filters[x]},
          .shifts = {height->shifts[y], width->shifts[x]}};
      if (!guard_part(variant, plan, part))
        return false;
    }
  return true;
}

static void find_kernels(const pph_conv_spec *spec, pph_filtered_plan *plan) {
  plan->gemm = pph_kernel_find("f32_gemm", spec->cpu);
  plan->run_gemm = (pph_gemm_kernel)plan->gemm->run;
  plan->run_in =
      (pph_filter_in_kernel)pph_kernel_find("f32_filter_in", spec->cpu)->run;
  plan->run_out =
      (pph_filter_out_kernel)pph_kernel_find("f32_filter_out", spec->cpu)->run;
}

bool pph_filtered_list(const pph_conv_spec *spec, pph_filtered_variant variant,
                       pph_filtered_plan *plan) {
  const pph_problem *p = &spec->problem;
  const variant_row *row = &variants[variant];
  find_kernels(spec, plan);
  plan->in_channels = (size_t)p->in_channels;
  plan->out_channels = (size_t)p->out_channels;
  plan->images = (size_t)(p->batch * p->axes[PPH_DEPTH].input);
  make_axes(spec, row->shared ? PPH_FRAME_TIGHT : PPH_FRAME_ALIGNED, plan);
  band bands[PPH_FILTERED_AXES][MAX_BANDS];
  size_t counts[PPH_FILTERED_AXES];
  bool filtered = false;
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    counts[i] = list_axis(row, plan, i, bands[i]);
    for (size_t j = 0; j < counts[i]; j++)
      filtered |= bands[i][j].points > 1;
  }
  for (size_t y = 0; y < counts[0]; y++)
    for (size_t x = 0; x < counts[1]; x++)
      if (!add_grid(row, &bands[0][y], &bands[1][x], plan))
        return false;
  for (size_t i = 0; i < plan->grid_count; i++)
    if (plan->in_channels + plan->gemm->columns + 2 * PPH_GEMM_CHUNK >
        PPH_FILTERED_MAX_FLOATS / pph_filtered_panels(&plan->grids[i]))
      return false;
  return filtered && plan->grid_count > 0 &&
         plan->gemm->columns <= PPH_FILTERED_MAX_COLUMNS;
}

/* Blocks and groups */

double pph_filtered_weight_bytes(const pph_filtered_plan *plan,
                                 const pph_filtered_grid *grid) {
  double columns = 0;
  for (size_t i = 0; i < grid->part_count; i++) {
    const pph_filtered_part *part = &plan->parts[grid->first_part + i];
    columns += (double)part->points *
               (double)pph_filtered_round(plan, part->columns);
  }
  return 4 * columns * (double)plan->in_channels *
         (double)pph_filtered_pieces(grid);
}

/* Whether the weights do not stay in level 2. */
static bool is_large(const pph_filtered_plan *plan,
                     const pph_filtered_grid *grid) {
  return pph_filtered_weight_bytes(plan, grid) > (double)pph_cpu_cache2();
}

/* Rows of a GEMM call, and tiles at once. */
static void shape_block(const pph_filtered_plan *plan,
                        pph_filtered_grid *grid) {
  size_t panels = pph_filtered_panels(grid);
  size_t tile = panels * pph_filtered_panel(plan, 1) +
                pph_filtered_points(grid) *
                    (plan->gemm->columns + PPH_GEMM_CHUNK);
  size_t most = PPH_FILTERED_MAX_FLOATS / tile;
  most = most < plan->gemm->rows ? most : plan->gemm->rows;
  size_t blocks = pph_divide_up(grid->tiles, most);
  grid->rows = (uint32_t)pph_divide_up(grid->tiles, blocks);
  size_t panel = panels * pph_filtered_panel(plan, grid->rows);
  bool large = is_large(plan, grid);
  size_t at_once = (large ? LARGE_PANEL_FLOATS : PANEL_FLOATS) / panel;
  size_t bound = PPH_FILTERED_MAX_TILES / grid->rows;
  at_once = at_once < 1 ? 1 : at_once < bound ? at_once : bound;
  size_t passes = pph_divide_up(blocks, at_once);
  grid->block_tiles = grid->rows * pph_divide_up(blocks, passes);
}

/* Columns of a group: whole lines of phases x if that is possible. */
static void shape_group(const pph_filtered_plan *plan,
                        const pph_filtered_grid *grid,
                        pph_filtered_part *part) {
  size_t step = plan->gemm->columns;
  size_t line = (size_t)part->runs[PPH_FILTERED_WIDTH].count *
                plan->out_channels;
  size_t left = PPH_FILTERED_MAX_FLOATS -
                grid->block_tiles *
                    (pph_filtered_panels(grid) * pph_filtered_panel(plan, 1) +
                     pph_filtered_points(grid) * PPH_GEMM_CHUNK);
  size_t most = (left < PRODUCT_FLOATS ? left : PRODUCT_FLOATS) /
                (part->points * grid->block_tiles);
  if (most >= line && line % step == 0)
    step = line;
  most = most / step * step;
  part->group_columns = most > step ? most : step;
  if (part->group_columns > part->columns)
    part->group_columns = pph_round_up(part->columns, plan->gemm->columns);
}

/* Enough blocks for all threads; columns are split where tiles are few, or the
   weights too large to be read often. */
static void split_work(const pph_conv_spec *spec, pph_filtered_plan *plan,
                       pph_filtered_grid *grid) {
  size_t wanted = spec->threads > 1 ? 4 * (size_t)spec->threads : 1;
  while (!is_large(plan, grid) && grid->block_tiles > grid->rows &&
         pph_divide_up(grid->tiles, grid->block_tiles) < wanted)
    grid->block_tiles -= grid->rows;
  size_t blocks = pph_divide_up(grid->tiles, grid->block_tiles);
  size_t step = plan->gemm->columns, columns = 0;
  pph_filtered_part *parts = &plan->parts[grid->first_part];
  for (size_t i = 0; i < grid->part_count; i++)
    columns += parts[i].columns;
  size_t most = pph_divide_up(columns * blocks, wanted);
  for (size_t i = 0; i < grid->part_count; i++) {
    if (blocks < wanted && most < parts[i].group_columns)
      parts[i].group_columns = pph_round_up(most, step);
    parts[i].groups =
        pph_divide_up(parts[i].columns, parts[i].group_columns);
    grid->groups += parts[i].groups;
  }
  grid->chunks = pph_divide_up(wanted, blocks);
  grid->chunks = grid->chunks < grid->groups ? grid->chunks : grid->groups;
  grid->blocks = blocks * grid->chunks;
}

static void shape_grid(const pph_conv_spec *spec, pph_filtered_plan *plan,
                       pph_filtered_grid *grid) {
  pph_filtered_part *parts = &plan->parts[grid->first_part];
  grid->tiles = plan->images;
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    size_t length = (size_t)plan->axes[i].length, step = (size_t)grid->steps[i];
    grid->lengths[i] =
        pph_divide_up(pph_divide_up(length, step), grid->outputs[i]) * step;
    grid->tiles *= grid->lengths[i];
  }
  for (size_t i = 0; i < grid->part_count; i++) {
    parts[i].points = (size_t)pph_filters[parts[i].filters[0]].points *
                      pph_filters[parts[i].filters[1]].points;
    parts[i].columns =
        (size_t)(parts[i].runs[0].count * parts[i].runs[1].count) *
        plan->out_channels;
  }
  shape_block(plan, grid);
  for (size_t i = 0; i < grid->part_count; i++)
    shape_group(plan, grid, &parts[i]);
  split_work(spec, plan, grid);
  grid->first_block = plan->blocks;
  plan->blocks += grid->blocks;
}

/* The workspace. */
static void size_buffers(pph_filtered_plan *plan,
                         const pph_filtered_grid *grid) {
  size_t panels =
      pph_filtered_panels(grid) * pph_filtered_panel(plan, grid->block_tiles);
  plan->panel_floats =
      plan->panel_floats > panels ? plan->panel_floats : panels;
  size_t blocks = pph_divide_up(grid->block_tiles, grid->rows);
  for (size_t i = 0; i < grid->part_count; i++) {
    const pph_filtered_part *part = &plan->parts[grid->first_part + i];
    size_t products =
        part->points * (part->group_columns * grid->block_tiles +
                        blocks * pph_filtered_products(0, 0));
    plan->product_floats =
        plan->product_floats > products ? plan->product_floats : products;
  }
}

void pph_filtered_shape(const pph_conv_spec *spec, pph_filtered_plan *plan) {
  for (size_t i = 0; i < plan->grid_count; i++) {
    shape_grid(spec, plan, &plan->grids[i]);
    size_buffers(plan, &plan->grids[i]);
  }
}
