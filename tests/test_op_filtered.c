/* filtered: its rows stay within their bounds of E on problems drawn at random
   and on those they are meant for; small integers stay exact where the points
   allow it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "algo_check.h"
#include "op/algo_rows.h"
#include "test_support.h"

static const pph_algo *const rows[] = {
    &pph_algo_filtered_w2, &pph_algo_filtered_w3, &pph_algo_filtered_w4,
    &pph_algo_filtered_w5, &pph_algo_filtered_w7, &pph_algo_filtered_c2,
    &pph_algo_filtered_c3, &pph_algo_filtered_c4, &pph_algo_filtered_z2,
    &pph_algo_filtered_z4, &pph_algo_filtered_l8};
enum { ROWS = sizeof rows / sizeof *rows };
/* Inputs that a tile reads along an axis. */
static const int64_t windows[ROWS] = {3, 4, 5, 6, 8, 4, 5, 6, 4, 6, 8};

/* E of every row, printed with PPH_SHOW_ERRORS=1; on uneven data. */
static double most[ROWS], most_uneven[ROWS];

static size_t check_rows(const algo_case *test) {
  size_t supported = 0;
  for (size_t i = 0; i < ROWS; i++) {
    double error = algo_error(rows[i], test);
    supported += error >= 0;
    if (!(error <= rows[i]->error_bound))
      fail_msg("%s: %s, seed %u: E is %.3g, at most %.3g", rows[i]->name,
               test->problem, test->seed, error, rows[i]->error_bound);
    most[i] = error > most[i] ? error : most[i];
  }
  return supported;
}

static void test_shapes(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci128 co40 i9x10 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n2 g1 ci32 co16 i5x4 k4x4 s2x2 d1x1 p0,3,2,1 op1x0",
      "f32 n1 g1 ci16 co48 i1x41 k1x16 s1x8 d1x1 p0,4,0,4",
      "f32 n1 g1 ci33 co17 i1x13 k1x12 s1x6 d1x1 p0,3,0,3",
      "f32 n1 g1 ci20 co12 i21x1 k12x1 s6x1 d1x1 p3,0,3,0 op2x0",
      "f32 n1 g1 ci24 co8 i1x1 k4x4 s2x2 d1x1 p0,0,0,0",
      "f32 n1 g1 ci16 co20 i7x8 k3x3 s2x2 d1x1 p1,1,1,1 op1x1",
      "f32 n1 g1 ci16 co10 i6x7 k6x6 s2x2 d1x1 p2,2,2,2",
      "f32 n2 g1 ci64 co33 i6x7 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g1 ci65 co20 i5x9 k6x4 s3x2 d1x1 p1,1,2,1 op1x1",
      "f32 n1 g1 ci64 co16 i8x1 k8x1 s4x1 d1x1 p2,0,2,0",
      "f32 n2 g1 ci40 co24 i1x30 k1x4 s1x2 d1x1 p0,0,0,1",
      "f32 n1 g1 ci64 co33 i7x6 k5x5 s2x2 d1x1 p2,2,2,2 op1x1",
      "f32 n1 g1 ci64 co20 i5x8 k5x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g1 ci48 co20 i1x33 k1x10 s1x4 d1x1 p0,3,0,3",
      "f32 n1 g1 ci16 co33 i4x7x6 k1x4x4 s1x2x2 d1x1x1 p0,1,1,0,1,1",
      "conv f32 n1 g1 ci32 co33 i13x14 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n2 g1 ci16 co64 i12x9 k3x3 s1x1 d1x1 p0,1,1,0",
      "conv f32 n1 g1 ci48 co16 i1x50 k1x3 s1x1 d1x1 p0,1,0,1",
      "conv f32 n1 g1 ci16 co16 i30x2 k3x1 s1x1 d1x1 p1,0,1,0",
      "conv f32 n1 g1 ci16 co31 i12x11 k2x2 s1x1 d1x1 p0,0,1,1",
      "conv f32 n1 g1 ci16 co16 i2x2 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n1 g1 ci16 co16 i5x6x7 k1x3x3 s1x1x1 d1x1x1 p0,1,1,0,1,1",
      "conv f32 n1 g1 ci300 co40 i14x14 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n2 g1 ci32 co33 i1x50 k1x3 s1x1 d1x3 p0,3,0,3",
      "conv f32 n1 g1 ci48 co16 i41x1 k3x1 s1x1 d5x1 p5,0,4,0",
      "conv f32 n1 g1 ci32 co33 i13x17 k3x3 s1x1 d2x3 p2,3,1,3",
      "conv f32 n1 g1 ci16 co20 i15x14 k3x3 s1x1 d6x4 p6,4,6,4",
      "conv f32 n2 g1 ci32 co33 i1x61 k1x5 s1x1 d1x1 p0,2,0,2",
      "conv f32 n1 g1 ci48 co40 i1x83 k1x7 s1x1 d1x3 p0,9,0,9",
      "conv f32 n1 g1 ci17 co16 i90x1 k11x1 s1x1 d5x1 p25,0,25,0",
      "conv f32 n1 g1 ci16 co20 i12x13 k5x5 s1x1 d1x1 p2,2,2,2",
      "conv f32 n1 g1 ci33 co20 i16x15 k7x6 s1x1 d1x2 p2,5,3,5",
  };
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
    for (uint32_t flags = 0; flags < 2; flags++)
      assert_true(check_rows(&(algo_case){.problem = problems[i],
                                          .bias = true,
                                          .residual = flags,
                                          .slopes = flags,
                                          .clamp = flags,
                                          .seed = (uint32_t)i}) > 0);
}

static void check_random(const algo_bounds *bounds, uint32_t count) {
  size_t supported = 0;
  for (uint32_t seed = 1; seed <= count; seed++) {
    char text[200];
    algo_case test = algo_random_case(seed, bounds, text, sizeof text);
    supported += check_rows(&test);
  }
  if (count >= 64) /* fewer may all be none of ours */
    assert_true(supported >= count / 8);
}

static void test_any(void **state) {
  check_random(&(algo_bounds){.axes = 2,
                              .transposed = true,
                              .ordinary = true,
                              .batch = 2,
                              .in_channels = 40,
                              .out_channels = 40,
                              .input = 12,
                              .kernel = 5,
                              .stride = 2,
                              .dilation = 1,
                              .channels_last = true},
               test_rounds(200));
  check_random(&(algo_bounds){.axes = 1,
                              .transposed = true,
                              .ordinary = true,
                              .batch = 2,
                              .in_channels = 40,
                              .out_channels = 40,
                              .input = 60,
                              .kernel = 12,
                              .stride = 4,
                              .dilation = 1,
                              .channels_last = true},
               test_rounds(200));
  for (uint32_t axes = 1; axes <= 2; axes++)
    check_random(&(algo_bounds){.axes = axes,
                                .ordinary = true,
                                .batch = 2,
                                .in_channels = 60,
                                .out_channels = 20,
                                .input = axes == 1 ? 90 : 20,
                                .kernel = 3,
                                .stride = 1,
                                .dilation = 6,
                                .channels_last = true},
                 test_rounds(80));
}

/* Long kernels. */
static void test_long(void **state) {
  for (uint32_t axes = 1; axes <= 2; axes++)
    check_random(&(algo_bounds){.axes = axes,
                                .ordinary = true,
                                .batch = 2,
                                .in_channels = 60,
                                .out_channels = 20,
                                .input = axes == 1 ? 120 : 24,
                                .kernel = 12,
                                .stride = 1,
                                .dilation = 5,
                                .channels_last = true},
                 test_rounds(200));
}

/* Small pictures, all of whose outputs lie near an edge: many, as the largest
   E is a matter of chance. */
static void test_edges(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci64 co900 i3x3 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g1 ci32 co100 i4x3 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g1 ci16 co500 i1x5 k1x8 s1x4 d1x1 p0,2,0,2",
      "conv f32 n1 g1 ci32 co300 i4x4 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n1 g1 ci16 co700 i1x6 k1x3 s1x1 d1x1 p0,1,0,1",
      "conv f32 n1 g1 ci16 co700 i1x9 k1x5 s1x1 d1x1 p0,2,0,2",
      "conv f32 n1 g1 ci16 co400 i1x12 k1x7 s1x1 d1x1 p0,3,0,3",
      "conv f32 n1 g1 ci32 co400 i1x30 k1x11 s1x1 d1x2 p0,10,0,10",
      "conv f32 n1 g1 ci16 co200 i7x6 k5x5 s1x1 d1x1 p2,2,2,2"};
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
    for (uint32_t seed = 1; seed <= test_rounds(5); seed++)
      assert_true(
          check_rows(&(algo_case){.problem = problems[i], .seed = seed}) > 0);
}

/* One bright pixel beside zeros: roundings of it reach all outputs of a tile,
   whose own sums may be nothing. */
static void test_uneven(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci64 co48 i14x15 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g1 ci32 co24 i13x12 k3x3 s2x2 d1x1 p1,1,1,1 op1x1",
      "f32 n1 g1 ci64 co24 i9x12 k5x5 s2x2 d1x1 p2,2,2,2 op1x1",
      "f32 n1 g1 ci64 co24 i1x90 k1x8 s1x4 d1x1 p0,2,0,2",
      "f32 n1 g1 ci40 co24 i90x1 k4x1 s2x1 d1x1 p1,0,1,0",
      "conv f32 n1 g1 ci32 co40 i21x20 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n1 g1 ci64 co24 i21x20 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n1 g1 ci48 co40 i1x120 k1x3 s1x1 d1x1 p0,1,0,1",
      "conv f32 n1 g1 ci64 co24 i20x19 k2x2 s1x1 d1x1 p0,0,1,1",
      "conv f32 n1 g1 ci64 co24 i21x20 k3x3 s1x1 d2x3 p2,3,2,3",
      "conv f32 n1 g1 ci32 co24 i1x120 k1x7 s1x1 d1x3 p0,9,0,9",
      "conv f32 n1 g1 ci32 co24 i1x120 k1x11 s1x1 d1x1 p0,5,0,5",
      "conv f32 n1 g1 ci32 co24 i15x16 k5x5 s1x1 d1x1 p2,2,2,2"};
  bool held[ROWS] = {false};
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
    for (uint32_t seed = 1; seed <= test_rounds(3); seed++)
      for (size_t j = 0; j < ROWS; j++) {
        algo_case test = {.problem = problems[i], .bias = true, .seed = seed};
        double error = algo_error_uneven(rows[j], &test, windows[j]);
        if (!(error <= rows[j]->error_bound))
          fail_msg("%s: %s, seed %u: E is %.3g, at most %.3g", rows[j]->name,
                   test.problem, seed, error, rows[j]->error_bound);
        held[j] = held[j] || error > 0;
        most_uneven[j] = error > most_uneven[j] ? error : most_uneven[j];
      }
  for (size_t j = 0; j < ROWS; j++)
    if (!held[j])
      fail_msg("%s: no problem is for it", rows[j]->name);
}

static void test_integers(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci64 co40 i9x10 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g1 ci16 co48 i1x41 k1x16 s1x8 d1x1 p0,4,0,4",
      "conv f32 n1 g1 ci32 co33 i13x14 k3x3 s1x1 d1x1 p1,1,1,1",
      "f32 n1 g1 ci64 co24 i5x6 k4x4 s2x2 d1x1 p1,1,1,1"};
  static const pph_algo *const exact[] = {
      &pph_algo_filtered_w3, &pph_algo_filtered_w3, &pph_algo_filtered_c2,
      &pph_algo_filtered_z2};
  for (size_t i = 0; i < 4; i++)
    assert_true(algo_check_integers(
        exact[i],
        &(algo_case){.problem = problems[i], .bias = true, .residual = true}));
}

static void test_show(void **state) {
  for (size_t i = 0; getenv("PPH_SHOW_ERRORS") && i < ROWS; i++)
    printf("%s: E %.2f, on uneven data %.2f\n", rows[i]->name, most[i],
           most_uneven[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes), cmocka_unit_test(test_any),
      cmocka_unit_test(test_long),
      cmocka_unit_test(test_edges), cmocka_unit_test(test_uneven),
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_show)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
