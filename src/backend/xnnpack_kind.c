#include "backend/xnnpack_kind.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"

/* Beyond these XNNPACK's 32-bit arithmetic is not safe, and no net is. */
enum {
  MAX_STEP = 1 << 24, /* kernel, stride, dilation */
  MAX_PAD = 1 << 28
};

bool pph_xnn_find_floats(const pph_graph *graph, const pph_node *node,
                         uint32_t slot, pph_tensor *tensor) {
  return pph_node_find_constant(graph, node, slot, tensor) &&
         tensor->type == PPH_F32;
}

bool pph_xnn_optional_floats(const pph_graph *graph, const pph_node *node,
                             uint32_t slot, size_t count) {
  pph_tensor tensor;
  size_t found;
  if (!pph_node_find_input(graph, node, slot))
    return true;
  return pph_xnn_find_floats(graph, node, slot, &tensor) &&
         pph_shape_count(&tensor.shape, &found) && found == count;
}

bool pph_xnn_channels_last(const pph_value *value) {
  if (value->shape.rank < 3)
    return false;
  if (value->layout == PPH_LAYOUT_CHANNELS_LAST || value->shape.dims[1] == 1)
    return true;
  for (int32_t i = 2; i < value->shape.rank; i++)
    if (value->shape.dims[i] != 1)
      return false;
  return true;
}

bool pph_xnn_same_memory(const pph_value *a, const pph_value *b) {
  return pph_shape_equal(&a->shape, &b->shape) &&
         (a->shape.rank < 3 || a->layout == b->layout ||
          (pph_xnn_channels_last(a) && pph_xnn_channels_last(b)));
}

bool pph_xnn_legal_range(float min, float max) { return min < max; }

float pph_xnn_float_at(const void *data, size_t index) {
  float value;
  memcpy(&value, (const char *)data + index * sizeof value, sizeof value);
  return value;
}

pph_status pph_xnn_copy_floats(pph_heap *heap, const void *data, size_t count,
                               float **copy, pph_error *error) {
  *copy = NULL;
  if (!data)
    return PPH_OK;
  *copy = pph_heap_allocate(heap, count, sizeof **copy);
  if (!*copy)
    return pph_fail_memory(error);
  memcpy(*copy, data, count * sizeof **copy);
  return PPH_OK;
}

pph_status pph_xnn_check_bytes(const pph_heap *heap, const char *what,
                               size_t bytes, pph_error *error) {
  size_t limit = heap->limit ? heap->limit : SIZE_MAX / 2;
  if (bytes <= limit)
    return PPH_OK;
  return pph_fail(error, PPH_LIMIT_EXCEEDED, NULL,
                  "XNNPACK's %s takes %zu bytes, must be at most %zu", what,
                  bytes, limit);
}

static bool within(int64_t value, int64_t low, int64_t high) {
  return value >= low && value <= high;
}

static bool set_axis(const pph_window *source, uint32_t from, uint32_t to,
                     pph_xnn_window *window) {
  if (!within(source->input[from], 1, INT32_MAX) ||
      !within(source->output[from], 1, INT32_MAX) ||
      !within(source->kernel[from], 1, MAX_STEP) ||
      !within(source->stride[from], 1, MAX_STEP) ||
      !within(source->dilation[from], 1, MAX_STEP))
    return false;
  window->input[to] = (size_t)source->input[from];
  window->output[to] = (size_t)source->output[from];
  window->kernel[to] = (uint32_t)source->kernel[from];
  window->stride[to] = (uint32_t)source->stride[from];
  window->dilation[to] = (uint32_t)source->dilation[from];
  return true;
}

/* The axis of `window` that spatial axis `axis` of the node lies along. */
static uint32_t place(const pph_window *source, uint32_t axis) {
  return source->axes == 1 ? 1 : axis;
}

bool pph_xnn_find_window(const pph_graph *graph, const pph_node *node,
                         pph_window *source, pph_xnn_window *window) {
  *source = (pph_window){0};
  if (pph_shape_find_window(graph, node, source, NULL) != PPH_OK ||
      !within(source->axes, 1, 2) || !within(source->batch, 1, INT32_MAX) ||
      !within(source->group, 1, MAX_STEP) ||
      !within(source->in_channels, source->group, INT32_MAX / 2) ||
      !within(source->out_channels, source->group, INT32_MAX / 2))
    return false;
  *window = (pph_xnn_window){
      .batch = (size_t)source->batch,
      .input = {1, 1},
      .output = {1, 1},
      .kernel = {1, 1},
      .stride = {1, 1},
      .dilation = {1, 1},
      .groups = (uint32_t)source->group,
      .group_in = (size_t)(source->in_channels / source->group),
      .group_out = (size_t)(source->out_channels / source->group),
      .min = -INFINITY,
      .max = INFINITY};
  for (uint32_t i = 0; i < source->axes; i++)
    if (!set_axis(source, i, place(source, i), window))
      return false;
  return true;
}

bool pph_xnn_find_pads(const pph_window *source, pph_xnn_window *window) {
  for (uint32_t i = 0; i < source->axes; i++) {
    uint32_t to = place(source, i);
    int64_t begin = source->pad_begin[i];
    if (!within(begin, 0, MAX_PAD))
      return false;
    int64_t stride = source->stride[i], output = source->output[i];
    int64_t extent = source->dilation[i] * (source->kernel[i] - 1) + 1;
    int64_t room = begin + source->input[i];
    int64_t end = pph_max_i64((output - 1) * stride + extent - room, 0);
    if (!within(end, 0, MAX_PAD) || room + end < extent ||
        (room + end - extent) / stride + 1 != output)
      return false;
    window->pad_begin[to] = (uint32_t)begin;
    window->pad_end[to] = (uint32_t)end;
  }
  return true;
}

bool pph_xnn_windows_touch_input(const pph_xnn_window *window) {
  for (int i = 0; i < 2; i++) {
    size_t begin = window->pad_begin[i];
    if (begin >= window->kernel[i] ||
        (window->output[i] - 1) * window->stride[i] >= window->input[i] + begin)
      return false;
  }
  return true;
}

size_t pph_xnn_row_indirection(const pph_xnn_window *window) {
  size_t height = window->kernel[0], width = window->kernel[1];
  size_t step = window->stride[1] > width ? window->stride[1] : width;
  size_t row = pph_xnn_times(pph_xnn_times(window->output[1], step), height);
  row = pph_xnn_plus(row, pph_xnn_times(height, width));
  /* and up to a tile of pointers more */
  size_t pointers = pph_xnn_plus(pph_xnn_times(window->output[0], row), 64);
  return pph_xnn_times(pointers, sizeof(void *));
}
