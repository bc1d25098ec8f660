/* The product of a panel of rows and a panel of columns: the one inner loop of
   direct, filtered, scattered and narrow convolutions.

   Panel A holds `rows` rows of `depth` values in chunks of PPH_GEMM_CHUNK:
     A[depth / chunk][rows][chunk], the last chunk filled up with anything,
   so that every value of a chunk is at a constant distance from its first row.
   Panel B holds, for one block of columns, B[depth][width], width the columns
   rounded up to whole vectors (filled up with zeros). */
#ifndef PPH_KERNEL_GEMM_H
#define PPH_KERNEL_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/epilogue.h"

enum { PPH_GEMM_CHUNK = 16, PPH_GEMM_MAX_ROWS = 16 };

typedef struct pph_gemm_tile {
  uint32_t rows;    /* 1 .. kernel rows */
  uint32_t columns; /* 1 .. kernel columns */
  size_t depth;     /* at least 1 */
  const float *a, *b;
  /* NULL: `a` is a panel A. Else rows lie row_step floats apart, and a row's
     values in runs of `run` floats, of which depth is a multiple: row i of run
     j begins at a[starts[j] + i * row_step]. */
  const size_t *starts;
  size_t row_step, run;
  float *c; /* c[row * c_stride + column] */
  size_t c_stride;
  const size_t *places; /* NULL, or row i lies at c[places[i]] */
  bool accumulate; /* sums start from c instead of 0 */
  bool join; /* sums start from 0, and c is added at last: shorter chains, whose
                roundings are smaller. Not with `accumulate` */
  const pph_epilogue *epilogue; /* NULL: sums are stored as they are */
  bool far; /* c is in no cache near; its lines are fetched in the first steps,
               one row in each. Only with `starts` */
  /* What is soon to be read from memory: so many floats are fetched with each
     step of the depth (that fetches none of c). NULL: nothing. */
  const float *ahead;
  size_t ahead_step;
} pph_gemm_tile;

/* Computes one tile: for every element one chain of fused multiply-adds in the
   order of depth. Reads and writes nothing outside the extents above. */
typedef void (*pph_gemm_kernel)(const pph_gemm_tile *tile);

#endif
