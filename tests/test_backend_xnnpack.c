/* Every kind of the XNNPACK backend against the reference evaluator: random
   shapes, attributes, layouts and activations, exact on small integers where
   only sums and products are taken, else within 1e-5. */
#include "test_backend_xnnpack.h"

static pph_shape image_shape(trial *t, int axes, int64_t channels,
                             int64_t longest) {
  if (axes == 1)
    return DIMS(pick(t, 1, 2), channels, pick(t, 1, longest));
  return DIMS(pick(t, 1, 2), channels, pick(t, 1, longest),
              pick(t, 1, longest));
}

/* Groups, channels per group in and out. */
static void pick_channels(trial *t, int64_t sizes[3]) {
  int64_t which = pick(t, 0, 2);
  sizes[0] = which == 0 ? 1 : which == 1 ? pick(t, 2, 3) : pick(t, 1, 19);
  sizes[1] = which == 2 ? 1 : pick(t, 1, 9);
  sizes[2] = which == 2 ? 1 : pick(t, 1, 21);
}

static void pick_ints(trial *t, pph_attribute_key key, int count, int64_t low,
                      int64_t high) {
  int64_t ints[8];
  for (int i = 0; i < count; i++)
    ints[i] = pick(t, low, high);
  set_ints(t, key, ints, (uint32_t)count);
}

static void add_bias(trial *t, int64_t channels) {
  if (pick(t, 0, 1))
    add_floats(t, DIMS(channels), NULL);
}

static pph_shape weight_shape(trial *t, int axes, int64_t first, int64_t second,
                              int64_t longest) {
  if (axes == 1)
    return DIMS(first, second, pick(t, 1, longest));
  if (pick(t, 0, 2) == 0) /* the sizes that XNNPACK has kernels for */
    return DIMS(first, second, 3, 3);
  return DIMS(first, second, pick(t, 1, longest), pick(t, 1, longest));
}

static void test_conv(void **state) {
  test_random random = {test_seed("conv")};
  tally count = {0};
  for (int i = 0; i < 150; i++) {
    trial t;
    int64_t sizes[3];
    begin(&t, &random);
    int axes = (int)pick(&t, 1, 2);
    pick_channels(&t, sizes);
    add_input(&t, image_shape(&t, axes, sizes[0] * sizes[1], 12),
              PPH_LAYOUT_CHANNELS_LAST);
    add_floats(&t, weight_shape(&t, axes, sizes[0] * sizes[2], sizes[1], 5),
               NULL);
    add_bias(&t, sizes[0] * sizes[2]);
    add_node(&t, PPH_NODE_CONV);
    set_int(&t, PPH_ATTR_GROUP, sizes[0]);
    pick_ints(&t, PPH_ATTR_STRIDES, axes, 1, 3);
    pick_ints(&t, PPH_ATTR_DILATIONS, axes, 1, 2);
    pick_ints(&t, PPH_ATTR_PADS, 2 * axes, 0, 3);
    set_activation(&t);
    judge(&t,
          sizes[1] == 1 && sizes[2] == 1 ? "xnnpack.depthwise"
                                         : "xnnpack.convolution",
          &count);
  }
  expect_all(count, 80);
}

static void test_conv_transpose(void **state) {
  test_random random = {test_seed("conv_transpose")};
  tally count = {0};
  for (int i = 0; i < 250; i++) {
    trial t;
    int64_t sizes[3];
    begin(&t, &random);
    int axes = (int)pick(&t, 1, 2);
    pick_channels(&t, sizes);
    add_input(&t, image_shape(&t, axes, sizes[0] * sizes[1], 7),
              PPH_LAYOUT_CHANNELS_LAST);
    add_floats(&t, weight_shape(&t, axes, sizes[0] * sizes[1], sizes[2], 6),
               NULL);
    add_bias(&t, sizes[0] * sizes[2]);
    add_node(&t, PPH_NODE_CONV_TRANSPOSE);
    set_int(&t, PPH_ATTR_GROUP, sizes[0]);
    pick_ints(&t, PPH_ATTR_STRIDES, axes, 1, 4);
    pick_ints(&t, PPH_ATTR_DILATIONS, axes, 1, pick(&t, 1, 2));
    pick_ints(&t, PPH_ATTR_PADS, 2 * axes, 0, 3);
    pick_ints(&t, PPH_ATTR_OUTPUT_PADDING, axes, 0, 1);
    set_activation(&t);
    judge(&t, "xnnpack.deconvolution", &count);
  }
  expect_most(count, 60);
}

/* One transposed convolution of [1,4,I,I] channels, square in everything. */
static void begin_square(trial *t, test_random *random, const int64_t pads[4],
                         const int64_t square[4]) {
  begin(t, random);
  int64_t input = square[0], kernel = square[1];
  add_input(t, DIMS(1, 4, input, input), PPH_LAYOUT_CHANNELS_LAST);
  add_floats(t, DIMS(4, 6, kernel, kernel), NULL);
  add_node(t, PPH_NODE_CONV_TRANSPOSE);
  set_ints(t, PPH_ATTR_STRIDES, (int64_t[]){square[2], square[2]}, 2);
  set_ints(t, PPH_ATTR_OUTPUT_PADDING, (int64_t[]){square[3], square[3]}, 2);
  set_ints(t, PPH_ATTR_PADS, pads, 4);
}

/* The upsamplings that nets use, and what XNNPACK's deconvolution is not. */
static void test_conv_transpose_cases(void **state) {
  static const struct {
    int64_t square[4]; /* input, kernel, stride, output padding */
    int64_t pads[4];
    bool runs;
  } cases[] = {
      {{5, 4, 2, 0}, {1, 1, 1, 1}, true},
      {{5, 4, 2, 0}, {0, 0, 0, 0}, true},
      {{5, 3, 2, 1}, {1, 1, 1, 1}, true},
      {{5, 2, 2, 0}, {0, 0, 0, 0}, true},
      {{5, 4, 4, 0}, {0, 0, 0, 0}, true},
      {{5, 5, 3, 1}, {2, 0, 1, 1}, true},
      {{5, 2, 3, 0}, {0, 0, 0, 0}, true},    /* kernel below stride */
      {{5, 2, 2, 1}, {0, 0, 0, 0}, true},    /* adjustment without pads */
      {{5, 4, 2, 0}, {1, 1, -1, -1}, true},  /* end pad as adjustment */
      {{5, 4, 2, 0}, {1, 1, -2, -2}, false}, /* and one too long for that */
      {{5, 4, 2, 0}, {-1, -1, 1, 1}, false},
      {{1, 4, 4, 0}, {1, 1, 0, 0}, false}, /* output shorter than stride */
  };
  test_random random = {test_seed("conv_transpose_cases")};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    trial t;
    tally count = {0};
    begin_square(&t, &random, cases[i].pads, cases[i].square);
    judge(&t, "xnnpack.deconvolution", &count);
    if (count.legal) /* negative pads may be refused by inference */
      assert_int_equal(count.ran, cases[i].runs);
  }
}

static void test_pooling(void **state) {
  test_random random = {test_seed("pooling")};
  tally count[2] = {{0}, {0}};
  for (int i = 0; i < 300; i++) {
    trial t;
    begin(&t, &random);
    int axes = (int)pick(&t, 1, 2);
    bool average = pick(&t, 0, 1);
    add_input(&t, image_shape(&t, axes, pick(&t, 1, 19), 12),
              PPH_LAYOUT_CHANNELS_LAST);
    add_node(&t, average ? PPH_NODE_AVERAGE_POOL : PPH_NODE_MAX_POOL);
    pick_ints(&t, PPH_ATTR_KERNEL_SHAPE, axes, 1, 5);
    pick_ints(&t, PPH_ATTR_STRIDES, axes, 1, 3);
    pick_ints(&t, PPH_ATTR_PADS, 2 * axes, 0, pick(&t, 0, 2));
    set_int(&t, PPH_ATTR_CEIL_MODE, pick(&t, 0, 1));
    if (average) {
      set_int(&t, PPH_ATTR_COUNT_INCLUDE_PAD, pick(&t, 0, 3) == 0);
      t.exact = false;
    } else {
      pick_ints(&t, PPH_ATTR_DILATIONS, axes, 1, pick(&t, 1, 3));
    }
    set_activation(&t);
    judge(&t, average ? "xnnpack.average_pooling" : "xnnpack.max_pooling",
          &count[average]);
  }
  expect_most(count[0], 50);
  expect_most(count[1], 50);
}

/* Windows beside the input: XNNPACK would read some pixel that is not theirs.
   [1,2,input] channels of one axis. */
static void test_pooling_refusals(void **state) {
  static const struct {
    pph_node_kind kind;
    int64_t input, kernel, stride, dilation, pads[2];
  } cases[] = {
      {PPH_NODE_MAX_POOL, 1, 2, 1, 2, {1, 1}}, /* pixels -1 and 1 of one */
      {PPH_NODE_MAX_POOL, 3, 3, 1, 2, {4, 4}},
      {PPH_NODE_MAX_POOL, 3, 2, 1, 1, {2, 0}},
      {PPH_NODE_MAX_POOL, 3, 2, 1, 1, {0, 2}},
      {PPH_NODE_AVERAGE_POOL, 3, 2, 1, 1, {0, 2}},
      {PPH_NODE_MAX_POOL, 3, 1, 2, 1, {0, 0}}, /* no pooling at all */
  };
  test_random random = {test_seed("pooling_refusals")};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    trial t;
    tally count = {0};
    begin(&t, &random);
    add_input(&t, DIMS(1, 2, cases[i].input), PPH_LAYOUT_CHANNELS_LAST);
    add_node(&t, cases[i].kind);
    set_ints(&t, PPH_ATTR_KERNEL_SHAPE, &cases[i].kernel, 1);
    set_ints(&t, PPH_ATTR_STRIDES, &cases[i].stride, 1);
    if (cases[i].kind == PPH_NODE_MAX_POOL)
      set_ints(&t, PPH_ATTR_DILATIONS, &cases[i].dilation, 1);
    set_ints(&t, PPH_ATTR_PADS, cases[i].pads, 2);
    judge(&t, "", &count); /* inference may refuse it before */
    assert_int_equal(count.ran, 0);
  }
}

/* Where XNNPACK's windows spoil each other's padding. */
static void test_pooling_dilated_height(void **state) {
  test_random random = {test_seed("pooling_dilated_height")};
  for (int64_t pad = 0; pad < 2; pad++) {
    trial t;
    tally count = {0};
    begin(&t, &random);
    add_input(&t, DIMS(1, 2, 5, 6), PPH_LAYOUT_CHANNELS_LAST);
    add_node(&t, PPH_NODE_MAX_POOL);
    set_ints(&t, PPH_ATTR_KERNEL_SHAPE, (int64_t[]){3, 3}, 2);
    set_ints(&t, PPH_ATTR_DILATIONS, (int64_t[]){2, 1}, 2);
    set_ints(&t, PPH_ATTR_PADS, (int64_t[]){1, pad, 1, pad}, 4);
    judge(&t, "xnnpack.max_pooling", &count);
    assert_int_equal(count.legal, 1);
    assert_int_equal(count.ran, pad == 0);
  }
}

static void test_global_average_pool(void **state) {
  test_random random = {test_seed("global_average_pool")};
  tally count = {0};
  for (int i = 0; i < 30; i++) {
    trial t;
    begin(&t, &random);
    add_input(&t, image_shape(&t, (int)pick(&t, 1, 2), pick(&t, 1, 19), 9),
              PPH_LAYOUT_CHANNELS_LAST);
    add_node(&t, PPH_NODE_GLOBAL_AVERAGE_POOL);
    t.exact = false;
    set_activation(&t);
    judge(&t, "xnnpack.global_average_pooling", &count);
  }
  expect_all(count, 30);
}

static void test_unary(void **state) {
  static const struct {
    pph_node_kind kind;
    bool exact;
    fill fill;
    const char *algorithm;
  } kinds[] = {
      {PPH_NODE_ABS, true, INTEGER, "xnnpack.abs"},
      {PPH_NODE_CEIL, true, REAL, "xnnpack.ceiling"},
      {PPH_NODE_CLIP, true, INTEGER, "xnnpack.clamp"},
      {PPH_NODE_ELU, false, REAL, "xnnpack.elu"},
      {PPH_NODE_FLOOR, true, REAL, "xnnpack.floor"},
      {PPH_NODE_HARD_SWISH, false, INTEGER, "xnnpack.hardswish"},
      {PPH_NODE_LEAKY_RELU, false, REAL, "xnnpack.leaky_relu"},
      {PPH_NODE_NEG, true, REAL, "xnnpack.negate"},
      {PPH_NODE_RELU, true, INTEGER, "xnnpack.clamp"},
      {PPH_NODE_ROUND, true, REAL, "xnnpack.bankers_rounding"},
      {PPH_NODE_SIGMOID, false, INTEGER, "xnnpack.sigmoid"},
      {PPH_NODE_SQRT, false, POSITIVE, "xnnpack.square_root"},
  };
  test_random random = {test_seed("unary")};
  tally count = {0};
  for (size_t i = 0; i < 3 * (sizeof kinds / sizeof kinds[0]); i++) {
    size_t k = i / 3;
    trial t;
    begin(&t, &random);
    t.fill = kinds[k].fill;
    t.exact = kinds[k].exact;
    add_input(&t, image_shape(&t, 2, pick(&t, 1, 9), 40),
              PPH_LAYOUT_CHANNELS_LAST);
    if (kinds[k].kind == PPH_NODE_CLIP) {
      add_floats(&t, SCALAR, (float[]){-2});
      if (pick(&t, 0, 1))
        add_floats(&t, SCALAR, (float[]){3});
    }
    add_node(&t, kinds[k].kind);
    set_activation(&t);
    judge(&t, kinds[k].algorithm, &count);
  }
  expect_all(count, (int)(3 * (sizeof kinds / sizeof kinds[0])));
}

/* The operand of a binary node: the output's shape with axes of 1, leading
   axes left out, in any layout. */
static void add_operand(trial *t, pph_shape full, bool whole) {
  pph_shape shape = full;
  if (!whole) {
    for (int32_t i = 0; i < full.rank; i++)
      shape.dims[i] = pick(t, 0, 1) ? 1 : full.dims[i];
    int32_t drop = (int32_t)pick(t, 0, full.rank);
    shape = shape_of(full.rank - drop, shape.dims + drop);
  }
  bool plain = shape.rank < 3 || pick(t, 0, 2) == 0;
  add_input(t, shape, plain ? PPH_LAYOUT_PLAIN : PPH_LAYOUT_CHANNELS_LAST);
}

static void test_binary(void **state) {
  static const struct {
    pph_node_kind kind;
    const char *algorithm;
  } kinds[] = {
      {PPH_NODE_ADD, "xnnpack.add"},      {PPH_NODE_DIV, "xnnpack.divide"},
      {PPH_NODE_MUL, "xnnpack.multiply"}, {PPH_NODE_SUB, "xnnpack.subtract"},
      {PPH_NODE_MAX, "xnnpack.maximum"},  {PPH_NODE_MIN, "xnnpack.minimum"},
  };
  test_random random = {test_seed("binary")};
  tally count = {0};
  for (int i = 0; i < 400; i++) {
    trial t;
    begin(&t, &random);
    size_t k = (size_t)pick(&t, 0, 5);
    if (kinds[k].kind == PPH_NODE_DIV)
      t.fill = POSITIVE;
    pph_shape full = {.rank = (int32_t)pick(&t, 0, 7)};
    for (int32_t a = 0; a < full.rank; a++)
      full.dims[a] = pick(&t, 1, 4);
    t.output_layout = full.rank >= 3 && pick(&t, 0, 2)
                          ? PPH_LAYOUT_CHANNELS_LAST
                          : PPH_LAYOUT_PLAIN;
    int64_t whole = pick(&t, 0, 3);
    add_operand(&t, full, whole & 1);
    add_operand(&t, full, whole & 2);
    add_node(&t, kinds[k].kind);
    set_activation(&t);
    judge(&t, kinds[k].algorithm, &count);
  }
  assert_int_equal(count.legal, 400);
  assert_true(count.ran > 200);
}

/* What of two layouts fits: [output, second operand] of a [2,3,4,5] sum. */
static void test_binary_orders(void **state) {
  const pph_layout plain = PPH_LAYOUT_PLAIN, last = PPH_LAYOUT_CHANNELS_LAST;
  const struct {
    pph_layout output, operand;
    pph_shape shape;
    bool runs;
  } cases[] = {
      {last, last, DIMS(2, 3, 4, 5), true},
      {last, plain, DIMS(2, 3, 4, 5), false},
      {plain, last, DIMS(2, 3, 4, 5), false},
      {last, plain, DIMS(1, 3, 1, 1), true}, /* one axis has no order */
      {last, plain, DIMS(3, 1, 1), true},
      {last, plain, DIMS(4, 5), true},
      {last, plain, DIMS(5), true},
      {last, plain, DIMS(2, 1, 4, 5), true},
      {last, plain, DIMS(3, 4, 5), false},
      {last, plain, DIMS(2, 3, 1, 1), true},
      {last, plain, DIMS(1, 3, 4, 1), false},
      {plain, plain, DIMS(3, 4, 5), true},
      {plain, last, DIMS(2, 3, 1, 1), true},
  };
  test_random random = {test_seed("binary_orders")};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    trial t;
    tally count = {0};
    begin(&t, &random);
    t.output_layout = cases[i].output;
    add_input(&t, DIMS(2, 3, 4, 5), cases[i].output);
    add_input(&t, cases[i].shape, cases[i].operand);
    add_node(&t, PPH_NODE_ADD);
    judge(&t, "xnnpack.add", &count);
    assert_int_equal(count.ran, cases[i].runs);
  }
}

static void test_prelu(void **state) {
  test_random random = {test_seed("prelu")};
  tally count = {0};
  for (int i = 0; i < 30; i++) {
    trial t;
    begin(&t, &random);
    int64_t channels = pick(&t, 1, 19);
    add_input(&t, image_shape(&t, 2, channels, 9), PPH_LAYOUT_CHANNELS_LAST);
    add_floats(&t, pick(&t, 0, 2) ? DIMS(channels, 1, 1) : DIMS(1), NULL);
    add_node(&t, PPH_NODE_PRELU);
    set_activation(&t);
    judge(&t, "xnnpack.prelu", &count);
  }
  expect_all(count, 30);
}

static void test_softmax(void **state) {
  test_random random = {test_seed("softmax")};
  tally count = {0};
  for (int i = 0; i < 30; i++) {
    trial t;
    begin(&t, &random);
    t.exact = false;
    bool last = pick(&t, 0, 1);
    t.output_layout = last ? PPH_LAYOUT_CHANNELS_LAST : PPH_LAYOUT_PLAIN;
    add_input(&t, image_shape(&t, 2, pick(&t, 1, 19), 19), t.output_layout);
    add_node(&t, PPH_NODE_SOFTMAX);
    if (last || pick(&t, 0, 1))
      set_int(&t, PPH_ATTR_AXIS, last ? 1 : 3);
    judge(&t, "xnnpack.softmax", &count);
  }
  expect_all(count, 30);
}

static void test_matmul_and_gemm(void **state) {
  test_random random = {test_seed("matmul_and_gemm")};
  tally count = {0};
  for (int i = 0; i < 80; i++) {
    trial t;
    begin(&t, &random);
    t.output_layout = PPH_LAYOUT_PLAIN;
    bool gemm = pick(&t, 0, 1), transposed = gemm && pick(&t, 0, 1);
    int64_t in = pick(&t, 1, 40), out = pick(&t, 1, 40), rows = pick(&t, 1, 9);
    add_input(&t, gemm ? DIMS(rows, in) : DIMS(2, rows, in), PPH_LAYOUT_PLAIN);
    add_floats(&t, transposed ? DIMS(out, in) : DIMS(in, out), NULL);
    if (gemm) {
      const pph_shape biases[] = {DIMS(out), DIMS(1, out), DIMS(1)};
      int64_t bias = pick(&t, 0, 3);
      if (bias > 0)
        add_floats(&t, biases[bias - 1], NULL);
    }
    add_node(&t, gemm ? PPH_NODE_GEMM : PPH_NODE_MATMUL);
    if (gemm)
      set_int(&t, PPH_ATTR_TRANS_B, transposed);
    set_activation(&t);
    judge(&t, "xnnpack.fully_connected", &count);
  }
  expect_all(count, 80);
}

static void test_resize(void **state) {
  static const char *const modes[] = {"half_pixel", "pytorch_half_pixel",
                                      "align_corners", "asymmetric"};
  test_random random = {test_seed("resize")};
  tally count = {0};
  for (int i = 0; i < 120; i++) {
    trial t;
    begin(&t, &random);
    t.exact = false;
    int axes = (int)pick(&t, 1, 2);
    int64_t channels = pick(&t, 1, 19), batch = pick(&t, 1, 2);
    int64_t height = pick(&t, 1, 9), width = pick(&t, 2, 9);
    add_input(&t,
              axes == 1 ? DIMS(batch, channels, width)
                        : DIMS(batch, channels, height, width),
              PPH_LAYOUT_CHANNELS_LAST);
    skip_input(&t);
    if (pick(&t, 0, 1)) {
      float scales[4] = {1, 1, (float)pick(&t, 1, 4), (float)pick(&t, 1, 4)};
      add_floats(&t, DIMS(axes + 2), scales);
    } else {
      int64_t sizes[4] = {batch, channels, pick(&t, 2, 20), pick(&t, 2, 20)};
      skip_input(&t);
      add_ints(&t, sizes, (size_t)(axes + 2));
    }
    add_node(&t, PPH_NODE_RESIZE);
    set_text(&t, PPH_ATTR_MODE, "linear");
    set_text(&t, PPH_ATTR_COORDINATE_TRANSFORMATION_MODE,
             modes[pick(&t, 0, 3)]);
    set_activation(&t);
    judge(&t, "xnnpack.resize_bilinear", &count);
  }
  expect_most(count, 110);
}

/* A scale that is not the ratio of the lengths moves every position. */
static void test_resize_refusals(void **state) {
  test_random random = {test_seed("resize_refusals")};
  static const struct {
    const char *mode;
    float scale;
    bool runs;
  } cases[] = {
      {"half_pixel", 2.5f, true},       {"half_pixel", 1.3f, false},
      {"align_corners", 1.3f, false},   {"asymmetric", 1.3f, false},
      {"half_pixel", 0.25f, true},      {"pytorch_half_pixel", 0.25f, false},
      {"tf_crop_and_resize", 2, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    trial t;
    tally count = {0};
    begin(&t, &random);
    t.exact = false;
    add_input(&t, DIMS(1, 3, 4, 4), PPH_LAYOUT_CHANNELS_LAST);
    if (cases[i].scale == 2)
      add_floats(&t, DIMS(8), (float[]){0, 0, 0, 0, 1, 1, 1, 1});
    else
      skip_input(&t);
    add_floats(&t, DIMS(4), (float[]){1, 1, cases[i].scale, cases[i].scale});
    add_node(&t, PPH_NODE_RESIZE);
    set_text(&t, PPH_ATTR_MODE, "linear");
    set_text(&t, PPH_ATTR_COORDINATE_TRANSFORMATION_MODE, cases[i].mode);
    judge(&t, "xnnpack.resize_bilinear", &count);
    assert_int_equal(count.legal, 1);
    assert_int_equal(count.ran, cases[i].runs);
  }
}

static void test_depth_to_space(void **state) {
  test_random random = {test_seed("depth_to_space")};
  tally count = {0};
  for (int i = 0; i < 20; i++) {
    trial t;
    begin(&t, &random);
    t.exact = true;
    int64_t block = pick(&t, 2, 4);
    add_input(&t, image_shape(&t, 2, block * block * pick(&t, 1, 9), 7),
              PPH_LAYOUT_CHANNELS_LAST);
    add_node(&t, PPH_NODE_DEPTH_TO_SPACE);
    set_ints(&t, PPH_ATTR_BLOCKSIZE, (int64_t[]){block, block}, 2);
    judge(&t, "xnnpack.depth_to_space", &count);
  }
  expect_all(count, 20);
}

static void test_pad(void **state) {
  test_random random = {test_seed("pad")};
  tally count = {0};
  for (int i = 0; i < 60; i++) {
    trial t;
    int64_t pads[2 * PPH_MAX_RANK];
    begin(&t, &random);
    t.exact = true;
    pph_shape shape = {.rank = (int32_t)pick(&t, 1, 6)};
    for (int32_t a = 0; a < shape.rank; a++)
      shape.dims[a] = pick(&t, 1, 4);
    for (int32_t a = 0; a < 2 * shape.rank; a++)
      pads[a] = pick(&t, 0, 1) ? 0 : pick(&t, 0, 2);
    t.output_layout =
        shape.rank > 2 ? PPH_LAYOUT_CHANNELS_LAST : PPH_LAYOUT_PLAIN;
    add_input(&t, shape, t.output_layout);
    add_ints(&t, pads, (size_t)(2 * shape.rank));
    if (pick(&t, 0, 1))
      add_floats(&t, SCALAR, NULL);
    add_node(&t, PPH_NODE_PAD);
    judge(&t, "xnnpack.constant_pad", &count);
  }
  expect_all(count, 60);
}

/* A 3x3 convolution of [1,4,8,8] that the backend runs. */
static void begin_plain_conv(trial *t, test_random *random) {
  begin(t, random);
  add_input(t, DIMS(1, 4, 8, 8), PPH_LAYOUT_CHANNELS_LAST);
  add_floats(t, DIMS(5, 4, 3, 3), NULL);
  add_floats(t, DIMS(5), NULL);
  add_node(t, PPH_NODE_CONV);
  assert_true(infer(t));
  assert_true(supported(t));
}

static void test_refusals(void **state) {
  test_random random = {test_seed("refusals")};
  trial t;
  begin_plain_conv(&t, &random);
  t.node->activation = PPH_ACTIVATION_CLAMP;
  set_float(&t, PPH_ATTR_ACTIVATION_MIN, 1);
  set_float(&t, PPH_ATTR_ACTIVATION_MAX, 1);
  assert_false(supported(&t));
  set_float(&t, PPH_ATTR_ACTIVATION_MIN, NAN);
  assert_false(supported(&t));
  t.node->activation = PPH_ACTIVATION_LEAKY_RELU;
  set_float(&t, PPH_ATTR_ACTIVATION_ALPHA, INFINITY);
  assert_false(supported(&t));
  t.node->activation = PPH_ACTIVATION_NONE;
  assert_true(supported(&t));
  pph_graph_value(&t.graph, t.node->outputs[0])->layout = PPH_LAYOUT_PLAIN;
  assert_false(supported(&t));
  pph_graph_value(&t.graph, t.node->outputs[0])->layout =
      PPH_LAYOUT_CHANNELS_LAST;
  pph_graph_value(&t.graph, t.ids[0])->type = PPH_F64;
  assert_false(supported(&t));
  pph_error error = {0};
  pph_backend_context context = {.heap = &t.heap};
  pph_step step = step_of(&t);
  assert_int_equal(pph_backend_xnnpack.prepare(&context, &step, &error),
                   PPH_UNSUPPORTED);
  assert_null(step.state);
  assert_true(strstr(error.where, "Conv") != NULL);
  end(&t);
}

static void test_limits(void **state) {
  test_random random = {test_seed("limits")};
  pph_error error = {0};
  pph_heap heap;
  trial t;
  begin_plain_conv(&t, &random);
  pph_heap_init(&heap, NULL, 4096); /* below its packed weights */
  pph_backend_context context = {.heap = &heap};
  pph_step step = step_of(&t);
  assert_int_equal(pph_backend_xnnpack.prepare(&context, &step, &error),
                   PPH_LIMIT_EXCEEDED);
  assert_null(step.state);
  assert_true(strstr(error.message, "must be at most 4096") != NULL);
  assert_int_equal(atomic_load(&heap.used), 0);
  end(&t);
}

/* An allocator that gives nothing after `left` blocks. */
static size_t left;
static void *allocate(void *context, size_t alignment, size_t size) {
  if (left == 0)
    return NULL;
  left--;
  return aligned_alloc(alignment,
                       (size + alignment - 1) / alignment * alignment);
}
static void release(void *context, void *block) { free(block); }

static void test_out_of_memory(void **state) {
  const pph_allocator allocator = {NULL, allocate, release};
  test_random random = {test_seed("out_of_memory")};
  pph_error error = {0};
  pph_heap heap;
  trial t;
  begin_plain_conv(&t, &random);
  pph_heap_init(&heap, &allocator, 0);
  pph_backend_context context = {.heap = &heap};
  size_t failures = 0;
  for (;; failures++) {
    pph_step step = step_of(&t);
    left = failures;
    pph_status status = pph_backend_xnnpack.prepare(&context, &step, &error);
    if (status == PPH_OK) {
      pph_backend_xnnpack.release(&context, &step);
      break;
    }
    assert_int_equal(status, PPH_OUT_OF_MEMORY);
    assert_null(step.state);
    assert_int_equal(atomic_load(&heap.used), 0);
  }
  assert_true(failures >= 3);
  assert_int_equal(atomic_load(&heap.used), 0);
  end(&t);
}

static void test_layout(void **state) {
  pph_value value = {.shape = DIMS(2, 3, 4, 5),
                     .layout = PPH_LAYOUT_CHANNELS_LAST};
  int32_t order[PPH_MAX_RANK];
  pph_shape physical;
  pph_layout_order(&value, order);
  pph_layout_physical(&value, &physical);
  assert_memory_equal(order, ((int32_t[]){0, 2, 3, 1}), 4 * sizeof *order);
  pph_shape expected = DIMS(2, 4, 5, 3);
  assert_true(pph_shape_equal(&physical, &expected));
  value.shape = DIMS(2, 3);
  pph_layout_order(&value, order);
  assert_memory_equal(order, ((int32_t[]){0, 1}), 2 * sizeof *order);
}

static int make_pools(void **state) {
  pools[0] = pthreadpool_create(1);
  pools[1] = pthreadpool_create(2);
  return pools[0] && pools[1] ? 0 : -1;
}
static int destroy_pools(void **state) {
  pthreadpool_destroy(pools[0]);
  pthreadpool_destroy(pools[1]);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_conv),
      cmocka_unit_test(test_conv_transpose),
      cmocka_unit_test(test_conv_transpose_cases),
      cmocka_unit_test(test_pooling),
      cmocka_unit_test(test_pooling_refusals),
      cmocka_unit_test(test_pooling_dilated_height),
      cmocka_unit_test(test_global_average_pool),
      cmocka_unit_test(test_unary),
      cmocka_unit_test(test_binary),
      cmocka_unit_test(test_binary_orders),
      cmocka_unit_test(test_prelu),
      cmocka_unit_test(test_softmax),
      cmocka_unit_test(test_matmul_and_gemm),
      cmocka_unit_test(test_resize),
      cmocka_unit_test(test_resize_refusals),
      cmocka_unit_test(test_depth_to_space),
      cmocka_unit_test(test_pad),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests_name("backend_xnnpack", tests, make_pools,
                                     destroy_pools);
}
