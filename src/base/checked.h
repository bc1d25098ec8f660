/* Arithmetic on sizes that reports overflow instead of wrapping. */
#ifndef PPH_BASE_CHECKED_H
#define PPH_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "polyphase/tensor.h"

/* Each returns true and writes *result, or returns false on overflow. */
static inline bool pph_checked_add(size_t a, size_t b, size_t *result) {
  return !__builtin_add_overflow(a, b, result);
}
static inline bool pph_checked_mul(size_t a, size_t b, size_t *result) {
  return !__builtin_mul_overflow(a, b, result);
}
static inline bool pph_checked_add_i64(int64_t a, int64_t b, int64_t *result) {
  return !__builtin_add_overflow(a, b, result);
}
static inline bool pph_checked_sub_i64(int64_t a, int64_t b, int64_t *result) {
  return !__builtin_sub_overflow(a, b, result);
}
static inline bool pph_checked_mul_i64(int64_t a, int64_t b, int64_t *result) {
  return !__builtin_mul_overflow(a, b, result);
}

/* Rounds up to a multiple of `step`, a power of two; false on overflow. */
bool pph_checked_round_up(size_t value, size_t step, size_t *result);

/* Product of all dimensions (1 for a scalar). False when a dimension is
   negative or the product does not fit. */
bool pph_shape_count(const pph_shape *shape, size_t *count);

/* pph_shape_count times the element size. */
bool pph_shape_bytes(const pph_shape *shape, pph_dtype type, size_t *bytes);

/* Whether a tensor takes at most `limit` bytes. Dimensions of 0 count as 1: an
   empty tensor has strides, and loops over its other dimensions. */
bool pph_shape_fits(const pph_shape *shape, pph_dtype type, uint64_t limit);

/* Same rank and dimensions. */
bool pph_shape_equal(const pph_shape *a, const pph_shape *b);

/* No dimension is -1. */
bool pph_shape_known(const pph_shape *shape);

/* Prints "[1,3,224,224]" ("?" for -1, unknown) into `text`; returns `text`. */
const char *pph_shape_text(const pph_shape *shape, char *text, size_t size);

/* "f32", or "77 (of no pph_dtype)" in `text`. */
const char *pph_dtype_text(pph_dtype type, char *text, size_t size);

/* Floor and ceiling of a / b for b > 0, right for negative a too. */
static inline int64_t pph_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}
static inline int64_t pph_ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b > 0);
}
/* a modulo b in [0, b) for b > 0. */
static inline int64_t pph_floor_mod(int64_t a, int64_t b) {
  int64_t m = a % b;
  return m < 0 ? m + b : m;
}
static inline int64_t pph_min_i64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t pph_max_i64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* a / b, rounded up; b at least 1, the sum no overflow. */
static inline size_t pph_divide_up(size_t a, size_t b) {
  return (a + b - 1) / b;
}

/* `a` rounded up to a multiple of `step`, which is any number above 0. */
static inline size_t pph_round_up(size_t a, size_t step) {
  return pph_divide_up(a, step) * step;
}

#endif
