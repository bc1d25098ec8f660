/* The payload of a delegate, in the program or in a segment. */
#ifndef PPH_OPTIMIZE_DELEGATE_PLACE_H
#define PPH_OPTIMIZE_DELEGATE_PLACE_H

#include "pte/xnn_check.h"

bool pph_delegate_is_xnnpack(const pph_pte_delegate *delegate);

/* Reads and checks into the program's arena. *payload is NULL, and *why told,
   for one that is not understood; no message for another backend's. */
PPH_NODISCARD pph_status pph_delegate_read(pph_pte *pte,
                                           const pph_pte_delegate *delegate,
                                           pph_payload **payload,
                                           pph_payload_index **index,
                                           pph_error *why, pph_error *error);

/* Puts another payload in its place; other delegates keep theirs. */
PPH_NODISCARD pph_status pph_delegate_write(pph_pte *pte,
                                            pph_pte_delegate *delegate,
                                            const pph_payload *payload,
                                            pph_error *error);

#endif
