/* What the operators (conv_transpose.h, conv.h) and sessions share: accuracy,
   processor levels, activations, and how an operator explains itself. */
#ifndef POLYPHASE_OPERATOR_H
#define POLYPHASE_OPERATOR_H

#include <stdbool.h>

#include "polyphase/memory.h"
#include "polyphase/status.h"
#include "polyphase/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far results may be from the exact sum. With E = |error| / (2^-23 * S)
   per element, S its sum |x||w|, or for an algorithm that filters (Winograd)
   the largest such sum within a tile's reach (below):
   EXACT: direct algorithms only, one order of summation (below): the same
   bits for every algorithm, thread count and processor level that has a fused
   multiply-add, and no rounding at all on small integers.
   HIGH: E at most 4, which is what a direct f32 kernel has.
   NORMAL: E at most 24.
   HIGH and NORMAL may filter, which computes outputs by tiles: roundings of a
   tile's largest input stay in all of its outputs, and NaN and infinity spread
   over them. A tile reads at most 8 input positions along an axis, 6 x 6 where
   it has two axes (of kernels of 4 and more taps: 8 along one axis for each
   piece of 4 or 5); its reach is the outputs of the same image and channel less
   than so many input positions apart (times the stride where transposed, the
   dilation where not). On even data that sum is about the element's own. On
   uneven data, one bright pixel beside zeros, an output's own sum may be
   nothing: its E against that has no bound. EXACT and the direct algorithms
   keep to their own sum.
   The order of EXACT, per element: from 0, one fused multiply-add for each tap
   and input channel; taps by increasing input position (depth, row, column),
   channels inside a tap; then + bias, + residual, activation.
   Numbers below 1.2e-38 in size count as 0 at every level. */
typedef enum pph_accuracy {
  PPH_ACCURACY_NORMAL = 0, /* the default */
  PPH_ACCURACY_HIGH = 1,
  PPH_ACCURACY_EXACT = 2
} pph_accuracy;

/* Processor levels, to turn features down. A level that the processor does
   not have falls to the best below it that it has. */
typedef enum pph_cpu {
  PPH_CPU_BEST = 0, /* what the processor has; the default */
  PPH_CPU_SCALAR = 1,
  PPH_CPU_AVX2 = 2, /* with FMA */
  PPH_CPU_AVX512 = 3,
  PPH_CPU_NEON = 4
} pph_cpu;

/* What happens to each sum y after bias and residual. */
typedef enum pph_activation {
  PPH_ACTIVATION_NONE = 0,
  PPH_ACTIVATION_CLAMP = 1,      /* min(max(y, low), high) */
  PPH_ACTIVATION_LEAKY_RELU = 2, /* y < 0 ? slope * y : y */
  PPH_ACTIVATION_PRELU = 3       /* the same, a slope per output channel */
} pph_activation;

/* A pool of threads that operators run on: an object of libpthreadpool, whose
   functions may be used on it. One run at a time. */
typedef struct pthreadpool pph_thread_pool;

/* `threads` at least 1, at most 256; 0: one per processor. Never more than the
   processors that the calling thread may use (its affinity): further ones would
   only make the others wait. *pool belongs to the caller. Errors:
   PPH_INVALID_ARGUMENT, PPH_OUT_OF_MEMORY. */
PPH_NODISCARD pph_status pph_thread_pool_create(uint32_t threads,
                                                pph_thread_pool **pool,
                                                pph_error *error);
/* NULL is allowed. */
void pph_thread_pool_destroy(pph_thread_pool *pool);

/* What an operator does for the shape it was last reshaped to. Texts are
   static. */
typedef struct pph_operator_info {
  const char *algorithm;  /* "gather", "filtered.w3", ... */
  const char *kernel;     /* "pph_f32_gemm_14x32__avx512" */
  double error_bound;     /* E, see pph_accuracy; of a filtered.* algorithm
                             against the largest sum within a tile's reach */
  double useful_flops;    /* 2 * multiply-adds of the definition */
  double done_flops;      /* 2 * multiply-adds that are executed */
  double moved_bytes;     /* input, output and weights, once each */
  double estimated_us;    /* what the cost model expects, one thread */
  size_t packed_bytes;    /* weights in the algorithm's form */
  size_t workspace_bytes; /* for all threads */
} pph_operator_info;

#ifdef __cplusplus
}
#endif

#endif
