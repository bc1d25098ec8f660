/* The reference row against the definition: it takes every problem. */
#include "algo_check.h"
#include "op/algo_rows.h"
#include "test_support.h"

static void check_random(const algo_bounds *bounds, uint32_t count) {
  for (uint32_t seed = 1; seed <= count; seed++) {
    char text[240];
    algo_case test = algo_random_case(seed, bounds, text, sizeof text);
    assert_true(algo_check(&pph_algo_reference, &test));
  }
}

static void test_random_problems(void **state) {
  algo_bounds bounds = {.transposed = true,
                        .ordinary = true,
                        .group = 3,
                        .batch = 2,
                        .in_channels = 6,
                        .out_channels = 6,
                        .input = 8,
                        .kernel = 5,
                        .stride = 4,
                        .dilation = 3};
  for (bounds.axes = 1; bounds.axes <= 3; bounds.axes++)
    check_random(&bounds, bounds.axes == 3 ? 8 : 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_problems)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
