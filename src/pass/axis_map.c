#include "pass/axis_map.h"

#include "pass/match.h"

bool pph_axis_map_append(pph_axis_map *map, pph_axis_atom atom) {
  if (atom.length == 1)
    return true;
  pph_axis_atom *last = map->count ? &map->atoms[map->count - 1] : NULL;
  if (last && last->place == atom.place && last->axis == atom.axis &&
      last->stride == atom.stride * atom.length) {
    last->stride = atom.stride;
    last->length *= atom.length;
    return true;
  }
  if (map->count == PPH_AXIS_MAP_ATOMS)
    return false;
  map->atoms[map->count++] = atom;
  return true;
}

void pph_axis_map_init(pph_axis_map *map, const pph_shape *shape) {
  *map = (pph_axis_map){.rank = shape->rank};
  for (int32_t i = 0; i < shape->rank; i++)
    pph_axis_map_append(map, (pph_axis_atom){i, i, 1, shape->dims[i]});
}

void pph_axis_map_transpose(pph_axis_map *map, const int64_t *perm) {
  pph_axis_map from = *map;
  map->count = 0;
  for (int32_t i = 0; i < map->rank; i++)
    for (uint32_t k = 0; k < from.count; k++) {
      pph_axis_atom atom = from.atoms[k];
      if (atom.place != perm[i])
        continue;
      atom.place = i;
      pph_axis_map_append(map, atom);
    }
}

bool pph_axis_map_reshape(pph_axis_map *map, const pph_shape *shape) {
  pph_axis_map from = *map;
  *map = (pph_axis_map){.rank = shape->rank};
  uint32_t at = 0;
  for (int32_t i = 0; i < shape->rank; i++) {
    int64_t missing = shape->dims[i];
    while (missing > 1) {
      if (at == from.count)
        return false;
      pph_axis_atom *rest = &from.atoms[at], atom = *rest;
      if (atom.length > missing) {
        if (atom.length % missing)
          return false;
        rest->length /= missing;
        atom.stride *= rest->length;
        atom.length = missing;
      } else {
        at++;
      }
      if (missing % atom.length)
        return false;
      missing /= atom.length;
      atom.place = i;
      if (!pph_axis_map_append(map, atom))
        return false;
    }
  }
  return at == from.count;
}

bool pph_axis_map_follow(pph_axis_map *map, const pph_graph *graph,
                         const pph_node *node) {
  int64_t perm[PPH_MAX_RANK];
  if (node->kind == PPH_NODE_TRANSPOSE) {
    pph_match_perm(graph, node, perm);
    pph_axis_map_transpose(map, perm);
    return true;
  }
  return node->kind == PPH_NODE_RESHAPE &&
         pph_axis_map_reshape(
             map, &pph_graph_value(graph, node->outputs[0])->shape);
}

bool pph_axis_map_trace(pph_axis_map *map, const pph_graph *graph, pph_id id,
                        pph_id *source) {
  enum { MAX_CHAIN = 16 };
  const pph_node *nodes[MAX_CHAIN];
  int count = 0;
  *source = id;
  for (;;) {
    const pph_node *node = pph_graph_value(graph, *source)->producer;
    if (!node || count == MAX_CHAIN ||
        (node->kind != PPH_NODE_RESHAPE && node->kind != PPH_NODE_TRANSPOSE))
      break;
    nodes[count++] = node;
    *source = node->inputs[0];
  }
  pph_axis_map_init(map, &pph_graph_value(graph, *source)->shape);
  while (count > 0)
    if (!pph_axis_map_follow(map, graph, nodes[--count]))
      return false;
  return true;
}
