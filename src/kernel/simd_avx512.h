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
/* The narrow kernel's: vector registers, rows of a tile. */
#define NARROW_REGISTERS 32
#define NARROW_ROWS 14

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

/* Transposes each square of 4 x 4 that four vectors have in common. */
static inline void vec_turn4(vec rows[4]) {
  __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(rows[0], rows[1]));
  __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(rows[0], rows[1]));
  __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(rows[2], rows[3]));
  __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(rows[2], rows[3]));
  rows[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
  rows[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
  rows[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
  rows[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
}

/* The whole square of LANES vectors: squares of 4 x 4, then these squares. */
static inline void vec_turn(vec rows[LANES]) {
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++)
    vec_turn4(rows + 4 * i);
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++) {
    vec low01 = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0x44);
    vec high01 = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0xee);
    vec low23 = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0x44);
    vec high23 = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0xee);
    rows[i] = _mm512_shuffle_f32x4(low01, low23, 0x88);
    rows[i + 4] = _mm512_shuffle_f32x4(low01, low23, 0xdd);
    rows[i + 8] = _mm512_shuffle_f32x4(high01, high23, 0x88);
    rows[i + 12] = _mm512_shuffle_f32x4(high01, high23, 0xdd);
  }
}

/* LANES rows of 4 columns: target[j * target_step + i] =
   source[i * source_step + j]. Loads gather rows i, i + 4, i + 8, i + 12. */
static inline void vec_transpose4(const float *source, size_t source_step,
                                  float *target, size_t target_step) {
  vec rows[4];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++) {
    const float *from = source + i * source_step;
    vec row = _mm512_castps128_ps512(_mm_loadu_ps(from));
    from += 4 * source_step;
    row = _mm512_mask_broadcast_f32x4(row, 0x00f0, _mm_loadu_ps(from));
    from += 4 * source_step;
    row = _mm512_mask_broadcast_f32x4(row, 0x0f00, _mm_loadu_ps(from));
    from += 4 * source_step;
    rows[i] = _mm512_mask_broadcast_f32x4(row, 0xf000, _mm_loadu_ps(from));
  }
  vec_turn4(rows);
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; i++)
    vec_store(target + i * target_step, rows[i]);
}

/* The way back: lane i of the four rows goes to target[i * target_step + j], in
   the order of i. */
static inline void vec_spread4(vec rows[4], float *target,
                               size_t target_step) {
  vec_turn4(rows);
#define SPREAD(i)                                                              \
  _mm_storeu_ps(target + (i) * target_step,                                    \
                _mm512_extractf32x4_ps(rows[(i) % 4], (i) / 4));
  SPREAD(0) SPREAD(1) SPREAD(2) SPREAD(3)
  SPREAD(4) SPREAD(5) SPREAD(6) SPREAD(7)
  SPREAD(8) SPREAD(9) SPREAD(10) SPREAD(11)
  SPREAD(12) SPREAD(13) SPREAD(14) SPREAD(15)
#undef SPREAD
}

/* a0 b0 a1 b1 ... */
static inline void vec_interleave(vec a, vec b, vec *low, vec *high) {
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                          21, 6, 22, 7, 23);
  const __m512i next = _mm512_add_epi32(first, _mm512_set1_epi32(8));
  *low = _mm512_permutex2var_ps(a, first, b);
  *high = _mm512_permutex2var_ps(a, next, b);
}

#endif
