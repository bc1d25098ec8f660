/* gather: direct convolution by the GEMM kernel. Inputs of a few output pixels
   are gathered into a panel whose depth is (tap, channel); the columns are
   (phase x, output channel), so that storing a tile interleaves the phases. */
#ifndef PPH_OP_GATHER_H
#define PPH_OP_GATHER_H

#include "kernel/finish.h"
#include "kernel/gemm.h"
#include "kernel/kernel_table.h"
#include "kernel/pack.h"
#include "op/algo.h"
#include "op/axis_view.h"

/* Phases that read the same inputs on every axis: one small convolution, whose
   products with the weights of each (depth, height) phase follow. */
typedef struct pph_gather_part {
  pph_phase_run runs[PPH_PROBLEM_AXES];
  size_t depth;   /* taps * channels of a group */
  size_t columns; /* phases x * output channels of a group */
  size_t packed;  /* offset of its weights: [group][depth, height phase] */
  size_t packed_each; /* floats of one (group, phase pair) */
  uint32_t rows;      /* of a tile */
  size_t segments;    /* tiles of one row of pixels */
  size_t tiles;       /* of a group */
  size_t block_tiles; /* gathered at once */
  size_t chunks;      /* of the column blocks, for threads */
  size_t first_block, blocks;
} pph_gather_part;

typedef struct pph_gather_plan {
  pph_axis_view axes[PPH_PROBLEM_AXES];
  const pph_kernel *gemm;
  pph_gemm_kernel run_gemm;
  pph_pack_kernel run_pack;
  pph_finish_kernel run_finish, run_finish_planes;
  size_t in_channels, out_channels; /* of a group */
  size_t column_step; /* columns of a full GEMM call */
  size_t blocks;      /* of all parts */
  size_t panel_floats; /* workspace: panels, then one tile of sums */
  float *weights;      /* packed panels B */
  size_t weight_floats;
  bool fetch; /* they do not stay in cache */
  float *bias, *slopes; /* per group: out_channels, repeated per phase x */
  size_t repeats;
  size_t part_count;
  pph_gather_part parts[];
} pph_gather_plan;

/* Columns rounded up to whole vectors, as panels B are. */
static inline size_t pph_gather_round(const pph_gather_plan *plan,
                                      size_t columns) {
  size_t lanes = plan->gemm->lanes;
  return (columns + lanes - 1) / lanes * lanes;
}

/* Number of column blocks of one (depth, height) phase pair. */
static inline size_t pph_gather_column_blocks(const pph_gather_plan *plan,
                                              const pph_gather_part *part) {
  return (part->columns + plan->column_step - 1) / plan->column_step;
}

/* (depth, height) phases of a part. */
static inline size_t pph_gather_pairs(const pph_gather_part *part) {
  return (size_t)(part->runs[PPH_DEPTH].count * part->runs[PPH_HEIGHT].count);
}

/* Floats that one panel takes. */
size_t pph_gather_panel_floats(const pph_gather_part *part);

void pph_gather_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                    const pph_conv_tensors *tensors);

#endif
