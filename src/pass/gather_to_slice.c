/* A Gather of one constant index takes one part of an axis: a Slice, and a
   Reshape that drops the axis. Reshape and Transpose nodes in front that only
   made that axis out of one of their source's are not needed: the way in which
   PyTorch splits shuffled channels becomes a Slice with a step. Exact. */
#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"
#include "pass/axis_map.h"
#include "pass/match.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* The part of the source that is taken. */
typedef struct part {
  pph_id source;
  int64_t axis, start, end, step;
  pph_shape shape; /* of the part */
} part;

static bool read_index(const pph_graph *graph, const pph_node *node,
                       int64_t *axis, int64_t *index) {
  size_t count;
  const pph_value *indices = pph_node_find_input(graph, node, 1);
  const pph_value *data = pph_node_find_input(graph, node, 0);
  if (indices->shape.rank != 0 || data->data ||
      !pph_node_read_ints(graph, node, 1, index, 1, &count) || count != 1)
    return false;
  *axis = pph_node_int(node, PPH_ATTR_AXIS, 0);
  *axis += *axis < 0 ? data->shape.rank : 0;
  *index += *index < 0 ? data->shape.dims[*axis] : 0;
  return *index >= 0 && *index < data->shape.dims[*axis];
}

/* Takes the atom at `place` out of the map; what is left of its axis must be
   one range, or every n-th element. */
static bool take(const pph_graph *graph, pph_axis_map *map, int64_t place,
                 int64_t index, part *taken) {
  const pph_shape *shape = &pph_graph_value(graph, taken->source)->shape;
  uint32_t at = map->count, found = 0;
  for (uint32_t i = 0; i < map->count; i++)
    if (map->atoms[i].place == place) {
      at = i;
      found++;
    }
  if (found != 1)
    return false;
  pph_axis_atom atom = map->atoms[at];
  int64_t dim = shape->dims[atom.axis];
  bool outer = atom.stride * atom.length == dim;
  if (!outer && atom.stride != 1)
    return false;
  taken->axis = atom.axis;
  taken->start = index * atom.stride;
  taken->step = outer ? 1 : atom.length;
  taken->end = outer ? taken->start + atom.stride : dim;
  taken->shape = *shape;
  taken->shape.dims[atom.axis] = dim / atom.length;
  for (uint32_t i = at; i + 1 < map->count; i++)
    map->atoms[i] = map->atoms[i + 1];
  map->count--;
  return true;
}

/* What is left comes in the order of the source. Pieces of one axis with larger
   strides are outer. */
static bool is_in_order(const pph_axis_map *map) {
  for (uint32_t i = 1; i < map->count; i++) {
    const pph_axis_atom *before = &map->atoms[i - 1], *atom = &map->atoms[i];
    if (atom->axis < before->axis ||
        (atom->axis == before->axis && atom->stride > before->stride))
      return false;
  }
  return true;
}

static pph_status add_slice(pph_rewrite *rewrite, pph_node *before,
                            const part *taken, pph_id *output,
                            pph_error *error) {
  pph_graph *graph = rewrite->graph;
  const int64_t parameters[4] = {taken->start, taken->end, taken->axis,
                                 taken->step};
  pph_id ids[5] = {taken->source};
  for (int i = 0; i < 4; i++)
    PPH_TRY(
        pph_graph_add_ints(graph, NULL, &parameters[i], 1, &ids[1 + i], error));
  pph_node *slice;
  PPH_TRY(pph_rewrite_insert(rewrite, PPH_NODE_SLICE, before, ids, 5, &slice,
                             error));
  *output = slice->outputs[0];
  return pph_shape_infer_node(graph, slice, error);
}

static pph_status replace(pph_rewrite *rewrite, pph_node *node,
                          const part *taken, pph_error *error) {
  pph_id slice;
  PPH_TRY(add_slice(rewrite, node, taken, &slice, error));
  if (pph_match_same(rewrite->graph, slice, node->outputs[0]) &&
      pph_rewrite_bypass(rewrite, node, slice))
    return PPH_OK;
  return pph_rewrite_become_reshape(rewrite, node, slice, error);
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  const pph_graph *graph = rewrite->graph;
  int64_t axis, index;
  size_t elements;
  pph_axis_map map;
  part taken;
  if (node->kind != PPH_NODE_GATHER ||
      !read_index(graph, node, &axis, &index) ||
      !pph_shape_count(&pph_node_find_input(graph, node, 0)->shape,
                       &elements) ||
      elements == 0)
    return PPH_OK;
  if (pph_node_find_input(graph, node, 0)->shape.dims[axis] == 1)
    return pph_rewrite_become_reshape(rewrite, node, node->inputs[0], error);
  if (pph_axis_map_trace(&map, graph, node->inputs[0], &taken.source) &&
      take(graph, &map, axis, index, &taken) && is_in_order(&map))
    return replace(rewrite, node, &taken, error);
  taken.source = node->inputs[0];
  pph_axis_map_init(&map, &pph_graph_value(graph, taken.source)->shape);
  if (take(graph, &map, axis, index, &taken))
    return replace(rewrite, node, &taken, error);
  return PPH_OK;
}

pph_status pph_pass_gather_to_slice(pph_graph *graph,
                                    const pph_pass_options *options,
                                    pph_error *error) {
  (void)options;
  return pph_rewrite_walk(graph, visit, error);
}
