/* Vectors of AArch64's NEON; see simd_avx512.h for the words. */
#ifndef PPH_KERNEL_SIMD_NEON_H
#define PPH_KERNEL_SIMD_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#define SIMD_NAME(stem) stem##__neon
#define SIMD_CPU PPH_CPU_NEON
enum { LANES = 4 };
#define GEMM_ROWS 6
#define GEMM_VECTORS 4
/* The narrow kernel's: vector registers, rows of a tile. */
#define NARROW_REGISTERS 32
#define NARROW_ROWS 14

typedef float32x4_t vec;

static inline vec vec_zero(void) { return vdupq_n_f32(0); }
static inline vec vec_set1(float x) { return vdupq_n_f32(x); }
static inline vec vec_load(const float *p) { return vld1q_f32(p); }
static inline void vec_store(float *p, vec v) { vst1q_f32(p, v); }

static inline vec vec_load_part(const float *p, size_t n) {
  float lanes[4] = {0};
  for (size_t i = 0; i < n; i++)
    lanes[i] = p[i];
  return vld1q_f32(lanes);
}
static inline void vec_store_part(float *p, vec v, size_t n) {
  float lanes[4];
  vst1q_f32(lanes, v);
  for (size_t i = 0; i < n; i++)
    p[i] = lanes[i];
}

static inline vec vec_gather(const float *p, const int32_t *index) {
  float lanes[4] = {p[index[0]], p[index[1]], p[index[2]], p[index[3]]};
  return vld1q_f32(lanes);
}
static inline vec vec_pick(const float *p, size_t span, const int32_t *index) {
  return vec_gather(p, index);
}
static inline vec vec_pick2(const float *p, size_t span,
                            const int32_t *index) {
  return vec_gather(p, index);
}

static inline void vec_stream(float *p, vec v) { vst1q_f32(p, v); }
static inline void vec_stream_end(void) {}

static inline vec vec_fma(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
/* By comparison: the instructions for minimum and maximum lose the sign of a
   zero, and a number beside a not-a-number. */
static inline vec vec_at_least(vec v, vec low) {
  return vbslq_f32(vcltq_f32(v, low), low, v);
}
static inline vec vec_at_most(vec v, vec high) {
  return vbslq_f32(vcgtq_f32(v, high), high, v);
}
static inline vec vec_where_negative(vec v, vec negative) {
  return vbslq_f32(vcltq_f32(v, vdupq_n_f32(0)), negative, v);
}

static inline void vec_turn4(vec rows[4]) {
  float32x4x2_t low = vtrnq_f32(rows[0], rows[1]);
  float32x4x2_t high = vtrnq_f32(rows[2], rows[3]);
  for (size_t j = 0; j < 2; j++) {
    rows[j] =
        vcombine_f32(vget_low_f32(low.val[j]), vget_low_f32(high.val[j]));
    rows[j + 2] =
        vcombine_f32(vget_high_f32(low.val[j]), vget_high_f32(high.val[j]));
  }
}
static inline void vec_turn(vec rows[LANES]) { vec_turn4(rows); }
static inline void vec_transpose4(const float *source, size_t source_step,
                                  float *target, size_t target_step) {
  vec rows[4];
  for (size_t i = 0; i < 4; i++)
    rows[i] = vec_load(source + i * source_step);
  vec_turn4(rows);
  for (size_t i = 0; i < 4; i++)
    vec_store(target + i * target_step, rows[i]);
}
static inline void vec_spread4(vec rows[4], float *target,
                               size_t target_step) {
  vec_turn4(rows);
  for (size_t i = 0; i < 4; i++)
    vec_store(target + i * target_step, rows[i]);
}
static inline void vec_interleave(vec a, vec b, vec *low, vec *high) {
  *low = vzip1q_f32(a, b);
  *high = vzip2q_f32(a, b);
}

#endif
