#include "algo_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)*state * below) >> 32);
}

/* Data */

static float draw_value(uint32_t *state, algo_values values) {
  if (values == ALGO_INTEGERS)
    return (float)draw(state, 9) - 4;
  if (values == ALGO_UNIFORM)
    return (float)draw(state, 1u << 20) / (1 << 19) - 1;
  double u = (draw(state, 1u << 24) + 0.5) / (1 << 24);
  double v = draw(state, 1u << 24) / (double)(1 << 24);
  return (float)(sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * v));
}

/* What is not `wanted` has no memory. */
typedef struct data_source {
  uint32_t state;
  algo_values values;
  guarded_edge edge;
} data_source;

static guarded fill(data_source *source, size_t count, bool wanted) {
  guarded memory = {0};
  if (wanted)
    memory = guarded_make(count, source->edge);
  for (size_t i = 0; i < memory.count; i++)
    memory.data[i] = draw_value(&source->state, source->values);
  return memory;
}

/* Pixels of very unlike size beside each other. */
static void make_spikes(uint32_t state, const algo_data *data) {
  size_t channels = (size_t)data->spec.problem.in_channels;
  assert_false(data->spec.input_channels_first);
  for (size_t i = 0; i < data->input.count; i += channels) {
    float size = draw(&state, 12) == 0 ? 1024 : draw(&state, 2) ? 0 : 1.0f / 64;
    for (size_t channel = 0; channel < channels; channel++)
      data->input.data[i + channel] *= size;
  }
}

void algo_data_make(const algo_case *test, algo_values values,
                    guarded_edge edge, algo_data *data) {
  pph_conv_spec *spec = &data->spec;
  *spec = (pph_conv_spec){.input_channels_first = test->input_channels_first,
                          .output_channels_first = test->output_channels_first,
                          .residual = test->residual,
                          .low = test->clamp ? -1 : -INFINITY,
                          .high = test->clamp ? 2 : INFINITY,
                          .accuracy = PPH_ACCURACY_EXACT,
                          .threads = 1};
  pph_problem *p = &spec->problem;
  pph_error error;
  if (pph_problem_parse(test->problem, p, &error) != PPH_OK)
    fail_msg("%s: %s", test->problem, error.message);
  size_t outs = (size_t)p->out_channels, inputs, weights;
  inputs = (size_t)(p->batch * p->in_channels);
  weights = (size_t)(p->in_channels / p->group) * outs;
  data->outputs = (size_t)p->batch * outs;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    inputs *= (size_t)p->axes[i].input;
    weights *= (size_t)p->axes[i].kernel;
    data->outputs *= (size_t)p->axes[i].output;
  }
  data_source source = {test->seed, values, edge};
  data->input = fill(&source, inputs, true);
  data->weights = fill(&source, weights, true);
  data->bias = fill(&source, outs, test->bias);
  data->slopes = fill(&source, outs, test->slopes);
  data->residual = fill(&source, data->outputs, test->residual);
  if (values == ALGO_SPIKES)
    make_spikes(test->seed, data);
  spec->weights = data->weights.data;
  spec->bias = data->bias.data;
  spec->slopes = data->slopes.data;
}

void algo_data_drop(algo_data *data) {
  guarded *all[] = {&data->input, &data->weights, &data->bias, &data->slopes,
                    &data->residual};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    guarded_drop(all[i]);
}

/* The definition */

/* The input position of a tap, or -1. */
static int64_t find_input(const pph_axis *axis, bool transposed, int64_t out,
                          int64_t tap) {
  int64_t at =
      transposed ? out + axis->pad_begin - tap * axis->dilation
                 : out * axis->stride + tap * axis->dilation - axis->pad_begin;
  if (transposed && at % axis->stride)
    return -1;
  at = transposed ? at / axis->stride : at;
  return at >= 0 && at < axis->input ? at : -1;
}

/* An output element: image, position, channel. */
typedef struct element {
  int64_t image, at[PPH_PROBLEM_AXES], channel;
} element;

static int64_t count_pixels(const pph_axis *axes, bool output) {
  int64_t pixels = 1;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    pixels *= output ? axes[i].output : axes[i].input;
  return pixels;
}

static element find_element(const algo_data *data, size_t index) {
  const pph_problem *p = &data->spec.problem;
  int64_t pixels = count_pixels(p->axes, true), rest = (int64_t)index;
  int64_t all = pixels * p->out_channels;
  element e = {.image = rest / all};
  rest %= all;
  bool first = data->spec.output_channels_first;
  e.channel = first ? rest / pixels : rest % p->out_channels;
  int64_t pixel = first ? rest % pixels : rest / p->out_channels;
  for (int i = PPH_PROBLEM_AXES; i-- > 0; pixel /= p->axes[i].output)
    e.at[i] = pixel % p->axes[i].output;
  return e;
}

/* `pixel`: of the input, in its image. `tap`: index into a kernel. */
static void add_tap(const algo_data *data, const element *e, int64_t pixel,
                    int64_t tap, algo_result *sum) {
  const pph_problem *p = &data->spec.problem;
  int64_t ins = p->in_channels / p->group, outs = p->out_channels / p->group;
  int64_t pixels = count_pixels(p->axes, false), taps = 1;
  int64_t group = e->channel / outs;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    taps *= p->axes[i].kernel;
  for (int64_t i = 0; i < ins; i++) {
    int64_t in = group * ins + i, out = e->channel % outs;
    int64_t at = data->spec.input_channels_first
                     ? (e->image * p->in_channels + in) * pixels + pixel
                     : (e->image * pixels + pixel) * p->in_channels + in;
    int64_t weight = p->transposed ? in * outs + out : e->channel * ins + i;
    float x = data->input.data[at], w = data->weights.data[weight * taps + tap];
    sum->exact = fmaf(x, w, sum->exact);
    sum->value += (double)x * (double)w;
    sum->magnitude += fabs((double)x * (double)w);
  }
}

/* Taps by rising input position: falling ones of a transposed kernel. */
static void add_taps(const algo_data *data, const element *e,
                     algo_result *sum) {
  const pph_problem *p = &data->spec.problem;
  const pph_axis *axes = p->axes;
  int64_t taps = axes[0].kernel * axes[1].kernel * axes[2].kernel;
  for (int64_t i = 0; i < taps; i++) {
    int64_t tap = p->transposed ? taps - 1 - i : i, rest = tap, pixel = 0;
    int64_t at[PPH_PROBLEM_AXES];
    bool inside = true;
    for (int axis = PPH_PROBLEM_AXES; axis-- > 0; rest /= axes[axis].kernel) {
      at[axis] = find_input(&axes[axis], p->transposed, e->at[axis],
                            rest % axes[axis].kernel);
      inside = inside && at[axis] >= 0;
    }
    for (int axis = 0; axis < PPH_PROBLEM_AXES; axis++)
      pixel = pixel * axes[axis].input + at[axis];
    if (inside)
      add_tap(data, e, pixel, tap, sum);
  }
}

static void add_value(float value, algo_result *sum) {
  sum->exact += value;
  sum->value += (double)value;
  sum->magnitude += fabs((double)value);
}

static void activate(const algo_data *data, int64_t channel,
                     algo_result *sum) {
  const pph_conv_spec *spec = &data->spec;
  if (spec->slopes) {
    double slope = (double)spec->slopes[channel];
    if (sum->exact < 0)
      sum->exact *= spec->slopes[channel];
    if (sum->value < 0)
      sum->value *= slope;
    sum->magnitude *= fmax(1, fabs(slope));
  }
  sum->exact = fminf(fmaxf(sum->exact, spec->low), spec->high);
  sum->value = fmin(fmax(sum->value, (double)spec->low), (double)spec->high);
}

void algo_data_define(const algo_data *data, algo_result *results) {
  for (size_t i = 0; i < data->outputs; i++) {
    element e = find_element(data, i);
    results[i] = (algo_result){0};
    add_taps(data, &e, &results[i]);
    if (data->bias.data)
      add_value(data->bias.data[e.channel], &results[i]);
    if (data->residual.data)
      add_value(data->residual.data[i], &results[i]);
    activate(data, e.channel, &results[i]);
  }
}

/* The largest magnitude less than `reach` away along an axis, whose elements
   lie `step` apart. */
static void widen_axis(const algo_data *data, int axis, int64_t reach,
                       size_t step, const double *from, algo_result *results) {
  int64_t length = data->spec.problem.axes[axis].output;
  for (size_t i = 0; i < data->outputs; i++) {
    int64_t at = (int64_t)(i / step) % length;
    int64_t first = at < reach ? 0 : at - reach + 1;
    int64_t last = at + reach < length ? at + reach - 1 : length - 1;
    const double *line = from + (i - (size_t)at * step);
    for (int64_t j = first; j <= last; j++)
      results[i].magnitude =
          fmax(results[i].magnitude, line[(size_t)j * step]);
  }
}

void algo_data_widen(const algo_data *data, int64_t inputs,
                     algo_result *results) {
  const pph_problem *p = &data->spec.problem;
  double *from = malloc((data->outputs + 1) * sizeof *from);
  assert_non_null(from);
  size_t step =
      data->spec.output_channels_first ? 1 : (size_t)p->out_channels;
  for (int axis = PPH_WIDTH; axis >= PPH_HEIGHT; axis--) {
    int64_t stride =
        p->transposed ? p->axes[axis].stride : p->axes[axis].dilation;
    for (size_t i = 0; i < data->outputs; i++)
      from[i] = results[i].magnitude;
    widen_axis(data, axis, inputs * stride, step, from, results);
    step *= (size_t)p->axes[axis].output;
  }
  free(from);
}

/* Random cases */

/* 1 .. most, small ones more often. */
static int64_t draw_length(uint32_t *state, int64_t most) {
  uint32_t range = draw(state, (uint32_t)most) + 1;
  return 1 + draw(state, range);
}

/* What a descriptor says of one axis. */
enum { INPUT, KERNEL, STRIDE, DILATION, BEGIN, END, OUTPUT_PADDING, FIELDS };

static void draw_axis(uint32_t *state, const algo_bounds *bounds,
                      bool transposed, int64_t *v) {
  v[INPUT] = draw_length(state, bounds->input);
  v[KERNEL] = draw_length(state, bounds->kernel);
  v[STRIDE] = draw_length(state, bounds->stride);
  v[DILATION] = draw_length(state, bounds->dilation);
  int64_t span = (v[KERNEL] - 1) * v[DILATION];
  v[BEGIN] = draw_length(state, span + 2) - 1;
  v[END] = draw_length(state, span + 2) - 1;
  v[OUTPUT_PADDING] = transposed ? draw_length(state, v[STRIDE]) - 1 : 0;
}

/* Appends one field of all axes. */
static void print_field(char *text, size_t size, const char *name,
                        int64_t v[][FIELDS], int count, int field, char mark) {
  size_t length = strlen(text);
  for (int i = 0; i < count; i++, length = strlen(text))
    snprintf(text + length, size - length, "%s%d", i ? (char[2]){mark} : name,
             (int)v[i][field]);
}

/* Axes that are not there have length 1; a depth that is not is left out. */
static void draw_axes(uint32_t *state, const algo_bounds *bounds,
                      bool transposed, char *text, size_t size) {
  int64_t v[3][FIELDS];
  int count = bounds->axes == 3 ? 3 : 2;
  for (int i = 0; i < count; i++) {
    if (i >= count - (int)bounds->axes)
      draw_axis(state, bounds, transposed, v[i]);
    else
      memcpy(v[i], (int64_t[FIELDS]){1, 1, 1, 1}, sizeof v[i]);
  }
  print_field(text, size, " i", v, count, INPUT, 'x');
  print_field(text, size, " k", v, count, KERNEL, 'x');
  print_field(text, size, " s", v, count, STRIDE, 'x');
  print_field(text, size, " d", v, count, DILATION, 'x');
  print_field(text, size, " p", v, count, BEGIN, ',');
  print_field(text, size, ",", v, count, END, ',');
  print_field(text, size, " op", v, count, OUTPUT_PADDING, 'x');
}

enum { CHANNELS_FIRST = 3 };

static void set_flags(uint32_t flags, algo_case *test) {
  test->input_channels_first = flags & 1;
  test->output_channels_first = flags & 2;
  test->bias = flags & 4;
  test->residual = flags & 8;
  test->slopes = flags & 16;
  test->clamp = flags & 32;
}

algo_case algo_any_case(const char *problem, uint32_t seed) {
  uint32_t state = seed;
  for (int i = 0; i < 4; i++) /* near seeds begin alike */
    draw(&state, 2);
  algo_case test = {.problem = problem, .seed = seed};
  set_flags(draw(&state, 64), &test);
  return test;
}

algo_case algo_random_case(uint32_t seed, const algo_bounds *bounds, char *text,
                           size_t size) {
  uint32_t state = seed;
  for (int i = 0; i < 4; i++)
    draw(&state, 2);
  algo_case test = {.problem = text, .seed = seed};
  for (;;) {
    bool transposed =
        bounds->transposed && (!bounds->ordinary || draw(&state, 2) == 0);
    int64_t groups = bounds->group ? draw_length(&state, bounds->group) : 1;
    int64_t ins = draw_length(&state, bounds->in_channels);
    int64_t outs =
        bounds->equal ? ins : draw_length(&state, bounds->out_channels);
    snprintf(text, size, "%sf32 n%d g%d ci%d co%d", transposed ? "" : "conv ",
             (int)draw_length(&state, bounds->batch), (int)groups,
             (int)(groups * ins), (int)(groups * outs));
    draw_axes(&state, bounds, transposed, text, size);
    uint32_t flags = draw(&state, 64);
    set_flags(bounds->channels_last ? flags & ~CHANNELS_FIRST : flags, &test);
    pph_problem problem;
    if (pph_problem_parse(text, &problem, NULL) == PPH_OK &&
        problem.axes[0].output > 0 && problem.axes[1].output > 0 &&
        problem.axes[2].output > 0)
      return test;
  }
}
