/* ONNX files to graphs and back, over protobuf-c with a .proto subset of ours
   (onnx_subset.proto). */
#ifndef PPH_ONNX_ONNX_H
#define PPH_ONNX_ONNX_H

#include "graph/graph.h"

/* Imports a ModelProto. `bytes` must outlive the graph (constants' data points
   into them where aligned and in the right order). `folder` is where external
   data files lie (NULL: none allowed); paths that leave it, by "..", absolute
   paths or symbolic links, are refused. `graph` is initialised and empty; on
   failure its content is undefined but may be cleared.

   Before unpacking, a scan bounds the nesting depth and checks lengths.
   Opsets 6 to the newest; older forms become the newest (node_kind.def).
   PPH_BAD_MODEL for a malformed file, dangling or duplicate names, cycles,
   sizes that disagree, ...; PPH_UNSUPPORTED names an operator that is not
   there and its node. The result passes pph_graph_verify, is sorted, and every
   node passed pph_shape_check_node. */
PPH_NODISCARD pph_status pph_onnx_import(const void *bytes, size_t length,
                                         const char *folder,
                                         const pph_limits *limits,
                                         pph_graph *graph, pph_error *error);

/* Writes the graph as a ModelProto of opset 17 (18 or 19 when a node needs it)
   into a heap block of graph->heap (released by the caller with
   pph_heap_release); *bytes is NULL on failure. Fused activations become nodes,
   kinds of ours become ONNX nodes. Relayout is dropped. Constants are written
   into the file whatever their origin. PPH_UNSUPPORTED for what ONNX cannot
   say, PPH_LIMIT_EXCEEDED beyond protobuf's 2 GiB. */
PPH_NODISCARD pph_status pph_onnx_export(const pph_graph *graph, void **bytes,
                                         size_t *length, pph_error *error);

#endif
