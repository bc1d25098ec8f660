/* Activations that a converter spelled out become the one node that they are:
     Max(x, 0)                             Relu
     Max(x, a), Min(x, b)                  Clip
     PRelu(x, one slope)                   LeakyRelu
     Relu(x) + k * (x - Abs(x))            PRelu(x, 2 k)
     Clip(x + 3, 0, 6) / 6                 HardSigmoid(1/6, 1/2)
     x * HardSigmoid(1/6, 1/2)(x)          HardSwish
     x * Clip(x + 3, 0, 6) / 6             HardSwish
   The last three round differently by an ulp or so. Runs before biases are
   fused, since the + 3 would go into a convolution. */
#include <math.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pass/match.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static pph_status become_unary(pph_rewrite *rewrite, pph_node *node,
                               pph_node_kind kind, pph_id source,
                               pph_error *error) {
  node->kind = kind;
  node->attribute_count = 0;
  return pph_rewrite_set_inputs(rewrite, node, &source, 1, error);
}

/* Max(x, k) and Min(x, k). */
static pph_status match_bound(pph_rewrite *rewrite, pph_node *node,
                              pph_error *error) {
  uint32_t other;
  float bound;
  if (!pph_match_with_scalar(rewrite->graph, node, &other, &bound) ||
      isnan(bound))
    return PPH_OK;
  pph_id source = node->inputs[other];
  bool low = node->kind == PPH_NODE_MAX;
  if (low && bound == 0)
    return become_unary(rewrite, node, PPH_NODE_RELU, source, error);
  pph_tensor tensor = {PPH_F32, {0, {0}}, &bound};
  pph_id id;
  PPH_TRY(pph_graph_add_constant(rewrite->graph, NULL, &tensor, &id, error));
  pph_id ids[3] = {source, low ? id : PPH_NO_VALUE, id};
  node->kind = PPH_NODE_CLIP;
  node->attribute_count = 0;
  return pph_rewrite_set_inputs(rewrite, node, ids, low ? 2 : 3, error);
}

static pph_status match_prelu(pph_rewrite *rewrite, pph_node *node,
                              pph_error *error) {
  float slope;
  if (!pph_match_scalar(rewrite->graph, node, 1, &slope) ||
      !isfinite(slope) ||
      !pph_match_same(rewrite->graph, node->inputs[0], node->outputs[0]))
    return PPH_OK;
  PPH_TRY(become_unary(rewrite, node, PPH_NODE_LEAKY_RELU, node->inputs[0],
                       error));
  return pph_node_set_float(rewrite->graph, node, PPH_ATTR_ALPHA, slope,
                            error);
}

static const pph_node *find_producer(const pph_graph *graph,
                                     const pph_node *node, uint32_t slot,
                                     pph_node_kind kind) {
  const pph_value *value = pph_node_find_input(graph, node, slot);
  return value && value->producer && value->producer->kind == kind
             ? value->producer
             : NULL;
}

/* k * (x - Abs(x)) behind input `slot`, k constant: which slot of *product
   holds k. */
static bool match_negative_part(const pph_graph *graph, const pph_node *node,
                                uint32_t slot, pph_id x,
                                const pph_node **product, uint32_t *k) {
  *product = find_producer(graph, node, slot, PPH_NODE_MUL);
  for (uint32_t i = 0; *product && i < 2; i++) {
    const pph_node *sub = find_producer(graph, *product, i, PPH_NODE_SUB);
    const pph_node *abs =
        sub ? find_producer(graph, sub, 1, PPH_NODE_ABS) : NULL;
    *k = 1 - i;
    if (abs && sub->inputs[0] == x && abs->inputs[0] == x &&
        pph_node_find_input(graph, *product, *k)->data)
      return true;
  }
  return false;
}

/* 2 k, of rank at most x's and broadcasting to it. */
static pph_status double_slope(pph_rewrite *rewrite, const pph_node *product,
                               uint32_t k, const pph_value *x, pph_id *slope,
                               pph_error *error) {
  pph_tensor tensor;
  size_t count;
  *slope = PPH_NO_VALUE;
  if (!pph_node_find_constant(rewrite->graph, product, k, &tensor) ||
      tensor.type != PPH_F32 || tensor.shape.rank > x->shape.rank ||
      !pph_shape_count(&tensor.shape, &count))
    return PPH_OK;
  float *data =
      pph_heap_allocate(rewrite->graph->heap, count, sizeof *data);
  if (!data)
    return pph_fail_memory(error);
  for (size_t i = 0; i < count; i++)
    data[i] = 2 * ((const float *)tensor.data)[i];
  tensor.data = data;
  pph_status status =
      pph_graph_add_constant(rewrite->graph, NULL, &tensor, slope, error);
  pph_heap_release(rewrite->graph->heap, data);
  return status;
}

/* For x < 0 x - Abs(x) is 2 x, else 0: exact. */
static pph_status match_spelled_prelu(pph_rewrite *rewrite, pph_node *node,
                                      pph_error *error) {
  pph_graph *graph = rewrite->graph;
  for (uint32_t slot = 0; slot < 2; slot++) {
    const pph_node *relu = find_producer(graph, node, slot, PPH_NODE_RELU);
    const pph_node *product;
    uint32_t k;
    if (!relu ||
        !match_negative_part(graph, node, 1 - slot, relu->inputs[0], &product,
                             &k) ||
        !pph_match_same(graph, relu->inputs[0], node->outputs[0]))
      continue;
    pph_id ids[2] = {relu->inputs[0]};
    PPH_TRY(double_slope(rewrite, product, k,
                         pph_graph_value(graph, ids[0]), &ids[1], error));
    if (ids[1] == PPH_NO_VALUE)
      return PPH_OK;
    node->kind = PPH_NODE_PRELU;
    return pph_rewrite_set_inputs(rewrite, node, ids, 2, error);
  }
  return PPH_OK;
}

/* Clip(x + 3, 0, 6) behind input `slot`: *source is x. */
static bool match_shifted_clip(const pph_graph *graph, const pph_node *node,
                               uint32_t slot, pph_id *source) {
  const pph_node *clip = find_producer(graph, node, slot, PPH_NODE_CLIP);
  float low, high, three;
  uint32_t other;
  if (!clip || !pph_match_scalar(graph, clip, 1, &low) ||
      !pph_match_scalar(graph, clip, 2, &high) || low != 0 || high != 6)
    return false;
  const pph_node *add = find_producer(graph, clip, 0, PPH_NODE_ADD);
  if (!add || !pph_match_with_scalar(graph, add, &other, &three) ||
      three != 3)
    return false;
  *source = add->inputs[other];
  return true;
}

/* The node divides by 6 (or multiplies by 1/6): *other is what. */
static bool divides_by_six(const pph_graph *graph, const pph_node *node,
                           uint32_t *other) {
  float six;
  if (!pph_match_with_scalar(graph, node, other, &six))
    return false;
  return node->kind == PPH_NODE_DIV ? six == 6 && *other == 0
                                    : six == 1.0f / 6.0f;
}

static bool is_hard_sigmoid_of(const pph_graph *graph, const pph_node *node,
                               uint32_t slot, pph_id source) {
  const pph_node *sigmoid =
      find_producer(graph, node, slot, PPH_NODE_HARD_SIGMOID);
  return sigmoid && sigmoid->inputs[0] == source &&
         pph_node_float(sigmoid, PPH_ATTR_ALPHA, 0.2f) == 1.0f / 6.0f &&
         pph_node_float(sigmoid, PPH_ATTR_BETA, 0.5f) == 0.5f;
}

/* (x * Clip(x + 3, 0, 6)) / 6 and Clip(x + 3, 0, 6) / 6. */
static pph_status match_sixth(pph_rewrite *rewrite, pph_node *node,
                              uint32_t other, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  pph_id source;
  if (match_shifted_clip(graph, node, other, &source)) {
    PPH_TRY(become_unary(rewrite, node, PPH_NODE_HARD_SIGMOID, source,
                         error));
    PPH_TRY(pph_node_set_float(graph, node, PPH_ATTR_ALPHA, 1.0f / 6.0f,
                               error));
    return pph_node_set_float(graph, node, PPH_ATTR_BETA, 0.5f, error);
  }
  const pph_node *mul = find_producer(graph, node, other, PPH_NODE_MUL);
  for (uint32_t slot = 0; mul && slot < 2; slot++)
    if (match_shifted_clip(graph, mul, slot, &source) &&
        mul->inputs[1 - slot] == source)
      return become_unary(rewrite, node, PPH_NODE_HARD_SWISH, source, error);
  return PPH_OK;
}

static pph_status match_product(pph_rewrite *rewrite, pph_node *node,
                                pph_error *error) {
  uint32_t other;
  if (divides_by_six(rewrite->graph, node, &other))
    return match_sixth(rewrite, node, other, error);
  if (node->kind != PPH_NODE_MUL)
    return PPH_OK;
  for (uint32_t slot = 0; slot < 2; slot++) {
    pph_id source = node->inputs[1 - slot];
    if (is_hard_sigmoid_of(rewrite->graph, node, slot, source))
      return become_unary(rewrite, node, PPH_NODE_HARD_SWISH, source, error);
  }
  return PPH_OK;
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  const pph_value *result = pph_node_find_result(rewrite->graph, node);
  if (!result || result->type != PPH_F32)
    return PPH_OK;
  switch ((int)node->kind) {
  case PPH_NODE_MAX:
  case PPH_NODE_MIN:
    return match_bound(rewrite, node, error);
  case PPH_NODE_ADD:
    return match_spelled_prelu(rewrite, node, error);
  case PPH_NODE_PRELU:
    return match_prelu(rewrite, node, error);
  case PPH_NODE_DIV:
  case PPH_NODE_MUL:
    return match_product(rewrite, node, error);
  default:
    return PPH_OK;
  }
}

pph_status pph_pass_recognize_activation(pph_graph *graph,
                                         const pph_pass_options *options,
                                         pph_error *error) {
  (void)options;
  return pph_rewrite_walk(graph, visit, error);
}
