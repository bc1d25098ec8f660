/* The reference evaluator: kinds that move elements or answer about shapes. */
#include "test_eval_case.h"

static void concat_and_split(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_CONCAT);
  INT(AXIS, -1);
  I64(SHAPE(2, 1), 1, 2);
  I64(SHAPE(2, 2), 3, 4, 5, 6);
  I64(SHAPE(2, 0), 0);
  eval_run(&c, 1);
  EXPECT_I64(1, 3, 4, 2, 5, 6);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_SPLIT);
  INT(AXIS, 1);
  F32(SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
  I64(SHAPE(2), 1, 2);
  eval_run(&c, 2);
  EXPECT_F32(1, 4);
  eval_expect_f32(&c, 1, (float[]){2, 3, 5, 6}, 4);
  eval_end(&c);
}

static void transpose_expand_tile(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_TRANSPOSE);
  INTS(PERM, 2, 0, 1);
  I64(SHAPE(1, 2, 3), 1, 2, 3, 4, 5, 6);
  eval_run(&c, 1);
  eval_expect_shape(&c, SHAPE(3, 1, 2));
  EXPECT_I64(1, 4, 2, 5, 3, 6);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_EXPAND);
  I64(SHAPE(2, 1), 1, 2);
  I64(SHAPE(3), 2, 1, 3);
  eval_run(&c, 1);
  EXPECT_I64(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_TILE);
  I64(SHAPE(2, 2), 1, 2, 3, 4);
  I64(SHAPE(2), 2, 2);
  eval_run(&c, 1);
  EXPECT_I64(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4);
  eval_end(&c);
}

static void slice_steps_both_ways(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_SLICE);
  I64(SHAPE(2, 4), 1, 2, 3, 4, 5, 6, 7, 8);
  I64(SHAPE(2), -1, 1);
  I64(SHAPE(2), INT64_MIN, INT64_MAX);
  I64(SHAPE(2), 1, 0);
  I64(SHAPE(2), -2, 1);
  eval_run(&c, 1);
  EXPECT_I64(8, 6);
  eval_end(&c);
}

static void gather_counts_from_the_end(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_GATHER);
  INT(AXIS, 1);
  I64(SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
  I64(SHAPE(2), -1, 0);
  eval_run(&c, 1);
  EXPECT_I64(3, 1, 6, 4);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_GATHER);
  I64(SHAPE(3), 1, 2, 3);
  I64(SHAPE(2), 0, 3);
  assert_int_equal(eval_try(&c, 1), PPH_BAD_MODEL);
  assert_string_equal(c.error.message, "indices[1] is 3, must be in [-3,2]");
  eval_end(&c);
}

static void scatter_nd_reduces(void **state) {
  (void)state;
  static const struct {
    const char *reduction;
    float y[4];
  } rows[] = {{"none", {1, 9, 7, 4}},
              {"add", {1, 18, 10, 4}},
              {"mul", {1, 126, 21, 4}},
              {"max", {1, 9, 7, 4}},
              {"min", {1, 2, 3, 4}}};
  eval_case c;
  for (size_t i = 0; i < COUNT(rows); i++) {
    eval_begin(&c, PPH_NODE_SCATTER_ND);
    TEXT(REDUCTION, rows[i].reduction);
    F32(SHAPE(4), 1, 2, 3, 4);
    I64(SHAPE(3, 1), 1, -2, 1);
    F32(SHAPE(3), 7, 7, 9);
    eval_run(&c, 1);
    eval_expect_f32(&c, 0, rows[i].y, 4);
    eval_end(&c);
  }
  eval_begin(&c, PPH_NODE_SCATTER_ND);
  F32(SHAPE(2, 2), 1, 2, 3, 4);
  I64(SHAPE(1, 1), 2);
  F32(SHAPE(1, 2), 5, 6);
  assert_int_equal(eval_try(&c, 1), PPH_BAD_MODEL);
  eval_end(&c);
}

static void pad_modes(void **state) {
  (void)state;
  static const struct {
    const char *mode;
    int64_t begin, end, y[8];
    uint32_t count;
  } rows[] = {{"constant", 1, 2, {9, 1, 2, 3, 9, 9}, 6},
              {"constant", -1, 1, {2, 3, 9}, 3},
              {"constant", 2, -2, {9, 9, 1}, 3},
              {"reflect", 2, 2, {3, 2, 1, 2, 3, 2, 1}, 7},
              {"edge", 2, 1, {1, 1, 1, 2, 3, 3}, 6},
              {"wrap", 2, 3, {2, 3, 1, 2, 3, 1, 2, 3}, 8},
              {"edge", -2, 1, {3, 3}, 2}};
  eval_case c;
  for (size_t i = 0; i < COUNT(rows); i++) {
    eval_begin(&c, PPH_NODE_PAD);
    TEXT(MODE, rows[i].mode);
    I64(SHAPE(1, 3), 1, 2, 3);
    I64(SHAPE(2), rows[i].begin, rows[i].end);
    I64(SCALAR, 9);
    I64(SHAPE(1), -1);
    eval_run(&c, 1);
    eval_expect_i64(&c, rows[i].y, rows[i].count);
    eval_end(&c);
  }
}

static void squeezing_keeps_elements(void **state) {
  (void)state;
  static const pph_node_kind kinds[] = {PPH_NODE_SQUEEZE, PPH_NODE_UNSQUEEZE,
                                        PPH_NODE_FLATTEN};
  eval_case c;
  for (size_t i = 0; i < COUNT(kinds); i++) {
    eval_begin(&c, kinds[i]);
    I64(SHAPE(1, 3), 1, 2, 3);
    if (kinds[i] != PPH_NODE_FLATTEN)
      I64(SHAPE(1), 0);
    eval_run(&c, 1);
    EXPECT_I64(1, 2, 3);
    eval_end(&c);
  }
}

static void shapes_are_answered(void **state) {
  (void)state;
  eval_case c;
  for (int size = 0; size < 2; size++) {
    eval_begin(&c, size ? PPH_NODE_SIZE : PPH_NODE_SHAPE);
    F32(SHAPE(2, 3), 0, 0, 0, 0, 0, 0);
    eval_run(&c, 1);
    if (size)
      EXPECT_I64(6);
    else
      EXPECT_I64(2, 3);
    eval_end(&c);
  }
  eval_begin(&c, PPH_NODE_CONSTANT_OF_SHAPE);
  I64(SHAPE(2), 1, 3);
  I64(SHAPE(1), 7);
  eval_run(&c, 1);
  EXPECT_I64(7, 7, 7);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_RANGE);
  I64(SCALAR, 10);
  I64(SCALAR, 3);
  I64(SCALAR, -3);
  eval_run(&c, 1);
  EXPECT_I64(10, 7, 4);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_RANGE);
  F32(SCALAR, 0);
  F32(SCALAR, 1);
  F32(SCALAR, 0.4f);
  eval_run(&c, 1);
  EXPECT_F32(0, 0.4f, 0.8f);
  eval_end(&c);
}

/* Both kinds by the definition: channel (DCR: phase*C + c, CRD: c*P + phase) at
   q holds position q*block + phase. */
static void blocks_interleave(void **state) {
  (void)state;
  eval_case c;
  for (int crd = 0; crd < 2; crd++) {
    eval_begin(&c, PPH_NODE_DEPTH_TO_SPACE);
    TEXT(MODE, crd ? "CRD" : "DCR");
    INTS(BLOCKSIZE, 2);
    I64(SHAPE(1, 4, 2), 0, 1, 10, 11, 20, 21, 30, 31);
    eval_run(&c, 1);
    if (crd)
      EXPECT_I64(0, 10, 1, 11, 20, 30, 21, 31);
    else
      EXPECT_I64(0, 20, 1, 21, 10, 30, 11, 31);
    eval_end(&c);
  }
  eval_begin(&c, PPH_NODE_DEPTH_TO_SPACE); /* blocks of 1x2x3 */
  INTS(BLOCKSIZE, 1, 2, 3);
  I64(SHAPE(1, 6, 1, 1, 1), 0, 1, 2, 3, 4, 5);
  eval_run(&c, 1);
  eval_expect_shape(&c, SHAPE(1, 1, 1, 2, 3));
  EXPECT_I64(0, 1, 2, 3, 4, 5);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_SPACE_TO_DEPTH);
  INTS(BLOCKSIZE, 2, 2);
  I64(SHAPE(1, 1, 2, 4), 0, 1, 2, 3, 4, 5, 6, 7);
  eval_run(&c, 1);
  EXPECT_I64(0, 2, 1, 3, 4, 6, 5, 7);
  eval_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(concat_and_split),
      cmocka_unit_test(transpose_expand_tile),
      cmocka_unit_test(slice_steps_both_ways),
      cmocka_unit_test(gather_counts_from_the_end),
      cmocka_unit_test(scatter_nd_reduces),
      cmocka_unit_test(pad_modes),
      cmocka_unit_test(squeezing_keeps_elements),
      cmocka_unit_test(shapes_are_answered),
      cmocka_unit_test(blocks_interleave),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
