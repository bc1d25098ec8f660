#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/check_path.h"

pph_status pph_check_fail(checker *c, const char *format, ...) {
  char where[sizeof c->error->where], message[sizeof c->error->message];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  pph_flat_path_text(&c->path, where, sizeof where);
  return pph_fail(c->error, PPH_BAD_MODEL, where, "%s", message);
}

pph_status pph_check_index(checker *c, const char *what, int64_t found,
                           uint64_t count) {
  if (found >= 0 && (uint64_t)found < count)
    return PPH_OK;
  if (!count)
    return pph_check_fail(c, "%s is %" PRId64 ", but there is none", what,
                          found);
  return pph_check_fail(c, "%s is %" PRId64 ", legal is 0 to %" PRIu64, what,
                        found, count - 1);
}

pph_status pph_check_layout(checker *c, int8_t scalar_type,
                            const int32_t *sizes, uint32_t count,
                            const uint8_t *order, uint32_t order_count,
                            size_t *bytes) {
  enum { MOST = 64 }; /* bits of `seen`; runtimes take at most 16 */
  uint64_t seen = 0;
  if (!pph_scalar_type_find(scalar_type))
    return pph_check_fail(c, "scalar_type is %d, which is no element type",
                          scalar_type);
  if (order_count != count || count > MOST)
    return pph_check_fail(c, "has %u sizes and %u places in dim_order; legal "
                             "are equal numbers up to %d",
                          count, order_count, MOST);
  for (uint32_t i = 0; i < count; i++) {
    if (sizes[i] < 0)
      return pph_check_fail(c, "sizes[%u] is %d, legal is 0 and more", i,
                            sizes[i]);
    if (order[i] >= count || seen >> order[i] & 1)
      return pph_check_fail(c, "dim_order[%u] is %u; it must have each number "
                               "from 0 to %u once",
                            i, order[i], count - 1);
    seen |= (uint64_t)1 << order[i];
  }
  if (!pph_pte_count_bytes(scalar_type, sizes, count, bytes))
    return pph_check_fail(c, "its sizes need more bytes than can be counted");
  return PPH_OK;
}

static const pph_pte_subsegment *find_offsets(const pph_pte_program *program,
                                              const pph_pte_tensor *tensor) {
  const pph_pte_extra_info *extra = tensor->extra_tensor_info;
  if (pph_pte_tensor_storage(tensor) != PPH_PTE_STATE)
    return program->constant_segment;
  uint64_t index = extra ? extra->mutable_data_segments_idx : 0;
  return index < program->mutable_data_segments.count
             ? &program->mutable_data_segments.at[index]
             : NULL;
}

bool pph_pte_find_stored(const pph_pte_program *program,
                         const pph_pte_image *image,
                         const pph_pte_tensor *tensor, pph_pte_bytes *bytes) {
  pph_pte_storage storage = pph_pte_tensor_storage(tensor);
  uint32_t index = tensor->data_buffer_idx;
  *bytes = (pph_pte_bytes){NULL, 0};
  if (storage != PPH_PTE_CONSTANT && storage != PPH_PTE_STATE)
    return false;
  const pph_pte_subsegment *offsets = find_offsets(program, tensor);
  /* Programs of old keep each constant in a table of its own. */
  if (storage == PPH_PTE_CONSTANT && (!offsets || !offsets->offsets.count)) {
    if (index >= program->constant_buffer.count)
      return false;
    const pph_pte_buffer *buffer = &program->constant_buffer.at[index];
    *bytes = (pph_pte_bytes){buffer->storage.at, buffer->storage.count};
    return true;
  }
  if (!offsets || index >= offsets->offsets.count)
    return false;
  pph_pte_bytes segment = image->segments[offsets->segment_index];
  uint64_t offset = offsets->offsets.at[index];
  if (offset > segment.count)
    return false;
  *bytes = (pph_pte_bytes){segment.at + offset, segment.count - offset};
  return true;
}

static pph_status check_stored(checker *c, const pph_pte_tensor *tensor,
                               size_t bytes) {
  pph_pte_bytes found;
  if (!pph_pte_find_stored(c->pte->program, &c->pte->image, tensor, &found))
    return pph_check_fail(c, "data_buffer_idx is %u, which leads to no place "
                             "in the program",
                          tensor->data_buffer_idx);
  if (found.count < bytes)
    return pph_check_fail(c, "its %zu bytes are more than the %zu that its "
                             "segment has from there on",
                          bytes, found.count);
  return PPH_OK;
}

static pph_status check_planned(checker *c, const pph_pte_plan *plan,
                                const pph_pte_allocation *place,
                                size_t bytes) {
  uint32_t id = place->memory_id;
  if (!id || id >= plan->non_const_buffer_sizes.count)
    return pph_check_fail(c, "memory_id is %u, legal is 1 to %d", id,
                          (int)plan->non_const_buffer_sizes.count - 1);
  uint64_t room = (uint64_t)plan->non_const_buffer_sizes.at[id];
  uint64_t offset = (uint64_t)place->memory_offset_high << 32 |
                    place->memory_offset_low;
  if (offset > room || bytes > room - offset)
    return pph_check_fail(c, "its %zu bytes from byte %" PRIu64
                             " on leave buffer %u, which has %" PRIu64,
                          bytes, offset, id, room);
  return PPH_OK;
}

pph_status pph_check_tensor(checker *c, const pph_pte_plan *plan,
                            const pph_pte_tensor *tensor) {
  size_t bytes;
  PPH_TRY(pph_check_layout(c, tensor->scalar_type, tensor->sizes.at,
                           tensor->sizes.count, tensor->dim_order.at,
                           tensor->dim_order.count, &bytes));
  if (tensor->storage_offset)
    return pph_check_fail(c, "storage_offset is %d, legal is 0",
                          tensor->storage_offset);
  PPH_TRY(pph_check_index(c, "shape_dynamism", tensor->shape_dynamism, 3));
  if (tensor->allocation_info)
    PPH_TRY(check_planned(c, plan, tensor->allocation_info, bytes));
  switch (pph_pte_tensor_storage(tensor)) {
  case PPH_PTE_CONSTANT:
  case PPH_PTE_STATE:
    return check_stored(c, tensor, bytes);
  case PPH_PTE_EXTERNAL:
    if (!tensor->extra_tensor_info->fully_qualified_name.count)
      return pph_check_fail(c, "is external and has no name");
    break;
  case PPH_PTE_GIVEN:
  case PPH_PTE_PLANNED:
    break;
  }
  return PPH_OK;
}
