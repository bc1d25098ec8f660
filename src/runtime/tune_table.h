/* What tuning remembers: which choice was fastest for which key. In a file a
   line each, "KEY = CHOICE", the newest last. */
#ifndef PPH_RUNTIME_TUNE_TABLE_H
#define PPH_RUNTIME_TUNE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "polyphase/status.h"

enum {
  PPH_TUNE_MOST = 4096,       /* entries; the oldest goes first */
  PPH_TUNE_KEY_BYTES = 640,   /* with the final 0 */
  PPH_TUNE_CHOICE_BYTES = 48
};

typedef struct pph_tune_entry {
  const char *key, *choice; /* in the arena */
  bool fresh;               /* not yet in the file */
} pph_tune_entry;

typedef struct pph_tune_table {
  pph_arena arena;
  pph_tune_entry *entries;
  uint32_t count, capacity;
} pph_tune_table;

void pph_tune_table_init(pph_tune_table *table, pph_heap *heap);
void pph_tune_table_clear(pph_tune_table *table);

/* The choice for a key; NULL when there is none. */
const char *pph_tune_table_find(const pph_tune_table *table, const char *key);

/* Whether the choice for a key was set here and is not in the file yet. */
bool pph_tune_table_is_fresh(const pph_tune_table *table, const char *key);

/* Copies; replaces the choice of a key that is there. A key is shorter than
   PPH_TUNE_KEY_BYTES, printable, without " = "; PPH_OUT_OF_MEMORY alone. */
PPH_NODISCARD pph_status pph_tune_table_set(pph_tune_table *table,
                                            const char *key,
                                            const char *choice,
                                            pph_error *error);

/* Adds what the file has, of which lines that are none are left out, as is a
   file that cannot be read or has over a MiB. PPH_OUT_OF_MEMORY alone. */
PPH_NODISCARD pph_status pph_tune_table_read(pph_tune_table *table,
                                             const char *path,
                                             pph_error *error);

uint32_t pph_tune_table_count_fresh(const pph_tune_table *table);

/* Puts fresh entries into the file, beside what others wrote since, and makes
   them old. On failure they stay fresh and the file is as it was. */
PPH_NODISCARD pph_status pph_tune_table_write(pph_tune_table *table,
                                              const char *path,
                                              pph_error *error);

#endif
