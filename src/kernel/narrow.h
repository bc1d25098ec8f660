/* Convolving planes: the lanes of a vector are neighbouring pixels, so that few
   output channels leave none of them idle. */
#ifndef PPH_KERNEL_NARROW_H
#define PPH_KERNEL_NARROW_H

#include <stddef.h>
#include <stdint.h>

enum { PPH_NARROW_MAX_ROWS = 16 };

/* For every row r, in this order of summation,
     sums[r][x] += planes[offsets[t] + c * channel_step + x] *
                   weights[(t * channels + c) * weight_step + r]
   over taps t, channels c; x in [0, vectors * lanes). */
typedef struct pph_narrow_tile {
  uint32_t rows;  /* output planes: 1 .. kernel rows */
  size_t vectors; /* whole vectors of pixels */
  size_t taps, channels;
  const size_t *offsets; /* of the taps, in floats */
  const float *planes;
  size_t channel_step;
  const float *weights;
  size_t weight_step;
  float *sums[PPH_NARROW_MAX_ROWS];
  /* What is soon to be read from memory: fetched meanwhile. Not NULL. */
  const float *ahead;
  size_t ahead_floats; /* may be 0 */
} pph_narrow_tile;

typedef void (*pph_narrow_kernel)(const pph_narrow_tile *tile);

#endif
