/* Convolutions of stride 1 become minimal filtering along one axis: fewer
   products, for sums that are cheap beside them. */
#include <stdio.h>

#include "base/fail.h"
#include "optimize/xnn_conv.h"
#include "optimize/filter_nodes.h"

static pph_status visit(pph_delegate_edit *edit, const pph_payload_node *node,
                        bool *taken) {
  const pph_payload_conv *conv = node->xnode_union.value;
  pph_filter_plan plan;
  char details[96], text[96];
  if (node->xnode_union.type != PPH_PAYLOAD_CONV ||
      !pph_filter_plan_make(edit, conv, &plan))
    return PPH_OK;
  *taken = true;
  edit->changes++;
  pph_xnn_conv_describe(conv, details, sizeof details);
  snprintf(text, sizeof text,
           "minimal filtering F(%u, %u), expected to be %.1f times as fast",
           plan.form->outputs, plan.form->taps, plan.gain);
  pph_delegate_edit_report(edit, node, details, text);
  return pph_filter_put_nodes(edit, conv, &plan, node->output_min_max);
}

pph_status pph_optimize_filter(pph_delegate_edit *edit) {
  return pph_delegate_edit_walk(edit, visit);
}
