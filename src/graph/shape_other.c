/* Products, recurrences, reductions, and questions about shapes. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape_rules.h"

pph_status pph_rule_constant_of_shape(const pph_shape_at *at) {
  int64_t dims[PPH_MAX_RANK];
  size_t count;
  const pph_value *fill = pph_rule_input(at, 1);
  size_t fills;
  if (fill && (!pph_shape_count(&fill->shape, &fills) || fills != 1))
    return pph_rule_bad(at, "the value has rank %d, must be one element",
                        fill->shape.rank);
  PPH_TRY(pph_rule_ints(at, 0, dims, PPH_MAX_RANK, &count));
  pph_shape shape = {.rank = (int32_t)count};
  for (size_t i = 0; i < count; i++) {
    if (dims[i] < 0)
      return pph_rule_bad(at, "size %zu is %lld, must be at least 0", i,
                          (long long)dims[i]);
    shape.dims[i] = dims[i];
  }
  return pph_rule_set_output(at, 0, fill ? fill->type : PPH_F32, &shape);
}

/* A constant scalar as a double. */
static pph_status read_scalar(const pph_shape_at *at, uint32_t slot,
                              double *number) {
  pph_tensor tensor;
  size_t count;
  if (!pph_node_find_constant(at->graph, at->node, slot, &tensor))
    return pph_node_fail(at->node, at->error, PPH_UNSUPPORTED,
                         "the shape depends on input %u, which is not known "
                         "before the run",
                         slot);
  if (!pph_shape_count(&tensor.shape, &count) || count != 1)
    return pph_rule_bad(at, "input %u must be a scalar", slot);
  if (tensor.type == PPH_I64)
    *number = (double)*(const int64_t *)tensor.data;
  else if (tensor.type == PPH_I32)
    *number = *(const int32_t *)tensor.data;
  else if (tensor.type == PPH_F32)
    *number = (double)*(const float *)tensor.data;
  else if (tensor.type == PPH_F64)
    *number = *(const double *)tensor.data;
  else
    return pph_rule_bad(at, "input %u has type %s, must be f32, f64, i32 or "
                            "i64",
                        slot, pph_dtype_name(tensor.type));
  return PPH_OK;
}

pph_status pph_rule_range(const pph_shape_at *at) {
  double start, limit, delta;
  PPH_TRY(pph_rule_same_types(at, 0, 3));
  PPH_TRY(read_scalar(at, 0, &start));
  PPH_TRY(read_scalar(at, 1, &limit));
  PPH_TRY(read_scalar(at, 2, &delta));
  if (delta == 0 || isnan(delta))
    return pph_rule_bad(at, "delta is %g, must not be", delta);
  double length = ceil((limit - start) / delta);
  if (!(length < 1e15))
    return pph_rule_bad(at, "from %g to %g by %g is too long", start, limit,
                        delta);
  pph_shape shape = {1, {length > 0 ? (int64_t)length : 0}};
  return pph_rule_set_output(at, 0, pph_rule_input(at, 0)->type, &shape);
}

pph_status pph_rule_shape(const pph_shape_at *at) {
  pph_shape shape = {1, {pph_rule_input(at, 0)->shape.rank}};
  return pph_rule_set_output(at, 0, PPH_I64, &shape);
}

pph_status pph_rule_size(const pph_shape_at *at) {
  pph_shape shape = {0};
  return pph_rule_set_output(at, 0, PPH_I64, &shape);
}

pph_status pph_rule_gemm(const pph_shape_at *at) {
  const pph_value *a = pph_rule_input(at, 0), *b = pph_rule_input(at, 1);
  const pph_value *c = pph_rule_input(at, 2);
  bool trans_a = pph_node_int(at->node, PPH_ATTR_TRANS_A, 0) != 0;
  bool trans_b = pph_node_int(at->node, PPH_ATTR_TRANS_B, 0) != 0;
  PPH_TRY(pph_rule_same_types(at, 0, at->node->input_count));
  PPH_TRY(pph_rule_rank(at, 0, 2, 2));
  PPH_TRY(pph_rule_rank(at, 1, 2, 2));
  int64_t inner_a = a->shape.dims[!trans_a], inner_b = b->shape.dims[trans_b];
  if (inner_a != inner_b)
    return pph_rule_bad(at, "inner sizes are %lld and %lld, must agree",
                        (long long)inner_a, (long long)inner_b);
  pph_shape shape = {2, {a->shape.dims[trans_a], b->shape.dims[!trans_b]}};
  pph_shape whole;
  char text[96];
  if (c && (!pph_shape_broadcast(&shape, &c->shape, &whole) ||
            !pph_shape_equal(&shape, &whole)))
    return pph_rule_bad(at, "input 2 has shape %s, which does not broadcast "
                            "to the product's",
                        pph_shape_text(&c->shape, text, sizeof text));
  return pph_rule_set_output(at, 0, a->type, &shape);
}

/* One input of a GRU against [a,b,c] (rank 2: [a,b]). */
static pph_status expect(const pph_shape_at *at, uint32_t slot,
                         const pph_shape *wanted) {
  const pph_value *value = pph_rule_input(at, slot);
  char a[96], b[96];
  if (!value || pph_shape_equal(&value->shape, wanted))
    return PPH_OK;
  return pph_rule_bad(at, "input %u has shape %s, must be %s", slot,
                      pph_shape_text(&value->shape, a, sizeof a),
                      pph_shape_text(wanted, b, sizeof b));
}

pph_status pph_rule_gru(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0), *r = pph_rule_input(at, 2);
  const char *direction =
      pph_node_text(at->node, PPH_ATTR_DIRECTION, "forward");
  bool both = strcmp(direction, "bidirectional") == 0;
  if (!both && strcmp(direction, "forward") && strcmp(direction, "reverse"))
    return pph_rule_bad(at, "direction is \"%.40s\", must be forward, reverse "
                            "or bidirectional",
                        direction);
  /* Input 4, the lengths, is the one of another type. */
  PPH_TRY(pph_rule_same_types(at, 0, 4));
  const pph_value *initial = pph_rule_input(at, 5);
  if (initial && initial->type != x->type)
    return pph_rule_bad(at, "input 5 has type %s, input 0 has %s",
                        pph_dtype_name(initial->type),
                        pph_dtype_name(x->type));
  PPH_TRY(pph_rule_rank(at, 0, 3, 3));
  PPH_TRY(pph_rule_rank(at, 2, 3, 3));
  int64_t directions = both ? 2 : 1, hidden = r->shape.dims[2];
  hidden = pph_node_int(at->node, PPH_ATTR_HIDDEN_SIZE, hidden);
  if (hidden < 1 || hidden > (int64_t)1 << 32)
    return pph_rule_bad(at, "hidden_size is %lld, must be at least 1",
                        (long long)hidden);
  int64_t length = x->shape.dims[0], batch = x->shape.dims[1];
  PPH_TRY(expect(at, 1,
                 &(pph_shape){3, {directions, 3 * hidden, x->shape.dims[2]}}));
  PPH_TRY(expect(at, 2, &(pph_shape){3, {directions, 3 * hidden, hidden}}));
  PPH_TRY(expect(at, 3, &(pph_shape){2, {directions, 6 * hidden}}));
  PPH_TRY(expect(at, 4, &(pph_shape){1, {batch}}));
  PPH_TRY(expect(at, 5, &(pph_shape){3, {directions, batch, hidden}}));
  pph_shape all = {4, {length, directions, batch, hidden}};
  pph_shape last = {3, {directions, batch, hidden}};
  PPH_TRY(pph_rule_set_output(at, 0, x->type, &all));
  return pph_rule_set_output(at, 1, x->type, &last);
}

/* A vector on the left is a row, on the right a column; both vanish after. */
pph_status pph_rule_matmul(const pph_shape_at *at) {
  const pph_value *a = pph_rule_input(at, 0), *b = pph_rule_input(at, 1);
  PPH_TRY(pph_rule_same_types(at, 0, 2));
  PPH_TRY(pph_rule_rank(at, 0, 1, PPH_MAX_RANK));
  PPH_TRY(pph_rule_rank(at, 1, 1, PPH_MAX_RANK));
  int32_t ra = a->shape.rank, rb = b->shape.rank;
  int64_t inner_a = a->shape.dims[ra - 1];
  int64_t inner_b = b->shape.dims[rb > 1 ? rb - 2 : 0];
  if (inner_a != inner_b)
    return pph_rule_bad(at, "inner sizes are %lld and %lld, must agree",
                        (long long)inner_a, (long long)inner_b);
  pph_shape batch_a = a->shape, batch_b = b->shape, shape;
  batch_a.rank = ra > 2 ? ra - 2 : 0;
  batch_b.rank = rb > 2 ? rb - 2 : 0;
  if (!pph_shape_broadcast(&batch_a, &batch_b, &shape))
    return pph_rule_bad(at, "the batch sizes do not broadcast");
  if (ra > 1)
    shape.dims[shape.rank++] = a->shape.dims[ra - 2];
  if (rb > 1)
    shape.dims[shape.rank++] = b->shape.dims[rb - 1];
  return pph_rule_set_output(at, 0, a->type, &shape);
}

pph_status pph_rule_reduce(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0), *list = pph_rule_input(at, 1);
  bool keep = pph_node_int(at->node, PPH_ATTR_KEEPDIMS, 1) != 0;
  bool reduced[PPH_MAX_RANK] = {false};
  int64_t axes[PPH_MAX_RANK];
  size_t count = 0;
  if (list)
    PPH_TRY(pph_rule_ints(at, 1, axes, PPH_MAX_RANK, &count));
  for (size_t i = 0; i < count; i++) {
    PPH_TRY(pph_rule_axis(at, axes[i], x->shape.rank, &axes[i]));
    reduced[axes[i]] = true;
  }
  pph_shape shape = {0};
  for (int32_t i = 0; i < x->shape.rank; i++) {
    if (count == 0 || reduced[i]) {
      if (keep)
        shape.dims[shape.rank++] = 1;
    } else {
      shape.dims[shape.rank++] = x->shape.dims[i];
    }
  }
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_softmax(const pph_shape_at *at) {
  int64_t axis;
  PPH_TRY(pph_rule_axis(at, pph_node_int(at->node, PPH_ATTR_AXIS, -1),
                        pph_rule_input(at, 0)->shape.rank, &axis));
  return pph_rule_unary(at);
}

pph_status pph_rule_cum_sum(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0), *list = pph_rule_input(at, 1);
  int64_t axis;
  size_t count;
  if (!pph_shape_count(&list->shape, &count) || count != 1 ||
      (list->type != PPH_I64 && list->type != PPH_I32))
    return pph_rule_bad(at, "the axis has type %s, must be one i32 or i64",
                        pph_dtype_name(list->type));
  if (list->data) {
    PPH_TRY(pph_rule_ints(at, 1, &axis, 1, &count));
    PPH_TRY(pph_rule_axis(at, axis, x->shape.rank, &axis));
  }
  return pph_rule_same(at);
}

pph_status pph_rule_top_k(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  pph_shape shape = x->shape;
  int64_t axis, most;
  size_t count;
  PPH_TRY(pph_rule_axis(at, pph_node_int(at->node, PPH_ATTR_AXIS, -1),
                        shape.rank, &axis));
  PPH_TRY(pph_rule_ints(at, 1, &most, 1, &count));
  if (count != 1 || most < 0 || most > shape.dims[axis])
    return pph_rule_bad(at, "k must be one number from 0 to %lld",
                        (long long)shape.dims[axis]);
  shape.dims[axis] = most;
  PPH_TRY(pph_rule_set_output(at, 0, x->type, &shape));
  return pph_rule_set_output(at, 1, PPH_I64, &shape);
}
