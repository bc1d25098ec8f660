/* filtered: minimal filtering (kernel/filter.h). A part of the output, whose
   phases read the same inputs, is cut into tiles of m x m positions. For a few
   tiles at once: their windows are transformed into one panel per point; for a
   group of columns (phase, output channel) the products of all points are
   computed into a small buffer; the outputs are transformed out of it, straight
   to their place. */
#ifndef PPH_OP_FILTERED_H
#define PPH_OP_FILTERED_H

#include "kernel/filter.h"
#include "kernel/gemm.h"
#include "kernel/kernel_table.h"
#include "op/algo.h"
#include "op/axis_view.h"

/* Axes that are filtered. */
enum { PPH_FILTERED_HEIGHT, PPH_FILTERED_WIDTH, PPH_FILTERED_AXES };

typedef struct pph_filtered_part {
  pph_phase_run runs[PPH_FILTERED_AXES];
  pph_filter_id filters[PPH_FILTERED_AXES]; /* the same, or one is F(1, 1) */
  size_t lengths[PPH_FILTERED_AXES];        /* of the tiles of one picture */
  size_t tiles;                             /* of the batch */
  size_t points;
  size_t columns;       /* phases * out_channels */
  uint32_t rows;        /* of a GEMM call */
  size_t block_tiles;   /* transformed at once */
  size_t group_columns; /* multiplied at once; whole GEMM calls */
  size_t chunks;        /* of the groups, for threads */
  size_t packed;        /* offset of its weights */
  size_t first_block, blocks;
} pph_filtered_part;

enum { PPH_FILTERED_MAX_PARTS = 16 };

typedef struct pph_filtered_plan {
  pph_axis_view axes[PPH_FILTERED_AXES];
  const pph_kernel *gemm;
  pph_gemm_kernel run_gemm;
  pph_filter_in_kernel run_in;
  pph_filter_out_kernel run_out;
  size_t in_channels, out_channels;
  size_t images; /* pictures of the batch; depth counts as batch */
  size_t blocks;
  size_t panel_floats; /* workspace: panels, then products */
  float *weights;      /* [group][point][column block] panels B */
  float *bias, *slopes; /* out_channels, once per phase x */
  size_t repeats;
  bool stream; /* the output is larger than caches, and made of whole lines */
  size_t part_count;
  pph_filtered_part parts[PPH_FILTERED_MAX_PARTS];
} pph_filtered_plan;

/* Sides of a tile, outputs and window; a line has the other axis' F(1, 1). */
static inline size_t pph_filtered_outputs(const pph_filtered_part *part,
                                          int axis) {
  return pph_filters[part->filters[axis]].outputs;
}

/* Floats from one point's panel or products to the next's, for a tile block of
   `rows`. Products are not a multiple of 4 KiB apart, which would make them
   fight for the same places of the caches. */
static inline size_t pph_filtered_panel(const pph_filtered_plan *plan,
                                        size_t rows) {
  size_t chunks = (plan->in_channels + PPH_GEMM_CHUNK - 1) / PPH_GEMM_CHUNK;
  return chunks * PPH_GEMM_CHUNK * rows;
}
static inline size_t pph_filtered_products(size_t columns, size_t rows) {
  return columns * rows + PPH_GEMM_CHUNK;
}

/* Columns rounded up to whole vectors, as panels B are. */
static inline size_t pph_filtered_round(const pph_filtered_plan *plan,
                                        size_t columns) {
  size_t lanes = plan->gemm->lanes;
  return (columns + lanes - 1) / lanes * lanes;
}

void pph_filtered_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                      const pph_conv_tensors *tensors);

#endif
