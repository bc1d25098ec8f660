#include "algo_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op/algo_rows.h"

enum { GUARD = 64 };

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)*state * below) >> 32);
}

/* `count` floats between guards of 64 bytes; freed by drop. */
static float *take(size_t count) {
  size_t bytes = (count * sizeof(float) + 63) / 64 * 64 + 2 * GUARD;
  char *block = aligned_alloc(64, bytes);
  assert_non_null(block);
  memset(block, 0xab, bytes);
  return (float *)(void *)(block + GUARD);
}

static void drop(float *values) {
  if (values)
    free((char *)values - GUARD);
}

static bool is_guarded(const float *values, size_t count) {
  const unsigned char *before = (const unsigned char *)values - GUARD;
  const unsigned char *after = (const unsigned char *)(values + count);
  for (size_t i = 0; i < GUARD; i++)
    if (before[i] != 0xab || after[i] != 0xab)
      return false;
  return true;
}

static float *fill(size_t count, uint32_t *state, bool integers) {
  float *values = take(count);
  for (size_t i = 0; i < count; i++)
    values[i] = integers ? (float)draw(state, 9) - 4
                         : (float)draw(state, 1u << 20) / (1 << 19) - 1;
  return values;
}

typedef struct algo_data {
  pph_conv_spec spec;
  float *input, *weights, *bias, *slopes, *residual, *expected;
  size_t outputs;
} algo_data;

static void make_data(const algo_case *test, pph_cpu cpu, bool integers,
                      algo_data *data) {
  uint32_t state = test->seed;
  pph_conv_spec *spec = &data->spec;
  *spec = (pph_conv_spec){.input_channels_first = test->input_channels_first,
                          .output_channels_first = test->output_channels_first,
                          .residual = test->residual,
                          .low = test->clamp ? -1 : -INFINITY,
                          .high = test->clamp ? 2 : INFINITY,
                          .accuracy = PPH_ACCURACY_EXACT,
                          .cpu = cpu};
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
  data->input = fill(inputs, &state, integers);
  data->weights = fill(weights, &state, integers);
  data->bias = test->bias ? fill(outs, &state, integers) : NULL;
  data->slopes = test->slopes ? fill(outs, &state, integers) : NULL;
  data->residual =
      test->residual ? fill(data->outputs, &state, integers) : NULL;
  spec->weights = data->weights;
  spec->bias = data->bias;
  spec->slopes = data->slopes;
  data->expected = take(data->outputs);
}

static void drop_data(algo_data *data) {
  drop(data->input);
  drop(data->weights);
  drop(data->bias);
  drop(data->slopes);
  drop(data->residual);
  drop(data->expected);
}

static void run_algo(const pph_algo *algo, const algo_data *data,
                     uint32_t threads, const char *name, float *output) {
  pph_conv_spec spec = data->spec;
  spec.threads = threads;
  pph_heap heap;
  pph_heap_init(&heap, NULL, 0);
  pph_algo_plan plan = {.algo = algo};
  pph_error error;
  if (algo->prepare(algo, &spec, &heap, &plan, &error) != PPH_OK)
    fail_msg("%s: %s", name, error.message);
  assert_true(plan.thread_bytes <= 1 << 20);
  assert_int_equal(plan.thread_bytes % 64, 0);
  size_t floats = plan.thread_bytes / sizeof(float) * threads;
  float *workspace = take(floats);
  pph_thread_pool *pool = NULL;
  if (threads > 1)
    assert_int_equal(pph_thread_pool_create(threads, &pool, NULL), PPH_OK);
  algo->run(&plan, &spec,
            &(pph_conv_tensors){.input = data->input,
                                .residual = data->residual,
                                .output = output,
                                .workspace = workspace,
                                .pool = pool});
  pph_thread_pool_destroy(pool);
  if (!is_guarded(workspace, floats))
    fail_msg("%s: touched outside the workspace", name);
  drop(workspace);
  if (algo->release)
    algo->release(&heap, &plan);
  assert_int_equal(heap.used, 0);
}

static void compare(const algo_data *data, const float *output,
                    const char *name) {
  if (!is_guarded(output, data->outputs))
    fail_msg("%s: touched outside the output", name);
  for (size_t i = 0; i < data->outputs; i++)
    if (memcmp(&output[i], &data->expected[i], sizeof(float)) != 0 &&
        !(output[i] == 0 && data->expected[i] == 0))
      fail_msg("%s: element %zu is %.9g, not %.9g", name, i, (double)output[i],
               (double)data->expected[i]);
}

static void check_level(const pph_algo *algo, const algo_case *test,
                        const algo_data *data) {
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    char name[400];
    snprintf(name, sizeof name,
             "%s: %s, %s, seed %u, %u threads, first %d %d, bias %d, "
             "residual %d, slopes %d, clamp %d",
             algo->name, test->problem, pph_cpu_name(data->spec.cpu),
             test->seed, threads, test->input_channels_first,
             test->output_channels_first, test->bias, test->residual,
             test->slopes, test->clamp);
    float *output = take(data->outputs);
    run_algo(algo, data, threads, name, output);
    compare(data, output, name);
    drop(output);
  }
}

/* Levels that share the data: all with a fused multiply-add, or none. */
static bool check_levels(const pph_algo *algo, const algo_case *test,
                         const pph_cpu *levels, size_t count, bool integers) {
  bool supported = true;
  algo_data data = {0};
  for (size_t i = 0; i < count && supported; i++) {
    if (pph_cpu_choose(levels[i]) != levels[i])
      continue;
    if (!data.expected) {
      make_data(test, levels[i], integers, &data);
      run_algo(&pph_algo_reference, &data, 1, test->problem, data.expected);
    }
    data.spec.cpu = levels[i];
    supported = algo->supports(algo, &data.spec);
    if (supported)
      check_level(algo, test, &data);
  }
  drop_data(&data);
  return supported;
}

static const pph_cpu all_levels[] = {PPH_CPU_SCALAR, PPH_CPU_AVX2,
                                     PPH_CPU_AVX512, PPH_CPU_NEON};

bool algo_check(const pph_algo *algo, const algo_case *test) {
  return check_levels(algo, test, all_levels, 1, true) &&
         check_levels(algo, test, all_levels + 1, 3, false);
}

bool algo_check_integers(const pph_algo *algo, const algo_case *test) {
  return check_levels(algo, test, all_levels, 4, true);
}

/* Errors */

static void make_normal(float *values, size_t count, uint32_t *state) {
  for (size_t i = 0; values && i < count; i++) {
    double u = (draw(state, 1u << 24) + 0.5) / (1 << 24);
    double v = draw(state, 1u << 24) / (double)(1 << 24);
    values[i] = (float)(sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * v));
  }
}

/* The exact sum of one output, and the sum of what its terms can be off by. */
typedef struct exact_sum {
  double value, magnitude;
} exact_sum;

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

static void add_tap(const algo_data *data, int64_t pixel, int64_t tap,
                    int64_t taps, int64_t out, exact_sum *sum) {
  const pph_problem *p = &data->spec.problem;
  int64_t ins = p->in_channels / p->group, outs = p->out_channels / p->group;
  int64_t group = out / outs;
  for (int64_t in = 0; in < ins; in++) {
    int64_t at =
        p->transposed ? (group * ins + in) * outs + out % outs : out * ins + in;
    double term =
        (double)data->input[pixel * p->in_channels + group * ins + in] *
        (double)data->weights[at * taps + tap];
    sum->value += term;
    sum->magnitude += fabs(term);
  }
}

/* `place`: image, depth, height, width. */
static exact_sum find_sum(const algo_data *data, const int64_t *place,
                          int64_t out) {
  const pph_problem *p = &data->spec.problem;
  const pph_axis *axes = p->axes;
  int64_t taps = axes[0].kernel * axes[1].kernel * axes[2].kernel;
  exact_sum sum = {0, 0};
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t rest[3] = {tap / axes[2].kernel / axes[1].kernel,
                       tap / axes[2].kernel % axes[1].kernel,
                       tap % axes[2].kernel};
    int64_t pixel = place[0];
    bool inside = true;
    for (int i = 0; i < 3; i++) {
      int64_t at = find_input(&axes[i], p->transposed, place[i + 1], rest[i]);
      inside = inside && at >= 0;
      pixel = pixel * axes[i].input + at;
    }
    if (inside)
      add_tap(data, pixel, tap, taps, out, &sum);
  }
  return sum;
}

static double finish_sum(const algo_data *data, int64_t out, size_t at,
                         exact_sum *sum) {
  double value = sum->value;
  if (data->bias) {
    value += (double)data->bias[out];
    sum->magnitude += fabs((double)data->bias[out]);
  }
  if (data->residual) {
    value += (double)data->residual[at];
    sum->magnitude += fabs((double)data->residual[at]);
  }
  if (data->slopes && value < 0) {
    value *= (double)data->slopes[out];
    sum->magnitude *= fmax(1, fabs((double)data->slopes[out]));
  }
  value = fmax(value, (double)data->spec.low);
  return fmin(value, (double)data->spec.high);
}

static void find_sums(const algo_data *data, double *values,
                      double *magnitudes) {
  const pph_problem *p = &data->spec.problem;
  const pph_axis *axes = p->axes;
  for (size_t i = 0; i < data->outputs; i++) {
    int64_t pixel = (int64_t)i / p->out_channels;
    int64_t out = (int64_t)i % p->out_channels, place[4];
    for (int axis = 2; axis >= 0; axis--) {
      place[axis + 1] = pixel % axes[axis].output;
      pixel /= axes[axis].output;
    }
    place[0] = pixel;
    exact_sum sum = find_sum(data, place, out);
    values[i] = finish_sum(data, out, i, &sum);
    magnitudes[i] = sum.magnitude;
  }
}

static double compare_errors(const algo_data *data, const float *output,
                             const double *values, const double *magnitudes) {
  double most = 0;
  for (size_t i = 0; i < data->outputs; i++) {
    double error = fabs((double)output[i] - values[i]);
    if (error > 0 || isnan(error))
      error /= magnitudes[i] / (1 << 23);
    most = error <= most ? most : error; /* not a number is kept */
  }
  return most;
}

static void make_all_normal(const algo_case *test, algo_data *data) {
  const pph_problem *p = &data->spec.problem;
  uint32_t state = test->seed * 77 + 1;
  size_t inputs = (size_t)(p->batch * p->in_channels);
  size_t outs = (size_t)p->out_channels;
  size_t weights = (size_t)(p->in_channels / p->group) * outs;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    inputs *= (size_t)p->axes[i].input;
    weights *= (size_t)p->axes[i].kernel;
  }
  make_normal(data->input, inputs, &state);
  make_normal(data->weights, weights, &state);
  make_normal(data->bias, outs, &state);
  make_normal(data->slopes, outs, &state);
  make_normal(data->residual, data->outputs, &state);
}

/* On 1 and 3 threads; the result is in data->expected. */
static double find_error(const pph_algo *algo, const algo_case *test,
                         algo_data *data, const double *values,
                         const double *magnitudes) {
  char name[300];
  snprintf(name, sizeof name, "%s: %s, %s, seed %u", algo->name, test->problem,
           pph_cpu_name(data->spec.cpu), test->seed);
  float *output = take(data->outputs);
  run_algo(algo, data, 1, name, data->expected);
  run_algo(algo, data, 3, name, output);
  compare(data, output, name);
  double error = compare_errors(data, output, values, magnitudes);
  drop(output);
  return error;
}

double algo_error(const pph_algo *algo, const algo_case *test) {
  algo_data data = {0};
  double most = -1;
  make_data(test, PPH_CPU_SCALAR, false, &data);
  make_all_normal(test, &data);
  data.spec.accuracy = PPH_ACCURACY_NORMAL;
  double *values = calloc(2 * data.outputs, sizeof *values);
  assert_non_null(values);
  for (pph_cpu cpu = PPH_CPU_SCALAR; cpu <= PPH_CPU_NEON; cpu++) {
    data.spec.cpu = cpu;
    if (pph_cpu_choose(cpu) != cpu || !algo->supports(algo, &data.spec))
      continue;
    if (most < 0)
      find_sums(&data, values, values + data.outputs);
    double error = find_error(algo, test, &data, values, values + data.outputs);
    most = error <= most ? most : error;
  }
  free(values);
  drop_data(&data);
  return most;
}

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
    int64_t outs = draw_length(&state, bounds->out_channels);
    snprintf(text, size, "%sf32 n%d g%d ci%d co%d", transposed ? "" : "conv ",
             (int)draw_length(&state, bounds->batch), (int)groups,
             (int)(groups * ins), (int)(groups * outs));
    draw_axes(&state, bounds, transposed, text, size);
    uint32_t flags = draw(&state, 64);
    test.input_channels_first = flags & 1;
    test.output_channels_first = flags & 2;
    test.bias = flags & 4;
    test.residual = flags & 8;
    test.slopes = flags & 16;
    test.clamp = flags & 32;
    pph_problem problem;
    if (pph_problem_parse(text, &problem, NULL) == PPH_OK &&
        problem.axes[0].output > 0 && problem.axes[1].output > 0 &&
        problem.axes[2].output > 0)
      return test;
  }
}
