/* The reference evaluator: plain loops, sums in double, row-major tensors. The
   judge of every faster path, and the constant folder. It ignores layouts. */
#ifndef PPH_GRAPH_EVAL_H
#define PPH_GRAPH_EVAL_H

#include "graph/graph.h"

/* Computes one node. `inputs[i]` matches node->inputs[i] (data NULL for an
   omitted one), `outputs[i]` have type, shape (as shape inference gives it) and
   writable data of the right size. Scratch comes from graph->heap. Applies the
   node's fused activation. PPH_UNSUPPORTED for an element type that the kind
   has no loop for, naming both. `pph_shape_infer_node` must have passed on the
   node: shapes and attributes are not checked again, but index inputs (Gather,
   ScatterND, data-dependent ones) are checked here. Thread-safe. */
PPH_NODISCARD pph_status pph_eval_node(const pph_graph *graph,
                                       const pph_node *node,
                                       const pph_tensor *inputs,
                                       const pph_tensor *outputs,
                                       pph_error *error);

/* Whether pph_eval_node has a loop for the kind at all. */
bool pph_eval_supports(pph_node_kind kind);

/* Whether a Resize node, shapes inferred, only repeats elements: nearest, with
   output o of axis i reading input o / factors[i]. Its scales or sizes must be
   constants. `factors` has room for the rank. */
bool pph_eval_resize_repeats(const pph_graph *graph, const pph_node *node,
                             int64_t *factors);

#endif
