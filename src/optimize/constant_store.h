/* Which constants a program's delegates read, before and after. New ones are
   named by their content, and live in the file where the old ones lived. */
#ifndef PPH_OPTIMIZE_CONSTANT_STORE_H
#define PPH_OPTIMIZE_CONSTANT_STORE_H

#include "pte/container.h"
#include "pte/xnn_payload.h"

typedef struct pph_new_constant {
  pph_flat_text key;
  pph_pte_bytes bytes;
  const pph_pte_external *external; /* NULL: the program */
} pph_new_constant;

typedef struct pph_key_list {
  pph_flat_text *at;
  uint32_t count, capacity;
} pph_key_list;

typedef struct pph_constant_store {
  pph_pte *pte;
  pph_new_constant *added;
  uint32_t added_count, added_capacity;
  pph_key_list before, after; /* keys that payloads read */
  uint32_t *left; /* segments of delegates that are gone */
  uint32_t left_count, left_capacity;
  bool keeps_all; /* something that is not understood may read any key */
} pph_constant_store;

/* The key of those bytes in `external` or the program, which get them unless
   they have them. `bytes` must live as long as the program's arena. */
PPH_NODISCARD pph_status pph_constant_store_add(
    pph_constant_store *store, pph_pte_bytes bytes, const char *prefix,
    const pph_pte_external *external, pph_flat_text *key, pph_error *error);

/* A constant that was added; NULL when there is none of that key. */
const pph_new_constant *pph_constant_store_find(
    const pph_constant_store *store, pph_flat_text key);

/* Notes all keys of a payload's table of constants. */
PPH_NODISCARD pph_status pph_constant_store_note(
    pph_constant_store *store, pph_key_list *list,
    const pph_payload_graph *graph, pph_error *error);

/* Puts new constants into the files and takes those out that were read and no
   longer are. external_changed has one entry per .ptd. */
PPH_NODISCARD pph_status pph_constant_store_finish(pph_constant_store *store,
                                                   bool *external_changed,
                                                   pph_error *error);

#endif
