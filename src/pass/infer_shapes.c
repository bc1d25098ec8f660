/* Gives every value its type and shape. Constants that shapes depend on are
   small; they are folded on the way, larger ones wait for fold_constants. */
#include "base/fail.h"
#include "pass/constant_walk.h"
#include "pass/pass.h"

pph_status pph_pass_infer_shapes(pph_graph *graph,
                                 const pph_pass_options *options,
                                 pph_error *error) {
  (void)options;
  pph_constant_budget budget = {.result_bytes = 64 << 10,
                                .shrink = false,
                                .node_work = 1 << 22,
                                .total_work = 1e9,
                                .total_bytes = 256 << 20};
  return pph_constant_walk(graph, &budget, error);
}
