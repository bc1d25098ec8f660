/* narrow against the reference, on problems drawn at random and on those it is
   meant for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "algo_check.h"
#include "op/algo_rows.h"

static void test_small(void **state) {
  algo_check_random(&pph_algo_narrow,
                    &(algo_bounds){.axes = 2,
                                   .transposed = true,
                                   .ordinary = true,
                                   .batch = 3,
                                   .in_channels = 20,
                                   .out_channels = 13,
                                   .input = 12,
                                   .kernel = 6,
                                   .stride = 4,
                                   .dilation = 3},
                    150);
}

static void test_lines(void **state) {
  algo_check_random(&pph_algo_narrow,
                    &(algo_bounds){.axes = 1,
                                   .transposed = true,
                                   .ordinary = true,
                                   .batch = 2,
                                   .in_channels = 40,
                                   .out_channels = 6,
                                   .input = 700,
                                   .kernel = 12,
                                   .stride = 6,
                                   .dilation = 2},
                    8);
}

static void test_pictures(void **state) {
  algo_check_random(&pph_algo_narrow,
                    &(algo_bounds){.axes = 2,
                                   .transposed = true,
                                   .ordinary = true,
                                   .batch = 1,
                                   .in_channels = 40,
                                   .out_channels = 3,
                                   .input = 60,
                                   .kernel = 5,
                                   .stride = 2,
                                   .dilation = 1},
                    6);
}

static void test_shapes(void **state) {
  static const char *const problems[] = {
      "f32 n1 g1 ci56 co1 i20x33 k9x9 s2x2 d1x1 p4,4,4,4 op1x1",
      "f32 n1 g1 ci56 co1 i9x40 k9x9 s3x3 d1x1 p4,4,4,4 op2x2",
      "f32 n1 g1 ci256 co3 i12x40 k4x4 s2x2 d1x1 p3,3,3,3",
      "conv f32 n1 g1 ci64 co1 i20x50 k3x3 s1x1 d1x1 p1,1,1,1",
      "conv f32 n1 g1 ci32 co1 i1x3000 k1x7 s1x1 d1x1 p0,3,0,3",
      "conv f32 n1 g1 ci32 co1 i3000x1 k7x1 s1x1 d1x1 p3,0,3,0",
      "conv f32 n2 g1 ci33 co5 i17x9 k1x1 s1x1 d1x1 p0,0,0,0",
      "conv f32 n1 g1 ci5 co3 i3x9x7 k1x3x3 s1x1x1 d1x1x1 p0,1,1,0,1,1",
      "f32 n1 g1 ci3 co2 i1x1 k1x1 s5x5 d1x1 p0,0,0,0 op4x4",
  };
  algo_check_known(&pph_algo_narrow, problems,
                   sizeof problems / sizeof *problems, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small), cmocka_unit_test(test_lines),
      cmocka_unit_test(test_pictures), cmocka_unit_test(test_shapes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
