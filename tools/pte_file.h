/* An ExecuTorch file that a command looks into, with its .ptd files. */
#ifndef TOOLS_PTE_FILE_H
#define TOOLS_PTE_FILE_H

#include "options.h"
#include "pte/container.h"
#include "runtime/constant_files.h"

/* By its first bytes: whether the file is a .pte, .bpte or .ptd; whether it is
   a program with test cases (.bpte). False for a file that cannot be read. */
bool pte_file_is_container(const char *path);
bool pte_file_is_bundle(const char *path);

/* Runtimes go by the name: PPH_INVALID_ARGUMENT for a bundle that would be
   called .pte, or a program alone .bpte. */
PPH_NODISCARD pph_status pte_file_check_name(const char *path, bool is_bundle,
                                             pph_error *error);

typedef struct pte_file {
  pph_heap heap;
  void *bytes;
  pph_constant_files files;
  pph_pte *pte;
} pte_file;

/* Opens the first argument with --constants. Close also after failure. */
PPH_NODISCARD pph_status pte_file_open(const tool_options *options,
                                       pte_file *file, pph_error *error);
void pte_file_close(pte_file *file);

#endif
