/* Two payloads as one. */
#ifndef PPH_OPTIMIZE_JOIN_PAYLOADS_H
#define PPH_OPTIMIZE_JOIN_PAYLOADS_H

#include "optimize/delegate_edit.h"

/* A delegate's payload, ids being places, and the values of the method that
   its call hands in, by external number. */
typedef struct pph_called_payload {
  pph_payload *payload;
  const int32_t *args;
  uint32_t arg_count;
} pph_called_payload;

/* What `first` makes is handed to `second` inside; made[v] tells whether value
   v of the method is still wanted outside. Gives the new payload's arguments:
   inputs, then outputs. */
PPH_NODISCARD pph_status pph_join_payloads(const pph_called_payload *first,
                                           const pph_called_payload *second,
                                           const bool *wanted,
                                           pph_called_payload *joined,
                                           pph_arena *arena,
                                           pph_error *error);

/* Whether that is possible. */
bool pph_can_join_payloads(const pph_called_payload *first,
                           const pph_called_payload *second);

#endif
