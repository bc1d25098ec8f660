#include "pte_file.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "output_file.h"
#include "runtime/loaded_model.h"

typedef char file_head[8];

static bool read_head(const char *path, file_head head) {
  FILE *file = fopen(path, "rb");
  size_t read = file ? fread(head, 1, sizeof(file_head), file) : 0;
  if (file)
    fclose(file);
  return read == sizeof(file_head);
}

bool pte_file_is_container(const char *path) {
  file_head head;
  return read_head(path, head) && pph_pte_is_container(head, sizeof head);
}

bool pte_file_is_bundle(const char *path) {
  file_head head;
  return read_head(path, head) && memcmp(head + 4, "BP08", 4) == 0;
}

pph_status pte_file_check_name(const char *path, bool is_bundle,
                               pph_error *error) {
  if (output_file_ends_in(path, is_bundle ? ".pte" : ".bpte"))
    return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                    is_bundle ? "the program comes with test cases, which no "
                                "runtime loads under this name: call it .bpte"
                              : "the program comes without test cases: call "
                                "it .pte");
  return PPH_OK;
}

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
