/* scatter: transposed convolution of short inputs. All input pixels form the
   rows of a few GEMM panels; each tap's products go straight to the sums of the
   output elements that they belong to, in the order of EXACT (a higher kernel
   index is a lower input position). Nothing is multiplied by padding, and the
   weights, which are what costs, are read once and in order. */
#ifndef PPH_OP_SCATTER_PLAN_H
#define PPH_OP_SCATTER_PLAN_H

#include "kernel/finish.h"
#include "kernel/gemm.h"
#include "kernel/kernel_table.h"
#include "kernel/pack.h"
#include "op/algo.h"

typedef struct pph_scatter_plan {
  const pph_kernel *gemm;
  pph_gemm_kernel run_gemm;
  pph_pack_kernel run_pack;
  pph_finish_kernel run_finish, run_finish_planes;
  size_t pixels;      /* of the input, all images */
  size_t outputs;     /* pixels of the output */
  size_t tiles, rows; /* GEMM tiles of so many pixels, the last one less */
  size_t panel_floats;
  size_t channels; /* output channels of a slice, the last one less */
  size_t slices;
  /* Neighbouring kernel columns whose output columns are neighbours as well are
     one product: so many, as fit the kernel. */
  int64_t joined;
  size_t slice_floats; /* packed weights of a slice */
  size_t lots;         /* of slices, for threads */
  bool streams;        /* weights come from beyond level 2 */
  float *weights; /* [slice][depth, row, joined columns: last first][channel] */
} pph_scatter_plan;

/* Kernel columns [first, first + count) of the width, one product. */
typedef struct pph_scatter_taps {
  int64_t first, count;
} pph_scatter_taps;

/* The last columns whose output lies in one stride come first. `end` is the
   kernel's length at the start, then the first column of the group that is
   unfinished. A group that is cut is given from its begin. */
static inline pph_scatter_taps pph_scatter_next(const pph_scatter_plan *plan,
                                                const pph_axis *width,
                                                int64_t end) {
  int64_t each = plan->joined;
  int64_t group = (end - 1) / width->stride * width->stride;
  int64_t first = group + (end - 1 - group) / each * each;
  return (pph_scatter_taps){first, end - first};
}

/* Columns of a product as the panel has them. */
static inline size_t pph_scatter_width(const pph_scatter_plan *plan,
                                       size_t columns) {
  size_t lanes = plan->gemm->lanes;
  return (columns + lanes - 1) / lanes * lanes;
}

void pph_scatter_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                     const pph_conv_tensors *tensors);

#endif
