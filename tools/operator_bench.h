/* bench --op: every way to run one operator, verified and timed. */
#ifndef TOOLS_OPERATOR_BENCH_H
#define TOOLS_OPERATOR_BENCH_H

#include "geometry/problem.h"
#include "measure.h"
#include "options.h"

enum { MAX_CANDIDATES = 32 };

typedef struct bench_candidate {
  char name[48];
  const char *kernel;   /* NULL for XNNPACK, which tells neither it nor E */
  double error_bound;   /* E, see pph_accuracy */
  double least, median; /* microseconds, without layout changes at the edges */
  double worst;         /* largest |a-b| against the reference */
  bool verified;
} bench_candidate;

typedef struct operator_bench {
  pph_problem problem;
  double peak_gflops, memcpy_us, flops;
  uint32_t threads;
  bench_candidate candidates[MAX_CANDIDATES];
  uint32_t count, fastest;
  char chosen[48]; /* what the native operator takes by its cost model */
} operator_bench;

/* Runs it: builds the operator as a graph of one node with random data for
   XNNPACK, and by every native algorithm that is accurate enough; compares each
   candidate with the reference (double sums), times the right ones interleaved
   for options->seconds each. */
PPH_NODISCARD pph_status operator_bench_run(const tool_options *options,
                                            operator_bench *bench,
                                            pph_error *error);

#endif
