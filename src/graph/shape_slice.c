/* Shape rules of Slice, Split, Squeeze, Unsqueeze. */
#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape_rules.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* How many elements start:end:step takes of an axis; ONNX's clamping. */
static int64_t slice_length(int64_t dim, int64_t start, int64_t end,
                            int64_t step) {
  start += start < 0 ? dim : 0;
  end += end < 0 ? dim : 0;
  if (step > 0) {
    start = clamp(start, 0, dim);
    end = clamp(end, 0, dim);
    return end > start ? (end - start - 1) / step + 1 : 0;
  }
  start = clamp(start, 0, dim - 1);
  end = clamp(end, -1, dim - 1);
  /* -step could overflow for the least integer; a step beyond any axis takes
     one element. */
  int64_t stride = step < -dim ? dim + 1 : -step;
  return start > end ? (start - end - 1) / stride + 1 : 0;
}

pph_status pph_rule_slice(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  int64_t starts[PPH_MAX_RANK], ends[PPH_MAX_RANK], axes[PPH_MAX_RANK];
  int64_t steps[PPH_MAX_RANK];
  size_t count, end_count, axis_count, step_count;
  PPH_TRY(pph_rule_ints(at, 1, starts, PPH_MAX_RANK, &count));
  PPH_TRY(pph_rule_ints(at, 2, ends, PPH_MAX_RANK, &end_count));
  axis_count = step_count = count;
  for (size_t i = 0; i < count; i++) {
    axes[i] = (int64_t)i;
    steps[i] = 1;
  }
  if (pph_rule_input(at, 3))
    PPH_TRY(pph_rule_ints(at, 3, axes, PPH_MAX_RANK, &axis_count));
  if (pph_rule_input(at, 4))
    PPH_TRY(pph_rule_ints(at, 4, steps, PPH_MAX_RANK, &step_count));
  if (end_count != count || axis_count != count || step_count != count)
    return pph_rule_bad(at, "starts, ends, axes and steps have %zu, %zu, %zu "
                            "and %zu entries, must agree",
                        count, end_count, axis_count, step_count);
  pph_shape shape = x->shape;
  bool seen[PPH_MAX_RANK] = {false};
  for (size_t i = 0; i < count; i++) {
    int64_t axis;
    PPH_TRY(pph_rule_axis(at, axes[i], x->shape.rank, &axis));
    if (seen[axis])
      return pph_rule_bad(at, "axis %lld is named twice", (long long)axis);
    if (steps[i] == 0)
      return pph_rule_bad(at, "step %zu is 0, must not be", i);
    seen[axis] = true;
    shape.dims[axis] = x->shape.dims[axis]
                           ? slice_length(x->shape.dims[axis], starts[i],
                                          ends[i], steps[i])
                           : 0;
  }
  return pph_rule_set_output(at, 0, x->type, &shape);
}

static pph_status split_evenly(const pph_shape_at *at, int64_t axis) {
  const pph_value *x = pph_rule_input(at, 0);
  int64_t parts = at->node->output_count, dim = x->shape.dims[axis];
  int64_t part = pph_ceil_div(dim, parts);
  for (uint32_t i = 0; i < at->node->output_count; i++) {
    pph_shape shape = x->shape;
    int64_t left = dim - part * i;
    shape.dims[axis] = clamp(left, 0, part);
    PPH_TRY(pph_rule_set_output(at, i, x->type, &shape));
  }
  return PPH_OK;
}

pph_status pph_rule_split(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  int64_t axis, sum = 0, sizes[256];
  size_t count;
  PPH_TRY(pph_rule_axis(at, pph_node_int(at->node, PPH_ATTR_AXIS, 0),
                        x->shape.rank, &axis));
  if (!pph_rule_input(at, 1))
    return split_evenly(at, axis);
  PPH_TRY(pph_rule_ints(at, 1, sizes, 256, &count));
  if (count != at->node->output_count)
    return pph_rule_bad(at, "split has %zu entries, the node has %u outputs",
                        count, at->node->output_count);
  for (size_t i = 0; i < count; i++)
    if (sizes[i] < 0 || !pph_checked_add_i64(sum, sizes[i], &sum))
      return pph_rule_bad(at, "split[%zu] is %lld, must be at least 0", i,
                          (long long)sizes[i]);
  if (sum != x->shape.dims[axis])
    return pph_rule_bad(at, "split sums to %lld, the axis has %lld elements",
                        (long long)sum, (long long)x->shape.dims[axis]);
  for (uint32_t i = 0; i < count; i++) {
    pph_shape shape = x->shape;
    shape.dims[axis] = sizes[i];
    PPH_TRY(pph_rule_set_output(at, i, x->type, &shape));
  }
  return PPH_OK;
}

/* Marks the axes of input 1 in a tensor of `rank` axes. */
static pph_status mark_axes(const pph_shape_at *at, int32_t rank,
                            bool *marked, size_t *count) {
  int64_t axes[PPH_MAX_RANK];
  PPH_TRY(pph_rule_ints(at, 1, axes, PPH_MAX_RANK, count));
  for (size_t i = 0; i < *count; i++) {
    PPH_TRY(pph_rule_axis(at, axes[i], rank, &axes[i]));
    if (marked[axes[i]])
      return pph_rule_bad(at, "axis %lld is named twice", (long long)axes[i]);
    marked[axes[i]] = true;
  }
  return PPH_OK;
}

pph_status pph_rule_squeeze(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  bool marked[PPH_MAX_RANK] = {false};
  size_t count;
  if (pph_rule_input(at, 1))
    PPH_TRY(mark_axes(at, x->shape.rank, marked, &count));
  pph_shape shape = {0};
  for (int32_t i = 0; i < x->shape.rank; i++) {
    bool drop = pph_rule_input(at, 1) ? marked[i] : x->shape.dims[i] == 1;
    if (drop && x->shape.dims[i] != 1)
      return pph_rule_bad(at, "axis %d has %lld elements, must have 1", i,
                          (long long)x->shape.dims[i]);
    if (!drop)
      shape.dims[shape.rank++] = x->shape.dims[i];
  }
  return pph_rule_set_output(at, 0, x->type, &shape);
}

pph_status pph_rule_unsqueeze(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  int64_t axes[PPH_MAX_RANK];
  size_t count;
  PPH_TRY(pph_rule_ints(at, 1, axes, PPH_MAX_RANK, &count));
  int32_t rank = x->shape.rank + (int32_t)count, from = 0;
  if (rank > PPH_MAX_RANK)
    return pph_node_fail(at->node, at->error, PPH_UNSUPPORTED,
                         "the output has rank %d, at most %d is supported",
                         rank, PPH_MAX_RANK);
  bool marked[PPH_MAX_RANK] = {false};
  PPH_TRY(mark_axes(at, rank, marked, &count));
  pph_shape shape = {.rank = rank};
  for (int32_t i = 0; i < rank; i++)
    shape.dims[i] = marked[i] ? 1 : x->shape.dims[from++];
  return pph_rule_set_output(at, 0, x->type, &shape);
}
