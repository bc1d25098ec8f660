/* bench --op: every way to run one operator, verified and timed. */
#ifndef TOOLS_OPERATOR_BENCH_H
#define TOOLS_OPERATOR_BENCH_H

#include "geometry/problem.h"
#include "measure.h"
#include "options.h"

enum { MAX_CANDIDATES = 8 };

typedef struct bench_candidate {
  const char *name;
  double least, median; /* microseconds of the steps between layout changes */
  double worst;         /* largest |a-b| against the reference */
  bool verified;
} bench_candidate;

typedef struct operator_bench {
  pph_problem problem;
  double peak_gflops, memcpy_us, flops;
  uint32_t threads;
  bench_candidate candidates[MAX_CANDIDATES];
  uint32_t count, chosen;
} operator_bench;

/* Runs it: builds the operator as a graph of one node with random data, makes
   every candidate, compares each with the reference (double sums), times the
   right ones interleaved for options->seconds each. */
PPH_NODISCARD pph_status operator_bench_run(const tool_options *options,
                                            operator_bench *bench,
                                            pph_error *error);

#endif
