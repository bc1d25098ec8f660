/* The reference evaluator on the cases of public bug reports that the project
   collects as P01 to P36: sums of exact integers. */
#include "test_eval_case.h"

typedef struct transpose_row {
  const char *name;
  pph_shape x, w, y;
  bool bias;
  int64_t group;
  int64_t strides[3], dilations[3], pads[6], output_padding[3];
  int64_t output_shape[3]; /* 0: not given; the other lists alike */
  const char *auto_pad;
  double sum, check;
} transpose_row;

#define S(...)                                                                 \
  {                                                                            \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), { __VA_ARGS__ }           \
  }

static const transpose_row rows[] = {
    {"P01", S(1, 1, 3, 3), S(1, 2, 3, 3), S(1, 2, 10, 8), .strides = {3, 2},
     .output_shape = {10, 8}, .sum = 3, .check = 54},
    {"P02", S(1, 1, 8, 8), S(1, 3, 2, 2), S(1, 3, 5, 5), .bias = true,
     .dilations = {2, 2}, .pads = {3, 3, 3, 3}, .output_padding = {1, 1},
     .sum = -91, .check = -935},
    {"P02b", S(1, 1, 4, 4), S(1, 3, 2, 2), S(1, 3, 5, 5), .bias = true,
     .dilations = {2, 2}, .pads = {1, 1, 1, 1}, .output_padding = {1, 1},
     .sum = -73, .check = -840},
    {"P03", S(1, 2, 2, 2), S(2, 1, 3, 3), S(1, 2, 4, 4), .group = 2, .sum = 1,
     .check = 132},
    {"P04", S(1, 8, 1, 1), S(8, 4, 1, 1), S(1, 8, 1, 1), .group = 2, .sum = -19,
     .check = -42},
    {"P06", S(1, 4, 5, 5), S(4, 1, 4, 4), S(1, 4, 10, 10), .bias = true,
     .group = 4, .strides = {2, 2}, .pads = {1, 1, 1, 1}, .sum = -261,
     .check = -2155},
    {"P07", S(1, 8, 4, 4), S(8, 4, 4, 4), S(1, 4, 8, 8), .bias = true,
     .strides = {2, 2}, .pads = {1, 1, 1, 1}, .sum = -39, .check = -645},
    {"P08", S(1, 3, 7, 7), S(3, 6, 3, 3), S(1, 6, 14, 14), .bias = true,
     .strides = {2, 2}, .pads = {1, 1, 1, 1}, .output_padding = {1, 1},
     .sum = -421, .check = -3447},
    {"P09", S(1, 3, 4, 4), S(3, 3, 3, 3), S(1, 3, 4, 4), .output_shape = {4, 4},
     .sum = 63, .check = -40},
    {"P09b", S(1, 2, 4, 4), S(2, 2, 4, 4), S(1, 2, 4, 4),
     .output_shape = {4, 4}, .sum = -29, .check = -219},
    {"P09c", S(1, 2, 4, 4), S(2, 2, 4, 4), S(1, 2, 4, 4),
     .output_shape = {4, 4}, .auto_pad = "SAME_UPPER", .sum = 58, .check = -22},
    {"P13", S(1, 4, 8, 8), S(4, 2, 4, 4), S(1, 2, 18, 18), .bias = true,
     .strides = {2, 2}, .sum = -966, .check = -10027},
    {"P14", S(1, 1, 50, 50), S(1, 3, 3, 5), S(1, 3, 97, 50), .bias = true,
     .strides = {2, 1}, .dilations = {3, 1}, .pads = {4, 2, 4, 2},
     .sum = -14569, .check = -101162},
    {"P15", S(1, 1, 2, 2), S(1, 1, 3, 3), S(1, 1, 2, 2),
     .auto_pad = "SAME_UPPER", .sum = -18, .check = -52},
    {"P15b", S(1, 1, 5, 5), S(1, 1, 3, 3), S(1, 1, 10, 10), .strides = {2, 2},
     .auto_pad = "SAME_UPPER", .sum = 30, .check = 277},
    {"P15c", S(1, 1, 5, 5), S(1, 1, 3, 3), S(1, 1, 10, 10), .strides = {2, 2},
     .auto_pad = "SAME_LOWER", .sum = -5, .check = 393},
    {"P16", S(1, 4, 16, 16), S(4, 4, 3, 3), S(1, 4, 32, 32), .bias = true,
     .strides = {2, 2}, .pads = {1, 1, 1, 1}, .output_padding = {1, 1},
     .sum = -2004, .check = -12328},
    {"P18", S(1, 3, 6, 6), S(3, 1, 32, 1), S(1, 3, 96, 6), .group = 3,
     .strides = {16, 1}, .pads = {8, 0, 8, 0}, .sum = 36, .check = -581},
    {"P18b", S(1, 3, 6, 6), S(3, 1, 1, 32), S(1, 3, 6, 96), .group = 3,
     .strides = {1, 16}, .pads = {0, 8, 0, 8}, .sum = -7, .check = 227},
    {"P19", S(1, 6, 4, 4), S(6, 4, 3, 3), S(1, 12, 7, 7), .bias = true,
     .group = 3, .strides = {2, 2}, .pads = {1, 1, 1, 1}, .sum = -198,
     .check = 408},
    {"P20", S(1, 2, 6, 6), S(2, 3, 3, 3), S(1, 3, 12, 12), .bias = true,
     .strides = {2, 2}, .pads = {1, 1, 0, 0}, .sum = -410, .check = -2668},
    {"P21", S(1, 4, 9), S(4, 2, 8), S(1, 2, 37), .bias = true, .strides = {4},
     .pads = {2, 2}, .output_padding = {1}, .sum = -116, .check = -1369},
    {"P22", S(1, 5, 7), S(5, 1, 8), S(1, 1, 32), .strides = {4}, .sum = 0,
     .check = -215},
    {"P22b", S(1, 5, 1), S(5, 1, 8), S(1, 1, 8), .strides = {4}, .sum = 11,
     .check = 11},
    {"P22c", S(1, 5, 100), S(5, 1, 8), S(1, 1, 404), .strides = {4}, .sum = 11,
     .check = -232},
    {"P24", S(1, 2, 4, 4), S(2, 2, 3, 3), S(1, 2, 8, 8), .bias = true,
     .strides = {2, 2}, .pads = {1, 1, 1, 1}, .output_padding = {1, 1},
     .sum = -205, .check = -794},
    {"P24b", S(1, 2, 3, 3), S(2, 2, 2, 2), S(1, 2, 4, 4), .sum = -12,
     .check = -101},
    {"P36", S(1, 16, 5, 7), S(16, 3, 2, 2), S(1, 3, 10, 14), .bias = true,
     .strides = {2, 2}, .sum = -519, .check = -4805},
    {"P36b", S(1, 16, 5, 7), S(16, 1, 2, 2), S(1, 1, 10, 14), .bias = true,
     .strides = {2, 2}, .sum = -274, .check = -1985},
};

static void set_attributes(eval_case *c, const transpose_row *row) {
  const int64_t zeros[6] = {0};
  uint32_t axes = (uint32_t)row->x.rank - 2;
  if (row->group)
    eval_set_int(c, PPH_ATTR_GROUP, row->group);
  if (row->strides[0])
    eval_set_ints(c, PPH_ATTR_STRIDES, row->strides, axes);
  if (row->dilations[0])
    eval_set_ints(c, PPH_ATTR_DILATIONS, row->dilations, axes);
  if (memcmp(row->pads, zeros, sizeof zeros) != 0)
    eval_set_ints(c, PPH_ATTR_PADS, row->pads, 2 * axes);
  if (row->output_padding[0])
    eval_set_ints(c, PPH_ATTR_OUTPUT_PADDING, row->output_padding, axes);
  if (row->output_shape[0])
    eval_set_ints(c, PPH_ATTR_OUTPUT_SHAPE, row->output_shape, axes);
  if (row->auto_pad)
    test_assert_ok(pph_node_set_text(&c->graph, c->node, PPH_ATTR_AUTO_PAD,
                                     row->auto_pad, &c->error),
                   &c->error);
}

static void transposed_convolutions_are_right(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    const transpose_row *row = &rows[i];
    eval_case c;
    print_message("%s\n", row->name);
    eval_begin(&c, PPH_NODE_CONV_TRANSPOSE);
    eval_add_filled(&c, row->x, test_fill_x);
    eval_add_filled(&c, row->w, test_fill_w);
    if (row->bias)
      eval_add_filled(&c, SHAPE(row->y.dims[1]), test_fill_b);
    set_attributes(&c, row);
    eval_run(&c, 1);
    eval_expect_shape(&c, row->y);
    eval_expect_sums(&c, row->sum, row->check);
    eval_end(&c);
  }
}

/* P05: weights that are not the fill. */
static void given_weights(void **state) {
  (void)state;
  eval_case c;
  for (int filled = 0; filled < 2; filled++) {
    eval_begin(&c, PPH_NODE_CONV_TRANSPOSE);
    if (filled)
      eval_add_filled(&c, SHAPE(1, 1, 3, 3), test_fill_x);
    else
      F32(SHAPE(1, 1, 3, 3), 0, 0, 0, 0, 1, 0, 0, 0, 0);
    eval_add_filled(&c, SHAPE(1, 1, 3, 3), test_fill_ramp);
    INTS(STRIDES, 2, 2);
    INTS(DILATIONS, 2, 2);
    INTS(PADS, 2, 2, 2, 2);
    eval_run(&c, 1);
    if (filled)
      eval_expect_sums(&c, 231, 1412);
    else
      EXPECT_F32(1, 0, 2, 0, 3, 0, 0, 0, 0, 0, 4, 0, 5, 0, 6, 0, 0, 0, 0, 0, 7,
                 0, 8, 0, 9);
    eval_end(&c);
  }
}

static void depth_to_space_modes_differ(void **state) {
  (void)state;
  for (int crd = 0; crd < 2; crd++) {
    eval_case c;
    eval_begin(&c, PPH_NODE_DEPTH_TO_SPACE);
    TEXT(MODE, crd ? "CRD" : "DCR");
    INTS(BLOCKSIZE, 2, 2);
    eval_add_filled(&c, SHAPE(2, 12, 3, 4), test_fill_x);
    eval_run(&c, 1);
    eval_expect_shape(&c, SHAPE(2, 3, 6, 8));
    eval_expect_sums(&c, 3, crd ? -21 : 177);
    eval_end(&c);
  }
}

static void start_resize(eval_case *c, const char *coordinates,
                         const char *nearest) {
  eval_begin(c, PPH_NODE_RESIZE);
  test_assert_ok(pph_node_set_text(&c->graph, c->node,
                                   PPH_ATTR_COORDINATE_TRANSFORMATION_MODE,
                                   coordinates, &c->error),
                 &c->error);
  test_assert_ok(pph_node_set_text(&c->graph, c->node, PPH_ATTR_NEAREST_MODE,
                                   nearest, &c->error),
                 &c->error);
}

/* P10 and P23: the ramp 1..16 doubled. */
static void nearest_modes_are_right(void **state) {
  (void)state;
  static const struct {
    const char *coordinates, *nearest;
    double check;
  } modes[] = {
      {"asymmetric", "floor", 3941},
      {"asymmetric", "ceil", 4715},
      {"asymmetric", "round_prefer_floor", 3941},
      {"asymmetric", "round_prefer_ceil", 4715},
      {"half_pixel", "floor", 3025},
      {"half_pixel", "ceil", 4715},
      {"half_pixel", "round_prefer_floor", 3941},
      {"half_pixel", "round_prefer_ceil", 3941},
      {"align_corners", "round_prefer_floor", 3941},
  };
  for (size_t i = 0; i < COUNT(modes); i++) {
    eval_case c;
    start_resize(&c, modes[i].coordinates, modes[i].nearest);
    eval_add_filled(&c, SHAPE(1, 1, 4, 4), test_fill_ramp);
    eval_omit(&c);
    F32(SHAPE(4), 1, 1, 2, 2);
    eval_run(&c, 1);
    double check = 0;
    for (int k = 0; k < 64; k++)
      check += (double)((const float *)c.outputs[0].data)[k] * (k % 13 + 1);
    assert_true(check == modes[i].check);
    eval_end(&c);
  }
}

static void lengths_follow_the_f32_product(void **state) {
  (void)state;
  eval_case c;
  start_resize(&c, "half_pixel", "round_prefer_floor");
  eval_add_filled(&c, SHAPE(1, 1, 86, 1), test_fill_ramp);
  eval_omit(&c);
  F32(SHAPE(4), 1, 1, (float)(256.0 / 86), 1);
  eval_run(&c, 1);
  eval_expect_shape(&c, SHAPE(1, 1, 256, 1));
  assert_true(((const float *)c.outputs[0].data)[255] == 86);
  eval_end(&c);
}

/* P12: what a fold into the weights must equal. */
static void batch_normalization_after(void **state) {
  (void)state;
  for (int64_t group = 1; group <= 2; group++) {
    eval_case up, c;
    eval_begin(&up, PPH_NODE_CONV_TRANSPOSE);
    eval_set_int(&up, PPH_ATTR_GROUP, group);
    eval_set_ints(&up, PPH_ATTR_STRIDES, (int64_t[]){2, 2}, 2);
    eval_add_filled(&up, SHAPE(1, 4, 3, 3), test_fill_x);
    eval_add_filled(&up, SHAPE(4, 6 / group, 3, 3), test_fill_w);
    eval_add_filled(&up, SHAPE(6), test_fill_b);
    eval_run(&up, 1);
    float v[4][6];
    for (int k = 0; k < 6; k++) {
      v[0][k] = (float)(k % 3 + 1);
      v[1][k] = (float)(2 * (k % 5 - 2));
      v[2][k] = (float)(k % 4 - 1);
      v[3][k] = 4 - 1e-5f;
    }
    eval_begin(&c, PPH_NODE_BATCH_NORMALIZATION);
    eval_add(&c, PPH_F32, up.outputs[0].shape, up.outputs[0].data);
    for (int k = 0; k < 4; k++)
      eval_add(&c, PPH_F32, SHAPE(6), v[k]);
    eval_run(&c, 1);
    eval_expect_sums(&c, group == 1 ? -400.5 : -360,
                     group == 1 ? -2658 : -2366.5);
    eval_end(&c);
    eval_end(&up);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transposed_convolutions_are_right),
      cmocka_unit_test(given_weights),
      cmocka_unit_test(depth_to_space_modes_differ),
      cmocka_unit_test(nearest_modes_are_right),
      cmocka_unit_test(lengths_follow_the_f32_product),
      cmocka_unit_test(batch_normalization_after),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
