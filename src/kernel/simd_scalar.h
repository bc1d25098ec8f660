/* Vectors of one lane in plain C, for any processor; see simd_avx512.h for the
   words. A multiply-add rounds twice where there is no fused one. */
#ifndef PPH_KERNEL_SIMD_SCALAR_H
#define PPH_KERNEL_SIMD_SCALAR_H

#include <stddef.h>
#include <stdint.h>

#define SIMD_NAME(stem) stem##__scalar
#define SIMD_CPU PPH_CPU_SCALAR
enum { LANES = 1 };
#define GEMM_ROWS 4
#define GEMM_VECTORS 4
/* The narrow kernel's: vector registers, rows of a tile. */
#define NARROW_REGISTERS 16
#define NARROW_ROWS 6

typedef float vec;

static inline vec vec_zero(void) { return 0; }
static inline vec vec_set1(float x) { return x; }
static inline vec vec_load(const float *p) { return *p; }
static inline void vec_store(float *p, vec v) { *p = v; }
static inline vec vec_load_part(const float *p, size_t n) {
  return n ? *p : 0;
}
static inline void vec_store_part(float *p, vec v, size_t n) {
  if (n)
    *p = v;
}
static inline vec vec_pick(const float *p, size_t span, const int32_t *index) {
  return p[*index];
}
static inline vec vec_pick2(const float *p, size_t span,
                            const int32_t *index) {
  return p[*index];
}
static inline vec vec_gather(const float *p, const int32_t *index) {
  return p[*index];
}
static inline void vec_stream(float *p, vec v) { *p = v; }
static inline void vec_stream_end(void) {}
static inline vec vec_fma(vec a, vec b, vec c) { return a * b + c; }
static inline vec vec_at_least(vec v, vec low) { return v < low ? low : v; }
static inline vec vec_at_most(vec v, vec high) {
  return v > high ? high : v;
}
static inline vec vec_where_negative(vec v, vec negative) {
  return v < 0 ? negative : v;
}

static inline void vec_turn(vec rows[LANES]) { (void)rows; }
static inline void vec_transpose4(const float *source, size_t source_step,
                                  float *target, size_t target_step) {
  for (size_t i = 0; i < 4; i++)
    target[i * target_step] = source[i];
}
static inline void vec_spread4(vec rows[4], float *target,
                               size_t target_step) {
  for (size_t i = 0; i < 4; i++)
    target[i] = rows[i];
}
static inline void vec_interleave(vec a, vec b, vec *low, vec *high) {
  *low = a;
  *high = b;
}

#endif
