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
/* The narrow kernel's: vector registers, rows of a tile. */
#define NARROW_REGISTERS 16
#define NARROW_ROWS 6

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

static inline void vec_turn4(vec rows[4]) {
  __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(rows[0], rows[1]));
  __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(rows[0], rows[1]));
  __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(rows[2], rows[3]));
  __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(rows[2], rows[3]));
  rows[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
  rows[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
  rows[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
  rows[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
}
static inline void vec_turn(vec rows[LANES]) {
  vec_turn4(rows);
  vec_turn4(rows + 4);
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++) {
    vec low = rows[i], high = rows[i + 4];
    rows[i] = _mm256_permute2f128_ps(low, high, 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(low, high, 0x31);
  }
}

static inline void vec_transpose4(const float *source, size_t source_step,
                                  float *target, size_t target_step) {
  vec rows[4];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++) {
    const float *from = source + i * source_step;
    rows[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)),
                                   _mm_loadu_ps(from + 4 * source_step), 1);
  }
  vec_turn4(rows);
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++)
    vec_store(target + i * target_step, rows[i]);
}
static inline void vec_spread4(vec rows[4], float *target,
                               size_t target_step) {
  vec_turn4(rows);
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++)
    _mm_storeu_ps(target + i * target_step, _mm256_castps256_ps128(rows[i]));
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++)
    _mm_storeu_ps(target + (i + 4) * target_step,
                  _mm256_extractf128_ps(rows[i], 1));
}
static inline void vec_interleave(vec a, vec b, vec *low, vec *high) {
  vec even = _mm256_unpacklo_ps(a, b), odd = _mm256_unpackhi_ps(a, b);
  *low = _mm256_permute2f128_ps(even, odd, 0x20);
  *high = _mm256_permute2f128_ps(even, odd, 0x31);
}

#endif
