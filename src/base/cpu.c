#include "base/cpu.h"

#include <cpuinfo.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {"best", "scalar", "avx2", "avx512", "neon"};
enum { LEVELS = sizeof names / sizeof *names };

bool pph_cpu_has(pph_cpu cpu) {
  if (cpu == PPH_CPU_BEST || cpu == PPH_CPU_SCALAR)
    return true;
  if (!cpuinfo_initialize())
    return false;
  bool avx2 = cpuinfo_has_x86_avx2() && cpuinfo_has_x86_fma3();
  if (cpu == PPH_CPU_AVX2)
    return avx2;
  if (cpu == PPH_CPU_AVX512)
    return avx2 && cpuinfo_has_x86_avx512f() && cpuinfo_has_x86_avx512bw() &&
           cpuinfo_has_x86_avx512dq() && cpuinfo_has_x86_avx512vl();
  return cpu == PPH_CPU_NEON && cpuinfo_has_arm_neon_fma();
}

pph_cpu pph_cpu_choose(pph_cpu wanted) {
  static const pph_cpu falling[] = {PPH_CPU_NEON, PPH_CPU_AVX512, PPH_CPU_AVX2};
  for (size_t i = 0; i < sizeof falling / sizeof *falling; i++)
    if ((wanted == PPH_CPU_BEST || falling[i] <= wanted) &&
        pph_cpu_has(falling[i]))
      return falling[i];
  return PPH_CPU_SCALAR;
}

uint32_t pph_cpu_passes(pph_cpu cpu) {
  bool known = cpu == PPH_CPU_AVX512 && cpuinfo_initialize();
  const struct cpuinfo_core *core = known ? cpuinfo_get_core(0) : NULL;
#if CPUINFO_ARCH_X86 || CPUINFO_ARCH_X86_64
  /* CPUID's signature: the family is the sum of two fields. Zen 4 is what has
     AVX-512 in family 19h; Zen 5, family 1Ah, has whole units in servers. */
  if (core && core->vendor == cpuinfo_vendor_amd &&
      (core->cpuid >> 8 & 15) + (core->cpuid >> 20 & 255) == 0x19)
    return 2;
#endif
  (void)core;
  return 1;
}

const char *pph_cpu_name(pph_cpu cpu) {
  return (unsigned)cpu < LEVELS ? names[cpu] : "unknown";
}

bool pph_cpu_parse(const char *text, pph_cpu *cpu) {
  for (int i = 0; i < LEVELS; i++)
    if (strcmp(text, names[i]) == 0) {
      *cpu = (pph_cpu)i;
      return true;
    }
  return false;
}

void pph_cpu_describe(char *text, size_t size) {
  bool known = cpuinfo_initialize();
  const struct cpuinfo_package *package = known ? cpuinfo_get_package(0) : NULL;
  const struct cpuinfo_core *core = known ? cpuinfo_get_core(0) : NULL;
  uint32_t number = 0;
#if CPUINFO_ARCH_X86 || CPUINFO_ARCH_X86_64
  number = core ? core->cpuid : 0;
#elif CPUINFO_ARCH_ARM || CPUINFO_ARCH_ARM64
  number = core ? core->midr : 0;
#endif
  snprintf(text, size, "%s%s%08x", package ? package->name : "",
           package ? " " : "", (unsigned)number);
}

static size_t cache_size(const struct cpuinfo_cache *cache, size_t guess) {
  return cache && cache->size ? cache->size : guess;
}

size_t pph_cpu_cache2(void) {
  return cache_size(cpuinfo_initialize() ? cpuinfo_get_l2_cache(0) : NULL,
                    (size_t)1 << 20);
}

size_t pph_cpu_cache_last(void) {
  bool known = cpuinfo_initialize();
  const struct cpuinfo_cache *cache = known ? cpuinfo_get_l3_cache(0) : NULL;
  return cache_size(cache, (size_t)32 << 20);
}

/* A mask of fixed size does not hold the largest machines: all that are on
   line there. */
static long count_processors(void) {
#ifdef __linux__
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0)
    return CPU_COUNT(&usable);
#endif
  return sysconf(_SC_NPROCESSORS_ONLN);
}

uint32_t pph_cpu_threads(uint32_t wanted) {
  long most = count_processors();
  most = most < 1 ? 1 : most > PPH_MAX_THREADS ? PPH_MAX_THREADS : most;
  return wanted == 0 || wanted > (uint32_t)most ? (uint32_t)most : wanted;
}
