/* Computes what does not depend on the inputs. A result above 16 MiB is kept as
   a node unless it is no larger than its inputs: a model file must not grow
   without bound by an Expand, nor take minutes to load by a convolution. */
#include "base/fail.h"
#include "pass/constant_walk.h"
#include "pass/pass.h"

pph_status pph_pass_fold_constants(pph_graph *graph,
                                   const pph_pass_options *options,
                                   pph_error *error) {
  (void)options;
  pph_constant_budget budget = {.result_bytes = 16 << 20,
                                .shrink = true,
                                .node_work = 1 << 27,
                                .total_work = 2e9,
                                .total_bytes = 1 << 30};
  return pph_constant_walk(graph, &budget, error);
}
