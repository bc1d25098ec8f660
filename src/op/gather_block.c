/* Blocks of gather: how large, and what they read. */
#include <string.h>

#include "base/checked.h"
#include "op/gather.h"

/* A copy stays in level 2, and may be larger where that spares reading weights
   from further away; it never exceeds MAX_FLOATS. */
enum {
  FEW_FLOATS = 64 * 1024,
  MANY_FLOATS = 160 * 1024,
  MAX_FLOATS = 224 * 1024,
  MANY_WEIGHTS = 256 * 1024
};

/* Shape */

static void set_window(const pph_axis_view *view, const pph_phase_run *run,
                       int64_t positions, pph_gather_window *window) {
  *window = (pph_gather_window){.positions = positions};
  if (!run->taps)
    return;
  int64_t span = (positions - 1) * view->input_step +
                 (run->taps - 1) * run->tap_step + 1;
  window->joined = span <= positions * run->taps;
  window->size = window->joined ? span : positions * run->taps;
  window->q_step = window->joined ? view->input_step : 1;
  window->u_step = window->joined ? run->tap_step : positions;
}

double pph_gather_copy_floats(const pph_gather_part *part) {
  double floats = (double)part->pixel;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    floats *= (double)part->windows[i].size;
  return floats;
}

/* Blocks of `lines` rows of `segments` tiles. Lines at distances of whole pages
   would share few places of the level-1 cache: a gap keeps them apart. */
static double set_block(const pph_gather_plan *plan, pph_gather_part *part,
                        int64_t lines, int64_t segments) {
  const int64_t positions[] = {1, lines, segments * part->rows};
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    set_window(&plan->axes[i], &part->runs[i], positions[i],
               &part->windows[i]);
    part->counts[i] =
        pph_divide_up((size_t)plan->axes[i].length, (size_t)positions[i]);
  }
  part->block_segments = (size_t)segments;
  part->counts[PPH_WIDTH] = pph_divide_up(part->segments, (size_t)segments);
  size_t step = (size_t)part->windows[PPH_WIDTH].q_step * plan->in_channels;
  part->pixel = plan->in_channels + (step % 512 ? 0 : PPH_GEMM_CHUNK);
  return pph_gather_copy_floats(part);
}

/* The most of `length` that leaves equal shares of at most `most`. */
static int64_t share(int64_t length, int64_t most) {
  int64_t shares = (length + most - 1) / most;
  return (length + shares - 1) / shares;
}

/* The block of at most `limit` floats that copies least for each position. */
static void choose_block(const pph_gather_plan *plan, pph_gather_part *part,
                         double limit) {
  int64_t height = plan->axes[PPH_HEIGHT].length;
  int64_t best_lines = 1, best_segments = 1;
  double best = -1;
  for (int64_t segments = (int64_t)part->segments; segments;
       segments = segments > 1 ? (segments + 1) / 2 : 0) {
    int64_t most = height, lines, wide = share((int64_t)part->segments,
                                               segments);
    double floats;
    for (;; most = (most + 1) / 2) {
      lines = share(height, most);
      floats = set_block(plan, part, lines, wide);
      if (floats <= limit || most == 1)
        break;
    }
    double each = floats / (double)(lines * wide);
    if (floats > limit || (best >= 0 && each >= best))
      continue;
    best = each;
    best_lines = lines;
    best_segments = wide;
  }
  set_block(plan, part, best_lines, best_segments);
}

/* Enough pieces for all threads; a single thread wants none. */
static void split_work(const pph_conv_spec *spec, const pph_gather_plan *plan,
                       pph_gather_part *part) {
  size_t outer = (size_t)(spec->problem.group * spec->problem.batch);
  size_t wanted = spec->threads > 1 ? 4 * (size_t)spec->threads : 1;
  for (;;) {
    part->blocks = outer * part->counts[PPH_DEPTH] *
                   part->counts[PPH_HEIGHT] * part->counts[PPH_WIDTH];
    int64_t lines = part->windows[PPH_HEIGHT].positions;
    int64_t segments = (int64_t)part->block_segments;
    if (part->blocks >= wanted || (lines == 1 && segments == 1))
      break;
    set_block(plan, part, lines > 1 ? (lines + 1) / 2 : 1,
              lines > 1 ? segments : (segments + 1) / 2);
  }
  size_t columns =
      pph_gather_column_blocks(plan, part) * pph_gather_pairs(part);
  part->chunks = pph_divide_up(wanted, part->blocks);
  part->chunks = part->chunks < columns ? part->chunks : columns;
  part->blocks *= part->chunks;
}

/* The runs of one kind: `joined` when taps along the width lie together. */
static void set_reads(const pph_gather_plan *plan, const pph_gather_part *part,
                      size_t pixel, size_t q_step, size_t u_step,
                      pph_gather_reads *reads) {
  bool joined = pixel == plan->in_channels && u_step == 1;
  size_t taps = (size_t)part->runs[PPH_WIDTH].taps;
  reads->row_step = pixel * q_step;
  reads->run = part->depth ? plan->in_channels * (joined ? taps : 1) : 0;
}

void pph_gather_shape(const pph_conv_spec *spec, const pph_gather_plan *plan,
                      pph_gather_part *part) {
  const pph_problem *p = &spec->problem;
  const pph_phase_run *width = &part->runs[PPH_WIDTH];
  size_t length = (size_t)plan->axes[PPH_WIDTH].length;
  part->depth = plan->in_channels;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    part->depth *= (size_t)part->runs[i].taps;
  part->columns = (size_t)width->count * plan->out_channels;
  size_t most = plan->gemm->rows;
  for (;; most = (most + 1) / 2) {
    part->segments = pph_divide_up(length, most);
    part->rows = (uint32_t)pph_divide_up(length, part->segments);
    if (most == 1 || set_block(plan, part, 1, 1) <= MAX_FLOATS)
      break;
  }
  part->segment_rows = (int64_t)(length / part->segments);
  part->longer = (int64_t)(length % part->segments);
  double weights = (double)part->depth * (double)part->columns *
                   (double)pph_gather_pairs(part);
  choose_block(plan, part, weights > MANY_WEIGHTS ? MANY_FLOATS : FEW_FLOATS);
  split_work(spec, plan, part);
  set_reads(plan, part, part->pixel, (size_t)part->windows[PPH_WIDTH].q_step,
            (size_t)part->windows[PPH_WIDTH].u_step, &part->copied);
  set_reads(plan, part, (size_t)p->in_channels,
            (size_t)plan->axes[PPH_WIDTH].input_step, (size_t)width->tap_step,
            &part->direct);
}

/* `steps`: floats from one tap to the next, per axis. */
static void list_runs(const pph_gather_part *part,
                      const pph_gather_reads *reads, const size_t *steps,
                      size_t *starts) {
  size_t runs = pph_gather_runs(part, reads);
  size_t heights = (size_t)part->runs[PPH_HEIGHT].taps;
  size_t lines = (size_t)part->runs[PPH_DEPTH].taps * heights;
  size_t widths = lines ? runs / lines : 0;
  for (size_t i = 0; i < runs; i++)
    starts[i] = i / widths / heights * steps[PPH_DEPTH] +
                i / widths % heights * steps[PPH_HEIGHT] +
                i % widths * steps[PPH_WIDTH];
}

void pph_gather_list_starts(const pph_conv_spec *spec, pph_gather_plan *plan,
                            const pph_gather_part *part) {
  const pph_axis *axes = spec->problem.axes;
  const pph_gather_window *windows = part->windows;
  size_t copied = part->pixel, direct = (size_t)spec->problem.in_channels;
  size_t copied_steps[PPH_PROBLEM_AXES], direct_steps[PPH_PROBLEM_AXES];
  for (int i = PPH_PROBLEM_AXES - 1; i >= 0; i--) {
    copied_steps[i] = copied * (size_t)windows[i].u_step;
    direct_steps[i] = direct * (size_t)part->runs[i].tap_step;
    copied *= (size_t)windows[i].size;
    direct *= (size_t)axes[i].input;
  }
  list_runs(part, &part->copied, copied_steps,
            plan->starts + part->copied.starts);
  list_runs(part, &part->direct, direct_steps,
            plan->starts + part->direct.starts);
}

/* Inputs */

/* One row of the input: its pixels may lie in planes. */
typedef struct input_line {
  const float *first; /* of pixel 0, first channel of the group */
  size_t pixel, channel; /* floats to the next */
} input_line;

static input_line find_line(const pph_gather_job *job,
                            const pph_gather_block *block, int64_t z,
                            int64_t y) {
  const pph_problem *p = &job->spec->problem;
  const pph_axis *axes = p->axes;
  size_t height = (size_t)axes[PPH_HEIGHT].input;
  size_t width = (size_t)axes[PPH_WIDTH].input;
  size_t line = ((size_t)z * height + (size_t)y) * width;
  size_t plane = (size_t)axes[PPH_DEPTH].input * height * width;
  size_t channels = (size_t)p->in_channels, n = (size_t)block->n;
  size_t channel = block->group * job->plan->in_channels;
  const float *input = job->tensors->input;
  if (job->spec->input_channels_first)
    return (input_line){input + (n * channels + channel) * plane + line, 1,
                        plane};
  return (input_line){input + (n * plane + line) * channels + channel,
                      channels, 1};
}

/* Pixels x, x + step, ... that are all inside. */
static void copy_pixels(const pph_gather_job *job, const input_line *line,
                        int64_t x, int64_t step, size_t count, size_t pixel,
                        float *target) {
  size_t channels = job->plan->in_channels;
  const float *source = line->first + (size_t)x * line->pixel;
  size_t source_step = (size_t)step * line->pixel;
  if (line->channel == 1 && source_step == channels && pixel == channels) {
    memcpy(target, source, count * channels * sizeof(float));
  } else if (line->channel == 1) {
    for (size_t i = 0; i < count; i++)
      memcpy(target + i * pixel, source + i * source_step,
             channels * sizeof(float));
  } else if (source_step == 1) {
    job->plan->run_transpose(
        &(pph_transpose_block){.rows = channels,
                               .columns = count,
                               .source = source,
                               .source_step = line->channel,
                               .target = target,
                               .target_step = pixel});
  } else {
    for (size_t i = 0; i < count; i++)
      for (size_t c = 0; c < channels; c++)
        target[i * pixel + c] = source[i * source_step + c * line->channel];
  }
}

/* Pixels x, x + step, ...: zeros where they are outside. */
static void copy_run(const pph_gather_job *job, const input_line *line,
                     int64_t x, int64_t step, int64_t count, size_t pixel,
                     float *target) {
  int64_t input = job->spec->problem.axes[PPH_WIDTH].input;
  int64_t begin = pph_max_i64(0, pph_ceil_div(-x, step));
  int64_t end = pph_min_i64(count, pph_ceil_div(input - x, step));
  begin = pph_min_i64(begin, count);
  end = pph_max_i64(end, begin);
  memset(target, 0, (size_t)begin * pixel * sizeof(float));
  if (begin < end)
    copy_pixels(job, line, x + begin * step, step, (size_t)(end - begin),
                pixel, target + (size_t)begin * pixel);
  memset(target + (size_t)end * pixel, 0,
         (size_t)(count - end) * pixel * sizeof(float));
}

/* Elements of a window that so many positions need. */
static int64_t count_elements(const pph_gather_window *window,
                              const pph_phase_run *run, int64_t positions) {
  return (positions - 1) * window->q_step + (run->taps - 1) * window->u_step +
         1;
}

/* Copies what positions [begin, end) of the block read of a line. */
static void copy_line(const pph_gather_job *job, const pph_gather_part *part,
                      const pph_gather_block *block, const input_line *line,
                      int64_t begin, int64_t end, float *target) {
  const pph_gather_window *window = &part->windows[PPH_WIDTH];
  const pph_phase_run *run = &part->runs[PPH_WIDTH];
  int64_t step = job->plan->axes[PPH_WIDTH].input_step;
  int64_t x = (block->first[PPH_WIDTH] + begin) * step - run->pad_begin;
  if (begin >= end)
    return;
  target += (size_t)(begin * window->q_step) * part->pixel;
  if (window->joined) {
    copy_run(job, line, x, 1, count_elements(window, run, end - begin),
             part->pixel, target);
    return;
  }
  for (int64_t u = 0; u < run->taps; u++)
    copy_run(job, line, x + u * run->tap_step, step, end - begin, part->pixel,
             target + (size_t)(u * window->u_step) * part->pixel);
}

/* The input position of an element. */
static int64_t find_element(const pph_gather_job *job,
                            const pph_gather_part *part,
                            const pph_gather_block *block, int axis,
                            int64_t element) {
  const pph_gather_window *window = &part->windows[axis];
  const pph_phase_run *run = &part->runs[axis];
  int64_t step = job->plan->axes[axis].input_step;
  int64_t first = block->first[axis] * step - run->pad_begin;
  if (window->joined)
    return first + element;
  return first + element % window->u_step * step +
         element / window->u_step * run->tap_step;
}

/* Whether rows of outputs outside of the block's inner ones read an element. */
static bool is_edge(const pph_gather_part *part, const pph_gather_block *block,
                    int64_t element) {
  const pph_gather_window *window = &part->windows[PPH_HEIGHT];
  int64_t reach = (part->runs[PPH_HEIGHT].taps - 1) * window->u_step;
  int64_t begin = block->inner_rows[0] - block->first[PPH_HEIGHT];
  int64_t end = block->inner_rows[1] - block->first[PPH_HEIGHT];
  if (!window->joined) {
    int64_t position = element % window->u_step;
    return position < begin || position >= end;
  }
  return (begin > 0 && element <= (begin - 1) * window->q_step + reach) ||
         (end < block->count[PPH_HEIGHT] && element >= end * window->q_step);
}

/* What tiles that are not inner ones read. */
static void copy_block(const pph_gather_job *job, const pph_gather_part *part,
                       const pph_gather_block *block, float *room) {
  const pph_axis *axes = job->spec->problem.axes;
  const pph_gather_window *windows = part->windows;
  size_t line_floats = (size_t)windows[PPH_WIDTH].size * part->pixel;
  int64_t counts[2], first = block->first[PPH_WIDTH];
  int64_t left = pph_gather_tile_first(part, block->inner_segments[0]) - first;
  int64_t right = pph_gather_tile_first(part, block->inner_segments[1]) - first;
  for (int i = 0; i < 2; i++)
    counts[i] = count_elements(&windows[i], &part->runs[i], block->count[i]);
  for (int64_t d = 0; d < counts[0]; d++)
    for (int64_t h = 0; h < counts[1]; h++) {
      int64_t z = find_element(job, part, block, PPH_DEPTH, d);
      int64_t y = find_element(job, part, block, PPH_HEIGHT, h);
      bool edge = is_edge(part, block, h);
      float *target =
          room + (size_t)(d * windows[PPH_HEIGHT].size + h) * line_floats;
      if (z < 0 || z >= axes[PPH_DEPTH].input || y < 0 ||
          y >= axes[PPH_HEIGHT].input) {
        memset(target, 0, line_floats * sizeof(float));
        continue;
      }
      input_line line = find_line(job, block, z, y);
      int64_t end = block->count[PPH_WIDTH];
      copy_line(job, part, block, &line, 0, edge ? end : left, target);
      copy_line(job, part, block, &line, edge ? end : right, end, target);
    }
}

/* Whether the kernel may read inputs where they are: channels together, and
   rows that do not share one place of the level-1 cache. */
static bool is_readable(const pph_conv_spec *spec,
                        const pph_gather_part *part) {
  return part->depth && !spec->input_channels_first &&
         part->direct.row_step % 1024;
}

/* The positions of an axis that read no pads. */
static void find_inner(const pph_axis_view *view, const pph_phase_run *run,
                       int64_t inner[2]) {
  int64_t reach = (run->taps - 1) * run->tap_step - run->pad_begin;
  int64_t begin = pph_ceil_div(run->pad_begin, view->input_step);
  int64_t end = pph_ceil_div(view->axis.input - reach, view->input_step);
  inner[0] = pph_min_i64(pph_max_i64(begin, 0), view->length);
  inner[1] = pph_max_i64(pph_min_i64(end, view->length), inner[0]);
}

/* Of tiles [inner[0], inner[1]) those whose pixels read no pads. */
static void find_inner_segments(const pph_gather_plan *plan,
                                const pph_gather_part *part,
                                size_t inner[2]) {
  int64_t pixels[2];
  find_inner(&plan->axes[PPH_WIDTH], &part->runs[PPH_WIDTH], pixels);
  while (inner[0] < inner[1] &&
         pph_gather_tile_first(part, inner[0]) < pixels[0])
    inner[0]++;
  while (inner[0] < inner[1] &&
         pph_gather_tile_first(part, inner[1]) > pixels[1])
    inner[1]--;
}

double pph_gather_copied(const pph_conv_spec *spec, const pph_gather_plan *plan,
                         const pph_gather_part *part) {
  size_t segments[2] = {0, part->segments};
  if (!is_readable(spec, part))
    return part->depth ? 1 : 0;
  find_inner_segments(plan, part, segments);
  double inner =
      (double)(segments[1] - segments[0]) / (double)part->segments;
  for (int i = 0; i < PPH_WIDTH; i++) {
    int64_t rows[2];
    find_inner(&plan->axes[i], &part->runs[i], rows);
    inner *= (double)(rows[1] - rows[0]) / (double)plan->axes[i].length;
  }
  return 1 - inner;
}

/* Which of the block's tiles are inner ones; whether any is not. */
static bool find_edges(const pph_gather_job *job, const pph_gather_part *part,
                       pph_gather_block *block) {
  const pph_axis_view *axes = job->plan->axes;
  int64_t depths[2], first = block->first[PPH_HEIGHT];
  int64_t end = first + block->count[PPH_HEIGHT], *rows = block->inner_rows;
  size_t *segments = block->inner_segments;
  segments[0] = block->segment;
  segments[1] = block->segment + block->segments;
  find_inner_segments(job->plan, part, segments);
  find_inner(&axes[PPH_DEPTH], &part->runs[PPH_DEPTH], depths);
  find_inner(&axes[PPH_HEIGHT], &part->runs[PPH_HEIGHT], rows);
  rows[0] = pph_min_i64(pph_max_i64(rows[0], first), end);
  rows[1] = pph_max_i64(pph_min_i64(rows[1], end), rows[0]);
  if (!is_readable(job->spec, part) ||
      block->first[PPH_DEPTH] < depths[0] ||
      block->first[PPH_DEPTH] >= depths[1] || segments[0] == segments[1])
    rows[1] = rows[0];
  return rows[0] > first || rows[1] < end || segments[0] > block->segment ||
         segments[1] < block->segment + block->segments;
}

void pph_gather_find_inputs(const pph_gather_job *job,
                            const pph_gather_part *part,
                            pph_gather_block *block, float *room) {
  const pph_problem *p = &job->spec->problem;
  const pph_axis_view *axes = job->plan->axes;
  const pph_gather_window *windows = part->windows;
  if (find_edges(job, part, block) && part->depth)
    copy_block(job, part, block, room);
  block->copied = (pph_gather_source){
      .reads = &part->copied,
      .base = room,
      .line = windows[PPH_HEIGHT].q_step * windows[PPH_WIDTH].size *
              (int64_t)part->pixel};
  int64_t at = block->n;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    at = at * axes[i].axis.input + block->first[i] * axes[i].input_step -
         part->runs[i].pad_begin;
  block->direct = (pph_gather_source){
      .reads = &part->direct,
      .base = job->tensors->input,
      .at = at * p->in_channels +
            (int64_t)(block->group * job->plan->in_channels),
      .line = axes[PPH_HEIGHT].input_step * axes[PPH_WIDTH].axis.input *
              p->in_channels};
}
