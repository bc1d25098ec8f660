/* A constant that one node packs and another reads is freed too early by
   runtimes up to 1.5.1, and so is one inside the payload that is not packed.
   The reader gets a value of its own, under a name. */
#include "base/fail.h"
#include "optimize/delegate_edit.h"

/* Nodes that read a value as it is, or pack it. */
typedef struct reader_counts {
  uint32_t packs, reads;
} reader_counts;

static void count_readers(const pph_delegate_edit *edit,
                          reader_counts *counts) {
  for (uint32_t i = 0; i < edit->x.node_count; i++) {
    pph_payload_uses uses;
    pph_payload_find_uses(&edit->x.nodes[i], &uses);
    for (uint32_t k = 0; k < uses.input_count; k++) {
      if (uses.inputs[k] == PPH_PAYLOAD_NONE)
        continue;
      reader_counts *its = &counts[uses.inputs[k]];
      *(uses.roles[k] & PPH_PAYLOAD_PACKED ? &its->packs : &its->reads) += 1;
    }
  }
}

static void redirect(pph_delegate_edit *edit, uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < edit->x.node_count; i++) {
    pph_payload_uses uses;
    pph_payload_find_uses(&edit->x.nodes[i], &uses);
    for (uint32_t k = 0; k < uses.input_count; k++)
      if (uses.inputs[k] == from && !(uses.roles[k] & PPH_PAYLOAD_PACKED))
        uses.inputs[k] = to;
    pph_payload_set_uses(&edit->x.nodes[i], &uses);
  }
}

static pph_status repair(pph_delegate_edit *edit, uint32_t id) {
  const pph_payload_tensor *tensor = pph_edit_tensor(edit, id);
  pph_made_constant made = {.like = &edit->x.values[id],
                            .dims = pph_payload_dims_of(&edit->x, id)};
  size_t bytes;
  uint32_t fresh;
  if (!pph_payload_count_bytes(tensor, &bytes))
    return pph_fail_memory(edit->x.error);
  PPH_TRY(pph_delegate_edit_find_bytes(edit, tensor->constant_buffer_idx,
                                       bytes, &made.bytes, &made.external));
  PPH_TRY(pph_delegate_edit_add_constant(edit, &made, &fresh));
  redirect(edit, id, fresh);
  edit->changes++;
  return PPH_OK;
}

pph_status pph_optimize_repair(pph_delegate_edit *edit) {
  uint32_t count = edit->x.value_count, repaired = 0;
  reader_counts *counts = pph_arena_allocate(
      edit->x.arena, (size_t)count + 1, sizeof *counts);
  if (!counts)
    return pph_fail_memory(edit->x.error);
  count_readers(edit, counts);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t number = pph_edit_tensor(edit, i)->constant_buffer_idx;
    if (!number || !counts[i].reads ||
        (!counts[i].packs && edit->data[number].named_key.at))
      continue;
    PPH_TRY(repair(edit, i));
    repaired++;
  }
  if (repaired)
    pph_delegate_edit_tell(edit, "constants that runtimes freed too early are "
                                 "kept under a name");
  return PPH_OK;
}
