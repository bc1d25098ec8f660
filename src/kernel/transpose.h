/* Turning a matrix over: between channels last and planes of one channel. */
#ifndef PPH_KERNEL_TRANSPOSE_H
#define PPH_KERNEL_TRANSPOSE_H

#include <stddef.h>

typedef struct pph_transpose_block {
  size_t rows, columns;
  const float *source; /* source[row * source_step + column] */
  size_t source_step;
  float *target; /* target[column * target_step + row] */
  size_t target_step;
} pph_transpose_block;

typedef void (*pph_transpose_kernel)(const pph_transpose_block *block);

#endif
