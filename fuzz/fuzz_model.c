/* From bytes to results: a model is loaded, planned and run, on both engines,
   optimized and not. The first byte chooses the options; unknown dimensions
   become small. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_common.h"
#include "polyphase/polyphase.h"

enum { MAX_INPUTS = 8, INPUT_BYTES = 1 << 16 };

static bool make_input(const pph_model *model, uint32_t index, void *data,
                       pph_tensor *tensor) {
  pph_value_info info = pph_model_input(model, index);
  size_t bytes = pph_dtype_size(info.type);
  *tensor = (pph_tensor){info.type, info.shape, data};
  if (tensor->shape.rank < 0)
    tensor->shape.rank = 1;
  for (int32_t i = 0; i < tensor->shape.rank; i++) {
    int64_t *dim = &tensor->shape.dims[i];
    if (info.shape.rank < 0 || *dim < 0)
      *dim = i < 2 ? 1 : 5;
    if (*dim > INPUT_BYTES)
      return false;
    bytes *= (size_t)*dim;
    if (bytes > INPUT_BYTES)
      return false;
  }
  return true;
}

static void run_model(const pph_model *model, uint8_t choice) {
  static char data[INPUT_BYTES];
  pph_session_options options;
  pph_session_options_init(&options);
  options.engine = choice & 1 ? PPH_ENGINE_REFERENCE : PPH_ENGINE_AUTO;
  options.optimize = !(choice & 2);
  options.lowering = choice & 4 ? PPH_LOWERING_ALWAYS : PPH_LOWERING_AUTO;
  pph_tensor inputs[MAX_INPUTS], *outputs;
  uint32_t input_count = pph_model_input_count(model);
  uint32_t output_count = pph_model_output_count(model);
  if (input_count > MAX_INPUTS)
    return;
  for (uint32_t i = 0; i < input_count; i++)
    if (!make_input(model, i, data, &inputs[i]))
      return;
  pph_session *session;
  pph_error error;
  outputs = calloc(output_count + 1, sizeof *outputs);
  if (outputs &&
      pph_session_create(model, &options, &session, &error) == PPH_OK) {
    if (pph_session_run(session, inputs, input_count, outputs, output_count,
                        &error) != PPH_OK)
      memset(&error, 0, sizeof error);
    pph_session_destroy(session);
  }
  free(outputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size)
    return 0;
  pph_limits limits = fuzz_limits();
  pph_model_options options;
  pph_model_options_init(&options);
  options.limits = &limits;
  pph_model *model;
  pph_error error;
  if (pph_model_load_bytes(data + 1, size - 1, NULL, &options, &model,
                           &error) == PPH_OK) {
    run_model(model, data[0]);
    pph_model_destroy(model);
  }
  return 0;
}
