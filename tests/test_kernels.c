/* Every row of the table of kernels, at every level this processor has. */
#include <stdlib.h>

#include "base/cpu.h"
#include "kernel_check.h"

static void check_family(kernel_check *check) {
  switch (check->kernel->family) {
  case PPH_KERNEL_GEMM:
    kernel_check_gemm(check);
    return;
  case PPH_KERNEL_PACK:
    kernel_check_pack(check);
    return;
  case PPH_KERNEL_FINISH:
    kernel_check_finish(check);
    return;
  case PPH_KERNEL_FILTER_IN:
  case PPH_KERNEL_FILTER_OUT:
    kernel_check_filter(check);
    return;
  case PPH_KERNEL_DEPTHWISE:
  case PPH_KERNEL_GROUPED:
    kernel_check_channelwise(check);
    return;
  case PPH_KERNEL_NARROW:
    kernel_check_narrow(check);
    return;
  case PPH_KERNEL_TRANSPOSE:
    kernel_check_transpose(check);
    return;
  }
  fail_msg("%s: no check of its family", check->kernel->name);
}

static void check_kernel(const pph_kernel *kernel, uint64_t seed) {
  kernel_check *check = calloc(1, sizeof *check);
  assert_non_null(check);
  check->kernel = kernel;
  check->random.state = seed;
  for (int edge = 0; edge < 2; edge++) {
    check->edge = (guarded_edge)edge;
    check_family(check);
  }
  for (int slot = 0; slot < KERNEL_SLOTS; slot++)
    for (int edge = 0; edge < 2; edge++)
      guarded_drop(&check->slots[slot][edge]);
  free(check);
}

static void check_level(pph_cpu cpu) {
  size_t count;
  const pph_kernel *rows = pph_kernel_level(cpu, &count);
  if (pph_cpu_choose(cpu) != cpu)
    skip();
  uint64_t seed = test_seed(pph_cpu_name(cpu));
  assert_true(count > 0);
  for (size_t i = 0; i < count; i++)
    check_kernel(&rows[i], seed + i);
}

static void test_scalar(void **state) { check_level(PPH_CPU_SCALAR); }
static void test_avx2(void **state) { check_level(PPH_CPU_AVX2); }
static void test_avx512(void **state) { check_level(PPH_CPU_AVX512); }
static void test_neon(void **state) { check_level(PPH_CPU_NEON); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scalar), cmocka_unit_test(test_avx2),
      cmocka_unit_test(test_avx512), cmocka_unit_test(test_neon)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
