/* filtered: minimal filtering (kernel/filter.h). A grid of windows is laid over
   the input. For a few tiles at once: their windows are transformed into one
   panel per point; for a group of columns (phase, output channel) the products
   of all points are computed into a small buffer; the outputs are transformed
   out of it, straight to their place.
   Form W: phases whose taps read the same inputs, m x m positions of each per
   tile. Form Z: windows of F(m, 3) for phases of 2 and 3 taps that start at
   different inputs; those of 2 taps are F(m, 2) on a part of the points.
   Form L: phases of 4 and more taps along an axis. Only that one is filtered:
   its taps are cut into pieces of 4 or 5, and each tap of the other axis makes
   pieces of its own. The windows of all pieces are transformed, and their
   products summed before the outputs are.
   A dilation of d makes d signals of an axis, each of every d-th position: its
   tiles are of one of them, and those of all d alternate.
   Corners are the outputs whose taps the picture's edge cuts along all filtered
   axes. Their sums are of few terms, but roundings of a whole window are left
   in them: where that is too much they are computed directly. */
#ifndef PPH_OP_FILTERED_H
#define PPH_OP_FILTERED_H

#include "base/checked.h"
#include "kernel/filter.h"
#include "kernel/gemm.h"
#include "kernel/kernel_table.h"
#include "op/algo.h"
#include "op/axis_view.h"

/* Axes that are filtered. */
enum { PPH_FILTERED_HEIGHT, PPH_FILTERED_WIDTH, PPH_FILTERED_AXES };

/* Rows: form (of taps: c are ordinary convolutions') and outputs m; of form L,
   whose outputs depend on the taps, points. */
typedef enum pph_filtered_variant {
  PPH_FILTERED_W2,
  PPH_FILTERED_W3,
  PPH_FILTERED_W4,
  PPH_FILTERED_W5,
  PPH_FILTERED_W7,
  PPH_FILTERED_C2,
  PPH_FILTERED_C3,
  PPH_FILTERED_C4,
  PPH_FILTERED_Z2,
  PPH_FILTERED_Z4,
  PPH_FILTERED_L8,
  PPH_FILTERED_VARIANTS
} pph_filtered_variant;

/* Phases that need the same products of a grid. */
typedef struct pph_filtered_part {
  pph_phase_run runs[PPH_FILTERED_AXES];
  pph_filter_id filters[PPH_FILTERED_AXES];
  uint32_t shifts[PPH_FILTERED_AXES]; /* its first point among the grid's */
  size_t points;
  size_t columns;       /* phases * out_channels */
  size_t group_columns; /* multiplied at once; whole GEMM calls */
  size_t groups;
  size_t packed;  /* offset of its weights */
  bool corners;   /* are computed directly */
  size_t direct;  /* offset of the weights for that */
} pph_filtered_part;

typedef struct pph_filtered_grid {
  int64_t pads[PPH_FILTERED_AXES]; /* inputs before position 0 in its window */
  int64_t steps[PPH_FILTERED_AXES]; /* between positions of a tile: dilation */
  uint32_t outputs[PPH_FILTERED_AXES], points[PPH_FILTERED_AXES]; /* a tile's */
  uint32_t pieces[PPH_FILTERED_AXES];     /* 1, but for form L */
  uint32_t piece_taps[PPH_FILTERED_AXES]; /* the last one may have fewer */
  int64_t piece_steps[PPH_FILTERED_AXES]; /* inputs between their windows */
  size_t lengths[PPH_FILTERED_AXES]; /* of the tiles of one picture */
  size_t tiles;                      /* of the batch */
  uint32_t rows;                     /* of a GEMM call */
  size_t block_tiles;                /* transformed at once */
  size_t chunks;                     /* of all groups, for threads */
  size_t first_block, blocks;
  size_t first_part, part_count, groups;
} pph_filtered_grid;

/* Bounds that keep plans small: more is not supported. */
enum {
  PPH_FILTERED_MAX_PARTS = 16,
  PPH_FILTERED_MAX_STRIDE = 64,
  PPH_FILTERED_MAX_COLUMNS = 64,               /* of a GEMM call */
  PPH_FILTERED_MAX_TILES = 4 * PPH_GEMM_MAX_ROWS, /* of a block */
  PPH_FILTERED_MAX_FLOATS = 256 * 1024         /* workspace */
};

/* The outputs of a phase that exist, see pph_axis_view_range. */
typedef struct pph_filtered_range {
  int64_t begin, end;
} pph_filtered_range;

typedef struct pph_filtered_plan {
  pph_axis_view axes[PPH_FILTERED_AXES];
  pph_filtered_range ranges[PPH_FILTERED_AXES][PPH_FILTERED_MAX_STRIDE];
  const pph_kernel *gemm;
  pph_gemm_kernel run_gemm;
  pph_filter_in_kernel run_in;
  pph_filter_out_kernel run_out;
  size_t in_channels, out_channels;
  size_t images; /* pictures of the batch; depth counts as batch */
  size_t blocks;
  size_t panel_floats, product_floats; /* workspace */
  float *weights;      /* a part's: [group][point][column block][piece] panels
                          B, then corners' [column block][tap] */
  size_t weight_floats;
  bool fetch; /* they do not stay in cache */
  float *bias, *slopes; /* out_channels, once per phase x */
  bool stream; /* the output is larger than caches, and made of whole lines */
  size_t grid_count, part_count;
  pph_filtered_grid grids[PPH_FILTERED_MAX_PARTS];
  pph_filtered_part parts[PPH_FILTERED_MAX_PARTS];
} pph_filtered_plan;

/* Floats from one point's panel or products to the next's, for a tile block of
   `rows`. Products are not a multiple of 4 KiB apart, which would make them
   fight for the same places of the caches. */
static inline size_t pph_filtered_panel(const pph_filtered_plan *plan,
                                        size_t rows) {
  return pph_round_up(plan->in_channels, PPH_GEMM_CHUNK) * rows;
}
static inline size_t pph_filtered_products(size_t columns, size_t rows) {
  return columns * rows + PPH_GEMM_CHUNK;
}

/* Columns rounded up to whole vectors, as panels B are. */
static inline size_t pph_filtered_round(const pph_filtered_plan *plan,
                                        size_t columns) {
  return pph_round_up(columns, plan->gemm->lanes);
}

static inline size_t pph_filtered_points(const pph_filtered_grid *grid) {
  return (size_t)grid->points[0] * grid->points[1];
}

static inline size_t pph_filtered_pieces(const pph_filtered_grid *grid) {
  return (size_t)grid->pieces[0] * grid->pieces[1];
}

/* Panels of a tile block: [piece][point]. */
static inline size_t pph_filtered_panels(const pph_filtered_grid *grid) {
  return pph_filtered_pieces(grid) * pph_filtered_points(grid);
}

/* Taps of a part's phases. */
static inline size_t pph_filtered_taps(const pph_filtered_part *part) {
  return (size_t)(part->runs[0].taps * part->runs[1].taps);
}

/* From a phase's first tap to its last. */
static inline int64_t pph_filtered_span(const pph_phase_run *run) {
  return (run->taps - 1) * run->tap_step;
}

/* Whether position q lies in a corner as far as this axis goes. */
static inline bool pph_filtered_is_cut(const pph_filtered_plan *plan,
                                       const pph_filtered_part *part, int axis,
                                       int64_t q) {
  const pph_phase_run *run = &part->runs[axis];
  int64_t first = q - run->pad_begin;
  return part->filters[axis] == PPH_FILTER_1_1 || first < 0 ||
         first + pph_filtered_span(run) >= plan->axes[axis].axis.input;
}

/* Kernels, grids and parts; false when the variant does not support them. */
bool pph_filtered_list(const pph_conv_spec *spec, pph_filtered_variant variant,
                       pph_filtered_plan *plan);

/* Blocks and groups of what was listed. */
void pph_filtered_shape(const pph_conv_spec *spec, pph_filtered_plan *plan);

/* Bytes of the grid's weights, without those of corners. */
double pph_filtered_weight_bytes(const pph_filtered_plan *plan,
                                 const pph_filtered_grid *grid);

/* Weights, bias and slopes of what was shaped. On failure what is there stays
   for pph_filtered_release. */
PPH_NODISCARD pph_status pph_filtered_pack(const pph_conv_spec *spec,
                                           pph_heap *heap,
                                           pph_filtered_plan *plan,
                                           pph_error *error);
void pph_filtered_release(pph_heap *heap, pph_filtered_plan *plan);

void pph_filtered_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                      const pph_conv_tensors *tensors);

#endif
