/* A problem descriptor: one (transposed) convolution as a line of text, the
   same in tests, benchmarks and logs:
     f32 n1 g1 ci256 co128 i1x400 k1x16 s1x8 d1x1 p0,4,0,4 op0x0
     conv f32 n1 g1 ci64 co64 i128x128 k3x3 s1x1 d1x1 p1,1,1,1
     conv f32 n1 g1 ci8 co8 i9x16x16 k3x3x3 s1x1x1 d1x1x1 p1,1,1,1,1,1
   p is top,left,bottom,right (with a depth: front,top,left,back,bottom,right);
   1-D has height 1; op may be left out (zeros). */
#ifndef PPH_GEOMETRY_PROBLEM_H
#define PPH_GEOMETRY_PROBLEM_H

#include <stddef.h>

#include "geometry/geometry.h"
#include "polyphase/tensor.h"

/* Indices of axes. Without a depth that axis has length, kernel and stride 1.
 */
enum { PPH_DEPTH, PPH_HEIGHT, PPH_WIDTH, PPH_PROBLEM_AXES };

typedef struct pph_problem {
  bool transposed;
  pph_dtype type; /* PPH_F32 */
  int64_t batch, group, in_channels, out_channels; /* channels: all groups */
  pph_axis axes[PPH_PROBLEM_AXES]; /* resolved by parse */
} pph_problem;

/* Parses and resolves; PPH_INVALID_ARGUMENT with the place in the text. Rules
   of the geometry apply (PPH_LIMIT_EXCEEDED: its bounds), input and output
   lengths must be at least 1, channels multiples of the group. */
PPH_NODISCARD pph_status pph_problem_parse(const char *text,
                                           pph_problem *problem,
                                           pph_error *error);

/* Canonical text; round-trips through parse. Returns `text`. */
const char *pph_problem_print(const pph_problem *problem, char *text,
                              size_t size);

/* 3 with a depth, else 2: the last so many of `axes` say it all. */
int pph_problem_count_axes(const pph_problem *problem);

/* 2 * multiply-adds that the definition needs (taps that fall outside count
   as the reference GEMM's do: batch * in pixels * kernel * ci * co / group for
   transposed, out pixels for ordinary). */
double pph_problem_flops(const pph_problem *problem);

#endif
