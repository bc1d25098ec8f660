/* The table of kernels: a row per kernel and processor level. Const; operators
   keep the row they chose. */
#ifndef PPH_KERNEL_KERNEL_TABLE_H
#define PPH_KERNEL_KERNEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* A family has one function type, declared in its header (gemm.h, ...). */
typedef enum pph_kernel_family {
  PPH_KERNEL_GEMM,
  PPH_KERNEL_PACK,
  PPH_KERNEL_FINISH,
  PPH_KERNEL_FILTER_IN,
  PPH_KERNEL_FILTER_OUT,
  PPH_KERNEL_DEPTHWISE,
  PPH_KERNEL_NARROW,
  PPH_KERNEL_TRANSPOSE,
  PPH_KERNEL_GROUPED
} pph_kernel_family;

typedef struct pph_kernel {
  pph_kernel_family family;
  pph_cpu cpu;
  uint32_t lanes;         /* floats of one vector */
  uint32_t rows, columns; /* the most that one call takes; 0: any */
  const char *stem;       /* "f32_gemm" */
  const char *name;       /* "pph_f32_gemm__avx512" */
  void (*run)(void);      /* cast to the family's type */
} pph_kernel;

/* The rows of one level; NULL and 0 when this build has none of it. */
const pph_kernel *pph_kernel_level(pph_cpu cpu, size_t *count);

/* The row of that stem for a level from pph_cpu_choose; never NULL for a stem
   of kernel_list.def. */
const pph_kernel *pph_kernel_find(const char *stem, pph_cpu cpu);

#endif
