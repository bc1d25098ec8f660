#include "optimize/delegate_place.h"

#include <string.h>

#include "base/fail.h"
#include "base/growing.h"
#include "optimize/dims_check.h"
#include "pte/container_check.h"

bool pph_delegate_is_xnnpack(const pph_pte_delegate *delegate) {
  return pph_flat_text_is(delegate->id, "XnnpackBackend");
}

/* How many delegates have their payload there. */
static uint32_t count_users(const pph_pte_program *program,
                            const pph_pte_data_reference *place) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->execution_plan.count; i++) {
    const pph_pte_plan *plan = &program->execution_plan.at[i];
    for (uint32_t k = 0; k < plan->delegates.count; k++) {
      const pph_pte_data_reference *other = plan->delegates.at[k].processed;
      count += other->location == place->location &&
               other->index == place->index;
    }
  }
  return count;
}

static pph_status replace_inline(pph_pte *pte, pph_pte_delegate *delegate,
                                 pph_pte_bytes bytes, pph_error *error) {
  pph_pte_program *program = pte->program;
  uint32_t count = program->backend_delegate_data.count, capacity = count;
  if (count_users(program, delegate->processed) > 1) {
    PPH_TRY(pph_grow(&pte->arena, &program->backend_delegate_data.at, count,
                     &capacity, sizeof *program->backend_delegate_data.at,
                     error));
    delegate->processed->index = count;
    program->backend_delegate_data.count++;
  }
  program->backend_delegate_data.at[delegate->processed->index].data.at =
      bytes.at;
  program->backend_delegate_data.at[delegate->processed->index].data.count =
      (uint32_t)bytes.count;
  return PPH_OK;
}

static pph_status replace_segment(pph_pte *pte, pph_pte_delegate *delegate,
                                  pph_pte_bytes bytes, pph_error *error) {
  pph_pte_program *program = pte->program;
  pph_pte_image *image = &pte->image;
  uint32_t count = image->segment_count, capacity = count, rows = count;
  if (count_users(program, delegate->processed) > 1) {
    PPH_TRY(pph_grow(&pte->arena, &image->segments, count, &capacity,
                     sizeof *image->segments, error));
    PPH_TRY(pph_grow(&pte->arena, &program->segments.at, count, &rows,
                     sizeof *program->segments.at, error));
    delegate->processed->index = count;
    program->segments.count = image->segment_count = count + 1;
  }
  image->segments[delegate->processed->index] = bytes;
  return PPH_OK;
}

pph_status pph_delegate_write(pph_pte *pte, pph_pte_delegate *delegate,
                              const pph_payload *payload, pph_error *error) {
  void *made;
  pph_pte_bytes bytes;
  PPH_TRY(
      pph_payload_write(payload, pte->heap, &made, &bytes.count, error));
  /* The bytes stay as long as the program. */
  uint8_t *kept = pph_arena_allocate(&pte->arena, bytes.count, 1);
  if (kept)
    memcpy(kept, made, bytes.count);
  pph_heap_release(pte->heap, made);
  if (!kept)
    return pph_fail_memory(error);
  bytes.at = kept;
  return delegate->processed->location == PPH_PTE_INLINE
             ? replace_inline(pte, delegate, bytes, error)
             : replace_segment(pte, delegate, bytes, error);
}

static pph_status open(pph_pte *pte, const pph_pte_delegate *delegate,
                       pph_payload *payload, pph_payload_index *index,
                       pph_error *why) {
  pph_pte_bytes bytes = pph_pte_delegate_payload(pte, delegate);
  if (!pph_delegate_is_xnnpack(delegate))
    return pph_fail(why, PPH_UNSUPPORTED, "", "%s", "");
  PPH_TRY(pph_payload_read(bytes, &pte->arena, payload, why));
  PPH_TRY(pph_flat_refuse_unknown(&payload->unknown, why));
  PPH_TRY(pph_payload_check(payload, &pte->arena, index, why));
  PPH_TRY(pph_payload_check_dims(payload, index, why));
  if (payload->bare)
    return pph_fail(why, PPH_UNSUPPORTED, "payload",
                    "its constants are in tables, as in old files");
  return PPH_OK;
}

pph_status pph_delegate_read(pph_pte *pte, const pph_pte_delegate *delegate,
                             pph_payload **payload, pph_payload_index **index,
                             pph_error *why, pph_error *error) {
  *payload = pph_arena_allocate(&pte->arena, 1, sizeof **payload);
  *index = pph_arena_allocate(&pte->arena, 1, sizeof **index);
  if (!*payload || !*index)
    return pph_fail_memory(error);
  pph_status status = open(pte, delegate, *payload, *index, why);
  if (status == PPH_OUT_OF_MEMORY || status == PPH_LIMIT_EXCEEDED)
    return pph_fail(error, status, why->where, "%s", why->message);
  if (status != PPH_OK)
    *payload = NULL;
  return PPH_OK;
}
