#include "pte/xnn_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

typedef struct checker {
  pph_payload_index *index;
  pph_arena *arena;
  bool *externals; /* which numbers are taken */
  pph_error *error;
} checker;

static pph_status bad_value(const checker *c, uint32_t value, const char *what,
                            long long found) {
  char where[64];
  snprintf(where, sizeof where, "payload's value %u", value);
  return pph_fail(c->error, PPH_BAD_MODEL, where, "%s (%lld)", what, found);
}

static pph_status bad_node(const checker *c, uint32_t node, pph_status status,
                           const char *what, long long found) {
  char where[96];
  uint32_t kind = c->index->payload->graph->xnodes.at[node].xnode_union.type;
  snprintf(where, sizeof where, "payload's node %u XNN%s", node,
           pph_payload_kind_name(kind));
  return pph_fail(c->error, status, where, "%s (%lld)", what, found);
}

bool pph_payload_count_bytes(const pph_payload_tensor *tensor, size_t *bytes) {
  static const uint8_t bits[PPH_PAYLOAD_TYPE_COUNT] = {
      [PPH_PAYLOAD_F32] = 32, [PPH_PAYLOAD_F16] = 16,  [PPH_PAYLOAD_Q8] = 8,
      [PPH_PAYLOAD_QU8] = 8,  [PPH_PAYLOAD_Q32] = 32,  [PPH_PAYLOAD_QC8] = 8,
      [PPH_PAYLOAD_QC32] = 32, [PPH_PAYLOAD_QC4] = 4,  [PPH_PAYLOAD_QD8] = 8,
      [PPH_PAYLOAD_QB4] = 4,  [PPH_PAYLOAD_QP8] = 8,   [PPH_PAYLOAD_I32] = 32,
      [PPH_PAYLOAD_PF32] = 32, [PPH_PAYLOAD_BF16] = 16};
  size_t total = 1;
  for (uint32_t i = 0; i < tensor->dims.count; i++) {
    size_t length = tensor->dims.at[i];
    if (bits[tensor->datatype] == 4 && i + 1 == tensor->dims.count)
      length += length % 2; /* rows of halves start at bytes */
    if (!pph_checked_mul(total, length, &total))
      return false;
  }
  if (bits[tensor->datatype] == 4)
    total /= 2;
  return pph_checked_mul(total, pph_divide_up(bits[tensor->datatype], 8),
                         bytes) &&
         *bytes <= PTRDIFF_MAX;
}

static bool is_scale(float scale) { return scale > 0 && isfinite(scale); }

static bool is_legal_channel(const pph_payload_tensor *tensor, int32_t axis,
                             uint32_t scales) {
  return axis >= 0 && (uint32_t)axis < tensor->dims.count &&
         tensor->dims.at[axis] == scales;
}

/* Whether the parameters make sense for the type. */
static bool is_legal_quantization(const pph_payload_slot *slot,
                                  uint32_t data_count) {
  const pph_payload_tensor *tensor = slot->tensor;
  const pph_payload_per_tensor *whole = slot->quantization;
  const pph_payload_per_channel *channel = slot->quantization;
  const pph_payload_per_group *group = slot->quantization;
  const pph_payload_dynamic *rows = slot->quantization;
  int type = tensor->datatype;
  switch (slot->quantization_type) {
  case PPH_PAYLOAD_PER_TENSOR:
    return is_scale(whole->scale) &&
           (type == PPH_PAYLOAD_Q32
                ? whole->zero_point == 0
                : type == PPH_PAYLOAD_QU8
                      ? whole->zero_point >= 0 && whole->zero_point <= 255
                      : type == PPH_PAYLOAD_Q8 && whole->zero_point >= -128 &&
                            whole->zero_point <= 127);
  case PPH_PAYLOAD_PER_CHANNEL:
    return (type == PPH_PAYLOAD_QC8 || type == PPH_PAYLOAD_QC32 ||
            type == PPH_PAYLOAD_QC4) &&
           channel->scale_buffer_idx < data_count &&
           is_legal_channel(tensor, channel->channel_dim,
                            channel->scale_buffer_idx
                                ? channel->num_scales
                                : channel->scale.count);
  case PPH_PAYLOAD_DYNAMIC:
    return type == PPH_PAYLOAD_QD8 && rows->num_nonbatch_dims >= 1 &&
           (uint32_t)rows->num_nonbatch_dims <= tensor->dims.count;
  case PPH_PAYLOAD_PER_GROUP:
    return type == PPH_PAYLOAD_QB4 && tensor->dims.count == 2 &&
           group->group_size > 0 && group->scale_buffer_idx < data_count;
  default:
    return false;
  }
}

static bool is_quantized(int type) {
  return type >= PPH_PAYLOAD_Q8 && type <= PPH_PAYLOAD_QB4;
}

/* Files without a header, older ones, have their constants in tables. */
static uint32_t count_data(const pph_payload *payload) {
  return payload->bare ? payload->graph->constant_buffer.count
                       : payload->graph->constant_data.count;
}

static pph_status check_tensor(const checker *c, uint32_t at) {
  const pph_payload_slot *slot = &c->index->slots[at];
  const pph_payload_tensor *tensor = slot->tensor;
  uint32_t data_count = count_data(c->index->payload);
  size_t bytes;
  if (tensor->datatype < 1 || tensor->datatype >= PPH_PAYLOAD_TYPE_COUNT)
    return bad_value(c, at, "its type must be 1 to 14", tensor->datatype);
  if (tensor->dims.count != tensor->num_dims ||
      tensor->num_dims > PPH_PAYLOAD_MOST_DIMS)
    return bad_value(c, at, "it must have as many dims as it says, at most 6",
                     tensor->num_dims);
  if (!pph_payload_count_bytes(tensor, &bytes))
    return bad_value(c, at, "its bytes cannot be counted", tensor->num_dims);
  if (tensor->constant_buffer_idx &&
      tensor->constant_buffer_idx >= data_count)
    return bad_value(c, at, "there is no such constant",
                     tensor->constant_buffer_idx);
  if (is_quantized(tensor->datatype) != (slot->quantization != NULL) ||
      (slot->quantization && !is_legal_quantization(slot, data_count)))
    return bad_value(c, at, "its quantization does not fit its type",
                     tensor->datatype);
  return PPH_OK;
}

static pph_status check_external(const checker *c, uint32_t at) {
  const pph_payload_tensor *tensor = c->index->slots[at].tensor;
  if (tensor->flags > PPH_PAYLOAD_OUTPUT)
    return bad_value(c, at, "its flags must be 0, 1 (input) or 2 (output)",
                     tensor->flags);
  if (!tensor->flags)
    return PPH_OK;
  if (tensor->external_id >= c->index->payload->graph->num_externs ||
      tensor->external_id >= 2 * (uint64_t)c->index->count)
    return bad_value(c, at, "its external number is out of range",
                     tensor->external_id);
  if (c->externals[tensor->external_id])
    return bad_value(c, at, "its external number is another value's",
                     tensor->external_id);
  c->externals[tensor->external_id] = true;
  if (tensor->flags == PPH_PAYLOAD_INPUT && tensor->constant_buffer_idx)
    return bad_value(c, at, "an input cannot be a constant",
                     tensor->constant_buffer_idx);
  return PPH_OK;
}

static pph_status open_value(const checker *c, uint32_t at) {
  const pph_payload_value *value = &c->index->payload->graph->xvalues.at[at];
  pph_payload_slot *slot = &c->index->slots[at];
  if (value->xvalue_union.type == 1) {
    slot->tensor = value->xvalue_union.value;
  } else if (value->xvalue_union.type == 2) {
    const pph_payload_quantized *quantized = value->xvalue_union.value;
    slot->tensor = quantized->tensor_value;
    slot->quantization = quantized->quant_params.value;
    slot->quantization_type = quantized->quant_params.type;
  } else {
    return bad_value(c, at, "it must be a tensor or a quantized one",
                     value->xvalue_union.type);
  }
  PPH_TRY(check_tensor(c, at));
  slot->is_defined = slot->tensor->constant_buffer_idx ||
                     slot->tensor->flags == PPH_PAYLOAD_INPUT;
  return check_external(c, at);
}

static uint32_t id_at(const pph_payload_index *index, uint32_t place) {
  return index->slots[index->by_id[place]].tensor->id_out;
}

/* Heap sort: no memory, and no bad order to be fed. */
static void sift(pph_payload_index *index, uint32_t root, uint32_t end) {
  for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
    if (child + 1 < end && id_at(index, child) < id_at(index, child + 1))
      child++;
    if (id_at(index, root) >= id_at(index, child))
      return;
    uint32_t other = index->by_id[root];
    index->by_id[root] = index->by_id[child];
    index->by_id[child] = other;
  }
}

static pph_status sort_ids(const checker *c) {
  pph_payload_index *index = c->index;
  for (uint32_t i = 0; i < index->count; i++)
    index->by_id[i] = i;
  for (uint32_t i = index->count / 2; i--;)
    sift(index, i, index->count);
  for (uint32_t end = index->count; end > 1; end--) {
    uint32_t last = index->by_id[end - 1];
    index->by_id[end - 1] = index->by_id[0];
    index->by_id[0] = last;
    sift(index, 0, end - 1);
  }
  for (uint32_t i = 0; i < index->count; i++)
    if (id_at(index, i) == PPH_PAYLOAD_NONE ||
        (i && id_at(index, i) == id_at(index, i - 1)))
      return bad_value(c, index->by_id[i], "its id is another value's or none",
                       id_at(index, i));
  return PPH_OK;
}

pph_payload_slot *pph_payload_find(const pph_payload_index *index,
                                   uint32_t id) {
  uint32_t low = 0, high = index->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (id_at(index, middle) < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < index->count && id_at(index, low) == id
             ? &index->slots[index->by_id[low]]
             : NULL;
}

static pph_status check_node(const checker *c, uint32_t at) {
  const pph_payload_node *node = &c->index->payload->graph->xnodes.at[at];
  pph_payload_uses uses;
  if (!node->xnode_union.value)
    return bad_node(c, at, PPH_UNSUPPORTED, "kinds 1 to 47 are known",
                    node->xnode_union.type);
  const pph_payload_min_max *range = node->output_min_max;
  if (range && !(range->output_min <= range->output_max))
    return bad_node(c, at, PPH_BAD_MODEL,
                    "its least output is above its greatest", 0);
  pph_payload_find_uses(node, &uses);
  for (uint32_t i = 0; i < uses.input_count; i++) {
    if (uses.inputs[i] == PPH_PAYLOAD_NONE &&
        uses.roles[i] & PPH_PAYLOAD_OPTIONAL)
      continue;
    pph_payload_slot *slot = pph_payload_find(c->index, uses.inputs[i]);
    if (!slot || !slot->is_defined)
      return bad_node(c, at, PPH_BAD_MODEL,
                      "it reads a value that nothing before it makes",
                      uses.inputs[i]);
    *(uses.roles[i] & PPH_PAYLOAD_PACKED ? &slot->packed_uses
                                         : &slot->read_uses) += 1;
  }
  for (uint32_t i = 0; i < uses.output_count; i++) {
    pph_payload_slot *slot = pph_payload_find(c->index, uses.outputs[i]);
    if (!slot || slot->is_defined)
      return bad_node(c, at, PPH_BAD_MODEL,
                      "it makes a value that is not there or already made",
                      uses.outputs[i]);
    slot->is_defined = true;
  }
  return PPH_OK;
}

pph_status pph_payload_check(const pph_payload *payload, pph_arena *arena,
                             pph_payload_index *index, pph_error *error) {
  checker c = {.index = index, .arena = arena, .error = error};
  uint32_t count = payload->graph->xvalues.count;
  *index = (pph_payload_index){.payload = payload, .count = count};
  index->slots = pph_arena_allocate(arena, count, sizeof *index->slots);
  index->by_id = pph_arena_allocate(arena, count, sizeof *index->by_id);
  c.externals = pph_arena_allocate(arena, count, 2);
  if (!index->slots || !index->by_id || !c.externals)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < count; i++)
    PPH_TRY(open_value(&c, i));
  PPH_TRY(sort_ids(&c));
  for (uint32_t i = 0; i < payload->graph->xnodes.count; i++)
    PPH_TRY(check_node(&c, i));
  for (uint32_t i = 0; i < count; i++)
    if (index->slots[i].tensor->flags && !index->slots[i].is_defined)
      return bad_value(&c, i, "no node makes this output", i);
  return PPH_OK;
}

pph_status pph_payload_find_bytes(const pph_payload *payload, uint32_t number,
                                  const pph_pte *pte, pph_pte_bytes *bytes,
                                  const pph_pte_external **external,
                                  pph_error *error) {
  const pph_payload_graph *graph = payload->graph;
  if (payload->bare) {
    *bytes = (pph_pte_bytes){graph->constant_buffer.at[number].storage.at,
                             graph->constant_buffer.at[number].storage.count};
    return PPH_OK;
  }
  const pph_payload_data *data = &graph->constant_data.at[number];
  if (data->named_key.at) {
    if (pte && pph_pte_find_data(pte, data->named_key, bytes, external))
      return PPH_OK;
    return pph_fail(error, PPH_BAD_MODEL, "payload",
                    "its constant \"%.*s\" is neither in the program nor in a "
                    ".ptd of pph_model_options.constants",
                    data->named_key.count < 80 ? (int)data->named_key.count
                                               : 80,
                    data->named_key.at);
  }
  if (data->offset > payload->constants.count ||
      data->size > payload->constants.count - data->offset)
    return pph_fail(error, PPH_BAD_MODEL, "payload",
                    "its constant %u leaves the %zu bytes of constants",
                    number, payload->constants.count);
  *bytes = (pph_pte_bytes){payload->constants.at + data->offset,
                           (size_t)data->size};
  return PPH_OK;
}

pph_status pph_payload_find_constant(const pph_payload_index *index,
                                     const pph_payload_slot *slot,
                                     const pph_pte *pte, pph_pte_bytes *bytes,
                                     const pph_pte_external **external,
                                     pph_error *error) {
  const pph_payload *payload = index->payload;
  size_t needed = 0;
  *external = NULL;
  PPH_TRY(pph_payload_find_bytes(payload, slot->tensor->constant_buffer_idx,
                                 pte, bytes, external, error));
  if (!pph_payload_count_bytes(slot->tensor, &needed) ||
      bytes->count < needed)
    return pph_fail(error, PPH_BAD_MODEL, "payload",
                    "its constant %u has %zu bytes, its value needs %zu",
                    slot->tensor->constant_buffer_idx, bytes->count, needed);
  bytes->count = needed;
  return PPH_OK;
}
