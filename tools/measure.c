#include "measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

double measure_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

void measure_add(measure_samples *samples, double microseconds) {
  if (samples->count == samples->capacity) {
    size_t capacity = samples->capacity * 2 + 16;
    double *grown = realloc(samples->values, capacity * sizeof *grown);
    if (!grown)
      return;
    samples->values = grown;
    samples->capacity = capacity;
  }
  samples->values[samples->count++] = microseconds;
}

double measure_least(const measure_samples *samples) {
  double least = samples->count ? samples->values[0] : 0;
  for (size_t i = 1; i < samples->count; i++)
    if (samples->values[i] < least)
      least = samples->values[i];
  return least;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double measure_median(measure_samples *samples) {
  if (!samples->count)
    return 0;
  qsort(samples->values, samples->count, sizeof *samples->values, compare);
  return samples->values[samples->count / 2];
}

void measure_clear(measure_samples *samples) {
  free(samples->values);
  *samples = (measure_samples){0};
}

/* Each round does `ROUND` steps of CHAINS independent multiply-adds: enough
   chains to hide the latency of two units. */
enum { CHAINS = 12, ROUND = 1 << 15 };

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double round_avx512(void) {
  __m512 sum[CHAINS], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-6f);
  for (int i = 0; i < CHAINS; i++)
    sum[i] = _mm512_set1_ps((float)i);
  for (int step = 0; step < ROUND; step++)
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++)
      sum[i] = _mm512_fmadd_ps(sum[i], a, b);
  volatile float sink = 0;
  for (int i = 0; i < CHAINS; i++)
    sink += _mm512_reduce_add_ps(sum[i]);
  return 2.0 * CHAINS * ROUND * 16;
}

__attribute__((target("avx2,fma"))) static double round_avx2(void) {
  __m256 sum[CHAINS], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-6f);
  for (int i = 0; i < CHAINS; i++)
    sum[i] = _mm256_set1_ps((float)i);
  for (int step = 0; step < ROUND; step++)
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++)
      sum[i] = _mm256_fmadd_ps(sum[i], a, b);
  volatile float sink = 0;
  for (int i = 0; i < CHAINS; i++)
    sink += _mm256_cvtss_f32(sum[i]);
  return 2.0 * CHAINS * ROUND * 8;
}
#endif

static double round_scalar(void) {
  float sum[CHAINS];
  for (int i = 0; i < CHAINS; i++)
    sum[i] = (float)i;
  for (int step = 0; step < ROUND; step++)
    for (int i = 0; i < CHAINS; i++)
      sum[i] = sum[i] * 0.999f + 1e-6f;
  volatile float sink = 0;
  for (int i = 0; i < CHAINS; i++)
    sink += sum[i];
  return 2.0 * CHAINS * ROUND;
}

typedef double (*round_fn)(void);

static round_fn choose_round(pph_cpu cpu) {
#if defined(__x86_64__)
  if (cpu == PPH_CPU_AVX512)
    return round_avx512;
  if (cpu == PPH_CPU_AVX2)
    return round_avx2;
#endif
  return round_scalar;
}

double measure_level_gflops(pph_cpu cpu, double milliseconds) {
  round_fn round = choose_round(pph_cpu_choose(cpu));
  double best = 0, end = measure_now() + milliseconds * 1e3;
  do {
    double start = measure_now();
    double flops = round();
    double gflops = flops / (measure_now() - start) * 1e-3;
    if (gflops > best)
      best = gflops;
  } while (measure_now() < end);
  return best;
}

double measure_sustained_gflops(pph_cpu cpu, double us, unsigned spans) {
  round_fn round = choose_round(pph_cpu_choose(cpu));
  double best = 0;
  for (unsigned i = 0; i < spans; i++) {
    double start = measure_now(), passed, flops = 0;
    do {
      flops += round();
      passed = measure_now() - start;
    } while (passed < us);
    if (flops / passed * 1e-3 > best)
      best = flops / passed * 1e-3;
  }
  return best;
}

double measure_peak_gflops(double milliseconds) {
  return measure_level_gflops(PPH_CPU_BEST, milliseconds);
}

double measure_memcpy(size_t bytes) {
  char *from = malloc(bytes + 1), *to = malloc(bytes + 1);
  measure_samples samples = {0};
  if (from && to) {
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    for (int i = 0; i < 7; i++) {
      double start = measure_now();
      memcpy(to, from, bytes);
      __asm__ volatile("" : : "r"(to) : "memory");
      measure_add(&samples, measure_now() - start);
    }
  }
  double least = measure_least(&samples);
  measure_clear(&samples);
  free(from);
  free(to);
  return least;
}
