/* Vectors of AVX2 with FMA; see simd_avx512.h for the words. */
#ifndef PPH_KERNEL_SIMD_AVX2_H
#define PPH_KERNEL_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define SIMD_NAME(stem) stem##__avx2
#define SIMD_CPU PPH_CPU_AVX2
enum { LANES = 8 };
#define GEMM_ROWS 6
#define GEMM_VECTORS 2

typedef __m256 vec;

static inline vec vec_zero(void) { return _mm256_setzero_ps(); }
static inline vec vec_set1(float x) { return _mm256_set1_ps(x); }
static inline vec vec_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vec_store(float *p, vec v) { _mm256_storeu_ps(p, v); }

static inline __m256i vec_mask(size_t n) {
  static const int32_t ones[2 * 8] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                      0,  0,  0,  0,  0,  0,  0,  0};
  return _mm256_loadu_si256((const void *)(ones + 8 - n));
}
static inline vec vec_load_part(const float *p, size_t n) {
  return _mm256_maskload_ps(p, vec_mask(n));
}
static inline void vec_store_part(float *p, vec v, size_t n) {
  _mm256_maskstore_ps(p, vec_mask(n), v);
}

static inline __m256i vec_index(const int32_t *index) {
  return _mm256_loadu_si256((const void *)index);
}
static inline vec vec_pick(const float *p, size_t span, const int32_t *index) {
  return _mm256_permutevar8x32_ps(vec_load_part(p, span), vec_index(index));
}
static inline vec vec_pick2(const float *p, size_t span,
                            const int32_t *index) {
  size_t low = span < LANES ? span : LANES;
  __m256i lanes = vec_index(index);
  vec a = _mm256_permutevar8x32_ps(vec_load_part(p, low), lanes);
  vec b = _mm256_permutevar8x32_ps(vec_load_part(p + low, span - low), lanes);
  __m256i high = _mm256_cmpgt_epi32(lanes, _mm256_set1_epi32(LANES - 1));
  return _mm256_blendv_ps(a, b, _mm256_castsi256_ps(high));
}
static inline vec vec_gather(const float *p, const int32_t *index) {
  return _mm256_i32gather_ps(p, vec_index(index), 4);
}

static inline void vec_stream(float *p, vec v) { _mm256_stream_ps(p, v); }
static inline void vec_stream_end(void) { _mm_sfence(); }

static inline vec vec_fma(vec a, vec b, vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
static inline vec vec_at_least(vec v, vec low) {
  return _mm256_max_ps(low, v);
}
static inline vec vec_at_most(vec v, vec high) {
  return _mm256_min_ps(high, v);
}
static inline vec vec_where_negative(vec v, vec negative) {
  return _mm256_blendv_ps(
      v, negative, _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_LT_OQ));
}

#endif
