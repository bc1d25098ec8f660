/* scatter: ordinary and transposed convolutions of few pixels, whose weights
   are what costs. Each tap of the kernel is a product of its own: all input
   pixels that it moves to somewhere, times its weights, added to the sums of
   the outputs that they belong to, in the order of EXACT. Nothing is multiplied
   by padding, and the weights are read once and in order. */
#ifndef PPH_OP_SCATTER_PLAN_H
#define PPH_OP_SCATTER_PLAN_H

#include "base/checked.h"
#include "kernel/finish.h"
#include "kernel/gemm.h"
#include "kernel/kernel_table.h"
#include "kernel/pack.h"
#include "kernel/transpose.h"
#include "op/algo.h"

enum { PPH_SCATTER_MAX_ROWS = 256 };

/* What taps on one axis move: input + i * input_step to output + i *
   output_step, for i in [0, count). */
typedef struct pph_scatter_span {
  int64_t input, output, count, input_step, output_step;
} pph_scatter_span;

typedef struct pph_scatter_product {
  int64_t taps[PPH_PROBLEM_AXES]; /* kernel indices; width: the first */
  int64_t joined;                 /* so many kernel columns */
  pph_scatter_span spans[PPH_PROBLEM_AXES]; /* of the first tap, but wherever
                                               one of the joined has outputs */
  size_t rows;
} pph_scatter_product;

/* Outputs are computed in lots of channels, whose sums lie in the workspace; a
   lot is some slices of as many channels as the kernel has columns. */
typedef struct pph_scatter_plan {
  const pph_kernel *gemm;
  pph_gemm_kernel run_gemm;
  pph_pack_kernel run_pack;
  pph_finish_kernel run_finish, run_finish_planes;
  pph_transpose_kernel run_transpose;
  size_t pixels, outputs; /* of all images */
  size_t rows;            /* of a product, at most */
  size_t channels;        /* of a slice, the last one less */
  size_t slices;          /* all of them */
  size_t lot_slices;      /* of a lot, the last one less */
  size_t lots;
  /* Neighbouring kernel columns whose output columns are neighbours as well are
     one product, where a slice is all channels: so many, as fit the kernel. */
  int64_t joined;
  size_t groups;    /* products along the width */
  size_t all;       /* products, with those that have no rows */
  size_t count;     /* without them */
  pph_scatter_product *products; /* `count`, in the order of EXACT */
  size_t slice_floats; /* packed weights of a slice */
  bool streams;        /* weights come from beyond level 2 */
  size_t panel_floats, input_floats, sum_floats, edge_floats; /* workspace */
  size_t bytes;                                               /* all of it */
  float *weights; /* [lot][product][slice][input channel][columns] */
  size_t weight_floats;
} pph_scatter_plan;

/* Everything but kernels, products and weights. False when it does not support
   the problem. */
bool pph_scatter_make(const pph_conv_spec *spec, pph_scatter_plan *plan);

/* Product `index` of all, which may have no rows, in the order of EXACT. */
pph_scatter_product pph_scatter_find(const pph_scatter_plan *plan,
                                     const pph_problem *problem, size_t index);

/* Whether both read the same pixels. */
bool pph_scatter_same(const pph_scatter_product *a,
                      const pph_scatter_product *b);

/* Channels of slice `number`. */
static inline size_t pph_scatter_channels(const pph_scatter_plan *plan,
                                          const pph_problem *problem,
                                          size_t number) {
  size_t left = (size_t)problem->out_channels - number * plan->channels;
  return left < plan->channels ? left : plan->channels;
}

/* Columns of a product as the weights have them. */
static inline size_t pph_scatter_width(const pph_scatter_plan *plan,
                                       size_t columns) {
  return pph_round_up(columns, plan->gemm->lanes);
}

void pph_scatter_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                     const pph_conv_tensors *tensors);

#endif
