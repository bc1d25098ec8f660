#include "pte_file.h"

#include "base/fail.h"
#include "runtime/loaded_model.h"

static pph_status open_file(const tool_options *options, pte_file *file,
                            pph_error *error) {
  size_t length;
  *file = (pte_file){.bytes = NULL};
  pph_heap_init(&file->heap, NULL, options->limits.heap_bytes);
  PPH_TRY(pph_file_read(options->arguments[0], &options->limits, &file->heap,
                        &file->bytes, &length, error));
  PPH_TRY(pph_constant_files_read(
      options->constants.texts, options->constants.count, &options->limits,
      &file->heap, &file->files, error));
  pph_pte_source source = {"", {file->bytes, length}};
  return pph_pte_open(&source, file->files.sources, file->files.count,
                      &file->heap, &file->pte, error);
}

pph_status pte_file_open(const tool_options *options, pte_file *file,
                         pph_error *error) {
  return pph_error_in_file(error, options->arguments[0],
                           open_file(options, file, error));
}

void pte_file_close(pte_file *file) {
  pph_pte_close(file->pte);
  pph_constant_files_clear(&file->files);
  pph_heap_release(&file->heap, file->bytes);
}
