/* Removes nodes that change nothing and joins chains into one node. Shapes are
   inferred. Each rule looks at one node and what produces its inputs; one walk
   in order is enough, because a rule leaves its node in simplest form. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"
#include "pass/match.h"
#include "pass/pass.h"
#include "pass/rewrite.h"
#include "pass/simplify_move.h"

static pph_status bypass_identity(pph_rewrite *rewrite, pph_node *node,
                                  pph_error *error) {
  (void)error;
  if (pph_match_same(rewrite->graph, node->inputs[0], node->outputs[0]))
    pph_rewrite_bypass(rewrite, node, node->inputs[0]);
  return PPH_OK;
}

/* Moves that move nothing */

static bool all_zero(const int64_t *ints) {
  for (int32_t i = 0; i < PPH_MAX_RANK; i++)
    if (ints[i] != 0)
      return false;
  return true;
}

/* A Slice of a Slice is one Slice where both only crop. */
static pph_status join_crops(pph_rewrite *rewrite, pph_node *node,
                             const int64_t *begin, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  const pph_node *before = pph_node_find_input(graph, node, 0)->producer;
  int64_t first[PPH_MAX_RANK], end[PPH_MAX_RANK], axes[PPH_MAX_RANK];
  if (!before || before->kind != PPH_NODE_SLICE ||
      !pph_match_crop(graph, before, first, end))
    return PPH_OK;
  const pph_shape shape = pph_graph_value(graph, node->outputs[0])->shape;
  size_t rank = (size_t)shape.rank;
  for (size_t i = 0; i < rank; i++) {
    first[i] += begin[i];
    end[i] = first[i] + shape.dims[i];
    axes[i] = (int64_t)i;
  }
  pph_id ids[4] = {before->inputs[0]};
  PPH_TRY(pph_graph_add_ints(graph, NULL, first, rank, &ids[1], error));
  PPH_TRY(pph_graph_add_ints(graph, NULL, end, rank, &ids[2], error));
  PPH_TRY(pph_graph_add_ints(graph, NULL, axes, rank, &ids[3], error));
  return pph_rewrite_set_inputs(rewrite, node, ids, 4, error);
}

static pph_status simplify_slice(pph_rewrite *rewrite, pph_node *node,
                                 pph_error *error) {
  int64_t begin[PPH_MAX_RANK], end[PPH_MAX_RANK];
  if (!pph_match_crop(rewrite->graph, node, begin, end))
    return PPH_OK;
  if (all_zero(begin) && all_zero(end) &&
      pph_rewrite_bypass(rewrite, node, node->inputs[0]))
    return PPH_OK;
  return join_crops(rewrite, node, begin, error);
}

static pph_status simplify_pad(pph_rewrite *rewrite, pph_node *node,
                               pph_error *error) {
  (void)error;
  int64_t pads[2 * PPH_MAX_RANK] = {0};
  size_t count;
  if (!pph_node_read_ints(rewrite->graph, node, 1, pads, 2 * PPH_MAX_RANK,
                          &count))
    return PPH_OK;
  if (all_zero(pads) && all_zero(pads + PPH_MAX_RANK))
    pph_rewrite_bypass(rewrite, node, node->inputs[0]);
  return PPH_OK;
}

static pph_status simplify_single(pph_rewrite *rewrite, pph_node *node,
                                  pph_error *error) {
  return node->input_count == 1 ? bypass_identity(rewrite, node, error)
                                : PPH_OK;
}

static int64_t find_axis(const pph_graph *graph, const pph_node *node) {
  int64_t axis = pph_node_int(node, PPH_ATTR_AXIS, 0);
  const pph_value *in = pph_node_find_input(graph, node, 0);
  return axis < 0 ? axis + in->shape.rank : axis;
}

/* Concat of all parts of a Split, in order. */
static pph_status simplify_concat(pph_rewrite *rewrite, pph_node *node,
                                  pph_error *error) {
  pph_graph *graph = rewrite->graph;
  const pph_node *split = pph_node_find_input(graph, node, 0)->producer;
  if (node->input_count > 1 && split && split->kind == PPH_NODE_SPLIT &&
      split->output_count == node->input_count &&
      find_axis(graph, split) == find_axis(graph, node) &&
      memcmp(split->outputs, node->inputs,
             node->input_count * sizeof *node->inputs) == 0) {
    pph_rewrite_bypass(rewrite, node, split->inputs[0]);
    return PPH_OK;
  }
  return simplify_single(rewrite, node, error);
}

static pph_status simplify_split(pph_rewrite *rewrite, pph_node *node,
                                 pph_error *error) {
  return node->output_count == 1 ? bypass_identity(rewrite, node, error)
                                 : PPH_OK;
}

/* Arithmetic */

static const struct {
  pph_node_kind kind;
  float neutral;
  bool either; /* the neutral element may stand left */
} neutrals[] = {{PPH_NODE_ADD, 0, true},
                {PPH_NODE_SUB, 0, false},
                {PPH_NODE_MUL, 1, true},
                {PPH_NODE_DIV, 1, false},
                {PPH_NODE_POW, 1, false}};

static bool is_neutral(const pph_node *node, uint32_t other, float scalar) {
  for (size_t i = 0; i < sizeof neutrals / sizeof *neutrals; i++)
    if (neutrals[i].kind == node->kind)
      return neutrals[i].neutral == scalar &&
             (neutrals[i].either || other == 0);
  return false;
}

/* 1 / x without rounding: x is a power of two, and so is 1 / x. */
static bool has_exact_reciprocal(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint32_t exponent = bits >> 23 & 255;
  return (bits & 0x7fffff) == 0 && exponent > 1 && exponent < 253;
}

static pph_status simplify_arithmetic(pph_rewrite *rewrite, pph_node *node,
                                      pph_error *error) {
  uint32_t other;
  float scalar;
  if (!pph_match_with_scalar(rewrite->graph, node, &other, &scalar) ||
      pph_graph_value(rewrite->graph, node->inputs[other])->data ||
      node->activation != PPH_ACTIVATION_NONE)
    return PPH_OK;
  if (is_neutral(node, other, scalar)) {
    pph_rewrite_bypass(rewrite, node, node->inputs[other]);
    return PPH_OK;
  }
  if (node->kind != PPH_NODE_DIV || other != 0 || !has_exact_reciprocal(scalar))
    return PPH_OK;
  float reciprocal = 1 / scalar;
  pph_tensor tensor = {PPH_F32, {0, {0}}, &reciprocal};
  pph_id id;
  PPH_TRY(pph_graph_add_constant(rewrite->graph, NULL, &tensor, &id, error));
  node->kind = PPH_NODE_MUL;
  pph_rewrite_set_input(rewrite, node, 1, id);
  return PPH_OK;
}

static pph_status simplify_clip(pph_rewrite *rewrite, pph_node *node,
                                pph_error *error) {
  (void)error;
  if (!pph_node_find_input(rewrite->graph, node, 1) &&
      !pph_node_find_input(rewrite->graph, node, 2))
    pph_rewrite_bypass(rewrite, node, node->inputs[0]);
  return PPH_OK;
}

/* Resampling to the same size with a scale of exactly 1 reads each element at
   its own place in every mode but one that crops and one that is half off. */
static pph_status simplify_resize(pph_rewrite *rewrite, pph_node *node,
                                  pph_error *error) {
  pph_tensor scales;
  size_t count;
  const char *mode =
      pph_node_text(node, PPH_ATTR_COORDINATE_TRANSFORMATION_MODE, "");
  if (strcmp(mode, "tf_crop_and_resize") == 0 ||
      strcmp(mode, "tf_half_pixel_for_nn") == 0)
    return PPH_OK;
  if (pph_node_find_input(rewrite->graph, node, 2)) {
    if (!pph_node_find_constant(rewrite->graph, node, 2, &scales) ||
        scales.type != PPH_F32 || !pph_shape_count(&scales.shape, &count))
      return PPH_OK;
    for (size_t i = 0; i < count; i++)
      if (((const float *)scales.data)[i] != 1)
        return PPH_OK;
  }
  return bypass_identity(rewrite, node, error);
}

/* A mean over all of space is a pooling, which likes channels last. */
static pph_status simplify_reduce_mean(pph_rewrite *rewrite, pph_node *node,
                                       pph_error *error) {
  pph_graph *graph = rewrite->graph;
  const pph_value *in = pph_node_find_input(graph, node, 0);
  int64_t axes[PPH_MAX_RANK];
  size_t count;
  int32_t rank = in->shape.rank;
  if ((rank != 3 && rank != 4) || in->type != PPH_F32 || pph_match_empty(in) ||
      !pph_match_axes(graph, node, rank, axes, &count) ||
      (int32_t)count != rank - 2 || axes[0] != 2)
    return PPH_OK;
  pph_id source = node->inputs[0];
  if (pph_node_int(node, PPH_ATTR_KEEPDIMS, 1)) {
    node->kind = PPH_NODE_GLOBAL_AVERAGE_POOL;
    node->attribute_count = 0;
    return pph_rewrite_set_inputs(rewrite, node, &source, 1, error);
  }
  pph_node *pool;
  PPH_TRY(pph_rewrite_insert(rewrite, PPH_NODE_GLOBAL_AVERAGE_POOL, node,
                             &source, 1, &pool, error));
  PPH_TRY(pph_shape_infer_node(graph, pool, error));
  return pph_rewrite_become_reshape(rewrite, node, pool->outputs[0], error);
}

static const struct {
  pph_node_kind kind;
  pph_rewrite_rule apply;
} rules[] = {
    {PPH_NODE_IDENTITY, bypass_identity},
    {PPH_NODE_CAST, bypass_identity},
    {PPH_NODE_EXPAND, bypass_identity},
    {PPH_NODE_TILE, bypass_identity},
    {PPH_NODE_RESHAPE, pph_simplify_reshape},
    {PPH_NODE_FLATTEN, pph_simplify_reshape},
    {PPH_NODE_SQUEEZE, pph_simplify_reshape},
    {PPH_NODE_UNSQUEEZE, pph_simplify_reshape},
    {PPH_NODE_TRANSPOSE, pph_simplify_transpose},
    {PPH_NODE_SLICE, simplify_slice},
    {PPH_NODE_PAD, simplify_pad},
    {PPH_NODE_CONCAT, simplify_concat},
    {PPH_NODE_SPLIT, simplify_split},
    {PPH_NODE_MAX, simplify_single},
    {PPH_NODE_MIN, simplify_single},
    {PPH_NODE_ADD, simplify_arithmetic},
    {PPH_NODE_SUB, simplify_arithmetic},
    {PPH_NODE_MUL, simplify_arithmetic},
    {PPH_NODE_DIV, simplify_arithmetic},
    {PPH_NODE_POW, simplify_arithmetic},
    {PPH_NODE_CLIP, simplify_clip},
    {PPH_NODE_RESIZE, simplify_resize},
    {PPH_NODE_REDUCE_MEAN, simplify_reduce_mean},
};

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (rules[i].kind == node->kind)
      return rules[i].apply(rewrite, node, error);
  return PPH_OK;
}

pph_status pph_pass_simplify(pph_graph *graph, const pph_pass_options *options,
                             pph_error *error) {
  PPH_TRY(pph_rewrite_walk(graph, visit, error));
  /* Readers that are dead would stand in the way of other passes. */
  return pph_pass_drop_dead_nodes(graph, options, error);
}
