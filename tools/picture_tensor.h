/* Between pictures and tensors. */
#ifndef TOOLS_PICTURE_TENSOR_H
#define TOOLS_PICTURE_TENSOR_H

#include "model_inputs.h"
#include "picture.h"

/* Makes the picture the model's one input: f32 of rank 4, NCHW or NHWC by where
   1, 3 or 4 channels are declared (NCHW when both could be). Gray and colour
   are converted to the channels that the model takes. tensor->data is
   malloc'd. PPH_INVALID_ARGUMENT says why a model takes no picture. */
PPH_NODISCARD pph_status picture_to_tensor(const tool_options *options,
                                           const pph_model *model,
                                           const picture *image,
                                           pph_tensor *tensor,
                                           pph_error *error);

/* Whether an output can be a picture: f32 or u8 of rank 4 with batch 1, or rank
   3, with 1, 3 or 4 channels first or last. */
bool picture_fits(const pph_tensor *tensor);

/* Values (x * deviation + mean) / scale, rounded and clamped to 0..255. */
PPH_NODISCARD pph_status picture_from_tensor(const picture_range *range,
                                             const pph_tensor *tensor,
                                             picture *image,
                                             pph_error *error);

#endif
