/* A payload while it is rewritten: steps replace its list of nodes by another,
   add values and constants, and never change what is external. A value's
   number is its place in edit->x.values. */
#ifndef PPH_OPTIMIZE_DELEGATE_EDIT_H
#define PPH_OPTIMIZE_DELEGATE_EDIT_H

#include "optimize/constant_store.h"
#include "optimize/optimize.h"
#include "pte/xnn_check.h"
#include "pte/xnn_export.h"

typedef struct pph_delegate_edit {
  pph_payload_export x; /* nodes and values; its constants are not used */
  const pph_pte *pte;
  pph_payload *payload; /* as it was read */
  pph_payload_data *data; /* constant_data, with new entries behind */
  uint32_t data_count, data_capacity;
  pph_constant_store *store;
  const pph_optimize_options *options;
  const char *name; /* for reports: the method and the delegate's number */
  const pph_payload_node *visited; /* in a walk: the node, and those behind */
  const pph_payload_node *visited_end;
  uint32_t *absorbed; /* values whose nodes are not visited any more */
  uint32_t absorbed_count, absorbed_capacity;
  bool is_dynamic;  /* sizes of external values may be smaller at run time */
  uint32_t changes;
} pph_delegate_edit;

/* Takes over a checked payload; ids become places. The payload's tables are
   changed. All memory is the arena's. */
PPH_NODISCARD pph_status pph_delegate_edit_open(
    pph_delegate_edit *edit, pph_payload *payload,
    const pph_payload_index *index, pph_arena *arena, pph_error *error);

/* Drops values and constants that no node uses, numbers the rest anew, and
   stores all in edit->payload. */
PPH_NODISCARD pph_status pph_delegate_edit_close(pph_delegate_edit *edit);

/* Visits each node, in order; what `visit` does not take is kept. */
typedef pph_status pph_visit_node(pph_delegate_edit *edit,
                                  const pph_payload_node *node, bool *taken);
PPH_NODISCARD pph_status pph_delegate_edit_walk(pph_delegate_edit *edit,
                                                pph_visit_node *visit);

/* The only node behind the visited one that reads `id`, which is not external;
   NULL when there are none or several. */
const pph_payload_node *pph_delegate_edit_find_user(
    const pph_delegate_edit *edit, uint32_t id);
/* The node that makes `id` is not visited any more. */
PPH_NODISCARD pph_status pph_delegate_edit_absorb(pph_delegate_edit *edit,
                                                  uint32_t id);

/* Appends a copy of the node. */
PPH_NODISCARD pph_status pph_delegate_edit_keep(pph_delegate_edit *edit,
                                                const pph_payload_node *node);

/* The newest node makes `id` from now on. */
void pph_delegate_edit_rename_last(pph_delegate_edit *edit, uint32_t id);

/* A value that is a constant of `bytes`, like value `like` but for its
   dimensions; it lives where `external` says. `scales` (may be NULL) are its
   scales per channel, of axis `channel`. */
typedef struct pph_made_constant {
  const pph_payload_value *like;
  const pph_pte_external *external;
  pph_pte_bytes bytes;
  pph_payload_dims dims;
  const float *scales;
  uint32_t scale_count;
  int32_t channel;
} pph_made_constant;
PPH_NODISCARD pph_status pph_delegate_edit_add_constant(
    pph_delegate_edit *edit, const pph_made_constant *constant, uint32_t *id);

/* The elements of constant `number` and the file that has them. */
PPH_NODISCARD pph_status pph_delegate_edit_find_bytes(
    const pph_delegate_edit *edit, uint32_t number, size_t needed,
    pph_pte_bytes *bytes, const pph_pte_external **external);

/* Reports "NAME, node kind DETAILS: WHAT". */
void pph_delegate_edit_report(const pph_delegate_edit *edit,
                              const pph_payload_node *node,
                              const char *details, const char *what);

/* Reports "NAME: WHAT". */
void pph_delegate_edit_tell(const pph_delegate_edit *edit, const char *what);

/* Where the value has the number of its scales; NULL where it has none. */
uint32_t *pph_payload_scale_number(const pph_payload_value *value);

static inline pph_payload_tensor *pph_edit_tensor(
    const pph_delegate_edit *edit, uint32_t id) {
  return pph_payload_tensor_of(&edit->x.values[id]);
}

/* The steps, in the order of optimize.c's table. */
pph_status pph_optimize_layout(pph_delegate_edit *edit);
pph_status pph_optimize_nearest(pph_delegate_edit *edit);
pph_status pph_optimize_phases(pph_delegate_edit *edit);
pph_status pph_optimize_widen(pph_delegate_edit *edit);
pph_status pph_optimize_filter(pph_delegate_edit *edit);
pph_status pph_optimize_repair(pph_delegate_edit *edit);

#endif
