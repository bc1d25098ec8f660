#include "algo_check.h"

#include <math.h>
#include <pthreadpool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

/* A case under check. Data lies at either end of its pages, for runs on one
   thread and on several. */
typedef struct checked_case {
  const pph_algo *algo;
  const algo_case *test;
  algo_data data[2];
  algo_result *results;
} checked_case;

enum { THREADS = 3 };

static const char *describe(const checked_case *check, pph_cpu cpu,
                            guarded_edge edge) {
  static char text[400];
  const algo_case *test = check->test;
  snprintf(text, sizeof text,
           "%s: %s, %s, seed %u, %d threads, first %d %d, bias %d, residual "
           "%d, slopes %d, clamp %d",
           check->algo->name, test->problem, pph_cpu_name(cpu), test->seed,
           edge == GUARDED_END ? 1 : THREADS, test->input_channels_first,
           test->output_channels_first, test->bias, test->residual,
           test->slopes, test->clamp);
  return text;
}

static void start(checked_case *check, algo_values values) {
  for (int edge = 0; edge < 2; edge++)
    algo_data_make(check->test, values, (guarded_edge)edge, &check->data[edge]);
  size_t outputs = check->data[0].outputs;
  check->results = malloc((outputs + 1) * sizeof *check->results);
  assert_non_null(check->results);
  algo_data_define(&check->data[0], check->results);
}

static void finish(checked_case *check) {
  free(check->results);
  for (int edge = 0; edge < 2; edge++)
    algo_data_drop(&check->data[edge]);
}

/* Runs and returns the output. */
static guarded run(const checked_case *check, pph_cpu cpu,
                   pph_accuracy accuracy, guarded_edge edge) {
  const algo_data *data = &check->data[edge];
  const pph_algo *algo = check->algo;
  const char *name = describe(check, cpu, edge);
  pph_conv_spec spec = data->spec;
  spec.cpu = cpu;
  spec.accuracy = accuracy;
  spec.threads = edge == GUARDED_END ? 1 : THREADS;
  pph_allocator allocator = guarded_allocator();
  pph_heap heap;
  pph_heap_init(&heap, &allocator, 0);
  pph_algo_plan plan = {.algo = algo};
  pph_error error;
  if (algo->prepare(algo, &spec, &heap, &plan, &error) != PPH_OK)
    fail_msg("%s: %s", name, error.message);
  assert_true(plan.thread_bytes <= 1 << 20);
  assert_int_equal(plan.thread_bytes % 64, 0);
  guarded workspace = guarded_make(
      plan.thread_bytes / sizeof(float) * spec.threads, GUARDED_END);
  guarded output = guarded_make(data->outputs, edge);
  pph_thread_pool *pool = NULL; /* libpthreadpool's own has no cap */
  if (spec.threads > 1)
    assert_non_null(pool = pthreadpool_create(spec.threads));
  algo->run(&plan, &spec,
            &(pph_conv_tensors){.input = data->input.data,
                                .residual = data->residual.data,
                                .output = output.data,
                                .workspace = workspace.data,
                                .pool = pool});
  pph_thread_pool_destroy(pool);
  if (!guarded_intact(&workspace) || !guarded_intact(&output))
    fail_msg("%s: touched outside the workspace or the output", name);
  guarded_drop(&workspace);
  if (algo->release)
    algo->release(&heap, &plan);
  assert_int_equal(heap.used, 0);
  return output;
}

/* Same bits, but for the sign of 0. */
static bool is_same(float a, float b) {
  return memcmp(&a, &b, sizeof a) == 0 || (a == 0 && b == 0);
}

static bool is_supported(const checked_case *check, pph_cpu cpu,
                         pph_accuracy accuracy) {
  pph_conv_spec spec = check->data[0].spec;
  spec.cpu = cpu;
  spec.accuracy = accuracy;
  return check->algo->supports(check->algo, &spec);
}

static void check_level(const checked_case *check, pph_cpu cpu) {
  for (int edge = 0; edge < 2; edge++) {
    guarded output = run(check, cpu, PPH_ACCURACY_EXACT, (guarded_edge)edge);
    for (size_t i = 0; i < output.count; i++)
      if (!is_same(output.data[i], check->results[i].exact))
        fail_msg("%s: element %zu is %.9g, not %.9g",
                 describe(check, cpu, (guarded_edge)edge), i,
                 (double)output.data[i], (double)check->results[i].exact);
    guarded_drop(&output);
  }
}

static bool check_levels(const pph_algo *algo, const algo_case *test,
                         pph_cpu first, pph_cpu last, algo_values values) {
  checked_case check = {.algo = algo, .test = test};
  bool supported = true;
  start(&check, values);
  for (pph_cpu cpu = first; cpu <= last && supported; cpu++) {
    if (pph_cpu_choose(cpu) != cpu)
      continue;
    supported = is_supported(&check, cpu, PPH_ACCURACY_EXACT);
    if (supported)
      check_level(&check, cpu);
  }
  finish(&check);
  return supported;
}

bool algo_check(const pph_algo *algo, const algo_case *test) {
  return check_levels(algo, test, PPH_CPU_SCALAR, PPH_CPU_SCALAR,
                      ALGO_INTEGERS) &&
         check_levels(algo, test, PPH_CPU_AVX2, PPH_CPU_NEON, ALGO_UNIFORM);
}

static void check_supported(const pph_algo *algo, const algo_case *test) {
  if (!algo_check(algo, test))
    fail_msg("%s: %s, seed %u: not supported", algo->name, test->problem,
             test->seed);
}

void algo_check_known(const pph_algo *algo, const char *const *problems,
                      size_t count, bool channels_last) {
  for (size_t i = 0; i < count; i++)
    for (uint32_t order = 0; order < 4; order++) {
      algo_case test = algo_any_case(problems[i], 4 * (uint32_t)i + order);
      test.input_channels_first = !channels_last && order & 1;
      test.output_channels_first = !channels_last && order & 2;
      check_supported(algo, &test);
    }
}

void algo_check_random(const pph_algo *algo, const algo_bounds *bounds,
                       uint32_t count) {
  for (uint32_t seed = 1; seed <= count; seed++) {
    char text[240];
    algo_case test = algo_random_case(seed, bounds, text, sizeof text);
    check_supported(algo, &test);
  }
}

bool algo_check_integers(const pph_algo *algo, const algo_case *test) {
  return check_levels(algo, test, PPH_CPU_SCALAR, PPH_CPU_NEON, ALGO_INTEGERS);
}

static double find_error(const checked_case *check, pph_cpu cpu) {
  guarded one = run(check, cpu, PPH_ACCURACY_NORMAL, GUARDED_END);
  guarded more = run(check, cpu, PPH_ACCURACY_NORMAL, GUARDED_BEGIN);
  double most = 0;
  for (size_t i = 0; i < one.count; i++) {
    const algo_result *right = &check->results[i];
    if (!is_same(one.data[i], more.data[i]))
      fail_msg("%s: element %zu is %.9g, but %.9g on one thread",
               describe(check, cpu, GUARDED_BEGIN), i, (double)more.data[i],
               (double)one.data[i]);
    double error = fabs((double)one.data[i] - right->value);
    if (error > 0 || isnan(error))
      error /= right->magnitude / (1 << 23);
    most = error <= most ? most : error; /* not a number is kept */
  }
  guarded_drop(&one);
  guarded_drop(&more);
  return most;
}

static double find_errors(const checked_case *check) {
  double most = -1;
  for (pph_cpu cpu = PPH_CPU_SCALAR; cpu <= PPH_CPU_NEON; cpu++)
    if (pph_cpu_choose(cpu) == cpu &&
        is_supported(check, cpu, PPH_ACCURACY_NORMAL)) {
      double error = find_error(check, cpu);
      most = error <= most ? most : error;
    }
  return most;
}

double algo_error(const pph_algo *algo, const algo_case *test) {
  checked_case check = {.algo = algo, .test = test};
  start(&check, ALGO_NORMAL);
  double most = find_errors(&check);
  finish(&check);
  return most;
}

double algo_error_uneven(const pph_algo *algo, const algo_case *test,
                         int64_t inputs) {
  checked_case check = {.algo = algo, .test = test};
  start(&check, ALGO_SPIKES);
  algo_data_widen(&check.data[0], inputs, check.results);
  double most = find_errors(&check);
  finish(&check);
  return most;
}
