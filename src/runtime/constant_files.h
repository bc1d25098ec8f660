/* The .ptd files that an ExecuTorch program needs. */
#ifndef PPH_RUNTIME_CONSTANT_FILES_H
#define PPH_RUNTIME_CONSTANT_FILES_H

#include "pte/container.h"

typedef struct pph_constant_files {
  pph_heap *heap;
  pph_pte_source *sources;
  uint32_t count;
} pph_constant_files;

/* Reads them all; clear also after failure. */
PPH_NODISCARD pph_status pph_constant_files_read(
    const char *const *paths, uint32_t count, const pph_limits *limits,
    pph_heap *heap, pph_constant_files *files, pph_error *error);
void pph_constant_files_clear(pph_constant_files *files);

#endif
