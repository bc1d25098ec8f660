/* XNNPACK payloads as graphs, on small ones made here: every kind of node gives
   what its definition says on every engine, integers come out exact, what has
   no kernel is refused by name, damaged payloads are refused or imported. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "graph/shape.h"
#include "graph/verify.h"
#include "model_case.h"
#include "pte/xnn_import.h"
#include "runtime/loaded_model.h"
#include "pte_maker.h"
#include "test_support.h"

enum { MOST = 12, BYTES = 4096 };
#define DIMS(...)                                                              \
  (const uint32_t[]){__VA_ARGS__},                                             \
      sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

/* A payload under construction: value i has id i, constants lie inside. */
typedef struct maker {
  pph_payload_tensor tensors[MOST];
  pph_payload_quantized quantized[MOST];
  pph_payload_value values[MOST];
  pph_payload_per_tensor whole[MOST];
  pph_payload_per_channel channels[MOST];
  pph_payload_per_group groups[MOST];
  pph_payload_dynamic rows[MOST];
  uint32_t dims[MOST][6];
  pph_payload_data data[2 * MOST];
  pph_payload_node nodes[MOST];
  pph_payload_min_max ranges[MOST];
  pph_payload_graph graph;
  uint8_t bytes[BYTES];
  uint32_t value_count, data_count, node_count, externals;
  size_t used;
} maker;

static uint32_t add_value(maker *m, pph_payload_type type,
                          const uint32_t *dims, uint32_t rank) {
  uint32_t id = m->value_count++;
  assert_true(id < MOST);
  if (rank)
    memcpy(m->dims[id], dims, rank * sizeof *dims);
  m->tensors[id] = (pph_payload_tensor){.datatype = (int16_t)type,
                                        .num_dims = rank,
                                        .dims = {m->dims[id], rank},
                                        .external_id = UINT32_MAX,
                                        .id_out = id};
  m->quantized[id].tensor_value = &m->tensors[id];
  m->values[id].xvalue_union = (pph_flat_choice){&m->tensors[id], 1};
  return id;
}

static void quantize(maker *m, uint32_t id, uint8_t type, void *parameters) {
  m->quantized[id].quant_params = (pph_flat_choice){parameters, type};
  m->values[id].xvalue_union = (pph_flat_choice){&m->quantized[id], 2};
}

static void set_scale(maker *m, uint32_t id, float scale, int32_t zero) {
  m->whole[id] = (pph_payload_per_tensor){scale, zero};
  quantize(m, id, PPH_PAYLOAD_PER_TENSOR, &m->whole[id]);
}

static void set_scales(maker *m, uint32_t id, int32_t axis,
                       const float *scales, uint32_t count) {
  m->channels[id].scale.at = scales;
  m->channels[id].scale.count = count;
  m->channels[id].channel_dim = axis;
  quantize(m, id, PPH_PAYLOAD_PER_CHANNEL, &m->channels[id]);
}

static void set_external(maker *m, uint32_t id, uint32_t flags) {
  m->tensors[id].flags = flags;
  m->tensors[id].external_id = m->externals++;
}

static uint32_t add_data(maker *m, const void *bytes, size_t count) {
  assert_true(m->used + count <= BYTES && m->data_count < 2 * MOST);
  if (!m->data_count)
    m->data_count = 1; /* entry 0 stands for none */
  memcpy(m->bytes + m->used, bytes, count);
  m->data[m->data_count] = (pph_payload_data){.offset = m->used,
                                              .size = count};
  m->used += count + 1; /* the next one is not aligned */
  return m->data_count++;
}

static pph_payload_node *add_node(maker *m, pph_payload_kind kind,
                                  void *table) {
  pph_payload_node *node = &m->nodes[m->node_count++];
  node->xnode_union = (pph_flat_choice){table, (uint8_t)kind};
  return node;
}

static pph_payload finish(maker *m) {
  m->graph = (pph_payload_graph){.version = {"0", 1},
                                 .xnodes = {m->nodes, m->node_count},
                                 .xvalues = {m->values, m->value_count},
                                 .num_externs = m->externals,
                                 .constant_data = {m->data, m->data_count}};
  return (pph_payload){.graph = &m->graph,
                       .identifier = {'X', 'N', '0', '1'},
                       .constants = {m->bytes, m->used}};
}

/* Imports into model->graph: external inputs become inputs, outputs outputs. */
static pph_status import(const pph_payload *payload, pph_model *model,
                         pph_error *error) {
  pph_graph *graph = &model->graph;
  pph_id arguments[MOST], inputs[MOST], outputs[MOST];
  uint32_t input_count = 0, output_count = 0;
  pph_payload_index index;
  PPH_TRY(pph_payload_check(payload, &graph->arena, &index, error));
  for (uint32_t i = 0; i < index.count; i++) {
    const pph_payload_tensor *tensor = index.slots[i].tensor;
    if (tensor->flags != 1 || tensor->external_id >= MOST)
      continue;
    pph_id *id = &arguments[tensor->external_id];
    PPH_TRY(pph_graph_add_value(graph, NULL, id, error));
    pph_value *value = pph_graph_value(graph, *id);
    value->type = tensor->datatype == PPH_PAYLOAD_Q8 ? PPH_I8 : PPH_F32;
    value->has_rank = true;
    value->shape.rank = (int32_t)tensor->dims.count;
    for (uint32_t d = 0; d < tensor->dims.count; d++)
      value->shape.dims[d] = tensor->dims.at[d];
    inputs[input_count++] = *id;
  }
  PPH_TRY(pph_graph_set_inputs(graph, inputs, input_count, error));
  PPH_TRY(pph_payload_import(&index, NULL, graph, arguments, MOST, error));
  for (uint32_t i = 0; i < index.count; i++) {
    const pph_payload_tensor *tensor = index.slots[i].tensor;
    if (tensor->flags == 2)
      outputs[output_count++] = arguments[tensor->external_id];
  }
  PPH_TRY(pph_graph_set_outputs(graph, outputs, output_count, error));
  for (pph_node *node = graph->first; node; node = node->next)
    PPH_TRY(pph_shape_check_node(graph, node, error));
  return pph_graph_verify(graph, error);
}

static void open_model(pph_model *model) {
  memset(model, 0, sizeof *model);
  pph_limits_init(&model->limits);
  pph_heap_init(&model->heap, NULL, (uint64_t)1 << 28);
  pph_graph_init(&model->graph, &model->heap, NULL);
}

static void close_model(pph_model *model) {
  pph_graph_clear(&model->graph);
  assert_int_equal(atomic_load(&model->heap.used), 0);
}

static pph_tensor make_tensor(pph_dtype type, const uint32_t *dims,
                              uint32_t rank, const void *data) {
  pph_tensor tensor = {.type = type, .shape = {.rank = (int32_t)rank}};
  size_t count = pph_dtype_size(type);
  for (uint32_t i = 0; i < rank; i++) {
    tensor.shape.dims[i] = dims[i];
    count *= dims[i];
  }
  tensor.data = (void *)(uintptr_t)data;
  return tensor;
}

/* Runs the payload of one external input, the first one, and one external
   output on every engine. */
static void expect(maker *m, const char *name, const pph_tensor *input,
                   const pph_tensor *output, double tolerance) {
  pph_payload payload = finish(m);
  pph_model model;
  pph_error error = {0};
  open_model(&model);
  test_assert_ok(import(&payload, &model, &error), &error);
  model_case one = {.path = name,
                    .inputs = {*input},
                    .outputs = {*output},
                    .input_count = 1,
                    .output_count = 1,
                    .absolute = tolerance,
                    .relative = tolerance};
  model_case_check_model(&one, &model);
  close_model(&model);
}

static const float xs[] = {-2, -0.75f, 0.25f, 1, 1.5f, 3.5f};

static double hard_swish(double x) {
  return x * fmin(fmax(x + 3, 0), 6) / 6;
}

static double unary(pph_payload_kind kind, double x) {
  switch ((int)kind) {
  case PPH_PAYLOAD_SIGMOID: return 1 / (1 + exp(-x));
  case PPH_PAYLOAD_CLAMP: return fmin(fmax(x, -1), 2);
  case PPH_PAYLOAD_FLOOR: return floor(x);
  case PPH_PAYLOAD_CEILING: return ceil(x);
  case PPH_PAYLOAD_SQUARE_ROOT: return sqrt(x);
  case PPH_PAYLOAD_HARD_SWISH: return hard_swish(x);
  case PPH_PAYLOAD_NEGATE: return -x;
  case PPH_PAYLOAD_SQUARE: return x * x;
  case PPH_PAYLOAD_ABS: return fabs(x);
  case PPH_PAYLOAD_RECIPROCAL_ROOT: return 1 / sqrt(x);
  case PPH_PAYLOAD_LOG: return log(x);
  case PPH_PAYLOAD_GELU: return x * (1 + erf(x / sqrt(2))) / 2;
  case PPH_PAYLOAD_TANH: return tanh(x);
  case PPH_PAYLOAD_EXP: return exp(x);
  case PPH_PAYLOAD_SIN: return sin(x);
  case PPH_PAYLOAD_COS: return cos(x);
  default: return x;
  }
}

static void test_unary(void **state) {
  static const pph_payload_kind kinds[] = {
      PPH_PAYLOAD_SIGMOID, PPH_PAYLOAD_CLAMP, PPH_PAYLOAD_FLOOR,
      PPH_PAYLOAD_CEILING, PPH_PAYLOAD_SQUARE_ROOT, PPH_PAYLOAD_HARD_SWISH,
      PPH_PAYLOAD_NEGATE, PPH_PAYLOAD_SQUARE, PPH_PAYLOAD_ABS,
      PPH_PAYLOAD_RECIPROCAL_ROOT, PPH_PAYLOAD_LOG, PPH_PAYLOAD_GELU,
      PPH_PAYLOAD_TANH, PPH_PAYLOAD_EXP, PPH_PAYLOAD_SIN, PPH_PAYLOAD_COPY,
      PPH_PAYLOAD_CONVERT, PPH_PAYLOAD_COS};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    maker m = {.used = 0};
    float x[6], y[6];
    pph_payload_unary table = {.input_id = 0, .output_id = 1};
    bool positive = kinds[i] == PPH_PAYLOAD_SQUARE_ROOT ||
                    kinds[i] == PPH_PAYLOAD_RECIPROCAL_ROOT ||
                    kinds[i] == PPH_PAYLOAD_LOG;
    for (int k = 0; k < 6; k++) {
      x[k] = positive ? fabsf(xs[k]) : xs[k];
      y[k] = (float)unary(kinds[i], (double)x[k]);
    }
    set_external(&m, add_value(&m, PPH_PAYLOAD_F32, DIMS(2, 3)), 1);
    set_external(&m, add_value(&m, PPH_PAYLOAD_F32, DIMS(2, 3)), 2);
    pph_payload_node *node = add_node(&m, kinds[i], &table);
    m.ranges[0] = (pph_payload_min_max){-1, 2};
    if (kinds[i] == PPH_PAYLOAD_CLAMP)
      node->output_min_max = &m.ranges[0];
    pph_tensor in = make_tensor(PPH_F32, DIMS(2, 3), x);
    pph_tensor out = make_tensor(PPH_F32, DIMS(2, 3), y);
    expect(&m, pph_payload_kind_name(kinds[i]), &in, &out, 1e-5);
  }
}

/* x with the constant {2, -1, 0.5} of a lower rank. */
static void test_binary(void **state) {
  static const float constant[] = {2, -1, 0.5f};
  static const pph_payload_kind kinds[] = {
      PPH_PAYLOAD_ADD, PPH_PAYLOAD_SUBTRACT, PPH_PAYLOAD_MULTIPLY,
      PPH_PAYLOAD_DIV, PPH_PAYLOAD_MINIMUM, PPH_PAYLOAD_MAXIMUM,
      PPH_PAYLOAD_PRELU};
  for (int i = 0; i < 7; i++) {
    maker m = {.used = 0};
    float y[6];
    pph_payload_binary table = {.input1_id = 0, .input2_id = 2,
                                .output_id = 1};
    for (int k = 0; k < 6; k++) {
      float x = xs[k], c = constant[k % 3];
      const float all[] = {x + c, x - c, x * c, x / c, fminf(x, c),
                           fmaxf(x, c), x < 0 ? x * c : x};
      y[k] = fminf(all[i], 2);
    }
    set_external(&m, add_value(&m, PPH_PAYLOAD_F32, DIMS(2, 3)), 1);
    set_external(&m, add_value(&m, PPH_PAYLOAD_F32, DIMS(2, 3)), 2);
    uint32_t id = add_value(&m, PPH_PAYLOAD_F32, DIMS(3));
    m.tensors[id].constant_buffer_idx =
        add_data(&m, constant, sizeof constant);
    m.ranges[0] = (pph_payload_min_max){-INFINITY, 2};
    add_node(&m, kinds[i], &table)->output_min_max = &m.ranges[0];
    pph_tensor in = make_tensor(PPH_F32, DIMS(2, 3), xs);
    pph_tensor out = make_tensor(PPH_F32, DIMS(2, 3), y);
    expect(&m, pph_payload_kind_name(kinds[i]), &in, &out, 1e-6);
  }
}

/* A chain of all that moves: [2,3] -> transposed [3,2] -> [2,3] by an inferred
   dimension -> padded to [3,4] -> its last two rows -> twice, [4,4]. */
static void move_chain(maker *m, pph_payload_type type) {
  static const uint32_t perm[] = {1, 0}, shape[] = {2, 0}, pre[] = {1, 0},
                        post[] = {0, 1}, offsets[] = {1, 0},
                        sizes[] = {2, 4};
  static pph_payload_transpose transpose = {
      .num_dims = 2, .perm = {perm, 2}, .input_id = 0, .output_id = 1};
  static pph_payload_reshape reshape = {
      .num_dims = 2, .new_shape = {shape, 2}, .input_id = 1, .output_id = 2};
  static pph_payload_pad pad = {.pre_paddings = {pre, 2},
                                .post_paddings = {post, 2},
                                .padding_value = 0.5f,
                                .input_id = 2,
                                .output_id = 3};
  static pph_payload_slice slice = {.num_dims = 2,
                                    .offsets = {offsets, 2},
                                    .sizes = {sizes, 2},
                                    .input_id = 3,
                                    .output_id = 4};
  static pph_payload_concatenate twice = {.axis = 0,
                                          .input1_id = 4,
                                          .input2_id = 4,
                                          .input3_id = UINT32_MAX,
                                          .input4_id = UINT32_MAX,
                                          .output_id = 5,
                                          .input5_id = UINT32_MAX};
  static const uint32_t dims[][2] = {{2, 3}, {3, 2}, {2, 3},
                                     {3, 4}, {2, 4}, {4, 4}};
  for (int i = 0; i < 6; i++) {
    uint32_t id = add_value(m, type, dims[i], 2);
    if (type != PPH_PAYLOAD_F32)
      set_scale(m, id, 0.25f, 3);
  }
  set_external(m, 0, 1);
  set_external(m, 5, 2);
  add_node(m, PPH_PAYLOAD_TRANSPOSE, &transpose);
  add_node(m, PPH_PAYLOAD_RESHAPE, &reshape);
  add_node(m, PPH_PAYLOAD_PAD, &pad);
  add_node(m, PPH_PAYLOAD_SLICE, &slice);
  add_node(m, PPH_PAYLOAD_CONCATENATE_2, &twice);
}

static void test_moves(void **state) {
  static const float x[] = {1, 2, 3, 4, 5, 6};
  static const float y[] = {1, 4, 2, 0.5f, 5, 3, 6, 0.5f,
                            1, 4, 2, 0.5f, 5, 3, 6, 0.5f};
  /* Integers pass unchanged; 0.5 is 2 steps above the zero point 3. */
  static const int8_t qx[] = {1, 2, 3, 4, 5, 6};
  static const int8_t qy[] = {1, 4, 2, 5, 5, 3, 6, 5, 1, 4, 2, 5, 5, 3, 6, 5};
  maker m = {.used = 0}, q = {.used = 0};
  pph_tensor in = make_tensor(PPH_F32, DIMS(2, 3), x);
  pph_tensor out = make_tensor(PPH_F32, DIMS(4, 4), y);
  move_chain(&m, PPH_PAYLOAD_F32);
  expect(&m, "moves", &in, &out, 0);
  in = make_tensor(PPH_I8, DIMS(2, 3), qx);
  out = make_tensor(PPH_I8, DIMS(4, 4), qy);
  move_chain(&q, PPH_PAYLOAD_Q8);
  expect(&q, "moves of integers", &in, &out, 0);
}

/* Convolutions of integers, by their definition on channels-last data. */
typedef struct conv_case {
  pph_payload_kind kind;
  pph_payload_conv conv; /* without ids */
  uint32_t height, width;
  bool per_channel;
} conv_case;

static const conv_case conv_cases[] = {
    {PPH_PAYLOAD_CONV,
     {.padding_top = 1, .padding_right = 2, .padding_left = 1,
      .kernel_height = 3, .kernel_width = 2, .subsampling_height = 2,
      .subsampling_width = 1, .dilation_height = 1, .dilation_width = 2,
      .group_input_channels = 2, .group_output_channels = 3, .groups = 2},
     5, 4, true},
    {PPH_PAYLOAD_DEPTHWISE,
     {.padding_bottom = 1, .kernel_height = 2, .kernel_width = 3,
      .subsampling_height = 1, .subsampling_width = 2, .dilation_height = 1,
      .dilation_width = 1, .group_input_channels = 1,
      .group_output_channels = 2, .groups = 3},
     4, 7, true},
    {PPH_PAYLOAD_CONV_TRANSPOSE,
     {.padding_top = 1, .padding_left = 2, .kernel_height = 3,
      .kernel_width = 4, .subsampling_height = 2, .subsampling_width = 2,
      .dilation_height = 1, .dilation_width = 1, .group_input_channels = 2,
      .group_output_channels = 3, .groups = 2, .adjustment_height = 1},
     3, 4, false},
    {PPH_PAYLOAD_CONV_TRANSPOSE,
     {.padding_top = 1, .padding_right = 1, .padding_bottom = 1,
      .padding_left = 1, .kernel_height = 4, .kernel_width = 4,
      .subsampling_height = 2, .subsampling_width = 2, .dilation_height = 1,
      .dilation_width = 1, .group_input_channels = 3,
      .group_output_channels = 5, .groups = 1},
     4, 3, true},
};
enum { CONV_CASES = sizeof conv_cases / sizeof *conv_cases };

static uint32_t find_length(uint32_t in, uint32_t kernel, uint32_t stride,
                            uint32_t dilation, uint32_t pads, uint32_t extra,
                            bool transposed) {
  uint32_t span = dilation * (kernel - 1) + 1;
  return transposed ? stride * (in - 1) + extra + span - pads
                    : (in + pads - span) / stride + 1;
}

/* Data of a case; `x` and `y` with their zero points, y's scale 1. */
typedef struct conv_data {
  int8_t x[1024], w[1024], y[2048];
  int32_t bias[16];
  float scales[16];
  uint32_t out[4], taps, channels, in_channels;
} conv_data;
enum { X_ZERO = 5, Y_ZERO = -9 };

/* The weight of output channel c at tap t for input i of its group. */
static int32_t weight(const conv_case *c, const conv_data *d, uint32_t channel,
                      uint32_t tap, uint32_t i) {
  return c->kind == PPH_PAYLOAD_DEPTHWISE
             ? d->w[tap * d->channels + channel]
             : d->w[(channel * d->taps + tap) *
                        c->conv.group_input_channels + i];
}

/* Which input position tap k of output o reads; -1: none. */
static int64_t find_input(bool transposed, int64_t o, int64_t k,
                          int64_t stride, int64_t dilation, int64_t pad,
                          int64_t length) {
  int64_t at = transposed ? o + pad - k * dilation : o * stride - pad +
                                                         k * dilation;
  if (transposed && (at < 0 || at % stride != 0))
    return -1;
  at = transposed ? at / stride : at;
  return at >= 0 && at < length ? at : -1;
}

static int32_t sum_up(const conv_case *c, const conv_data *d, uint32_t y,
                      uint32_t x, uint32_t channel) {
  const pph_payload_conv *v = &c->conv;
  bool transposed = c->kind == PPH_PAYLOAD_CONV_TRANSPOSE;
  int32_t sum = d->bias[channel];
  uint32_t group = channel / v->group_output_channels;
  for (uint32_t t = 0; t < d->taps; t++) {
    int64_t row = find_input(transposed, y, t / v->kernel_width,
                             v->subsampling_height, v->dilation_height,
                             v->padding_top, c->height);
    int64_t column = find_input(transposed, x, t % v->kernel_width,
                                v->subsampling_width, v->dilation_width,
                                v->padding_left, c->width);
    for (uint32_t i = 0; row >= 0 && column >= 0 &&
                         i < v->group_input_channels; i++)
      sum += weight(c, d, channel, t, i) *
             (d->x[((uint32_t)row * c->width + (uint32_t)column) *
                       d->in_channels +
                   group * v->group_input_channels + i] -
              X_ZERO);
  }
  return sum;
}

static void fill_conv(const conv_case *c, conv_data *d, test_random *random) {
  const pph_payload_conv *v = &c->conv;
  bool transposed = c->kind == PPH_PAYLOAD_CONV_TRANSPOSE;
  d->taps = v->kernel_height * v->kernel_width;
  d->channels = v->groups * v->group_output_channels;
  d->in_channels = v->groups * v->group_input_channels;
  d->out[0] = 1;
  d->out[1] = find_length(c->height, v->kernel_height, v->subsampling_height,
                          v->dilation_height,
                          v->padding_top + v->padding_bottom,
                          v->adjustment_height, transposed);
  d->out[2] = find_length(c->width, v->kernel_width, v->subsampling_width,
                          v->dilation_width, v->padding_left + v->padding_right,
                          v->adjustment_width, transposed);
  d->out[3] = d->channels;
  for (int i = 0; i < 1024; i++) {
    d->x[i] = (int8_t)test_random_range(random, -128, 127);
    d->w[i] = (int8_t)test_random_range(random, -127, 127);
  }
  for (int i = 0; i < 16; i++) {
    d->bias[i] = (int32_t)test_random_range(random, -9999, 9999);
    d->scales[i] = (float)test_random_range(random, 1, 99) * 1e-5f;
  }
}

/* XNNPACK's integers: the float product, rounded to even, clamped. */
static void compute_conv(const conv_case *c, conv_data *d) {
  uint32_t count = d->out[1] * d->out[2] * d->channels;
  assert_true(count <= sizeof d->y);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t channel = i % d->channels, place = i / d->channels;
    float scale = 0.5f * d->scales[c->per_channel ? channel : 0];
    int32_t sum =
        sum_up(c, d, place / d->out[2], place % d->out[2], channel);
    float y = rintf((float)sum * scale) + Y_ZERO;
    d->y[i] = (int8_t)fmaxf(fminf(y, 100), -128);
  }
}

static void make_conv(maker *m, const conv_case *c, const conv_data *d,
                      pph_payload_conv *table) {
  uint32_t kernel[4] = {d->channels, c->conv.kernel_height,
                        c->conv.kernel_width, c->conv.group_input_channels};
  bool deep = c->kind == PPH_PAYLOAD_DEPTHWISE;
  if (deep) {
    kernel[0] = 1;
    kernel[3] = d->channels;
  }
  set_external(m, add_value(m, PPH_PAYLOAD_Q8,
                            DIMS(1, c->height, c->width, d->in_channels)), 1);
  set_external(m, add_value(m, PPH_PAYLOAD_Q8, d->out, 4), 2);
  set_scale(m, 0, 0.5f, X_ZERO);
  set_scale(m, 1, 1, Y_ZERO);
  add_value(m, c->per_channel ? PPH_PAYLOAD_QC8 : PPH_PAYLOAD_Q8, kernel, 4);
  add_value(m, c->per_channel ? PPH_PAYLOAD_QC32 : PPH_PAYLOAD_Q32,
            &d->channels, 1);
  m->tensors[2].constant_buffer_idx =
      add_data(m, d->w, d->taps * d->channels * c->conv.group_input_channels);
  m->tensors[3].constant_buffer_idx =
      add_data(m, d->bias, d->channels * sizeof *d->bias);
  for (uint32_t i = 2; i < 4; i++)
    if (c->per_channel)
      set_scales(m, i, deep && i == 2 ? 3 : 0, d->scales, d->channels);
    else
      set_scale(m, i, d->scales[0], 0);
  *table = c->conv;
  table->filter_id = 2;
  table->bias_id = 3;
  table->output_id = 1;
  m->ranges[0] = (pph_payload_min_max){-INFINITY, 109};
  add_node(m, c->kind, table)->output_min_max = &m->ranges[0];
}

static void test_integer_convs(void **state) {
  test_random random = {test_seed("convolutions of integers")};
  static conv_data d;
  for (int i = 0; i < 3 * CONV_CASES; i++) {
    const conv_case *c = &conv_cases[i % CONV_CASES];
    maker m = {.used = 0};
    pph_payload_conv table;
    fill_conv(c, &d, &random);
    compute_conv(c, &d);
    make_conv(&m, c, &d, &table);
    pph_tensor in = make_tensor(
        PPH_I8, DIMS(1, c->height, c->width, d.in_channels), d.x);
    pph_tensor out = make_tensor(PPH_I8, d.out, 4, d.y);
    expect(&m, pph_payload_kind_name(c->kind), &in, &out, 0);
  }
}

/* Linear layers on rows that are quantized in the run. */
enum { ROWS = 2, IN = 64, OUT = 5, GROUP = 32 };

/* XNNPACK's parameters of a row. */
static void quantize_row(const float *x, int32_t *q, float *scale) {
  float low = 0, high = 0;
  for (int i = 0; i < IN; i++) {
    low = fminf(low, x[i]);
    high = fmaxf(high, x[i]);
  }
  float inverse = low < high ? 255 / (high - low) : 1;
  float a = -128 - low * inverse, b = 127 - high * inverse;
  float errors = (-128 + low * inverse) + (127 + high * inverse);
  float zero = rintf(fminf(fmaxf(errors > 0 ? a : b, -128), 127));
  for (int i = 0; i < IN; i++)
    q[i] = (int32_t)(fminf(fmaxf(rintf(x[i] * inverse), -128 - zero),
                           127 - zero));
  *scale = 1 / inverse;
}

static float halve(float x) { /* to bfloat16 */
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= 0xffff0000;
  memcpy(&x, &bits, sizeof bits);
  return x;
}

static void make_linear(maker *m, bool groups, const int8_t *w,
                        const float *scales, const float *bias,
                        pph_payload_linear *table) {
  static pph_payload_unary convert = {.input_id = 0, .output_id = 4};
  uint8_t packed[OUT * IN / 2];
  uint16_t halves[OUT * IN / GROUP];
  set_external(m, add_value(m, PPH_PAYLOAD_F32, DIMS(ROWS, IN)), 1);
  set_external(m, add_value(m, PPH_PAYLOAD_F32, DIMS(ROWS, OUT)), 2);
  add_value(m, groups ? PPH_PAYLOAD_QB4 : PPH_PAYLOAD_QC8, DIMS(OUT, IN));
  add_value(m, PPH_PAYLOAD_F32, DIMS(OUT));
  add_value(m, PPH_PAYLOAD_QD8, DIMS(ROWS, IN));
  for (int i = 0; i < OUT * IN / 2; i++)
    packed[i] = (uint8_t)((w[2 * i] + 8) | (w[2 * i + 1] + 8) * 16);
  for (int i = 0; i < OUT * IN / GROUP; i++) {
    uint32_t bits;
    memcpy(&bits, &scales[i], sizeof bits);
    halves[i] = (uint16_t)(bits >> 16);
  }
  m->tensors[2].constant_buffer_idx =
      groups ? add_data(m, packed, sizeof packed) : add_data(m, w, OUT * IN);
  m->tensors[3].constant_buffer_idx =
      add_data(m, bias, OUT * sizeof *bias);
  m->groups[2] = (pph_payload_per_group){.group_size = GROUP};
  if (groups) {
    m->groups[2].scale_buffer_idx = add_data(m, halves, sizeof halves);
    quantize(m, 2, PPH_PAYLOAD_PER_GROUP, &m->groups[2]);
  } else {
    set_scales(m, 2, 0, scales, OUT);
  }
  m->rows[4].num_nonbatch_dims = 1;
  quantize(m, 4, PPH_PAYLOAD_DYNAMIC, &m->rows[4]);
  *table = (pph_payload_linear){.input1_id = 4, .filter_id = 2, .bias_id = 3,
                                .output_id = 1};
  add_node(m, PPH_PAYLOAD_CONVERT, &convert);
  add_node(m, PPH_PAYLOAD_FULLY_CONNECTED, table);
}

static void test_dynamic_linear(void **state) {
  test_random random = {test_seed("linear layers")};
  for (int round = 0; round < 8; round++) {
    bool groups = round % 2;
    float x[ROWS * IN], bias[OUT], scales[OUT * IN / GROUP], y[ROWS * OUT];
    int8_t w[OUT * IN];
    maker m = {.used = 0};
    pph_payload_linear table;
    for (int i = 0; i < ROWS * IN; i++) /* the last row is all 0, or above */
      x[i] = round < 2 && i >= IN
                 ? 0
                 : (float)test_random_range(&random, round < 4 ? 5 : -90, 90) /
                       7;
    for (int i = 0; i < OUT * IN; i++)
      w[i] = (int8_t)test_random_range(&random, groups ? -8 : -127,
                                       groups ? 7 : 127);
    for (int i = 0; i < OUT; i++)
      bias[i] = (float)test_random_range(&random, -9, 9);
    for (int i = 0; i < OUT * IN / GROUP; i++)
      scales[i] = halve((float)test_random_range(&random, 1, 99) * 1e-3f);
    for (int r = 0; r < ROWS; r++) {
      int32_t q[IN];
      float scale;
      quantize_row(x + r * IN, q, &scale);
      for (int o = 0; o < OUT; o++) {
        double sum = 0;
        for (int i = 0; i < IN; i++)
          sum += (double)q[i] * w[o * IN + i] *
                 (double)scales[groups ? o * (IN / GROUP) + i / GROUP : o];
        y[r * OUT + o] = (float)(sum * (double)scale + (double)bias[o]);
      }
    }
    make_linear(&m, groups, w, scales, bias, &table);
    pph_tensor in = make_tensor(PPH_F32, DIMS(ROWS, IN), x);
    pph_tensor out = make_tensor(PPH_F32, DIMS(ROWS, OUT), y);
    expect(&m, groups ? "4 bits" : "8 bits", &in, &out, 1e-5);
  }
}

/* A FullyConnected of those types must be refused with them named. */
static void refuse_types(pph_payload_type input, pph_payload_type filter,
                         const char *message) {
  static const float scales[OUT] = {1, 1, 1, 1, 1};
  static const uint8_t bytes[OUT * IN * 4];
  maker m = {.used = 0};
  pph_model model;
  pph_error error = {0};
  pph_payload_linear table = {.input1_id = 0, .filter_id = 2,
                              .bias_id = UINT32_MAX, .output_id = 1};
  set_external(&m, add_value(&m, input, DIMS(ROWS, IN)), 1);
  set_external(&m, add_value(&m, PPH_PAYLOAD_F32, DIMS(ROWS, OUT)), 2);
  add_value(&m, filter, DIMS(OUT, IN));
  m.tensors[2].constant_buffer_idx = add_data(&m, bytes, sizeof bytes);
  if (input == PPH_PAYLOAD_Q8)
    set_scale(&m, 0, 1, 0);
  if (input == PPH_PAYLOAD_QD8) { /* not from outside: by a Convert */
    static pph_payload_unary convert = {.input_id = 3, .output_id = 0};
    m.tensors[0].flags = 0;
    m.externals = 1;
    set_external(&m, add_value(&m, PPH_PAYLOAD_F32, DIMS(ROWS, IN)), 1);
    m.tensors[1].external_id = 0;
    m.rows[0].num_nonbatch_dims = 1;
    quantize(&m, 0, PPH_PAYLOAD_DYNAMIC, &m.rows[0]);
    add_node(&m, PPH_PAYLOAD_CONVERT, &convert);
  }
  m.groups[2] = (pph_payload_per_group){.group_size = GROUP};
  if (filter == PPH_PAYLOAD_Q8)
    set_scale(&m, 2, 1, 0);
  else if (filter == PPH_PAYLOAD_QB4)
    quantize(&m, 2, PPH_PAYLOAD_PER_GROUP, &m.groups[2]);
  else
    set_scales(&m, 2, 0, scales, OUT);
  add_node(&m, PPH_PAYLOAD_FULLY_CONNECTED, &table);
  pph_payload payload = finish(&m);
  open_model(&model);
  assert_int_equal(import(&payload, &model, &error), PPH_UNSUPPORTED);
  if (!strstr(error.message, message))
    fail_msg("\"%s\" should say %s", error.message, message);
  assert_int_equal(model.graph.node_count, 0);
  close_model(&model);
}

static void test_refused_types(void **state) {
  refuse_types(PPH_PAYLOAD_F32, PPH_PAYLOAD_QC8, "fp32, qcint8, none, fp32");
  refuse_types(PPH_PAYLOAD_F32, PPH_PAYLOAD_QB4, "fp32, qbint4, none, fp32");
  refuse_types(PPH_PAYLOAD_F32, PPH_PAYLOAD_QC4, "fp32, qcint4, none, fp32");
  refuse_types(PPH_PAYLOAD_QD8, PPH_PAYLOAD_Q8, "qdint8, qint8, none, fp32");
  refuse_types(PPH_PAYLOAD_QD8, PPH_PAYLOAD_QC4, "qdint8, qcint4, none, fp32");
  refuse_types(PPH_PAYLOAD_Q8, PPH_PAYLOAD_Q8, "qint8, qint8, none, fp32");
  refuse_types(PPH_PAYLOAD_Q8, PPH_PAYLOAD_QC8, "qint8, qcint8, none, fp32");
}

/* The seeds of fuzz_xnn_payload: PPH_WRITE_SEEDS names their folder. */
static void save_seed(const char *name, const void *bytes, size_t length) {
  const char *folder = getenv("PPH_WRITE_SEEDS");
  char path[4096];
  if (!folder)
    return;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  fclose(file);
}

/* Damaged payloads are refused or imported, without a fault. */
static void damage(maker *m, test_random *random, const char *name) {
  pph_payload payload = finish(m);
  pph_error error = {0};
  size_t length;
  uint8_t *bytes = pte_write_payload(&payload, &length);
  save_seed(name, bytes, length);
  for (int i = 0; i < 400; i++) {
    size_t kept = i % 4 ? length
                        : (size_t)test_random_range(random, 0, (int64_t)length);
    uint8_t *copy = malloc(kept + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, kept);
    for (int64_t flips = kept ? test_random_range(random, 1, 4) : 0; flips;
         flips--)
      copy[test_random_range(random, 0, (int64_t)kept - 1)] ^=
          (uint8_t)(1 << test_random_range(random, 0, 7));
    pph_model model;
    pph_payload read;
    open_model(&model);
    if (pph_payload_read((pph_pte_bytes){copy, kept}, &model.graph.arena,
                         &read, &error) == PPH_OK)
      (void)!import(&read, &model, &error);
    close_model(&model);
    free(copy);
  }
  free(bytes);
}

static void test_damage(void **state) {
  static const int8_t w[OUT * IN];
  static const float ones[OUT * IN / GROUP] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  test_random random = {test_seed("damaged payloads")};
  static conv_data d;
  char name[16];
  for (int i = 0; i < CONV_CASES; i++) {
    maker m = {.used = 0};
    pph_payload_conv table;
    fill_conv(&conv_cases[i], &d, &random);
    make_conv(&m, &conv_cases[i], &d, &table);
    snprintf(name, sizeof name, "conv%d", i);
    damage(&m, &random, name);
  }
  for (int i = 0; i < 2; i++) {
    maker m = {.used = 0};
    pph_payload_linear table;
    make_linear(&m, i, w, ones, ones, &table);
    damage(&m, &random, i ? "groups" : "channels");
  }
  maker m = {.used = 0};
  move_chain(&m, PPH_PAYLOAD_F32);
  damage(&m, &random, "moves");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unary),
      cmocka_unit_test(test_binary),
      cmocka_unit_test(test_moves),
      cmocka_unit_test(test_integer_convs),
      cmocka_unit_test(test_dynamic_linear),
      cmocka_unit_test(test_refused_types),
      cmocka_unit_test(test_damage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
