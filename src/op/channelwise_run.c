/* Running depthwise and grouped convolutions: the output is cut into blocks
   (image, channels, rows, columns), a block into strips with the same taps. */
#include "base/checked.h"
#include "op/channelwise_plan.h"

/* Floats: weights of one block's channels stay in level 1, what a block reads
   and writes for one row in level 2; rows of together BATCH_FLOATS are computed
   in one call. Outputs that level 1 does not keep are fetched before they are
   stored, since a core waits for few lines at once: those of the next block of
   channels (more than FEW_TAPS give them time to come), or AHEAD floats on
   where the last level has them and a pixel's few channels would follow too
   soon. A core has 3/8 of what the last level says, which others share, and at
   most SHARE_BYTES; larger outputs go past the caches where a vector is a line
   (half lines take three times as long). */
enum {
  WEIGHT_FLOATS = 4 * 1024,
  ROW_FLOATS = 64 * 1024,
  SHARE_BYTES = 48 * 1024 * 1024,
  BATCH_FLOATS = 48 * 1024,
  AHEAD = 1024,
  FEW_CHANNELS = 128,
  FEW_TAPS = 4,
  LINE_FLOATS = 16,
  PIECE_FLOATS = 16 * 1024 /* less is not worth another thread */
};

/* How the output is cut. Lengths of one piece: channel blocks, rows q of the
   height, columns q of the width. */
typedef struct cut {
  int64_t images;
  int64_t blocks, rows, columns;
  int64_t lines; /* rows that are computed together */
  int64_t block_pieces, row_pieces, column_pieces;
} cut;

typedef struct run_job {
  const pph_conv_spec *spec;
  const pph_channelwise_plan *plan;
  const pph_conv_tensors *tensors;
  cut cut;
  size_t ahead; /* as a strip's */
  bool stream;
} run_job;

static int64_t pieces(const cut *c) {
  return c->images * c->block_pieces * c->row_pieces * c->column_pieces;
}

/* Cuts `length` in about `wanted` pieces of at least `least`. */
static void split(int64_t length, int64_t wanted, int64_t least, int64_t *piece,
                  int64_t *count) {
  int64_t most = pph_max_i64(1, length / least);
  wanted = pph_max_i64(1, pph_min_i64(wanted, most));
  *piece = pph_ceil_div(length, wanted);
  *count = pph_ceil_div(length, *piece);
}

static cut cut_up(const pph_conv_spec *spec, const pph_channelwise_plan *plan) {
  const pph_axis_view *height = &plan->axes[PPH_HEIGHT];
  const pph_axis_view *width = &plan->axes[PPH_WIDTH];
  const pph_problem *p = &spec->problem;
  int64_t lanes = plan->kernel->lanes;
  cut c = {.images = p->batch * p->axes[PPH_DEPTH].output};
  int64_t block_floats =
      (int64_t)(plan->column_slots * plan->ins) * lanes *
      pph_ceil_div(p->axes[PPH_HEIGHT].kernel, height->output_step);
  split((int64_t)plan->blocks,
        pph_ceil_div((int64_t)plan->blocks * block_floats, WEIGHT_FLOATS),
        pph_max_i64(1, 4 * LINE_FLOATS / lanes), &c.blocks, &c.block_pieces);
  int64_t pixel = c.blocks * lanes * (width->output_step + width->input_step);
  split(width->length, pph_ceil_div(width->length * pixel, ROW_FLOATS), 16,
        &c.columns, &c.column_pieces);
  split(height->length, 1, 1, &c.rows, &c.row_pieces);
  if (spec->threads == 1)
    return c;
  double floats = (double)c.images * p->axes[PPH_HEIGHT].output *
                  p->axes[PPH_WIDTH].output * p->out_channels;
  int64_t target = (int64_t)spec->threads * 4;
  if (floats / PIECE_FLOATS < (double)target)
    target = (int64_t)(floats / PIECE_FLOATS);
  split(height->length, pph_ceil_div(target, pieces(&c)), 1, &c.rows,
        &c.row_pieces);
  if (pieces(&c) < target)
    split(width->length, c.column_pieces * pph_ceil_div(target, pieces(&c)), 16,
          &c.columns, &c.column_pieces);
  if (pieces(&c) < target)
    split((int64_t)plan->blocks,
          c.block_pieces * pph_ceil_div(target, pieces(&c)),
          pph_max_i64(1, LINE_FLOATS / lanes), &c.blocks, &c.block_pieces);
  return c;
}

static cut make_cut(const pph_conv_spec *spec,
                    const pph_channelwise_plan *plan) {
  const pph_axis_view *height = &plan->axes[PPH_HEIGHT];
  const pph_axis_view *width = &plan->axes[PPH_WIDTH];
  cut c = cut_up(spec, plan);
  int64_t pixels = width->output_step * height->output_step +
                   width->input_step * height->input_step;
  int64_t line = c.blocks * plan->kernel->lanes * c.columns * pixels;
  int64_t batches;
  split(c.rows, pph_ceil_div(c.rows * line, BATCH_FLOATS), 1, &c.lines,
        &batches);
  return c;
}

/* One output row of a block, or several of one phase that read the same rows of
   taps, all inside the input. */
typedef struct output_row {
  pph_channelwise_strip strip; /* what all strips of the row share */
  pph_epilogue epilogue;
  const float *input;   /* column 0 of the first row of taps */
  const float *weights; /* of that row, column slot 0 */
  float *output;        /* column 0 */
  const float *residual;
} output_row;

/* The part's phases [phase, phase + phases) at q in [q, q + count), with taps
   [u, u + taps), in all lines of the row. */
typedef struct row_piece {
  const pph_channelwise_part *part;
  int64_t phase, phases, q, count, u, taps;
} row_piece;

static void run_strip(const run_job *job, const output_row *row,
                      row_piece piece) {
  const pph_channelwise_plan *plan = job->plan;
  const pph_axis_view *width = &plan->axes[PPH_WIDTH];
  const pph_phase_run *run = &piece.part->run;
  if (piece.count <= 0)
    return;
  pph_channelwise_strip strip = row->strip;
  pph_epilogue epilogue = row->epilogue;
  int64_t column =
      piece.q * width->input_step + piece.u * run->tap_step - run->pad_begin;
  int64_t out =
      piece.q * width->output_step + run->first + piece.phase - width->trim;
  strip.count = (size_t)piece.count;
  strip.phases = (size_t)piece.phases;
  strip.taps = (size_t)piece.taps;
  strip.input = row->input;
  if (piece.taps)
    strip.input += column * job->spec->problem.in_channels;
  strip.tap_step *= (size_t)run->tap_step;
  size_t unit = plan->ins * plan->kernel->lanes;
  strip.weight_tap = (size_t)run->count * unit;
  strip.weights =
      row->weights +
      (piece.part->slot + (size_t)(piece.u * run->count + piece.phase)) * unit;
  ptrdiff_t at = out * job->spec->problem.out_channels;
  strip.output = row->output + at;
  epilogue.residual = row->residual ? row->residual + at : NULL;
  strip.epilogue = &epilogue;
  ((pph_channelwise_kernel)plan->kernel->run)(&strip);
}

/* The part's phases from `phase` on that lie together at q: all there, or all
   missing. Returns the first one after them. */
static int64_t next_phase(const pph_axis_view *width, const pph_phase_run *run,
                          int64_t q, int64_t phase, bool *there) {
  int64_t p = phase;
  for (; p < run->count; p++) {
    int64_t from, to;
    pph_axis_view_range(width, run->first + p, &from, &to);
    bool one = q >= from && q < to;
    if (p > phase && one != *there)
      break;
    *there = one;
  }
  return p;
}

/* Elements [begin, end) of the part, pixel by pixel: those where some phase is
   not there, or some tap lies outside the input. */
static void run_edge(const run_job *job, const output_row *row,
                     const pph_channelwise_part *part, int64_t begin,
                     int64_t end) {
  const pph_axis_view *width = &job->plan->axes[PPH_WIDTH];
  const pph_phase_run *run = &part->run;
  for (int64_t q = begin; q < end; q++) {
    int64_t first = q * width->input_step - run->pad_begin;
    int64_t u = pph_max_i64(0, pph_ceil_div(-first, run->tap_step));
    int64_t u_end = pph_min_i64(
        run->taps,
        pph_floor_div(width->axis.input - 1 - first, run->tap_step) + 1);
    int64_t taps = pph_max_i64(0, u_end - u);
    bool there = false;
    for (int64_t p = 0, next; p < run->count; p = next) {
      next = next_phase(width, run, q, p, &there);
      if (there)
        run_strip(job, row,
                  (row_piece){part, p, next - p, q, 1, taps ? u : 0, taps});
    }
  }
}

static void run_columns(const run_job *job, const output_row *row,
                        int64_t begin, int64_t end) {
  for (size_t i = 0; i < job->plan->column_parts; i++) {
    const pph_channelwise_part *part = &job->plan->columns[i];
    int64_t inside = pph_max_i64(begin, part->inside_begin);
    inside = pph_min_i64(inside, end);
    int64_t inside_end = pph_min_i64(end, part->inside_end);
    inside_end = pph_max_i64(inside, inside_end);
    run_edge(job, row, part, begin, inside);
    run_strip(job, row,
              (row_piece){part, 0, part->run.count, inside, inside_end - inside,
                          0, part->run.taps});
    run_edge(job, row, part, inside_end, end);
  }
}

/* Points `row` to output row q of the phase; false: there is none. */
static bool find_row(const run_job *job, int64_t image, int64_t q,
                     int64_t phase, output_row *row) {
  const pph_channelwise_plan *plan = job->plan;
  const pph_axis_view *height = &plan->axes[PPH_HEIGHT];
  const pph_problem *p = &job->spec->problem;
  const pph_phase_run *run = &plan->rows[phase].run;
  int64_t out = q * height->output_step + phase - height->trim;
  if (out < 0 || out >= height->axis.output)
    return false;
  int64_t first = q * height->input_step - run->pad_begin;
  int64_t u = pph_max_i64(0, pph_ceil_div(-first, run->tap_step));
  int64_t end = pph_min_i64(
      run->taps,
      pph_floor_div(height->axis.input - 1 - first, run->tap_step) + 1);
  int64_t input_floats = p->axes[PPH_WIDTH].input * p->in_channels;
  int64_t output_floats = p->axes[PPH_WIDTH].output * p->out_channels;
  row->strip.rows = end > u ? (size_t)(end - u) : 0;
  row->strip.row_step = (size_t)(run->tap_step * input_floats);
  row->strip.line_step = (size_t)(height->input_step * input_floats);
  row->strip.output_line = (size_t)(height->output_step * output_floats);
  row->input = job->tensors->input + image * height->axis.input * input_floats;
  row->weights = plan->weights;
  if (row->strip.rows) {
    row->input += (first + u * run->tap_step) * input_floats;
    row->weights +=
        (plan->rows[phase].slot + (size_t)u) * row->strip.weight_row;
  }
  ptrdiff_t at = (image * height->axis.output + out) * output_floats;
  row->output = job->tensors->output + at;
  row->residual = job->spec->residual ? job->tensors->residual + at : NULL;
  return true;
}

/* What all rows of a block of channels share. */
static output_row make_row(const run_job *job, size_t first_block) {
  const pph_channelwise_plan *plan = job->plan;
  const pph_conv_spec *spec = job->spec;
  const pph_axis_view *width = &plan->axes[PPH_WIDTH];
  size_t lanes = plan->kernel->lanes, unit = plan->ins * lanes;
  size_t channel = first_block * lanes;
  size_t left = (size_t)spec->problem.out_channels - channel;
  size_t channels = (size_t)job->cut.blocks * lanes;
  size_t in_channels = (size_t)spec->problem.in_channels;
  size_t out_channels = (size_t)spec->problem.out_channels;
  output_row row = {
      .epilogue = {.bias = spec->bias ? spec->bias + channel : NULL,
                   .slopes = spec->slopes ? spec->slopes + channel : NULL,
                   .low = spec->low,
                   .high = spec->high}};
  row.strip = (pph_channelwise_strip){
      .channels = channels < left ? channels : left,
      .pixel_step = (size_t)width->input_step * in_channels,
      .tap_step = in_channels,
      .weight_row = plan->column_slots * unit,
      .weight_block = plan->row_slots * plan->column_slots * unit,
      .output_step = (size_t)width->output_step * out_channels,
      .phase_step = out_channels,
      .ahead = job->ahead,
      .stream = job->stream,
      .ins = plan->ins,
      .span = plan->span};
  if (plan->picks) {
    row.strip.picks = plan->picks + first_block;
    row.strip.index = plan->index ? plan->index + first_block * unit : NULL;
  }
  return row;
}

/* Shifts a row to its block of channels. */
static void shift_row(const run_job *job, size_t first_block, output_row *row) {
  const pph_channelwise_plan *plan = job->plan;
  size_t channel = first_block * plan->kernel->lanes;
  row->weights += first_block * row->strip.weight_block;
  row->output += channel;
  if (row->residual)
    row->residual += channel;
  if (!plan->picks)
    row->input += channel;
}

/* The part of the output that is one block's. */
typedef struct block_place {
  int64_t image, column, column_end;
  size_t block;
} block_place;

/* Rows [q, end) of a phase. */
static void run_phase(const run_job *job, const block_place *at, int64_t phase,
                      int64_t q, int64_t end, output_row *row) {
  const pph_channelwise_part *part = &job->plan->rows[phase];
  while (q < end) {
    bool inside = q >= part->inside_begin && q < part->inside_end;
    int64_t next = inside ? pph_min_i64(end, part->inside_end) : q + 1;
    row->strip.lines = (size_t)(next - q);
    if (find_row(job, at->image, q, phase, row)) {
      shift_row(job, at->block, row);
      run_columns(job, row, at->column, at->column_end);
    }
    q = next;
  }
}

static void run_block(void *context, uint32_t worker, size_t number) {
  const run_job *job = context;
  const cut *c = &job->cut;
  const pph_axis_view *height = &job->plan->axes[PPH_HEIGHT];
  int64_t n = (int64_t)number;
  block_place at = {.column = n % c->column_pieces * c->columns};
  n /= c->column_pieces;
  at.column_end =
      pph_min_i64(at.column + c->columns, job->plan->axes[PPH_WIDTH].length);
  int64_t first = n % c->row_pieces * c->rows;
  n /= c->row_pieces;
  at.block = (size_t)(n % c->block_pieces * c->blocks);
  at.image = n / c->block_pieces;
  int64_t end = pph_min_i64(first + c->rows, height->length);
  output_row row = make_row(job, at.block);
  for (int64_t q = first; q < end; q += c->lines)
    for (int64_t phase = 0; phase < height->output_step; phase++)
      run_phase(job, &at, phase, q, pph_min_i64(end, q + c->lines), &row);
  if (job->stream) {
    row.strip.count = 0;
    ((pph_channelwise_kernel)job->plan->kernel->run)(&row.strip);
  }
}

/* How the output is best stored. */
static void choose_stores(run_job *job) {
  const pph_problem *p = &job->spec->problem;
  double bytes = (double)sizeof(float) * p->batch * p->out_channels;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    bytes *= p->axes[i].output;
  size_t share = pph_cpu_cache_last() * 3 / 8;
  share = share < SHARE_BYTES ? share : SHARE_BYTES;
  uintptr_t place = (uintptr_t)job->tensors->output;
  job->stream = job->plan->kernel->lanes == LINE_FLOATS && !job->plan->picks &&
                bytes > (double)share && p->out_channels % LINE_FLOATS == 0 &&
                place % (LINE_FLOATS * sizeof(float)) == 0;
  const pph_axis_view *height = &job->plan->axes[PPH_HEIGHT];
  const pph_axis_view *width = &job->plan->axes[PPH_WIDTH];
  int64_t taps = height->axis.kernel * width->axis.kernel /
                 (height->output_step * width->output_step);
  double level2 = (double)pph_cpu_cache2();
  if (bytes > level2 / 2 && p->out_channels <= FEW_CHANNELS)
    job->ahead = AHEAD;
  else if (bytes > level2 / 8 && taps <= FEW_TAPS)
    job->ahead = LINE_FLOATS;
}

void pph_channelwise_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                         const pph_conv_tensors *tensors) {
  const pph_channelwise_plan *state = plan->state;
  run_job job = {.spec = spec,
                 .plan = state,
                 .tensors = tensors,
                 .cut = make_cut(spec, state)};
  choose_stores(&job);
  pph_algo_parallelize(tensors->pool, spec->threads, (size_t)pieces(&job.cut),
                       run_block, &job);
}
