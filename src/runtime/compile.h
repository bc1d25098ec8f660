/* From a model to a program for another runtime. */
#ifndef PPH_RUNTIME_COMPILE_H
#define PPH_RUNTIME_COMPILE_H

#include "polyphase/model.h"
#include "polyphase/session.h"
#include "pte/program_export.h"

/* The lengths of a dimension: `most`, and below it `step` by `step` those down
   to `least`. */
typedef struct pph_length_range {
  int64_t least, most, step;
} pph_length_range;

/* Of an input; the rank is the model's. */
typedef struct pph_shape_range {
  pph_length_range dims[PPH_MAX_RANK];
  int32_t rank;
} pph_shape_range;

typedef struct pph_compile_options {
  pph_lowering lowering; /* of transposed convolutions to phases */
  pph_accuracy accuracy; /* of convolutions: minimal filtering, or not */
  bool external;         /* filters and biases go into files->constants */
} pph_compile_options;

/* An ExecuTorch program that takes inputs of these shapes (`inputs` has one
   per input of the model, as it declares them): the passes run for XNNPACK, and
   a program of fixed sizes is rewritten as pph_pte_optimize does, which then
   finds nothing more to do. Dimensions that have one name in the model have one
   length in each run. With lengths that are open, what is written is that of a
   second combination of sizes too, and is read back and compared with the model
   at others in the ranges. What has no such form as phases is written with
   transposed convolutions as they are, unless `lowering` is ALWAYS. Blocks of
   `heap` (pph_pte_files_clear). PPH_INVALID_ARGUMENT: ranges that do not fit
   the model; PPH_UNSUPPORTED: a model with state, or a node without a form. */
PPH_NODISCARD pph_status pph_model_compile(const pph_model *model,
                                           const pph_shape_range *inputs,
                                           const pph_compile_options *options,
                                           pph_heap *heap,
                                           pph_pte_files *files,
                                           pph_error *error);

#endif
