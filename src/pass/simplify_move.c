#include "pass/simplify_move.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"
#include "pass/axis_map.h"
#include "pass/match.h"

static pph_status join_reshapes(pph_rewrite *rewrite, pph_node *node,
                                pph_error *error) {
  pph_graph *graph = rewrite->graph;
  pph_id source = node->inputs[0];
  const pph_value *in = pph_graph_value(graph, source);
  /* A 0 in a target shape means something else. */
  if (pph_match_empty(in) || node->activation != PPH_ACTIVATION_NONE)
    return PPH_OK;
  const pph_node *before = in->producer;
  if (before && before->kind == PPH_NODE_RESHAPE &&
      before->activation == PPH_ACTIVATION_NONE)
    source = before->inputs[0];
  if (pph_match_same(graph, source, node->outputs[0]) &&
      pph_rewrite_bypass(rewrite, node, source))
    return PPH_OK;
  if (source == node->inputs[0] && node->kind == PPH_NODE_RESHAPE &&
      pph_graph_value(graph, node->inputs[1])->data)
    return PPH_OK;
  return pph_rewrite_become_reshape(rewrite, node, source, error);
}

static bool is_identity(const int64_t *perm, int32_t rank) {
  for (int32_t i = 0; i < rank; i++)
    if (perm[i] != i)
      return false;
  return true;
}

static pph_status join_transposes(pph_rewrite *rewrite, pph_node *node,
                                  pph_error *error) {
  pph_graph *graph = rewrite->graph;
  const pph_value *in = pph_node_find_input(graph, node, 0);
  int32_t rank = in->shape.rank;
  int64_t perm[PPH_MAX_RANK], first[PPH_MAX_RANK];
  pph_id source = node->inputs[0];
  pph_match_perm(graph, node, perm);
  const pph_node *before = in->producer;
  if (before && before->kind == PPH_NODE_TRANSPOSE) {
    pph_match_perm(graph, before, first);
    for (int32_t i = 0; i < rank; i++)
      perm[i] = first[perm[i]];
    source = before->inputs[0];
  }
  if (is_identity(perm, rank) && pph_rewrite_bypass(rewrite, node, source))
    return PPH_OK;
  const pph_value *from = pph_graph_value(graph, source);
  if (!pph_match_empty(from) && pph_match_perm_moves_ones(&from->shape, perm)) {
    PPH_TRY(pph_rewrite_become_reshape(rewrite, node, source, error));
    return join_reshapes(rewrite, node, error);
  }
  if (source == node->inputs[0])
    return PPH_OK;
  pph_rewrite_set_input(rewrite, node, 0, source);
  return pph_node_set_ints(graph, node, PPH_ATTR_PERM, perm, (uint32_t)rank,
                           error);
}

/* Chains of both kinds */

/* Each atom is a whole axis of the source: nothing is split. */
static bool is_whole(const pph_axis_map *map, const pph_shape *source) {
  for (uint32_t i = 0; i < map->count; i++)
    if (map->atoms[i].stride != 1 ||
        map->atoms[i].length != source->dims[map->atoms[i].axis])
      return false;
  return true;
}

/* The order of the source's axes that the map has: axes of length 1 first. */
static void order_axes(const pph_axis_map *map, const pph_shape *source,
                       int64_t *perm) {
  int32_t at = 0;
  for (int32_t i = 0; i < source->rank; i++)
    if (source->dims[i] == 1)
      perm[at++] = i;
  for (uint32_t i = 0; i < map->count; i++)
    perm[at++] = map->atoms[i].axis;
}

/* The permutation that alone makes the result, which has the source's rank;
   axes of length 1 go to the places that are left, in order. */
static bool find_single(const pph_axis_map *map, const pph_shape *source,
                        int64_t *perm) {
  if (map->rank != source->rank)
    return false;
  for (int32_t i = 0; i < map->rank; i++)
    perm[i] = -1;
  for (uint32_t i = 0; i < map->count; i++) {
    if (perm[map->atoms[i].place] >= 0)
      return false;
    perm[map->atoms[i].place] = map->atoms[i].axis;
  }
  int32_t one = 0;
  for (int32_t i = 0; i < map->rank; i++) {
    if (perm[i] >= 0)
      continue;
    while (one < source->rank && source->dims[one] != 1)
      one++;
    if (one == source->rank)
      return false;
    perm[i] = one++;
  }
  return true;
}

static pph_status become_transpose(pph_rewrite *rewrite, pph_node *node,
                                   pph_id source, const int64_t *perm,
                                   pph_error *error) {
  uint32_t rank = (uint32_t)pph_graph_value(rewrite->graph, source)->shape.rank;
  node->kind = PPH_NODE_TRANSPOSE;
  node->attribute_count = 0;
  PPH_TRY(pph_rewrite_set_inputs(rewrite, node, &source, 1, error));
  return pph_node_set_ints(rewrite->graph, node, PPH_ATTR_PERM, perm, rank,
                           error);
}

/* A Transpose of the source, then this node as a Reshape. */
static pph_status become_both(pph_rewrite *rewrite, pph_node *node,
                              pph_id source, const int64_t *perm,
                              pph_error *error) {
  pph_node *transpose;
  uint32_t rank = (uint32_t)pph_graph_value(rewrite->graph, source)->shape.rank;
  PPH_TRY(pph_rewrite_insert(rewrite, PPH_NODE_TRANSPOSE, node, &source, 1,
                             &transpose, error));
  PPH_TRY(pph_node_set_ints(rewrite->graph, transpose, PPH_ATTR_PERM, perm,
                            rank, error));
  PPH_TRY(pph_shape_infer_node(rewrite->graph, transpose, error));
  return pph_rewrite_become_reshape(rewrite, node, transpose->outputs[0],
                                    error);
}

/* Already a Transpose of the source and a Reshape of that. */
static bool is_both(const pph_graph *graph, const pph_node *node,
                    pph_id source) {
  const pph_node *before = pph_node_find_input(graph, node, 0)->producer;
  return node->kind == PPH_NODE_RESHAPE && before &&
         before->kind == PPH_NODE_TRANSPOSE && before->inputs[0] == source;
}

static pph_status join_chain(pph_rewrite *rewrite, pph_node *node,
                             pph_error *error) {
  const pph_graph *graph = rewrite->graph;
  pph_axis_map map;
  pph_id source;
  int64_t perm[PPH_MAX_RANK];
  if (pph_match_empty(pph_node_find_input(graph, node, 0)) ||
      !pph_axis_map_trace(&map, graph, node->outputs[0], &source) ||
      source == node->inputs[0])
    return PPH_OK;
  const pph_shape shape = pph_graph_value(graph, source)->shape;
  if (!is_whole(&map, &shape))
    return PPH_OK;
  order_axes(&map, &shape, perm);
  if (pph_match_perm_moves_ones(&shape, perm)) {
    if (pph_match_same(graph, source, node->outputs[0]) &&
        pph_rewrite_bypass(rewrite, node, source))
      return PPH_OK;
    return pph_rewrite_become_reshape(rewrite, node, source, error);
  }
  int64_t single[PPH_MAX_RANK];
  if (find_single(&map, &shape, single))
    return become_transpose(rewrite, node, source, single, error);
  return is_both(graph, node, source)
             ? PPH_OK
             : become_both(rewrite, node, source, perm, error);
}

/* The node may be gone after the first rule: then its output is. */
static pph_status join(pph_rewrite *rewrite, pph_node *node,
                       pph_rewrite_rule first, pph_error *error) {
  pph_id output = node->outputs[0];
  PPH_TRY(first(rewrite, node, error));
  return pph_graph_value(rewrite->graph, output)->producer == node
             ? join_chain(rewrite, node, error)
             : PPH_OK;
}

pph_status pph_simplify_reshape(pph_rewrite *rewrite, pph_node *node,
                                pph_error *error) {
  return join(rewrite, node, join_reshapes, error);
}

pph_status pph_simplify_transpose(pph_rewrite *rewrite, pph_node *node,
                                  pph_error *error) {
  return join(rewrite, node, join_transposes, error);
}
