/* The constants of one convolution of a transposed convolution's phases, in the
   payload's layouts and types. */
#ifndef PPH_OPTIMIZE_PHASE_WEIGHTS_H
#define PPH_OPTIMIZE_PHASE_WEIGHTS_H

#include "optimize/delegate_edit.h"
#include "pass/polyphase_plan.h"

typedef struct pph_phase_source {
  const pph_payload_conv *conv;   /* the transposed convolution's table */
  const pph_polyphase_plan *plan;
  bool depthwise;     /* for a DepthwiseConv2d */
  bool columns_first; /* a block's channels are [x][y][c], not [y][x][c] */
} pph_phase_source;

/* Why the constants cannot be taken apart; NULL when they can. */
const char *pph_phase_find_obstacle(const pph_delegate_edit *edit,
                                    const pph_payload_conv *conv);

/* What the block's convolution has per axis: a block that no tap reaches gets
   one tap of zeros. */
typedef struct pph_phase_window {
  int64_t taps[2], step[2], pad_begin[2], pad_end[2];
} pph_phase_window;
pph_phase_window pph_phase_find_window(const pph_polyphase_plan *plan,
                                       const pph_phase_block *block);

PPH_NODISCARD pph_status pph_phase_make_filter(pph_delegate_edit *edit,
                                               const pph_phase_source *source,
                                               const pph_phase_block *block,
                                               uint32_t *id);
/* PPH_PAYLOAD_NONE where there is none. */
PPH_NODISCARD pph_status pph_phase_make_bias(pph_delegate_edit *edit,
                                             const pph_phase_source *source,
                                             const pph_phase_block *block,
                                             uint32_t *id);

#endif
