/* Where in a tree of tables one is: "Program.execution_plan[0].values[3]". */
#ifndef PPH_PTE_FLAT_PATH_H
#define PPH_PTE_FLAT_PATH_H

#include <stddef.h>
#include <stdint.h>

/* More than any schema nests. */
enum { PPH_FLAT_DEPTH = 16 };

typedef struct pph_flat_step {
  const char *name;
  int64_t index; /* in a vector; -1: none */
} pph_flat_step;

typedef struct pph_flat_path {
  pph_flat_step steps[PPH_FLAT_DEPTH];
  uint32_t depth;
} pph_flat_path;

static inline void pph_flat_path_push(pph_flat_path *path, const char *name) {
  path->steps[path->depth++] = (pph_flat_step){name, -1};
}
static inline void pph_flat_path_pop(pph_flat_path *path) {
  path->depth--;
}
/* The element of the vector that was pushed last. */
static inline void pph_flat_path_index(pph_flat_path *path, int64_t index) {
  path->steps[path->depth - 1].index = index;
}

/* Cut when it does not fit; returns `text`. */
const char *pph_flat_path_text(const pph_flat_path *path, char *text,
                               size_t size);

#endif
