/* The tensors that go into a model: from .npy files, a picture, or random. */
#ifndef TOOLS_MODEL_INPUTS_H
#define TOOLS_MODEL_INPUTS_H

#include "options.h"

typedef struct model_inputs {
  pph_tensor *tensors; /* one per model input; data by malloc */
  bool *given;         /* came from a file */
  uint32_t count;
  uint32_t sound_rate; /* samples a second of the last sound; 0: none */
} model_inputs;

/* No input has data yet. Clear also after failure. */
PPH_NODISCARD pph_status model_inputs_init(const pph_model *model,
                                           model_inputs *inputs,
                                           pph_error *error);

/* PPH_INVALID_ARGUMENT when a --shape names no input, or one twice. */
PPH_NODISCARD pph_status model_inputs_check_shapes(const tool_options *options,
                                                   const pph_model *model,
                                                   pph_error *error);

/* Whether a --shape speaks of the input. */
bool model_inputs_has_shape(const tool_options *options,
                            const pph_model *model, uint32_t index);

/* The shape of an input that no file gives: that of --shape, else as declared;
   of open dimensions their bounds, else 1 for the first one and 64. */
PPH_NODISCARD pph_status model_inputs_shape(const tool_options *options,
                                            const pph_model *model,
                                            uint32_t index, pph_shape *shape,
                                            pph_error *error);

/* "1x3x64x64", as --shape takes it. */
const char *model_inputs_shape_text(const pph_shape *shape, char *text,
                                    size_t size);

/* Zeros in that shape; data by malloc. */
PPH_NODISCARD pph_status model_inputs_make(const tool_options *options,
                                           const pph_model *model,
                                           uint32_t index, pph_tensor *tensor,
                                           pph_error *error);

/* Reads every --input file, .npy or .wav. Names are the model's or positions.
   Inputs that no file gives stay without data (data NULL, given false). */
PPH_NODISCARD pph_status model_inputs_load(const tool_options *options,
                                           const pph_model *model,
                                           model_inputs *inputs,
                                           pph_error *error);

/* Gives the others their shape, and values: repeatable random ones in [0,1) of
   f32, zeros of other types, and what fits where they decide shapes
   (shape_values.h). */
PPH_NODISCARD pph_status model_inputs_fill(const tool_options *options,
                                           const pph_model *model,
                                           model_inputs *inputs,
                                           pph_error *error);

/* PPH_INVALID_ARGUMENT naming the first input that has no data. */
PPH_NODISCARD pph_status model_inputs_require(const pph_model *model,
                                              const model_inputs *inputs,
                                              pph_error *error);

void model_inputs_clear(model_inputs *inputs);

/* The input that `text` ("NAME=..." or "0=...") speaks of; *value gets what
   follows the '='. UINT32_MAX when there is none. */
uint32_t model_inputs_find(const pph_model *model, const char *text,
                           const char **value);
/* The same; PPH_INVALID_ARGUMENT, with the names that there are. */
PPH_NODISCARD pph_status model_inputs_require_known(const pph_model *model,
                                                    const char *text,
                                                    uint32_t *index,
                                                    const char **value,
                                                    pph_error *error);

/* The same of an output. */
PPH_NODISCARD pph_status model_output_require_known(const pph_model *model,
                                                    const char *text,
                                                    uint32_t *index,
                                                    const char **value,
                                                    pph_error *error);

/* "OUTPUT=INPUT", each a name or a position. */
PPH_NODISCARD pph_status model_feed_require_known(const pph_model *model,
                                                  const char *text,
                                                  uint32_t *output,
                                                  uint32_t *input,
                                                  pph_error *error);

#endif
