/* gather: direct convolution by the GEMM kernel, which reads its rows from the
   input itself; tiles at the edge, from a copy of what they read, which has
   zeros for pads. The depth is (tap, channel); the columns are (phase x, output
   channel), so that storing a tile interleaves the phases. */
#ifndef PPH_OP_GATHER_H
#define PPH_OP_GATHER_H

#include "base/checked.h"
#include "kernel/finish.h"
#include "kernel/gemm.h"
#include "kernel/kernel_table.h"
#include "kernel/transpose.h"
#include "op/algo.h"
#include "op/axis_view.h"

/* What `positions` outputs in a row read on one axis, as elements of a copy:
   tap u of position q is element q * q_step + u * u_step. Joined, it is all of
   the input that they span; else each tap's inputs by themselves. */
typedef struct pph_gather_window {
  int64_t positions, size, q_step, u_step;
  bool joined;
} pph_gather_window;

/* Where the GEMM kernel finds a tile's inputs: fields of pph_gemm_tile. */
typedef struct pph_gather_reads {
  size_t row_step, run;
  size_t starts; /* offset into the plan's */
} pph_gather_reads;

/* Phases that read the same inputs on every axis: one small convolution, whose
   products with the weights of each (depth, height) phase follow. */
typedef struct pph_gather_part {
  pph_phase_run runs[PPH_PROBLEM_AXES];
  size_t depth;   /* taps * channels of a group */
  size_t columns; /* phases x * output channels of a group */
  size_t packed;  /* offset of its weights: [group][depth, height phase] */
  size_t packed_each; /* floats of one (group, phase pair) */
  uint32_t rows;   /* of a tile, at most: neighbours in a row of pixels */
  size_t segments; /* tiles of one row of pixels */
  int64_t segment_rows, longer; /* of each, and how many have one more */
  size_t block_segments; /* tiles of one row of a block */
  pph_gather_window windows[PPH_PROBLEM_AXES]; /* of a block */
  size_t counts[PPH_PROBLEM_AXES];             /* blocks of an image */
  size_t pixel; /* floats from a pixel of the copy to the next */
  pph_gather_reads copied, direct;
  size_t chunks; /* of the column blocks, for threads */
  size_t panels; /* that tiles are multiplied with in turn */
  size_t first_block, blocks;
} pph_gather_part;

typedef struct pph_gather_plan {
  pph_axis_view axes[PPH_PROBLEM_AXES];
  const pph_kernel *gemm;
  pph_gemm_kernel run_gemm;
  pph_transpose_kernel run_transpose;
  pph_finish_kernel run_finish, run_finish_planes;
  size_t in_channels, out_channels; /* of a group */
  size_t column_step; /* columns of a full GEMM call */
  size_t blocks;      /* of all parts */
  size_t copy_floats; /* workspace: a block's copy, then one tile of sums */
  float *weights;     /* packed panels B */
  size_t weight_floats;
  bool fetch;     /* they do not stay in cache */
  bool far;       /* nor do inputs and outputs beside them */
  size_t *starts; /* where the runs of taps lie, see pph_gather_reads */
  float *bias, *slopes; /* per group: out_channels, repeated per phase x */
  size_t repeats;
  size_t part_count;
  pph_gather_part parts[];
} pph_gather_plan;

/* Most panels of a turn, and bytes of them as a share of the level-2 cache. */
enum { PPH_GATHER_PANELS = 32, PPH_GATHER_PANEL_SHARE = 4 };

/* What a run shares. */
typedef struct pph_gather_job {
  const pph_gather_plan *plan;
  const pph_conv_spec *spec;
  const pph_conv_tensors *tensors;
  size_t thread_bytes;
} pph_gather_job;

/* Where a block's tiles find their inputs. */
typedef struct pph_gather_source {
  const pph_gather_reads *reads;
  const float *base;
  int64_t at; /* tap 0 of the block's first position, which may lie outside */
  int64_t line; /* floats between positions of neighbouring rows */
} pph_gather_source;

/* Outputs [first, first + count) of every axis, and their inputs. */
typedef struct pph_gather_block {
  size_t group;
  int64_t n, first[PPH_PROBLEM_AXES], count[PPH_PROBLEM_AXES];
  size_t segment, segments; /* tiles along the width, counted in the image */
  /* Tiles that read no pads: these rows and segments, counted in the image. */
  int64_t inner_rows[2];
  size_t inner_segments[2];
  pph_gather_source copied, direct; /* the others', and theirs */
} pph_gather_block;

/* Columns rounded up to whole vectors, as panels B are. */
static inline size_t pph_gather_round(const pph_gather_plan *plan,
                                      size_t columns) {
  return pph_round_up(columns, plan->gemm->lanes);
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

/* Where tile `segment` of a row of pixels begins: all have part->rows of them
   or one less. */
static inline int64_t pph_gather_tile_first(const pph_gather_part *part,
                                            size_t segment) {
  int64_t index = (int64_t)segment;
  return index * part->segment_rows + pph_min_i64(index, part->longer);
}

/* Runs of taps that one pph_gather_reads lists. */
static inline size_t pph_gather_runs(const pph_gather_part *part,
                                     const pph_gather_reads *reads) {
  return reads->run ? part->depth / reads->run : 0;
}

/* Chooses tiles and blocks of a part whose runs are set. */
void pph_gather_shape(const pph_conv_spec *spec, const pph_gather_plan *plan,
                      pph_gather_part *part);

/* Floats that the copy of a block takes. */
double pph_gather_copy_floats(const pph_gather_part *part);

/* Writes the runs' places to plan->starts, both for copies and for inputs. */
void pph_gather_list_starts(const pph_conv_spec *spec, pph_gather_plan *plan,
                            const pph_gather_part *part);

/* How many of the part's tiles read a copy, of 1. */
double pph_gather_copied(const pph_conv_spec *spec, const pph_gather_plan *plan,
                         const pph_gather_part *part);

/* Sets what the block reads: inputs, and their copy in `room`. */
void pph_gather_find_inputs(const pph_gather_job *job,
                            const pph_gather_part *part,
                            pph_gather_block *block, float *room);

void pph_gather_run(const pph_algo_plan *plan, const pph_conv_spec *spec,
                    const pph_conv_tensors *tensors);

#endif
