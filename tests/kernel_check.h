/* Checks of kernels, one per family, against plain loops. All data lies at
   pages that must not be touched. */
#ifndef PPH_TESTS_KERNEL_CHECK_H
#define PPH_TESTS_KERNEL_CHECK_H

#include "guarded.h"
#include "kernel/epilogue.h"
#include "kernel/kernel_table.h"
#include "test_support.h"

enum { KERNEL_SLOTS = 24, KERNEL_FLOATS = 1 << 15 };

/* Where one kernel's data lies: in every slot room at either edge. */
typedef struct kernel_check {
  const pph_kernel *kernel;
  test_random random;
  guarded_edge edge;
  guarded slots[KERNEL_SLOTS][2];
  float expected[KERNEL_FLOATS];
} kernel_check;

/* `count` random values, at the edge, until the slot's next call. */
float *kernel_data(kernel_check *check, int slot, size_t count);
int64_t kernel_draw(kernel_check *check, int64_t low, int64_t high);

/* a * b + c as the kernel's level rounds it. */
float kernel_fma(const kernel_check *check, float a, float b, float c);

/* Parts of an epilogue as drawn, for `columns` columns; `residual` is for
   `stored` floats. Uses the last three slots. */
pph_epilogue kernel_epilogue(kernel_check *check, size_t columns,
                             size_t stored);
/* What it makes of a sum; `at` is the residual's index. */
float kernel_finish(const pph_epilogue *epilogue, float sum, size_t column,
                    size_t at);

/* A target's contents before the kernel runs become check->expected, where the
   plain loop writes; then both must be the same everywhere. */
float *kernel_target(kernel_check *check, int slot, size_t count);
void kernel_compare(const kernel_check *check, const float *target,
                    size_t count, const char *what);

/* The families' checks, for one edge. */
void kernel_check_gemm(kernel_check *check);
void kernel_check_pack(kernel_check *check);
void kernel_check_finish(kernel_check *check);
void kernel_check_transpose(kernel_check *check);
void kernel_check_narrow(kernel_check *check);
void kernel_check_channelwise(kernel_check *check); /* both families */
void kernel_check_filter(kernel_check *check);      /* both families */

#endif
