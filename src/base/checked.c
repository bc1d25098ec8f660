#include "base/checked.h"

#include <stdio.h>

bool pph_checked_round_up(size_t value, size_t step, size_t *result) {
  size_t raised;
  if (!pph_checked_add(value, step - 1, &raised))
    return false;
  *result = raised & ~(step - 1);
  return true;
}

bool pph_shape_count(const pph_shape *shape, size_t *count) {
  size_t total = 1;
  bool empty = false;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (shape->dims[i] < 0)
      return false;
    if (shape->dims[i] == 0) {
      empty = true;
      continue;
    }
    if (!pph_checked_mul(total, (size_t)shape->dims[i], &total))
      return false;
  }
  *count = empty ? 0 : total;
  return true;
}

bool pph_shape_bytes(const pph_shape *shape, pph_dtype type, size_t *bytes) {
  size_t count;
  if (!pph_shape_count(shape, &count))
    return false;
  return pph_checked_mul(count, pph_dtype_size(type), bytes);
}

bool pph_shape_fits(const pph_shape *shape, pph_dtype type, uint64_t limit) {
  pph_shape full = *shape;
  size_t bytes;
  for (int32_t i = 0; i < full.rank; i++)
    if (full.dims[i] == 0)
      full.dims[i] = 1;
  return pph_shape_bytes(&full, type, &bytes) && bytes <= limit &&
         bytes <= PTRDIFF_MAX;
}

bool pph_shape_equal(const pph_shape *a, const pph_shape *b) {
  if (a->rank != b->rank)
    return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i])
      return false;
  return true;
}

bool pph_shape_known(const pph_shape *shape) {
  for (int32_t i = 0; i < shape->rank; i++)
    if (shape->dims[i] < 0)
      return false;
  return true;
}

const char *pph_shape_text(const pph_shape *shape, char *text, size_t size) {
  size_t at = 0;
  text[0] = 0;
  for (int32_t i = 0; i < shape->rank && at < size; i++) {
    const char *separator = i ? "," : "[";
    int n = shape->dims[i] == -1
                ? snprintf(text + at, size - at, "%s?", separator)
                : snprintf(text + at, size - at, "%s%lld", separator,
                           (long long)shape->dims[i]);
    at += (size_t)n;
  }
  if (at < size)
    snprintf(text + at, size - at, "%s", shape->rank ? "]" : "[]");
  return text;
}

const char *pph_dtype_text(pph_dtype type, char *text, size_t size) {
  if (pph_dtype_size(type))
    return pph_dtype_name(type);
  snprintf(text, size, "%d (of no pph_dtype)", (int)type);
  return text;
}
