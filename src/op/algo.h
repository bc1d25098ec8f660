/* The algorithms of convolutions and transposed convolutions: rows of one
   ordered list (algo_list.c). An operator asks every row whether it supports
   the problem within the accuracy asked for, and takes the one that costs
   least; one beyond HIGH's E must be cheaper by 3 % to be taken. */
#ifndef PPH_OP_ALGO_H
#define PPH_OP_ALGO_H

#include "base/cpu.h"
#include "base/heap.h"
#include "geometry/problem.h"
#include "polyphase/conv_transpose.h"

/* What is to be computed, checked and complete. Pointers belong to the
   operator. */
typedef struct pph_conv_spec {
  pph_problem problem; /* lengths resolved for one input shape */
  bool input_channels_first, output_channels_first, residual;
  const float *weights; /* ONNX's order, see conv_transpose.h and conv.h */
  const float *bias;    /* out_channels, or NULL */
  const float *slopes;  /* out_channels (LEAKY_RELU too), or NULL */
  float low, high;      /* clamp; -infinity, infinity: none */
  pph_accuracy accuracy;
  pph_cpu cpu;      /* a level the processor has */
  uint32_t threads; /* at least 1 */
} pph_conv_spec;

/* What an algorithm expects of itself. */
typedef struct pph_algo_cost {
  double us;           /* one thread, from the model in cost.h */
  double done_flops;   /* 2 * multiply-adds executed */
  size_t packed_bytes; /* of the weights' form */
} pph_algo_cost;

/* A prepared algorithm. `state` is the algorithm's. */
typedef struct pph_algo_plan {
  const struct pph_algo *algo;
  void *state;
  size_t thread_bytes; /* workspace per thread, a multiple of 64 */
  const char *kernel;  /* name of the main kernel */
} pph_algo_plan;

typedef struct pph_algo {
  const char *name;
  double error_bound; /* E of pph_accuracy, in the worst case of the tests */
  bool direct;        /* sums in the order that EXACT promises */
  int32_t variant;    /* the algorithm's own */
  /* Whether it computes this problem. Accuracy is checked by the caller. */
  bool (*supports)(const struct pph_algo *algo, const pph_conv_spec *spec);
  pph_algo_cost (*cost)(const struct pph_algo *algo,
                        const pph_conv_spec *spec);
  /* Packs weights into plan->state. On failure nothing is left behind. */
  pph_status (*prepare)(const struct pph_algo *algo, const pph_conv_spec *spec,
                        pph_heap *heap, pph_algo_plan *plan, pph_error *error);
  /* No allocation; workspace of thread_bytes * spec->threads. */
  void (*run)(const pph_algo_plan *plan, const pph_conv_spec *spec,
              const pph_conv_tensors *tensors);
  void (*release)(pph_heap *heap, pph_algo_plan *plan);
} pph_algo;

/* THE list, in the order in which equals are preferred. */
const pph_algo *const *pph_algo_list(size_t *count);

/* Whether `algo` may be used: supports, and accurate enough. */
bool pph_algo_allowed(const pph_algo *algo, const pph_conv_spec *spec);

/* Bounds of pph_accuracy. */
#define PPH_HIGH_BOUND 4.0
#define PPH_NORMAL_BOUND 24.0

/* Runs body(context, worker, block) for every block in [0, blocks), on at most
   `threads` workers numbered from 0; one worker never runs two blocks at once,
   so each may have its part of the workspace. Which worker takes a block is
   not determined: results must not depend on it. */
void pph_algo_parallelize(pph_thread_pool *pool, uint32_t threads,
                          size_t blocks,
                          void (*body)(void *context, uint32_t worker,
                                       size_t block),
                          void *context);

#endif
