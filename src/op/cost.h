/* The cost model: a nominal core per processor level. Only ratios matter. */
#ifndef PPH_OP_COST_H
#define PPH_OP_COST_H

#include "op/algo.h"

/* Microseconds of `calls` calls of the GEMM kernel with tiles of rows x columns
   x depth, sums kept in registers, panels in cache. */
double pph_cost_gemm(pph_cpu cpu, double calls, double rows, double columns,
                     double depth);

/* Microseconds to touch `bytes` once: in the caches when they are at most
   `working_set` large, else in memory. */
double pph_cost_memory(double bytes, double working_set);

/* What a core has of the last level cache, far below what it says: bytes. */
enum { PPH_COST_SHARE = 16 << 20 };

/* Microseconds to read `bytes` of weights, together `working_set` large, evenly
   while others are multiplied: up to twice as fast as what is read and
   written. */
double pph_cost_weights(double bytes, double working_set);

/* The same with columns that come from level 2 in each call. */
double pph_cost_products(pph_cpu cpu, double calls, double rows,
                         double columns, double depth);

/* Microseconds of two things that go on at the same time: about the longer. */
double pph_cost_overlap(double a, double b);

/* Microseconds of `flops` additions and multiplications at full vectors. */
double pph_cost_flops(pph_cpu cpu, double flops);

#endif
