/* Models: loading a file and asking what it takes and gives. */
#ifndef POLYPHASE_MODEL_H
#define POLYPHASE_MODEL_H

#include <stdbool.h>

#include "polyphase/memory.h"
#include "polyphase/status.h"
#include "polyphase/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A loaded model: immutable, so any number of sessions in any number of
   threads may use it at once. It must outlive its sessions. */
typedef struct pph_model pph_model;

/* Set by pph_model_options_init, then change fields. */
typedef struct pph_model_options {
  size_t struct_size;
  const pph_allocator *allocator; /* NULL: the C library's; must outlive the
                                     model */
  const pph_limits *limits;       /* NULL: the defaults; read at load only */
  const char *const *constants; /* paths of .ptd files that an ExecuTorch
                                   program needs; read at load only; an ONNX
                                   model takes none */
  uint32_t constant_count;
  const char *method; /* of an ExecuTorch program. NULL: "forward", else the
                         only one; read at load only */
} pph_model_options;

void pph_model_options_init(pph_model_options *options);

/* Loads an ONNX file (opset 6 or newer) or an ExecuTorch program (.pte, .bpte:
   one of its methods). An ONNX model's external data is read
   from the file's folder and never from outside it. `options` may be NULL. On
   success *model belongs to the caller (pph_model_destroy); on failure it is
   NULL and nothing is left behind. Errors: PPH_IO_FAILED, PPH_BAD_MODEL,
   PPH_UNSUPPORTED, PPH_LIMIT_EXCEEDED, PPH_OUT_OF_MEMORY,
   PPH_INVALID_ARGUMENT. */
PPH_NODISCARD pph_status pph_model_load(const char *path,
                                        const pph_model_options *options,
                                        pph_model **model, pph_error *error);

/* The same from `length` bytes of memory, which are copied. `folder` is where
   external data lies; NULL refuses a model that has any. */
PPH_NODISCARD pph_status pph_model_load_bytes(const void *bytes, size_t length,
                                              const char *folder,
                                              const pph_model_options *options,
                                              pph_model **model,
                                              pph_error *error);

/* NULL is allowed. All sessions of the model must be destroyed before. */
void pph_model_destroy(pph_model *model);

/* One input or output. Unknown dimensions are -1; dim_names holds their
   symbolic names or NULL, and `bounds` what the file says they are at most, or
   -1 (an ExecuTorch program's dynamic inputs have bounds; known dimensions are
   their own). Pointers belong to the model. type is PPH_DTYPE_NONE and rank -1
   for an output that the file does not declare. */
typedef struct pph_value_info {
  const char *name;
  pph_dtype type;
  pph_shape shape;
  const char *dim_names[PPH_MAX_RANK];
  pph_shape bounds;
} pph_value_info;

uint32_t pph_model_input_count(const pph_model *model);
uint32_t pph_model_output_count(const pph_model *model);

/* `index` below the count, in the file's order; else all fields are zero. */
pph_value_info pph_model_input(const pph_model *model, uint32_t index);
pph_value_info pph_model_output(const pph_model *model, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
