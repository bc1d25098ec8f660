/* Sound, over libsndfile: mono or stereo floats. */
#ifndef TOOLS_WAV_H
#define TOOLS_WAV_H

#include <stddef.h>
#include <stdint.h>

#include "polyphase/status.h"

typedef struct wav {
  uint32_t rate;     /* frames a second */
  uint32_t channels; /* 1 or 2 */
  size_t frames;
  float *samples; /* malloc; frames * channels, interleaved, full scale 1 */
} wav;

/* Most frames that are read: 93 minutes at 48 kHz. */
enum { WAV_MAX_FRAMES = 1 << 28 };

/* Reads whatever libsndfile does (WAV, FLAC, AIFF, Ogg, ...). On failure *sound
   is zero. Errors: PPH_IO_FAILED, PPH_BAD_MODEL, PPH_UNSUPPORTED (more than two
   channels), PPH_LIMIT_EXCEEDED, PPH_OUT_OF_MEMORY. */
PPH_NODISCARD pph_status wav_load(const char *path, wav *sound,
                                  pph_error *error);

/* Writes a WAV file of 32-bit floats; it appears whole or not at all. */
PPH_NODISCARD pph_status wav_save(const char *path, const wav *sound,
                                  pph_error *error);

/* All zeros is allowed. */
void wav_clear(wav *sound);

#endif
