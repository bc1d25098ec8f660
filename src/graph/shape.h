/* Shape and type inference, ONNX's rules (ONNX Runtime's where open). */
#ifndef PPH_GRAPH_SHAPE_H
#define PPH_GRAPH_SHAPE_H

#include "geometry/geometry.h"
#include "graph/graph.h"

/* Infers type and shape of all outputs of `node` from its inputs, whose shapes
   must be known; reads constant inputs where the shape depends on them. Checks
   every rule of the operator that concerns attributes, shapes and types, and
   reports each breach with the node's place, what was found, what is legal:
   PPH_BAD_MODEL. A shape that depends on a value that is no constant gives
   PPH_UNSUPPORTED. Outputs beyond graph->tensor_limit: PPH_LIMIT_EXCEEDED. */
PPH_NODISCARD pph_status pph_shape_infer_node(pph_graph *graph,
                                              pph_node *node,
                                              pph_error *error);

/* All nodes in order. */
PPH_NODISCARD pph_status pph_shape_infer(pph_graph *graph, pph_error *error);

/* Checks attributes that need no shapes (stride 0, group -1, blocksize 0,
   lengths of attribute lists against the weight's rank where it is a constant,
   channels against groups where known, ...), so that a malformed model is
   refused when it is loaded. Run by the importer on every node. */
PPH_NODISCARD pph_status pph_shape_check_node(const pph_graph *graph,
                                              const pph_node *node,
                                              pph_error *error);

/* Geometry of a Conv, ConvTranspose or pooling node with inferred input shape,
   defaults filled in, per spatial axis. For pooling `weight` may be absent. */
typedef struct pph_window {
  uint32_t axes; /* 1, 2 or 3 */
  int64_t group;
  int64_t in_channels, out_channels; /* whole, not per group */
  int64_t batch;
  int64_t input[3], output[3], kernel[3], stride[3], dilation[3];
  int64_t pad_begin[3], pad_end[3]; /* resolved from auto_pad, output_shape */
  int64_t output_padding[3];        /* transposed only */
} pph_window;

/* One spatial axis of it, and back. */
pph_axis pph_window_axis(const pph_window *window, uint32_t i);
void pph_window_set_axis(pph_window *window, uint32_t i, const pph_axis *axis);

PPH_NODISCARD pph_status pph_shape_find_window(const pph_graph *graph,
                                               const pph_node *node,
                                               pph_window *window,
                                               pph_error *error);

/* NumPy broadcasting of two shapes; false when they do not fit. */
bool pph_shape_broadcast(const pph_shape *a, const pph_shape *b,
                         pph_shape *result);

#endif
