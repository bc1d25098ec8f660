#include "kernel/kernel_table.h"

#include <string.h>

enum {
#define PPH_KERNEL(family, stem, rows, columns) ROW_##stem,
#include "kernel/kernel_list.def"
#undef PPH_KERNEL
  ROWS_PER_LEVEL
};

extern const pph_kernel pph_kernel_rows__scalar[];
#if defined(__x86_64__)
extern const pph_kernel pph_kernel_rows__avx2[];
extern const pph_kernel pph_kernel_rows__avx512[];
#elif defined(__aarch64__)
extern const pph_kernel pph_kernel_rows__neon[];
#endif

static const pph_kernel *const levels[] = {
    [PPH_CPU_SCALAR] = pph_kernel_rows__scalar,
#if defined(__x86_64__)
    [PPH_CPU_AVX2] = pph_kernel_rows__avx2,
    [PPH_CPU_AVX512] = pph_kernel_rows__avx512,
#elif defined(__aarch64__)
    [PPH_CPU_NEON] = pph_kernel_rows__neon,
#endif
};
enum { LEVELS = sizeof levels / sizeof *levels };

const pph_kernel *pph_kernel_level(pph_cpu cpu, size_t *count) {
  *count = 0;
  if ((unsigned)cpu >= LEVELS || !levels[cpu])
    return NULL;
  *count = ROWS_PER_LEVEL;
  return levels[cpu];
}

const pph_kernel *pph_kernel_find(const char *stem, pph_cpu cpu) {
  size_t count;
  const pph_kernel *rows = pph_kernel_level(cpu, &count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(rows[i].stem, stem) == 0)
      return &rows[i];
  return NULL;
}
