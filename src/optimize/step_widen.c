/* Convolutions of few output channels become ones of several pixels at once:
   XNNPACK computes channels 16 at a time, and a kernel that is wider by p - 1
   columns, at stride p, gives p pixels as channels, which lie as pixels do. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "optimize/delegate_edit.h"
#include "optimize/xnn_conv.h"

enum { MOST_PIXELS = PPH_XNN_LANES, MOST_TAPS = 64 };

/* The axis along which pixels are joined, as the node has it. */
typedef struct row {
  uint32_t axis;       /* 2: columns; 1: rows of one column */
  uint32_t taps, step; /* of the kernel */
  uint32_t length;     /* of the output */
} row;

static bool find_row(const pph_delegate_edit *edit,
                     const pph_payload_conv *conv, row *along) {
  const pph_payload_tensor *input = pph_edit_tensor(edit, conv->input1_id);
  const pph_payload_tensor *output = pph_edit_tensor(edit, conv->output_id);
  bool is_column = input->dims.at[2] == 1 && conv->kernel_width == 1;
  *along = is_column ? (row){.axis = 1,
                             .taps = conv->kernel_height,
                             .step = conv->subsampling_height *
                                     conv->dilation_height}
                     : (row){.axis = 2,
                             .taps = conv->kernel_width,
                             .step = conv->subsampling_width *
                                     conv->dilation_width};
  along->length = output->dims.at[along->axis];
  return along->step == 1 && along->taps >= 1 && along->taps <= MOST_TAPS &&
         (!is_column || output->dims.at[2] == 1);
}

/* Times as fast with `pixels` at once. */
static double find_gain(const pph_delegate_edit *edit,
                        const pph_payload_conv *conv, const row *along,
                        uint32_t pixels) {
  pph_payload_dims d = pph_payload_dims_of(&edit->x, conv->output_id);
  double area = (double)d.at[0] * d.at[1] * d.at[2];
  double other = along->axis == 2 ? conv->kernel_height : conv->kernel_width;
  double depth = area * other * conv->group_input_channels;
  double old = depth * along->taps * pph_xnn_round_to_lanes(d.at[3]);
  double made = depth * (along->taps + pixels - 1) / pixels *
                pph_xnn_round_to_lanes(d.at[3] * pixels);
  double moved = 2.0 * sizeof(float) * area * d.at[3];
  return old / pph_xnn_macs_per_us /
         (made / pph_xnn_macs_per_us + moved / pph_xnn_bytes_per_us +
          pph_xnn_node_us);
}

/* 1 where it does not pay. */
static uint32_t choose_pixels(const pph_delegate_edit *edit,
                              const pph_payload_conv *conv, const row *along,
                              double *gain) {
  uint32_t best = 1, only = edit->options->only_pixels;
  *gain = pph_xnn_least_gain;
  if (only)
    return only <= MOST_PIXELS && along->length % only == 0 ? only : 1;
  for (uint32_t pixels = 2; pixels <= MOST_PIXELS; pixels++) {
    if (along->length % pixels)
      continue;
    double found = find_gain(edit, conv, along, pixels);
    if (found > *gain) {
      *gain = found;
      best = pixels;
    }
  }
  return best;
}

/* Weights [pixel][out][y][x][in] of [out][y][x][in], one row of taps after the
   other; those of a pixel begin at its place, and others are 0. */
static void spread_taps(const pph_payload_dims *old, const row *along,
                        uint32_t pixels, const float *from, float *to) {
  const uint32_t lines = old->at[0] * (along->axis == 2 ? old->at[1] : 1);
  const size_t depth = (size_t)old->at[3], wide = along->taps + pixels - 1;
  for (uint32_t pixel = 0; pixel < pixels; pixel++)
    for (uint32_t line = 0; line < lines; line++) {
      float *at = to + ((size_t)pixel * lines + line) * wide * depth;
      memcpy(at + pixel * depth, from + (size_t)line * along->taps * depth,
             along->taps * depth * sizeof *to);
    }
}

static pph_status widen_filter(pph_delegate_edit *edit,
                               const pph_payload_conv *conv, const row *along,
                               uint32_t pixels, uint32_t *id) {
  const pph_payload_dims old = pph_payload_dims_of(&edit->x, conv->filter_id);
  pph_made_constant made = {.like = &edit->x.values[conv->filter_id],
                            .dims = old};
  size_t count;
  const float *from;
  made.dims.at[0] *= pixels;
  made.dims.at[along->axis] += pixels - 1;
  const pph_shape shape = {4, {made.dims.at[0], made.dims.at[1],
                               made.dims.at[2], made.dims.at[3]}};
  if (!pph_shape_count(&shape, &count))
    return pph_fail_memory(edit->x.error);
  PPH_TRY(pph_xnn_conv_read(edit, conv->filter_id, &from, &made.external));
  float *to = pph_arena_allocate(edit->x.arena, count, sizeof *to);
  if (!to)
    return pph_fail_memory(edit->x.error);
  memset(to, 0, count * sizeof *to);
  spread_taps(&old, along, pixels, from, to);
  made.bytes = (pph_pte_bytes){(const uint8_t *)to, count * sizeof *to};
  return pph_delegate_edit_add_constant(edit, &made, id);
}

static pph_status repeat_bias(pph_delegate_edit *edit, uint32_t channels,
                              uint32_t pixels, uint32_t *id) {
  if (*id == PPH_PAYLOAD_NONE)
    return PPH_OK;
  pph_made_constant made = {.like = &edit->x.values[*id],
                            .dims = {1, {channels * pixels}}};
  const float *from;
  PPH_TRY(pph_xnn_conv_read(edit, *id, &from, &made.external));
  float *to = pph_arena_allocate(edit->x.arena, (size_t)channels * pixels,
                                 sizeof *to);
  if (!to)
    return pph_fail_memory(edit->x.error);
  for (uint32_t i = 0; i < pixels; i++)
    memcpy(to + (size_t)i * channels, from, channels * sizeof *to);
  made.bytes = (pph_pte_bytes){(const uint8_t *)to,
                               (size_t)channels * pixels * sizeof *to};
  return pph_delegate_edit_add_constant(edit, &made, id);
}

static pph_status widen(pph_delegate_edit *edit, const pph_payload_node *node,
                        const row *along, uint32_t pixels) {
  const pph_payload_conv *old = node->xnode_union.value;
  pph_payload_export *x = &edit->x;
  pph_payload_conv conv = *old;
  const pph_payload_dims whole = pph_payload_dims_of(x, old->output_id);
  pph_payload_dims dims = whole;
  uint32_t id;
  dims.at[along->axis] /= pixels;
  dims.at[3] *= pixels;
  if (along->axis == 2) {
    conv.kernel_width += pixels - 1;
    conv.subsampling_width = pixels;
  } else {
    conv.kernel_height += pixels - 1;
    conv.subsampling_height = pixels;
  }
  conv.group_output_channels *= pixels;
  PPH_TRY(widen_filter(edit, old, along, pixels, &conv.filter_id));
  PPH_TRY(repeat_bias(edit, old->group_output_channels, pixels,
                      &conv.bias_id));
  x->like = &x->values[old->output_id];
  PPH_TRY(pph_payload_put_value(x, &dims, &id));
  conv.output_id = id;
  PPH_TRY(pph_payload_put_node(x, PPH_PAYLOAD_CONV, &conv, sizeof conv,
                               node->output_min_max));
  PPH_TRY(pph_payload_put_reshape(x, &whole, &id));
  pph_delegate_edit_rename_last(edit, old->output_id);
  return PPH_OK;
}

static pph_status visit(pph_delegate_edit *edit, const pph_payload_node *node,
                        bool *taken) {
  const pph_payload_conv *conv = node->xnode_union.value;
  row along;
  double gain;
  char details[96], text[96];
  if (node->xnode_union.type != PPH_PAYLOAD_CONV || edit->is_dynamic ||
      !pph_xnn_conv_is_plain(edit, conv) || !find_row(edit, conv, &along))
    return PPH_OK;
  uint32_t pixels = choose_pixels(edit, conv, &along, &gain);
  if (pixels == 1)
    return PPH_OK;
  *taken = true;
  edit->changes++;
  pph_xnn_conv_describe(conv, details, sizeof details);
  snprintf(text, sizeof text,
           "%u pixels at once, expected to be %.1f times as fast", pixels,
           gain);
  pph_delegate_edit_report(edit, node, details, text);
  return widen(edit, node, &along, pixels);
}

pph_status pph_optimize_widen(pph_delegate_edit *edit) {
  return pph_delegate_edit_walk(edit, visit);
}
