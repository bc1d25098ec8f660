/* Running narrow: bands of rows through a ring of sums. */
#include "op/narrow_plan.h"

#include <string.h>

#include "base/checked.h"

typedef struct narrow_run {
  const pph_narrow_plan *plan;
  const pph_conv_spec *spec;
  const pph_conv_tensors *tensors;
  size_t thread_bytes;
} narrow_run;

/* A block under way. */
typedef struct narrow_block {
  const pph_narrow_plan *plan;
  const pph_conv_spec *spec;
  const pph_conv_tensors *tensors;
  int64_t image;
  int64_t q_begin, q_end; /* columns */
  int64_t first, end;     /* output rows */
  int64_t cleared, done;  /* rows up to which the ring is zeroed, stored */
  float *planes, *ring;
  /* Of the next input row, what each call of the kernel fetches. */
  const float *ahead;
  size_t ahead_floats;
} narrow_block;

/* Input rows to planes */

/* The columns of residue r that lie inside the input: [*begin, *end). */
static void find_inside(const narrow_block *block, int64_t x, int64_t *begin,
                        int64_t *end) {
  const pph_narrow_plan *plan = block->plan;
  int64_t step = plan->width.input_step, most = (int64_t)plan->plane;
  int64_t width = plan->width.axis.input;
  *begin = pph_max_i64(0, pph_ceil_div(-x, step));
  *end = pph_min_i64(most, pph_ceil_div(width - x, step));
}

static void load_residue(const narrow_block *block, int64_t row, int64_t r) {
  const pph_narrow_plan *plan = block->plan;
  int64_t step = plan->width.input_step, channels = (int64_t)plan->in_channels;
  int64_t x = block->q_begin * step + plan->reach + r, begin, end;
  find_inside(block, x, &begin, &end);
  if (begin >= end)
    return;
  x += begin * step;
  float *target = block->planes + r * (int64_t)plan->plane + begin;
  int64_t height = plan->height.input, width = plan->width.axis.input;
  if (!block->spec->input_channels_first) {
    plan->run_transpose(&(pph_transpose_block){
        .rows = (size_t)(end - begin),
        .columns = plan->in_channels,
        .source = block->tensors->input +
                  ((block->image * height + row) * width + x) * channels,
        .source_step = (size_t)(step * channels),
        .target = target,
        .target_step = plan->channel_step});
    return;
  }
  int64_t depth = block->spec->problem.axes[PPH_DEPTH].input;
  int64_t n = block->image / depth, d = block->image % depth;
  for (int64_t c = 0; c < channels; c++) {
    const float *source =
        block->tensors->input +
        (((n * channels + c) * depth + d) * height + row) * width + x;
    if (step == 1)
      memcpy(target, source, (size_t)(end - begin) * sizeof *source);
    else
      for (int64_t i = 0; i < end - begin; i++)
        target[i] = source[i * step];
    target += plan->channel_step;
  }
}

/* Sums */

static float *find_sums(const narrow_block *block, int64_t row) {
  const pph_narrow_plan *plan = block->plan;
  return block->ring +
         (size_t)row % plan->ring_rows * plan->sum_planes * plan->line;
}

/* The plane of column (phase x, output channel) in a row of sums: planes that
   interleave when they are stored are neighbours. */
static size_t find_plane(const narrow_block *block, size_t column) {
  size_t channels = block->plan->out_channels;
  size_t phases = (size_t)block->plan->width.output_step;
  return block->spec->output_channels_first
             ? column % channels * phases + column / channels
             : column;
}

static void clear_rows(narrow_block *block, int64_t end) {
  size_t floats = block->plan->sum_planes * block->plan->line;
  for (; block->cleared < end; block->cleared++)
    memset(find_sums(block, block->cleared), 0, floats * sizeof(float));
}

/* Calls of the kernel for so many planes of sums. */
static size_t count_tiles(const pph_narrow_plan *plan, size_t rows) {
  return (rows + plan->narrow->rows - 1) / plan->narrow->rows;
}

/* Adds the products of the planes with kernel rows [first, first + count),
   which belong to the output rows `rows`. */
static void add_group(narrow_block *block, const pph_narrow_group *group,
                      size_t first, size_t count, const int64_t *rows) {
  const pph_narrow_plan *plan = block->plan;
  size_t lanes = plan->narrow->lanes, all = count * group->columns;
  size_t tiles = count_tiles(plan, all);
  size_t column = (size_t)group->run.first * plan->out_channels;
  pph_narrow_tile tile = {
      .vectors = ((size_t)(block->q_end - block->q_begin) + lanes - 1) / lanes,
      .taps = (size_t)group->run.taps,
      .channels = plan->in_channels,
      .offsets = plan->offsets + group->first_tap,
      .planes = block->planes,
      .channel_step = plan->channel_step,
      .weights = plan->weights + group->packed + first * group->columns,
      .weight_step = group->rows,
      .ahead_floats = block->ahead_floats};
  for (size_t i = 0, done = 0; i < tiles; i++) {
    tile.rows = (uint32_t)((all - done + tiles - i - 1) / (tiles - i));
    for (size_t r = 0; r < tile.rows; r++) {
      size_t each = done + r;
      tile.sums[r] =
          find_sums(block, rows[each / group->columns]) +
          find_plane(block, column + each % group->columns) * plan->line;
    }
    tile.ahead = block->ahead;
    plan->run_narrow(&tile);
    block->ahead += tile.ahead_floats;
    tile.weights += tile.rows;
    done += tile.rows;
  }
}

/* Complete rows to the output */

/* One contiguous run of the output row. */
typedef struct output_run {
  const float *sums; /* planes that interleave, at plan->line */
  size_t planes;
  const float *bias, *slopes; /* `period` values or NULL */
  int64_t target;             /* element 0 of the row, in the tensor */
  int64_t length;             /* of the row */
  int64_t origin; /* element of plane 0, column 0; may be negative */
  size_t columns;
} output_run;

/* Columns [first, first + count), only elements inside the row. */
static void store_partly(const narrow_block *block, const output_run *run,
                         size_t first, size_t count) {
  float *row = block->tensors->output + run->target;
  for (size_t i = first; i < first + count; i++)
    for (size_t j = 0; j < run->planes; j++) {
      int64_t at = run->origin + (int64_t)(i * run->planes + j);
      if (at >= 0 && at < run->length)
        row[at] = run->sums[j * block->plan->line + i];
    }
}

/* Bias, residual and activation in place, while it is in the cache. */
static void finish_run(const narrow_block *block, const output_run *run) {
  const pph_narrow_plan *plan = block->plan;
  int64_t end = run->origin + (int64_t)(run->columns * run->planes);
  int64_t at = pph_max_i64(0, run->origin);
  end = pph_min_i64(end, run->length);
  size_t left = end > at ? (size_t)(end - at) : 0, period = plan->period;
  const float *residual = block->tensors->residual;
  while (left) {
    size_t columns = left < period ? left : period, rows = left / columns;
    int64_t first = run->target + at;
    pph_epilogue epilogue = {
        .bias = run->bias,
        .residual = block->spec->residual ? residual + first : NULL,
        .residual_stride = period,
        .slopes = run->slopes,
        .low = block->spec->low,
        .high = block->spec->high};
    float *target = block->tensors->output + first;
    plan->run_finish(&(pph_finish_block){.rows = (uint32_t)rows,
                                         .columns = columns,
                                         .sums = target,
                                         .sum_stride = period,
                                         .target = target,
                                         .target_stride = period,
                                         .epilogue = &epilogue});
    at += (int64_t)(rows * columns);
    left -= rows * columns;
  }
}

static void store_run(const narrow_block *block, const output_run *run) {
  const pph_narrow_plan *plan = block->plan;
  int64_t planes = (int64_t)run->planes, columns = (int64_t)run->columns;
  /* Columns that are whole. */
  int64_t begin = pph_max_i64(0, pph_ceil_div(-run->origin, planes));
  int64_t end = pph_floor_div(run->length - run->origin, planes);
  begin = pph_min_i64(begin, columns);
  end = pph_max_i64(begin, pph_min_i64(end, columns));
  store_partly(block, run, 0, (size_t)begin);
  if (end > begin)
    plan->run_transpose(
        &(pph_transpose_block){.rows = run->planes,
                               .columns = (size_t)(end - begin),
                               .source = run->sums + begin,
                               .source_step = plan->line,
                               .target = block->tensors->output + run->target +
                                         run->origin + begin * planes,
                               .target_step = run->planes});
  store_partly(block, run, (size_t)end, (size_t)(columns - end));
  finish_run(block, run);
}

static void store_row(const narrow_block *block, int64_t row) {
  const pph_narrow_plan *plan = block->plan;
  int64_t phases = plan->width.output_step, width = plan->width.axis.output;
  int64_t channels = (int64_t)plan->out_channels;
  bool planar = block->spec->output_channels_first;
  int64_t depth = block->spec->problem.axes[PPH_DEPTH].output;
  int64_t n = block->image / depth, d = block->image % depth;
  int64_t runs = planar ? channels : 1, each = planar ? 1 : channels;
  for (int64_t c = 0; c < runs; c++) {
    int64_t line = ((n * runs + c) * depth + d) * plan->height.output + row;
    size_t values = (size_t)c * plan->period;
    store_run(
        block,
        &(output_run){
            .sums = find_sums(block, row) + (size_t)(c * phases) * plan->line,
            .planes = (size_t)(phases * each),
            .bias = plan->bias ? plan->bias + values : NULL,
            .slopes = plan->slopes ? plan->slopes + values : NULL,
            .target = line * width * each,
            .length = width * each,
            .origin = (phases * block->q_begin - plan->width.trim) * each,
            .columns = (size_t)(block->q_end - block->q_begin)});
  }
}

static void store_rows(narrow_block *block, int64_t end) {
  for (; block->done < end; block->done++) {
    clear_rows(block, block->done + 1); /* rows that no input reaches */
    store_row(block, block->done);
  }
}

/* Bands */

/* Rows before the result have all their inputs once input rows before `i` are
   added. */
static int64_t count_complete(const narrow_block *block, int64_t i) {
  const pph_axis *axis = &block->plan->height;
  int64_t span = (axis->kernel - 1) * axis->dilation;
  int64_t rows = block->plan->transposed
                     ? i * axis->stride - axis->pad_begin
                     : pph_ceil_div(i + axis->pad_begin - span, axis->stride);
  return pph_min_i64(rows, block->end);
}

/* Spreads the next row over the calls for this one, `count` kernel rows. */
static void look_ahead(narrow_block *block, int64_t i, size_t count) {
  const pph_narrow_plan *plan = block->plan;
  int64_t height = plan->height.input, width = plan->width.axis.input;
  int64_t step = plan->width.input_step;
  int64_t x = pph_max_i64(0, block->q_begin * step + plan->reach);
  int64_t end = pph_min_i64(width, x + (int64_t)plan->plane * step);
  block->ahead = block->planes;
  block->ahead_floats = 0;
  if (block->spec->input_channels_first || i + 1 >= height || x >= end)
    return;
  size_t calls = 0;
  for (size_t g = 0; g < plan->group_count; g++)
    if (plan->groups[g].run.taps)
      calls += count_tiles(plan, count * plan->groups[g].columns);
  block->ahead =
      block->tensors->input + ((block->image * height + i + 1) * width + x) *
                                  (int64_t)plan->in_channels;
  block->ahead_floats = (size_t)(end - x) * plan->in_channels / calls;
}

static void add_row(narrow_block *block, int64_t i) {
  const pph_narrow_plan *plan = block->plan;
  int64_t rows[PPH_NARROW_MAX_KERNEL], row, last = 0;
  size_t first = 0, count = 0;
  for (size_t k = 0; k < (size_t)plan->height.kernel; k++)
    if (pph_narrow_reaches(plan, i, plan->kernel_rows[k], &row) &&
        row >= block->first && row < block->end) {
      first = count ? first : k;
      rows[count++] = row;
      last = pph_max_i64(last, row);
    }
  if (!count)
    return;
  for (int64_t r = 0; r < plan->width.input_step; r++)
    load_residue(block, i, r);
  clear_rows(block, last + 1);
  look_ahead(block, i, count);
  for (size_t g = 0; g < plan->group_count; g++)
    if (plan->groups[g].run.taps)
      add_group(block, &plan->groups[g], first, count, rows);
}

static void run_band(narrow_block *block) {
  const pph_axis *axis = &block->plan->height;
  int64_t span = (axis->kernel - 1) * axis->dilation, begin, end;
  if (block->plan->transposed) {
    begin = pph_ceil_div(block->first + axis->pad_begin - span, axis->stride);
    end = pph_floor_div(block->end - 1 + axis->pad_begin, axis->stride) + 1;
  } else {
    begin = block->first * axis->stride - axis->pad_begin;
    end = (block->end - 1) * axis->stride - axis->pad_begin + span + 1;
  }
  end = pph_min_i64(end, axis->input);
  for (int64_t i = pph_max_i64(0, begin); i < end; i++) {
    store_rows(block, count_complete(block, i));
    add_row(block, i);
  }
  store_rows(block, block->end);
}

static void run_block(void *context, uint32_t worker, size_t index) {
  const narrow_run *run = context;
  const pph_narrow_plan *plan = run->plan;
  size_t tile = index % plan->tiles, rest = index / plan->tiles;
  size_t band = rest % plan->bands;
  char *workspace = run->tensors->workspace;
  float *floats = (float *)(void *)(workspace + worker * run->thread_bytes);
  narrow_block block = {.plan = plan,
                        .spec = run->spec,
                        .tensors = run->tensors,
                        .image = (int64_t)(rest / plan->bands),
                        .q_begin = (int64_t)(tile * plan->tile),
                        .first = (int64_t)(band * plan->band),
                        .planes = floats,
                        .ring =
                            floats + plan->in_channels * plan->channel_step};
  block.q_end =
      pph_min_i64(block.q_begin + (int64_t)plan->tile, plan->width.length);
  block.end =
      pph_min_i64(block.first + (int64_t)plan->band, plan->height.output);
  block.cleared = block.done = block.first;
  /* Zeros at the pads; each row writes the same places. */
  memset(floats, 0, plan->in_channels * plan->channel_step * sizeof(float));
  run_band(&block);
}

void pph_narrow_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                    const pph_conv_tensors *tensors) {
  narrow_run run = {plan->state, spec, tensors, plan->thread_bytes};
  const pph_narrow_plan *narrow = run.plan;
  pph_algo_parallelize(tensors->pool, spec->threads,
                       narrow->images * narrow->bands * narrow->tiles,
                       run_block, &run);
}
