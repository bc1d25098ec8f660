/* depthwise and grouped. */
#include <stdio.h>

#include "kernel/channelwise.h"
#include "kernel_check.h"

enum { MAX_BLOCKS = 8, MAX_INS = 5, MAX_LANES = 16 };

/* A strip, and what its fields do not tell. */
typedef struct strip_case {
  pph_channelwise_strip strip;
  bool grouped;
  size_t outs, pixel; /* output channels of a group; floats of a pixel */
  size_t stored;      /* floats of the output */
  pph_epilogue epilogue;
  pph_channelwise_pick picks[MAX_BLOCKS];
  int32_t index[MAX_BLOCKS * MAX_INS * MAX_LANES];
} strip_case;

static size_t draw(kernel_check *check, int64_t low, int64_t high) {
  return (size_t)kernel_draw(check, low, high);
}

/* Which inputs a block reads: those of its groups. */
static void pick(const kernel_check *check, strip_case *c) {
  pph_channelwise_strip *s = &c->strip;
  size_t lanes = check->kernel->lanes;
  for (size_t first = 0; first < s->channels; first += lanes) {
    size_t block = first / lanes, end = first + lanes;
    end = end < s->channels ? end : s->channels;
    size_t group = first / c->outs, groups = (end - 1) / c->outs - group + 1;
    c->picks[block] = (pph_channelwise_pick){group * s->ins, groups * s->ins};
    s->span = c->picks[block].span > s->span ? c->picks[block].span : s->span;
    for (size_t in = 0; in < s->ins; in++)
      for (size_t lane = 0; lane < lanes; lane++)
        c->index[(block * s->ins + in) * lanes + lane] =
            first + lane < end
                ? (int32_t)(((first + lane) / c->outs - group) * s->ins + in)
                : 0;
  }
  s->picks = c->picks;
  s->index = c->outs % lanes ? c->index : NULL;
}

/* Steps of whole vectors when it streams. */
static void lay_out(kernel_check *check, strip_case *c) {
  pph_channelwise_strip *s = &c->strip;
  size_t unit = s->stream ? 16 : 1, lanes = check->kernel->lanes;
  size_t blocks = (s->channels + lanes - 1) / lanes;
  size_t rows = s->rows, taps = s->taps;
  s->tap_step = c->pixel + draw(check, 0, 4);
  s->pixel_step = s->tap_step * draw(check, 1, 3) +
                  (draw(check, 0, 2) ? 0 : draw(check, 1, 5));
  s->row_step = draw(check, 0, 90);
  s->phase_step = s->channels + unit * draw(check, 0, 3);
  s->output_step = s->phases * s->phase_step + unit * draw(check, 0, 3);
  s->weight_tap = s->phases * (c->grouped ? s->ins : 1) * lanes;
  s->weight_row = taps * s->weight_tap;
  s->weight_block = rows * s->weight_row;
  s->line_step = draw(check, 0, 70);
  s->output_line = s->count * s->output_step + unit * draw(check, 0, 3);
  size_t reach =
      (s->lines - 1) * s->line_step + (s->count - 1) * s->pixel_step + c->pixel;
  if (rows && taps)
    reach += (rows - 1) * s->row_step + (taps - 1) * s->tap_step;
  c->stored = (s->lines - 1) * s->output_line +
              (s->count - 1) * s->output_step +
              (s->phases - 1) * s->phase_step + s->channels;
  s->input = kernel_data(check, 0, reach);
  s->weights = kernel_data(check, 1, blocks * s->weight_block);
  s->output = kernel_target(check, 2, c->stored);
}

/* Of the output whose first tap meets the input at `from`. */
static float sum_up(const kernel_check *check, const strip_case *c, size_t from,
                    size_t phase, size_t channel) {
  const pph_channelwise_strip *s = &c->strip;
  size_t lanes = check->kernel->lanes, ins = c->grouped ? s->ins : 1;
  size_t first = c->grouped ? channel / c->outs * ins : channel;
  float sum = 0;
  for (size_t row = 0; row < s->rows; row++)
    for (size_t tap = 0; tap < s->taps; tap++)
      for (size_t in = 0; in < ins; in++)
        sum = kernel_fma(
            check,
            s->input[from + row * s->row_step + tap * s->tap_step + first + in],
            s->weights[channel / lanes * s->weight_block + row * s->weight_row +
                       tap * s->weight_tap + (phase * ins + in) * lanes +
                       channel % lanes],
            sum);
  return sum;
}

static void expect_line(kernel_check *check, const strip_case *c, size_t line) {
  const pph_channelwise_strip *s = &c->strip;
  for (size_t q = 0; q < s->count; q++)
    for (size_t phase = 0; phase < s->phases; phase++)
      for (size_t channel = 0; channel < s->channels; channel++) {
        size_t from = line * s->line_step + q * s->pixel_step;
        size_t at = line * s->output_line + q * s->output_step +
                    phase * s->phase_step + channel;
        check->expected[at] = kernel_finish(
            &c->epilogue, sum_up(check, c, from, phase, channel), channel, at);
      }
}

static void run(kernel_check *check, strip_case *c) {
  pph_channelwise_strip *s = &c->strip;
  for (size_t line = 0; line < s->lines; line++)
    expect_line(check, c, line);
  pph_channelwise_kernel kernel = (pph_channelwise_kernel)check->kernel->run;
  kernel(s);
  kernel(&(pph_channelwise_strip){.count = 0});
  char what[120];
  snprintf(
      what, sizeof what,
      "%zu x count %zu, phases %zu, channels %zu, %zu x %zu taps, stream %d, "
      "%zu ins to %zu",
      s->lines, s->count, s->phases, s->channels, s->rows, s->taps, s->stream,
      s->ins, c->outs);
  kernel_compare(check, s->output, c->stored, what);
}

static void check_strip(kernel_check *check, size_t channels, size_t taps) {
  strip_case c = {.grouped = check->kernel->family == PPH_KERNEL_GROUPED};
  pph_channelwise_strip *s = &c.strip;
  s->lines = draw(check, 1, 3);
  s->count = draw(check, 1, 19);
  s->phases = draw(check, 1, 5);
  s->rows = draw(check, 0, 3);
  s->taps = taps;
  s->channels = channels;
  s->ahead = draw(check, 0, 1) * 64;
  c.pixel = channels;
  if (c.grouped) {
    s->ins = draw(check, 1, MAX_INS);
    c.outs = draw(check, 1, (int64_t)check->kernel->lanes * 2);
    c.pixel = (channels + c.outs - 1) / c.outs * s->ins;
    pick(check, &c);
  } else if (channels % 16 == 0) {
    s->stream = draw(check, 0, 1);
  }
  lay_out(check, &c);
  c.epilogue = kernel_epilogue(check, channels, c.stored);
  s->epilogue = &c.epilogue;
  run(check, &c);
}

void kernel_check_channelwise(kernel_check *check) {
  size_t most = 2 * check->kernel->lanes + 3;
  most = most < MAX_BLOCKS ? MAX_BLOCKS : most;
  for (size_t channels = 1; channels <= most; channels++)
    for (size_t taps = 0; taps <= 6; taps++)
      for (int i = 0; i < 6; i++)
        check_strip(check, channels, taps);
}
