#include "optimize/xnn_conv.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

enum { MOST_CHANNELS = 1 << 16, MOST_LENGTH = 1 << 24 };

static bool is_plain(const pph_payload_tensor *tensor, uint32_t dims) {
  return tensor->datatype == PPH_PAYLOAD_F32 && tensor->num_dims == dims;
}

static bool is_image(const pph_payload_tensor *tensor) {
  return is_plain(tensor, 4) && tensor->dims.at[0] >= 1 &&
         tensor->dims.at[1] >= 1 && tensor->dims.at[2] >= 1 &&
         tensor->dims.at[3] >= 1 && tensor->dims.at[1] <= MOST_LENGTH &&
         tensor->dims.at[2] <= MOST_LENGTH &&
         tensor->dims.at[3] <= MOST_CHANNELS;
}

bool pph_xnn_conv_is_plain(const pph_delegate_edit *edit,
                           const pph_payload_conv *conv) {
  const pph_payload_tensor *input = pph_edit_tensor(edit, conv->input1_id);
  const pph_payload_tensor *output = pph_edit_tensor(edit, conv->output_id);
  const pph_payload_tensor *filter = pph_edit_tensor(edit, conv->filter_id);
  uint32_t in = conv->group_input_channels, out = conv->group_output_channels;
  if (conv->bias_id != PPH_PAYLOAD_NONE) {
    const pph_payload_tensor *bias = pph_edit_tensor(edit, conv->bias_id);
    if (!is_plain(bias, 1) || !bias->constant_buffer_idx ||
        bias->dims.at[0] != out)
      return false;
  }
  return conv->groups == 1 && !conv->flags && is_image(input) &&
         is_image(output) && is_plain(filter, 4) &&
         filter->constant_buffer_idx && filter->dims.at[0] == out &&
         filter->dims.at[1] == conv->kernel_height &&
         filter->dims.at[2] == conv->kernel_width &&
         filter->dims.at[3] == in && input->dims.at[3] == in &&
         output->dims.at[3] == out && output->dims.at[0] == input->dims.at[0];
}

pph_status pph_xnn_conv_read(pph_delegate_edit *edit, uint32_t id,
                             const float **floats,
                             const pph_pte_external **external) {
  const pph_payload_tensor *tensor = pph_edit_tensor(edit, id);
  size_t needed;
  pph_pte_bytes bytes;
  if (!pph_payload_count_bytes(tensor, &needed))
    return pph_fail_memory(edit->x.error);
  PPH_TRY(pph_delegate_edit_find_bytes(edit, tensor->constant_buffer_idx,
                                       needed, &bytes, external));
  float *aligned = pph_arena_allocate(edit->x.arena, needed + 1, 1);
  if (!aligned)
    return pph_fail_memory(edit->x.error);
  memcpy(aligned, bytes.at, needed);
  *floats = aligned;
  return PPH_OK;
}

void pph_xnn_conv_describe(const pph_payload_conv *conv, char *text,
                           size_t size) {
  snprintf(text, size, "%u to %u channels, %ux%u", conv->group_input_channels,
           conv->group_output_channels, conv->kernel_height,
           conv->kernel_width);
}
