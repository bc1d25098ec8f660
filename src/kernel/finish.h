/* Storing sums that already lie in memory: epilogue, and the way to their
   place. */
#ifndef PPH_KERNEL_FINISH_H
#define PPH_KERNEL_FINISH_H

#include <stdint.h>

#include "kernel/epilogue.h"

typedef struct pph_finish_block {
  uint32_t rows;
  size_t columns;
  const float *sums; /* sums[row * sum_stride + column]; may be target */
  size_t sum_stride;
  float *target; /* target[row * target_stride + column * plane] */
  size_t target_stride;
  size_t plane; /* f32_finish_planes; f32_finish takes it as 1 */
  const pph_epilogue *epilogue;
} pph_finish_block;

/* Same bits as the GEMM kernel with that epilogue. f32_finish_planes stores
   (and finds the residual) as columns far apart and rows close together, with
   residual_stride not looked at. */
typedef void (*pph_finish_kernel)(const pph_finish_block *block);

#endif
