/* Writes C structs as a flatbuffer, and compares them. */
#ifndef PPH_PTE_FLAT_BUILD_H
#define PPH_PTE_FLAT_BUILD_H

#include <stdbool.h>

#include "base/heap.h"
#include "polyphase/status.h"
#include "pte/flat_schema.h"

/* Writes `root` into a heap block that the caller releases; *bytes is NULL on
   failure. Scalars of 0 are left out, equal vtables are shared, and everything
   is placed as ExecuTorch's exporter places it, so that a program of its making
   comes out byte for byte. Data is aligned relative to the first byte.
   PPH_LIMIT_EXCEEDED from 2 GiB on. PPH_UNSUPPORTED for a union's member
   without a schema. */
PPH_NODISCARD pph_status pph_flat_build(const pph_flat_table *table,
                                        const void *root,
                                        const char identifier[4],
                                        pph_heap *heap, void **bytes,
                                        size_t *length, pph_error *error);

/* Same fields, same presence, same bits. */
bool pph_flat_equal(const pph_flat_table *table, const void *a, const void *b);

#endif
