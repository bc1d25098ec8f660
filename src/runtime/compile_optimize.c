#include "runtime/compile_optimize.h"

#include "base/fail.h"
#include "optimize/optimize.h"
#include "pte/container_write.h"

/* The files of an opened program that was rewritten, in place of `files`. */
static pph_status write_again(pph_pte *pte, uint32_t nodes, pph_heap *heap,
                              pph_pte_files *files, pph_error *error) {
  pph_pte_files made = {.nodes = nodes, .delegates = files->delegates};
  pph_status status = pph_pte_write(pte, heap, &made.program,
                                    &made.program_bytes, error);
  if (status == PPH_OK && files->constants)
    status = pph_pte_write_external(&pte->externals[0], heap, &made.constants,
                                    &made.constant_bytes, error);
  if (status != PPH_OK) {
    pph_pte_files_clear(&made, heap);
    return status;
  }
  pph_pte_files_clear(files, heap); /* nothing of `pte` is read any more */
  *files = made;
  return PPH_OK;
}

pph_status pph_compile_optimize(const pph_compile_options *how, pph_heap *heap,
                                pph_pte_files *files, pph_error *error) {
  const pph_optimize_options options = {
      .always = how->lowering == PPH_LOWERING_ALWAYS,
      .never = how->lowering == PPH_LOWERING_NEVER,
      .accuracy = how->accuracy};
  pph_optimize_result result;
  pph_pte *pte;
  PPH_TRY(pph_pte_files_open(files, heap, &pte, error));
  pph_status status = pph_pte_optimize(pte, &options, &result, error);
  if (status == PPH_OK && result.changes)
    status = write_again(pte, result.nodes, heap, files, error);
  pph_pte_close(pte);
  return status;
}
