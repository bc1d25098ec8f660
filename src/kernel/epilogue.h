/* What happens to sums before they are stored: + bias, + residual, activation.
   Kernels that store results take one, and apply it by epilogue.inc. */
#ifndef PPH_KERNEL_EPILOGUE_H
#define PPH_KERNEL_EPILOGUE_H

#include <stddef.h>

/* Pointers are to the value of column 0; columns are the inner, contiguous
   dimension of what the kernel stores (channels, or phase and channel). */
typedef struct pph_epilogue {
  const float *bias;     /* per column, or NULL */
  const float *residual; /* one element per stored element, or NULL */
  size_t residual_stride; /* elements between rows of `residual` */
  const float *slopes;   /* per column: y < 0 ? slope * y : y; or NULL */
  float low, high;       /* min(max(y, low), high); -infinity, infinity: none */
} pph_epilogue;

#endif
