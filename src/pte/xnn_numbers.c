/* Constants of a payload as floats. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval_rules.h"
#include "pte/xnn_import.h"

size_t pph_payload_count(const pph_payload_slot *slot) {
  size_t count = 1;
  for (uint32_t i = 0; i < slot->tensor->dims.count; i++)
    count *= slot->tensor->dims.at[i];
  return count;
}

float *pph_payload_allocate(const pph_payload_step *step, size_t count) {
  pph_graph *graph = step->importer->graph;
  return count > graph->tensor_limit / sizeof(float)
             ? NULL
             : pph_arena_allocate(&graph->arena, count + 16, sizeof(float));
}

/* The type in memory; PPH_DTYPE_NONE: of ours none is like it. */
static pph_dtype find_dtype(int16_t type) {
  static const uint8_t types[PPH_PAYLOAD_TYPE_COUNT] = {
      [PPH_PAYLOAD_F32] = PPH_F32, [PPH_PAYLOAD_F16] = PPH_F16,
      [PPH_PAYLOAD_Q8] = PPH_I8,   [PPH_PAYLOAD_QU8] = PPH_U8,
      [PPH_PAYLOAD_Q32] = PPH_I32, [PPH_PAYLOAD_QC8] = PPH_I8,
      [PPH_PAYLOAD_QC32] = PPH_I32};
  return (pph_dtype)types[type];
}

/* Elements of a plain type; `bytes` is aligned. */
static void load(const pph_payload_slot *slot, const void *bytes, float *to,
                 size_t count) {
  enum { PIECE = 256 };
  const pph_payload_per_tensor *whole = slot->quantization;
  double reals[PIECE];
  double zero = slot->quantization_type == PPH_PAYLOAD_PER_TENSOR
                    ? whole->zero_point
                    : 0;
  const pph_tensor from = {find_dtype(slot->tensor->datatype),
                           {1, {(int64_t)count}},
                           (void *)(uintptr_t)bytes};
  for (size_t at = 0; at < count; at += PIECE) {
    size_t n = count - at < PIECE ? count - at : PIECE;
    pph_number_load_reals(&from, (int64_t)at, 1, reals, (int64_t)n);
    for (size_t i = 0; i < n; i++)
      to[at + i] = (float)(reals[i] - zero);
  }
}

static float widen_half_float(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float number;
  memcpy(&number, &wide, sizeof number);
  return number;
}

/* Scales of groups: what the table names, or one of the lists of old files. */
static pph_status find_group_scales(const pph_payload_step *step,
                                    const pph_payload_slot *slot,
                                    size_t count, float *scales) {
  const pph_payload_importer *importer = step->importer;
  const pph_payload_per_group *group = slot->quantization;
  pph_pte_bytes bytes = {NULL, 0};
  size_t found = group->scale.count;
  if (group->scale_buffer_idx) {
    PPH_TRY(pph_payload_find_bytes(
        importer->index->payload, group->scale_buffer_idx, importer->pte,
        &bytes, NULL, importer->error));
    found = bytes.count / sizeof(uint16_t);
  } else if (group->scale_bf16.count) {
    found = group->scale_bf16.count;
  }
  if (found < count)
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "its filter has %zu scales, must have %zu", found,
                            count);
  for (size_t i = 0; i < count; i++) {
    uint16_t bits = 0;
    if (bytes.at)
      memcpy(&bits, bytes.at + i * sizeof bits, sizeof bits);
    else if (group->scale_bf16.count)
      bits = group->scale_bf16.at[i];
    scales[i] = bytes.at || group->scale_bf16.count ? widen_half_float(bits)
                                                    : group->scale.at[i];
  }
  return PPH_OK;
}

/* Two elements a byte, the first in the low half, 8 more than they are; each
   row starts at a byte. What comes out is scaled. */
static pph_status load_groups(const pph_payload_step *step,
                              const pph_payload_slot *slot,
                              const uint8_t *bytes, float *to) {
  const pph_payload_per_group *group = slot->quantization;
  size_t rows = slot->tensor->dims.at[0], columns = slot->tensor->dims.at[1];
  size_t size = (size_t)group->group_size;
  if (!columns || columns % size != 0)
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "its filter's rows of %zu are no groups of %zu",
                            columns, size);
  size_t count = rows * (columns / size);
  float *scales =
      pph_heap_allocate(step->importer->graph->heap, count, sizeof *scales);
  if (!scales)
    return pph_fail_memory(step->importer->error);
  pph_status status = find_group_scales(step, slot, count, scales);
  for (size_t i = 0; i < rows && status == PPH_OK; i++)
    for (size_t k = 0; k < columns; k++) {
      uint8_t both = bytes[i * (columns + columns % 2) / 2 + k / 2];
      int number = (k % 2 ? both >> 4 : both & 15) - 8;
      to[i * columns + k] =
          (float)number * scales[i * (columns / size) + k / size];
    }
  pph_heap_release(step->importer->graph->heap, scales);
  return status;
}

/* Constants lie at any address; a copy does not. */
static pph_status load_plain(const pph_payload_step *step,
                             const pph_payload_slot *slot, pph_pte_bytes bytes,
                             float *to) {
  pph_heap *heap = step->importer->graph->heap;
  void *copy = pph_heap_allocate(heap, bytes.count, 1);
  if (!copy)
    return pph_fail_memory(step->importer->error);
  if (bytes.count)
    memcpy(copy, bytes.at, bytes.count);
  load(slot, copy, to, pph_payload_count(slot));
  pph_heap_release(heap, copy);
  return PPH_OK;
}

pph_status pph_payload_numbers(const pph_payload_step *step, uint32_t slot,
                               float *to, const char **external) {
  const pph_payload_importer *importer = step->importer;
  const pph_payload_slot *from = step->inputs[slot];
  const pph_pte_external *file;
  pph_pte_bytes bytes;
  PPH_TRY(pph_payload_find_constant(importer->index, from, importer->pte,
                                    &bytes, &file, importer->error));
  if (external)
    *external = NULL;
  if (file && external &&
      !(*external = pph_arena_copy_text(&importer->graph->arena, file->name,
                                        strlen(file->name))))
    return pph_fail_memory(importer->error);
  if (from->tensor->datatype == PPH_PAYLOAD_QB4)
    return load_groups(step, from, bytes.at, to);
  if (!find_dtype(from->tensor->datatype))
    return pph_payload_fail(step, PPH_UNSUPPORTED,
                            "a constant of type %s is not supported",
                            pph_payload_type_name(from->tensor->datatype));
  return load_plain(step, from, bytes, to);
}

pph_status pph_payload_scales(const pph_payload_step *step, uint32_t slot,
                              const float **scales, uint32_t *count) {
  const pph_payload_importer *importer = step->importer;
  const pph_payload_slot *from = step->inputs[slot];
  const pph_payload_per_tensor *whole = from->quantization;
  const pph_payload_per_channel *channel = from->quantization;
  pph_pte_bytes bytes = {NULL, 0};
  if (from->quantization_type == PPH_PAYLOAD_PER_TENSOR) {
    bytes = (pph_pte_bytes){(const uint8_t *)&whole->scale, sizeof(float)};
    *count = 1;
  } else if (channel->scale_buffer_idx) {
    PPH_TRY(pph_payload_find_bytes(
        importer->index->payload, channel->scale_buffer_idx, importer->pte,
        &bytes, NULL, importer->error));
    *count = channel->num_scales;
  } else {
    bytes = (pph_pte_bytes){(const uint8_t *)channel->scale.at,
                            channel->scale.count * sizeof(float)};
    *count = channel->scale.count;
  }
  if (bytes.count / sizeof(float) < *count)
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "%zu bytes of scales for %u channels", bytes.count,
                            *count);
  float *to = pph_payload_allocate(step, *count);
  *scales = to;
  if (!to)
    return pph_fail_memory(importer->error);
  if (*count)
    memcpy(to, bytes.at, *count * sizeof *to);
  return PPH_OK;
}
