/* NumPy's .npy files, versions 1.0, 2.0 and 3.0. */
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include "polyphase/status.h"
#include "polyphase/tensor.h"

/* Reads one array: little-endian f32 f64 f16 i8 u8 i16 u16 i32 u32 i64 u64 or
   bool, rank at most PPH_MAX_RANK; Fortran order becomes C order. tensor->data
   is malloc'd, 64 bytes longer than the elements, and belongs to the caller; on
   failure *tensor is zero. Never allocates more than the file is long. Errors:
   PPH_IO_FAILED, PPH_BAD_MODEL (not a well-formed file), PPH_UNSUPPORTED
   (another element type, big-endian, a rank too high), PPH_OUT_OF_MEMORY. */
PPH_NODISCARD pph_status npy_load(const char *path, pph_tensor *tensor,
                                  pph_error *error);

/* Writes version 1.0 in C order; the file appears whole or not at all. */
PPH_NODISCARD pph_status npy_save(const char *path, const pph_tensor *tensor,
                                  pph_error *error);

#endif
