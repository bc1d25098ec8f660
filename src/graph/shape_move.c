/* Shape rules of kinds that move elements. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape_rules.h"

pph_status pph_rule_concat(const pph_shape_at *at) {
  const pph_value *first = pph_rule_input(at, 0);
  int64_t axis;
  if (!pph_node_find_attribute(at->node, PPH_ATTR_AXIS))
    return pph_rule_bad(at, "the attribute axis is missing");
  PPH_TRY(pph_rule_same_types(at, 0, at->node->input_count));
  PPH_TRY(pph_rule_axis(at, pph_node_int(at->node, PPH_ATTR_AXIS, 0),
                        first->shape.rank, &axis));
  pph_shape shape = first->shape;
  for (uint32_t i = 1; i < at->node->input_count; i++) {
    const pph_value *next = pph_rule_input(at, i);
    char a[96], b[96];
    if (!next)
      return pph_rule_bad(at, "input %u is missing", i);
    bool fits = next->shape.rank == shape.rank;
    for (int32_t k = 0; fits && k < shape.rank; k++)
      fits = k == axis || next->shape.dims[k] == shape.dims[k];
    if (!fits || !pph_checked_add_i64(shape.dims[axis], next->shape.dims[axis],
                                      &shape.dims[axis]))
      return pph_rule_bad(
          at, "input %u has shape %s, must be as %s but for axis %lld", i,
          pph_shape_text(&next->shape, a, sizeof a),
          pph_shape_text(&first->shape, b, sizeof b), (long long)axis);
  }
  return pph_rule_set_output(at, 0, first->type, &shape);
}

/* A constant list of sizes as a shape. */
static pph_status read_shape(const pph_shape_at *at, uint32_t slot,
                             int64_t lowest, pph_shape *shape) {
  size_t count;
  int64_t dims[64];
  PPH_TRY(pph_rule_ints(at, slot, dims, 64, &count));
  if (count > PPH_MAX_RANK)
    return pph_node_fail(at->node, at->error, PPH_UNSUPPORTED,
                         "the output has rank %zu, at most %d is supported",
                         count, PPH_MAX_RANK);
  *shape = (pph_shape){.rank = (int32_t)count};
  for (size_t i = 0; i < count; i++) {
    if (dims[i] < lowest)
      return pph_rule_bad(at, "size %zu is %lld, must be at least %lld", i,
                          (long long)dims[i], (long long)lowest);
    shape->dims[i] = dims[i];
  }
  return PPH_OK;
}

pph_status pph_rule_expand(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  pph_shape wanted, shape;
  char a[96], b[96];
  PPH_TRY(read_shape(at, 1, 0, &wanted));
  if (!pph_shape_broadcast(&x->shape, &wanted, &shape))
    return pph_rule_bad(at, "shape %s does not broadcast to %s",
                        pph_shape_text(&x->shape, a, sizeof a),
                        pph_shape_text(&wanted, b, sizeof b));
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_flatten(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  int64_t axis = pph_node_int(at->node, PPH_ATTR_AXIS, 1);
  int32_t rank = x->shape.rank;
  if (axis < -rank || axis > rank)
    return pph_rule_bad(at, "axis is %lld, must be in [%d,%d]",
                        (long long)axis, -rank, rank);
  axis += axis < 0 ? rank : 0;
  pph_shape shape = {2, {1, 1}};
  for (int32_t i = 0; i < rank; i++)
    if (!pph_checked_mul_i64(shape.dims[i >= axis], x->shape.dims[i],
                             &shape.dims[i >= axis]))
      return pph_rule_bad(at, "the sizes overflow");
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_gather(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0), *index = pph_rule_input(at, 1);
  int64_t axis;
  if (index->type != PPH_I64 && index->type != PPH_I32)
    return pph_rule_bad(at, "indices have type %s, must be i32 or i64",
                        pph_dtype_name(index->type));
  PPH_TRY(pph_rule_axis(at, pph_node_int(at->node, PPH_ATTR_AXIS, 0),
                        x->shape.rank, &axis));
  pph_shape shape = {0};
  int32_t rank = x->shape.rank - 1 + index->shape.rank;
  if (rank > PPH_MAX_RANK)
    return pph_node_fail(at->node, at->error, PPH_UNSUPPORTED,
                         "the output has rank %d, at most %d is supported",
                         rank, PPH_MAX_RANK);
  for (int32_t i = 0; i < x->shape.rank; i++) {
    if (i != axis) {
      shape.dims[shape.rank++] = x->shape.dims[i];
      continue;
    }
    for (int32_t k = 0; k < index->shape.rank; k++)
      shape.dims[shape.rank++] = index->shape.dims[k];
  }
  return pph_rule_set_output(at, 0, x->type, &shape);
}

/* Axes that a pad list speaks of; all of them when input 3 is absent. */
static pph_status read_pad_axes(const pph_shape_at *at, int32_t rank,
                                int64_t *axes, size_t *count) {
  if (!pph_rule_input(at, 3)) {
    for (int32_t i = 0; i < rank; i++)
      axes[i] = i;
    *count = (size_t)rank;
    return PPH_OK;
  }
  PPH_TRY(pph_rule_ints(at, 3, axes, PPH_MAX_RANK, count));
  bool seen[PPH_MAX_RANK] = {false};
  for (size_t i = 0; i < *count; i++) {
    PPH_TRY(pph_rule_axis(at, axes[i], rank, &axes[i]));
    if (seen[axes[i]])
      return pph_rule_bad(at, "axis %lld is named twice", (long long)axes[i]);
    seen[axes[i]] = true;
  }
  return PPH_OK;
}

/* Modes that read inside need enough elements to read. */
static pph_status check_pad_mode(const pph_shape_at *at, int64_t dim,
                                 int64_t begin, int64_t end) {
  const char *mode = pph_node_text(at->node, PPH_ATTR_MODE, "constant");
  int64_t most = begin > end ? begin : end;
  if (strcmp(mode, "constant") == 0 || most <= 0)
    return PPH_OK;
  if (strcmp(mode, "reflect") == 0) {
    if (most >= dim)
      return pph_rule_bad(at, "a reflected pad is %lld, must be below %lld",
                          (long long)most, (long long)dim);
    return PPH_OK;
  }
  if (strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
    return pph_rule_bad(at,
                        "mode is \"%.40s\", must be constant, reflect, edge "
                        "or wrap",
                        mode);
  return dim > 0 ? PPH_OK
                 : pph_rule_bad(at, "an empty axis cannot be padded by %s",
                                mode);
}

pph_status pph_rule_pad(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  int64_t axes[PPH_MAX_RANK], pads[2 * PPH_MAX_RANK];
  size_t axis_count, count;
  const pph_value *fill = pph_rule_input(at, 2);
  if (fill && fill->type != x->type)
    return pph_rule_bad(at, "the pad value has type %s, the input has %s",
                        pph_dtype_name(fill->type), pph_dtype_name(x->type));
  PPH_TRY(read_pad_axes(at, x->shape.rank, axes, &axis_count));
  PPH_TRY(pph_rule_ints(at, 1, pads, 2 * PPH_MAX_RANK, &count));
  if (count != 2 * axis_count)
    return pph_rule_bad(at, "pads has %zu entries, must have %zu", count,
                        2 * axis_count);
  pph_shape shape = x->shape;
  for (size_t i = 0; i < axis_count; i++) {
    int64_t *dim = &shape.dims[axes[i]], before = *dim;
    int64_t begin = pads[i], end = pads[i + axis_count];
    if (!pph_checked_add_i64(*dim, begin, dim) ||
        !pph_checked_add_i64(*dim, end, dim) || *dim < 0 ||
        begin < -before || end < -before)
      return pph_rule_bad(at,
                          "pads of axis %lld are %lld and %lld, the axis has "
                          "%lld elements",
                          (long long)axes[i], (long long)begin,
                          (long long)end, (long long)before);
    PPH_TRY(check_pad_mode(at, before, begin, end));
  }
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_reshape(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  pph_shape shape;
  size_t total, known = 1;
  int32_t open = -1;
  PPH_TRY(read_shape(at, 1, -1, &shape));
  if (!pph_shape_count(&x->shape, &total))
    return pph_rule_bad(at, "the input is too large");
  for (int32_t i = 0; i < shape.rank; i++) {
    if (shape.dims[i] == -1) {
      if (open >= 0)
        return pph_rule_bad(at, "the target has more than one -1");
      open = i;
      continue;
    }
    if (shape.dims[i] == 0) {
      if (i >= x->shape.rank)
        return pph_rule_bad(at, "size %d is 0, but the input has rank %d", i,
                            x->shape.rank);
      shape.dims[i] = x->shape.dims[i];
    }
    if (!pph_checked_mul(known, (size_t)shape.dims[i], &known))
      return pph_rule_bad(at, "the target's sizes overflow");
  }
  if (open >= 0)
    shape.dims[open] = known && total % known == 0
                           ? (int64_t)(total / known)
                           : (known || total ? -1 : 0);
  char a[96], b[96];
  if (open >= 0 ? shape.dims[open] < 0 : known != total)
    return pph_rule_bad(at, "shape %s cannot become %s",
                        pph_shape_text(&x->shape, a, sizeof a),
                        pph_shape_text(&shape, b, sizeof b));
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_scatter_nd(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0), *index = pph_rule_input(at, 1);
  const pph_value *updates = pph_rule_input(at, 2);
  if (index->type != PPH_I64)
    return pph_rule_bad(at, "indices have type %s, must be i64",
                        pph_dtype_name(index->type));
  if (updates->type != x->type)
    return pph_rule_bad(at, "updates have type %s, data has %s",
                        pph_dtype_name(updates->type),
                        pph_dtype_name(x->type));
  PPH_TRY(pph_rule_rank(at, 0, 1, PPH_MAX_RANK));
  PPH_TRY(pph_rule_rank(at, 1, 1, PPH_MAX_RANK));
  int64_t depth = index->shape.dims[index->shape.rank - 1];
  if (depth > x->shape.rank)
    return pph_rule_bad(at, "indices have %lld coordinates, data has rank %d",
                        (long long)depth, x->shape.rank);
  pph_shape wanted = {0};
  for (int32_t i = 0; i + 1 < index->shape.rank; i++)
    wanted.dims[wanted.rank++] = index->shape.dims[i];
  for (int64_t i = depth; i < x->shape.rank && wanted.rank < PPH_MAX_RANK; i++)
    wanted.dims[wanted.rank++] = x->shape.dims[i];
  char a[96], b[96];
  if (!pph_shape_equal(&wanted, &updates->shape))
    return pph_rule_bad(at, "updates have shape %s, must be %s",
                        pph_shape_text(&updates->shape, a, sizeof a),
                        pph_shape_text(&wanted, b, sizeof b));
  return pph_rule_same(at);
}

pph_status pph_rule_tile(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  pph_shape repeats, shape = x->shape;
  PPH_TRY(read_shape(at, 1, 0, &repeats));
  if (repeats.rank != shape.rank)
    return pph_rule_bad(at, "repeats has %d entries, must have %d",
                        repeats.rank, shape.rank);
  for (int32_t i = 0; i < shape.rank; i++)
    if (!pph_checked_mul_i64(shape.dims[i], repeats.dims[i], &shape.dims[i]))
      return pph_rule_bad(at, "the sizes overflow");
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_transpose(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  uint32_t count;
  const int64_t *perm = pph_node_ints(at->node, PPH_ATTR_PERM, &count);
  pph_shape shape = {.rank = x->shape.rank};
  bool seen[PPH_MAX_RANK] = {false};
  if (perm && (int32_t)count != shape.rank)
    return pph_rule_bad(at, "perm has %u entries, must have %d", count,
                        shape.rank);
  for (int32_t i = 0; i < shape.rank; i++) {
    int64_t from = perm ? perm[i] : shape.rank - 1 - i;
    if (from < 0 || from >= shape.rank || seen[from])
      return pph_rule_bad(at, "perm[%d] is %lld: perm must be a permutation "
                              "of 0 to %d",
                          i, (long long)from, shape.rank - 1);
    seen[from] = true;
    shape.dims[i] = x->shape.dims[from];
  }
  return pph_rule_set_output(at, 0, x->type, &shape);
}
