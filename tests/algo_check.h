/* Runs a row of the list of algorithms against the reference row. */
#ifndef PPH_TESTS_ALGO_CHECK_H
#define PPH_TESTS_ALGO_CHECK_H

#include "op/algo.h"

typedef struct algo_case {
  const char *problem; /* geometry/problem.h */
  bool input_channels_first, output_channels_first;
  bool bias, residual, slopes, clamp;
  uint32_t seed;
} algo_case;

/* Prints the case and what differs, and fails the test, unless `algo` computes
   it with the reference's bits (on integers where a multiply-add rounds twice),
   at every processor level, on 1 and 3 threads, and touches nothing outside.
   False when it does not support the problem. */
bool algo_check(const pph_algo *algo, const algo_case *test);

/* The same on small integers at every level: for algorithms that are not
   direct, but lose nothing on them. */
bool algo_check_integers(const pph_algo *algo, const algo_case *test);

/* The largest E, |error| / (2^-23 * sum |x||w|), on normally distributed data,
   at every level, on 1 and 3 threads, which must give the same bits. Fails the
   test when something outside is touched; -1 when `algo` does not support the
   problem. Channels last only. */
double algo_error(const pph_algo *algo, const algo_case *test);

/* The most of everything, per axis; small values are drawn more often. */
typedef struct algo_bounds {
  uint32_t axes; /* 1 to 3 */
  bool transposed, ordinary;
  int64_t group; /* 0: 1; channels are those of one group */
  int64_t batch, in_channels, out_channels, input, kernel, stride, dilation;
} algo_bounds;
/* A random case; its problem is written to `text`. */
algo_case algo_random_case(uint32_t seed, const algo_bounds *bounds, char *text,
                           size_t size);

#endif
