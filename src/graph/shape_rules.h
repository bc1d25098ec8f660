/* Inside shape inference: what the rules of the node kinds share. */
#ifndef PPH_GRAPH_SHAPE_RULES_H
#define PPH_GRAPH_SHAPE_RULES_H

#include "graph/shape.h"

/* The node a rule works on. No rule adds values, so pointers to values stay
   valid while it runs. */
typedef struct pph_shape_at {
  pph_graph *graph;
  pph_node *node;
  pph_error *error;
} pph_shape_at;

typedef pph_status (*pph_shape_rule)(const pph_shape_at *at);

/* shape.c */

/* The value of an input, NULL when omitted. */
pph_value *pph_rule_input(const pph_shape_at *at, uint32_t slot);
/* Sets type and shape of an output; checks the tensor limit. */
pph_status pph_rule_set_output(const pph_shape_at *at, uint32_t slot,
                               pph_dtype type, const pph_shape *shape);
/* pph_node_fail with PPH_BAD_MODEL. */
pph_status pph_rule_bad(const pph_shape_at *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* An axis in [-rank, rank) made non-negative. */
pph_status pph_rule_axis(const pph_shape_at *at, int64_t axis, int32_t rank,
                         int64_t *result);
/* The constant integers of an input; PPH_UNSUPPORTED when it is no constant. */
pph_status pph_rule_ints(const pph_shape_at *at, uint32_t slot, int64_t *ints,
                         size_t capacity, size_t *count);
/* At least `low` and at most `high` dimensions. */
pph_status pph_rule_rank(const pph_shape_at *at, uint32_t slot, int32_t low,
                         int32_t high);
/* All given inputs have the type of input `first`. */
pph_status pph_rule_same_types(const pph_shape_at *at, uint32_t first,
                               uint32_t count);
/* Output 0 like input 0. */
pph_status pph_rule_same(const pph_shape_at *at);

/* shape_elementwise.c */
pph_status pph_rule_unary(const pph_shape_at *at);
pph_status pph_rule_not(const pph_shape_at *at);
pph_status pph_rule_cast(const pph_shape_at *at);
pph_status pph_rule_clip(const pph_shape_at *at);
pph_status pph_rule_arithmetic(const pph_shape_at *at);
pph_status pph_rule_compare(const pph_shape_at *at);
pph_status pph_rule_logic(const pph_shape_at *at);
pph_status pph_rule_pow(const pph_shape_at *at);
pph_status pph_rule_prelu(const pph_shape_at *at);
pph_status pph_rule_where(const pph_shape_at *at);

/* shape_move.c */
pph_status pph_rule_concat(const pph_shape_at *at);
pph_status pph_rule_expand(const pph_shape_at *at);
pph_status pph_rule_flatten(const pph_shape_at *at);
pph_status pph_rule_gather(const pph_shape_at *at);
pph_status pph_rule_pad(const pph_shape_at *at);
pph_status pph_rule_reshape(const pph_shape_at *at);
pph_status pph_rule_scatter_nd(const pph_shape_at *at);
pph_status pph_rule_tile(const pph_shape_at *at);
pph_status pph_rule_transpose(const pph_shape_at *at);

/* shape_slice.c */
pph_status pph_rule_slice(const pph_shape_at *at);
pph_status pph_rule_split(const pph_shape_at *at);
pph_status pph_rule_squeeze(const pph_shape_at *at);
pph_status pph_rule_unsqueeze(const pph_shape_at *at);

/* shape_window.c */
pph_status pph_rule_window(const pph_shape_at *at);
pph_status pph_rule_global_pool(const pph_shape_at *at);
pph_status pph_rule_batch_normalization(const pph_shape_at *at);
pph_status pph_rule_depth_to_space(const pph_shape_at *at);
pph_status pph_rule_space_to_depth(const pph_shape_at *at);
/* What can be checked without the input's shape. While `loading`, what the file
   declares of a value that a node produces is not believed: exporters leave
   stale shapes on outputs. */
pph_status pph_rule_check_window(const pph_graph *graph, const pph_node *node,
                                 bool loading, pph_error *error);
pph_status pph_rule_check_block(const pph_graph *graph, const pph_node *node,
                                bool loading, pph_error *error);

/* shape_resize.c */
pph_status pph_rule_resize(const pph_shape_at *at);
pph_status pph_rule_check_resize(const pph_graph *graph, const pph_node *node,
                                 pph_error *error);

/* shape_other.c */
pph_status pph_rule_constant_of_shape(const pph_shape_at *at);
pph_status pph_rule_range(const pph_shape_at *at);
pph_status pph_rule_shape(const pph_shape_at *at);
pph_status pph_rule_size(const pph_shape_at *at);
pph_status pph_rule_cum_sum(const pph_shape_at *at);
pph_status pph_rule_gemm(const pph_shape_at *at);
pph_status pph_rule_gru(const pph_shape_at *at);
pph_status pph_rule_matmul(const pph_shape_at *at);
pph_status pph_rule_reduce(const pph_shape_at *at);
pph_status pph_rule_softmax(const pph_shape_at *at);
pph_status pph_rule_top_k(const pph_shape_at *at);

#endif
