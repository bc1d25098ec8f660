/* Whether a convolution of a payload pays as minimal filtering along one axis,
   and by which filter. */
#ifndef PPH_OPTIMIZE_FILTER_PLAN_H
#define PPH_OPTIMIZE_FILTER_PLAN_H

#include "optimize/delegate_edit.h"
#include "optimize/filter_form.h"

/* A convolution of stride 1 along rows. A line [N,1,L,C] of a dilated kernel is
   rows of as many columns as the dilation. */
typedef struct pph_filter_view {
  uint32_t batch, rows, columns, in_channels;
  uint32_t taps, pad, column_taps;
  uint32_t out_rows, out_columns, out_channels;
  bool is_line;
} pph_filter_view;

typedef struct pph_filter_plan {
  pph_filter_view view;
  const pph_filter_form *form;
  pph_filter_matrices matrices;
  uint32_t tiles;  /* of form->outputs rows; what is over is cut off */
  uint32_t groups; /* of form->taps taps, as many rows apart as a tile has */
  double gain;     /* times as fast as it is */
} pph_filter_plan;

/* A row of B as a depthwise convolution along rows: its first row before the
   picture's (never negative), from which B's taps go. */
typedef struct pph_filter_taps {
  uint32_t first, count, step; /* places in the row of B */
  uint32_t pad_top, pad_bottom;
} pph_filter_taps;
pph_filter_taps pph_filter_find_taps(const pph_filter_plan *plan,
                                     uint32_t point);

/* Whether it is to be rewritten; a false answer leaves *plan undefined. */
bool pph_filter_plan_make(const pph_delegate_edit *edit,
                          const pph_payload_conv *conv, pph_filter_plan *plan);

#endif
