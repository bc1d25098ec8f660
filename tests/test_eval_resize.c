/* Resize of the reference evaluator along one axis, against what ONNX Runtime
   1.32 answers: which element a nearest place takes (ties above all) and the
   weights of the wider kernels. */
#include "test_eval_case.h"

enum { LONGEST = 20 };

typedef struct nearest_row {
  const char *coordinates, *nearest;
  int64_t input;
  float scale; /* 0: `output` is given as a size */
  int64_t output;
  int64_t places[LONGEST];
} nearest_row;

static const nearest_row nearest_rows[] = {
    /* 2 / f32(4/7) is 3.4999998: halfway all the same. */
    {"asymmetric", "round_prefer_ceil", 7, 0, 4, {0, 2, 4, 5}},
    {"half_pixel", "round_prefer_ceil", 20, 0, 6, {1, 5, 8, 11, 15, 18}},
    {"half_pixel", "round_prefer_floor", 20, 0, 6, {1, 4, 8, 11, 14, 18}},
    {"half_pixel_symmetric", "round_prefer_floor", 7, 0.6f, 4, {0, 2, 4, 5}},
    /* Places that are whole but for the rounding. */
    {"half_pixel_symmetric", "floor", 9, 1.5f, 13,
     {0, 0, 1, 1, 2, 3, 4, 4, 5, 6, 6, 7, 8}},
    {"half_pixel_symmetric", "floor", 3, 0, 13,
     {0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2}},
    {"pytorch_half_pixel", "round_prefer_floor", 5, 0, 1, {0}},
    {"align_corners", "round_prefer_ceil", 5, 0, 3, {0, 2, 4}},
    {"align_corners", "ceil", 5, 0, 8, {0, 1, 2, 2, 3, 3, 4, 4}},
    {"asymmetric", "ceil", 4, 1.5f, 6, {0, 1, 2, 2, 3, 3}},
    {"half_pixel", "floor", 6, 0.5f, 3, {0, 2, 4}},
};

/* The scales or sizes of [1,1,input] tensors. */
static void add_length(eval_case *c, float scale, int64_t output) {
  if (scale > 0) {
    eval_add(c, PPH_F32, SHAPE(3), (float[]){1, 1, scale});
  } else {
    eval_omit(c);
    eval_add(c, PPH_I64, SHAPE(3), (int64_t[]){1, 1, output});
  }
}

static void check_nearest(const nearest_row *row) {
  eval_case c;
  float x[LONGEST], y[LONGEST];
  for (int i = 0; i < LONGEST; i++) {
    x[i] = (float)i;
    y[i] = (float)row->places[i];
  }
  eval_begin(&c, PPH_NODE_RESIZE);
  TEXT(COORDINATE_TRANSFORMATION_MODE, row->coordinates);
  TEXT(NEAREST_MODE, row->nearest);
  eval_add(&c, PPH_F32, SHAPE(1, 1, row->input), x);
  eval_omit(&c);
  add_length(&c, row->scale, row->output);
  eval_run(&c, 1);
  eval_expect_shape(&c, SHAPE(1, 1, row->output));
  eval_expect_f32(&c, 0, y, (size_t)row->output);
  eval_end(&c);
}

static void nearest_ties_fall_as_in_onnx_runtime(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(nearest_rows); i++) {
    print_message("%s %s %lld\n", nearest_rows[i].coordinates,
                  nearest_rows[i].nearest, (long long)nearest_rows[i].input);
    check_nearest(&nearest_rows[i]);
  }
}

typedef struct weights_row {
  const char *mode;
  int64_t input, output;
  float cubic_a;
  int antialias, exclude_outside;
  float y[LONGEST];
} weights_row;

/* x is 1, 4, 9, ... */
static const weights_row weights_rows[] = {
    {"cubic", 5, 7, -0.75f, 0, 0,
     {0.7638473511f, 2.215744495f, 5.341116905f, 9, 13.38775635f, 20.51312256f,
      25.70845222f}},
    {"cubic", 5, 7, -0.5f, 0, 1,
     {0.825242877f, 2.346260548f, 5.224486828f, 9, 13.79592037f, 20.42936325f,
      25.52427101f}},
    {"cubic", 7, 3, -0.75f, 1, 0, {2.663959265f, 15.86624718f, 40.59025574f}},
    {"linear", 7, 3, -0.75f, 1, 1, {4, 16.94117737f, 38.28571320f}},
};

static void wide_kernels_weigh_as_in_onnx_runtime(void **state) {
  (void)state;
  float x[LONGEST];
  for (int i = 0; i < LONGEST; i++)
    x[i] = (float)((i + 1) * (i + 1));
  for (size_t i = 0; i < COUNT(weights_rows); i++) {
    const weights_row *row = &weights_rows[i];
    eval_case c;
    eval_begin(&c, PPH_NODE_RESIZE);
    TEXT(MODE, row->mode);
    FLOAT(CUBIC_COEFF_A, row->cubic_a);
    INT(ANTIALIAS, row->antialias);
    INT(EXCLUDE_OUTSIDE, row->exclude_outside);
    eval_add(&c, PPH_F32, SHAPE(1, 1, row->input), x);
    eval_omit(&c);
    add_length(&c, 0, row->output);
    eval_run(&c, 1);
    eval_expect_f32(&c, 0, row->y, (size_t)row->output);
    eval_end(&c);
  }
}

/* The kernel is far longer than the line: the work stays that of the line. */
static void a_strong_reduction_is_a_mean(void **state) {
  (void)state;
  enum { LENGTH = 100000 };
  eval_case c;
  eval_begin(&c, PPH_NODE_RESIZE);
  TEXT(MODE, "linear");
  INT(ANTIALIAS, 1);
  eval_add_filled(&c, SHAPE(1, 1, LENGTH), test_fill_ramp);
  eval_omit(&c);
  add_length(&c, 0, 1);
  eval_run(&c, 1);
  float y = ((float *)c.outputs[0].data)[0];
  assert_float_equal(y, (LENGTH + 1) / 2.0f, 1);
  eval_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nearest_ties_fall_as_in_onnx_runtime),
      cmocka_unit_test(wide_kernels_weigh_as_in_onnx_runtime),
      cmocka_unit_test(a_strong_reduction_is_a_mean),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
