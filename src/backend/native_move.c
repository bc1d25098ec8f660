/* MOVE nodes as strided copies. */
#include <string.h>

#include "backend/native_rows.h"
#include "base/checked.h"
#include "graph/eval.h"

enum { MAX_PARTS = 4096 };

void pph_layout_strides(const pph_value *value, int64_t *strides) {
  int32_t order[PPH_MAX_RANK];
  pph_layout_order(value, order);
  int64_t stride = 1;
  for (int32_t i = value->shape.rank - 1; i >= 0; i--) {
    strides[order[i]] = stride;
    stride *= value->shape.dims[order[i]];
  }
}

/* One side of a copy: the logical axes of a value. */
typedef struct view {
  int32_t rank;
  int64_t dims[PPH_MAX_RANK], strides[PPH_MAX_RANK];
} view;

static view make_view(const pph_value *value) {
  view result = {.rank = value->shape.rank};
  memcpy(result.dims, value->shape.dims, sizeof result.dims);
  pph_layout_strides(value, result.strides);
  return result;
}

/* What the builders below share. */
typedef struct builder {
  const pph_graph *graph;
  const pph_node *node;
  pph_heap *heap;
  pph_move *move;
} builder;

static const pph_value *input_value(const builder *b, uint32_t slot) {
  return pph_node_find_input(b->graph, b->node, slot);
}

static const pph_value *output_value(const builder *b, uint32_t slot) {
  return pph_graph_value(b->graph, b->node->outputs[slot]);
}

static bool grow(builder *b) {
  pph_move *move = b->move;
  uint32_t capacity = move->capacity ? move->capacity * 2 : 4;
  if (capacity > MAX_PARTS * 2)
    return false;
  pph_strided_copy *copies =
      pph_heap_grow(b->heap, move->copies, move->count * sizeof *copies,
                    capacity, sizeof *copies);
  if (!copies)
    return false;
  move->copies = copies;
  uint32_t *sources =
      pph_heap_grow(b->heap, move->sources, move->count * sizeof *sources,
                    capacity, sizeof *sources);
  if (!sources)
    return false;
  move->sources = sources;
  uint32_t *targets =
      pph_heap_grow(b->heap, move->targets, move->count * sizeof *targets,
                    capacity, sizeof *targets);
  if (!targets)
    return false;
  move->targets = targets;
  move->capacity = capacity;
  return true;
}

static bool add(builder *b, uint32_t source, uint32_t target,
                pph_strided_copy *copy) {
  if (!b->heap) /* only asked whether it can be done */
    return ++b->move->count <= MAX_PARTS;
  if (b->move->count == b->move->capacity && !grow(b))
    return false;
  copy->element_size = pph_dtype_size(output_value(b, target)->type);
  for (int32_t i = 0; i < copy->rank; i++)
    if (copy->dims[i] == 0)
      return true;
  pph_strided_copy_simplify(copy);
  uint32_t at = b->move->count++;
  b->move->copies[at] = *copy;
  b->move->sources[at] = source;
  b->move->targets[at] = target;
  return true;
}

static void add_axis(pph_strided_copy *copy, int64_t dim, int64_t source,
                     int64_t target) {
  int32_t i = copy->rank++;
  copy->dims[i] = dim;
  copy->source_strides[i] = source;
  copy->target_strides[i] = target;
}

static bool build_same(builder *b) {
  view from = make_view(input_value(b, 0)), to = make_view(output_value(b, 0));
  pph_strided_copy copy = {0};
  for (int32_t i = 0; i < to.rank; i++)
    add_axis(&copy, to.dims[i], from.strides[i], to.strides[i]);
  return add(b, 0, 0, &copy);
}

/* Reshape and its kin: the elements keep their logical row-major order. Plain
   on both sides is one run; otherwise the axes longer than 1 must agree. */
static bool build_reshape(builder *b) {
  const pph_value *in = input_value(b, 0), *out = output_value(b, 0);
  view from = make_view(in), to = make_view(out);
  pph_strided_copy copy = {0};
  if (in->layout == PPH_LAYOUT_PLAIN && out->layout == PPH_LAYOUT_PLAIN) {
    size_t count;
    if (!pph_shape_count(&out->shape, &count))
      return false;
    add_axis(&copy, (int64_t)count, 1, 1);
    return add(b, 0, 0, &copy);
  }
  int32_t i = 0, j = 0;
  for (;;) {
    while (i < from.rank && from.dims[i] == 1)
      i++;
    while (j < to.rank && to.dims[j] == 1)
      j++;
    if (i == from.rank || j == to.rank)
      break;
    if (from.dims[i] != to.dims[j])
      return false;
    add_axis(&copy, to.dims[j], from.strides[i], to.strides[j]);
    i++;
    j++;
  }
  return i == from.rank && j == to.rank && add(b, 0, 0, &copy);
}

static bool build_transpose(builder *b) {
  view from = make_view(input_value(b, 0)), to = make_view(output_value(b, 0));
  uint32_t count;
  const int64_t *perm = pph_node_ints(b->node, PPH_ATTR_PERM, &count);
  pph_strided_copy copy = {0};
  for (int32_t i = 0; i < to.rank; i++)
    add_axis(&copy, to.dims[i],
             from.strides[perm ? perm[i] : to.rank - 1 - i], to.strides[i]);
  return add(b, 0, 0, &copy);
}

static bool build_concat(builder *b) {
  view to = make_view(output_value(b, 0));
  int64_t axis = pph_node_int(b->node, PPH_ATTR_AXIS, 0);
  axis += axis < 0 ? to.rank : 0;
  int64_t at = 0;
  for (uint32_t slot = 0; slot < b->node->input_count; slot++) {
    view from = make_view(input_value(b, slot));
    pph_strided_copy copy = {.target_offset = at * to.strides[axis]};
    for (int32_t i = 0; i < to.rank; i++)
      add_axis(&copy, from.dims[i], from.strides[i], to.strides[i]);
    at += from.dims[axis];
    if (!add(b, slot, 0, &copy))
      return false;
  }
  return true;
}

static bool build_split(builder *b) {
  view from = make_view(input_value(b, 0));
  int64_t axis = pph_node_int(b->node, PPH_ATTR_AXIS, 0);
  axis += axis < 0 ? from.rank : 0;
  int64_t at = 0;
  for (uint32_t slot = 0; slot < b->node->output_count; slot++) {
    if (b->node->outputs[slot] == PPH_NO_VALUE)
      return false;
    view to = make_view(output_value(b, slot));
    pph_strided_copy copy = {.source_offset = at * from.strides[axis]};
    for (int32_t i = 0; i < to.rank; i++)
      add_axis(&copy, to.dims[i], from.strides[i], to.strides[i]);
    at += to.dims[axis];
    if (!add(b, 0, slot, &copy))
      return false;
  }
  return true;
}

/* The first element and the step of one sliced axis, clamped as ONNX says. */
static int64_t slice_start(int64_t start, int64_t dim, int64_t step) {
  start += start < 0 ? dim : 0;
  int64_t low = 0, high = step < 0 ? dim - 1 : dim;
  return start < low ? low : start > high ? high : start;
}

static bool build_slice(builder *b) {
  view from = make_view(input_value(b, 0)), to = make_view(output_value(b, 0));
  int64_t starts[PPH_MAX_RANK], axes[PPH_MAX_RANK], steps[PPH_MAX_RANK];
  size_t count, axis_count, step_count;
  if (!pph_node_read_ints(b->graph, b->node, 1, starts, PPH_MAX_RANK, &count))
    return false;
  bool has_axes = input_value(b, 3) != NULL, has_steps = input_value(b, 4);
  if (has_axes && (!pph_node_read_ints(b->graph, b->node, 3, axes,
                                       PPH_MAX_RANK, &axis_count) ||
                   axis_count != count))
    return false;
  if (has_steps && (!pph_node_read_ints(b->graph, b->node, 4, steps,
                                        PPH_MAX_RANK, &step_count) ||
                    step_count != count))
    return false;
  pph_strided_copy copy = {0};
  int64_t scale[PPH_MAX_RANK];
  for (int32_t i = 0; i < to.rank; i++)
    scale[i] = 1;
  for (size_t i = 0; i < count; i++) {
    int64_t axis = has_axes ? axes[i] : (int64_t)i;
    axis += axis < 0 ? from.rank : 0;
    int64_t step = has_steps ? steps[i] : 1;
    if (to.dims[axis] == 0)
      continue;
    scale[axis] = to.dims[axis] == 1 ? 1 : step;
    copy.source_offset +=
        slice_start(starts[i], from.dims[axis], step) * from.strides[axis];
  }
  for (int32_t i = 0; i < to.rank; i++)
    add_axis(&copy, to.dims[i], from.strides[i] * scale[i], to.strides[i]);
  return add(b, 0, 0, &copy);
}

static bool build_expand(builder *b) {
  view from = make_view(input_value(b, 0)), to = make_view(output_value(b, 0));
  int32_t missing = to.rank - from.rank;
  pph_strided_copy copy = {0};
  for (int32_t i = 0; i < to.rank; i++) {
    bool repeats = i < missing || from.dims[i - missing] == 1;
    add_axis(&copy, to.dims[i], repeats ? 0 : from.strides[i - missing],
             to.strides[i]);
  }
  return add(b, 0, 0, &copy);
}

static bool build_tile(builder *b) {
  view from = make_view(input_value(b, 0)), to = make_view(output_value(b, 0));
  pph_strided_copy copy = {0};
  for (int32_t i = 0; i < to.rank; i++) {
    int64_t dim = from.dims[i];
    add_axis(&copy, dim ? to.dims[i] / dim : 0, 0, to.strides[i] * dim);
    add_axis(&copy, dim, from.strides[i], to.strides[i]);
  }
  return add(b, 0, 0, &copy);
}

/* Amounts before each axis; false when they are not constant. */
static bool read_pads(const builder *b, int32_t rank, int64_t *before) {
  int64_t pads[2 * PPH_MAX_RANK], axes[PPH_MAX_RANK];
  size_t count, axis_count = (size_t)rank;
  if (!pph_node_read_ints(b->graph, b->node, 1, pads, 2 * PPH_MAX_RANK,
                          &count))
    return false;
  for (int32_t i = 0; i < rank; i++) {
    before[i] = 0;
    axes[i] = i;
  }
  if (input_value(b, 3) && !pph_node_read_ints(b->graph, b->node, 3, axes,
                                               PPH_MAX_RANK, &axis_count))
    return false;
  if (count != 2 * axis_count)
    return false;
  for (size_t i = 0; i < axis_count; i++)
    before[axes[i] < 0 ? axes[i] + rank : axes[i]] = pads[i];
  return true;
}

static bool set_fill(builder *b) {
  const pph_value *out = output_value(b, 0);
  pph_move *move = b->move;
  move->fills = true;
  move->fill_size = pph_dtype_size(out->type);
  pph_tensor value;
  if (input_value(b, 2)) {
    if (!pph_node_find_constant(b->graph, b->node, 2, &value) ||
        value.type != out->type)
      return false;
    memcpy(move->fill_element, value.data, move->fill_size);
  }
  return pph_shape_count(&out->shape, &move->fill_count);
}

static bool build_pad(builder *b) {
  if (strcmp(pph_node_text(b->node, PPH_ATTR_MODE, "constant"), "constant"))
    return false;
  view from = make_view(input_value(b, 0)), to = make_view(output_value(b, 0));
  int64_t before[PPH_MAX_RANK];
  if (!read_pads(b, from.rank, before) || !set_fill(b))
    return false;
  pph_strided_copy copy = {0};
  for (int32_t i = 0; i < to.rank; i++) {
    int64_t low = pph_max_i64(0, -before[i]); /* first source element kept */
    int64_t high = pph_min_i64(from.dims[i], to.dims[i] - before[i]);
    copy.source_offset += low * from.strides[i];
    copy.target_offset += (low + before[i]) * to.strides[i];
    add_axis(&copy, pph_max_i64(0, high - low), from.strides[i],
             to.strides[i]);
  }
  return add(b, 0, 0, &copy);
}

/* DepthToSpace when `sign` is forward, SpaceToDepth is the same with the roles
   of the two sides exchanged. `deep` has the many channels. */
static bool build_blocks(builder *b) {
  bool forward = b->node->kind == PPH_NODE_DEPTH_TO_SPACE;
  view in = make_view(input_value(b, 0)), out = make_view(output_value(b, 0));
  view deep = forward ? in : out, wide = forward ? out : in;
  uint32_t axes;
  const int64_t *block = pph_node_ints(b->node, PPH_ATTR_BLOCKSIZE, &axes);
  const char *mode = pph_node_text(b->node, PPH_ATTR_MODE, "DCR");
  bool channel_major = forward && strcmp(mode, "CRD") == 0;
  if ((int32_t)axes != in.rank - 2)
    return false;
  int64_t phases = 1, channels = wide.dims[1];
  for (uint32_t i = 0; i < axes; i++)
    phases *= block[i];
  pph_strided_copy copy = {0};
  add_axis(&copy, deep.dims[0], deep.strides[0], wide.strides[0]);
  add_axis(&copy, channels, deep.strides[1] * (channel_major ? phases : 1),
           wide.strides[1]);
  int64_t inner = 1; /* phases of the axes after this one */
  for (int32_t i = (int32_t)axes - 1; i >= 0; i--) {
    int64_t step = inner * (channel_major ? 1 : channels);
    add_axis(&copy, deep.dims[i + 2], deep.strides[i + 2],
             wide.strides[i + 2] * block[i]);
    add_axis(&copy, block[i], deep.strides[1] * step, wide.strides[i + 2]);
    inner *= block[i];
  }
  if (!forward)
    for (int32_t i = 0; i < copy.rank; i++) {
      int64_t swap = copy.source_strides[i];
      copy.source_strides[i] = copy.target_strides[i];
      copy.target_strides[i] = swap;
    }
  return add(b, 0, 0, &copy);
}

/* A nearest Resize by whole factors: each element is copied to a block. */
static bool build_resize(builder *b) {
  view from = make_view(input_value(b, 0)), to = make_view(output_value(b, 0));
  int64_t factors[PPH_MAX_RANK];
  if (!pph_eval_resize_repeats(b->graph, b->node, factors))
    return false;
  pph_strided_copy copy = {0};
  for (int32_t i = 0; i < to.rank; i++) {
    add_axis(&copy, from.dims[i], from.strides[i],
             to.strides[i] * factors[i]);
    add_axis(&copy, factors[i], 0, to.strides[i]);
  }
  return add(b, 0, 0, &copy);
}

static const struct {
  pph_node_kind kind;
  bool (*build)(builder *b);
} rows[] = {
    {PPH_NODE_IDENTITY, build_same},
    {PPH_NODE_RELAYOUT, build_same},
    {PPH_NODE_RESHAPE, build_reshape},
    {PPH_NODE_FLATTEN, build_reshape},
    {PPH_NODE_SQUEEZE, build_reshape},
    {PPH_NODE_UNSQUEEZE, build_reshape},
    {PPH_NODE_TRANSPOSE, build_transpose},
    {PPH_NODE_CONCAT, build_concat},
    {PPH_NODE_SPLIT, build_split},
    {PPH_NODE_SLICE, build_slice},
    {PPH_NODE_EXPAND, build_expand},
    {PPH_NODE_TILE, build_tile},
    {PPH_NODE_PAD, build_pad},
    {PPH_NODE_RESIZE, build_resize},
    {PPH_NODE_DEPTH_TO_SPACE, build_blocks},
    {PPH_NODE_SPACE_TO_DEPTH, build_blocks},
};

bool pph_move_make(const pph_graph *graph, const pph_node *node,
                   pph_heap *heap, pph_move *move) {
  *move = (pph_move){0};
  if (node->activation != PPH_ACTIVATION_NONE)
    return false;
  builder b = {graph, node, heap, move};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].kind == node->kind)
      return node->input_count <= MAX_PARTS &&
             node->output_count <= MAX_PARTS && rows[i].build(&b);
  return false;
}

void pph_move_release(pph_heap *heap, pph_move *move) {
  pph_heap_release(heap, move->copies);
  pph_heap_release(heap, move->sources);
  pph_heap_release(heap, move->targets);
  *move = (pph_move){0};
}

bool pph_move_supports(const pph_graph *graph, const pph_node *node) {
  pph_move move;
  return pph_move_make(graph, node, NULL, &move);
}

bool pph_move_is_alias(const pph_graph *graph, const pph_node *node,
                       const pph_move *move) {
  if (node->output_count != 1 || move->fills || move->count != 1)
    return false;
  const pph_strided_copy *copy = &move->copies[0];
  const pph_value *in = pph_node_find_input(graph, node, move->sources[0]);
  const pph_value *out = pph_graph_value(graph, node->outputs[0]);
  size_t from, to;
  if (!pph_shape_count(&in->shape, &from) ||
      !pph_shape_count(&out->shape, &to) || from != to ||
      copy->source_offset || copy->target_offset)
    return false;
  return copy->rank == 0 ||
         (copy->rank == 1 && copy->source_strides[0] == 1 &&
          copy->target_strides[0] == 1 && (size_t)copy->dims[0] == to);
}
