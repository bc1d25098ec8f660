/* Elements at places that are known: Slice, Gather, ScatterND. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/xnn_export.h"

enum { MOST_PIECES = 1024 };
static const pph_layout PLAIN = PPH_LAYOUT_PLAIN;

/* Along one axis of a value in the payload. */
typedef struct run {
  uint32_t begin, step, count;
} run;

/* What a slice leaves to be thinned: blocks of `step` elements, at least
   `count`, of which element `place` of each is wanted. */
static uint32_t choose_span(const run *r, uint32_t length, uint32_t *begin,
                            uint32_t *place) {
  uint64_t span = (uint64_t)r->count * r->step;
  if (r->step == 1) {
    *begin = r->begin;
    *place = 0;
    return r->count;
  }
  *begin = 0;
  if (span <= length)
    *begin = r->begin < length - span ? r->begin : (uint32_t)(length - span);
  *place = r->begin - *begin;
  return span < length ? (uint32_t)span : length;
}

/* One of every `step` elements, the `place`-th; the axis is filled up with
   zeros to whole blocks. */
static pph_status put_every(pph_payload_export *x, uint32_t axis, const run *r,
                            uint32_t place, uint32_t *id) {
  pph_payload_dims last = pph_payload_dims_of(x, *id);
  pph_payload_dims none = {.count = last.count}, missing = none;
  uint64_t outer = 1, inner = 1, span = (uint64_t)r->count * r->step;
  if (span > UINT32_MAX)
    return pph_payload_refuse(x, "a step that is too long");
  missing.at[axis] = (uint32_t)span - last.at[axis];
  if (missing.at[axis])
    PPH_TRY(pph_payload_put_pad(x, &none, &missing, 0, id));
  for (uint32_t i = 0; i < last.count; i++) {
    outer *= i < axis ? last.at[i] : 1;
    inner *= i > axis ? last.at[i] : 1;
  }
  const pph_payload_dims blocks = {
      4, {(uint32_t)outer, r->count, r->step, (uint32_t)inner}};
  const pph_payload_dims offsets = {4, {0, 0, place, 0}};
  pph_payload_dims sizes = blocks;
  sizes.at[2] = 1;
  last.at[axis] = r->count;
  PPH_TRY(pph_payload_put_reshape(x, &blocks, id));
  PPH_TRY(pph_payload_put_slice(x, &offsets, &sizes, id));
  return pph_payload_put_reshape(x, &last, id);
}

/* `runs`: one per axis. */
static pph_status put_runs(pph_payload_export *x, const run *runs,
                           uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, *id), sizes = dims, offsets;
  uint32_t places[PPH_PAYLOAD_MOST_DIMS_OUT];
  offsets.count = dims.count;
  for (uint32_t i = 0; i < dims.count; i++)
    sizes.at[i] =
        choose_span(&runs[i], dims.at[i], &offsets.at[i], &places[i]);
  PPH_TRY(pph_payload_put_slice(x, &offsets, &sizes, id));
  for (uint32_t i = 0; i < dims.count; i++)
    if (runs[i].step > 1)
      PPH_TRY(put_every(x, i, &runs[i], places[i], id));
  return PPH_OK;
}

static void fill_runs(const pph_payload_dims *dims, run *runs) {
  for (uint32_t i = 0; i < dims->count; i++)
    runs[i] = (run){0, 1, dims->at[i]};
}

/* The longest run that `indices` begin with. */
static run find_run(const int64_t *indices, size_t count) {
  int64_t step = count > 1 ? indices[1] - indices[0] : 1;
  size_t length = 1;
  if (step > 0)
    while (length < count && indices[length] - indices[length - 1] == step)
      length++;
  return (run){(uint32_t)indices[0], length > 1 ? (uint32_t)step : 1,
               (uint32_t)length};
}

/* The elements at `indices` of an axis, as few pieces, joined. */
static pph_status put_indices(pph_payload_export *x, uint32_t axis,
                              const int64_t *indices, size_t count,
                              uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, *id);
  uint32_t *ids = pph_arena_allocate(x->arena, MOST_PIECES, sizeof *ids);
  uint32_t pieces = 0;
  run runs[PPH_PAYLOAD_MOST_DIMS_OUT];
  if (!ids)
    return pph_fail_memory(x->error);
  fill_runs(&dims, runs);
  for (size_t at = 0; at < count; at += runs[axis].count) {
    runs[axis] = find_run(indices + at, count - at);
    if (pieces == MOST_PIECES)
      return pph_payload_refuse(x, "indices without order");
    ids[pieces] = *id;
    PPH_TRY(put_runs(x, runs, &ids[pieces++]));
  }
  return pph_payload_put_concat(x, ids, pieces, axis, id);
}

/* Constant integers behind `slot`; NULL if they are none. */
static int64_t *find_integers(pph_payload_export *x, uint32_t slot,
                              size_t *count) {
  pph_tensor tensor;
  if (!pph_node_find_constant(x->graph, x->node, slot, &tensor) ||
      (tensor.type != PPH_I64 && tensor.type != PPH_I32) ||
      !pph_shape_count(&tensor.shape, count))
    return NULL;
  int64_t *made = pph_arena_allocate(x->arena, *count + 1, sizeof *made);
  if (made)
    pph_tensor_copy_ints(&tensor, *count, made);
  return made;
}

/* Steps backwards are pieces of one element. */
static pph_status take_backwards(pph_payload_export *x, uint32_t axis,
                                 int64_t begin, int64_t step, uint32_t count,
                                 uint32_t *id) {
  int64_t *indices = pph_arena_allocate(x->arena, count, sizeof *indices);
  if (!indices)
    return pph_fail_memory(x->error);
  for (uint32_t i = 0; i < count; i++)
    indices[i] = begin + i * step;
  return put_indices(x, axis, indices, count, id);
}

/* Begins and steps per axis of a Slice. */
static bool find_begins(const pph_payload_export *x, const pph_value *in,
                        int64_t *begins, int64_t *steps) {
  int64_t starts[PPH_MAX_RANK], axes[PPH_MAX_RANK], given[PPH_MAX_RANK];
  size_t count, axis_count, step_count = 0;
  for (int32_t i = 0; i < in->shape.rank; i++) {
    begins[i] = 0;
    steps[i] = 1;
  }
  if (!pph_node_read_ints(x->graph, x->node, 1, starts, PPH_MAX_RANK,
                          &count) ||
      !pph_payload_find_axes(x, 3, in->shape.rank, axes, &axis_count) ||
      axis_count < count ||
      (pph_payload_input_value(x, 4) &&
       !pph_node_read_ints(x->graph, x->node, 4, given, PPH_MAX_RANK,
                           &step_count)))
    return false;
  for (size_t i = 0; i < count; i++) {
    int64_t length = in->shape.dims[axes[i]];
    int64_t step = i < step_count ? given[i] : 1;
    starts[i] += starts[i] < 0 ? length : 0;
    begins[axes[i]] = pph_min_i64(pph_max_i64(starts[i], 0),
                                  step < 0 ? length - 1 : length);
    steps[axes[i]] = step;
  }
  return true;
}

pph_status pph_payload_export_slice(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  pph_layout layout = pph_payload_crop_layout(x);
  int64_t begins[PPH_MAX_RANK], steps[PPH_MAX_RANK];
  int32_t rank = in->shape.rank;
  run runs[PPH_PAYLOAD_MOST_DIMS_OUT];
  uint32_t id;
  if (!find_begins(x, in, begins, steps))
    return pph_payload_refuse(x, "bounds or steps that vary");
  PPH_TRY(pph_payload_read_input(x, 0, rank, layout, &id));
  pph_payload_dims dims = pph_payload_dims_of(x, id);
  fill_runs(&dims, runs);
  for (int32_t i = 0; i < rank; i++) {
    uint32_t axis = pph_payload_axis(rank, layout, i);
    uint32_t count = (uint32_t)out->shape.dims[i];
    runs[axis] = (run){(uint32_t)begins[i],
                       count > 1 ? (uint32_t)steps[i] : 1, count};
    if (steps[i] > 0 || count == 1)
      continue;
    PPH_TRY(take_backwards(x, axis, begins[i], steps[i], count, &id));
    runs[axis] = (run){0, 1, count};
  }
  PPH_TRY(put_runs(x, runs, &id));
  return pph_payload_write_output(x, 0, layout, id);
}

pph_status pph_payload_export_gather(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  int64_t axis = pph_node_int(x->node, PPH_ATTR_AXIS, 0);
  pph_payload_dims dims;
  size_t count;
  uint32_t id;
  int64_t *indices = find_integers(x, 1, &count);
  if (!indices)
    return pph_payload_refuse(x, "indices that vary");
  axis += axis < 0 ? in->shape.rank : 0;
  for (size_t i = 0; i < count; i++) {
    int64_t length = in->shape.dims[axis];
    indices[i] += indices[i] < 0 ? length : 0;
    if (indices[i] < 0 || indices[i] >= length)
      return pph_payload_refuse(x, "an index outside of the axis");
  }
  PPH_TRY(pph_payload_read_input(x, 0, in->shape.rank, PLAIN, &id));
  PPH_TRY(put_indices(x, (uint32_t)axis, indices, count, &id));
  if (!pph_payload_dims_make(&out->shape, PLAIN, &dims))
    return pph_payload_refuse(x, "more than 6 dimensions");
  PPH_TRY(pph_payload_put_reshape(x, &dims, &id));
  return pph_payload_write_output(x, 0, PLAIN, id);
}

/* A box in the leading axes of a value. */
typedef struct box {
  uint32_t depth;
  int64_t begin[PPH_MAX_RANK], size[PPH_MAX_RANK];
} box;

/* Whether tuples of indices name all elements of a box, in its order. */
static bool find_box(const int64_t *tuples, size_t count,
                     const pph_shape *shape, box *b) {
  size_t elements = 1;
  const int64_t *last = tuples + (count - 1) * b->depth;
  for (uint32_t i = 0; i < b->depth; i++) {
    b->begin[i] = tuples[i] + (tuples[i] < 0 ? shape->dims[i] : 0);
    b->size[i] = last[i] - tuples[i] + 1;
    if (b->begin[i] < 0 || b->size[i] < 1 ||
        b->size[i] > shape->dims[i] - b->begin[i] ||
        !pph_checked_mul(elements, (size_t)b->size[i], &elements))
      return false;
  }
  if (elements != count)
    return false;
  for (size_t t = 0; t < count; t++) {
    size_t place = t;
    for (uint32_t i = b->depth; i-- > 0;) {
      size_t size = (size_t)b->size[i];
      if (tuples[t * b->depth + i] != tuples[i] + (int64_t)(place % size))
        return false;
      place /= size;
    }
  }
  return true;
}

/* What lies before and behind the box along `axis`, within the box's bounds in
   the axes before it and whole in those behind it. */
static pph_status surround(pph_payload_export *x, const box *b, uint32_t axis,
                           uint32_t whole, uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, whole);
  run runs[PPH_PAYLOAD_MOST_DIMS_OUT];
  uint32_t begin = (uint32_t)b->begin[axis], ids[3], count = 0;
  uint32_t end = begin + (uint32_t)b->size[axis];
  fill_runs(&dims, runs);
  for (uint32_t i = 0; i < axis; i++)
    runs[i] = (run){(uint32_t)b->begin[i], 1, (uint32_t)b->size[i]};
  for (int i = 0; i < 2; i++) {
    runs[axis] = i ? (run){end, 1, dims.at[axis] - end} : (run){0, 1, begin};
    if (i)
      ids[count++] = *id;
    if (!runs[axis].count)
      continue;
    ids[count] = whole;
    PPH_TRY(put_runs(x, runs, &ids[count++]));
  }
  return pph_payload_put_concat(x, ids, count, axis, id);
}

pph_status pph_payload_export_scatter(pph_payload_export *x) {
  const pph_value *out = pph_payload_output_value(x);
  const pph_value *places = pph_payload_input_value(x, 1);
  const pph_shape *at = &places->shape;
  const char *how = pph_node_text(x->node, PPH_ATTR_REDUCTION, "none");
  size_t count;
  box b = {.depth = 0};
  uint32_t id, whole;
  const int64_t *tuples = find_integers(x, 1, &count);
  if (!tuples || !count)
    return pph_payload_refuse(x, "places that vary");
  b.depth = (uint32_t)at->dims[at->rank - 1];
  if (strcmp(how, "none") != 0 ||
      !find_box(tuples, count / b.depth, &out->shape, &b))
    return pph_payload_refuse(x, "places that are no box in order");
  const pph_value *updates = pph_payload_input_value(x, 2);
  PPH_TRY(pph_payload_read_input(x, 0, out->shape.rank, PLAIN, &whole));
  PPH_TRY(pph_payload_read_input(x, 2, updates->shape.rank, PLAIN, &id));
  pph_payload_dims dims = pph_payload_dims_of(x, whole);
  for (uint32_t i = 0; i < b.depth; i++)
    dims.at[i] = (uint32_t)b.size[i];
  PPH_TRY(pph_payload_put_reshape(x, &dims, &id));
  for (uint32_t i = b.depth; i-- > 0;)
    PPH_TRY(surround(x, &b, i, whole, &id));
  return pph_payload_write_output(x, 0, PLAIN, id);
}
