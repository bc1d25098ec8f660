/* Runs one algorithm on one problem and compares with the definition, bit for
   bit. */
#ifndef OP_CASE_H
#define OP_CASE_H

#include "op/algo.h"
#include "test_support.h"

/* What random problems may be; the callers' ranges. */
typedef struct op_case_range {
  int64_t groups, ins, outs; /* most groups, and most channels per group */
  bool equal;                /* outs as ins */
} op_case_range;

/* Fails with the descriptor, level and threads unless `algo` computes the
   problem in the order of EXACT; `seed` decides values and epilogue. */
void op_case_check(const pph_algo *algo, const char *text, uint64_t seed);

/* A random descriptor that resolves to outputs of at least one element. */
void op_case_random(const op_case_range *range, test_random *random, char *text,
                    size_t size);

#endif
