/* Making nodes and values of a payload. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/growing.h"
#include "pte/xnn_export.h"

enum { CONCAT_INPUTS = 5 };

static pph_status copy(pph_payload_export *x, const void *from, size_t size,
                       void **to) {
  *to = pph_arena_allocate(x->arena, 1, size);
  if (!*to)
    return pph_fail_memory(x->error);
  memcpy(*to, from, size);
  return PPH_OK;
}

static const pph_payload_tensor *find_tensor(const pph_payload_export *x,
                                             uint32_t id) {
  return pph_payload_tensor_of(&x->values[id]);
}

pph_payload_dims pph_payload_dims_of(const pph_payload_export *x,
                                     uint32_t id) {
  const pph_payload_tensor *tensor = find_tensor(x, id);
  pph_payload_dims dims = {.count = tensor->num_dims};
  memcpy(dims.at, tensor->dims.at, dims.count * sizeof *dims.at);
  return dims;
}

/* The tensor as the value that `like` asks for. */
static pph_status wrap(pph_payload_export *x, void *tensor,
                       pph_payload_value *value) {
  const pph_payload_quantized *like =
      x->like && x->like->xvalue_union.type == 2 ? x->like->xvalue_union.value
                                                 : NULL;
  void *quantized;
  *value = (pph_payload_value){{.value = tensor, .type = 1}};
  if (!like)
    return PPH_OK;
  PPH_TRY(copy(x, like, sizeof *like, &quantized));
  ((pph_payload_quantized *)quantized)->tensor_value = tensor;
  *value = (pph_payload_value){{.value = quantized, .type = 2}};
  return PPH_OK;
}

pph_status pph_payload_put_value(pph_payload_export *x,
                                 const pph_payload_dims *dims, uint32_t *id) {
  void *numbers, *tensor;
  PPH_TRY(pph_grow(x->arena, &x->values, x->value_count, &x->value_capacity,
                   sizeof *x->values, x->error));
  PPH_TRY(copy(x, dims->at, sizeof dims->at, &numbers));
  pph_payload_tensor made = {.datatype = PPH_PAYLOAD_F32,
                                   .num_dims = dims->count,
                                   .dims = {numbers, dims->count},
                                   .external_id = PPH_PAYLOAD_NONE,
                                   .id_out = x->value_count};
  if (x->like)
    made.datatype = pph_payload_tensor_of(x->like)->datatype;
  PPH_TRY(copy(x, &made, sizeof made, &tensor));
  PPH_TRY(wrap(x, tensor, &x->values[x->value_count]));
  *id = x->value_count++;
  return PPH_OK;
}

pph_status pph_payload_put_node(pph_payload_export *x, pph_payload_kind kind,
                                const void *table, size_t size,
                                const pph_payload_min_max *range) {
  void *kept, *kept_range = NULL;
  PPH_TRY(pph_grow(x->arena, &x->nodes, x->node_count, &x->node_capacity,
                   sizeof *x->nodes, x->error));
  PPH_TRY(pph_grow(x->arena, &x->makers, x->node_count, &x->maker_capacity,
                   sizeof *x->makers, x->error));
  PPH_TRY(copy(x, table, size, &kept));
  if (range)
    PPH_TRY(copy(x, range, sizeof *range, &kept_range));
  x->nodes[x->node_count] = (pph_payload_node){
      .xnode_union = {.value = kept, .type = (uint8_t)kind},
      .debug_handle = x->node_count,
      .output_min_max = kept_range};
  x->makers[x->node_count++] = x->node;
  return PPH_OK;
}

pph_status pph_payload_put_unary(pph_payload_export *x, pph_payload_kind kind,
                                 const pph_payload_min_max *range,
                                 uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, *id);
  pph_payload_unary table = {.input_id = *id};
  PPH_TRY(pph_payload_put_value(x, &dims, id));
  table.output_id = *id;
  return pph_payload_put_node(x, kind, &table, sizeof table, range);
}

static bool same_dims(const pph_payload_dims *a, const pph_payload_dims *b) {
  return a->count == b->count &&
         memcmp(a->at, b->at, a->count * sizeof *a->at) == 0;
}

pph_status pph_payload_put_reshape(pph_payload_export *x,
                                   const pph_payload_dims *dims,
                                   uint32_t *id) {
  pph_payload_dims now = pph_payload_dims_of(x, *id);
  pph_payload_reshape table = {.num_dims = dims->count, .input_id = *id};
  if (same_dims(&now, dims))
    return PPH_OK;
  PPH_TRY(pph_payload_put_value(x, dims, id));
  table.new_shape.at = find_tensor(x, *id)->dims.at;
  table.new_shape.count = dims->count;
  table.output_id = *id;
  return pph_payload_put_node(x, PPH_PAYLOAD_RESHAPE, &table, sizeof table,
                              NULL);
}

pph_status pph_payload_put_transpose(pph_payload_export *x,
                                     const uint32_t *perm, uint32_t *id) {
  pph_payload_dims from = pph_payload_dims_of(x, *id), to = from;
  pph_payload_transpose table = {.num_dims = from.count, .input_id = *id};
  void *kept;
  for (uint32_t i = 0; i < from.count; i++)
    to.at[i] = from.at[perm[i]];
  PPH_TRY(copy(x, perm, from.count * sizeof *perm, &kept));
  PPH_TRY(pph_payload_put_value(x, &to, id));
  table.perm.at = kept;
  table.perm.count = from.count;
  table.output_id = *id;
  return pph_payload_put_node(x, PPH_PAYLOAD_TRANSPOSE, &table, sizeof table,
                              NULL);
}

pph_status pph_payload_put_slice(pph_payload_export *x,
                                 const pph_payload_dims *offsets,
                                 const pph_payload_dims *sizes, uint32_t *id) {
  pph_payload_dims now = pph_payload_dims_of(x, *id);
  pph_payload_slice table = {.num_dims = now.count, .input_id = *id};
  void *kept;
  if (same_dims(&now, sizes))
    return PPH_OK;
  PPH_TRY(copy(x, offsets->at, sizeof offsets->at, &kept));
  PPH_TRY(pph_payload_put_value(x, sizes, id));
  table.offsets.at = kept;
  table.sizes.at = find_tensor(x, *id)->dims.at;
  table.offsets.count = table.sizes.count = now.count;
  table.output_id = *id;
  return pph_payload_put_node(x, PPH_PAYLOAD_SLICE, &table, sizeof table,
                              NULL);
}

pph_status pph_payload_put_pad(pph_payload_export *x,
                               const pph_payload_dims *begin,
                               const pph_payload_dims *end, float number,
                               uint32_t *id) {
  pph_payload_dims now = pph_payload_dims_of(x, *id), dims = now;
  pph_payload_pad table = {.padding_value = number, .input_id = *id};
  pph_payload_dims *kept = pph_arena_allocate(x->arena, 2, sizeof *kept);
  if (!kept)
    return pph_fail_memory(x->error);
  kept[0] = *begin;
  kept[1] = *end;
  for (uint32_t i = 0; i < dims.count; i++)
    dims.at[i] += begin->at[i] + end->at[i];
  if (same_dims(&now, &dims))
    return PPH_OK;
  table.pre_paddings.at = kept[0].at;
  table.post_paddings.at = kept[1].at;
  table.pre_paddings.count = table.post_paddings.count = dims.count;
  PPH_TRY(pph_payload_put_value(x, &dims, id));
  table.output_id = *id;
  return pph_payload_put_node(x, PPH_PAYLOAD_PAD, &table, sizeof table, NULL);
}

/* Two to five values. */
static pph_status put_concat(pph_payload_export *x, const uint32_t *ids,
                             uint32_t count, uint32_t axis, uint32_t *id) {
  static const pph_payload_kind kinds[] = {
      PPH_PAYLOAD_CONCATENATE_2, PPH_PAYLOAD_CONCATENATE_3,
      PPH_PAYLOAD_CONCATENATE_4, PPH_PAYLOAD_CONCATENATE_5};
  uint32_t given[CONCAT_INPUTS];
  pph_payload_dims dims = pph_payload_dims_of(x, ids[0]);
  uint64_t length = 0;
  for (uint32_t i = 0; i < CONCAT_INPUTS; i++) {
    given[i] = i < count ? ids[i] : PPH_PAYLOAD_NONE;
    length += i < count ? pph_payload_dims_of(x, ids[i]).at[axis] : 0;
  }
  dims.at[axis] = (uint32_t)length;
  pph_payload_concatenate table = {.axis = axis,
                                   .input1_id = given[0],
                                   .input2_id = given[1],
                                   .input3_id = given[2],
                                   .input4_id = given[3],
                                   .input5_id = given[4]};
  PPH_TRY(pph_payload_put_value(x, &dims, id));
  table.output_id = *id;
  return pph_payload_put_node(x, kinds[count - 2], &table, sizeof table, NULL);
}

pph_status pph_payload_put_concat(pph_payload_export *x, uint32_t *ids,
                                  uint32_t count, uint32_t axis,
                                  uint32_t *id) {
  /* Levels of a tree, so that many values are not copied many times. */
  while (count > 1) {
    uint32_t made = 0;
    for (uint32_t i = 0; i < count; i += CONCAT_INPUTS) {
      uint32_t taken = count - i < CONCAT_INPUTS ? count - i : CONCAT_INPUTS;
      uint32_t joined = ids[i];
      if (taken > 1)
        PPH_TRY(put_concat(x, ids + i, taken, axis, &joined));
      ids[made++] = joined;
    }
    count = made;
  }
  *id = ids[0];
  return PPH_OK;
}

pph_status pph_payload_put_repeat(pph_payload_export *x, uint32_t times,
                                  uint32_t axis, uint32_t *id) {
  uint32_t *ids = pph_arena_allocate(x->arena, times, sizeof *ids);
  if (!ids)
    return pph_fail_memory(x->error);
  for (uint32_t i = 0; i < times; i++)
    ids[i] = *id;
  return pph_payload_put_concat(x, ids, times, axis, id);
}

pph_status pph_payload_put_binary(pph_payload_export *x, pph_payload_kind kind,
                                  uint32_t b, const pph_payload_min_max *range,
                                  uint32_t *a) {
  pph_payload_dims left = pph_payload_dims_of(x, *a);
  pph_payload_dims right = pph_payload_dims_of(x, b);
  pph_payload_dims dims = left.count < right.count ? right : left;
  for (uint32_t i = 1; i <= left.count && i <= right.count; i++) {
    uint32_t from_left = left.at[left.count - i];
    dims.at[dims.count - i] =
        from_left == 1 ? right.at[right.count - i] : from_left;
  }
  pph_payload_binary table = {.input1_id = *a, .input2_id = b};
  PPH_TRY(pph_payload_put_value(x, &dims, a));
  table.output_id = *a;
  return pph_payload_put_node(x, kind, &table, sizeof table, range);
}

static pph_status add_constant(pph_payload_export *x,
                               pph_payload_constants *list,
                               const pph_payload_constant *constant) {
  PPH_TRY(pph_grow(x->arena, &list->at, list->count, &list->capacity,
                   sizeof *list->at, x->error));
  list->at[list->count++] = *constant;
  return PPH_OK;
}

pph_status pph_payload_put_operand(pph_payload_export *x,
                                   const pph_payload_constant *constant,
                                   const pph_payload_dims *dims,
                                   uint32_t *id) {
  for (uint32_t i = 0; constant->source && i < x->operands.count; i++) {
    const pph_payload_constant *other = &x->operands.at[i];
    pph_payload_dims its = pph_payload_dims_of(x, other->value);
    if (other->source == constant->source &&
        other->layout == constant->layout && same_dims(&its, dims)) {
      *id = other->value;
      return PPH_OK;
    }
  }
  pph_payload_constant kept = *constant;
  PPH_TRY(pph_payload_put_value(x, dims, id));
  kept.value = *id;
  return add_constant(x, &x->operands, &kept);
}

pph_status pph_payload_put_scalar(pph_payload_export *x, float number,
                                  uint32_t *id) {
  static const pph_payload_dims one = {1, {1}};
  void *kept;
  PPH_TRY(copy(x, &number, sizeof number, &kept));
  const pph_payload_constant constant = {.data = kept,
                                         .bytes = sizeof number};
  return pph_payload_put_operand(x, &constant, &one, id);
}

/* The entry of constant_data with that key; the first is for "none". */
static pph_status find_entry(pph_payload_export *x,
                             const pph_payload_constant *constant,
                             uint32_t *entry) {
  uint32_t i = 0;
  while (i < x->named.count &&
         strcmp(x->named.at[i].key, constant->key) != 0)
    i++;
  *entry = i + 1;
  return i < x->named.count ? PPH_OK : add_constant(x, &x->named, constant);
}

pph_status pph_payload_put_packed(pph_payload_export *x, const float *data,
                                  const pph_payload_dims *dims, uint32_t *id) {
  pph_payload_constant constant = {.data = data, .bytes = sizeof *data};
  uint32_t entry;
  for (uint32_t i = 0; i < dims->count; i++)
    constant.bytes *= dims->at[i];
  pph_sha256_print(data, constant.bytes, constant.key);
  PPH_TRY(find_entry(x, &constant, &entry));
  PPH_TRY(pph_payload_put_value(x, dims, id));
  pph_payload_tensor *tensor = x->values[*id].xvalue_union.value;
  tensor->constant_buffer_idx = entry;
  return PPH_OK;
}
