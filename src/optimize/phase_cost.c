/* When phases are faster than XNNPACK's own deconvolution. */
#include "optimize/phase_nodes.h"

double pph_payload_phase_cost(const pph_polyphase_plan *plan) {
  return pph_polyphase_plan_cost(plan);
}

double pph_payload_deconvolution_cost(const pph_window *window) {
  return pph_deconvolution_cost(window);
}
