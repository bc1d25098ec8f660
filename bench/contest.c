/* What run.py calls. */
#include "contest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "measure.h"
#include "op/algo.h"

#define EXPORT __attribute__((visibility("default")))

static const bench_rival *const rivals[] = {
    &bench_rival_native,
    &bench_rival_xnnpack,
#if BENCH_ONEDNN
    &bench_rival_onednn,
#endif
};

typedef struct contender {
  const bench_rival *rival;
  const bench_case *one;
  void *state;
} contender;

EXPORT bench_case *contest_case(const char *descriptor, char *message);
EXPORT void contest_case_close(bench_case *one);
EXPORT const float *contest_data(const bench_case *one, int which,
                                 size_t *count);
EXPORT double contest_error(const bench_case *one, const float *output);
EXPORT contender *contest_open(const char *name, const bench_case *one,
                               const bench_options *options, char *message);
EXPORT double contest_run(contender *it);
EXPORT double contest_check(contender *it);
EXPORT void contest_describe(contender *it, char *text);
EXPORT void contest_close(contender *it);
EXPORT const char *contest_algorithm(size_t index);
EXPORT const char *contest_cpu(const char *wanted);
EXPORT double contest_peak(const char *cpu, double milliseconds);
EXPORT double contest_sustained(const char *cpu, double us, unsigned spans);
EXPORT double contest_memcpy(size_t bytes);

bench_case *contest_case(const char *descriptor, char *message) {
  return bench_case_create(descriptor, message);
}

void contest_case_close(bench_case *one) { bench_case_destroy(one); }

/* 0 the input, 1 the weights, 2 the bias. */
const float *contest_data(const bench_case *one, int which, size_t *count) {
  size_t channels = (size_t)one->problem.out_channels;
  *count = which == 0   ? one->input_count
           : which == 1 ? one->weight_count
                        : channels;
  return which == 0 ? one->input : which == 1 ? one->weights : one->bias;
}

double contest_error(const bench_case *one, const float *output) {
  return bench_case_error(one, output);
}

static const bench_rival *find_rival(const char *name) {
  for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++)
    if (strcmp(rivals[i]->name, name) == 0)
      return rivals[i];
  return NULL;
}

contender *contest_open(const char *name, const bench_case *one,
                        const bench_options *options, char *message) {
  contender made = {find_rival(name), one, NULL};
  if (!made.rival) {
    snprintf(message, BENCH_TEXT, "%s is not built in", name);
    return NULL;
  }
  made.state = made.rival->open(one, options, message);
  if (!made.state)
    return NULL;
  contender *it = malloc(sizeof *it);
  if (!it) {
    made.rival->close(made.state);
    snprintf(message, BENCH_TEXT, "out of memory");
    return NULL;
  }
  *it = made;
  return it;
}

double contest_run(contender *it) { return it->rival->run(it->state); }

/* E of the last run; negative: out of memory. */
double contest_check(contender *it) {
  float *output = malloc(it->one->output_count * sizeof(float));
  if (!output)
    return -1;
  it->rival->read(it->state, output);
  double worst = bench_case_error(it->one, output);
  free(output);
  return worst;
}

void contest_describe(contender *it, char *text) {
  snprintf(text, BENCH_TEXT, "{}");
  if (it->rival->describe)
    it->rival->describe(it->state, text);
}

void contest_close(contender *it) {
  it->rival->close(it->state);
  free(it);
}

/* The operator's algorithms in their order, then NULL. */
const char *contest_algorithm(size_t index) {
  size_t count;
  const pph_algo *const *list = pph_algo_list(&count);
  return index < count ? list[index]->name : NULL;
}

/* The processor level that `wanted` comes to; NULL for an unknown one. */
const char *contest_cpu(const char *wanted) {
  pph_cpu cpu;
  return pph_cpu_parse(wanted, &cpu) ? pph_cpu_name(pph_cpu_choose(cpu)) : NULL;
}

/* GFLOP/s of that level's vectors; 0 for an unknown one. */
double contest_peak(const char *wanted, double milliseconds) {
  pph_cpu cpu;
  return pph_cpu_parse(wanted, &cpu) ? measure_level_gflops(cpu, milliseconds)
                                     : 0;
}

/* The best of `spans` spans of `us` microseconds. */
double contest_sustained(const char *wanted, double us, unsigned spans) {
  pph_cpu cpu;
  return pph_cpu_parse(wanted, &cpu) ? measure_sustained_gflops(cpu, us, spans)
                                     : 0;
}

double contest_memcpy(size_t bytes) { return measure_memcpy(bytes); }
