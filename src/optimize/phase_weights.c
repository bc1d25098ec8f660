#include "optimize/phase_weights.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

/* Bytes of an element of a filter or bias that is copied here; 0 for others. */
static size_t element_size(const pph_payload_tensor *tensor) {
  static const uint8_t sizes[PPH_PAYLOAD_TYPE_COUNT] = {
      [PPH_PAYLOAD_F32] = 4, [PPH_PAYLOAD_F16] = 2, [PPH_PAYLOAD_Q8] = 1,
      [PPH_PAYLOAD_QU8] = 1, [PPH_PAYLOAD_Q32] = 4, [PPH_PAYLOAD_QC8] = 1,
      [PPH_PAYLOAD_QC32] = 4};
  return sizes[tensor->datatype];
}

/* NULL for a value that is not quantized so. */
static const void *find_quantization(const pph_payload_value *value,
                                     uint8_t type) {
  const pph_payload_quantized *quantized = value->xvalue_union.value;
  return value->xvalue_union.type == 2 && quantized->quant_params.type == type
             ? quantized->quant_params.value
             : NULL;
}

const char *pph_phase_find_obstacle(const pph_delegate_edit *edit,
                                    const pph_payload_conv *conv) {
  const uint32_t ids[2] = {conv->filter_id, conv->bias_id};
  for (int i = 0; i < 2; i++) {
    if (i == 1 && ids[i] == PPH_PAYLOAD_NONE)
      continue;
    const pph_payload_tensor *tensor = pph_edit_tensor(edit, ids[i]);
    const pph_payload_per_channel *channels =
        find_quantization(&edit->x.values[ids[i]], PPH_PAYLOAD_PER_CHANNEL);
    if (!tensor->constant_buffer_idx)
      return i ? "its bias is not a constant" : "its filter is not a constant";
    if (!element_size(tensor))
      return "its weights are packed";
    if (channels && channels->channel_dim != 0)
      return "its scales are not those of output channels";
  }
  return NULL;
}

pph_phase_window pph_phase_find_window(const pph_polyphase_plan *plan,
                                       const pph_phase_block *block) {
  bool is_bias = pph_phase_block_is_bias(plan, block);
  pph_phase_window w;
  for (int i = 0; i < 2; i++) {
    const pph_phase_run *run = block->run[i];
    w.taps[i] = is_bias ? 1 : run->taps;
    w.step[i] = is_bias ? 1 : run->tap_step;
    w.pad_begin[i] = is_bias ? 0 : run->pad_begin;
    w.pad_end[i] = is_bias ? plan->axes[i].frame.length -
                                 plan->axes[i].axis.input
                           : run->pad_end;
  }
  return w;
}

/* What copying a phase needs. */
typedef struct copier {
  const pph_payload_conv *conv;
  const uint8_t *from;
  uint8_t *to;
  size_t size; /* of an element */
  int64_t taps[2], rows, depth;
  bool depthwise;
} copier;

/* One tap of one output channel: `depth` elements. The filter is [row][y][x]
   [depth], or [y][x][row] for a depthwise one. */
static void copy_tap(const copier *c, int64_t from_row, int64_t to_row,
                     const int64_t *from_tap, const int64_t *to_tap) {
  int64_t width = c->conv->kernel_width;
  int64_t from = (from_row * c->conv->kernel_height + from_tap[0]) * width +
                 from_tap[1];
  int64_t tap = to_tap[0] * c->taps[1] + to_tap[1];
  int64_t to = c->depthwise ? tap * c->rows + to_row
                            : to_row * c->taps[0] * c->taps[1] + tap;
  size_t bytes = (size_t)c->depth * c->size;
  memcpy(c->to + (size_t)to * bytes, c->from + (size_t)from * bytes, bytes);
}

static void copy_phase(const copier *c, const pph_tap_map *maps,
                       int64_t channels, int64_t first_row) {
  for (int64_t row = 0; row < channels; row++)
    for (int64_t v = 0; v < maps[0].taps; v++)
      for (int64_t u = 0; u < maps[1].taps; u++) {
        const int64_t from[2] = {maps[0].last - v * maps[0].step,
                                 maps[1].last - u * maps[1].step};
        const int64_t to[2] = {v + maps[0].skip, u + maps[1].skip};
        copy_tap(c, row, first_row + row, from, to);
      }
}

static void copy_block(const copier *c, const pph_phase_source *source,
                       const pph_phase_block *block) {
  const pph_polyphase_plan *plan = source->plan;
  const int64_t *count = block->count;
  for (int64_t y = 0; y < count[0]; y++)
    for (int64_t x = 0; x < count[1]; x++) {
      int64_t place = source->columns_first ? x * count[0] + y
                                            : y * count[1] + x;
      const pph_tap_map maps[2] = {
          pph_phase_map_taps(&plan->axes[0], block->run[0],
                             block->first[0] + y),
          pph_phase_map_taps(&plan->axes[1], block->run[1],
                             block->first[1] + x)};
      copy_phase(c, maps, plan->window.out_channels,
                 place * plan->window.out_channels);
    }
}

static int64_t count_phases(const pph_phase_block *block) {
  return block->count[0] * block->count[1];
}

/* `count` scales, `times` over. Without scales per channel there are none. */
static pph_status repeat_scales(pph_delegate_edit *edit,
                                const pph_payload_value *like, uint32_t count,
                                uint32_t times, pph_made_constant *made) {
  const pph_payload_per_channel *channels =
      find_quantization(like, PPH_PAYLOAD_PER_CHANNEL);
  pph_pte_bytes bytes = {NULL, 0};
  const pph_pte_external *external;
  if (!channels)
    return PPH_OK;
  if (channels->scale_buffer_idx)
    PPH_TRY(pph_delegate_edit_find_bytes(edit, channels->scale_buffer_idx,
                                         count * sizeof(float), &bytes,
                                         &external));
  else
    bytes.at = (const uint8_t *)channels->scale.at;
  float *scales = pph_arena_allocate(edit->x.arena, (size_t)count * times,
                                     sizeof *scales);
  if (!scales)
    return pph_fail_memory(edit->x.error);
  for (uint32_t i = 0; i < times; i++)
    memcpy(scales + (size_t)i * count, bytes.at, count * sizeof *scales);
  made->scales = scales;
  made->scale_count = count * times;
  return PPH_OK;
}

static uint8_t zero_byte(const pph_payload_value *value) {
  const pph_payload_per_tensor *whole =
      find_quantization(value, PPH_PAYLOAD_PER_TENSOR);
  return whole ? (uint8_t)whole->zero_point : 0;
}

/* The filter's elements. */
static pph_status find_filter(const pph_delegate_edit *edit,
                              const pph_phase_source *source,
                              pph_pte_bytes *bytes,
                              const pph_pte_external **external) {
  const pph_payload_tensor *tensor =
      pph_edit_tensor(edit, source->conv->filter_id);
  size_t needed = 0;
  if (!pph_payload_count_bytes(tensor, &needed))
    return pph_fail_memory(edit->x.error);
  return pph_delegate_edit_find_bytes(edit, tensor->constant_buffer_idx,
                                      needed, bytes, external);
}

pph_status pph_phase_make_filter(pph_delegate_edit *edit,
                                 const pph_phase_source *source,
                                 const pph_phase_block *block, uint32_t *id) {
  const pph_payload_conv *conv = source->conv;
  const pph_payload_value *like = &edit->x.values[conv->filter_id];
  pph_made_constant made = {.like = like,
                            .channel = source->depthwise ? 3 : 0};
  pph_phase_window w = pph_phase_find_window(source->plan, block);
  int64_t channels = source->plan->window.out_channels;
  int64_t rows = channels * count_phases(block);
  pph_pte_bytes from;
  copier c = {.conv = conv,
              .size = element_size(pph_payload_tensor_of(like)),
              .taps = {w.taps[0], w.taps[1]},
              .rows = rows,
              .depth = conv->group_input_channels,
              .depthwise = source->depthwise};
  pph_shape shape = {4, {rows, w.taps[0], w.taps[1], c.depth}};
  size_t count;
  if (!pph_shape_count(&shape, &count) || rows > INT32_MAX)
    return pph_fail_memory(edit->x.error);
  c.to = pph_arena_allocate(edit->x.arena, count, c.size);
  if (!c.to)
    return pph_fail_memory(edit->x.error);
  memset(c.to, zero_byte(like), count * c.size);
  PPH_TRY(find_filter(edit, source, &from, &made.external));
  c.from = from.at;
  if (!pph_phase_block_is_bias(source->plan, block))
    copy_block(&c, source, block);
  made.bytes = (pph_pte_bytes){c.to, count * c.size};
  const uint32_t r = (uint32_t)rows, y = (uint32_t)w.taps[0],
                 x = (uint32_t)w.taps[1];
  made.dims = source->depthwise
                  ? (pph_payload_dims){4, {1, y, x, r}}
                  : (pph_payload_dims){4, {r, y, x, (uint32_t)c.depth}};
  PPH_TRY(repeat_scales(edit, like, (uint32_t)channels,
                        (uint32_t)count_phases(block), &made));
  return pph_delegate_edit_add_constant(edit, &made, id);
}

pph_status pph_phase_make_bias(pph_delegate_edit *edit,
                               const pph_phase_source *source,
                               const pph_phase_block *block, uint32_t *id) {
  uint32_t times = (uint32_t)count_phases(block);
  uint32_t channels = (uint32_t)source->plan->window.out_channels;
  *id = source->conv->bias_id;
  if (*id == PPH_PAYLOAD_NONE || times == 1)
    return PPH_OK;
  const pph_payload_value *like = &edit->x.values[*id];
  const pph_payload_tensor *tensor = pph_edit_tensor(edit, *id);
  pph_made_constant made = {.like = like};
  size_t bytes = channels * element_size(tensor);
  pph_pte_bytes from;
  PPH_TRY(pph_delegate_edit_find_bytes(edit, tensor->constant_buffer_idx,
                                       bytes, &from, &made.external));
  uint8_t *to = pph_arena_allocate(edit->x.arena, bytes, times);
  if (!to)
    return pph_fail_memory(edit->x.error);
  for (uint32_t i = 0; i < times; i++)
    memcpy(to + i * bytes, from.at, bytes);
  made.bytes = (pph_pte_bytes){to, times * bytes};
  made.dims = (pph_payload_dims){1, {channels * times}};
  PPH_TRY(repeat_scales(edit, like, channels, times, &made));
  return pph_delegate_edit_add_constant(edit, &made, id);
}
