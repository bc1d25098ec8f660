/* A planned convolution as nodes of a payload: depthwise convolutions that take
   rows to points, a convolution for each point, and sums that are rows. */
#ifndef PPH_OPTIMIZE_FILTER_NODES_H
#define PPH_OPTIMIZE_FILTER_NODES_H

#include "optimize/filter_plan.h"

/* Adds the nodes; the last one makes conv->output_id. */
PPH_NODISCARD pph_status pph_filter_put_nodes(
    pph_delegate_edit *edit, const pph_payload_conv *conv,
    const pph_filter_plan *plan, const pph_payload_min_max *range);

#endif
