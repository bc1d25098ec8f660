/* Minimal filtering (Winograd): F(m, r) computes m outputs of a filter of r
   taps from a window of m + r - 1 values with as many multiplications. Inputs
   are transformed to points, one GEMM per point sums over channels, and the
   points are transformed to outputs. Along two axes the points are pairs. */
#ifndef PPH_KERNEL_FILTER_H
#define PPH_KERNEL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/epilogue.h"

enum { PPH_FILTER_MAX_POINTS = 8, PPH_FILTER_MAX_TAPS = 5 };

/* X(name, outputs, taps, points): the filters of filter_weights.inc, in its
   order. F(1, 1) transforms nothing. m_2L and m_2H are F(m, 2) on the windows
   of F(m, 3), as if their last or first tap were 0: all points but the last, or
   but the first. F(7, 2) and those after 4_2H are for lines only. */
#define PPH_FILTERS(X)                                                         \
  X(1_1, 1, 1, 1)                                                              \
  X(2_2, 2, 2, 3)                                                              \
  X(3_2, 3, 2, 4) X(4_2, 4, 2, 5) X(5_2, 5, 2, 6) X(7_2, 7, 2, 8)              \
      X(2_3, 2, 3, 4) X(3_3, 3, 3, 5) X(4_3, 4, 3, 6) X(2_2L, 2, 2, 3)         \
          X(2_2H, 2, 2, 3) X(4_2L, 4, 2, 5) X(4_2H, 4, 2, 5)                   \
              X(5_4, 5, 4, 8) X(4_5, 4, 5, 8)

typedef enum pph_filter_id {
#define PPH_FILTER(name, outputs, taps, points) PPH_FILTER_##name,
  PPH_FILTERS(PPH_FILTER)
#undef PPH_FILTER
      PPH_FILTER_COUNT
} pph_filter_id;

typedef struct pph_filter {
  uint32_t outputs, taps, points;
  /* G: point j of the weights is the sum of weights[j][t] * w[t]. */
  double weights[PPH_FILTER_MAX_POINTS][PPH_FILTER_MAX_TAPS];
} pph_filter;

extern const pph_filter pph_filters[PPH_FILTER_COUNT];

/* The part of a window, or of its outputs, that exists: [begin, end) of rows
   and of columns. A line has one row. */
typedef struct pph_filter_extent {
  int32_t row_begin, row_end, column_begin, column_end;
} pph_filter_extent;

/* A window of pixels, all channels, to one row of a panel A (gemm.h) of each
   point; pixels outside the extent count as zeros and are not read. */
typedef struct pph_filter_in_run {
  uint32_t points; /* of the filter */
  bool square;     /* along both axes; else along a line of columns */
  size_t channels;
  const float *input;
  int64_t offset; /* of the window's first pixel from `input` */
  int64_t row_step, column_step;
  pph_filter_extent extent;
  float *panel; /* the row's first value in the first point's panel */
  size_t chunk_step, point_step; /* floats between chunks, and panels */
} pph_filter_in_run;
typedef void (*pph_filter_in_kernel)(const pph_filter_in_run *run);

/* The sums of all points, to the outputs inside the extent. */
typedef struct pph_filter_out_run {
  pph_filter_id filter;     /* along columns */
  pph_filter_id row_filter; /* F(1, 1) for a line; else of the same outputs and
                               the same windows */
  bool stream;              /* past the caches, where whole lines are written */
  size_t columns;
  const float *sums; /* sums[point * point_step + column] */
  size_t point_step;
  float *output;
  int64_t offset; /* of the first output's first column from `output` */
  int64_t row_step, column_step;
  int64_t ahead; /* so far from every output, what is stored next is fetched */
  pph_filter_extent extent;
  const pph_epilogue *epilogue; /* residual: as `output` */
} pph_filter_out_run;
typedef void (*pph_filter_out_kernel)(const pph_filter_out_run *run);

#endif
