/* Arrays that grow in an arena; old ones stay there. */
#ifndef PPH_BASE_GROWING_H
#define PPH_BASE_GROWING_H

#include <string.h>

#include "base/fail.h"
#include "base/heap.h"

/* Room for one element more. `array` is the address of the pointer. */
PPH_NODISCARD static inline pph_status pph_grow(pph_arena *arena, void *array,
                                                uint32_t count,
                                                uint32_t *capacity,
                                                size_t size,
                                                pph_error *error) {
  enum { FIRST = 16 };
  void *old, *fresh;
  if (count < *capacity)
    return PPH_OK;
  size_t wanted = count ? 2 * (size_t)count : FIRST;
  fresh = wanted < UINT32_MAX ? pph_arena_allocate(arena, wanted, size) : NULL;
  if (!fresh)
    return pph_fail_memory(error);
  memcpy(&old, array, sizeof old);
  if (count)
    memcpy(fresh, old, count * size);
  *capacity = (uint32_t)wanted;
  memcpy(array, &fresh, sizeof fresh);
  return PPH_OK;
}

#endif
