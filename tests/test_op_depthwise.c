/* depthwise against the definition, bit for bit. */
#include "algo_check.h"
#include "op/algo_rows.h"
#include "test_support.h"

/* Every specialised kernel, rows of every remainder, whole and part vectors;
   what occurs in models; borders that are all there is. */
static const char *const texts[] = {
    "f32 n1 g32 ci32 co32 i9x17 k4x4 s2x2 d1x1 p1,1,1,1 op0x0",
    "f32 n2 g20 ci20 co20 i5x12 k4x4 s2x2 d1x1 p1,1,1,1 op0x0",
    "f32 n1 g32 ci32 co32 i9x17 k3x3 s2x2 d1x1 p1,1,1,1 op1x1",
    "f32 n1 g33 ci33 co33 i9x18 k2x2 s2x2 d1x1 p0,0,0,0 op0x0",
    "f32 n1 g16 ci16 co16 i3x13 k4x4 s4x4 d1x1 p0,0,0,0 op0x0",
    "f32 n1 g16 ci16 co16 i3x13 k8x8 s4x4 d1x1 p2,2,2,2 op0x0",
    "f32 n1 g528 ci528 co528 i1x19 k1x32 s1x16 d1x1 p0,8,0,8 op0x0",
    "f32 n1 g5 ci5 co5 i1x1 k4x4 s2x2 d1x1 p1,1,1,1 op0x0",
    "f32 n1 g16 ci16 co16 i6x6 k2x2 s3x3 d1x1 p0,0,0,0 op2x2",
    "f32 n1 g16 ci16 co16 i6x6 k3x3 s2x2 d2x3 p2,3,1,0 op1x1",
    "f32 n1 g16 ci16 co16 i6x6 k3x3 s1x1 d1x1 p7,7,0,0 op0x0",
    "conv f32 n1 g32 ci32 co32 i9x23 k3x3 s1x1 d1x1 p1,1,1,1",
    "conv f32 n1 g24 ci24 co24 i9x23 k3x3 s2x2 d1x1 p1,1,1,1",
    "conv f32 n1 g32 ci32 co32 i9x23 k5x5 s1x1 d1x1 p2,2,2,2",
    "conv f32 n1 g32 ci32 co32 i9x23 k3x3 s1x1 d2x2 p2,2,2,2",
    "conv f32 n2 g18 ci18 co18 i1x40 k1x7 s1x3 d1x1 p0,3,0,3",
    "conv f32 n1 g16 ci16 co16 i2x2 k7x7 s1x1 d1x1 p3,3,3,3",
    "conv f32 n1 g16 ci16 co16 i3x4x9 k1x3x3 s1x1x1 d1x1x1 p0,1,1,0,1,1",
};

static void test_known(void **state) {
  algo_check_known(&pph_algo_depthwise, texts, sizeof texts / sizeof *texts,
                   true);
}

/* Outputs that are stored past the caches. */
static void test_streamed(void **state) {
  static const char *const streamed[] = {
      "f32 n1 g32 ci32 co32 i90x100 k4x4 s2x2 d1x1 p1,1,1,1 op0x0",
      "f32 n1 g40 ci40 co40 i90x100 k3x3 s2x2 d1x1 p1,1,1,1 op0x0"};
  algo_check_known(&pph_algo_depthwise, streamed, 2, true);
}

static void test_random_problems(void **state) {
  algo_bounds bounds = {.axes = 2,
                        .transposed = true,
                        .ordinary = true,
                        .group = 40,
                        .batch = 2,
                        .in_channels = 1,
                        .out_channels = 1,
                        .equal = true,
                        .input = 24,
                        .kernel = 7,
                        .stride = 4,
                        .dilation = 2,
                        .channels_last = true};
  algo_check_random(&pph_algo_depthwise, &bounds, 110);
  bounds.axes = 1;
  algo_check_random(&pph_algo_depthwise, &bounds, 40);
}

/* Other groups and channels first are left to others. */
static void test_refusals(void **state) {
  static const char *const refused[] = {
      "f32 n1 g8 ci8 co16 i4x4 k2x2 s2x2 d1x1 p0,0,0,0 op0x0",
      "f32 n1 g8 ci16 co16 i4x4 k2x2 s2x2 d1x1 p0,0,0,0 op0x0",
      "conv f32 n1 g8 ci8 co8 i4x4x4 k3x1x1 s1x1x1 d1x1x1 p0,0,0,0,0,0",
  };
  pph_conv_spec spec = {.cpu = PPH_CPU_SCALAR, .threads = 1};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    pph_error error = {0};
    test_assert_ok(pph_problem_parse(refused[i], &spec.problem, &error),
                   &error);
    assert_false(pph_algo_depthwise.supports(&pph_algo_depthwise, &spec));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known), cmocka_unit_test(test_streamed),
      cmocka_unit_test(test_random_problems), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
