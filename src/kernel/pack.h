/* Gathering inputs into a panel A (gemm.h). */
#ifndef PPH_KERNEL_PACK_H
#define PPH_KERNEL_PACK_H

#include "kernel/gemm.h"

typedef struct pph_pack_run {
  uint32_t rows;     /* of the panel, at most PPH_GEMM_MAX_ROWS */
  size_t offset;     /* position in the depth of the first value */
  size_t count;      /* values of each row */
  size_t step;       /* floats between a row's values: 1, or a plane */
  const float *const *sources; /* per row; NULL: zeros */
  float *panel;
} pph_pack_run;

/* Writes panel row i, depth [offset, offset + count) from sources[i]. */
typedef void (*pph_pack_kernel)(const pph_pack_run *run);

#endif
