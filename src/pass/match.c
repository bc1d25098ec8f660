#include "pass/match.h"

#include <string.h>

#include "base/checked.h"

bool pph_match_scalar(const pph_graph *graph, const pph_node *node,
                      uint32_t slot, float *scalar) {
  pph_tensor tensor;
  size_t count;
  if (!pph_node_find_constant(graph, node, slot, &tensor) ||
      tensor.type != PPH_F32 || !pph_shape_count(&tensor.shape, &count) ||
      count != 1)
    return false;
  memcpy(scalar, tensor.data, sizeof *scalar);
  return true;
}

bool pph_match_empty(const pph_value *value) {
  size_t count;
  return !value->has_rank || !pph_shape_count(&value->shape, &count) ||
         count == 0;
}

bool pph_match_same(const pph_graph *graph, pph_id a, pph_id b) {
  const pph_value *first = pph_graph_value(graph, a);
  const pph_value *second = pph_graph_value(graph, b);
  return first->type == second->type && first->has_rank && second->has_rank &&
         pph_shape_equal(&first->shape, &second->shape);
}

bool pph_match_with_scalar(const pph_graph *graph, const pph_node *node,
                           uint32_t *other, float *scalar) {
  if (node->input_count != 2)
    return false;
  for (uint32_t slot = 0; slot < 2; slot++)
    if (pph_match_scalar(graph, node, slot, scalar) &&
        pph_match_same(graph, node->inputs[1 - slot], node->outputs[0])) {
      *other = 1 - slot;
      return true;
    }
  return false;
}

const float *pph_match_per_channel(const pph_graph *graph,
                                   const pph_node *node, uint32_t slot,
                                   int32_t rank, int64_t channels,
                                   size_t *step) {
  pph_tensor tensor;
  if (!pph_node_find_constant(graph, node, slot, &tensor) ||
      tensor.type != PPH_F32 || tensor.shape.rank > rank)
    return NULL;
  *step = 0;
  for (int32_t i = 0; i < tensor.shape.rank; i++) {
    int32_t axis = i + rank - tensor.shape.rank;
    if (tensor.shape.dims[i] == 1)
      continue;
    if (axis != 1 || tensor.shape.dims[i] != channels)
      return NULL;
    *step = 1;
  }
  return tensor.data;
}

bool pph_match_axes(const pph_graph *graph, const pph_node *node, int32_t rank,
                    int64_t *axes, size_t *count) {
  uint32_t length;
  const int64_t *ints = pph_node_ints(node, PPH_ATTR_AXES, &length);
  if (ints && length <= PPH_MAX_RANK) {
    *count = length;
    memcpy(axes, ints, length * sizeof *axes);
  } else if (!pph_node_read_ints(graph, node, 1, axes, PPH_MAX_RANK, count)) {
    return false;
  }
  for (size_t i = 0; i < *count; i++) {
    axes[i] += axes[i] < 0 ? rank : 0;
    if (axes[i] < 0 || axes[i] >= rank || (i > 0 && axes[i] <= axes[i - 1]))
      return false;
  }
  return true;
}

/* Axis numbers in input `slot`, or 0, 1, 2, ... when it is absent. */
static bool read_axes(const pph_graph *graph, const pph_node *node,
                      uint32_t slot, int32_t rank, int64_t *axes,
                      size_t count) {
  size_t length = count;
  for (size_t i = 0; i < PPH_MAX_RANK; i++)
    axes[i] = (int64_t)i;
  if (pph_node_find_input(graph, node, slot) &&
      !pph_node_read_ints(graph, node, slot, axes, PPH_MAX_RANK, &length))
    return false;
  if (length != count)
    return false;
  for (size_t i = 0; i < count; i++) {
    axes[i] += axes[i] < 0 ? rank : 0;
    if (axes[i] < 0 || axes[i] >= rank)
      return false;
  }
  return true;
}

bool pph_match_zero_pad(const pph_graph *graph, const pph_node *node,
                        int64_t *begin, int64_t *end) {
  int64_t pads[2 * PPH_MAX_RANK], axes[PPH_MAX_RANK];
  size_t count;
  float value = 0;
  const pph_value *input = pph_node_find_input(graph, node, 0);
  if (strcmp(pph_node_text(node, PPH_ATTR_MODE, "constant"), "constant") ||
      (pph_node_find_input(graph, node, 2) &&
       !pph_match_scalar(graph, node, 2, &value)) ||
      value != 0 || !input || input->type != PPH_F32 ||
      !pph_node_read_ints(graph, node, 1, pads, 2 * PPH_MAX_RANK, &count) ||
      !read_axes(graph, node, 3, input->shape.rank, axes, count / 2))
    return false;
  memset(begin, 0, PPH_MAX_RANK * sizeof *begin);
  memset(end, 0, PPH_MAX_RANK * sizeof *end);
  for (size_t i = 0; i < count / 2; i++) {
    begin[axes[i]] = pads[i];
    end[axes[i]] = pads[count / 2 + i];
  }
  return true;
}

bool pph_match_crop(const pph_graph *graph, const pph_node *node,
                    int64_t *begin, int64_t *end) {
  int64_t starts[PPH_MAX_RANK], axes[PPH_MAX_RANK], steps[PPH_MAX_RANK];
  size_t count, step_count;
  const pph_value *in = pph_node_find_input(graph, node, 0);
  const pph_value *out = pph_graph_value(graph, node->outputs[0]);
  if (!in ||
      !pph_node_read_ints(graph, node, 1, starts, PPH_MAX_RANK, &count) ||
      !read_axes(graph, node, 3, in->shape.rank, axes, count))
    return false;
  if (pph_node_find_input(graph, node, 4)) {
    if (!pph_node_read_ints(graph, node, 4, steps, PPH_MAX_RANK, &step_count))
      return false;
    for (size_t i = 0; i < step_count; i++)
      if (steps[i] != 1)
        return false;
  }
  memset(begin, 0, PPH_MAX_RANK * sizeof *begin);
  memset(end, 0, PPH_MAX_RANK * sizeof *end);
  for (size_t i = 0; i < count; i++) {
    int64_t dim = in->shape.dims[axes[i]], start = starts[i];
    start = start < 0 ? pph_max_i64(0, start + dim) : pph_min_i64(start, dim);
    begin[axes[i]] = start;
    end[axes[i]] = dim - start - out->shape.dims[axes[i]];
  }
  return true;
}

void pph_match_perm(const pph_graph *graph, const pph_node *node,
                    int64_t *perm) {
  const pph_value *in = pph_node_find_input(graph, node, 0);
  uint32_t count;
  const int64_t *ints = pph_node_ints(node, PPH_ATTR_PERM, &count);
  for (int32_t i = 0; i < in->shape.rank; i++)
    perm[i] = ints && (int32_t)count == in->shape.rank
                  ? ints[i]
                  : in->shape.rank - 1 - i;
}

bool pph_match_perm_moves_ones(const pph_shape *shape, const int64_t *perm) {
  int64_t previous = -1;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (shape->dims[perm[i]] == 1)
      continue;
    if (perm[i] < previous)
      return false;
    previous = perm[i];
  }
  return true;
}
