/* Memory between pages that must not be touched. */
#ifndef PPH_TESTS_GUARDED_H
#define PPH_TESTS_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

#include "polyphase/memory.h"

/* Floats right before a guard page, or right after one. The other side has the
   rest of a page, which guarded_intact looks at, and then a guard page too. */
typedef enum guarded_edge { GUARDED_END, GUARDED_BEGIN } guarded_edge;

typedef struct guarded {
  float *data;
  size_t count;
  char *pages; /* between the guards */
  size_t bytes;
} guarded;

/* Not numbers at first. */
guarded guarded_make(size_t count, guarded_edge edge);
/* Whether what lies between the guards, but outside the floats, is as it was. */
bool guarded_intact(const guarded *memory);
/* All zeros is allowed. */
void guarded_drop(guarded *memory);

/* Blocks that end, as nearly as their alignment allows, at a guard page. */
pph_allocator guarded_allocator(void);

#endif
