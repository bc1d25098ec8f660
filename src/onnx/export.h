/* What the parts of the ONNX exporter share. The messages live in an arena of
   the export's own; names and constants' data in them are the graph's. */
#ifndef PPH_ONNX_EXPORT_H
#define PPH_ONNX_EXPORT_H

#include "graph/graph.h"
#include "graph/text_names.h"
#include "onnx_subset.pb-c.h"

typedef struct pph_export {
  const pph_graph *graph;
  pph_arena arena;
  pph_text_names names; /* the graph's, so that new ones differ */
  uint32_t name_counter;
  pph_graph node_names; /* values of it stand for the names of written nodes */
  pph_text_names node_table;
  int64_t opset;
  pph_id *stands_for;  /* per value: itself, or what a dropped node copied */
  unsigned char *used; /* per value: a written node reads it */
  Pph__Onnx__NodeProto **nodes;
  size_t node_count;
  Pph__Onnx__TensorProto **tensors;
  size_t tensor_count;
  pph_error *error;
} pph_export;

/* At most so many ONNX nodes and new constants come from one node. */
enum { PPH_EXPORT_PER_NODE = 5 };

/* export.c: making messages. `count` elements of arena memory. */
PPH_NODISCARD pph_status pph_export_allocate(pph_export *export, size_t count,
                                             size_t size, void **block);
/* A constant for the file. `data` of 0 bytes may be NULL; not copied. */
PPH_NODISCARD pph_status pph_export_make_tensor(pph_export *export,
                                                const char *name,
                                                const pph_tensor *tensor,
                                                Pph__Onnx__TensorProto **made);

/* export_node.c: one node of the graph to nodes of the file. */
PPH_NODISCARD pph_status pph_export_node(pph_export *export,
                                         const pph_node *node);
/* The oldest opset from 17 on that has what the node needs. */
int64_t pph_export_find_opset(const pph_graph *graph, const pph_node *node);

/* export_build.c: nodes and constants of the file by name. A name that no
   value has, from `stem`; NULL when out of memory. */
const char *pph_export_make_name(pph_export *export, const char *stem);
/* Names of a node's inputs or outputs; "" for an omitted one. */
typedef struct pph_export_names {
  const char *const *names;
  uint32_t count;
} pph_export_names;
/* Appends a node; the arrays are copied, the texts are not. */
PPH_NODISCARD pph_status pph_export_add_node(pph_export *export,
                                             const pph_node *source,
                                             const char *op_type,
                                             pph_export_names inputs,
                                             pph_export_names outputs);
/* The same with one input and output: `from` -> `to`. */
PPH_NODISCARD pph_status pph_export_add_unary(pph_export *export,
                                              const pph_node *source,
                                              const char *op_type,
                                              const char *from, const char *to);
/* A constant i64 vector; its name comes back. The ints are copied. */
PPH_NODISCARD pph_status pph_export_add_ints(pph_export *export,
                                             const int64_t *ints, size_t count,
                                             const char **name);
/* A scalar of type f32 or f64. */
PPH_NODISCARD pph_status pph_export_add_scalar(pph_export *export,
                                               pph_dtype type, float value,
                                               const char **name);
/* Attributes of the node added last. Ints are not copied. */
PPH_NODISCARD pph_status pph_export_set_attribute(
    pph_export *export, const char *name, pph_attribute_type type,
    const pph_attribute *attribute);
PPH_NODISCARD pph_status pph_export_set_int(pph_export *export,
                                            const char *name, int64_t value);
PPH_NODISCARD pph_status pph_export_set_tensor(pph_export *export,
                                               const char *name,
                                               const pph_tensor *tensor);

/* export_block.c: DepthToSpace and SpaceToDepth from value `from` to `to`. */
PPH_NODISCARD pph_status pph_export_block(pph_export *export,
                                          const pph_node *node,
                                          const char *from, const char *to);

#endif
