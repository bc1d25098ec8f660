/* The table of shape rules, and what the rules share. */
#include "graph/shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape_rules.h"

static const pph_shape_rule rules[PPH_NODE_KIND_COUNT] = {
    [PPH_NODE_ABS] = pph_rule_unary,
    [PPH_NODE_CAST] = pph_rule_cast,
    [PPH_NODE_CEIL] = pph_rule_unary,
    [PPH_NODE_CLIP] = pph_rule_clip,
    [PPH_NODE_COS] = pph_rule_unary,
    [PPH_NODE_ELU] = pph_rule_unary,
    [PPH_NODE_ERF] = pph_rule_unary,
    [PPH_NODE_EXP] = pph_rule_unary,
    [PPH_NODE_FLOOR] = pph_rule_unary,
    [PPH_NODE_HARD_SIGMOID] = pph_rule_unary,
    [PPH_NODE_HARD_SWISH] = pph_rule_unary,
    [PPH_NODE_IDENTITY] = pph_rule_same,
    [PPH_NODE_LEAKY_RELU] = pph_rule_unary,
    [PPH_NODE_LOG] = pph_rule_unary,
    [PPH_NODE_NEG] = pph_rule_unary,
    [PPH_NODE_NOT] = pph_rule_not,
    [PPH_NODE_RECIPROCAL] = pph_rule_unary,
    [PPH_NODE_RELU] = pph_rule_unary,
    [PPH_NODE_ROUND] = pph_rule_unary,
    [PPH_NODE_SIGMOID] = pph_rule_unary,
    [PPH_NODE_SIGN] = pph_rule_unary,
    [PPH_NODE_SIN] = pph_rule_unary,
    [PPH_NODE_SOFTPLUS] = pph_rule_unary,
    [PPH_NODE_SQRT] = pph_rule_unary,
    [PPH_NODE_TANH] = pph_rule_unary,
    [PPH_NODE_ADD] = pph_rule_arithmetic,
    [PPH_NODE_AND] = pph_rule_logic,
    [PPH_NODE_DIV] = pph_rule_arithmetic,
    [PPH_NODE_EQUAL] = pph_rule_compare,
    [PPH_NODE_GREATER] = pph_rule_compare,
    [PPH_NODE_GREATER_OR_EQUAL] = pph_rule_compare,
    [PPH_NODE_LESS] = pph_rule_compare,
    [PPH_NODE_LESS_OR_EQUAL] = pph_rule_compare,
    [PPH_NODE_MAX] = pph_rule_arithmetic,
    [PPH_NODE_MIN] = pph_rule_arithmetic,
    [PPH_NODE_MOD] = pph_rule_arithmetic,
    [PPH_NODE_MUL] = pph_rule_arithmetic,
    [PPH_NODE_OR] = pph_rule_logic,
    [PPH_NODE_POW] = pph_rule_pow,
    [PPH_NODE_PRELU] = pph_rule_prelu,
    [PPH_NODE_SUB] = pph_rule_arithmetic,
    [PPH_NODE_WHERE] = pph_rule_where,
    [PPH_NODE_AVERAGE_POOL] = pph_rule_window,
    [PPH_NODE_BATCH_NORMALIZATION] = pph_rule_batch_normalization,
    [PPH_NODE_CONV] = pph_rule_window,
    [PPH_NODE_CONV_TRANSPOSE] = pph_rule_window,
    [PPH_NODE_DEPTH_TO_SPACE] = pph_rule_depth_to_space,
    [PPH_NODE_GLOBAL_AVERAGE_POOL] = pph_rule_global_pool,
    [PPH_NODE_GLOBAL_MAX_POOL] = pph_rule_global_pool,
    [PPH_NODE_MAX_POOL] = pph_rule_window,
    [PPH_NODE_RESIZE] = pph_rule_resize,
    [PPH_NODE_SPACE_TO_DEPTH] = pph_rule_space_to_depth,
    [PPH_NODE_CONCAT] = pph_rule_concat,
    [PPH_NODE_EXPAND] = pph_rule_expand,
    [PPH_NODE_FLATTEN] = pph_rule_flatten,
    [PPH_NODE_GATHER] = pph_rule_gather,
    [PPH_NODE_PAD] = pph_rule_pad,
    [PPH_NODE_RESHAPE] = pph_rule_reshape,
    [PPH_NODE_SCATTER_ND] = pph_rule_scatter_nd,
    [PPH_NODE_SLICE] = pph_rule_slice,
    [PPH_NODE_SPLIT] = pph_rule_split,
    [PPH_NODE_SQUEEZE] = pph_rule_squeeze,
    [PPH_NODE_TILE] = pph_rule_tile,
    [PPH_NODE_TRANSPOSE] = pph_rule_transpose,
    [PPH_NODE_UNSQUEEZE] = pph_rule_unsqueeze,
    [PPH_NODE_RELAYOUT] = pph_rule_same,
    [PPH_NODE_CONSTANT_OF_SHAPE] = pph_rule_constant_of_shape,
    [PPH_NODE_RANGE] = pph_rule_range,
    [PPH_NODE_SHAPE] = pph_rule_shape,
    [PPH_NODE_SIZE] = pph_rule_size,
    [PPH_NODE_CUM_SUM] = pph_rule_cum_sum,
    [PPH_NODE_GEMM] = pph_rule_gemm,
    [PPH_NODE_GRU] = pph_rule_gru,
    [PPH_NODE_MATMUL] = pph_rule_matmul,
    [PPH_NODE_REDUCE_MAX] = pph_rule_reduce,
    [PPH_NODE_REDUCE_MEAN] = pph_rule_reduce,
    [PPH_NODE_REDUCE_MIN] = pph_rule_reduce,
    [PPH_NODE_REDUCE_SUM] = pph_rule_reduce,
    [PPH_NODE_SOFTMAX] = pph_rule_softmax,
    [PPH_NODE_TOP_K] = pph_rule_top_k,
};

pph_value *pph_rule_input(const pph_shape_at *at, uint32_t slot) {
  return pph_node_find_input(at->graph, at->node, slot);
}

pph_status pph_rule_bad(const pph_shape_at *at, const char *format, ...) {
  char message[sizeof((pph_error *)0)->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pph_node_fail(at->node, at->error, PPH_BAD_MODEL, "%s", message);
}

pph_status pph_rule_set_output(const pph_shape_at *at, uint32_t slot,
                               pph_dtype type, const pph_shape *shape) {
  if (slot >= at->node->output_count ||
      at->node->outputs[slot] == PPH_NO_VALUE)
    return PPH_OK;
  char text[128];
  if (!pph_shape_fits(shape, type, at->graph->tensor_limit))
    return pph_node_fail(at->node, at->error, PPH_LIMIT_EXCEEDED,
                         "output %u of shape %s is larger than the limit of "
                         "%llu bytes",
                         slot, pph_shape_text(shape, text, sizeof text),
                         (unsigned long long)at->graph->tensor_limit);
  pph_value *value = pph_graph_value(at->graph, at->node->outputs[slot]);
  value->type = type;
  value->shape = *shape;
  value->has_rank = true;
  return PPH_OK;
}

pph_status pph_rule_axis(const pph_shape_at *at, int64_t axis, int32_t rank,
                         int64_t *result) {
  if (axis < -rank || axis >= rank)
    return pph_rule_bad(at, "axis is %lld, must be in [%d,%d)",
                        (long long)axis, -rank, rank);
  *result = axis < 0 ? axis + rank : axis;
  return PPH_OK;
}

pph_status pph_rule_ints(const pph_shape_at *at, uint32_t slot, int64_t *ints,
                         size_t capacity, size_t *count) {
  const pph_value *value = pph_rule_input(at, slot);
  *count = 0;
  if (!value)
    return pph_rule_bad(at, "input %u is missing", slot);
  if (pph_node_read_ints(at->graph, at->node, slot, ints, capacity, count))
    return PPH_OK;
  if (!value->data)
    return pph_node_fail(at->node, at->error, PPH_UNSUPPORTED,
                         "the shape depends on the values of \"%.80s\", which "
                         "are not known before the run",
                         value->name);
  return pph_rule_bad(at,
                      "input %u is %s of rank %d, must be at most %zu integers",
                      slot, pph_dtype_name(value->type), value->shape.rank,
                      capacity);
}

pph_status pph_rule_rank(const pph_shape_at *at, uint32_t slot, int32_t low,
                         int32_t high) {
  const pph_value *value = pph_rule_input(at, slot);
  if (!value)
    return pph_rule_bad(at, "input %u is missing", slot);
  if (value->shape.rank >= low && value->shape.rank <= high)
    return PPH_OK;
  if (low == high)
    return pph_rule_bad(at, "input %u has rank %d, must be %d", slot,
                        value->shape.rank, low);
  return pph_rule_bad(at, "input %u has rank %d, must be %d to %d", slot,
                      value->shape.rank, low, high);
}

pph_status pph_rule_same_types(const pph_shape_at *at, uint32_t first,
                               uint32_t count) {
  const pph_value *one = pph_rule_input(at, first);
  for (uint32_t i = first + 1; i < first + count; i++) {
    const pph_value *other = pph_rule_input(at, i);
    if (one && other && one->type != other->type)
      return pph_rule_bad(at, "input %u has type %s, input %u has %s", i,
                          pph_dtype_name(other->type), first,
                          pph_dtype_name(one->type));
  }
  return PPH_OK;
}

pph_status pph_rule_same(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  return pph_rule_set_output(at, 0, x->type, &x->shape);
}

/* As many inputs and outputs as the kind allows: verify asks the same of a
   whole graph, but rules count on it for every single node. */
static pph_status check_count(const pph_shape_at *at, const char *what,
                              uint32_t count, uint32_t least, uint32_t most) {
  if (count < least)
    return pph_rule_bad(at, "has %u %s, must have at least %u", count, what,
                        least);
  if (count > most)
    return pph_rule_bad(at, "has %u %s, must have at most %u", count, what,
                        most);
  return PPH_OK;
}

static pph_status check_counts(const pph_shape_at *at) {
  const pph_node *node = at->node;
  const pph_node_kind_info *info = pph_node_kind_find_info(node->kind);
  PPH_TRY(check_count(at, "inputs", node->input_count, info->min_inputs,
                      info->max_inputs));
  PPH_TRY(check_count(at, "outputs", node->output_count, info->min_outputs,
                      info->max_outputs));
  uint32_t needed = info->max_inputs == UINT32_MAX ? node->input_count
                                                   : info->min_inputs;
  for (uint32_t i = 0; i < needed; i++)
    if (!pph_rule_input(at, i))
      return pph_rule_bad(at, "input %u is missing", i);
  return PPH_OK;
}

/* The inputs that are there have a known type and shape. */
static pph_status check_inputs(const pph_shape_at *at) {
  PPH_TRY(check_counts(at));
  for (uint32_t i = 0; i < at->node->input_count; i++) {
    const pph_value *value = pph_rule_input(at, i);
    if (value && (value->type == PPH_DTYPE_NONE || !value->has_rank ||
                  !pph_shape_known(&value->shape)))
      return pph_node_fail(at->node, at->error, PPH_UNSUPPORTED,
                           "the shape of \"%.80s\" is not known", value->name);
  }
  return PPH_OK;
}

pph_status pph_shape_infer_node(pph_graph *graph, pph_node *node,
                                pph_error *error) {
  pph_shape_at at = {graph, node, error};
  PPH_TRY(check_inputs(&at));
  if (!rules[node->kind])
    return pph_node_fail(node, error, PPH_UNSUPPORTED, "has no shape rule");
  return rules[node->kind](&at);
}

pph_status pph_shape_infer(pph_graph *graph, pph_error *error) {
  for (pph_node *node = graph->first; node; node = node->next)
    PPH_TRY(pph_shape_infer_node(graph, node, error));
  return PPH_OK;
}

bool pph_shape_broadcast(const pph_shape *a, const pph_shape *b,
                         pph_shape *result) {
  pph_shape made = {0};
  made.rank = a->rank > b->rank ? a->rank : b->rank;
  for (int32_t i = 1; i <= made.rank; i++) {
    int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
    int64_t y = i <= b->rank ? b->dims[b->rank - i] : 1;
    if (x != y && x != 1 && y != 1)
      return false;
    made.dims[made.rank - i] = x == 1 ? y : x;
  }
  *result = made;
  return true;
}

pph_status pph_shape_check_node(const pph_graph *graph, const pph_node *node,
                                pph_error *error) {
  switch ((int)node->kind) {
  case PPH_NODE_CONV:
  case PPH_NODE_CONV_TRANSPOSE:
  case PPH_NODE_AVERAGE_POOL:
  case PPH_NODE_MAX_POOL:
    return pph_rule_check_window(graph, node, true, error);
  case PPH_NODE_DEPTH_TO_SPACE:
  case PPH_NODE_SPACE_TO_DEPTH:
    return pph_rule_check_block(graph, node, true, error);
  case PPH_NODE_RESIZE:
    return pph_rule_check_resize(graph, node, error);
  case PPH_NODE_CONCAT:
    if (!pph_node_find_attribute(node, PPH_ATTR_AXIS))
      return pph_node_fail(node, error, PPH_BAD_MODEL,
                           "the attribute axis is missing");
    return PPH_OK;
  case PPH_NODE_CAST:
    if (!pph_dtype_size((pph_dtype)pph_node_int(node, PPH_ATTR_TO, 0)))
      return pph_node_fail(
          node, error, PPH_UNSUPPORTED, "to is %lld, which is no known type",
          (long long)pph_node_int(node, PPH_ATTR_TO, 0));
    return PPH_OK;
  default:
    return PPH_OK;
  }
}
