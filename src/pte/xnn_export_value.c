/* Values of the graph in a payload: layouts, constants, activations. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/xnn_export.h"

/* The one spatial axis of rank 3 lies along the width, under a height of 1. */
static bool has_height(int32_t rank, pph_layout layout) {
  return rank == 3 && layout == PPH_LAYOUT_CHANNELS_LAST;
}

bool pph_payload_dims_make(const pph_shape *shape, pph_layout layout,
                           pph_payload_dims *dims) {
  int32_t order[PPH_MAX_RANK];
  *dims = (pph_payload_dims){.count = 0};
  if (shape->rank > PPH_PAYLOAD_MOST_DIMS_OUT)
    return false;
  pph_layout_axes(layout, shape->rank, order);
  for (int32_t i = 0; i < shape->rank; i++) {
    int64_t dim = shape->dims[order[i]];
    if (dim < 1 || dim > INT32_MAX)
      return false;
    if (i == 1 && has_height(shape->rank, layout))
      dims->at[dims->count++] = 1;
    dims->at[dims->count++] = (uint32_t)dim;
  }
  if (shape->rank == 0)
    dims->at[dims->count++] = 1;
  return true;
}

pph_layout pph_payload_crop_layout(const pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  int32_t rank = out->shape.rank;
  bool crops = false;
  for (int32_t i = 2; i < rank; i++)
    crops |= out->shape.dims[i] < in->shape.dims[i];
  return x->lengths != PPH_PAYLOAD_FIXED && crops && rank <= 4
             ? PPH_LAYOUT_CHANNELS_LAST
             : out->layout;
}

uint32_t pph_payload_axis(int32_t rank, pph_layout layout, int32_t axis) {
  int32_t order[PPH_MAX_RANK], place = 0;
  pph_layout_axes(layout, rank, order);
  while (order[place] != axis)
    place++;
  return (uint32_t)(place + (place > 0 && has_height(rank, layout)));
}

/* The input's axes longer than 1 follow each other as the output's do. */
static bool keeps_order(const pph_shape *shape, const uint32_t *perm,
                        const int32_t *from_order) {
  int64_t last = -1;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (shape->dims[from_order[perm[i]]] == 1)
      continue;
    if ((int64_t)perm[i] < last)
      return false;
    last = perm[i];
  }
  return true;
}

pph_status pph_payload_permute(pph_payload_export *x, const pph_shape *shape,
                               pph_layout from, const int64_t *perm,
                               pph_layout to, uint32_t *id) {
  int32_t from_order[PPH_MAX_RANK], to_order[PPH_MAX_RANK];
  uint32_t memory_perm[PPH_MAX_RANK];
  pph_shape result = *shape;
  pph_payload_dims flat = {.count = 0}, last;
  pph_layout_axes(from, shape->rank, from_order);
  pph_layout_axes(to, shape->rank, to_order);
  for (int32_t i = 0; i < shape->rank; i++) {
    int32_t axis = perm ? (int32_t)perm[to_order[i]] : to_order[i], place = 0;
    while (from_order[place] != axis)
      place++;
    memory_perm[i] = (uint32_t)place;
    result.dims[i] = shape->dims[perm ? perm[i] : i];
  }
  if (!pph_payload_dims_make(&result, to, &last))
    return pph_payload_refuse(x, "more than 6 dimensions");
  if (keeps_order(shape, memory_perm, from_order))
    return pph_payload_put_reshape(x, &last, id);
  for (int32_t i = 0; i < shape->rank; i++)
    flat.at[flat.count++] = (uint32_t)shape->dims[from_order[i]];
  PPH_TRY(pph_payload_put_reshape(x, &flat, id));
  PPH_TRY(pph_payload_put_transpose(x, memory_perm, id));
  return pph_payload_put_reshape(x, &last, id);
}

static pph_shape raise_rank(const pph_shape *shape, int32_t rank) {
  pph_shape raised = *shape;
  for (int32_t missing = rank - shape->rank; missing > 0; missing--) {
    memmove(raised.dims + 1, raised.dims,
            (size_t)raised.rank * sizeof *raised.dims);
    raised.dims[0] = 1;
    raised.rank++;
  }
  return raised;
}

/* Plain data in another layout; aligned in any case. */
static pph_status lay_out(pph_payload_export *x, const pph_value *value,
                          const pph_shape *shape, pph_layout layout,
                          pph_payload_constant *constant) {
  size_t count, inner = 1;
  bool moves = layout == PPH_LAYOUT_CHANNELS_LAST && shape->rank > 2;
  if (!pph_shape_bytes(shape, PPH_F32, &constant->bytes) ||
      !pph_shape_count(shape, &count))
    return pph_fail_memory(x->error);
  float *to = pph_arena_allocate(x->arena, count, sizeof *to);
  if (!to)
    return pph_fail_memory(x->error);
  constant->source = value->data;
  constant->layout = layout;
  constant->data = to;
  if (!moves) {
    memcpy(to, value->data, constant->bytes);
    return PPH_OK;
  }
  for (int32_t i = 2; i < shape->rank; i++)
    inner *= (size_t)shape->dims[i];
  size_t channels = (size_t)shape->dims[1];
  for (size_t i = 0; i < count; i++) {
    size_t block = i / (channels * inner), channel = i / inner % channels;
    memcpy(to + (block * inner + i % inner) * channels + channel,
           (const char *)value->data + i * sizeof *to, sizeof *to);
  }
  return PPH_OK;
}

static pph_status read_constant(pph_payload_export *x, const pph_value *value,
                                const pph_shape *shape, pph_layout layout,
                                uint32_t *id) {
  pph_payload_constant constant = {.key = ""};
  pph_payload_dims dims;
  if (!pph_payload_dims_make(shape, layout, &dims))
    return pph_payload_refuse(x, "a constant of more than 6 dimensions");
  PPH_TRY(lay_out(x, value, shape, layout, &constant));
  return pph_payload_put_operand(x, &constant, &dims, id);
}

pph_status pph_payload_read_input(pph_payload_export *x, uint32_t slot,
                                  int32_t rank, pph_layout layout,
                                  uint32_t *id) {
  const pph_value *value = pph_payload_input_value(x, slot);
  *id = PPH_PAYLOAD_NONE;
  if (!value || value->type != PPH_F32)
    return pph_payload_refuse(x, "an input that is not f32");
  pph_shape shape = raise_rank(&value->shape, rank);
  if (value->data)
    return read_constant(x, value, &shape, layout, id);
  *id = x->ids[x->node->inputs[slot]];
  pph_layout now = value->layout;
  if (shape.rank != value->shape.rank) {
    PPH_TRY(pph_payload_permute(x, &value->shape, now, NULL,
                                PPH_LAYOUT_PLAIN, id));
    pph_payload_dims raised;
    if (!pph_payload_dims_make(&shape, PPH_LAYOUT_PLAIN, &raised))
      return pph_payload_refuse(x, "more than 6 dimensions");
    PPH_TRY(pph_payload_put_reshape(x, &raised, id));
    now = PPH_LAYOUT_PLAIN;
  }
  return pph_payload_permute(x, &shape, now, NULL, layout, id);
}

static pph_status apply_slope(pph_payload_export *x, uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, *id);
  pph_payload_leaky table = {
      .negative_slope = pph_node_float(x->node, PPH_ATTR_ACTIVATION_ALPHA, 0),
      .input_id = *id};
  PPH_TRY(pph_payload_put_value(x, &dims, id));
  table.output_id = *id;
  return pph_payload_put_node(x, PPH_PAYLOAD_LEAKY_RELU, &table, sizeof table,
                              NULL);
}

pph_status pph_payload_write_output(pph_payload_export *x, uint32_t index,
                                    pph_layout layout, uint32_t id) {
  const pph_value *value =
      pph_graph_value(x->graph, x->node->outputs[index]);
  if (x->node->activation == PPH_ACTIVATION_LEAKY_RELU)
    PPH_TRY(apply_slope(x, &id));
  if (x->node->activation == PPH_ACTIVATION_PRELU)
    return pph_payload_refuse(x, "a fused PRelu");
  PPH_TRY(pph_payload_permute(x, &value->shape, layout, NULL, value->layout,
                              &id));
  x->ids[x->node->outputs[index]] = id;
  return PPH_OK;
}

const pph_payload_min_max *pph_payload_find_range(pph_payload_export *x,
                                                  pph_payload_min_max *range) {
  if (x->node->activation != PPH_ACTIVATION_CLAMP)
    return NULL;
  range->output_min =
      pph_node_float(x->node, PPH_ATTR_ACTIVATION_MIN, -INFINITY);
  range->output_max =
      pph_node_float(x->node, PPH_ATTR_ACTIVATION_MAX, INFINITY);
  return range;
}

const float *pph_payload_find_floats(const pph_payload_export *x,
                                     uint32_t slot, size_t *count) {
  pph_tensor tensor;
  size_t bytes;
  if (!pph_node_find_constant(x->graph, x->node, slot, &tensor) ||
      tensor.type != PPH_F32 || !pph_shape_count(&tensor.shape, count) ||
      !pph_shape_bytes(&tensor.shape, PPH_F32, &bytes))
    return NULL;
  float *aligned = pph_arena_allocate(x->arena, *count + 1, sizeof *aligned);
  if (aligned && bytes)
    memcpy(aligned, tensor.data, bytes);
  return aligned;
}

bool pph_payload_find_axes(const pph_payload_export *x, uint32_t slot,
                           int32_t rank, int64_t *axes, size_t *count) {
  uint32_t length;
  const int64_t *ints = pph_node_ints(x->node, PPH_ATTR_AXES, &length);
  *count = (size_t)rank;
  for (int32_t i = 0; i < rank; i++)
    axes[i] = i;
  if (ints && length <= PPH_MAX_RANK) {
    *count = length;
    memcpy(axes, ints, length * sizeof *axes);
  } else if (pph_payload_input_value(x, slot) &&
             !pph_node_read_ints(x->graph, x->node, slot, axes, PPH_MAX_RANK,
                                 count)) {
    return false;
  }
  for (size_t i = 0; i < *count; i++) {
    axes[i] += axes[i] < 0 ? rank : 0;
    if (axes[i] < 0 || axes[i] >= rank)
      return false;
  }
  return true;
}
