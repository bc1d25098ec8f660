/* Ranks and element types as far as they follow without shapes. */
#include <string.h>

#include "base/fail.h"
#include "onnx/import.h"

static const pph_import_fact unknown = {-1, PPH_DTYPE_NONE};

pph_import_fact pph_import_find_fact(const pph_import *import, pph_id id) {
  if (id == PPH_NO_VALUE)
    return unknown;
  const pph_value *value = pph_graph_value(import->graph, id);
  if (value->producer)
    return id < import->fact_count ? import->facts[id] : unknown;
  return (pph_import_fact){value->has_rank ? value->shape.rank : -1,
                           value->type};
}

static pph_import_fact fact_of(const pph_import *import, const pph_node *node,
                               uint32_t slot) {
  return pph_import_find_fact(
      import, slot < node->input_count ? node->inputs[slot] : PPH_NO_VALUE);
}

/* Elements of a vector whose number is known, else -1. */
static int32_t count_elements(const pph_import *import, const pph_node *node,
                              uint32_t slot) {
  const pph_value *value = pph_node_find_input(import->graph, node, slot);
  if (!value || value->producer || !value->has_rank || value->shape.rank != 1 ||
      value->shape.dims[0] < 0 || value->shape.dims[0] > PPH_MAX_RANK)
    return -1;
  return (int32_t)value->shape.dims[0];
}

static int32_t rank_as_input(const pph_import *import, const pph_node *node) {
  return fact_of(import, node, 0).rank;
}

static int32_t rank_broadcast(const pph_import *import, const pph_node *node) {
  int32_t rank = 0;
  for (uint32_t i = 0; i < node->input_count; i++) {
    int32_t next = fact_of(import, node, i).rank;
    if (next < 0)
      return -1;
    rank = next > rank ? next : rank;
  }
  return rank;
}

static int32_t rank_gather(const pph_import *import, const pph_node *node) {
  int32_t data = fact_of(import, node, 0).rank;
  int32_t indices = fact_of(import, node, 1).rank;
  return data < 1 || indices < 0 ? -1 : data + indices - 1;
}

static int32_t rank_reshape(const pph_import *import, const pph_node *node) {
  return count_elements(import, node, 1);
}

static int32_t rank_expand(const pph_import *import, const pph_node *node) {
  int32_t data = fact_of(import, node, 0).rank;
  int32_t shape = count_elements(import, node, 1);
  if (data < 0 || shape < 0)
    return -1;
  return data > shape ? data : shape;
}

static int32_t rank_squeeze(const pph_import *import, const pph_node *node) {
  int32_t data = fact_of(import, node, 0).rank;
  int32_t axes = count_elements(import, node, 1);
  return data < 0 || axes < 0 || axes > data ? -1 : data - axes;
}

static int32_t rank_unsqueeze(const pph_import *import, const pph_node *node) {
  int32_t data = fact_of(import, node, 0).rank;
  int32_t axes = count_elements(import, node, 1);
  return data < 0 || axes < 0 ? -1 : data + axes;
}

static int32_t rank_reduce(const pph_import *import, const pph_node *node) {
  if (pph_node_int(node, PPH_ATTR_KEEPDIMS, 1))
    return fact_of(import, node, 0).rank;
  return node->input_count < 2 ? 0 : rank_squeeze(import, node);
}

static int32_t rank_matmul(const pph_import *import, const pph_node *node) {
  int32_t a = fact_of(import, node, 0).rank;
  int32_t b = fact_of(import, node, 1).rank;
  if (a < 2 || b < 2)
    return -1;
  return a > b ? a : b;
}

static int32_t rank_1(const pph_import *import, const pph_node *node) {
  return 1;
}

static int32_t rank_2(const pph_import *import, const pph_node *node) {
  return 2;
}

typedef int32_t rank_rule(const pph_import *import, const pph_node *node);

static rank_rule *find_rule(pph_node_kind kind) {
  static const struct {
    pph_node_kind kind;
    rank_rule *rule;
  } rules[] = {
      {PPH_NODE_CONCAT, rank_as_input},
      {PPH_NODE_PAD, rank_as_input},
      {PPH_NODE_SCATTER_ND, rank_as_input},
      {PPH_NODE_SLICE, rank_as_input},
      {PPH_NODE_SPLIT, rank_as_input},
      {PPH_NODE_TILE, rank_as_input},
      {PPH_NODE_TRANSPOSE, rank_as_input},
      {PPH_NODE_SOFTMAX, rank_as_input},
      {PPH_NODE_CUM_SUM, rank_as_input},
      {PPH_NODE_TOP_K, rank_as_input},
      {PPH_NODE_GATHER, rank_gather},
      {PPH_NODE_RESHAPE, rank_reshape},
      {PPH_NODE_EXPAND, rank_expand},
      {PPH_NODE_SQUEEZE, rank_squeeze},
      {PPH_NODE_UNSQUEEZE, rank_unsqueeze},
      {PPH_NODE_REDUCE_MAX, rank_reduce},
      {PPH_NODE_REDUCE_MEAN, rank_reduce},
      {PPH_NODE_REDUCE_MIN, rank_reduce},
      {PPH_NODE_REDUCE_SUM, rank_reduce},
      {PPH_NODE_MATMUL, rank_matmul},
      {PPH_NODE_SHAPE, rank_1},
      {PPH_NODE_RANGE, rank_1},
      {PPH_NODE_FLATTEN, rank_2},
      {PPH_NODE_GEMM, rank_2},
  };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (rules[i].kind == kind)
      return rules[i].rule;
  return NULL;
}

static int32_t apply_rule(const pph_import *import, const pph_node *node) {
  pph_node_class class = pph_node_kind_find_info(node->kind)->node_class;
  if (class == PPH_CLASS_UNARY || class == PPH_CLASS_SPATIAL)
    return rank_as_input(import, node);
  if (class == PPH_CLASS_BINARY)
    return rank_broadcast(import, node);
  rank_rule *rule = find_rule(node->kind);
  return rule ? rule(import, node) : -1;
}

/* A rank that no tensor may have is as good as an unknown one. */
static int32_t find_rank(const pph_import *import, const pph_node *node) {
  int32_t rank = apply_rule(import, node);
  return rank > PPH_MAX_RANK ? -1 : rank;
}

static bool gives_bool(pph_node_kind kind) {
  static const pph_node_kind kinds[] = {
      PPH_NODE_EQUAL,         PPH_NODE_GREATER, PPH_NODE_GREATER_OR_EQUAL,
      PPH_NODE_LESS,          PPH_NODE_AND,     PPH_NODE_OR,
      PPH_NODE_LESS_OR_EQUAL, PPH_NODE_NOT};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i] == kind)
      return true;
  return false;
}

static pph_dtype find_type(const pph_import *import, const pph_node *node) {
  if (node->kind == PPH_NODE_CAST)
    return pph_import_dtype(pph_node_int(node, PPH_ATTR_TO, 0));
  if (node->kind == PPH_NODE_SHAPE || node->kind == PPH_NODE_SIZE)
    return PPH_I64;
  if (node->kind == PPH_NODE_CONSTANT_OF_SHAPE && node->input_count < 2)
    return PPH_F32;
  if (gives_bool(node->kind))
    return PPH_BOOL;
  bool second =
      node->kind == PPH_NODE_WHERE || node->kind == PPH_NODE_CONSTANT_OF_SHAPE;
  return fact_of(import, node, second).type;
}

static pph_status reserve(pph_import *import) {
  uint32_t wanted = import->graph->value_capacity;
  if (import->fact_count >= import->graph->value_count)
    return PPH_OK;
  pph_import_fact *grown =
      pph_heap_grow(import->graph->heap, import->facts,
                    import->fact_count * sizeof *grown, wanted, sizeof *grown);
  if (!grown)
    return pph_fail_memory(import->error);
  for (uint32_t i = import->fact_count; i < wanted; i++)
    grown[i] = unknown;
  import->facts = grown;
  import->fact_count = wanted;
  return PPH_OK;
}

pph_status pph_import_add_facts(pph_import *import, const pph_node *node) {
  PPH_TRY(reserve(import));
  pph_import_fact fact = {find_rank(import, node), find_type(import, node)};
  for (uint32_t i = 0; i < node->output_count; i++)
    import->facts[node->outputs[i]] = fact;
  return PPH_OK;
}

bool pph_import_read_ints(const pph_import_op *op, uint32_t slot, int64_t *ints,
                          size_t capacity, size_t *count) {
  pph_node probe = {.inputs = op->inputs, .input_count = op->input_count};
  return pph_node_read_ints(op->import->graph, &probe, slot, ints, capacity,
                            count);
}
