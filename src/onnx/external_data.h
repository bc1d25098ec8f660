/* Tensors that lie in files beside the model. */
#ifndef PPH_ONNX_EXTERNAL_DATA_H
#define PPH_ONNX_EXTERNAL_DATA_H

#include <stdint.h>

#include "polyphase/status.h"

/* Where a tensor lies. */
typedef struct pph_external_place {
  const char *location; /* path relative to the model's folder */
  uint64_t offset;
} pph_external_place;

/* Reads `bytes` bytes into `data`. Absolute paths, "..", symbolic links that
   lead out of `folder`, and whatever is not a regular file are refused with
   PPH_BAD_MODEL, as is a file that is too short; a file that is not there or
   cannot be read, and `folder` NULL, give PPH_IO_FAILED. */
PPH_NODISCARD pph_status pph_external_read(const char *folder,
                                           const pph_external_place *place,
                                           void *data, uint64_t bytes,
                                           pph_error *error);

#endif
