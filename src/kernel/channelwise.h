/* Convolutions whose vectors are channels of one pixel: depthwise ones, and
   those of a few channels per group. Channels last.

   One call computes a strip of outputs that all have the same taps inside the
   input: `lines` lines of `count` pixels times `phases`, and for each pixel and
   phase `channels` neighbouring channels.

   Weights come in blocks of LANES output channels, filled up with zeros; a
   block has at
     row * weight_row + tap * weight_tap + (phase * ins + in) * LANES + lane
   the weight of that lane. */
#ifndef PPH_KERNEL_CHANNELWISE_H
#define PPH_KERNEL_CHANNELWISE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/epilogue.h"

/* Which inputs a block of a grouped convolution reads: lane l of in-group
   channel i takes input[base + index[i * LANES + l]], every index < span.
   Without an index all lanes take input[base + i]. */
typedef struct pph_channelwise_pick {
  size_t base, span;
} pph_channelwise_pick;

/* Distances are in floats. */
typedef struct pph_channelwise_strip {
  size_t lines, count, phases, channels;
  size_t rows, taps;  /* 0 of either: the epilogue of 0 */
  const float *input; /* what the first tap of the first output reads: its
                         channel 0 (grouped), that of the output (depthwise) */
  size_t pixel_step;  /* from what an output reads to the next one's */
  size_t line_step;   /* and to the next line's */
  size_t tap_step, row_step;
  const float *weights;
  size_t weight_block, weight_row, weight_tap;
  float *output;
  size_t output_step; /* from one of `count` to the next */
  size_t phase_step, output_line;
  const pph_epilogue *epilogue; /* residual lies as the output does */
  size_t ahead; /* how far before what is stored lines are fetched; 0: none */
  bool stream;  /* past the caches: output and steps are multiples of 64 bytes,
                   channels of whole vectors */
  /* Grouped only. */
  size_t ins;                        /* input channels of a group */
  size_t span;                       /* the largest of picks */
  const pph_channelwise_pick *picks; /* per block */
  const int32_t *index;              /* per block ins * LANES, or NULL */
} pph_channelwise_strip;

/* Per element one chain of fused multiply-adds from 0 over rows, taps and
   in-group channels, then the epilogue. Nothing is read outside the pixels'
   channels. A call with count 0 ends streaming: what was streamed before it is
   seen by other threads. */
typedef void (*pph_channelwise_kernel)(const pph_channelwise_strip *strip);

#endif
