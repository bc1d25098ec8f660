/* What moves elements and computes nothing. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/xnn_export.h"

pph_status pph_payload_export_alias(pph_payload_export *x) {
  const pph_value *out = pph_payload_output_value(x);
  uint32_t id;
  PPH_TRY(pph_payload_read_input(x, 0, out->shape.rank, out->layout, &id));
  return pph_payload_write_output(x, 0, out->layout, id);
}

/* Input 0 in its own layout: constants are plain. */
static pph_status read_as_is(pph_payload_export *x, pph_layout *layout,
                             uint32_t *id) {
  const pph_value *in = pph_payload_input_value(x, 0);
  *layout = in->data ? PPH_LAYOUT_PLAIN : in->layout;
  return pph_payload_read_input(x, 0, in->shape.rank, *layout, id);
}

pph_status pph_payload_export_transpose(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  int64_t perm[PPH_MAX_RANK];
  uint32_t count, id;
  pph_layout layout;
  const int64_t *given = pph_node_ints(x->node, PPH_ATTR_PERM, &count);
  for (int32_t i = 0; i < in->shape.rank; i++)
    perm[i] = given ? given[i] : in->shape.rank - 1 - i;
  PPH_TRY(read_as_is(x, &layout, &id));
  PPH_TRY(pph_payload_permute(x, &in->shape, layout, perm, out->layout, &id));
  return pph_payload_write_output(x, 0, out->layout, id);
}

/* The lengths other than 1 in memory order, as numbers of their own order. */
static uint32_t list_places(const pph_shape *shape, pph_layout layout,
                            uint32_t *places, int64_t *dims) {
  int32_t order[PPH_MAX_RANK];
  uint32_t count = 0, number[PPH_MAX_RANK], next = 0;
  pph_layout_axes(layout, shape->rank, order);
  for (int32_t i = 0; i < shape->rank; i++) {
    number[i] = next;
    if (shape->dims[i] != 1)
      dims[next++] = shape->dims[i];
  }
  for (int32_t i = 0; i < shape->rank; i++)
    if (shape->dims[order[i]] != 1)
      places[count++] = number[order[i]];
  return count;
}

/* Only axes of length 1 come and go, and memory stays as it is. */
static bool keeps_memory(const pph_value *in, pph_layout layout,
                         const pph_value *out) {
  uint32_t a[PPH_MAX_RANK], b[PPH_MAX_RANK];
  int64_t from[PPH_MAX_RANK], to[PPH_MAX_RANK];
  uint32_t count = list_places(&in->shape, layout, a, from);
  return count == list_places(&out->shape, out->layout, b, to) &&
         memcmp(a, b, count * sizeof *a) == 0 &&
         memcmp(from, to, count * sizeof *from) == 0;
}

pph_status pph_payload_export_reshape(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  pph_payload_dims dims;
  pph_layout layout, made = out->layout;
  uint32_t id;
  PPH_TRY(read_as_is(x, &layout, &id));
  if (!keeps_memory(in, layout, out)) {
    PPH_TRY(pph_payload_permute(x, &in->shape, layout, NULL, PPH_LAYOUT_PLAIN,
                                &id));
    made = PPH_LAYOUT_PLAIN;
  }
  if (!pph_payload_dims_make(&out->shape, made, &dims))
    return pph_payload_refuse(x, "more than 6 dimensions");
  PPH_TRY(pph_payload_put_reshape(x, &dims, &id));
  return pph_payload_write_output(x, 0, made, id);
}

static uint32_t find_axis(const pph_payload_export *x, const pph_value *value,
                          int64_t fallback) {
  int64_t axis = pph_node_int(x->node, PPH_ATTR_AXIS, fallback);
  axis += axis < 0 ? value->shape.rank : 0;
  return pph_payload_axis(value->shape.rank, value->layout, (int32_t)axis);
}

pph_status pph_payload_export_concat(pph_payload_export *x) {
  const pph_value *out = pph_payload_output_value(x);
  uint32_t *ids = pph_arena_allocate(x->arena, x->node->input_count,
                                     sizeof *ids);
  uint32_t count = 0, id;
  size_t elements;
  if (!ids)
    return pph_fail_memory(x->error);
  for (uint32_t i = 0; i < x->node->input_count; i++) {
    const pph_value *in = pph_payload_input_value(x, i);
    if (in && pph_shape_count(&in->shape, &elements) && elements == 0)
      continue;
    PPH_TRY(pph_payload_read_input(x, i, out->shape.rank, out->layout,
                                   &ids[count++]));
  }
  PPH_TRY(pph_payload_put_concat(x, ids, count, find_axis(x, out, 0), &id));
  return pph_payload_write_output(x, 0, out->layout, id);
}

pph_status pph_payload_export_split(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  pph_layout layout = pph_payload_output_value(x)->layout;
  uint32_t whole, begin = 0;
  PPH_TRY(pph_payload_read_input(x, 0, in->shape.rank, layout, &whole));
  for (uint32_t i = 0; i < x->node->output_count; i++) {
    if (x->node->outputs[i] == PPH_NO_VALUE)
      continue;
    const pph_value *out = pph_graph_value(x->graph, x->node->outputs[i]);
    uint32_t axis = find_axis(x, out, 0), id = whole;
    pph_payload_dims sizes = pph_payload_dims_of(x, whole);
    pph_payload_dims offsets = {.count = sizes.count};
    int64_t logical = pph_node_int(x->node, PPH_ATTR_AXIS, 0);
    logical += logical < 0 ? in->shape.rank : 0;
    sizes.at[axis] = (uint32_t)out->shape.dims[logical];
    offsets.at[axis] = begin;
    begin += sizes.at[axis];
    PPH_TRY(pph_payload_put_slice(x, &offsets, &sizes, &id));
    PPH_TRY(pph_payload_write_output(x, i, layout, id));
  }
  return PPH_OK;
}

static pph_status cut(pph_payload_export *x, const pph_shape *shape,
                      pph_layout layout, const int64_t *begins, uint32_t *id) {
  pph_payload_dims sizes, offsets;
  if (!pph_payload_dims_make(shape, layout, &sizes))
    return pph_payload_refuse(x, "an empty result");
  offsets = (pph_payload_dims){.count = sizes.count};
  for (int32_t i = 0; i < shape->rank; i++)
    offsets.at[pph_payload_axis(shape->rank, layout, i)] = (uint32_t)begins[i];
  return pph_payload_put_slice(x, &offsets, &sizes, id);
}

/* Amounts per axis; negative ones crop. */
static bool find_pads(const pph_payload_export *x, int32_t rank,
                      int64_t *begin, int64_t *end, float *number) {
  int64_t pads[2 * PPH_MAX_RANK], axes[PPH_MAX_RANK];
  size_t count, axis_count, numbers = 0;
  const float *given = NULL;
  if (pph_payload_input_value(x, 2) &&
      !(given = pph_payload_find_floats(x, 2, &numbers)))
    return false;
  *number = numbers ? given[0] : 0;
  if (!pph_node_read_ints(x->graph, x->node, 1, pads, 2 * PPH_MAX_RANK,
                          &count) ||
      !pph_payload_find_axes(x, 3, rank, axes, &axis_count) ||
      count != 2 * axis_count)
    return false;
  memset(begin, 0, (size_t)rank * sizeof *begin);
  memset(end, 0, (size_t)rank * sizeof *end);
  for (size_t i = 0; i < axis_count; i++) {
    begin[axes[i]] = pads[i];
    end[axes[i]] = pads[axis_count + i];
  }
  return true;
}

/* What lies outside is what lies inside, mirrored at the border or the border
   itself: pieces of one element, joined. */
static pph_status put_mirror(pph_payload_export *x, uint32_t axis,
                             int64_t begin, int64_t end, bool reflects,
                             uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, *id), sizes = dims;
  int64_t length = dims.at[axis], count = begin + end + 1;
  if (reflects && (begin >= length || end >= length))
    return pph_payload_refuse(x, "reflection beyond the input");
  uint32_t *ids = pph_arena_allocate(x->arena, (size_t)count, sizeof *ids);
  if (!ids)
    return pph_fail_memory(x->error);
  sizes.at[axis] = 1;
  for (int64_t i = 0; i < count; i++) {
    pph_payload_dims offsets = {.count = dims.count};
    int64_t at = i < begin ? (reflects ? begin - i : 0)
                           : length - 1 - (reflects ? i - begin : 0);
    offsets.at[axis] = (uint32_t)at;
    ids[i] = *id;
    if (i != begin)
      PPH_TRY(pph_payload_put_slice(x, &offsets, &sizes, &ids[i]));
  }
  return pph_payload_put_concat(x, ids, (uint32_t)count, axis, id);
}

static pph_status pad_by_mirrors(pph_payload_export *x, const char *mode,
                                 const int64_t *begin, const int64_t *end,
                                 uint32_t *id) {
  const pph_value *out = pph_payload_output_value(x);
  bool reflects = strcmp(mode, "reflect") == 0;
  if (!reflects && strcmp(mode, "edge") != 0)
    return pph_payload_refuse(x, "a mode other than constant, reflect, edge");
  for (int32_t i = 0; i < out->shape.rank; i++) {
    if (begin[i] < 0 || end[i] < 0 || begin[i] + end[i] > 256)
      return pph_payload_refuse(x, "negative or very long mirrored pads");
    if (begin[i] + end[i] > 0)
      PPH_TRY(put_mirror(x, pph_payload_axis(out->shape.rank, out->layout, i),
                         begin[i], end[i], reflects, id));
  }
  return PPH_OK;
}

static pph_status pad_by_number(pph_payload_export *x, const int64_t *begin,
                                const int64_t *end, float number,
                                pph_layout layout, uint32_t *id) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  pph_payload_dims pre = {.count = 0}, post = {.count = 0};
  pph_shape kept = in->shape;
  int64_t crops[PPH_MAX_RANK] = {0};
  int32_t rank = out->shape.rank;
  bool crops_any = false, pads_any = false;
  for (int32_t i = 0; i < rank; i++) {
    uint32_t axis = pph_payload_axis(rank, layout, i);
    pre.at[axis] = (uint32_t)pph_max_i64(begin[i], 0);
    post.at[axis] = (uint32_t)pph_max_i64(end[i], 0);
    crops[i] = pph_max_i64(-begin[i], 0);
    kept.dims[i] -= crops[i] + pph_max_i64(-end[i], 0);
    crops_any |= begin[i] < 0 || end[i] < 0;
    pads_any |= begin[i] > 0 || end[i] > 0;
  }
  if (crops_any)
    PPH_TRY(cut(x, &kept, layout, crops, id));
  return pads_any ? pph_payload_put_pad(x, &pre, &post, number, id) : PPH_OK;
}

pph_status pph_payload_export_pad(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  const char *mode = pph_node_text(x->node, PPH_ATTR_MODE, "constant");
  int64_t begin[PPH_MAX_RANK], end[PPH_MAX_RANK];
  float number;
  uint32_t id;
  bool mirrors = strcmp(mode, "constant") != 0;
  pph_layout layout = mirrors ? out->layout : pph_payload_crop_layout(x);
  if (!find_pads(x, in->shape.rank, begin, end, &number))
    return pph_payload_refuse(x, "pads that are no constants");
  PPH_TRY(pph_payload_read_input(x, 0, in->shape.rank, layout, &id));
  if (mirrors)
    PPH_TRY(pad_by_mirrors(x, mode, begin, end, &id));
  else
    PPH_TRY(pad_by_number(x, begin, end, number, layout, &id));
  return pph_payload_write_output(x, 0, layout, id);
}

/* There is no node that repeats by broadcasting: zeros are added. */
pph_status pph_payload_export_expand(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  int32_t rank = out->shape.rank, missing = rank - in->shape.rank;
  pph_payload_constant zeros = {.key = ""};
  pph_payload_dims dims;
  pph_shape shape = out->shape;
  uint32_t id, zero;
  size_t count;
  PPH_TRY(pph_payload_read_input(x, 0, rank, out->layout, &id));
  for (int32_t i = missing; i < rank; i++)
    if (in->shape.dims[i - missing] == shape.dims[i])
      shape.dims[i] = 1;
  if (!pph_payload_dims_make(&shape, out->layout, &dims) ||
      !pph_shape_bytes(&shape, PPH_F32, &zeros.bytes) ||
      !pph_shape_count(&shape, &count))
    return pph_payload_refuse(x, "an empty result, or too many dimensions");
  zeros.data = pph_arena_allocate(x->arena, count, sizeof(float));
  if (!zeros.data)
    return pph_fail_memory(x->error);
  PPH_TRY(pph_payload_put_operand(x, &zeros, &dims, &zero));
  PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_ADD, zero, NULL, &id));
  return pph_payload_write_output(x, 0, out->layout, id);
}

pph_status pph_payload_export_tile(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  int32_t rank = out->shape.rank;
  uint32_t id;
  PPH_TRY(pph_payload_read_input(x, 0, rank, out->layout, &id));
  for (int32_t i = 0; i < rank; i++) {
    if (in->shape.dims[i] < 1 || out->shape.dims[i] < 1)
      return pph_payload_refuse(x, "an empty value");
    int64_t times = out->shape.dims[i] / in->shape.dims[i];
    PPH_TRY(pph_payload_put_repeat(
        x, (uint32_t)times, pph_payload_axis(rank, out->layout, i), &id));
  }
  return pph_payload_write_output(x, 0, out->layout, id);
}
