/* Runs a row of the list of algorithms against the definition. */
#ifndef PPH_TESTS_ALGO_CHECK_H
#define PPH_TESTS_ALGO_CHECK_H

#include "algo_case.h"

/* Prints the case and what differs, and fails the test, unless `algo` computes
   it with EXACT's bits (on integers where a multiply-add rounds twice), at
   every processor level, on 1 and 3 threads, and touches nothing outside.
   False when it does not support the problem. */
bool algo_check(const pph_algo *algo, const algo_case *test);

/* Fails the test unless `algo` supports all of these problems and computes
   them, in all memory orders (or channels last alone, as often), with an
   epilogue as the seed decides. */
void algo_check_known(const pph_algo *algo, const char *const *problems,
                      size_t count, bool channels_last);
/* The same for `count` random ones. */
void algo_check_random(const pph_algo *algo, const algo_bounds *bounds,
                       uint32_t count);

/* algo_check on small integers at every level: for algorithms that are not
   direct, but lose nothing on them. */
bool algo_check_integers(const pph_algo *algo, const algo_case *test);

/* The largest E, |error| / (2^-23 * sum |x||w|), on normally distributed data,
   at every level, on 1 and 3 threads, which must give the same bits. Fails the
   test when something outside is touched; -1 when `algo` does not support the
   problem. */
double algo_error(const pph_algo *algo, const algo_case *test);

/* The same on few large pixels among tiny ones and zeros, where sum |x||w| is
   the largest within reach of a tile that reads `inputs` along an axis
   (pph_accuracy). */
double algo_error_uneven(const pph_algo *algo, const algo_case *test,
                         int64_t inputs);

#endif
