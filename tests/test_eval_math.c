/* The reference evaluator: windows, reductions, products, recurrences and
   interpolation. */
#include "test_eval_case.h"

/* A convolution of random geometry against the sum written out per output. */
typedef struct geometry {
  int64_t group, ci, co, in[3], k[3], s[3], d[3], p[6];
} geometry;

static geometry draw(test_random *random) {
  geometry g = {.group = test_random_range(random, 1, 2)};
  g.ci = g.group * test_random_range(random, 1, 3);
  g.co = g.group * test_random_range(random, 1, 3);
  for (int a = 0; a < 3; a++) {
    g.k[a] = test_random_range(random, 1, 3);
    g.s[a] = test_random_range(random, 1, 3);
    g.d[a] = test_random_range(random, 1, 2);
    g.p[a] = test_random_range(random, 0, 2);
    g.p[a + 3] = test_random_range(random, 0, 2);
    g.in[a] = test_random_range(random, 5, 8);
  }
  return g;
}

static double convolve_at(const geometry *g, const float *x, const float *w,
                          int64_t n, int64_t o, const int64_t at[3]) {
  int64_t deep = g->ci / g->group, first = o / (g->co / g->group) * deep;
  double sum = 0;
  for (int64_t t = 0; t < deep * g->k[0] * g->k[1] * g->k[2]; t++) {
    int64_t tap = t, place = 0, kernel[3];
    bool inside = true;
    for (int a = 2; a >= 0; a--) {
      kernel[a] = tap % g->k[a];
      tap /= g->k[a];
    }
    place = n * g->ci + first + tap;
    for (int a = 0; a < 3; a++) {
      int64_t i = at[a] * g->s[a] + kernel[a] * g->d[a] - g->p[a];
      inside = inside && i >= 0 && i < g->in[a];
      place = place * g->in[a] + i;
    }
    int64_t taps = deep * g->k[0] * g->k[1] * g->k[2];
    if (inside)
      sum += (double)x[place] * (double)w[o * taps + t];
  }
  return sum;
}

static void convolutions_are_sums(void **state) {
  (void)state;
  test_random random = {test_seed("convolutions_are_sums")};
  for (int round = 0; round < 60; round++) {
    geometry g = draw(&random);
    eval_case c;
    eval_begin(&c, PPH_NODE_CONV);
    eval_add_filled(&c, SHAPE(2, g.ci, g.in[0], g.in[1], g.in[2]), test_fill_x);
    eval_add_filled(&c, SHAPE(g.co, g.ci / g.group, g.k[0], g.k[1], g.k[2]),
                    test_fill_w);
    INT(GROUP, g.group);
    eval_set_ints(&c, PPH_ATTR_STRIDES, g.s, 3);
    eval_set_ints(&c, PPH_ATTR_DILATIONS, g.d, 3);
    eval_set_ints(&c, PPH_ATTR_PADS, g.p, 6);
    eval_run(&c, 1);
    const pph_shape *shape = &c.outputs[0].shape;
    const float *y = c.outputs[0].data;
    const float *x = c.inputs[0].data, *w = c.inputs[1].data;
    size_t count = 0;
    assert_true(pph_shape_count(shape, &count));
    for (size_t i = 0; i < count; i++) {
      int64_t rest = (int64_t)i, at[3];
      for (int a = 2; a >= 0; a--) {
        at[a] = rest % shape->dims[2 + a];
        rest /= shape->dims[2 + a];
      }
      assert_true((double)y[i] ==
                  convolve_at(&g, x, w, rest / g.co, rest % g.co, at));
    }
    eval_end(&c);
  }
}

static void pools_know_their_pads(void **state) {
  (void)state;
  static const struct {
    pph_node_kind kind;
    int64_t include, ceil;
    float y[3];
    uint32_t count;
  } rows[] = {{PPH_NODE_MAX_POOL, 0, 0, {-1, 4}, 2},
              {PPH_NODE_MAX_POOL, 0, 1, {-1, 4, 5}, 3},
              {PPH_NODE_AVERAGE_POOL, 0, 0, {-1.5f, 3}, 2},
              {PPH_NODE_AVERAGE_POOL, 1, 0, {-1, 3}, 2},
              {PPH_NODE_AVERAGE_POOL, 1, 1, {-1, 3, 5}, 3}};
  for (size_t i = 0; i < COUNT(rows); i++) {
    eval_case c;
    eval_begin(&c, rows[i].kind);
    F32(SHAPE(1, 1, 6), -1, -2, 2, 3, 4, 5);
    INTS(KERNEL_SHAPE, 3);
    INTS(STRIDES, 3);
    INTS(PADS, 1, 0);
    INT(CEIL_MODE, rows[i].ceil);
    if (rows[i].kind == PPH_NODE_AVERAGE_POOL)
      INT(COUNT_INCLUDE_PAD, rows[i].include);
    eval_run(&c, 1);
    eval_expect_f32(&c, 0, rows[i].y, rows[i].count);
    eval_end(&c);
  }
  eval_case c;
  for (int largest = 0; largest < 2; largest++) {
    eval_begin(&c, largest ? PPH_NODE_GLOBAL_MAX_POOL
                           : PPH_NODE_GLOBAL_AVERAGE_POOL);
    F32(SHAPE(1, 2, 2), 1, 2, -3, -5);
    eval_run(&c, 1);
    if (largest)
      EXPECT_F32(2, -3);
    else
      EXPECT_F32(1.5f, -4);
    eval_end(&c);
  }
}

static void reductions(void **state) {
  (void)state;
  static const struct {
    pph_node_kind kind;
    float y[2], all;
  } rows[] = {{PPH_NODE_REDUCE_SUM, {4, 11}, 15},
              {PPH_NODE_REDUCE_MEAN, {2, 5.5f}, 3.75f},
              {PPH_NODE_REDUCE_MAX, {3, 7}, 7},
              {PPH_NODE_REDUCE_MIN, {1, 4}, 1}};
  for (size_t i = 0; i < COUNT(rows); i++) {
    eval_case c;
    eval_begin(&c, rows[i].kind);
    F32(SHAPE(2, 2), 1, 4, 3, 7);
    I64(SHAPE(1), -2);
    INT(KEEPDIMS, 0);
    eval_run(&c, 1);
    eval_expect_f32(&c, 0, rows[i].y, 2);
    eval_end(&c);
    eval_begin(&c, rows[i].kind);
    F32(SHAPE(2, 2), 1, 4, 3, 7);
    eval_run(&c, 1);
    eval_expect_shape(&c, SHAPE(1, 1));
    EXPECT_F32(rows[i].all);
    eval_end(&c);
  }
}

static void sums_so_far(void **state) {
  (void)state;
  static const float right[][6] = {{1, 2, 3, 5, 7, 9},
                                   {6, 5, 3, 15, 11, 6},
                                   {0, 0, 0, 1, 2, 3}};
  for (int i = 0; i < 3; i++) {
    eval_case c;
    eval_begin(&c, PPH_NODE_CUM_SUM);
    F32(SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    I64(SCALAR, i == 1 ? -1 : 0);
    INT(REVERSE, i == 1);
    INT(EXCLUSIVE, i == 2);
    eval_run(&c, 1);
    eval_expect_f32(&c, 0, right[i], 6);
    eval_end(&c);
  }
}

/* Columns {2, 7, 2, nan} and {9, 8, 7, 6}; equal ones keep their order. */
static void greatest_and_least(void **state) {
  (void)state;
  static const float values[][6] = {{NAN, 9, 7, 8, 2, 7},
                                    {2, 6, 2, 7, 7, 8}};
  static const int64_t places[][6] = {{3, 0, 1, 1, 0, 2},
                                      {0, 3, 2, 2, 1, 1}};
  for (int largest = 0; largest < 2; largest++) {
    eval_case c;
    eval_begin(&c, PPH_NODE_TOP_K);
    F32(SHAPE(4, 2), 2, 9, 7, 8, 2, 7, NAN, 6);
    I64(SHAPE(1), 3);
    INT(AXIS, 0);
    INT(LARGEST, largest);
    eval_run(&c, 2);
    eval_expect_f32(&c, 0, values[!largest], 6);
    assert_memory_equal(c.outputs[1].data, places[!largest], sizeof *places);
    eval_end(&c);
  }
}

static void softmax_along_any_axis(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_SOFTMAX);
  INT(AXIS, 0);
  F32(SHAPE(2, 2), 0, 1000, 0, 1000.6931472f);
  eval_run(&c, 1);
  const float *y = c.outputs[0].data;
  assert_true(y[0] == 0.5f && y[2] == 0.5f);
  assert_true(fabsf(y[1] - 1.0f / 3) < 1e-4f && fabsf(y[1] + y[3] - 1) < 1e-6f);
  eval_end(&c);
}

static void products(void **state) {
  (void)state;
  eval_case c;
  eval_begin(&c, PPH_NODE_GEMM);
  INT(TRANS_A, 1);
  INT(TRANS_B, 1);
  FLOAT(ALPHA, 2);
  FLOAT(BETA, 0.5f);
  F32(SHAPE(2, 1), 1, 2);
  F32(SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
  F32(SHAPE(3), 2, 4, 6);
  eval_run(&c, 1);
  EXPECT_F32(11, 24, 37);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_MATMUL); /* the left batch of 1 repeats */
  F32(SHAPE(1, 1, 2), 1, 2);
  F32(SHAPE(2, 2, 2), 1, 2, 3, 4, 5, 6, 7, 8);
  eval_run(&c, 1);
  eval_expect_shape(&c, SHAPE(2, 1, 2));
  EXPECT_F32(7, 10, 19, 22);
  eval_end(&c);
  eval_begin(&c, PPH_NODE_MATMUL);
  F32(SHAPE(2), 1, 2);
  F32(SHAPE(2), 3, 4);
  eval_run(&c, 1);
  assert_int_equal(c.outputs[0].shape.rank, 0);
  EXPECT_F32(11);
  eval_end(&c);
}

static void large_product_crosses_blocks(void **state) {
  (void)state;
  enum { M = 67, K = 131, N = 259 };
  eval_case c;
  eval_begin(&c, PPH_NODE_MATMUL);
  eval_add_filled(&c, SHAPE(M, K), test_fill_x);
  eval_add_filled(&c, SHAPE(K, N), test_fill_w);
  eval_run(&c, 1);
  const float *a = c.inputs[0].data, *b = c.inputs[1].data;
  const float *y = c.outputs[0].data;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0;
      for (int k = 0; k < K; k++)
        sum += (double)a[i * K + k] * (double)b[k * N + j];
      assert_true((double)y[i * N + j] == sum);
    }
  eval_end(&c);
}

/* Hidden size 1, input size 1, two steps: the formulas written out. */
static void gru_follows_its_formulas(void **state) {
  (void)state;
  static const float w[] = {0.5f, -1, 2}, r[] = {1, 0.25f, -0.5f};
  static const float b[] = {0.1f, 0.2f, 0.3f, -0.1f, 0.4f, 0.6f};
  static const double x[] = {1, -2};
  for (int after = 0; after < 2; after++) {
    eval_case c;
    eval_begin(&c, PPH_NODE_GRU);
    TEXT(DIRECTION, "bidirectional");
    INT(LINEAR_BEFORE_RESET, after);
    INT(HIDDEN_SIZE, 1);
    F32(SHAPE(2, 1, 1), 1, -2);
    F32(SHAPE(2, 3, 1), w[0], w[1], w[2], w[0], w[1], w[2]);
    F32(SHAPE(2, 3, 1), r[0], r[1], r[2], r[0], r[1], r[2]);
    F32(SHAPE(2, 6), b[0], b[1], b[2], b[3], b[4], b[5], b[0], b[1], b[2], b[3],
        b[4], b[5]);
    eval_omit(&c);
    F32(SHAPE(2, 1, 1), 0.5f, 0.5f);
    eval_run(&c, 2);
    float all[4], last[2];
    for (int d = 0; d < 2; d++) {
      double h = 0.5;
      for (int t = 0; t < 2; t++) {
        int at = d ? 1 - t : t;
        double z =
            1 / (1 + exp(-((double)w[0] * x[at] + r[0] * h + b[0] + b[3])));
        double s = 1 / (1 + exp(-(w[1] * x[at] + r[1] * h + b[1] + b[4])));
        double inner = after ? s * (r[2] * h + b[5]) : r[2] * s * h + b[5];
        h = (1 - z) * tanh(w[2] * x[at] + b[2] + inner) + z * h;
        all[at * 2 + d] = (float)h;
      }
      last[d] = (float)h;
    }
    eval_expect_f32(&c, 0, all, 4);
    eval_expect_f32(&c, 1, last, 2);
    eval_end(&c);
  }
}

/* A line of four elements resized to `count`. */
static void check_line(const char *mode, const char *coordinates,
                       int64_t antialias, const float *y, int64_t count) {
  eval_case c;
  eval_begin(&c, PPH_NODE_RESIZE);
  TEXT(MODE, mode);
  TEXT(COORDINATE_TRANSFORMATION_MODE, coordinates);
  INT(ANTIALIAS, antialias);
  FLOAT(EXTRAPOLATION_VALUE, 9);
  F32(SHAPE(1, 1, 4), 1, 2, 3, 4);
  if (strcmp(coordinates, "tf_crop_and_resize") == 0)
    F32(SHAPE(6), 0, 0, 0.5f, 1, 1, 1.5f);
  else
    eval_omit(&c);
  eval_omit(&c);
  I64(SHAPE(3), 1, 1, count);
  eval_run(&c, 1);
  eval_expect_f32(&c, 0, y, (size_t)count);
  eval_end(&c);
}

#define LINE(mode, coordinates, antialias, ...)                                \
  check_line(mode, coordinates, antialias, (float[]){__VA_ARGS__},             \
             COUNT(((float[]){__VA_ARGS__})))

static void interpolation(void **state) {
  (void)state;
  LINE("linear", "half_pixel", 0, 1, 1.25f, 1.75f, 2.25f, 2.75f, 3.25f, 3.75f,
       4);
  LINE("linear", "align_corners", 0, 1, 1.5f, 2, 2.5f, 3, 3.5f, 4);
  LINE("linear", "asymmetric", 0, 1, 1.5f, 2, 2.5f, 3, 3.5f, 4, 4);
  LINE("linear", "pytorch_half_pixel", 0, 1);
  LINE("linear", "half_pixel", 0, 1.5f, 3.5f);
  /* From 1.5 to 4.5 of [0,3]: what lies beyond 3 takes the given value. */
  LINE("linear", "tf_crop_and_resize", 0, 2.5f, 4, 9);
  LINE("nearest", "tf_crop_and_resize", 0, 2, 4, 9);
  /* Half the length: weights 1 3 3 1, at the border the outer one folds. */
  LINE("linear", "half_pixel", 1, 1.625f, 3.375f);
  /* The cubic's four weights at a half are -3/32, 19/32, 19/32, -3/32. */
  LINE("cubic", "half_pixel", 0, 1.40625f, 3.59375f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_are_sums),
      cmocka_unit_test(pools_know_their_pads),
      cmocka_unit_test(reductions),
      cmocka_unit_test(sums_so_far),
      cmocka_unit_test(greatest_and_least),
      cmocka_unit_test(softmax_along_any_axis),
      cmocka_unit_test(products),
      cmocka_unit_test(large_product_crosses_blocks),
      cmocka_unit_test(gru_follows_its_formulas),
      cmocka_unit_test(interpolation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
