/* What a payload must mean beyond what flatbuffers can say, and who makes and
   reads its values. */
#ifndef PPH_PTE_XNN_CHECK_H
#define PPH_PTE_XNN_CHECK_H

#include "pte/container.h"
#include "pte/xnn_payload.h"

enum { PPH_PAYLOAD_MOST_DIMS = 6, PPH_PAYLOAD_INPUT = 1,
       PPH_PAYLOAD_OUTPUT = 2 };

typedef struct pph_payload_slot {
  const pph_payload_tensor *tensor;
  const void *quantization; /* of quantization_type; NULL for plain values */
  uint8_t quantization_type;
  bool is_defined; /* an external input, a constant, or made by a node */
  uint32_t packed_uses, read_uses; /* by nodes; a use is one or the other */
} pph_payload_slot;

typedef struct pph_payload_index {
  const pph_payload *payload;
  pph_payload_slot *slots; /* as the payload's values */
  uint32_t *by_id;         /* numbers of slots, by increasing id */
  uint32_t count;
} pph_payload_index;

/* Every promise that importing relies on: types, dims and ids are legal, each
   value is made once and before it is read, external numbers are in range and
   used once, quantization fits the type. PPH_BAD_MODEL with value or node, what
   was found and what is legal; PPH_UNSUPPORTED for a kind of node that is not
   known. All memory is the arena's. */
PPH_NODISCARD pph_status pph_payload_check(const pph_payload *payload,
                                           pph_arena *arena,
                                           pph_payload_index *index,
                                           pph_error *error);

/* The value with that id; NULL when there is none. */
pph_payload_slot *pph_payload_find(const pph_payload_index *index, uint32_t id);

/* A constant that some node packs and another reads: runtimes up to 1.5.1 free
   it too early. */
static inline bool pph_payload_has_two_readers(const pph_payload_slot *slot) {
  return slot->tensor->constant_buffer_idx && slot->packed_uses &&
         slot->read_uses;
}

/* Bytes that the elements take; false when they cannot be counted. */
bool pph_payload_count_bytes(const pph_payload_tensor *tensor, size_t *bytes);

/* What a number of a constant stands for, which check has found in range;
   `external` (may be NULL) as for pph_pte_find_data. */
PPH_NODISCARD pph_status pph_payload_find_bytes(
    const pph_payload *payload, uint32_t number, const pph_pte *pte,
    pph_pte_bytes *bytes, const pph_pte_external **external, pph_error *error);

/* The elements of a constant, inside the payload or by its key in `pte` (NULL:
   there is none). PPH_BAD_MODEL when they are nowhere or of another size.
   `external` as for pph_pte_find_data. */
PPH_NODISCARD pph_status pph_payload_find_constant(
    const pph_payload_index *index, const pph_payload_slot *slot,
    const pph_pte *pte, pph_pte_bytes *bytes,
    const pph_pte_external **external, pph_error *error);

#endif
