#include "runtime/constant_files.h"

#include "base/fail.h"
#include "runtime/loaded_model.h"

pph_status pph_constant_files_read(const char *const *paths, uint32_t count,
                                   const pph_limits *limits, pph_heap *heap,
                                   pph_constant_files *files,
                                   pph_error *error) {
  *files = (pph_constant_files){.heap = heap};
  files->sources =
      pph_heap_allocate_zeroed(heap, count, sizeof *files->sources);
  if (!files->sources)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < count; i++) {
    void *bytes;
    size_t length;
    PPH_TRY(pph_file_read(paths[i], limits, heap, &bytes, &length, error));
    files->sources[files->count++] =
        (pph_pte_source){paths[i], {bytes, length}};
  }
  return PPH_OK;
}

void pph_constant_files_clear(pph_constant_files *files) {
  for (uint32_t i = 0; i < files->count; i++)
    pph_heap_release(files->heap,
                     (void *)(uintptr_t)files->sources[i].bytes.at);
  pph_heap_release(files->heap, files->sources);
}
