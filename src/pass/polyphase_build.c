#include "pass/polyphase_build.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

/* Bias-only planes up to this size are constants, larger ones Expand nodes. */
enum { SMALL_PLANE_BYTES = 1 << 16 };

typedef struct build {
  pph_rewrite *rewrite;
  pph_graph *graph;
  pph_node *node; /* the transposed convolution */
  const pph_polyphase_plan *plan;
  const char *lowered;
  pph_node *last; /* the newest node, NULL when there is none */
} build;

static pph_status insert(build *b, pph_node_kind kind, const pph_id *inputs,
                         uint32_t count, pph_error *error) {
  PPH_TRY(pph_rewrite_insert(b->rewrite, kind, b->node, inputs, count,
                             &b->last, error));
  b->last->lowered = b->lowered;
  return PPH_OK;
}

static pph_status infer(build *b, pph_id *output, pph_error *error) {
  *output = b->last->outputs[0];
  return pph_shape_infer_node(b->graph, b->last, error);
}

/* A constant named after input `slot` of the node, living where that lives. */
static pph_status add_constant(build *b, uint32_t slot,
                               const pph_tensor *tensor, pph_id *id,
                               pph_error *error) {
  const pph_value *old = pph_node_find_input(b->graph, b->node, slot);
  const char *stem = old ? old->name : "bias";
  pph_origin origin = old ? old->origin : (pph_origin){0};
  const char *name = pph_graph_make_name(b->graph, stem);
  if (!name)
    return pph_fail_memory(error);
  PPH_TRY(pph_graph_add_constant(b->graph, name, tensor, id, error));
  pph_graph_value(b->graph, *id)->origin = origin;
  return PPH_OK;
}

/* The kernel of one output row: `from` is one [ky][kx] slice. */
static void copy_taps(const float *from, int64_t width, const pph_tap_map *maps,
                      const pph_phase_run *const *run, float *to) {
  for (int64_t v = 0; v < maps[0].taps; v++)
    for (int64_t u = 0; u < maps[1].taps; u++) {
      int64_t y = maps[0].last - v * maps[0].step;
      int64_t x = maps[1].last - u * maps[1].step;
      to[(v + maps[0].skip) * run[1]->taps + u + maps[1].skip] =
          from[y * width + x];
    }
}

/* Rows [Cout] of one phase; the weight is [Cin][Cout/group][ky][kx]. */
static void copy_phase(const build *b, const pph_phase_block *block,
                       const float *weight, const pph_tap_map *maps,
                       float *to) {
  const pph_window *window = &b->plan->window;
  int64_t inner = window->in_channels / window->group;
  int64_t outer = window->out_channels / window->group;
  int64_t width = b->plan->axes[1].axis.kernel;
  int64_t slice = b->plan->axes[0].axis.kernel * width;
  int64_t taps = block->run[0]->taps * block->run[1]->taps;
  for (int64_t row = 0; row < window->out_channels; row++)
    for (int64_t i = 0; i < inner; i++) {
      int64_t in = row / outer * inner + i;
      copy_taps(weight + (in * outer + row % outer) * slice, width, maps,
                block->run, to + (row * inner + i) * taps);
    }
}

static void fill_weight(const build *b, const pph_phase_block *block,
                        const float *weight, float *to) {
  const pph_window *window = &b->plan->window;
  int64_t phase_size = window->out_channels *
                       (window->in_channels / window->group) *
                       block->run[0]->taps * block->run[1]->taps;
  for (int64_t y = 0; y < block->count[0]; y++)
    for (int64_t x = 0; x < block->count[1]; x++) {
      const pph_axis_plan *axes = b->plan->axes;
      pph_tap_map maps[2] = {
          pph_phase_map_taps(&axes[0], block->run[0], block->first[0] + y),
          pph_phase_map_taps(&axes[1], block->run[1], block->first[1] + x)};
      copy_phase(b, block, weight, maps, to);
      to += phase_size;
    }
}

static int64_t count_rows(const build *b, const pph_phase_block *block) {
  return block->count[0] * block->count[1] * b->plan->window.out_channels;
}

/* [rows, Cin/group, taps...] */
static pph_status make_weight(build *b, const pph_phase_block *block,
                              pph_id *id, pph_error *error) {
  const pph_window *window = &b->plan->window;
  pph_tensor old, made = {.type = PPH_F32};
  pph_node_find_constant(b->graph, b->node, 1, &old);
  made.shape.rank = 2 + (int32_t)window->axes;
  made.shape.dims[0] = count_rows(b, block);
  made.shape.dims[1] = window->in_channels / window->group;
  for (uint32_t i = 0; i < window->axes; i++)
    made.shape.dims[2 + i] = block->run[i + 2 - window->axes]->taps;
  size_t count;
  if (!pph_shape_count(&made.shape, &count))
    return pph_fail_memory(error);
  float *data = pph_heap_allocate_zeroed(b->graph->heap, count, sizeof *data);
  if (!data)
    return pph_fail_memory(error);
  fill_weight(b, block, old.data, data);
  made.data = data;
  pph_status status = add_constant(b, 1, &made, id, error);
  pph_heap_release(b->graph->heap, data);
  return status;
}

static float activate(const pph_node *node, float x) {
  if (node->activation == PPH_ACTIVATION_LEAKY_RELU)
    return x < 0 ? x * pph_node_float(node, PPH_ATTR_ACTIVATION_ALPHA, 0) : x;
  if (node->activation == PPH_ACTIVATION_CLAMP) {
    float low = pph_node_float(node, PPH_ATTR_ACTIVATION_MIN, x);
    float high = pph_node_float(node, PPH_ATTR_ACTIVATION_MAX, x);
    x = x < low ? low : x;
    return x > high ? high : x;
  }
  return x;
}

/* The bias of `rows` rows as a heap block; zeros where the node has none. */
static float *repeat_bias(const build *b, int64_t rows, bool activated) {
  pph_tensor bias;
  bool present = pph_node_find_constant(b->graph, b->node, 2, &bias);
  int64_t period = b->plan->window.out_channels;
  float *data =
      pph_heap_allocate(b->graph->heap, (size_t)rows, sizeof *data);
  for (int64_t i = 0; data && i < rows; i++) {
    float x = present ? ((const float *)bias.data)[i % period] : 0.0f;
    data[i] = activated ? activate(b->node, x) : x;
  }
  return data;
}

static pph_status make_bias(build *b, int64_t rows, pph_id *id,
                            pph_error *error) {
  *id = PPH_NO_VALUE;
  if (!pph_node_find_input(b->graph, b->node, 2))
    return PPH_OK;
  if (rows == b->plan->window.out_channels) {
    *id = b->node->inputs[2];
    return PPH_OK;
  }
  float *data = repeat_bias(b, rows, false);
  if (!data)
    return pph_fail_memory(error);
  pph_tensor tensor = {PPH_F32, {1, {rows}}, data};
  pph_status status = add_constant(b, 2, &tensor, id, error);
  pph_heap_release(b->graph->heap, data);
  return status;
}

/* Slices `input` on its spatial axes, `begin` and `end` elements off (the last
   `axes` of two entries are used). Nothing to cut gives the input back. */
static pph_status cut(build *b, pph_id input, const int64_t *begin,
                      const int64_t *end, pph_id *output, pph_error *error) {
  int64_t starts[2], ends[2], axes[2];
  size_t count = 0;
  *output = input;
  uint32_t rank = b->plan->window.axes;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t from = i + 2 - rank;
    if (begin[from] == 0 && end[from] == 0)
      continue;
    starts[count] = begin[from];
    ends[count] =
        pph_graph_value(b->graph, input)->shape.dims[2 + i] - end[from];
    axes[count++] = 2 + (int64_t)i;
  }
  if (count == 0)
    return PPH_OK;
  pph_id ids[4] = {input};
  PPH_TRY(pph_graph_add_ints(b->graph, NULL, starts, count, &ids[1], error));
  PPH_TRY(pph_graph_add_ints(b->graph, NULL, ends, count, &ids[2], error));
  PPH_TRY(pph_graph_add_ints(b->graph, NULL, axes, count, &ids[3], error));
  PPH_TRY(insert(b, PPH_NODE_SLICE, ids, 4, error));
  return infer(b, output, error);
}

static pph_status crop_input(build *b, const pph_phase_block *block,
                             pph_id *output, pph_error *error) {
  int64_t begin[2], end[2];
  for (unsigned i = 0; i < 2; i++) {
    begin[i] = pph_max_i64(0, -block->run[i]->pad_begin);
    end[i] = pph_max_i64(0, -block->run[i]->pad_end);
  }
  return cut(b, b->node->inputs[0], begin, end, output, error);
}

/* What holds for every sum of the node. */
static pph_status copy_attributes(build *b, pph_error *error) {
  static const pph_attribute_key keys[] = {PPH_ATTR_EXACT_SUMS,
                                           PPH_ATTR_ACTIVATION_ALPHA,
                                           PPH_ATTR_ACTIVATION_MIN,
                                           PPH_ATTR_ACTIVATION_MAX};
  b->last->activation = b->node->activation;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const pph_attribute *attribute = pph_node_find_attribute(b->node, keys[i]);
    if (attribute)
      PPH_TRY(pph_node_set_attribute(b->graph, b->last, attribute, error));
  }
  return PPH_OK;
}

static pph_status set_conv_attributes(build *b, const pph_phase_block *block,
                                      pph_error *error) {
  static const int64_t ones[2] = {1, 1};
  uint32_t axes = b->plan->window.axes;
  int64_t kernel[2], dilations[2], pads[4];
  for (uint32_t i = 0; i < axes; i++) {
    const pph_phase_run *run = block->run[i + 2 - axes];
    kernel[i] = run->taps;
    dilations[i] = run->tap_step;
    pads[i] = pph_max_i64(0, run->pad_begin);
    pads[axes + i] = pph_max_i64(0, run->pad_end);
  }
  pph_graph *graph = b->graph;
  pph_node *conv = b->last;
  PPH_TRY(pph_node_set_ints(graph, conv, PPH_ATTR_KERNEL_SHAPE, kernel, axes,
                            error));
  PPH_TRY(
      pph_node_set_ints(graph, conv, PPH_ATTR_STRIDES, ones, axes, error));
  PPH_TRY(pph_node_set_ints(graph, conv, PPH_ATTR_DILATIONS, dilations, axes,
                            error));
  PPH_TRY(pph_node_set_ints(graph, conv, PPH_ATTR_PADS, pads, 2 * axes,
                            error));
  PPH_TRY(pph_node_set_int(graph, conv, PPH_ATTR_GROUP,
                           b->plan->window.group, error));
  return copy_attributes(b, error);
}

static pph_status build_conv(build *b, const pph_phase_block *block,
                             pph_id *output, pph_error *error) {
  pph_id ids[3];
  PPH_TRY(crop_input(b, block, &ids[0], error));
  PPH_TRY(make_weight(b, block, &ids[1], error));
  PPH_TRY(make_bias(b, count_rows(b, block), &ids[2], error));
  uint32_t count = ids[2] == PPH_NO_VALUE ? 2 : 3;
  PPH_TRY(insert(b, PPH_NODE_CONV, ids, count, error));
  PPH_TRY(set_conv_attributes(b, block, error));
  return infer(b, output, error);
}

static pph_status expand_plane(build *b, const pph_shape *shape,
                               const float *column, pph_id *output,
                               pph_error *error) {
  pph_tensor tensor = {.type = PPH_F32,
                       .shape = {.rank = shape->rank, .dims = {1, 1, 1, 1}}};
  tensor.shape.dims[1] = shape->dims[1];
  tensor.data = (void *)(uintptr_t)column;
  pph_id ids[2];
  PPH_TRY(add_constant(b, 2, &tensor, &ids[0], error));
  PPH_TRY(pph_graph_add_ints(b->graph, NULL, shape->dims,
                             (size_t)shape->rank, &ids[1], error));
  PPH_TRY(insert(b, PPH_NODE_EXPAND, ids, 2, error));
  return infer(b, output, error);
}

static pph_status spread_plane(build *b, const pph_shape *shape,
                               const float *column, pph_id *output,
                               pph_error *error) {
  size_t count, rows = (size_t)shape->dims[1];
  if (!pph_shape_count(shape, &count))
    return pph_fail_memory(error);
  float *data = pph_heap_allocate(b->graph->heap, count, sizeof *data);
  if (!data)
    return pph_fail_memory(error);
  size_t area = count / ((size_t)shape->dims[0] * rows);
  for (size_t i = 0; i < count; i++)
    data[i] = column[i / area % rows];
  pph_tensor tensor = {PPH_F32, *shape, data};
  pph_status status = add_constant(b, 2, &tensor, output, error);
  pph_heap_release(b->graph->heap, data);
  return status;
}

/* A block that no tap reaches: its activated bias everywhere. */
static pph_status build_plane(build *b, const pph_phase_block *block,
                              bool constant, pph_id *output,
                              pph_error *error) {
  const pph_window *window = &b->plan->window;
  pph_shape shape = {.rank = 2 + (int32_t)window->axes};
  shape.dims[0] = window->batch;
  shape.dims[1] = count_rows(b, block);
  for (uint32_t i = 0; i < window->axes; i++)
    shape.dims[2 + i] = b->plan->axes[i + 2 - window->axes].frame.length;
  size_t bytes;
  if (!pph_shape_bytes(&shape, PPH_F32, &bytes))
    return pph_node_fail(b->node, error, PPH_LIMIT_EXCEEDED,
                         "a phase is too large");
  float *column = repeat_bias(b, shape.dims[1], true);
  if (!column)
    return pph_fail_memory(error);
  pph_status status =
      constant && bytes <= SMALL_PLANE_BYTES
          ? spread_plane(b, &shape, column, output, error)
          : expand_plane(b, &shape, column, output, error);
  pph_heap_release(b->graph->heap, column);
  return status;
}

static pph_status build_blocks(build *b, pph_id *ids, uint32_t count,
                               pph_error *error) {
  uint32_t position = 0;
  pph_phase_block block;
  for (uint32_t i = 0;
       pph_polyphase_plan_next(b->plan, &position, &block); i++)
    if (pph_phase_block_is_bias(b->plan, &block))
      PPH_TRY(build_plane(b, &block, count > 1, &ids[i], error));
    else
      PPH_TRY(build_conv(b, &block, &ids[i], error));
  return PPH_OK;
}

static pph_status join_blocks(build *b, pph_id *joined, pph_error *error) {
  uint32_t count = pph_polyphase_plan_count(b->plan);
  pph_id *ids = pph_heap_allocate(b->graph->heap, count, sizeof *ids);
  if (!ids)
    return pph_fail_memory(error);
  pph_status status = build_blocks(b, ids, count, error);
  *joined = ids[0];
  if (status == PPH_OK && count > 1) {
    status = insert(b, PPH_NODE_CONCAT, ids, count, error);
    if (status == PPH_OK)
      status = pph_node_set_int(b->graph, b->last, PPH_ATTR_AXIS, 1, error);
    if (status == PPH_OK)
      status = infer(b, joined, error);
  }
  pph_heap_release(b->graph->heap, ids);
  return status;
}

static pph_status interleave(build *b, pph_id input, pph_id *output,
                             pph_error *error) {
  const int64_t strides[2] = {b->plan->axes[0].frame.stride,
                              b->plan->axes[1].frame.stride};
  uint32_t axes = b->plan->window.axes;
  *output = input;
  if (strides[0] * strides[1] == 1)
    return PPH_OK;
  PPH_TRY(insert(b, PPH_NODE_DEPTH_TO_SPACE, &input, 1, error));
  PPH_TRY(pph_node_set_ints(b->graph, b->last, PPH_ATTR_BLOCKSIZE,
                            strides + 2 - axes, axes, error));
  PPH_TRY(
      pph_node_set_text(b->graph, b->last, PPH_ATTR_MODE, "DCR", error));
  return infer(b, output, error);
}

static pph_status trim(build *b, pph_id input, pph_error *error) {
  int64_t begin[2], end[2];
  for (unsigned i = 0; i < 2; i++) {
    begin[i] = b->plan->axes[i].frame.trim_begin;
    end[i] = b->plan->axes[i].frame.trim_end;
  }
  pph_id output;
  return cut(b, input, begin, end, &output, error);
}

pph_status pph_polyphase_build(pph_rewrite *rewrite, pph_node *node,
                               const pph_polyphase_plan *plan,
                               const char *lowered, pph_error *error) {
  build b = {.rewrite = rewrite,
             .graph = rewrite->graph,
             .node = node,
             .plan = plan,
             .lowered = lowered};
  pph_id joined = PPH_NO_VALUE, whole;
  PPH_TRY(join_blocks(&b, &joined, error));
  PPH_TRY(interleave(&b, joined, &whole, error));
  PPH_TRY(trim(&b, whole, error));
  return pph_rewrite_take_over(rewrite, node, b.last, error);
}
