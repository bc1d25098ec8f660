/* A transposed convolution as nodes of a payload that has no such thing as a
   phase: convolutions, and what puts their results between each other. */
#ifndef PPH_OPTIMIZE_PHASE_NODES_H
#define PPH_OPTIMIZE_PHASE_NODES_H

#include "optimize/phase_weights.h"

/* The geometry of a node 39, which may be made up. Why it has none; NULL when
   it has. */
const char *pph_phase_open_window(const pph_delegate_edit *edit,
                                  const pph_payload_conv *conv,
                                  pph_window *window);

/* Why the plan has no nodes; NULL when it has. */
const char *pph_phase_find_form_obstacle(const pph_delegate_edit *edit,
                                         const pph_payload_conv *conv,
                                         const pph_polyphase_plan *plan);

/* Adds the nodes; the last one makes conv->output_id. */
PPH_NODISCARD pph_status pph_phase_put_nodes(pph_delegate_edit *edit,
                                             const pph_phase_source *source,
                                             const pph_payload_min_max *range);

/* The same with the result channels first, for a transpose that follows: the
   last node makes `output`. Only with pph_phase_has_columns, and then the
   source has columns_first. */
bool pph_phase_has_columns(const pph_polyphase_plan *plan);
PPH_NODISCARD pph_status pph_phase_put_nodes_first(
    pph_delegate_edit *edit, const pph_phase_source *source,
    const pph_payload_min_max *range, uint32_t output);

#endif
