#include "sound_tensor.h"

#include "base/checked.h"
#include "base/fail.h"
#include "npy.h"
#include "output_file.h"
#include "wav.h"

static pph_status check_takes_sound(const char *path,
                                    const pph_value_info *input,
                                    uint32_t channels, pph_error *error) {
  char shape[128];
  if (input->type != PPH_F32 || input->shape.rank == 0)
    return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                    "the input \"%s\" takes no sound: it is %s %s, must be f32 "
                    "[..,1,samples]",
                    input->name, pph_dtype_name(input->type),
                    pph_shape_text(&input->shape, shape, sizeof shape));
  if (channels != 1)
    return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                    "the sound has %u channels, must have 1", channels);
  return PPH_OK;
}

static pph_status load_sound(const char *path, const pph_value_info *input,
                             pph_tensor *tensor, uint32_t *rate,
                             pph_error *error) {
  wav sound;
  PPH_TRY(wav_load(path, &sound, error));
  pph_status status = check_takes_sound(path, input, sound.channels, error);
  if (status != PPH_OK) {
    wav_clear(&sound);
    return status;
  }
  int32_t rank = input->shape.rank < 0 ? 3 : input->shape.rank;
  *tensor = (pph_tensor){PPH_F32, {.rank = rank}, sound.samples};
  for (int32_t i = 0; i < rank - 1; i++)
    tensor->shape.dims[i] = 1;
  tensor->shape.dims[rank - 1] = (int64_t)sound.frames;
  *rate = sound.rate;
  return PPH_OK;
}

pph_status sound_or_array_load(const char *path, const pph_value_info *input,
                               pph_tensor *tensor, uint32_t *rate,
                               pph_error *error) {
  return output_file_ends_in(path, ".wav")
             ? load_sound(path, input, tensor, rate, error)
             : npy_load(path, tensor, error);
}

pph_status sound_save(const char *path, const pph_tensor *tensor,
                      bool has_steps, uint32_t rate, pph_error *error) {
  size_t count;
  char shape[128];
  int32_t rank = tensor->shape.rank;
  if (tensor->type != PPH_F32 || rank < 1 + has_steps ||
      !pph_shape_count(&tensor->shape, &count) ||
      count != (size_t)(tensor->shape.dims[rank - 1] *
                        (has_steps ? tensor->shape.dims[0] : 1)))
    return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                    "output 0 is no sound: it is %s %s, must be f32 and one "
                    "signal, [..,1,samples]",
                    pph_dtype_name(tensor->type),
                    pph_shape_text(&tensor->shape, shape, sizeof shape));
  wav sound = {rate, 1, count, tensor->data};
  return wav_save(path, &sound, error);
}
