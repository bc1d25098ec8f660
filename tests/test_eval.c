/* The reference evaluator, kind by kind: values worked out by hand. */
#include "test_eval_case.h"

static void every_kind_has_a_loop(void **state) {
  (void)state;
  for (int kind = 0; kind < PPH_NODE_KIND_COUNT; kind++)
    assert_true(pph_eval_supports((pph_node_kind)kind));
  assert_false(pph_eval_supports(PPH_NODE_KIND_COUNT));
}

static const struct {
  pph_node_kind kind;
  float x, y;
} unary_values[] = {
    {PPH_NODE_ABS, -2.5f, 2.5f},
    {PPH_NODE_CEIL, -1.5f, -1},
    {PPH_NODE_COS, 0, 1},
    {PPH_NODE_ELU, -1, -0.63212056f},
    {PPH_NODE_ELU, 3, 3},
    {PPH_NODE_ERF, 1, 0.84270079f},
    {PPH_NODE_EXP, 1, 2.71828183f},
    {PPH_NODE_FLOOR, -1.5f, -2},
    {PPH_NODE_HARD_SIGMOID, 1, 0.7f},
    {PPH_NODE_HARD_SIGMOID, 9, 1},
    {PPH_NODE_HARD_SWISH, 1, 0.66666667f},
    {PPH_NODE_HARD_SWISH, -4, 0},
    {PPH_NODE_IDENTITY, 7, 7},
    {PPH_NODE_LEAKY_RELU, -2, -0.02f},
    {PPH_NODE_LOG, 2.71828183f, 1},
    {PPH_NODE_NEG, 2, -2},
    {PPH_NODE_RECIPROCAL, 4, 0.25f},
    {PPH_NODE_RELU, -1, 0},
    {PPH_NODE_RELU, NAN, NAN},
    {PPH_NODE_ROUND, 2.5f, 2},
    {PPH_NODE_ROUND, -1.5f, -2},
    {PPH_NODE_SIGMOID, 0, 0.5f},
    {PPH_NODE_SIGMOID, -200, 0},
    {PPH_NODE_SIGN, -3, -1},
    {PPH_NODE_SIN, 1, 0.84147098f},
    {PPH_NODE_SOFTPLUS, 0, 0.69314718f},
    {PPH_NODE_SOFTPLUS, 500, 500},
    {PPH_NODE_SQRT, 9, 3},
    {PPH_NODE_TANH, 1, 0.76159416f},
    {PPH_NODE_RELAYOUT, 5, 5},
};

static void unary_kinds_compute(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(unary_values); i++) {
    eval_case c;
    eval_begin(&c, unary_values[i].kind);
    F32(SHAPE(1, 1, 1), unary_values[i].x);
    eval_run(&c, 1);
    EXPECT_F32(unary_values[i].y);
    eval_end(&c);
  }
}

/* One pair of i64 through a kind. */
static void check_pair(pph_node_kind kind, int64_t a, int64_t b, int64_t y) {
  eval_case c;
  eval_begin(&c, kind);
  I64(SHAPE(1), a);
  I64(SHAPE(1), b);
  eval_run(&c, 1);
  EXPECT_I64(y);
  eval_end(&c);
}

static void integers_wrap_and_truncate(void **state) {
  (void)state;
  check_pair(PPH_NODE_ADD, INT64_MAX, 1, INT64_MIN);
  check_pair(PPH_NODE_SUB, INT64_MIN, 1, INT64_MAX);
  check_pair(PPH_NODE_MUL, INT64_MAX, 2, -2);
  check_pair(PPH_NODE_DIV, -7, 2, -3);
  check_pair(PPH_NODE_DIV, INT64_MIN, -1, INT64_MIN);
  check_pair(PPH_NODE_MOD, -7, 3, 2);
  check_pair(PPH_NODE_MOD, 7, -3, -2);
  check_pair(PPH_NODE_MOD, INT64_MIN, -1, 0);
  check_pair(PPH_NODE_MAX, -1, 2, 2);
  check_pair(PPH_NODE_MIN, -1, 2, -1);
  check_pair(PPH_NODE_POW, 3, 4, 81);
  check_pair(PPH_NODE_POW, -1, -3, -1);
  check_pair(PPH_NODE_POW, 5, -1, 0);
}

static void integer_division_by_zero_is_refused(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_DIV);
  I64(SHAPE(2), 1, 2);
  I64(SHAPE(2), 1, 0);
  assert_int_equal(eval_try(&c, 1), PPH_BAD_MODEL);
  assert_non_null(strstr(c.error.message, "divisor 1 is 0"));
  eval_end(&c);
}

static void binary_kinds_broadcast(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_SUB);
  F32(SHAPE(2, 1, 2), 1, 2, 3, 4);
  F32(SHAPE(3, 1), 10, 20, 30);
  eval_run(&c, 1);
  eval_expect_shape(&c, SHAPE(2, 3, 2));
  EXPECT_F32(-9, -8, -19, -18, -29, -28, -7, -6, -17, -16, -27, -26);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_PRELU);
  F32(SHAPE(1, 2, 2), -1, 2, -3, -4);
  F32(SHAPE(2, 1), 0.5f, 2);
  eval_run(&c, 1);
  EXPECT_F32(-0.5f, 2, -6, -8);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_MAX);
  F32(SHAPE(2), 1, 5);
  F32(SCALAR, 3);
  F32(SHAPE(2, 1), 0, 4);
  eval_run(&c, 1);
  EXPECT_F32(3, 5, 4, 5);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_MUL);
  F32(SHAPE(0, 3), 0);
  F32(SHAPE(1, 3), 1, 2, 3);
  eval_run(&c, 1);
  eval_expect_shape(&c, SHAPE(0, 3));
  eval_end(&c);
}

static void float_pairs(void **state) {
  (void)state;
  static const struct {
    pph_node_kind kind;
    float a, b, y;
  } rows[] = {{PPH_NODE_ADD, 1, 2, 3},
              {PPH_NODE_DIV, 1, 4, 0.25f},
              {PPH_NODE_POW, 2, 0.5f, 1.41421356f},
              {PPH_NODE_MIN, 1, NAN, NAN},
              {PPH_NODE_MAX, NAN, 1, NAN}};
  eval_case c;
  for (size_t i = 0; i < COUNT(rows); i++) {
    eval_begin(&c, rows[i].kind);
    F32(SHAPE(1), rows[i].a);
    F32(SHAPE(1), rows[i].b);
    eval_run(&c, 1);
    EXPECT_F32(rows[i].y);
    eval_end(&c);
  }
  eval_begin(&c, PPH_NODE_MOD);
  INT(FMOD, 1);
  F32(SHAPE(1), -7);
  F32(SHAPE(1), 3);
  eval_run(&c, 1);
  EXPECT_F32(-1);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_POW); /* base and exponent of different types */
  F32(SHAPE(2), 3, -2);
  I64(SHAPE(1), 2);
  eval_run(&c, 1);
  EXPECT_F32(9, 4);
  eval_end(&c);
}

static void comparisons_and_logic(void **state) {
  (void)state;
  static const struct {
    pph_node_kind kind;
    uint8_t y[3];
  } rows[] = {{PPH_NODE_EQUAL, {0, 1, 0}},
              {PPH_NODE_GREATER, {0, 0, 1}},
              {PPH_NODE_LESS, {1, 0, 0}},
              {PPH_NODE_LESS_OR_EQUAL, {1, 1, 0}},
              {PPH_NODE_GREATER_OR_EQUAL, {0, 1, 1}}};
  eval_case c;
  for (size_t i = 0; i < COUNT(rows); i++) {
    eval_begin(&c, rows[i].kind);
    I64(SHAPE(3), 1, 2, 3);
    I64(SCALAR, 2);
    eval_run(&c, 1);
    assert_int_equal(c.outputs[0].type, PPH_BOOL);
    assert_memory_equal(c.outputs[0].data, rows[i].y, 3);
    eval_end(&c);
  }
  const uint8_t a[] = {0, 0, 1, 1}, b[] = {0, 1, 0, 1};
  const uint8_t both[] = {0, 0, 0, 1}, any[] = {0, 1, 1, 1};
  for (int either = 0; either < 2; either++) {
    eval_begin(&c, either ? PPH_NODE_OR : PPH_NODE_AND);
    eval_add(&c, PPH_BOOL, SHAPE(4), a);
    eval_add(&c, PPH_BOOL, SHAPE(4), b);
    eval_run(&c, 1);
    assert_memory_equal(c.outputs[0].data, either ? any : both, 4);
    eval_end(&c);
  }
  const uint8_t negated[] = {1, 1, 0, 0};
  eval_begin(&c, PPH_NODE_NOT);
  eval_add(&c, PPH_BOOL, SHAPE(4), a);
  eval_run(&c, 1);
  assert_memory_equal(c.outputs[0].data, negated, 4);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_WHERE);
  eval_add(&c, PPH_BOOL, SHAPE(4), b);
  I64(SHAPE(4), 1, 2, 3, 4);
  I64(SCALAR, 9);
  eval_run(&c, 1);
  EXPECT_I64(9, 2, 9, 4);
  eval_end(&c);
}

static void clip_takes_optional_bounds(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_CLIP);
  F32(SHAPE(3), -5, 0, 5);
  eval_omit(&c);
  F32(SCALAR, 1);
  eval_run(&c, 1);
  EXPECT_F32(-5, 0, 1);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_CLIP); /* crossed bounds: the upper one wins */
  F32(SHAPE(2), -5, 5);
  F32(SCALAR, 3);
  F32(SCALAR, 1);
  eval_run(&c, 1);
  EXPECT_F32(1, 1);
  eval_end(&c);
}

static void casts_saturate(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_CAST);
  INT(TO, PPH_I64);
  F32(SHAPE(5), 1.9f, -1.9f, NAN, INFINITY, -INFINITY);
  eval_run(&c, 1);
  EXPECT_I64(1, -1, 0, INT64_MAX, INT64_MIN);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_CAST);
  INT(TO, PPH_F16);
  F32(SHAPE(6), 1, -2, 65519, 65520, 5.9604645e-8f, 2049);
  eval_run(&c, 1);
  const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x7c00, 1, 0x6800};
  assert_memory_equal(c.outputs[0].data, halves, sizeof halves);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_CAST);
  INT(TO, PPH_F32);
  eval_add(&c, PPH_F16, SHAPE(6), halves);
  eval_run(&c, 1);
  EXPECT_F32(1, -2, 65504, INFINITY, 5.9604645e-8f, 2048);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_CAST);
  INT(TO, PPH_I8);
  I64(SHAPE(2), 300, -1);
  eval_run(&c, 1);
  assert_memory_equal(c.outputs[0].data, "\x2c\xff", 2);
  eval_end(&c);
}

static void fused_activation_is_applied(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_ADD);
  c.node->activation = PPH_ACTIVATION_CLAMP;
  FLOAT(ACTIVATION_MIN, 0);
  FLOAT(ACTIVATION_MAX, 6);
  F32(SHAPE(3), -3, 1, 6);
  F32(SCALAR, 1);
  eval_run(&c, 1);
  EXPECT_F32(0, 2, 6);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_RESHAPE);
  c.node->activation = PPH_ACTIVATION_LEAKY_RELU;
  FLOAT(ACTIVATION_ALPHA, 0.5f);
  F32(SHAPE(2), -4, 4);
  I64(SHAPE(2), 2, -1);
  eval_run(&c, 1);
  eval_expect_shape(&c, SHAPE(2, 1));
  EXPECT_F32(-2, 4);
  eval_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_has_a_loop),
      cmocka_unit_test(unary_kinds_compute),
      cmocka_unit_test(integers_wrap_and_truncate),
      cmocka_unit_test(integer_division_by_zero_is_refused),
      cmocka_unit_test(binary_kinds_broadcast),
      cmocka_unit_test(float_pairs),
      cmocka_unit_test(comparisons_and_logic),
      cmocka_unit_test(clip_takes_optional_bounds),
      cmocka_unit_test(casts_saturate),
      cmocka_unit_test(fused_activation_is_applied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
