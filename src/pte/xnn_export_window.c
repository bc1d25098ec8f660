/* Convolutions, pools, resizing and interleaving: channels last. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/xnn_export.h"

enum { KEEP_DIMS = 0x40, ALIGN_CORNERS = 8, MOST = 1 << 24 };
static const pph_layout LAST = PPH_LAYOUT_CHANNELS_LAST;

/* A node's geometry with two axes; a single one lies along the width. */
typedef struct window {
  pph_window source;
  uint32_t kernel[2], stride[2], dilation[2], begin[2], end[2], adjust[2];
} window;

static bool within(int64_t value, int64_t low) {
  return value >= low && value < MOST;
}

/* The padding that is said, which does not change with the input's length;
   where that gives another length, as much as the output's takes. */
static bool set_pads(window *w, uint32_t from, uint32_t to) {
  const pph_window *s = &w->source;
  int64_t extent = s->dilation[from] * (s->kernel[from] - 1) + 1;
  int64_t begin = s->pad_begin[from], room = begin + s->input[from];
  int64_t end = s->pad_end[from];
  if (end < 0 || (room + end - extent) / s->stride[from] + 1 !=
                     s->output[from])
    end = (s->output[from] - 1) * s->stride[from] + extent - room;
  end = pph_max_i64(end, 0);
  if (!within(begin, 0) || !within(end, 0) || room + end < extent ||
      (room + end - extent) / s->stride[from] + 1 != s->output[from])
    return false;
  w->begin[to] = (uint32_t)begin;
  w->end[to] = (uint32_t)end;
  return true;
}

/* What is missing to the output's length is XNNPACK's adjustment, which must be
   below the stride. */
static bool set_crops(window *w, uint32_t from, uint32_t to) {
  const pph_window *s = &w->source;
  int64_t full = s->stride[from] * (s->input[from] - 1) +
                 s->dilation[from] * (s->kernel[from] - 1) + 1;
  int64_t begin = s->pad_begin[from], end = full - begin - s->output[from];
  if (!within(begin, 0) || end >= MOST || -end >= s->stride[from] ||
      s->output[from] < s->stride[from])
    return false;
  w->begin[to] = (uint32_t)begin;
  w->end[to] = end > 0 ? (uint32_t)end : 0;
  w->adjust[to] = end < 0 ? (uint32_t)-end : 0;
  return true;
}

static bool find_window(const pph_payload_export *x, window *w) {
  bool transposed = x->node->kind == PPH_NODE_CONV_TRANSPOSE;
  *w = (window){.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
  if (pph_shape_find_window(x->graph, x->node, &w->source, NULL) != PPH_OK ||
      w->source.axes < 1 || w->source.axes > 2)
    return false;
  for (uint32_t i = 0; i < w->source.axes; i++) {
    const pph_window *s = &w->source;
    uint32_t to = s->axes == 1 ? 1 : i;
    if (!within(s->input[i], 1) || !within(s->output[i], 1) ||
        !within(s->kernel[i], 1) || !within(s->stride[i], 1) ||
        !within(s->dilation[i], 1) ||
        !(transposed ? set_crops(w, i, to) : set_pads(w, i, to)))
      return false;
    w->kernel[to] = (uint32_t)s->kernel[i];
    w->stride[to] = (uint32_t)s->stride[i];
    w->dilation[to] = (uint32_t)s->dilation[i];
  }
  return true;
}

/* Input 0, channels last. */
static pph_status read_pixels(pph_payload_export *x, uint32_t *id) {
  const pph_value *in = pph_payload_input_value(x, 0);
  if (in->shape.rank != 3 && in->shape.rank != 4)
    return pph_payload_refuse(x, "a rank other than 3 and 4");
  return pph_payload_read_input(x, 0, in->shape.rank, LAST, id);
}

static pph_status make_result(pph_payload_export *x, uint32_t *id) {
  pph_payload_dims dims;
  if (!pph_payload_dims_make(&pph_payload_output_value(x)->shape, LAST, &dims))
    return pph_payload_refuse(x, "an empty result");
  return pph_payload_put_value(x, &dims, id);
}

static pph_payload_conv describe_conv(const window *w, uint32_t input) {
  const pph_window *s = &w->source;
  return (pph_payload_conv){
      .padding_top = w->begin[0],
      .padding_left = w->begin[1],
      .padding_bottom = w->end[0],
      .padding_right = w->end[1],
      .kernel_height = w->kernel[0],
      .kernel_width = w->kernel[1],
      .subsampling_height = w->stride[0],
      .subsampling_width = w->stride[1],
      .dilation_height = w->dilation[0],
      .dilation_width = w->dilation[1],
      .group_input_channels = (uint32_t)(s->in_channels / s->group),
      .group_output_channels = (uint32_t)(s->out_channels / s->group),
      .groups = (uint32_t)s->group,
      .adjustment_height = w->adjust[0],
      .adjustment_width = w->adjust[1],
      .input1_id = input,
      .bias_id = PPH_PAYLOAD_NONE};
}

static pph_payload_kind find_conv_kind(const pph_payload_export *x,
                                       const pph_window *s) {
  if (x->node->kind == PPH_NODE_CONV_TRANSPOSE)
    return PPH_PAYLOAD_CONV_TRANSPOSE;
  return s->group > 1 && s->in_channels == s->group ? PPH_PAYLOAD_DEPTHWISE
                                                    : PPH_PAYLOAD_CONV;
}

/* Where XNNPACK wants the weight of an output channel (of all), an input
   channel (of its group) and a tap. */
typedef struct filter {
  size_t in, out, taps, group; /* in and out per group */
  pph_payload_kind kind;
} filter;

static void fill_filter(const filter *f, const float *from, float *to) {
  for (size_t row = 0; row < f->group * f->out; row++)
    for (size_t i = 0; i < f->in; i++)
      for (size_t tap = 0; tap < f->taps; tap++) {
        size_t group = row / f->out, at = (row * f->taps + tap) * f->in + i;
        size_t source = row * f->in + i;
        if (f->kind == PPH_PAYLOAD_CONV_TRANSPOSE)
          source = (group * f->in + i) * f->out + row % f->out;
        if (f->kind == PPH_PAYLOAD_DEPTHWISE)
          at = tap * f->group * f->out + row;
        to[at] = from[source * f->taps + tap];
      }
}

static pph_status put_filter(pph_payload_export *x, const window *w,
                             pph_payload_kind kind, uint32_t *id) {
  const pph_window *s = &w->source;
  size_t count;
  const float *from = pph_payload_find_floats(x, 1, &count);
  const filter f = {(size_t)(s->in_channels / s->group),
                    (size_t)(s->out_channels / s->group),
                    (size_t)w->kernel[0] * w->kernel[1], (size_t)s->group,
                    kind};
  uint32_t rows = (uint32_t)s->out_channels;
  pph_payload_dims dims = {
      4, {rows, w->kernel[0], w->kernel[1], (uint32_t)f.in}};
  if (kind == PPH_PAYLOAD_DEPTHWISE)
    dims = (pph_payload_dims){4, {1, w->kernel[0], w->kernel[1], rows}};
  if (!from || count != f.in * f.out * f.group * f.taps)
    return pph_payload_refuse(x, "a weight that is no f32 constant");
  float *to = pph_arena_allocate(x->arena, count, sizeof *to);
  if (!to)
    return pph_fail_memory(x->error);
  fill_filter(&f, from, to);
  return pph_payload_put_packed(x, to, &dims, id);
}

static pph_status put_bias(pph_payload_export *x, int64_t channels,
                           uint32_t *id) {
  const pph_payload_dims dims = {1, {(uint32_t)channels}};
  size_t count;
  if (!pph_payload_input_value(x, 2))
    return PPH_OK;
  const float *bias = pph_payload_find_floats(x, 2, &count);
  if (!bias || count != (size_t)channels)
    return pph_payload_refuse(x, "a bias that is no f32 constant");
  return pph_payload_put_packed(x, bias, &dims, id);
}

pph_status pph_payload_export_conv(pph_payload_export *x) {
  window w;
  uint32_t input;
  pph_payload_min_max range;
  if (pph_node_adds_residual(x->node))
    return pph_payload_refuse(x, "a fused sum");
  PPH_TRY(read_pixels(x, &input));
  if (!find_window(x, &w))
    return pph_payload_refuse(x, "pads or crops that XNNPACK does not take");
  pph_payload_conv conv = describe_conv(&w, input);
  pph_payload_kind kind = find_conv_kind(x, &w.source);
  PPH_TRY(put_filter(x, &w, kind, &conv.filter_id));
  PPH_TRY(put_bias(x, w.source.out_channels, &conv.bias_id));
  PPH_TRY(make_result(x, &conv.output_id));
  PPH_TRY(pph_payload_put_node(x, kind, &conv, sizeof conv,
                               pph_payload_find_range(x, &range)));
  return pph_payload_write_output(x, 0, LAST, conv.output_id);
}

/* A pool of one pixel is a copy or, with strides, cannot be had. */
static pph_status put_pool(pph_payload_export *x, const window *w,
                           uint32_t input) {
  bool is_max = x->node->kind != PPH_NODE_AVERAGE_POOL;
  pph_payload_min_max range;
  pph_payload_pool pool = {.padding_top = w->begin[0],
                           .padding_left = w->begin[1],
                           .padding_bottom = w->end[0],
                           .padding_right = w->end[1],
                           .pooling_height = w->kernel[0],
                           .pooling_width = w->kernel[1],
                           .stride_height = w->stride[0],
                           .stride_width = w->stride[1],
                           .dilation_height = w->dilation[0],
                           .dilation_width = w->dilation[1],
                           .input_id = input};
  PPH_TRY(make_result(x, &pool.output_id));
  PPH_TRY(pph_payload_put_node(
      x, is_max ? PPH_PAYLOAD_MAX_POOL : PPH_PAYLOAD_AVERAGE_POOL, &pool,
      sizeof pool, pph_payload_find_range(x, &range)));
  return pph_payload_write_output(x, 0, LAST, pool.output_id);
}

static bool counts_padding(const pph_payload_export *x) {
  return x->node->kind == PPH_NODE_AVERAGE_POOL &&
         pph_node_int(x->node, PPH_ATTR_COUNT_INCLUDE_PAD, 0) != 0;
}

static const char *find_pool_obstacle(const pph_payload_export *x,
                                      const window *w) {
  bool averages = x->node->kind == PPH_NODE_AVERAGE_POOL, padded = false;
  for (int i = 0; i < 2; i++) {
    padded |= w->begin[i] || w->end[i];
    if (averages && w->dilation[i] > 1)
      return "averages with dilation";
    if (w->begin[i] >= w->kernel[i] || w->end[i] >= w->kernel[i])
      return "windows of padding only";
  }
  if (w->kernel[0] * (uint64_t)w->kernel[1] < 2)
    return "windows of one pixel";
  if (padded && counts_padding(x))
    for (uint32_t i = 0; i < w->source.axes; i++)
      if (w->end[2 - w->source.axes + i] > w->source.pad_end[i])
        return "averages that count a part of the last window";
  return NULL;
}

/* The node leaves padding out of averages: where it counts, it is zeros of the
   input. */
static pph_status put_zeros_around(pph_payload_export *x, window *w,
                                   uint32_t *id) {
  const pph_payload_dims begin = {4, {0, w->begin[0], w->begin[1], 0}};
  const pph_payload_dims end = {4, {0, w->end[0], w->end[1], 0}};
  for (int i = 0; i < 2; i++)
    w->begin[i] = w->end[i] = 0;
  return pph_payload_put_pad(x, &begin, &end, 0, id);
}

pph_status pph_payload_export_pool(pph_payload_export *x) {
  window w;
  uint32_t input;
  PPH_TRY(read_pixels(x, &input));
  if (!find_window(x, &w))
    return pph_payload_refuse(x, "pads that XNNPACK does not take");
  const char *obstacle = find_pool_obstacle(x, &w);
  if (obstacle)
    return pph_payload_refuse(x, obstacle);
  if (counts_padding(x))
    PPH_TRY(put_zeros_around(x, &w, &input));
  return put_pool(x, &w, input);
}

pph_status pph_payload_export_global_pool(pph_payload_export *x) {
  uint32_t input;
  pph_payload_unary mean = {.flags = KEEP_DIMS};
  PPH_TRY(read_pixels(x, &input));
  pph_payload_dims dims = pph_payload_dims_of(x, input);
  if (x->node->kind == PPH_NODE_GLOBAL_MAX_POOL && dims.at[1] * dims.at[2] > 1)
    return put_pool(x,
                    &(window){.kernel = {dims.at[1], dims.at[2]},
                              .stride = {1, 1},
                              .dilation = {1, 1}},
                    input);
  mean.input_id = input;
  PPH_TRY(make_result(x, &mean.output_id));
  PPH_TRY(pph_payload_put_node(x, PPH_PAYLOAD_GLOBAL_AVERAGE, &mean,
                               sizeof mean, NULL));
  return pph_payload_write_output(x, 0, LAST, mean.output_id);
}

/* Every pixel `factors` times over: [N,H,W,C] is rows of pixels, and a row
   joined with itself is a row of pairs. */
static pph_status put_nearest(pph_payload_export *x, const uint32_t *factors,
                              uint32_t *id) {
  const pph_payload_spread how = {.order = PPH_PAYLOAD_SPREAD_COPIES,
                                  .block = {factors[0], factors[1]}};
  if (x->lengths == PPH_PAYLOAD_ANY)
    return pph_payload_put_spread(x, &how, id);
  pph_payload_dims d = pph_payload_dims_of(x, *id);
  uint32_t rows = d.at[0] * d.at[1], width = d.at[2] * factors[1];
  const pph_payload_dims pixels = {2, {rows * d.at[2], d.at[3]}};
  const pph_payload_dims lines = {2, {rows, width * d.at[3]}};
  const pph_payload_dims last = {
      4, {d.at[0], d.at[1] * factors[0], width, d.at[3]}};
  if (factors[1] > 1) {
    PPH_TRY(pph_payload_put_reshape(x, &pixels, id));
    PPH_TRY(pph_payload_put_repeat(x, factors[1], 1, id));
  }
  if (factors[0] > 1) {
    PPH_TRY(pph_payload_put_reshape(x, &lines, id));
    PPH_TRY(pph_payload_put_repeat(x, factors[0], 1, id));
  }
  return pph_payload_put_reshape(x, &last, id);
}

/* Output o takes input o / factor for every o, whatever the rounding. */
static bool divides(const pph_node *node) {
  const char *place = pph_node_text(
      node, PPH_ATTR_COORDINATE_TRANSFORMATION_MODE, "half_pixel");
  const char *mode =
      pph_node_text(node, PPH_ATTR_NEAREST_MODE, "round_prefer_floor");
  if (strcmp(place, "asymmetric") == 0)
    return strcmp(mode, "floor") == 0;
  return strstr(place, "half_pixel") && strncmp(mode, "round", 5) == 0;
}

/* Linear interpolation without lengths: sums of shares of pixels, divided by
   the sum of the shares, which is below 1 at borders only: there the border's
   pixel counts for those that are not there. */
static pph_status put_linear(pph_payload_export *x, const uint32_t *factors,
                             uint32_t *id) {
  const pph_payload_min_max one = {1, nextafterf(1, 2)};
  const pph_payload_dims begin = {.count = 4};
  pph_payload_dims first = pph_payload_dims_of(x, *id);
  pph_payload_spread how = {.order = PPH_PAYLOAD_SPREAD_LINEAR,
                            .block = {factors[0], factors[1]}};
  uint32_t ones = *id;
  for (int i = 0; i < 2; i++) {
    how.begin[i] = factors[i] / 2;
    how.end[i] = factors[i] > 1 ? factors[i] - how.begin[i] : 0;
  }
  first.at[3] = 1;
  PPH_TRY(pph_payload_put_slice(x, &begin, &first, &ones));
  PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_CLAMP, &one, &ones));
  PPH_TRY(pph_payload_put_spread(x, &how, &ones));
  PPH_TRY(pph_payload_put_spread(x, &how, id));
  return pph_payload_put_binary(x, PPH_PAYLOAD_DIV, ones, NULL, id);
}

static pph_status put_bilinear(pph_payload_export *x, const uint32_t *factors,
                               uint32_t *id) {
  const char *place = pph_node_text(
      x->node, PPH_ATTR_COORDINATE_TRANSFORMATION_MODE, "half_pixel");
  pph_payload_dims from = pph_payload_dims_of(x, *id), to;
  pph_payload_resize table = {.input_id = *id};
  bool aligns = strcmp(place, "align_corners") == 0;
  if (pph_node_int(x->node, PPH_ATTR_ANTIALIAS, 0) ||
      (!aligns && strcmp(place, "half_pixel") != 0 &&
       strcmp(place, "pytorch_half_pixel") != 0))
    return pph_payload_refuse(x, "interpolation of another kind");
  if (x->lengths == PPH_PAYLOAD_ANY && !aligns && factors[0] && factors[1])
    return put_linear(x, factors, id);
  PPH_TRY(make_result(x, id));
  to = pph_payload_dims_of(x, *id);
  for (int i = 1; i < 3; i++)
    if (to.at[i] == 1 && from.at[i] > 1)
      return pph_payload_refuse(x, "interpolation to one pixel");
  table.new_height = to.at[1];
  table.new_width = to.at[2];
  table.output_id = *id;
  table.flags = aligns ? ALIGN_CORNERS : 0;
  return pph_payload_put_node(x, PPH_PAYLOAD_RESIZE, &table, sizeof table,
                              NULL);
}

/* Where scales are given, they are what places are divided by: they must be
   what the lengths say. */
static bool scales_fit(const pph_payload_export *x) {
  size_t count, axis_count;
  int64_t axes[PPH_MAX_RANK];
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  const pph_value *given = pph_payload_input_value(x, 2);
  if (!given || (given->shape.rank == 1 && given->shape.dims[0] == 0))
    return true;
  const float *scales = pph_payload_find_floats(x, 2, &count);
  if (!scales ||
      !pph_payload_find_axes(x, 9, in->shape.rank, axes, &axis_count) ||
      axis_count != count)
    return false;
  for (size_t i = 0; i < count; i++)
    if (scales[i] * (float)in->shape.dims[axes[i]] !=
        (float)out->shape.dims[axes[i]])
      return false;
  return true;
}

/* Of height and width; 0 where it is no integer. */
static void find_factors(const pph_shape *in, const pph_shape *out,
                         uint32_t *factors) {
  factors[0] = 1;
  for (int32_t i = 2; i < in->rank; i++)
    factors[i - in->rank + 2] = out->dims[i] % in->dims[i]
                                    ? 0
                                    : (uint32_t)(out->dims[i] / in->dims[i]);
}

pph_status pph_payload_export_resize(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  const char *mode = pph_node_text(x->node, PPH_ATTR_MODE, "nearest");
  uint32_t factors[2], id;
  PPH_TRY(read_pixels(x, &id));
  find_factors(&in->shape, &out->shape, factors);
  if (!scales_fit(x) || in->shape.dims[0] != out->shape.dims[0] ||
      in->shape.dims[1] != out->shape.dims[1])
    return pph_payload_refuse(x, "scales that are not those of the lengths");
  if (strcmp(mode, "linear") == 0) {
    PPH_TRY(put_bilinear(x, factors, &id));
    return pph_payload_write_output(x, 0, LAST, id);
  }
  if (!factors[0] || !factors[1])
    return pph_payload_refuse(x, "a factor that is no integer");
  if (strcmp(mode, "nearest") != 0 || !divides(x->node))
    return pph_payload_refuse(x, "another kind of resizing");
  PPH_TRY(put_nearest(x, factors, &id));
  return pph_payload_write_output(x, 0, LAST, id);
}
