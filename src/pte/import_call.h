/* What the import of one instruction sees: its arguments and where its results
   go. All readers report with the operator's name and the argument's place. */
#ifndef PPH_PTE_IMPORT_CALL_H
#define PPH_PTE_IMPORT_CALL_H

#include "pte/import_plan.h"

typedef struct pph_pte_importer {
  const pph_pte *pte;
  const pph_pte_plan *plan;
  pph_graph *graph;
  pph_id *ids; /* of the plan's values, tensors and computed numbers */
  uint64_t steps; /* of work done, so that loops end */
  pph_error *error;
} pph_pte_importer;

typedef struct pph_pte_call {
  pph_pte_importer *import;
  const int32_t *args;
  uint32_t arg_count; /* without the results, which are listed twice */
  uint32_t all_count; /* with them */
  int32_t result;     /* the first one */
  char name[96]; /* "aten::relu.out" */
} pph_pte_call;

typedef struct pph_pte_operator_row {
  const char *name;
  uint32_t arg_count;
  pph_status (*import)(pph_pte_call *call, pph_node_kind kind);
  pph_node_kind kind;
} pph_pte_operator_row;

/* "aten::relu.out" */
void pph_pte_operator_name(const pph_pte_operator *operator, char *name,
                           size_t size);
/* The graph's value for a plan's tensor; PPH_NO_VALUE: nothing has written it.
   Exporters leave out views: another tensor in the same planned memory is the
   same elements. */
PPH_NODISCARD pph_status pph_pte_find_id(pph_pte_importer *import,
                                         int32_t value, pph_id *id);

/* NULL when the operator is not imported. */
const pph_pte_operator_row *pph_pte_operator_find(const char *name);

pph_status pph_pte_call_fail(const pph_pte_call *call, pph_status status,
                             const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value that the plan has for it. */
const pph_flat_choice *pph_pte_arg(const pph_pte_call *call, uint32_t arg);
bool pph_pte_arg_is_null(const pph_pte_call *call, uint32_t arg);
PPH_NODISCARD pph_status pph_pte_arg_tensor(const pph_pte_call *call,
                                            uint32_t arg, pph_id *id);
PPH_NODISCARD pph_status pph_pte_arg_int(const pph_pte_call *call,
                                         uint32_t arg, int64_t *value);
PPH_NODISCARD pph_status pph_pte_arg_bool(const pph_pte_call *call,
                                          uint32_t arg, bool *value);
/* An Int or a Double. */
PPH_NODISCARD pph_status pph_pte_arg_float(const pph_pte_call *call,
                                           uint32_t arg, float *value);
PPH_NODISCARD pph_status pph_pte_arg_ints(const pph_pte_call *call,
                                          uint32_t arg, int64_t *ints,
                                          uint32_t *count);
enum { PPH_PTE_MOST_INTS = 16 };

/* Dimensions of a tensor argument as the plan has them. */
uint32_t pph_pte_arg_rank(const pph_pte_call *call, uint32_t arg);
/* A dimension from the end made one from the front; PPH_BAD_MODEL when it is
   out of range. */
PPH_NODISCARD pph_status pph_pte_find_axis(const pph_pte_call *call,
                                           uint32_t rank, int64_t *axis);

/* A node with one output, which `id` gets. */
PPH_NODISCARD pph_status pph_pte_add_node(const pph_pte_call *call,
                                          pph_node_kind kind,
                                          const pph_id *inputs, uint32_t count,
                                          pph_node **node, pph_id *id);
/* The same, and its output is the call's result. */
PPH_NODISCARD pph_status pph_pte_add_result(const pph_pte_call *call,
                                            pph_node_kind kind,
                                            const pph_id *inputs,
                                            uint32_t count, pph_node **node);

/* All instructions, in order. (import_flow.c) */
PPH_NODISCARD pph_status pph_pte_import_chain(pph_pte_importer *import,
                                              const pph_pte_chain *chain);
/* (import_delegate.c) */
PPH_NODISCARD pph_status pph_pte_import_delegate(
    pph_pte_importer *import, const pph_pte_delegate_call *call);

/* A constant scalar. */
PPH_NODISCARD pph_status pph_pte_add_float(const pph_pte_call *call,
                                           float number, pph_id *id);

/* An integer that is known now: fixed, or computed from such; a Bool is 0 or
   1. (import_number.c) */
bool pph_pte_find_number(const pph_pte_importer *import, int32_t value,
                         int64_t *number);
PPH_NODISCARD pph_status pph_pte_add_number(const pph_pte_importer *import,
                                            bool is_bool, int64_t number,
                                            pph_id *id);
/* A vector of one integer, known or not. */
PPH_NODISCARD pph_status pph_pte_arg_number(const pph_pte_call *call,
                                            uint32_t arg, pph_id *id);

/* Imports of operators. (import_math.c, import_resize.c,
   import_move.c, import_norm.c, import_line.c, import_quantize.c) */
pph_status pph_pte_import_layer_norm(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_group_norm(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_softmax(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_overwrite(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_copy(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_unary(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_binary(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_scaled(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_clamp(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_leaky(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_reduce(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_conv(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_bilinear(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_cumsum(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_sort(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_topk(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_nearest(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_reshape(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_permute(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_axis(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_cat(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_slice(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_shuffle(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_size(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_number(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_select(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_row(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_quantize(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_dequantize(pph_pte_call *call, pph_node_kind kind);
pph_status pph_pte_import_embedding(pph_pte_call *call, pph_node_kind kind);

#endif
