/* Between sounds and tensors: one signal, so all axes but the last have
   length 1. */
#ifndef TOOLS_SOUND_TENSOR_H
#define TOOLS_SOUND_TENSOR_H

#include "options.h"

enum { SOUND_DEFAULT_RATE = 22050 }; /* most vocoders' */

/* Reads an input of that declaration: a sound (.wav, mono) as f32
   [..,1,samples] of its rank, [1,1,samples] where the rank is open, anything
   else as .npy.
   *rate gets a sound's samples a second and is left alone otherwise.
   tensor->data is malloc'd. Errors: as of wav_load and npy_load, and
   PPH_INVALID_ARGUMENT where the input takes no sound. */
PPH_NODISCARD pph_status sound_or_array_load(const char *path,
                                             const pph_value_info *input,
                                             pph_tensor *tensor,
                                             uint32_t *rate, pph_error *error);

/* Writes an f32 [..,1,samples] at `rate` samples a second; with `has_steps` the
   first axis counts parts that follow each other. PPH_INVALID_ARGUMENT for what
   is no such thing. */
PPH_NODISCARD pph_status sound_save(const char *path, const pph_tensor *tensor,
                                    bool has_steps, uint32_t rate,
                                    pph_error *error);

#endif
