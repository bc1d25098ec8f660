/* The benchmark's C side: one problem with data and the exact result, and the
   rivals that are C libraries. run.py loads it (contest.c has what is
   exported) and lets these and the Python engines take turns. */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "geometry/problem.h"

enum { BENCH_TEXT = 512 }; /* bytes of every message and description */

/* A problem of two dimensions with random data in ONNX's orders (NCHW). */
typedef struct bench_case {
  pph_problem problem;
  size_t input_count, weight_count, output_count;
  float *input, *weights, *bias;
  double *expected, *magnitude; /* sums of products, and of their sizes */
} bench_case;

/* NULL with a message. */
bench_case *bench_case_create(const char *descriptor, char *message);
void bench_case_destroy(bench_case *one);

/* The largest E of `output` (NCHW): |error| / (2^-23 * sum |x||w|). */
double bench_case_error(const bench_case *one, const float *output);

/* channels-first to channels-last and back: [n, rows, columns] to
   [n, columns, rows]. */
void bench_transpose(const float *from, float *to, size_t n, size_t rows,
                     size_t columns);

/* How a rival is to run; what does not concern it is not looked at. */
typedef struct bench_options {
  const char *accuracy;  /* "exact", "high", "normal" */
  const char *algorithm; /* NULL: the operator's own choice */
  const char *cpu;       /* "best", ... */
  const char *form;      /* of XNNPACK: "deconvolution", "polyphase" */
  uint32_t threads;
  const void *model; /* the problem as an ONNX file */
  size_t model_bytes;
} bench_options;

typedef struct bench_rival {
  const char *name;
  /* NULL with a message when it cannot run the problem. */
  void *(*open)(const bench_case *one, const bench_options *options,
                char *message);
  double (*run)(void *state);               /* microseconds; negative: failed */
  void (*read)(void *state, float *output); /* NCHW, after a run */
  /* JSON about itself; may be NULL. */
  void (*describe)(void *state, char *text);
  void (*close)(void *state);
} bench_rival;

extern const bench_rival bench_rival_native;
extern const bench_rival bench_rival_xnnpack;
#if BENCH_ONEDNN
extern const bench_rival bench_rival_onednn;
#endif

#endif
