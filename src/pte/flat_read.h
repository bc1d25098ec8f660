/* Reads a flatbuffer into C structs. */
#ifndef PPH_PTE_FLAT_READ_H
#define PPH_PTE_FLAT_READ_H

#include "base/heap.h"
#include "polyphase/status.h"
#include "pte/flat_schema.h"

/* Something that the schema does not name: a field or a member of a union.
   Its size cannot be known, so it cannot be carried over; `table` NULL when
   there is nothing of the kind. */
typedef struct pph_flat_unknown {
  const char *table; /* or the union's name */
  uint32_t number;   /* slot, or the member's type */
} pph_flat_unknown;

/* Reads the root table into *root, a struct of root table's type in `arena`.
   Texts and vectors of bytes point into `bytes`; all else is copied, so `bytes`
   needs no alignment. Every offset, length, vtable and union is checked before
   it is followed; what is copied is bounded in proportion to `length`, though
   offsets may share targets. PPH_BAD_MODEL tells where ("Program.values[3]"),
   what was found and what is legal. *unknown gets the first unknown thing. */
PPH_NODISCARD pph_status pph_flat_read(const void *bytes, size_t length,
                                       const pph_flat_table *table,
                                       pph_arena *arena, void **root,
                                       pph_flat_unknown *unknown,
                                       pph_error *error);

/* PPH_UNSUPPORTED when there is something: written, it would be lost. */
PPH_NODISCARD pph_status pph_flat_refuse_unknown(
    const pph_flat_unknown *unknown, pph_error *error);

#endif
