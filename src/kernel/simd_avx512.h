/* Vectors of AVX-512, in the words that kernel templates (*.inc) use. A simd_*
   header is included once by a kernel's file; the arithmetic operators of C
   work on `vec` as well. */
#ifndef PPH_KERNEL_SIMD_AVX512_H
#define PPH_KERNEL_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define SIMD_NAME(stem) stem##__avx512
#define SIMD_CPU PPH_CPU_AVX512
enum { LANES = 16 };
/* The GEMM kernel's register tile. */
#define GEMM_ROWS 14
#define GEMM_VECTORS 2

typedef __m512 vec;

static inline vec vec_zero(void) { return _mm512_setzero_ps(); }
static inline vec vec_set1(float x) { return _mm512_set1_ps(x); }
static inline vec vec_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vec_store(float *p, vec v) { _mm512_storeu_ps(p, v); }

/* The first n lanes, 0 <= n <= LANES; the others are 0 and not touched. */
static inline __mmask16 vec_mask(size_t n) {
  return (__mmask16)((1u << n) - 1);
}
static inline vec vec_load_part(const float *p, size_t n) {
  return _mm512_maskz_loadu_ps(vec_mask(n), p);
}
static inline void vec_store_part(float *p, vec v, size_t n) {
  _mm512_mask_storeu_ps(p, vec_mask(n), v);
}

/* Lane l is p[index[l]], 0 <= index[l] < span: for spans of at most LANES, of
   at most 2 * LANES, and any. Nothing from p + span on is touched. */
static inline vec vec_pick(const float *p, size_t span, const int32_t *index) {
  return _mm512_permutexvar_ps(_mm512_loadu_si512(index),
                               vec_load_part(p, span));
}
static inline vec vec_pick2(const float *p, size_t span,
                            const int32_t *index) {
  size_t low = span < LANES ? span : LANES;
  return _mm512_permutex2var_ps(vec_load_part(p, low),
                                _mm512_loadu_si512(index),
                                vec_load_part(p + low, span - low));
}
static inline vec vec_gather(const float *p, const int32_t *index) {
  return _mm512_i32gather_ps(_mm512_loadu_si512(index), p, 4);
}

/* Past the caches; p on a multiple of the vector's size. */
static inline void vec_stream(float *p, vec v) { _mm512_stream_ps(p, v); }
static inline void vec_stream_end(void) { _mm_sfence(); }

/* a * b + c with one rounding. */
static inline vec vec_fma(vec a, vec b, vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
/* v where it is not a number: v < low ? low : v, and v > high ? high : v. */
static inline vec vec_at_least(vec v, vec low) {
  return _mm512_max_ps(low, v);
}
static inline vec vec_at_most(vec v, vec high) {
  return _mm512_min_ps(high, v);
}
/* v < 0 ? negative : v, lane by lane. */
static inline vec vec_where_negative(vec v, vec negative) {
  return _mm512_mask_mov_ps(
      v, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ), negative);
}

#endif
