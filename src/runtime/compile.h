/* From a model to a program for another runtime. */
#ifndef PPH_RUNTIME_COMPILE_H
#define PPH_RUNTIME_COMPILE_H

#include "polyphase/model.h"
#include "polyphase/session.h"
#include "pte/program_export.h"

/* An ExecuTorch program that takes inputs of exactly these shapes (`shapes` has
   one per input of the model, as it declares them): the passes run for XNNPACK,
   transposed convolutions become phases as `lowering` says, and the program is
   rewritten as pph_pte_optimize does, which then finds nothing more to do.
   `external` puts filters and biases into files->constants. Blocks of `heap`
   (pph_pte_files_clear). PPH_UNSUPPORTED: a model with state, or a node without
   a form. */
PPH_NODISCARD pph_status pph_model_compile(const pph_model *model,
                                           const pph_shape *shapes,
                                           pph_lowering lowering,
                                           bool external, pph_heap *heap,
                                           pph_pte_files *files,
                                           pph_error *error);

#endif
