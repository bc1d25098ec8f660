/* Moving and interpolating pixels by a transposed convolution: it does products
   with zeros that a copy would not, but states no length, so that height and
   width may both be open. */
#include <math.h>

#include "base/fail.h"
#include "pte/xnn_export.h"

/* Channels of a group: as many as fill a register, since the least group is a
   matrix product of its own. */
static uint32_t choose_group(uint32_t channels) {
  uint32_t group = 16;
  while (channels % group)
    group--;
  return group;
}

/* The channel of a group's input that goes to channel `out` at a tap. */
static size_t find_source(const pph_payload_spread *spread, size_t group,
                          size_t out, size_t tap, size_t taps) {
  switch (spread->order) {
  case PPH_PAYLOAD_SPREAD_COPIES:
  case PPH_PAYLOAD_SPREAD_LINEAR:
    return out;
  case PPH_PAYLOAD_SPREAD_BLOCKS:
    return tap * group + out;
  case PPH_PAYLOAD_SPREAD_CHANNELS:
    return out * taps + tap;
  }
  return out;
}

static uint32_t find_kernel(const pph_payload_spread *spread, int axis) {
  uint32_t block = spread->block[axis];
  return spread->order == PPH_PAYLOAD_SPREAD_LINEAR && block > 1 ? 2 * block
                                                                 : block;
}

/* A pixel's share in the output at a tap, along one axis: less the further the
   tap is from the middle of the pixel's block. */
static float find_share(uint32_t kernel, uint32_t block, uint32_t tap) {
  if (kernel == block)
    return 1;
  float place = ((float)tap - (float)(block / 2) + 0.5f) / (float)block - 0.5f;
  return fmaxf(0, 1 - fabsf(place));
}

static void fill_filter(const pph_payload_spread *spread, size_t channels,
                        size_t group, size_t in, float *filter) {
  uint32_t height = find_kernel(spread, 0), width = find_kernel(spread, 1);
  size_t taps = (size_t)height * width;
  for (size_t row = 0; row < channels; row++)
    for (uint32_t y = 0; y < height; y++)
      for (uint32_t x = 0; x < width; x++) {
        size_t tap = (size_t)y * width + x;
        filter[(row * taps + tap) * in +
               find_source(spread, group, row % group, tap, taps)] =
            find_share(height, spread->block[0], y) *
            find_share(width, spread->block[1], x);
      }
}

static bool keeps_channels(const pph_payload_spread *spread) {
  return spread->order == PPH_PAYLOAD_SPREAD_COPIES ||
         spread->order == PPH_PAYLOAD_SPREAD_LINEAR;
}

pph_status pph_payload_describe_spread(pph_payload_export *x,
                                       const pph_payload_spread *spread,
                                       uint32_t channels,
                                       pph_payload_conv *conv) {
  uint32_t height = find_kernel(spread, 0), width = find_kernel(spread, 1);
  uint32_t group = spread->order == PPH_PAYLOAD_SPREAD_BLOCKS
                       ? channels
                       : choose_group(channels);
  size_t taps = (size_t)height * width;
  size_t in = keeps_channels(spread) ? group : group * taps;
  const pph_payload_dims dims = {
      4, {channels, height, width, (uint32_t)in}};
  if (channels > (1 << 28) / taps / in)
    return pph_payload_refuse(x, "too many channels for open lengths");
  float *filter = pph_arena_allocate(x->arena, channels * taps * in,
                                     sizeof *filter);
  if (!filter)
    return pph_fail_memory(x->error);
  fill_filter(spread, channels, group, in, filter);
  *conv = (pph_payload_conv){.padding_top = spread->begin[0],
                             .padding_left = spread->begin[1],
                             .padding_bottom = spread->end[0],
                             .padding_right = spread->end[1],
                             .kernel_height = height,
                             .kernel_width = width,
                             .subsampling_height = spread->block[0],
                             .subsampling_width = spread->block[1],
                             .dilation_height = 1,
                             .dilation_width = 1,
                             .group_input_channels = (uint32_t)in,
                             .group_output_channels = group,
                             .groups = channels / group,
                             .bias_id = PPH_PAYLOAD_NONE};
  return pph_payload_put_packed(x, filter, &dims, &conv->filter_id);
}

pph_status pph_payload_put_spread(pph_payload_export *x,
                                  const pph_payload_spread *spread,
                                  uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, *id);
  pph_payload_conv conv;
  if (!keeps_channels(spread))
    dims.at[3] /= spread->block[0] * spread->block[1];
  PPH_TRY(pph_payload_describe_spread(x, spread, dims.at[3], &conv));
  for (int i = 0; i < 2; i++)
    dims.at[1 + i] = (dims.at[1 + i] - 1) * spread->block[i] +
                     find_kernel(spread, i) - spread->begin[i] -
                     spread->end[i];
  conv.input1_id = *id;
  PPH_TRY(pph_payload_put_value(x, &dims, id));
  conv.output_id = *id;
  return pph_payload_put_node(x, PPH_PAYLOAD_CONV_TRANSPOSE, &conv,
                              sizeof conv, NULL);
}
