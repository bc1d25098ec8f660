/* A payload's nodes as nodes of our graph. */
#ifndef PPH_PTE_XNN_IMPORT_H
#define PPH_PTE_XNN_IMPORT_H

#include "graph/graph.h"
#include "pte/xnn_check.h"

/* Appends the payload's nodes to `graph`. arguments[external number], `count`
   of them: inputs are given, in the payload's order of dimensions, and outputs
   are filled in. Constants are copied into the graph. Values keep the payload's
   order of dimensions; what XNNPACK computes channels last is put between
   transposes, which passes remove.
   PPH_UNSUPPORTED, before anything is added, for a node or types that have no
   counterpart. */
PPH_NODISCARD pph_status pph_payload_import(const pph_payload_index *index,
                                            const pph_pte *pte,
                                            pph_graph *graph,
                                            pph_id *arguments, uint32_t count,
                                            pph_error *error);

/* Inside the importer. */

typedef struct pph_payload_importer {
  const pph_payload_index *index;
  const pph_pte *pte;
  pph_graph *graph;
  pph_id *ids; /* per slot; PPH_NO_VALUE while not made */
  pph_error *error;
} pph_payload_importer;

/* The node being imported. */
typedef struct pph_payload_step {
  pph_payload_importer *importer;
  const pph_payload_node *node;
  const void *table; /* the node's own fields */
  uint32_t number;
  const pph_payload_slot *inputs[PPH_PAYLOAD_MOST_INPUTS]; /* NULL: absent */
  const pph_payload_slot *outputs[PPH_PAYLOAD_MOST_OUTPUTS];
  uint32_t input_count, output_count;
} pph_payload_step;

typedef pph_status pph_payload_make(const pph_payload_step *step);

/* How a kind is imported; make NULL: not at all. */
typedef struct pph_payload_rule {
  pph_payload_make *make;
  pph_node_kind kind; /* of ours, where one does it all */
  uint32_t flags;     /* those that may be set */
} pph_payload_rule;
const pph_payload_rule *pph_payload_find_rule(uint32_t kind);

pph_status pph_payload_fail(const pph_payload_step *step, pph_status status,
                            const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The graph's value for input `slot`; a constant is added at first use. */
PPH_NODISCARD pph_status pph_payload_input(const pph_payload_step *step,
                                           uint32_t slot, pph_id *id);
/* The floats of a constant input in a block of the graph's arena that has
   room for 64 bytes more; where they came from. */
PPH_NODISCARD pph_status pph_payload_floats(const pph_payload_step *step,
                                            uint32_t slot, const float **data,
                                            const char **external);
/* A constant of floats that are in the graph's arena. */
PPH_NODISCARD pph_status pph_payload_add_floats(const pph_payload_step *step,
                                                const float *data,
                                                const pph_shape *shape,
                                                const char *external,
                                                pph_id *id);
/* A node with one output. `node` may be NULL. */
PPH_NODISCARD pph_status pph_payload_emit(const pph_payload_step *step,
                                          pph_node_kind kind,
                                          const pph_id *inputs, uint32_t count,
                                          pph_node **node, pph_id *output);
/* Between [N,H,W,C] and [N,C,H,W]. */
PPH_NODISCARD pph_status pph_payload_to_channels_first(
    const pph_payload_step *step, pph_id from, pph_id *to);
PPH_NODISCARD pph_status pph_payload_to_channels_last(
    const pph_payload_step *step, pph_id from, pph_id *to);
/* Applies the node's output_min_max. */
PPH_NODISCARD pph_status pph_payload_clamp(const pph_payload_step *step,
                                           pph_id *id);
/* `id` is what the payload calls output `slot`. */
void pph_payload_finish(const pph_payload_step *step, uint32_t slot,
                        pph_id id);

/* xnn_import_window.c: convolutions, pools, resizing.
   xnn_import_other.c: the rest. */
pph_payload_make pph_payload_make_conv, pph_payload_make_pool,
    pph_payload_make_argmax, pph_payload_make_global_average,
    pph_payload_make_resize;
pph_payload_make pph_payload_make_plain, pph_payload_make_leaky,
    pph_payload_make_elu, pph_payload_make_square,
    pph_payload_make_reciprocal_root, pph_payload_make_gelu,
    pph_payload_make_softmax, pph_payload_make_transpose,
    pph_payload_make_reshape, pph_payload_make_slice, pph_payload_make_pad,
    pph_payload_make_concatenate, pph_payload_make_linear,
    pph_payload_make_matmul, pph_payload_make_convert;

#endif
