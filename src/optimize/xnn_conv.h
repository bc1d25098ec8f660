/* What XNNPACK's convolutions cost in the official ExecuTorch runtime (1.5.1),
   fitted on one Zen 4 core by bench/optimize_speed.py, and which of them steps
   may write in another form. */
#ifndef PPH_OPTIMIZE_XNN_CONV_H
#define PPH_OPTIMIZE_XNN_CONV_H

#include "base/checked.h"
#include "optimize/delegate_edit.h"

enum { PPH_XNN_LANES = 16 }; /* output channels that are computed together */

static const double pph_xnn_macs_per_us = 57000, pph_xnn_bytes_per_us = 48000,
                    pph_xnn_node_us = 0.5,
                    pph_xnn_least_gain = 1.08; /* less may be none */

static inline double pph_xnn_round_to_lanes(uint32_t channels) {
  return (double)pph_round_up(channels, PPH_XNN_LANES);
}

/* A dense f32 convolution of constants, whose values are as it says. */
bool pph_xnn_conv_is_plain(const pph_delegate_edit *edit,
                           const pph_payload_conv *conv);

/* Elements of an f32 constant, in the arena, and the file they are from. */
PPH_NODISCARD pph_status pph_xnn_conv_read(pph_delegate_edit *edit,
                                           uint32_t id, const float **floats,
                                           const pph_pte_external **external);

void pph_xnn_conv_describe(const pph_payload_conv *conv, char *text,
                           size_t size);

#endif
