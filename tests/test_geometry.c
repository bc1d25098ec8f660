/* Geometry: the phase table, executed as a caller executes it, against the
   scatter definition of a transposed convolution; all in whole numbers, so the
   results must be equal. Then fixed cases and refusals. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "geometry/geometry.h"

/* One layer of three axes; unused ones have length, kernel and stride 1.
   x [ci,I], w [ci,co/group,K], b [co], y [co,O], all row-major. */
typedef struct layer {
  pph_axis axes[3];
  int64_t group, in_channels, out_channels;
  int64_t *x, *w, *b;
} layer;

/* What the random cases ran into; all must have occurred. */
typedef struct tally {
  int64_t layers, refused, empty, tapless, silenced, crop_begin, crop_end;
  int64_t negative_pads, shared_factor, grouped, odd_total, wide_padding;
} tally;

static int64_t count3(const int64_t *lengths) {
  return lengths[0] * lengths[1] * lengths[2];
}

static int64_t *allocate(int64_t count) {
  int64_t *block = calloc((size_t)pph_max_i64(count, 1), sizeof *block);
  assert_non_null(block);
  return block;
}

/* Steps `at` through the box of `lengths`; false after the last place. */
static bool step(int64_t *at, const int64_t *lengths) {
  for (int i = 2; i >= 0; i--) {
    if (++at[i] < lengths[i])
      return true;
    at[i] = 0;
  }
  return false;
}

static int64_t flat(const int64_t *at, const int64_t *lengths) {
  return (at[0] * lengths[1] + at[1]) * lengths[2] + at[2];
}

static void list_lengths(const layer *l, int64_t *input, int64_t *kernel,
                         int64_t *output) {
  for (int i = 0; i < 3; i++) {
    input[i] = l->axes[i].input;
    kernel[i] = l->axes[i].kernel;
    output[i] = l->axes[i].output;
  }
}

/* Every input element times every tap, added where it belongs. */
static void scatter_channels(const layer *l, int64_t ci, int64_t co,
                             int64_t *y) {
  int64_t input[3], kernel[3], output[3],
      per_group = l->out_channels / l->group;
  list_lengths(l, input, kernel, output);
  const int64_t *x = l->x + ci * count3(input);
  const int64_t *w = l->w + (ci * per_group + co % per_group) * count3(kernel);
  int64_t i[3] = {0};
  if (count3(input) == 0)
    return;
  do {
    int64_t k[3] = {0};
    do {
      int64_t o[3];
      bool inside = true;
      for (int a = 0; a < 3; a++) {
        const pph_axis *axis = &l->axes[a];
        o[a] = i[a] * axis->stride + k[a] * axis->dilation - axis->pad_begin;
        inside = inside && o[a] >= 0 && o[a] < axis->output;
      }
      if (inside)
        y[flat(o, output)] += x[flat(i, input)] * w[flat(k, kernel)];
    } while (step(k, kernel));
  } while (step(i, input));
}

static int64_t *run_scatter(const layer *l) {
  int64_t input[3], kernel[3], output[3];
  list_lengths(l, input, kernel, output);
  int64_t size = count3(output), *y = allocate(l->out_channels * size);
  for (int64_t co = 0; co < l->out_channels; co++) {
    for (int64_t j = 0; j < size; j++)
      y[co * size + j] = l->b[co];
    int64_t ci_per_group = l->in_channels / l->group;
    int64_t first = co / (l->out_channels / l->group) * ci_per_group;
    for (int64_t ci = first; ci < first + ci_per_group; ci++)
      scatter_channels(l, ci, co, y + co * size);
  }
  return y;
}

/* One output element of one phase: the stride-1 correlation at q. */
static int64_t correlate(const layer *l, const pph_phase *phases, int64_t ci,
                         int64_t co, const int64_t *q) {
  int64_t input[3], kernel[3], output[3],
      per_group = l->out_channels / l->group;
  list_lengths(l, input, kernel, output);
  const int64_t *x = l->x + ci * count3(input);
  const int64_t *w = l->w + (ci * per_group + co % per_group) * count3(kernel);
  int64_t taps[3] = {phases[0].taps, phases[1].taps, phases[2].taps};
  int64_t u[3] = {0}, sum = 0;
  if (count3(taps) == 0)
    return 0;
  do {
    int64_t i[3], k[3];
    bool inside = true;
    for (int a = 0; a < 3; a++) {
      i[a] = q[a] + u[a] * phases[a].tap_step - phases[a].pad_begin;
      k[a] = phases[a].kernel_last - u[a] * phases[a].kernel_step;
      assert_in_range(k[a], 0, kernel[a] - 1);
      inside = inside && i[a] >= 0 && i[a] < input[a];
    }
    if (inside)
      sum += x[flat(i, input)] * w[flat(k, kernel)];
  } while (step(u, taps));
  return sum;
}

/* The properties that a caller builds on, per axis and phase. */
static void check_phase(const pph_axis *axis, const pph_phase_frame *frame,
                        const pph_phase *phase, tally *seen) {
  assert_true(phase->tap_step >= 1 && phase->kernel_step >= 1);
  if (phase->taps == 0) {
    assert_int_equal(phase->pad_begin, 0);
    assert_int_equal(phase->pad_end, 0);
    seen->tapless += axis->kernel < axis->stride;
    seen->silenced += axis->kernel >= axis->stride && axis->dilation == 1;
    return;
  }
  /* A convolution of this window and these pads has `length` outputs. */
  int64_t padded = axis->input + phase->pad_begin + phase->pad_end;
  assert_int_equal(padded - (phase->taps - 1) * phase->tap_step, frame->length);
  assert_true(-phase->pad_begin < axis->input);
  assert_true(-phase->pad_end < axis->input);
  seen->crop_begin += phase->pad_begin < 0;
  seen->crop_end += phase->pad_end < 0;
  seen->shared_factor +=
      phase->kernel_step < axis->stride && phase->tap_step < axis->dilation;
}

/* All phases of every axis, [3][stride]. */
typedef struct table {
  pph_phase_frame frames[3];
  pph_phase *phases[3];
} table;

static void make_table(const layer *l, pph_frame_kind kind, table *t,
                       tally *seen) {
  for (int a = 0; a < 3; a++) {
    const pph_axis *axis = &l->axes[a];
    pph_phase_frame *frame = &t->frames[a];
    pph_phase_frame_make(axis, kind, frame);
    assert_int_equal(frame->stride, axis->stride);
    assert_int_equal(frame->trim_begin + axis->output + frame->trim_end,
                     frame->stride * frame->length);
    assert_in_range(frame->trim_end, 0, frame->stride - 1);
    t->phases[a] = calloc((size_t)axis->stride, sizeof *t->phases[a]);
    assert_non_null(t->phases[a]);
    for (int64_t p = 0; p < axis->stride; p++) {
      pph_phase_make(axis, frame, p, &t->phases[a][p]);
      assert_int_equal(t->phases[a][p].index, p);
      check_phase(axis, frame, &t->phases[a][p], seen);
    }
  }
}

/* Phase by phase, interleaved as stored, trimmed at the end. */
static int64_t *run_phases(const layer *l, pph_frame_kind kind, tally *seen) {
  table t;
  make_table(l, kind, &t, seen);
  int64_t input[3], kernel[3], output[3], whole[3];
  list_lengths(l, input, kernel, output);
  for (int a = 0; a < 3; a++)
    whole[a] = t.frames[a].stride * t.frames[a].length;
  int64_t *long_y = allocate(count3(whole));
  int64_t size = count3(output), *y = allocate(l->out_channels * size);
  int64_t ci_per_group = l->in_channels / l->group;
  for (int64_t co = 0; co < l->out_channels; co++) {
    int64_t first = co / (l->out_channels / l->group) * ci_per_group;
    int64_t at[3] = {0};
    do {
      pph_phase phases[3];
      int64_t q[3], sum = l->b[co];
      for (int a = 0; a < 3; a++) {
        phases[a] = t.phases[a][at[a] % l->axes[a].stride];
        q[a] = at[a] / l->axes[a].stride;
      }
      for (int64_t ci = first; ci < first + ci_per_group; ci++)
        sum += correlate(l, phases, ci, co, q);
      long_y[flat(at, whole)] = sum;
    } while (step(at, whole));
    int64_t o[3] = {0};
    do {
      for (int a = 0; a < 3; a++)
        at[a] = o[a] + t.frames[a].trim_begin;
      y[co * size + flat(o, output)] = long_y[flat(at, whole)];
    } while (step(o, output));
  }
  for (int a = 0; a < 3; a++)
    free(t.phases[a]);
  free(long_y);
  return y;
}

static void layer_allocate(layer *l) {
  int64_t input[3], kernel[3], output[3];
  list_lengths(l, input, kernel, output);
  l->x = allocate(l->in_channels * count3(input));
  l->w =
      allocate(l->in_channels * (l->out_channels / l->group) * count3(kernel));
  l->b = allocate(l->out_channels);
}

static void layer_release(layer *l) {
  free(l->x);
  free(l->w);
  free(l->b);
}

static const char *describe(const layer *l, char *text, size_t size) {
  size_t at = (size_t)snprintf(text, size, "g%d ci%d co%d", (int)l->group,
                               (int)l->in_channels, (int)l->out_channels);
  for (int a = 0; a < 3; a++) {
    const pph_axis *x = &l->axes[a];
    at += (size_t)snprintf(text + at, size - at,
                           " | i%d k%d s%d d%d p%d,%d op%d o%d", (int)x->input,
                           (int)x->kernel, (int)x->stride, (int)x->dilation,
                           (int)x->pad_begin, (int)x->pad_end,
                           (int)x->output_padding, (int)x->output);
  }
  return text;
}

static void compare(const layer *l, tally *seen) {
  int64_t input[3], kernel[3], output[3];
  list_lengths(l, input, kernel, output);
  int64_t *expected = run_scatter(l);
  size_t bytes = (size_t)(l->out_channels * count3(output)) * sizeof *expected;
  static const pph_frame_kind kinds[] = {PPH_FRAME_TIGHT, PPH_FRAME_ALIGNED};
  for (int i = 0; i < 2; i++) {
    int64_t *found = run_phases(l, kinds[i], seen);
    char text[512];
    if (memcmp(expected, found, bytes) != 0)
      fail_msg("frame %d differs: %s", i, describe(l, text, sizeof text));
    free(found);
  }
  free(expected);
}

/* A random axis, resolved; false when it was refused or its output is empty,
   both of which must be for a reason that is checked here. */
static bool draw_axis(test_random *r, int64_t longest, pph_axis *axis,
                      tally *seen) {
  *axis = (pph_axis){.input = test_random_range(r, 0, longest),
                     .kernel = test_random_range(r, 1, longest),
                     .stride = test_random_range(r, 1, 5),
                     .dilation = test_random_range(r, 1, 4),
                     .pad_begin = test_random_range(r, 0, 5),
                     .pad_end = test_random_range(r, 0, 5)};
  if (test_random_range(r, 0, 1))
    axis->dilation = 1;
  axis->output_padding =
      test_random_range(r, 0, pph_max_i64(axis->stride, axis->dilation) - 1);
  pph_auto_pad pad = test_random_range(r, 0, 2)
                         ? PPH_AUTO_PAD_NOTSET
                         : (pph_auto_pad)test_random_range(r, 0, 3);
  int64_t natural = (axis->input - 1) * axis->stride + axis->output_padding +
                    (axis->kernel - 1) * axis->dilation + 1;
  int64_t wanted = test_random_range(r, 0, 3)
                       ? -1
                       : pph_max_i64(natural + test_random_range(r, -6, 6), 0);
  int64_t explicit = axis->pad_begin + axis->pad_end;
  pph_status status = pph_axis_resolve_transposed(axis, pad, wanted, NULL);
  if (status != PPH_OK) {
    assert_int_equal(status, PPH_BAD_MODEL);
    assert_int_equal(pad, PPH_AUTO_PAD_NOTSET);
    assert_true(wanted == -1 && natural < explicit);
    seen->refused++;
    return false;
  }
  int64_t total = axis->pad_begin + axis->pad_end;
  if (axis->output > 0 || natural - total >= 0)
    assert_int_equal(axis->output,
                     pph_max_i64(natural - total, axis->input ? -1 : 0));
  if (wanted != -1)
    assert_int_equal(axis->output, wanted);
  seen->empty += axis->output == 0;
  seen->negative_pads += axis->pad_end < 0;
  seen->odd_total += wanted != -1 && total > 0 && total % 2;
  seen->wide_padding += axis->output_padding >= axis->stride;
  return axis->output > 0;
}

static void run_random(int axes, int count, uint64_t seed, tally *seen) {
  static const int64_t longest[] = {0, 9, 5, 4};
  test_random r = {seed + (uint64_t)axes};
  for (int n = 0; n < count; n++) {
    layer l = {.group = test_random_range(&r, 1, 2)};
    bool good = true;
    for (int a = 0; a < 3; a++) {
      l.axes[a] = (pph_axis){1, 1, 1, 1, 0, 0, 0, 1};
      if (a >= 3 - axes)
        good = draw_axis(&r, longest[axes], &l.axes[a], seen) && good;
    }
    if (!good)
      continue;
    l.in_channels = l.group * test_random_range(&r, 1, 2);
    l.out_channels = l.group * test_random_range(&r, 1, 2);
    layer_allocate(&l);
    int64_t input[3], kernel[3], output[3];
    list_lengths(&l, input, kernel, output);
    for (int64_t i = 0; i < l.in_channels * count3(input); i++)
      l.x[i] = test_random_range(&r, -9, 9);
    int64_t weights =
        l.in_channels * (l.out_channels / l.group) * count3(kernel);
    for (int64_t i = 0; i < weights; i++)
      l.w[i] = test_random_range(&r, -9, 9);
    for (int64_t i = 0; i < l.out_channels; i++)
      l.b[i] = test_random_range(&r, -9, 9);
    compare(&l, seen);
    layer_release(&l);
    seen->layers++;
    seen->grouped += l.group > 1;
  }
}

static void test_random_layers(void **state) {
  uint64_t seed = test_seed("random layers");
  tally seen = {0};
  run_random(1, 6000, seed, &seen);
  run_random(2, 2500, seed, &seen);
  run_random(3, 400, seed, &seen);
  printf("layers %d, refused %d, empty %d, tapless %d, silenced %d, "
         "crops %d and %d, negative pads %d\n",
         (int)seen.layers, (int)seen.refused, (int)seen.empty,
         (int)seen.tapless, (int)seen.silenced, (int)seen.crop_begin,
         (int)seen.crop_end, (int)seen.negative_pads);
  assert_true(seen.layers > 4000);
  assert_true(seen.refused > 0 && seen.empty > 0);
  assert_true(seen.tapless > 100 && seen.silenced > 100);
  assert_true(seen.crop_begin > 100 && seen.crop_end > 100);
  assert_true(seen.negative_pads > 100 && seen.odd_total > 100);
  assert_true(seen.shared_factor > 100 && seen.wide_padding > 100);
  assert_true(seen.grouped > 100);
}

/* A published case: what ../shared/reference/public-bugs.md gives. */
typedef struct fixed_case {
  const char *name;
  int64_t in_channels, out_channels;
  pph_axis axes[2]; /* input, kernel, stride, dilation, pads, op, output */
  pph_auto_pad auto_pad;
  int64_t output_shape[2];
  bool biased;
  int64_t sum, check;
} fixed_case;

#define BOTH(...)                                                              \
  { __VA_ARGS__, __VA_ARGS__ }
#define SQUARE(...)                                                            \
  {                                                                            \
    {__VA_ARGS__}, { __VA_ARGS__ }                                             \
  }
static const fixed_case fixed_cases[] = {
    {"P01",
     1,
     2,
     {{3, 3, 3, 1, 0, 0, 0, 10}, {3, 3, 2, 1, 0, 0, 0, 8}},
     PPH_AUTO_PAD_NOTSET,
     {10, 8},
     false,
     3,
     54},
    {"P02 pad 3", 1, 3, SQUARE(8, 2, 1, 2, 3, 3, 1, 5), PPH_AUTO_PAD_NOTSET,
     BOTH(-1), true, -91, -935},
    {"P02 pad 1", 1, 3, SQUARE(4, 2, 1, 2, 1, 1, 1, 5), PPH_AUTO_PAD_NOTSET,
     BOTH(-1), true, -73, -840},
    {"P09", 3, 3, SQUARE(4, 3, 1, 1, 0, 0, 0, 4), PPH_AUTO_PAD_NOTSET, BOTH(4),
     false, 63, -40},
    {"P09 odd", 2, 2, SQUARE(4, 4, 1, 1, 0, 0, 0, 4), PPH_AUTO_PAD_NOTSET,
     BOTH(4), false, -29, -219},
    {"P09 odd, upper", 2, 2, SQUARE(4, 4, 1, 1, 0, 0, 0, 4),
     PPH_AUTO_PAD_SAME_UPPER, BOTH(4), false, 58, -22},
    {"P14",
     1,
     3,
     {{50, 3, 2, 3, 4, 4, 0, 97}, {50, 5, 1, 1, 2, 2, 0, 50}},
     PPH_AUTO_PAD_NOTSET,
     BOTH(-1),
     true,
     -14569,
     -101162},
    {"P15 upper", 1, 1, SQUARE(5, 3, 2, 1, 0, 0, 0, 10),
     PPH_AUTO_PAD_SAME_UPPER, BOTH(-1), false, 30, 277},
    {"P15 lower", 1, 1, SQUARE(5, 3, 2, 1, 0, 0, 0, 10),
     PPH_AUTO_PAD_SAME_LOWER, BOTH(-1), false, -5, 393},
    {"P15 stride 1", 1, 1, SQUARE(2, 3, 1, 1, 0, 0, 0, 2),
     PPH_AUTO_PAD_SAME_UPPER, BOTH(-1), false, -18, 10 - 54 + 12 - 20},
};

static void fill_layer(layer *l, const fixed_case *c) {
  int64_t input[3], kernel[3], output[3];
  list_lengths(l, input, kernel, output);
  for (int64_t i = 0; i < l->in_channels * count3(input); i++)
    l->x[i] = (7 * i + 3) % 11 - 5;
  for (int64_t i = 0;
       i < l->in_channels * (l->out_channels / l->group) * count3(kernel); i++)
    l->w[i] = (5 * i + 1) % 7 - 3;
  for (int64_t i = 0; i < l->out_channels; i++)
    l->b[i] = c->biased ? i % 5 - 2 : 0;
}

static void test_public_cases(void **state) {
  for (size_t n = 0; n < sizeof fixed_cases / sizeof fixed_cases[0]; n++) {
    const fixed_case *c = &fixed_cases[n];
    layer l = {.group = 1,
               .in_channels = c->in_channels,
               .out_channels = c->out_channels};
    l.axes[0] = (pph_axis){1, 1, 1, 1, 0, 0, 0, 1};
    for (int a = 0; a < 2; a++) {
      l.axes[a + 1] = c->axes[a];
      l.axes[a + 1].output = -1;
      pph_error error = {0};
      test_assert_ok(pph_axis_resolve_transposed(&l.axes[a + 1], c->auto_pad,
                                                 c->output_shape[a], &error),
                     &error);
      assert_int_equal(l.axes[a + 1].output, c->axes[a].output);
    }
    layer_allocate(&l);
    fill_layer(&l, c);
    tally seen = {0};
    compare(&l, &seen);
    int64_t *y = run_phases(&l, PPH_FRAME_ALIGNED, &seen);
    int64_t sum = 0, check = 0;
    int64_t count = l.out_channels * l.axes[1].output * l.axes[2].output;
    for (int64_t i = 0; i < count; i++) {
      sum += y[i];
      check += y[i] * (i % 13 + 1);
    }
    if (sum != c->sum || check != c->check)
      fail_msg("%s: sum %d, chk %d", c->name, (int)sum, (int)check);
    free(y);
    layer_release(&l);
  }
}

/* The part that the natural result does not reach lies at the end. */
static void test_longer_output(void **state) {
  pph_axis axis = {3, 3, 2, 1, 0, 0, 0, 0};
  for (int pad = PPH_AUTO_PAD_NOTSET; pad <= PPH_AUTO_PAD_VALID; pad++) {
    assert_int_equal(
        pph_axis_resolve_transposed(&axis, (pph_auto_pad)pad, 10, NULL),
        PPH_OK);
    assert_int_equal(axis.pad_begin, 0);
    assert_int_equal(axis.pad_end, -3);
    assert_int_equal(axis.output, 10);
  }
}

/* A window of k4 s2 p1, worked out in docs/geometry.md. */
static void test_worked_example(void **state) {
  pph_axis axis = {5, 4, 2, 1, 1, 1, 0, 10};
  pph_phase_frame frame;
  pph_phase a, b;
  pph_phase_frame_make(&axis, PPH_FRAME_TIGHT, &frame);
  assert_int_equal(frame.length, 5);
  pph_phase_make(&axis, &frame, 0, &a);
  pph_phase_make(&axis, &frame, 1, &b);
  assert_memory_equal(&a, &((pph_phase){0, 2, 3, 2, 1, 1, 0}), sizeof a);
  assert_memory_equal(&b, &((pph_phase){1, 2, 2, 2, 1, 0, 1}), sizeof b);
  assert_false(pph_phase_same_window(&a, &b));
  pph_phase_frame_make(&axis, PPH_FRAME_ALIGNED, &frame);
  assert_int_equal(frame.length, 6);
  assert_int_equal(frame.trim_begin, 1);
  assert_int_equal(frame.trim_end, 1);
  pph_phase_make(&axis, &frame, 0, &a);
  pph_phase_make(&axis, &frame, 1, &b);
  assert_memory_equal(&a, &((pph_phase){0, 2, 2, 2, 1, 1, 1}), sizeof a);
  assert_memory_equal(&b, &((pph_phase){1, 2, 3, 2, 1, 1, 1}), sizeof b);
  assert_true(pph_phase_same_window(&a, &b));
}

/* k3 s4 d6 p1: gcd 2, so odd places meet no tap. */
static void test_dilated_example(void **state) {
  pph_axis axis = {5, 3, 4, 6, 1, 0, 0, 28};
  pph_phase_frame frame;
  pph_phase_frame_make(&axis, PPH_FRAME_TIGHT, &frame);
  assert_int_equal(frame.length, 7);
  static const pph_phase expected[] = {{0, 0, 0, 2, 3, 0, 0},
                                       {1, 1, 1, 2, 3, 1, 1},
                                       {2, 0, 0, 2, 3, 0, 0},
                                       {3, 2, 2, 2, 3, 2, 3}};
  for (int64_t i = 0; i < 4; i++) {
    pph_phase phase;
    pph_phase_make(&axis, &frame, i, &phase);
    assert_memory_equal(&phase, &expected[i], sizeof phase);
  }
}

/* Dilation 1, aligned: the phase's index is its kernel residue, and phases of
   one tap count share their window. */
static void test_aligned_phases(void **state) {
  test_random r = {test_seed("aligned phases")};
  for (int n = 0; n < 2000; n++) {
    pph_axis axis = {test_random_range(&r, 20, 30),
                     test_random_range(&r, 1, 9),
                     test_random_range(&r, 1, 6),
                     1,
                     test_random_range(&r, 0, 9),
                     test_random_range(&r, 0, 9),
                     0,
                     0};
    assert_int_equal(
        pph_axis_resolve_transposed(&axis, PPH_AUTO_PAD_NOTSET, -1, NULL),
        PPH_OK);
    pph_phase_frame frame;
    pph_phase phases[6];
    pph_phase_frame_make(&axis, PPH_FRAME_ALIGNED, &frame);
    for (int64_t i = 0; i < axis.stride; i++) {
      pph_phase_make(&axis, &frame, i, &phases[i]);
      if (phases[i].taps > 0)
        assert_int_equal(phases[i].kernel_last % axis.stride, i);
      for (int64_t j = 0; j < i; j++)
        assert_int_equal(pph_phase_same_window(&phases[i], &phases[j]),
                         phases[i].taps == phases[j].taps);
    }
  }
}

/* Refusals: status, and the words the message must have. */
typedef struct refusal {
  pph_axis axis;
  int64_t output_shape;
  pph_status status;
  const char *words[3];
} refusal;

static const refusal refusals[] = {
    {{5, 3, 0, 1, 0, 0, 0, 0},
     -1,
     PPH_BAD_MODEL,
     {"stride", "is 0", "at least 1"}},
    {{5, 3, 1, 0, 0, 0, 0, 0},
     -1,
     PPH_BAD_MODEL,
     {"dilation", "is 0", "at least 1"}},
    {{5, 0, 1, 1, 0, 0, 0, 0},
     -1,
     PPH_BAD_MODEL,
     {"kernel", "is 0", "at least 1"}},
    {{-1, 3, 1, 1, 0, 0, 0, 0},
     -1,
     PPH_BAD_MODEL,
     {"input", "is -1", "at least 0"}},
    {{5, 3, 1, 1, -1, 0, 0, 0},
     -1,
     PPH_BAD_MODEL,
     {"begin pad", "is -1", "at least 0"}},
    {{5, 3, 1, 1, 0, -7, 0, 0},
     -1,
     PPH_BAD_MODEL,
     {"end pad", "is -7", "at least 0"}},
    {{5, 3, 2, 1, 0, 0, 2, 0},
     -1,
     PPH_BAD_MODEL,
     {"output_padding", "is 2", "below the larger of"}},
    {{5, 3, 2, 4, 0, 0, 4, 0},
     -1,
     PPH_BAD_MODEL,
     {"output_padding", "is 4", "below the larger of"}},
    {{5, 3, 2, 1, 0, 0, -1, 0},
     -1,
     PPH_BAD_MODEL,
     {"output_padding", "is -1", "below the larger of"}},
    {{2, 2, 1, 1, 2, 2, 0, 0},
     -1,
     PPH_BAD_MODEL,
     {"output length", "is -1", "at least 0"}},
    {{5, 3, 1, 1, 0, 0, 0, 0},
     -2,
     PPH_BAD_MODEL,
     {"output_shape", "is -2", "at least 0"}},
    {{INT64_MAX, 3, 1, 1, 0, 0, 0, 0},
     -1,
     PPH_LIMIT_EXCEEDED,
     {"input", "9223372036854775807", "below"}},
    {{5, INT64_MAX, 1, 1, 0, 0, 0, 0},
     -1,
     PPH_LIMIT_EXCEEDED,
     {"kernel", "9223372036854775807", "below"}},
    {{5, 3, INT64_MAX, 1, 0, 0, 0, 0},
     -1,
     PPH_LIMIT_EXCEEDED,
     {"stride", "9223372036854775807", "below"}},
    {{5, 3, 1, INT64_MAX, 0, 0, 0, 0},
     -1,
     PPH_LIMIT_EXCEEDED,
     {"dilation", "9223372036854775807", "below"}},
    {{5, 1 << 30, 1, 1 << 30, 0, 0, 0, 0},
     -1,
     PPH_LIMIT_EXCEEDED,
     {"kernel", "dilation", "below"}},
    {{INT64_C(1) << 39, 3, 1 << 30, 1, 0, 0, 0, 0},
     -1,
     PPH_LIMIT_EXCEEDED,
     {"input", "stride", "below"}},
    {{5, 3, 1, 1, 0, 0, 0, 0},
     INT64_MAX,
     PPH_LIMIT_EXCEEDED,
     {"output_shape", "9223372036854775807", "below"}},
    {{5, 3, 1, 1, INT64_MAX, INT64_MAX, 0, 0},
     -1,
     PPH_LIMIT_EXCEEDED,
     {"begin pad", "9223372036854775807", "below"}},
};

static void test_refusals(void **state) {
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    pph_axis axis = refusals[i].axis;
    pph_error error = {0};
    pph_status status = pph_axis_resolve_transposed(
        &axis, PPH_AUTO_PAD_NOTSET, refusals[i].output_shape, &error);
    assert_int_equal(status, refusals[i].status);
    assert_string_equal(error.where, "");
    for (int w = 0; w < 3; w++)
      if (!strstr(error.message, refusals[i].words[w]))
        fail_msg("no \"%s\" in: %s", refusals[i].words[w], error.message);
    axis = refusals[i].axis;
    assert_int_equal(pph_axis_resolve_transposed(&axis, PPH_AUTO_PAD_NOTSET,
                                                 refusals[i].output_shape,
                                                 NULL),
                     refusals[i].status);
  }
}

/* Numbers from all over the range, alone and together: no overflow (the
   sanitizers judge), and what is accepted is within the bounds. */
static void test_extremes(void **state) {
  static const int64_t values[] = {INT64_MIN,
                                   -1,
                                   0,
                                   1,
                                   2,
                                   3,
                                   1 << 20,
                                   INT32_MAX,
                                   INT64_C(1) << 31,
                                   INT64_C(1) << 39,
                                   (INT64_C(1) << 40) - 1,
                                   INT64_C(1) << 40,
                                   INT64_C(1) << 62,
                                   INT64_MAX};
  test_random r = {test_seed("extremes")};
  const int64_t last = sizeof values / sizeof values[0] - 1;
  int64_t accepted = 0;
#define DRAW() values[test_random_range(&r, test_random_range(&r, 0, 2), last)]
  for (int n = 0; n < 300000; n++) {
    pph_axis axis = {DRAW(), DRAW(), DRAW(), DRAW(), DRAW(), DRAW(), 0, 0};
    axis.output_padding = test_random_range(&r, 0, 1) ? DRAW() : 0;
    pph_auto_pad pad = (pph_auto_pad)test_random_range(&r, 0, 3);
    int64_t wanted = test_random_range(&r, 0, 1) ? DRAW() : -1;
    pph_axis conv = axis;
    if (pph_axis_resolve_conv(&conv, pad, n & 1, NULL) == PPH_OK)
      assert_in_range(conv.output, 0, (INT64_C(1) << 40) - 1);
    if (pph_axis_resolve_transposed(&axis, pad, wanted, NULL) != PPH_OK ||
        axis.output == 0)
      continue;
    assert_in_range(axis.output, 1, (INT64_C(1) << 40) - 1);
    accepted++;
    for (int kind = 0; kind < 2; kind++) {
      pph_phase_frame frame;
      pph_phase phase;
      pph_phase_frame_make(&axis, (pph_frame_kind)kind, &frame);
      int64_t index = test_random_range(&r, 0, axis.stride - 1);
      tally seen = {0};
      pph_phase_make(&axis, &frame, index, &phase);
      check_phase(&axis, &frame, &phase, &seen);
      pph_phase_make(&axis, &frame, axis.stride - 1, &phase);
      check_phase(&axis, &frame, &phase, &seen);
    }
  }
#undef DRAW
  assert_true(accepted > 1000);
}

/* Ordinary convolutions and pooling. */
typedef struct conv_case {
  int64_t input, kernel, stride, dilation, begin, end;
  pph_auto_pad auto_pad;
  bool ceil_mode;
  int64_t output, want_begin, want_end;
} conv_case;

static const conv_case conv_cases[] = {
    {8, 3, 1, 1, 1, 1, PPH_AUTO_PAD_NOTSET, false, 8, 1, 1},
    {8, 3, 2, 1, 1, 1, PPH_AUTO_PAD_NOTSET, false, 4, 1, 1},
    {8, 3, 2, 1, 1, 1, PPH_AUTO_PAD_NOTSET, true, 5, 1, 1},
    {8, 3, 1, 2, 0, 1, PPH_AUTO_PAD_NOTSET, false, 5, 0, 1},
    {8, 3, 2, 1, 7, 7, PPH_AUTO_PAD_VALID, false, 3, 0, 0},
    {8, 3, 2, 1, 0, 0, PPH_AUTO_PAD_VALID, true, 4, 0, 0},
    {8, 3, 1, 1, 0, 0, PPH_AUTO_PAD_SAME_UPPER, false, 8, 1, 1},
    {8, 3, 2, 1, 0, 0, PPH_AUTO_PAD_SAME_UPPER, false, 4, 0, 1},
    {8, 3, 2, 1, 0, 0, PPH_AUTO_PAD_SAME_LOWER, false, 4, 1, 0},
    {7, 1, 3, 1, 0, 0, PPH_AUTO_PAD_SAME_LOWER, false, 3, 0, 0},
    /* The last window would start in the end padding: ceil_mode drops it. */
    {2, 2, 3, 1, 1, 1, PPH_AUTO_PAD_NOTSET, true, 1, 1, 1},
    {0, 3, 2, 1, 0, 0, PPH_AUTO_PAD_NOTSET, false, 0, 0, 0},
    {0, 3, 2, 1, 0, 0, PPH_AUTO_PAD_SAME_UPPER, false, 0, 0, 1},
};

static void test_conv(void **state) {
  for (size_t i = 0; i < sizeof conv_cases / sizeof conv_cases[0]; i++) {
    const conv_case *c = &conv_cases[i];
    pph_axis axis = {c->input, c->kernel, c->stride, c->dilation,
                     c->begin, c->end,    9,         -1};
    pph_error error = {0};
    test_assert_ok(
        pph_axis_resolve_conv(&axis, c->auto_pad, c->ceil_mode, &error),
        &error);
    if (axis.output != c->output || axis.pad_begin != c->want_begin ||
        axis.pad_end != c->want_end || axis.output_padding != 0)
      fail_msg("case %d: output %d, pads %d %d", (int)i, (int)axis.output,
               (int)axis.pad_begin, (int)axis.pad_end);
  }
  pph_axis small = {2, 3, 1, 2, 1, 1, 0, 0};
  pph_error error = {0};
  assert_int_equal(
      pph_axis_resolve_conv(&small, PPH_AUTO_PAD_NOTSET, false, &error),
      PPH_BAD_MODEL);
  assert_non_null(strstr(error.message, "is 5, must be at most"));
}

static void test_auto_pad_names(void **state) {
  pph_auto_pad pad;
  assert_true(pph_auto_pad_parse("", &pad));
  assert_int_equal(pad, PPH_AUTO_PAD_NOTSET);
  assert_true(pph_auto_pad_parse("SAME_UPPER", &pad));
  assert_int_equal(pad, PPH_AUTO_PAD_SAME_UPPER);
  assert_true(pph_auto_pad_parse("SAME_LOWER", &pad));
  assert_int_equal(pad, PPH_AUTO_PAD_SAME_LOWER);
  assert_true(pph_auto_pad_parse("VALID", &pad));
  assert_int_equal(pad, PPH_AUTO_PAD_VALID);
  assert_false(pph_auto_pad_parse("same_upper", &pad));
  assert_false(pph_auto_pad_parse("SAME", &pad));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_layers),
      cmocka_unit_test(test_public_cases),
      cmocka_unit_test(test_longer_output),
      cmocka_unit_test(test_worked_example),
      cmocka_unit_test(test_dilated_example),
      cmocka_unit_test(test_aligned_phases),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_extremes),
      cmocka_unit_test(test_conv),
      cmocka_unit_test(test_auto_pad_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
