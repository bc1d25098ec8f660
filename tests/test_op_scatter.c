/* scatter against the reference, on problems drawn at random and on those it is
   meant for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "algo_check.h"
#include "op/algo_rows.h"

static void test_pictures(void **state) {
  algo_check_random(&pph_algo_scatter,
                    &(algo_bounds){.axes = 2,
                                   .transposed = true,
                                   .batch = 3,
                                   .in_channels = 20,
                                   .out_channels = 70,
                                   .input = 5,
                                   .kernel = 5,
                                   .stride = 4,
                                   .dilation = 3},
                    80);
}

static void test_lines(void **state) {
  algo_check_random(&pph_algo_scatter,
                    &(algo_bounds){.axes = 1,
                                   .transposed = true,
                                   .batch = 2,
                                   .in_channels = 40,
                                   .out_channels = 40,
                                   .input = 9,
                                   .kernel = 16,
                                   .stride = 8,
                                   .dilation = 1},
                    80);
}

static void test_volumes(void **state) {
  algo_check_random(&pph_algo_scatter,
                    &(algo_bounds){.axes = 3,
                                   .transposed = true,
                                   .batch = 2,
                                   .in_channels = 9,
                                   .out_channels = 20,
                                   .input = 4,
                                   .kernel = 4,
                                   .stride = 3,
                                   .dilation = 2},
                    40);
}

static void test_ordinary(void **state) {
  algo_check_random(&pph_algo_scatter,
                    &(algo_bounds){.axes = 2,
                                   .ordinary = true,
                                   .batch = 3,
                                   .in_channels = 20,
                                   .out_channels = 70,
                                   .input = 9,
                                   .kernel = 4,
                                   .stride = 3,
                                   .dilation = 3},
                    80);
  algo_check_random(&pph_algo_scatter,
                    &(algo_bounds){.axes = 3,
                                   .ordinary = true,
                                   .batch = 2,
                                   .in_channels = 9,
                                   .out_channels = 20,
                                   .input = 5,
                                   .kernel = 3,
                                   .stride = 2,
                                   .dilation = 2},
                    40);
}

/* Enough sums for several lots, few channels whose kernel columns are joined,
   and more rows than a tile has. */
static void test_shapes(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci100 co64 i1x1 k4x4 s1x1 d1x1 p0,0,0,0",
      "f32 n1 g1 ci64 co64 i4x4 k4x4 s2x2 d1x1 p1,1,1,1",
      "f32 n1 g1 ci64 co33 i1x4 k1x16 s1x8 d1x1 p0,0,0,0",
      "f32 n1 g1 ci17 co5 i1x8 k1x7 s1x3 d1x1 p0,2,0,1",
      "f32 n2 g1 ci8 co40 i2x2x3 k3x3x3 s2x2x2 d1x1x1 p1,1,1,0,1,1 op1x0x1",
      "f32 n1 g1 ci3 co2 i1x1 k1x1 s5x5 d1x1 p0,0,0,0 op4x4",
      "f32 n4 g1 ci5 co150 i8x8 k3x3 s2x2 d1x1 p1,1,1,1 op1x1",
      "f32 n2 g1 ci20 co3 i5x6 k5x9 s2x4 d1x1 p2,3,1,4",
      "f32 n1 g1 ci30 co1 i1x5 k1x64 s1x16 d1x1 p0,9,0,20",
      "conv f32 n1 g1 ci40 co70 i4x4 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n2 g1 ci19 co33 i8x8 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n1 g1 ci16 co3 i20x20 k4x4 s4x4 d1x1 p0,0,0,0",
  };
  algo_check_known(&pph_algo_scatter, problems,
                   sizeof problems / sizeof *problems, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pictures), cmocka_unit_test(test_lines),
      cmocka_unit_test(test_volumes), cmocka_unit_test(test_ordinary),
      cmocka_unit_test(test_shapes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
