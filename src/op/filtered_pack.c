/* The weights of a filtered plan. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "op/filtered.h"

static int64_t kernel_of(const pph_conv_spec *spec, int axis) {
  return spec->problem
      .axes[axis == PPH_FILTERED_HEIGHT ? PPH_HEIGHT : PPH_WIDTH]
      .kernel;
}

/* The weight of one kernel tap. */
static float weight_at(const pph_conv_spec *spec, size_t in, size_t out,
                       int64_t y, int64_t x) {
  const pph_problem *p = &spec->problem;
  size_t at = p->transposed ? in * (size_t)p->out_channels + out
                            : out * (size_t)p->in_channels + in;
  at = at * (size_t)kernel_of(spec, PPH_FILTERED_HEIGHT) + (size_t)y;
  at = at * (size_t)kernel_of(spec, PPH_FILTERED_WIDTH) + (size_t)x;
  return spec->weights[at];
}

/* What one column's weights are made from: `counts` taps of a piece, the
   filter's others being 0. */
typedef struct packed_column {
  size_t out;
  const pph_filter *filters[PPH_FILTERED_AXES];
  uint32_t counts[PPH_FILTERED_AXES];
  int64_t taps[PPH_FILTERED_AXES][PPH_FILTER_MAX_TAPS];
} packed_column;

static packed_column find_column(const pph_filtered_plan *plan,
                                 const pph_filtered_grid *grid,
                                 const pph_filtered_part *part, size_t column,
                                 size_t piece) {
  size_t phase = column / plan->out_channels;
  size_t width = (size_t)part->runs[PPH_FILTERED_WIDTH].count;
  int64_t phases[2] = {part->runs[0].first + (int64_t)(phase / width),
                       part->runs[1].first + (int64_t)(phase % width)};
  int64_t pieces[2] = {(int64_t)(piece / grid->pieces[1]),
                       (int64_t)(piece % grid->pieces[1])};
  packed_column result = {.out = column % plan->out_channels};
  for (int i = 0; i < PPH_FILTERED_AXES; i++) {
    int64_t most = grid->piece_taps[i], first = pieces[i] * most;
    int64_t count = pph_min_i64(part->runs[i].taps - first, most);
    result.filters[i] = &pph_filters[part->filters[i]];
    result.counts[i] = (uint32_t)count;
    for (int64_t u = 0; u < count; u++)
      result.taps[i][u] = pph_axis_view_tap(&plan->axes[i], phases[i],
                                            first + u);
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
  for (uint32_t u = 0; u < column->counts[0]; u++)
    for (uint32_t j = 0; j < width->points; j++) {
      double sum = 0;
      for (uint32_t v = 0; v < column->counts[1]; v++)
        sum += width->weights[j][v] *
               (double)weight_at(spec, in, column->out, column->taps[0][u],
                                 column->taps[1][v]);
      half[u][j] = sum;
    }
  /* Points in the order of a kernel's window: an upright line's lie along
     the height alone. */
  for (uint32_t i = 0; i < height->points; i++)
    for (uint32_t j = 0; j < width->points; j++) {
      double sum = 0;
      for (uint32_t u = 0; u < column->counts[0]; u++)
        sum += height->weights[i][u] * half[u][j];
      target[(i * width->points + j) * step] = (float)sum;
    }
}

/* The GEMM's block of columns in which a column lies, within [begin, end):
   whole vectors. */
typedef struct packed_block {
  size_t begin, lanes;
} packed_block;

static packed_block find_block(const pph_filtered_plan *plan, size_t begin,
                               size_t end, size_t column) {
  size_t step = plan->gemm->columns;
  packed_block block = {.begin = begin + (column - begin) / step * step};
  block.lanes = end - block.begin < step ? end - block.begin : step;
  block.lanes = pph_filtered_round(plan, block.lanes);
  return block;
}

static void pack_piece(const pph_conv_spec *spec,
                       const pph_filtered_plan *plan,
                       const pph_filtered_grid *grid,
                       const pph_filtered_part *part, size_t piece) {
  size_t depth = plan->in_channels, pieces = pph_filtered_pieces(grid);
  for (size_t column = 0; column < part->columns; column++) {
    size_t begin = column / part->group_columns * part->group_columns;
    size_t end = begin + part->group_columns;
    end = end < part->columns ? end : part->columns;
    packed_block block = find_block(plan, begin, end, column);
    float *target = plan->weights + part->packed +
                    part->points * pieces * depth * begin +
                    pieces * depth * (block.begin - begin) +
                    piece * depth * block.lanes + (column - block.begin);
    packed_column source = find_column(plan, grid, part, column, piece);
    for (size_t in = 0; in < depth; in++)
      transform_weights(spec, &source, in, target + in * block.lanes,
                        pieces * depth * pph_filtered_round(plan, end - begin));
  }
}

/* As they are, tap by tap. */
static void pack_corners(const pph_conv_spec *spec,
                         const pph_filtered_plan *plan,
                         const pph_filtered_grid *grid,
                         const pph_filtered_part *part) {
  size_t depth = plan->in_channels, taps = pph_filtered_taps(part);
  for (size_t column = 0; column < part->columns; column++) {
    packed_block block = find_block(plan, 0, part->columns, column);
    float *target = plan->weights + part->direct + block.begin * taps * depth +
                    (column - block.begin);
    packed_column source = find_column(plan, grid, part, column, 0);
    for (int64_t u = 0; u < part->runs[0].taps; u++)
      for (int64_t v = 0; v < part->runs[1].taps; v++)
        for (size_t in = 0; in < depth; in++, target += block.lanes)
          *target = weight_at(spec, in, source.out, source.taps[0][u],
                              source.taps[1][v]);
  }
}

/* The place of a part's weights. False when a size overflows. */
static bool place_part(pph_filtered_plan *plan, const pph_filtered_grid *grid,
                       pph_filtered_part *part) {
  size_t column, points, direct;
  part->packed = plan->weight_floats;
  return pph_checked_mul(pph_filtered_round(plan, part->columns),
                         plan->in_channels, &column) &&
         pph_checked_mul(column, part->points * pph_filtered_pieces(grid),
                         &points) &&
         pph_checked_mul(column, part->corners ? pph_filtered_taps(part) : 0,
                         &direct) &&
         pph_checked_add(part->packed, points, &part->direct) &&
         pph_checked_add(part->direct, direct, &plan->weight_floats);
}

static bool place_parts(pph_filtered_plan *plan) {
  for (size_t i = 0; i < plan->grid_count; i++) {
    const pph_filtered_grid *grid = &plan->grids[i];
    for (size_t j = 0; j < grid->part_count; j++)
      if (!place_part(plan, grid, &plan->parts[grid->first_part + j]))
        return false;
  }
  return true;
}

static void pack_parts(const pph_conv_spec *spec,
                       const pph_filtered_plan *plan,
                       const pph_filtered_grid *grid) {
  for (size_t i = 0; i < grid->part_count; i++) {
    const pph_filtered_part *part = &plan->parts[grid->first_part + i];
    for (size_t piece = 0; piece < pph_filtered_pieces(grid); piece++)
      pack_piece(spec, plan, grid, part, piece);
    if (part->corners)
      pack_corners(spec, plan, grid, part);
  }
}

/* Once per phase x. */
static float *repeat_channels(const pph_filtered_plan *plan, pph_heap *heap,
                              const float *values) {
  size_t channels = plan->out_channels, repeats = 1;
  for (size_t i = 0; i < plan->part_count; i++) {
    size_t count = (size_t)plan->parts[i].runs[PPH_FILTERED_WIDTH].count;
    repeats = repeats > count ? repeats : count;
  }
  float *repeated = pph_heap_allocate(heap, repeats, channels * sizeof(float));
  for (size_t i = 0; repeated && i < repeats; i++)
    memcpy(repeated + i * channels, values, channels * sizeof(float));
  return repeated;
}

pph_status pph_filtered_pack(const pph_conv_spec *spec, pph_heap *heap,
                             pph_filtered_plan *plan, pph_error *error) {
  if (!place_parts(plan))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "", "weights too large");
  plan->weights =
      pph_heap_allocate_zeroed(heap, plan->weight_floats, sizeof(float));
  if (!plan->weights)
    return pph_fail_memory(error);
  plan->fetch = plan->weight_floats * sizeof(float) > pph_cpu_cache2() / 2;
  for (size_t i = 0; i < plan->grid_count; i++)
    pack_parts(spec, plan, &plan->grids[i]);
  if (spec->bias)
    plan->bias = repeat_channels(plan, heap, spec->bias);
  if (spec->slopes)
    plan->slopes = repeat_channels(plan, heap, spec->slopes);
  bool complete = (!spec->bias || plan->bias) &&
                  (!spec->slopes || plan->slopes);
  return complete ? PPH_OK : pph_fail_memory(error);
}

void pph_filtered_release(pph_heap *heap, pph_filtered_plan *plan) {
  pph_heap_release(heap, plan->weights);
  pph_heap_release(heap, plan->bias);
  pph_heap_release(heap, plan->slopes);
}
