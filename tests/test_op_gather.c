/* gather against the reference, on problems that take each of its paths and on
   those drawn at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "algo_check.h"
#include "op/algo_rows.h"

#define CHECK(problems)                                                        \
  algo_check_known(&pph_algo_gather, problems,                                 \
                   sizeof problems / sizeof *problems, false)

static void test_lines(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci17 co9 i1x23 k1x4 s1x2 d1x1 p0,1,0,1",
      "f32 n1 g1 ci8 co16 i1x40 k1x16 s1x8 d1x1 p0,4,0,4",
      "f32 n1 g1 ci5 co3 i37x1 k5x1 s3x1 d1x1 p2,0,0,0 op1x0",
      "f32 n2 g1 ci3 co33 i1x700 k1x3 s1x2 d1x1 p0,0,0,1",
      "conv f32 n1 g1 ci6 co20 i1x90 k1x7 s1x3 d1x2 p0,3,0,6"};
  CHECK(problems);
}

static void test_planes(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci16 co20 i6x7 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n2 g1 ci7 co5 i6x7 k3x3 s2x2 d1x1 p1,1,1,1 op1x1",
      "f32 n1 g1 ci9 co2 i5x8 k9x9 s2x2 d1x1 p4,4,4,4 op1x1",
      "f32 n2 g1 ci4 co15 i5x4 k2x2 s3x4 d1x1 p0,0,0,0 op2x3",
      "f32 n1 g1 ci4 co18 i4x9 k1x2 s5x3 d1x1 p0,1,0,0",
      "f32 n1 g1 ci6 co7 i5x6 k3x4 s2x3 d2x2 p1,2,3,0 op1x2",
      "f32 n1 g1 ci6 co7 i5x6 k3x3 s2x4 d4x2 p0,0,0,0",
      "f32 n1 g1 ci3 co40 i7x5 k4x4 s2x2 d1x1 p5,4,6,3",
      "f32 n1 g1 ci1 co1 i1x1 k1x1 s4x4 d1x1 p0,0,0,0 op3x3",
      "conv f32 n2 g1 ci10 co21 i11x12 k3x3 s2x2 d1x1 p1,0,2,1",
      "conv f32 n1 g1 ci10 co6 i9x14 k3x2 s1x3 d3x2 p4,1,2,5"};
  CHECK(problems);
}

static void test_volumes(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci5 co6 i3x5x6 k4x4x4 s2x2x2 d1x1x1 p1,1,1,1,1,1",
      "f32 n2 g1 ci3 co9 i3x5x6 k3x3x3 s2x2x2 d1x1x1 p1,1,1,1,1,1 op1x1x1",
      "f32 n1 g2 ci4 co6 i3x5x6 k2x3x1 s3x2x4 d1x2x1 p0,1,0,1,2,0 op2x1x3",
      "conv f32 n1 g1 ci5 co7 i3x5x6 k3x3x3 s1x2x2 d1x1x2 p1,1,2,1,0,2"};
  CHECK(problems);
}

static void test_groups(void **state) {
  static const char *const problems[] = {
      "f32 n2 g2 ci10 co34 i5x6 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g3 ci9 co6 i5x6 k3x3 s2x2 d1x1 p1,0,0,1 op1x1",
      "f32 n1 g6 ci6 co6 i5x6 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g5 ci5 co15 i4x6 k2x2 s3x3 d1x1 p0,1,1,0",
      "conv f32 n1 g3 ci9 co12 i7x6 k3x3 s1x2 d1x1 p1,1,1,1",
      "conv f32 n2 g4 ci4 co4 i7x6 k3x3 s1x1 d1x1 p1,1,1,1"};
  CHECK(problems);
}

/* Panels of fewer rows than the kernel's, and more tiles than a block's. */
static void test_large(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci900 co3 i2x16 k8x8 s2x2 d1x1 p3,3,3,3",
      "conv f32 n1 g1 ci2000 co2 i2x16 k3x3 s1x1 d1x1 p1,1,1,1",
      "f32 n1 g1 ci2 co2 i2x1200 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g1 ci2 co1 i90x9 k3x3 s2x2 d1x1 p1,1,1,1"};
  CHECK(problems);
}

static void test_random(void **state) {
  algo_bounds bounds = {.axes = 1,
                        .transposed = true,
                        .ordinary = true,
                        .group = 3,
                        .batch = 3,
                        .in_channels = 20,
                        .out_channels = 40,
                        .input = 60,
                        .kernel = 9,
                        .stride = 5,
                        .dilation = 3};
  algo_check_random(&pph_algo_gather, &bounds, 50);
  bounds.axes = 2;
  bounds.input = 12;
  bounds.kernel = 6;
  algo_check_random(&pph_algo_gather, &bounds, 60);
  bounds.axes = 3;
  bounds.input = 6;
  bounds.kernel = 4;
  bounds.stride = 3;
  bounds.in_channels = bounds.out_channels = 7;
  algo_check_random(&pph_algo_gather, &bounds, 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lines),   cmocka_unit_test(test_planes),
      cmocka_unit_test(test_volumes), cmocka_unit_test(test_groups),
      cmocka_unit_test(test_large),   cmocka_unit_test(test_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
