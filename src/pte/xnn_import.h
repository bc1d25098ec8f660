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
  pph_id *ids;    /* per slot; PPH_NO_VALUE while not made */
  pph_id *scales; /* per slot quantized in the run: what its rows count in */
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

/* Which types of values a kind takes. */
typedef enum pph_payload_types {
  PPH_PAYLOAD_FLOATS,   /* fp32 and fp16 */
  PPH_PAYLOAD_MOVES,    /* or integers, all quantized alike */
  PPH_PAYLOAD_COMPUTES, /* or integers of one type: computed as real numbers */
  PPH_PAYLOAD_CONVERTS, /* from one to another */
  PPH_PAYLOAD_SUMS      /* products summed up: the table in xnn_types.c */
} pph_payload_types;

/* How a kind is imported; make NULL: not at all. */
typedef struct pph_payload_rule {
  pph_payload_make *make;
  pph_node_kind kind; /* of ours, where one does it all */
  uint32_t flags;     /* those that may be set */
  pph_payload_types types;
} pph_payload_rule;
const pph_payload_rule *pph_payload_find_rule(uint32_t kind);

pph_status pph_payload_fail(const pph_payload_step *step, pph_status status,
                            const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The graph's value for input `slot`; a constant is added at first use. */
PPH_NODISCARD pph_status pph_payload_input(const pph_payload_step *step,
                                           uint32_t slot, pph_id *id);
/* The elements of a constant input as numbers (below) into to[count], for which
   there is room; where they came from (`external` may be NULL). */
PPH_NODISCARD pph_status pph_payload_numbers(const pph_payload_step *step,
                                             uint32_t slot, float *to,
                                             const char **external);
/* How many elements a value has; they can be counted. */
size_t pph_payload_count(const pph_payload_slot *slot);
/* `count` floats (and room for 16 more) in the graph's arena; NULL when there
   is no memory or the graph's limit is passed. */
float *pph_payload_allocate(const pph_payload_step *step, size_t count);
/* A constant of floats that are in the graph's arena. */
PPH_NODISCARD pph_status pph_payload_add_floats(const pph_payload_step *step,
                                                const float *data,
                                                const pph_shape *shape,
                                                const char *external,
                                                pph_id *id);
/* `left` and a number. */
PPH_NODISCARD pph_status pph_payload_emit_number(const pph_payload_step *step,
                                                 pph_node_kind kind,
                                                 pph_id left, float number,
                                                 pph_id *output);
/* Scales of a quantized constant: one, or one per channel; in the arena. */
PPH_NODISCARD pph_status pph_payload_scales(const pph_payload_step *step,
                                            uint32_t slot, const float **scales,
                                            uint32_t *count);
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
/* Applies the node's output_min_max, if it has one. */
PPH_NODISCARD pph_status pph_payload_clamp(const pph_payload_step *step,
                                           pph_id *id);
PPH_NODISCARD pph_status pph_payload_clip(const pph_payload_step *step,
                                          float low, float high, pph_id *id);
/* `id` is what the payload calls output `slot`. */
void pph_payload_finish(const pph_payload_step *step, uint32_t slot,
                        pph_id id);

/* Types. (xnn_types.c) */

static inline bool pph_payload_is_float(const pph_payload_slot *slot) {
  return slot->tensor->datatype == PPH_PAYLOAD_F32 ||
         slot->tensor->datatype == PPH_PAYLOAD_F16;
}
/* Integers with a scale and a zero point in the file. */
static inline bool pph_payload_is_static(const pph_payload_slot *slot) {
  return slot->tensor->datatype == PPH_PAYLOAD_Q8 ||
         slot->tensor->datatype == PPH_PAYLOAD_QU8;
}
/* Refuses a combination of types that XNNPACK has no kernel for, by name. */
PPH_NODISCARD pph_status pph_payload_check_types(const pph_payload_step *step);

/* Quantized values. In the graph each is an f32 value of integers: what the
   payload has minus its zero point. Sums of their products are exact, and zero
   is 0, so that convolutions, passes and kernels for floats do the work.
   (xnn_import_quantized.c) */

/* The least and greatest integer of output 0, output_min_max applied. */
void pph_payload_find_limits(const pph_payload_step *step, float *low,
                             float *high);
/* A real number as an integer of that value. */
float pph_payload_round(const pph_payload_slot *slot, float number);
/* An input as its kind wants it: where it computes, real numbers. */
PPH_NODISCARD pph_status pph_payload_take(const pph_payload_step *step,
                                          uint32_t slot, pph_id *id);
/* What the node has computed as output 0 has it: scaled, rounded, clamped.
   `trailing` dimensions lie behind the channels. Sums have their bias already,
   unless the input is quantized in the run. */
PPH_NODISCARD pph_status pph_payload_settle(const pph_payload_step *step,
                                            uint32_t trailing, pph_id *id);
static inline bool pph_payload_adds_bias_late(const pph_payload_step *step) {
  return step->inputs[0]->tensor->datatype == PPH_PAYLOAD_QD8;
}

/* xnn_import_window.c: convolutions, pools, resizing.
   xnn_import_quantized.c: Convert.
   xnn_import_integer.c: what has integer arithmetic of its own.
   xnn_import_other.c: the rest. */
pph_payload_make pph_payload_make_conv, pph_payload_make_pool,
    pph_payload_make_argmax, pph_payload_make_global_average,
    pph_payload_make_resize, pph_payload_make_convert;
pph_payload_make pph_payload_make_sum, pph_payload_make_product;
pph_payload_make pph_payload_make_plain, pph_payload_make_leaky,
    pph_payload_make_elu, pph_payload_make_square,
    pph_payload_make_reciprocal_root, pph_payload_make_gelu,
    pph_payload_make_softmax, pph_payload_make_transpose,
    pph_payload_make_reshape, pph_payload_make_slice, pph_payload_make_pad,
    pph_payload_make_concatenate, pph_payload_make_linear,
    pph_payload_make_matmul;

#endif
