/* Convolutions, pools and resizing: channels last in the payload, between
   transposes here. */
#include <string.h>

#include "base/fail.h"
#include "pte/xnn_import.h"

typedef struct window {
  int64_t kernel[2], strides[2], dilations[2], pads[4], output_padding[2];
} window;

static pph_status set_window(const pph_payload_step *step, pph_node *node,
                             const window *w) {
  pph_graph *graph = step->importer->graph;
  pph_error *error = step->importer->error;
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_KERNEL_SHAPE, w->kernel, 2,
                            error));
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_STRIDES, w->strides, 2,
                            error));
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_DILATIONS, w->dilations, 2,
                            error));
  return pph_node_set_ints(graph, node, PPH_ATTR_PADS, w->pads, 4, error);
}

/* The result of a node on [N,C,H,W], clamped and turned back. */
static pph_status finish_window(const pph_payload_step *step, pph_id id) {
  pph_id back;
  PPH_TRY(pph_payload_clamp(step, &id));
  PPH_TRY(pph_payload_to_channels_last(step, id, &back));
  pph_payload_finish(step, 0, back);
  return PPH_OK;
}

static pph_status first_input(const pph_payload_step *step, pph_id *id) {
  pph_id last;
  if (step->inputs[0]->tensor->dims.count != 4)
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "its input has %u dimensions, must have 4",
                            step->inputs[0]->tensor->dims.count);
  PPH_TRY(pph_payload_input(step, 0, &last));
  return pph_payload_to_channels_first(step, last, id);
}

/* A filter's channels and taps, and where element [a][b][y][x] of our weight
   lies in the payload's. */
typedef struct filter {
  int64_t group, in, out, height, width; /* in and out per group */
  bool is_transposed, is_depthwise;
} filter;

static int64_t find_place(const filter *f, int64_t a, int64_t b, int64_t tap) {
  int64_t taps = f->height * f->width, channel = f->group * f->out;
  if (f->is_depthwise)
    return tap * channel + a;
  if (!f->is_transposed)
    return (a * taps + tap) * f->in + b;
  int64_t group = a / f->in, in = a % f->in;
  return ((group * f->out + b) * taps + tap) * f->in + in;
}

static bool has_dims(const pph_payload_slot *slot, const int64_t *dims,
                     uint32_t count) {
  bool same = slot->tensor->dims.count == count;
  for (uint32_t i = 0; same && i < count; i++)
    same = slot->tensor->dims.at[i] == dims[i];
  return same;
}

static pph_status check_filter(const pph_payload_step *step,
                               const filter *f) {
  /* Both have 32 bits; a product that gets negative is no dimension. */
  int64_t channels = (int64_t)((uint64_t)f->group * (uint64_t)f->out);
  const int64_t whole[] = {channels, f->height, f->width, f->in};
  const int64_t deep[] = {1, f->height, f->width, channels};
  if (!f->group || !f->in || !f->out || !f->height || !f->width ||
      (f->is_depthwise && f->in != 1) ||
      !has_dims(step->inputs[1], f->is_depthwise ? deep : whole, 4))
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "its filter does not have the dimensions that its "
                            "kernel and channels give");
  if (step->inputs[2] && !has_dims(step->inputs[2], &channels, 1))
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "its bias must have one number for each of %lld "
                            "channels",
                            (long long)channels);
  for (int i = 1; i < 3; i++)
    if (step->inputs[i] && !step->inputs[i]->tensor->constant_buffer_idx)
      return pph_payload_fail(step, PPH_UNSUPPORTED,
                              "its filter and bias must be constants");
  return PPH_OK;
}

static pph_status add_weight(const pph_payload_step *step, const filter *f,
                             pph_id *id) {
  const float *from;
  const char *external;
  PPH_TRY(pph_payload_floats(step, 1, &from, &external));
  int64_t first = f->group * (f->is_transposed ? f->in : f->out);
  int64_t second = f->is_transposed ? f->out : f->in;
  int64_t taps = f->height * f->width;
  const pph_shape shape = {4, {first, second, f->height, f->width}};
  float *to = pph_arena_allocate(&step->importer->graph->arena,
                                 (size_t)(first * second * taps) + 16,
                                 sizeof *to);
  if (!to)
    return pph_fail_memory(step->importer->error);
  float *next = to;
  for (int64_t a = 0; a < first; a++)
    for (int64_t b = 0; b < second; b++)
      for (int64_t tap = 0; tap < taps; tap++)
        *next++ = from[find_place(f, a, b, tap)];
  return pph_payload_add_floats(step, to, &shape, external, id);
}

static void read_conv(const pph_payload_step *step, filter *f, window *w) {
  const pph_payload_conv *conv = step->table;
  uint32_t kind = step->node->xnode_union.type;
  *f = (filter){conv->groups,        conv->group_input_channels,
                conv->group_output_channels, conv->kernel_height,
                conv->kernel_width,  kind == PPH_PAYLOAD_CONV_TRANSPOSE,
                kind == PPH_PAYLOAD_DEPTHWISE};
  *w = (window){{conv->kernel_height, conv->kernel_width},
                {conv->subsampling_height, conv->subsampling_width},
                {conv->dilation_height, conv->dilation_width},
                {conv->padding_top, conv->padding_left, conv->padding_bottom,
                 conv->padding_right},
                {conv->adjustment_height, conv->adjustment_width}};
}

pph_status pph_payload_make_conv(const pph_payload_step *step) {
  filter f;
  window w;
  pph_id inputs[3], output;
  pph_node *node;
  pph_graph *graph = step->importer->graph;
  read_conv(step, &f, &w);
  PPH_TRY(check_filter(step, &f));
  PPH_TRY(first_input(step, &inputs[0]));
  PPH_TRY(add_weight(step, &f, &inputs[1]));
  if (step->inputs[2])
    PPH_TRY(pph_payload_input(step, 2, &inputs[2]));
  PPH_TRY(pph_payload_emit(
      step, f.is_transposed ? PPH_NODE_CONV_TRANSPOSE : PPH_NODE_CONV, inputs,
      step->inputs[2] ? 3 : 2, &node, &output));
  PPH_TRY(set_window(step, node, &w));
  PPH_TRY(pph_node_set_int(graph, node, PPH_ATTR_GROUP, f.group,
                           step->importer->error));
  if (f.is_transposed)
    PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_OUTPUT_PADDING,
                              w.output_padding, 2, step->importer->error));
  return finish_window(step, output);
}

static pph_status make_pool(const pph_payload_step *step, pph_node_kind kind,
                            const window *w) {
  pph_id input, output;
  pph_node *node;
  PPH_TRY(first_input(step, &input));
  PPH_TRY(pph_payload_emit(step, kind, &input, 1, &node, &output));
  PPH_TRY(set_window(step, node, w));
  return finish_window(step, output);
}

pph_status pph_payload_make_pool(const pph_payload_step *step) {
  const pph_payload_pool *pool = step->table;
  bool is_max = step->node->xnode_union.type == PPH_PAYLOAD_MAX_POOL;
  /* Averages know no dilation, and exporters leave it 0 there. */
  const window w = {
      {pool->pooling_height, pool->pooling_width},
      {pool->stride_height, pool->stride_width},
      {is_max ? pool->dilation_height : 1, is_max ? pool->dilation_width : 1},
      {pool->padding_top, pool->padding_left, pool->padding_bottom,
       pool->padding_right},
      {0, 0}};
  return make_pool(step, is_max ? PPH_NODE_MAX_POOL : PPH_NODE_AVERAGE_POOL,
                   &w);
}

/* The greatest of each block; where it was is not known here. */
pph_status pph_payload_make_argmax(const pph_payload_step *step) {
  const pph_payload_argmax *pool = step->table;
  if (step->outputs[1]->read_uses || step->outputs[1]->packed_uses)
    return pph_payload_fail(step, PPH_UNSUPPORTED,
                            "indices of the greatest are not supported");
  const window w = {{pool->pooling_height, pool->pooling_width},
                    {pool->pooling_height, pool->pooling_width},
                    {1, 1},
                    {pool->padding_top, pool->padding_left,
                     pool->padding_bottom, pool->padding_right},
                    {0, 0}};
  return make_pool(step, PPH_NODE_MAX_POOL, &w);
}

/* Without the flag to keep them, height and width are gone. */
pph_status pph_payload_make_global_average(const pph_payload_step *step) {
  static const int64_t axes[] = {2, 3};
  const pph_payload_unary *fields = step->table;
  pph_id input, output, ids[2];
  PPH_TRY(first_input(step, &input));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_GLOBAL_AVERAGE_POOL, &input, 1, NULL,
                           &output));
  if (fields->flags)
    return finish_window(step, output);
  PPH_TRY(pph_payload_clamp(step, &output));
  ids[0] = output;
  PPH_TRY(pph_graph_add_ints(step->importer->graph, NULL, axes, 2, &ids[1],
                             step->importer->error));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_SQUEEZE, ids, 2, NULL, &output));
  pph_payload_finish(step, 0, output);
  return PPH_OK;
}

pph_status pph_payload_make_resize(const pph_payload_step *step) {
  static const int64_t axes[] = {2, 3};
  const pph_payload_resize *resize = step->table;
  const int64_t sizes[] = {resize->new_height, resize->new_width};
  pph_id ids[4] = {0, PPH_NO_VALUE, PPH_NO_VALUE, 0}, output;
  pph_graph *graph = step->importer->graph;
  pph_error *error = step->importer->error;
  pph_node *node;
  PPH_TRY(first_input(step, &ids[0]));
  PPH_TRY(pph_graph_add_ints(graph, NULL, sizes, 2, &ids[3], error));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_RESIZE, ids, 4, &node, &output));
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_AXES, axes, 2, error));
  PPH_TRY(pph_node_set_text(graph, node, PPH_ATTR_MODE, "linear", error));
  PPH_TRY(pph_node_set_text(graph, node,
                            PPH_ATTR_COORDINATE_TRANSFORMATION_MODE,
                            resize->flags ? "align_corners" : "half_pixel",
                            error));
  return finish_window(step, output);
}
