/* grouped against the definition, bit for bit. */
#include "base/cpu.h"
#include "algo_check.h"
#include "op/algo_rows.h"
#include "test_support.h"

/* Groups that fill vectors and that straddle them, vectors of one group; inputs
   picked from one vector, from two, and from memory; multipliers; borders. */
static const char *const texts[] = {
    "f32 n1 g16 ci32 co32 i5x9 k4x4 s2x2 d1x1 p1,1,1,1 op0x0",
    "f32 n1 g11 ci33 co33 i5x9 k3x3 s2x2 d1x1 p1,1,1,1 op1x1",
    "f32 n2 g8 ci32 co32 i5x9 k2x2 s2x2 d1x1 p0,0,0,0 op0x0",
    "f32 n1 g5 ci60 co60 i1x20 k1x8 s1x4 d1x1 p0,2,0,2 op0x0",
    "f32 n1 g20 ci20 co60 i5x9 k4x4 s2x2 d1x1 p1,1,1,1 op0x0",
    "conv f32 n1 g16 ci64 co64 i5x17 k3x3 s1x1 d1x1 p1,1,1,1",
    "conv f32 n1 g16 ci64 co64 i5x17 k3x3 s2x2 d1x1 p1,1,1,1",
    "conv f32 n1 g9 ci108 co45 i5x17 k3x3 s1x1 d1x1 p1,1,1,1",
    "conv f32 n1 g24 ci96 co24 i5x17 k1x1 s1x1 d1x1 p0,0,0,0",
    "conv f32 n1 g16 ci16 co32 i5x17 k5x5 s1x1 d1x1 p2,2,2,2",
    "conv f32 n1 g2 ci8 co64 i5x17 k3x3 s1x1 d1x1 p1,1,1,1",
    "f32 n1 g3 ci30 co48 i5x17 k4x4 s2x2 d1x1 p1,1,1,1 op0x0",
    "conv f32 n1 g2 ci8 co80 i5x17 k3x3 s1x1 d2x1 p1,1,1,1",
};

static void test_known(void **state) {
  algo_check_known(&pph_algo_grouped, texts, sizeof texts / sizeof *texts,
                   true);
}

static void test_random_problems(void **state) {
  algo_bounds bounds = {.axes = 2,
                        .transposed = true,
                        .ordinary = true,
                        .group = 10,
                        .batch = 2,
                        .in_channels = 12,
                        .out_channels = 12,
                        .input = 24,
                        .kernel = 7,
                        .stride = 4,
                        .dilation = 2,
                        .channels_last = true};
  algo_check_random(&pph_algo_grouped, &bounds, 110);
  bounds.axes = 1;
  algo_check_random(&pph_algo_grouped, &bounds, 40);
  bounds.equal = true;
  algo_check_random(&pph_algo_grouped, &bounds, 40);
}

/* Whichever allocation fails, prepare leaves nothing behind. */
static void test_memory(void **state) {
  const pph_algo *algo = &pph_algo_grouped;
  pph_conv_spec spec = {.cpu = pph_cpu_choose(PPH_CPU_BEST), .threads = 1};
  pph_error error = {0};
  static const float weights[16 * 2 * 9];
  spec.weights = weights;
  test_assert_ok(
      pph_problem_parse("conv f32 n1 g8 ci16 co16 i4x4 k3x3 s1x1 d1x1 p1,1,1,1",
                        &spec.problem, &error),
      &error);
  pph_status status = PPH_OUT_OF_MEMORY;
  for (uint64_t limit = 64; status != PPH_OK; limit += 64) {
    pph_heap heap;
    pph_algo_plan plan = {.algo = algo};
    pph_heap_init(&heap, NULL, limit);
    status = algo->prepare(algo, &spec, &heap, &plan, &error);
    if (status == PPH_OK)
      algo->release(&heap, &plan);
    else
      assert_int_equal(status, PPH_OUT_OF_MEMORY);
    assert_null(plan.state);
    assert_int_equal(heap.used, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_known),
                                     cmocka_unit_test(test_random_problems),
                                     cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
