/* narrow: direct convolution for few output channels. Each input row is turned
   into planes of one channel once; a vector holds neighbouring pixels of a
   plane. A row adds its products to all output rows that it reaches, for every
   kernel row, x phase and output channel at once; rows that are complete are
   interleaved and stored. */
#ifndef PPH_OP_NARROW_PLAN_H
#define PPH_OP_NARROW_PLAN_H

#include "kernel/finish.h"
#include "kernel/kernel_table.h"
#include "kernel/narrow.h"
#include "kernel/transpose.h"
#include "op/algo.h"
#include "op/axis_view.h"

enum {
  PPH_NARROW_MAX_GROUPS = 32,
  PPH_NARROW_MAX_KERNEL = 64 /* taps on an axis */
};

/* X phases that read the same inputs. Weights: [tap][channel][kernel row in
   plan->kernel_rows' order][phase][output channel]. */
typedef struct pph_narrow_group {
  pph_phase_run run;
  size_t columns;   /* phases x output channels */
  size_t rows;      /* kernel rows x columns */
  size_t packed;    /* offset of its weights */
  size_t first_tap; /* its part of plan->offsets */
} pph_narrow_group;

typedef struct pph_narrow_plan {
  pph_axis height;
  pph_axis_view width;
  bool transposed;
  size_t images; /* batch x depth */
  size_t in_channels, out_channels;
  const pph_kernel *narrow;
  pph_narrow_kernel run_narrow;
  pph_transpose_kernel run_transpose;
  pph_finish_kernel run_finish;
  /* A block is a tile of columns (q of the width's view) and a band of output
     rows of an image. */
  size_t tile, tiles, band, bands;
  int64_t reach; /* least input offset of any tap along the width */
  /* Planes [channel][residue modulo input_step][plane]. */
  size_t plane, channel_step;
  /* Output rows under way: [row][phase][channel][line]. */
  size_t ring_rows, sum_planes, line;
  size_t packed_floats;
  /* Channels last: the biases of `period` elements of an output row. Channels
     first: `period` times each. */
  size_t period;
  float *weights, *bias, *slopes;
  /* Of all groups' taps, in floats of a plane. */
  size_t offsets[PPH_NARROW_MAX_KERNEL];
  /* Kernel rows that meet one input row are neighbours. */
  int64_t kernel_rows[PPH_NARROW_MAX_KERNEL];
  size_t group_count;
  pph_narrow_group groups[PPH_NARROW_MAX_GROUPS];
} pph_narrow_plan;

/* The output row that input row `i` reaches with kernel row k. False if there
   is none (a stride). */
static inline bool pph_narrow_reaches(const pph_narrow_plan *plan, int64_t i,
                                      int64_t k, int64_t *row) {
  const pph_axis *axis = &plan->height;
  int64_t place = k * axis->dilation - axis->pad_begin;
  *row =
      plan->transposed ? i * axis->stride + place : (i - place) / axis->stride;
  return plan->transposed || (i - place) % axis->stride == 0;
}

void pph_narrow_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                    const pph_conv_tensors *tensors);

#endif
