/* The graph: values, nodes and attributes in one arena. Nodes form a doubly
   linked list in an order in which every value is produced before it is read
   (the importer sorts; verify checks).

   Shapes are logical: always ONNX's order [N,C,spatial...]. How a value lies in
   memory is its `layout`; only backends look at it. */
#ifndef PPH_GRAPH_GRAPH_H
#define PPH_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "polyphase/operator.h"
#include "polyphase/status.h"
#include "polyphase/tensor.h"

typedef uint32_t pph_id; /* index of a value in its graph */
#define PPH_NO_VALUE UINT32_MAX

typedef enum pph_node_kind {
#define PPH_NODE_KIND(name, text, min_in, max_in, min_out, max_out, class)     \
  PPH_NODE_##name,
#include "graph/node_kind.def"
#undef PPH_NODE_KIND
  PPH_NODE_KIND_COUNT
} pph_node_kind;

typedef enum pph_node_class {
  PPH_CLASS_UNARY,
  PPH_CLASS_BINARY,
  PPH_CLASS_SPATIAL,
  PPH_CLASS_MOVE,
  PPH_CLASS_SHAPE,
  PPH_CLASS_OTHER
} pph_node_class;

typedef struct pph_node_kind_info {
  const char *name;
  uint32_t min_inputs, max_inputs, min_outputs, max_outputs;
  pph_node_class node_class;
} pph_node_kind_info;

typedef enum pph_attribute_type {
  PPH_ATTRIBUTE_INT,
  PPH_ATTRIBUTE_FLOAT,
  PPH_ATTRIBUTE_TEXT,
  PPH_ATTRIBUTE_INTS,
  PPH_ATTRIBUTE_FLOATS
} pph_attribute_type;

typedef enum pph_attribute_key {
#define PPH_ATTRIBUTE(key, text, type) PPH_ATTR_##key,
#include "graph/attribute.def"
#undef PPH_ATTRIBUTE
  PPH_ATTRIBUTE_KEY_COUNT
} pph_attribute_key;

/* One attribute; the member in use follows from the key's type. `count` is the
   length of ints and floats. All pointers live in the graph's arena. */
typedef struct pph_attribute {
  pph_attribute_key key;
  uint32_t count;
  union {
    int64_t i;
    float f;
    const char *text;
    const int64_t *ints;
    const float *floats;
  };
} pph_attribute;

typedef enum pph_layout {
  PPH_LAYOUT_PLAIN,         /* row-major in the logical order */
  PPH_LAYOUT_CHANNELS_LAST, /* rank 3 and up: [N,spatial...,C] in memory */
} pph_layout;

/* Where a constant lived in the file it came from; new constants that a pass
   makes take the origin of the one they replace, so that a rewritten model
   keeps them there. */
typedef struct pph_origin {
  const char *external; /* NULL: in the model file, else the data file's name */
} pph_origin;

struct pph_node;

typedef struct pph_value {
  const char *name;  /* unique and not empty */
  pph_dtype type;    /* PPH_DTYPE_NONE until inferred */
  bool has_rank;     /* shape.rank is known */
  pph_shape shape;   /* dims of -1 are unknown; all -1..: see has_rank */
  const char *dim_names[PPH_MAX_RANK]; /* symbolic names, or NULL */
  pph_layout layout; /* set by choose_layout */
  const void *data;  /* a constant's elements (plain, dense), or NULL; not
                        owned by the value: arena or the model's file bytes,
                        both outlive the graph */
  pph_origin origin;
  struct pph_node *producer; /* NULL for inputs and constants */
  /* Filled by pph_graph_index_uses; stale after a change. */
  uint32_t uses;         /* reads by nodes plus one if a graph output */
  struct pph_node *user; /* the first node that reads it */
} pph_value;

typedef struct pph_node {
  struct pph_node *previous, *next;
  pph_node_kind kind;
  pph_activation activation;
  uint32_t index; /* position in the file, kept by nodes made from it; for
                     messages */
  uint32_t input_count, output_count, attribute_count, attribute_capacity;
  const char *name; /* may be "" */
  pph_id *inputs;   /* PPH_NO_VALUE for an omitted optional input */
  pph_id *outputs;
  pph_attribute *attributes;
  const char *lowered; /* what a pass made of the original node this one came
                          from, "polyphase, dense, 4 phases", or NULL */
} pph_node;

/* What happened to an upsampling node (transposed convolution, resize, depth to
   space) of the original model; `pph_graph_add_note` appends. */
typedef struct pph_note {
  struct pph_note *next;
  const char *node_name;
  const char *kind;    /* text name of the original kind */
  const char *lowered; /* NULL when left alone */
  const char *reason;  /* why */
} pph_note;

typedef struct pph_graph {
  pph_heap *heap;
  pph_arena arena;
  const char *name;
  const char *method; /* of the program that it is from; NULL: of none */
  pph_value *values; /* heap block; pointers die when a value is added */
  uint32_t value_count, value_capacity;
  pph_node *first, *last;
  uint32_t node_count;
  pph_id *inputs, *outputs; /* arena */
  uint32_t input_count, output_count;
  const pph_shape *bounds; /* per input: what its open dimensions are at most,
                              as far as known (else -1); NULL: not known */
  /* The last inputs and outputs, as many each, are state: a run reads what the
     run before wrote, the first one what `states` has (NULL: zeros). */
  uint32_t state_count;
  const void *const *states;
  pph_note *first_note, *last_note;
  uint32_t note_count;
  uint32_t name_counter; /* for pph_graph_make_name */
  uint64_t tensor_limit; /* bytes a single tensor may have */
  uint32_t node_limit;
} pph_graph;

/* Life. The graph takes memory from `heap` only. `limits` NULL: defaults. */
void pph_graph_init(pph_graph *graph, pph_heap *heap,
                    const pph_limits *limits);
void pph_graph_clear(pph_graph *graph);

/* A deep copy of structure, names and notes; constants' data is shared, so
   `source` must outlive `copy` unless its data pointers do. `copy` is
   uninitialised memory; on failure it is cleared. Value ids are the same. */
PPH_NODISCARD pph_status pph_graph_copy(pph_graph *copy,
                                        const pph_graph *source,
                                        pph_heap *heap, pph_error *error);

/* Kinds and attribute keys. find_ returns PPH_NODE_KIND_COUNT /
   PPH_ATTRIBUTE_KEY_COUNT when the name is unknown. */
const pph_node_kind_info *pph_node_kind_find_info(pph_node_kind kind);
pph_node_kind pph_node_kind_find(const char *name);
pph_attribute_key pph_attribute_key_find(const char *name);
const char *pph_attribute_key_name(pph_attribute_key key);
pph_attribute_type pph_attribute_key_type(pph_attribute_key key);

/* Values. The name is copied; NULL makes a fresh unique one from "v".
   Fails with PPH_LIMIT_EXCEEDED or PPH_OUT_OF_MEMORY. Uniqueness of a given
   name is the caller's to ensure (verify checks). */
PPH_NODISCARD pph_status pph_graph_add_value(pph_graph *graph,
                                             const char *name, pph_id *id,
                                             pph_error *error);
/* A constant; `data` is copied into the arena (bytes follow from type and
   shape). `name` as for add_value. */
PPH_NODISCARD pph_status pph_graph_add_constant(pph_graph *graph,
                                                const char *name,
                                                const pph_tensor *tensor,
                                                pph_id *id, pph_error *error);
/* A constant i64 vector of `count` elements. */
PPH_NODISCARD pph_status pph_graph_add_ints(pph_graph *graph, const char *name,
                                            const int64_t *ints, size_t count,
                                            pph_id *id, pph_error *error);
static inline pph_value *pph_graph_value(const pph_graph *graph, pph_id id) {
  return &graph->values[id];
}
/* The constant behind input `slot` of a node, as a tensor whose data must not
   be written. False when there is no such input or it is no constant. */
bool pph_node_find_constant(const pph_graph *graph, const pph_node *node,
                            uint32_t slot, pph_tensor *tensor);
/* The value of input `slot`, or NULL when it is absent. */
pph_value *pph_node_find_input(const pph_graph *graph, const pph_node *node,
                               uint32_t slot);
/* The first output that the node has, which need not be its first; NULL when
   nobody reads it. */
pph_value *pph_node_find_result(const pph_graph *graph, const pph_node *node);
/* Whether a convolution, transposed or not, adds input 3 to its sums: what only
   the native operator and the evaluator do. */
bool pph_node_adds_residual(const pph_node *node);
/* Reads a constant i32/i64 tensor of rank 0 or 1 into `ints` (at most
   `capacity`); false if not constant, another type, or too long. */
bool pph_node_read_ints(const pph_graph *graph, const pph_node *node,
                        uint32_t slot, int64_t *ints, size_t capacity,
                        size_t *count);
/* The first `count` elements of an i32 or i64 tensor. */
void pph_tensor_copy_ints(const pph_tensor *tensor, size_t count,
                          int64_t *ints);
/* A name that no value has: "<stem>_<n>". NULL when out of memory. */
const char *pph_graph_make_name(pph_graph *graph, const char *stem);

/* Nodes. `before` NULL appends. Inputs and outputs are copied; producers of
   the outputs are set. The node's name is copied (NULL: ""). */
PPH_NODISCARD pph_status pph_graph_add_node(
    pph_graph *graph, pph_node_kind kind, const char *name, pph_node *before,
    pph_node **node, pph_error *error);
PPH_NODISCARD pph_status pph_node_set_inputs(pph_graph *graph, pph_node *node,
                                             const pph_id *ids, uint32_t count,
                                             pph_error *error);
PPH_NODISCARD pph_status pph_node_set_outputs(pph_graph *graph, pph_node *node,
                                              const pph_id *ids,
                                              uint32_t count,
                                              pph_error *error);
/* Shorthand: a node of one fresh output value (type and shape not set) before
   `before`; the output id comes back. */
PPH_NODISCARD pph_status pph_graph_insert(
    pph_graph *graph, pph_node_kind kind, pph_node *before,
    const pph_id *inputs, uint32_t input_count, pph_node **node,
    pph_error *error);
/* Unlinks; values stay, and its outputs' producer is cleared when it was this
   node. */
void pph_graph_remove_node(pph_graph *graph, pph_node *node);
/* Every node input and graph output that is `from` becomes `to`. O(graph). */
void pph_graph_replace_uses(pph_graph *graph, pph_id from, pph_id to);
/* Recomputes uses and user of every value. O(graph). */
void pph_graph_index_uses(pph_graph *graph);
bool pph_graph_is_output(const pph_graph *graph, pph_id id);
bool pph_graph_is_input(const pph_graph *graph, pph_id id);
PPH_NODISCARD pph_status pph_graph_set_inputs(pph_graph *graph,
                                              const pph_id *ids,
                                              uint32_t count,
                                              pph_error *error);
PPH_NODISCARD pph_status pph_graph_set_outputs(pph_graph *graph,
                                               const pph_id *ids,
                                               uint32_t count,
                                               pph_error *error);
/* Sorts the nodes so that producers come first, keeping file order where it
   can. A cycle gives PPH_BAD_MODEL naming a node on it. Not recursive. */
PPH_NODISCARD pph_status pph_graph_sort(pph_graph *graph, pph_error *error);

/* Attributes: getters take the default for an absent one; `ints` gives NULL and
   *count 0. Setters copy and replace. */
const pph_attribute *pph_node_find_attribute(const pph_node *node,
                                             pph_attribute_key key);
int64_t pph_node_int(const pph_node *node, pph_attribute_key key,
                     int64_t fallback);
float pph_node_float(const pph_node *node, pph_attribute_key key,
                     float fallback);
const char *pph_node_text(const pph_node *node, pph_attribute_key key,
                          const char *fallback);
const int64_t *pph_node_ints(const pph_node *node, pph_attribute_key key,
                             uint32_t *count);
PPH_NODISCARD pph_status pph_node_set_attribute(pph_graph *graph,
                                                pph_node *node,
                                                const pph_attribute *attribute,
                                                pph_error *error);
PPH_NODISCARD pph_status pph_node_set_int(pph_graph *graph, pph_node *node,
                                          pph_attribute_key key, int64_t value,
                                          pph_error *error);
PPH_NODISCARD pph_status pph_node_set_float(pph_graph *graph, pph_node *node,
                                            pph_attribute_key key, float value,
                                            pph_error *error);
PPH_NODISCARD pph_status pph_node_set_text(pph_graph *graph, pph_node *node,
                                           pph_attribute_key key,
                                           const char *text, pph_error *error);
PPH_NODISCARD pph_status pph_node_set_ints(pph_graph *graph, pph_node *node,
                                           pph_attribute_key key,
                                           const int64_t *ints, uint32_t count,
                                           pph_error *error);
void pph_node_remove_attribute(pph_node *node, pph_attribute_key key);
/* Copies all attributes and the activation of `source` (a node of any graph
   with the same arena) to `node`. */
PPH_NODISCARD pph_status pph_node_copy_attributes(pph_graph *graph,
                                                  pph_node *node,
                                                  const pph_node *source,
                                                  pph_error *error);

/* "node 17 ConvTranspose \"up2\"" into text; returns text. */
const char *pph_node_place(const pph_node *node, char *text, size_t size);
/* pph_fail with the node's place. */
pph_status pph_node_fail(const pph_node *node, pph_error *error,
                         pph_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Texts are copied; lowered or reason may be NULL. A second note for the same
   node name replaces the first. */
PPH_NODISCARD pph_status pph_graph_add_note(pph_graph *graph,
                                            const pph_node *node,
                                            const char *lowered,
                                            const char *reason,
                                            pph_error *error);

#endif
