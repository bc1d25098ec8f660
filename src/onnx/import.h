/* What the parts of the ONNX importer share. Everything lives in the graph's
   arena, the unpacked file too: constants point into it. */
#ifndef PPH_ONNX_IMPORT_H
#define PPH_ONNX_IMPORT_H

#include "graph/graph.h"
#include "graph/text_names.h"
#include "onnx_subset.pb-c.h"

typedef Pph__Onnx__AttributeProto pph_onnx_attribute;
typedef Pph__Onnx__GraphProto pph_onnx_graph;
typedef Pph__Onnx__ModelProto pph_onnx_model;
typedef Pph__Onnx__NodeProto pph_onnx_node;
typedef Pph__Onnx__TensorProto pph_onnx_tensor;
typedef Pph__Onnx__ValueInfoProto pph_onnx_value_info;

/* AttributeProto.AttributeType */
enum {
  PPH_ONNX_FLOAT = 1,
  PPH_ONNX_INT = 2,
  PPH_ONNX_STRING = 3,
  PPH_ONNX_TENSOR = 4,
  PPH_ONNX_FLOATS = 6,
  PPH_ONNX_INTS = 7,
  PPH_ONNX_STRINGS = 8
};

/* What the importer knows of a value before shapes are inferred; old operators
   need it where they count axes from an end that the new ones do not. */
typedef struct pph_import_fact {
  int32_t rank;   /* -1: not known */
  pph_dtype type; /* PPH_DTYPE_NONE: not known */
} pph_import_fact;

typedef struct pph_import {
  pph_graph *graph;
  const pph_onnx_graph *source;
  const char *folder; /* may be NULL */
  int64_t opset;
  pph_text_names names;
  pph_import_fact *facts; /* heap block, one per value, of nodes' outputs */
  uint32_t fact_count;
  pph_error *error;
} pph_import;

struct pph_import_row;

/* The node being imported. Its conversion may change the inputs (there is room
   for PPH_IMPORT_SLOTS at least) before it emits nodes. */
enum { PPH_IMPORT_SLOTS = 8 };
typedef struct pph_import_op {
  pph_import *import;
  const pph_onnx_node *source;
  const struct pph_import_row *row;
  uint32_t index;
  pph_id *inputs;
  uint32_t input_count;
  pph_id *outputs;
  uint32_t output_count;
} pph_import_op;

/* Emits the node's nodes; the last writes op->outputs. */
typedef pph_status pph_import_convert(pph_import_op *op);

/* One ONNX operator. Attributes in neither list are refused. */
typedef struct pph_import_row {
  const char *name;
  uint8_t since, until; /* opsets that have it; until 0: still there */
  pph_node_kind kind;
  const char *copied;  /* attributes that the node takes as they are */
  const char *handled; /* attributes that `convert` reads or that do not matter
                          for running */
  pph_import_convert *convert; /* NULL: pph_import_emit */
} pph_import_row;

/* The row of that name, or NULL. */
const pph_import_row *pph_import_find_row(const char *name);

/* Whether `word` is one of the words of `list`, which spaces part. */
bool pph_import_has_word(const char *list, const char *word);

/* import_node.c: making nodes. */
pph_status pph_import_fail(const pph_import_op *op, pph_status status,
                           const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The place "node 17 Conv \"up2\"" of an ONNX node. */
void pph_import_set_where(pph_error *error, const pph_onnx_node *node,
                          uint32_t index);
/* Imports one node: resolved inputs and outputs -> nodes of the graph. */
PPH_NODISCARD pph_status pph_import_node(pph_import *import, uint32_t index);
/* The node as the row says, with the copied attributes. `node` may be NULL. */
PPH_NODISCARD pph_status pph_import_emit(pph_import_op *op, pph_node **node);
/* A node of `kind` without attributes that writes op->outputs. */
PPH_NODISCARD pph_status pph_import_emit_bare(pph_import_op *op,
                                              pph_node_kind kind,
                                              pph_node **node);
/* A node before the final one; its only output is a fresh value. */
PPH_NODISCARD pph_status pph_import_insert(pph_import_op *op,
                                           pph_node_kind kind,
                                           const pph_id *inputs, uint32_t count,
                                           pph_node **node, pph_id *output);
/* Input `slot`, PPH_NO_VALUE when absent. */
pph_id pph_import_input(const pph_import_op *op, uint32_t slot);
/* Puts `id` (PPH_NO_VALUE too) into slot < PPH_IMPORT_SLOTS. */
void pph_import_set_input(pph_import_op *op, uint32_t slot, pph_id id);
/* Input `slot` becomes a new i64 vector. */
PPH_NODISCARD pph_status pph_import_set_ints(pph_import_op *op, uint32_t slot,
                                             const int64_t *ints, size_t count);
/* Input `slot` becomes a scalar of the element type of input 0, f32 when that
   is not known. */
PPH_NODISCARD pph_status pph_import_set_scalar(pph_import_op *op, uint32_t slot,
                                               float number);

/* import_attribute.c: reading attributes. Each fails with PPH_BAD_MODEL when
   the attribute has another type, and leaves the result as it was when there
   is none. `present` may be NULL. */
const pph_onnx_attribute *pph_import_find_attribute(const pph_onnx_node *node,
                                                    const char *name);
PPH_NODISCARD pph_status pph_import_check_attributes(const pph_import_op *op);
PPH_NODISCARD pph_status pph_import_get_int(const pph_import_op *op,
                                            const char *name, int64_t *value,
                                            bool *present);
PPH_NODISCARD pph_status pph_import_get_float(const pph_import_op *op,
                                              const char *name, float *value,
                                              bool *present);
PPH_NODISCARD pph_status pph_import_get_ints(const pph_import_op *op,
                                             const char *name,
                                             const int64_t **ints,
                                             size_t *count, bool *present);
PPH_NODISCARD pph_status pph_import_get_floats(const pph_import_op *op,
                                               const char *name,
                                               const float **floats,
                                               size_t *count, bool *present);
/* `text` is a copy that ends in 0. */
PPH_NODISCARD pph_status pph_import_get_text(const pph_import_op *op,
                                             const char *name,
                                             const char **text, bool *present);
/* NULL when there is none. */
PPH_NODISCARD pph_status pph_import_get_tensor(const pph_import_op *op,
                                               const char *name,
                                               pph_onnx_tensor **tensor);
/* Sets `node`'s attributes that the row copies. */
PPH_NODISCARD pph_status pph_import_copy_attributes(const pph_import_op *op,
                                                    pph_node *node);

/* import_tensor.c: a TensorProto as a tensor whose data is in the arena, with
   64 bytes of slack. `external` gets the data file's name or NULL. Place is
   the caller's to add. */
PPH_NODISCARD pph_status pph_import_tensor(pph_import *import,
                                           pph_onnx_tensor *source,
                                           pph_tensor *tensor,
                                           const char **external);
/* Adds it as a constant of that name (NULL: a fresh one); not in the table of
   names. */
PPH_NODISCARD pph_status pph_import_add_constant(pph_import *import,
                                                 const char *name,
                                                 pph_onnx_tensor *source,
                                                 pph_id *id);
/* A supported element type by ONNX's number, or PPH_DTYPE_NONE. */
pph_dtype pph_import_dtype(int64_t number);

/* import_facts.c */
pph_import_fact pph_import_find_fact(const pph_import *import, pph_id id);
/* Works out the facts of `node`'s outputs from its inputs'. */
PPH_NODISCARD pph_status pph_import_add_facts(pph_import *import,
                                              const pph_node *node);
/* Elements of a constant i32/i64 vector or scalar behind input `slot`. */
bool pph_import_read_ints(const pph_import_op *op, uint32_t slot, int64_t *ints,
                          size_t capacity, size_t *count);

/* import_constant.c: a Constant node becomes a constant. */
PPH_NODISCARD pph_status pph_import_constant_node(pph_import *import,
                                                  const pph_onnx_node *node,
                                                  uint32_t index, pph_id *id);

/* Conversions of import_table.c's rows. */
pph_import_convert pph_convert_batch_norm;
pph_import_convert pph_convert_block;
pph_import_convert pph_convert_broadcast;
pph_import_convert pph_convert_cast;
pph_import_convert pph_convert_clip;
pph_import_convert pph_convert_constant_of_shape;
pph_import_convert pph_convert_dropout;
pph_import_convert pph_convert_einsum;
pph_import_convert pph_convert_gru;
pph_import_convert pph_convert_max_pool;
pph_import_convert pph_convert_pad;
pph_import_convert pph_convert_prelu;
pph_import_convert pph_convert_reduce;
pph_import_convert pph_convert_reshape;
pph_import_convert pph_convert_resize;
pph_import_convert pph_convert_shape;
pph_import_convert pph_convert_slice;
pph_import_convert pph_convert_softmax;
pph_import_convert pph_convert_split;
pph_import_convert pph_convert_squeeze;
pph_import_convert pph_convert_sum;
pph_import_convert pph_convert_upsample;

#endif
