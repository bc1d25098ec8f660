#include "wav.h"

#include <errno.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "output_file.h"

enum { FIRST_FRAMES = 1 << 16 };

void wav_clear(wav *sound) {
  free(sound->samples);
  *sound = (wav){.rate = 0};
}

/* The header's count of frames may lie, so that memory grows with what is
   really there. */
static pph_status read_frames(SNDFILE *file, const char *path, wav *sound,
                              pph_error *error) {
  size_t capacity = 0;
  for (;;) {
    if (sound->frames == capacity) {
      capacity = capacity ? capacity * 2 : FIRST_FRAMES;
      float *grown = reallocarray(sound->samples, capacity,
                                  sound->channels * sizeof *grown);
      if (!grown)
        return pph_fail_memory(error);
      sound->samples = grown;
    }
    sf_count_t got =
        sf_readf_float(file, sound->samples + sound->frames * sound->channels,
                       (sf_count_t)(capacity - sound->frames));
    if (got <= 0)
      break;
    sound->frames += (size_t)got;
    if (sound->frames > WAV_MAX_FRAMES)
      return pph_fail(error, PPH_LIMIT_EXCEEDED, path,
                      "more than %d frames", WAV_MAX_FRAMES);
  }
  if (sf_error(file) != SF_ERR_NO_ERROR)
    return pph_fail(error, PPH_BAD_MODEL, path, "sound: %s",
                    sf_strerror(file));
  return PPH_OK;
}

pph_status wav_load(const char *path, wav *sound, pph_error *error) {
  SF_INFO info = {.format = 0};
  *sound = (wav){.rate = 0};
  SNDFILE *file = sf_open(path, SFM_READ, &info);
  if (!file)
    return pph_fail(error,
                    sf_error(NULL) == SF_ERR_SYSTEM ? PPH_IO_FAILED
                                                    : PPH_BAD_MODEL,
                    path, "sound: %s", sf_strerror(NULL));
  sound->rate = (uint32_t)info.samplerate;
  sound->channels = (uint32_t)info.channels;
  pph_status status =
      info.channels == 1 || info.channels == 2
          ? read_frames(file, path, sound, error)
          : pph_fail(error, PPH_UNSUPPORTED, path,
                     "%d channels, must be 1 or 2", info.channels);
  sf_close(file);
  if (status != PPH_OK)
    wav_clear(sound);
  return status;
}

static pph_status write_frames(FILE *target, const char *path,
                               const wav *sound, pph_error *error) {
  SF_INFO info = {.samplerate = (int)sound->rate,
                  .channels = (int)sound->channels,
                  .format = SF_FORMAT_WAV | SF_FORMAT_FLOAT};
  SNDFILE *file = sf_open_fd(fileno(target), SFM_WRITE, &info, SF_FALSE);
  if (!file)
    return pph_fail(error, PPH_IO_FAILED, path, "sound: %s",
                    sf_strerror(NULL));
  /* The chunk would hold the time of day: equal sounds, unequal files. */
  sf_command(file, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE);
  sf_count_t frames = (sf_count_t)sound->frames;
  pph_status status = PPH_OK;
  if (sf_writef_float(file, sound->samples, frames) != frames)
    status = pph_fail(error, PPH_IO_FAILED, path, "sound: %s",
                      sf_strerror(file));
  if (sf_close(file) != 0 && status == PPH_OK)
    status = pph_fail(error, PPH_IO_FAILED, path,
                      "cannot finish the sound file");
  return status;
}

pph_status wav_save(const char *path, const wav *sound, pph_error *error) {
  if (!sound->rate || sound->rate > INT32_MAX || !sound->channels ||
      sound->channels > 2 || sound->frames > WAV_MAX_FRAMES)
    return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                    "rate %u with %u channels, must be at least 1 with 1 or 2",
                    sound->rate, sound->channels);
  output_file output;
  PPH_TRY(output_file_open(path, &output, error));
  pph_status status = write_frames(output.file, path, sound, error);
  return output_file_close(&output, status, error);
}
