#include "kernel/strided_copy.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/kernel_table.h"

static void swap_axes(pph_strided_copy *copy, int32_t a, int32_t b) {
  int64_t dim = copy->dims[a];
  int64_t source = copy->source_strides[a], target = copy->target_strides[a];
  copy->dims[a] = copy->dims[b];
  copy->source_strides[a] = copy->source_strides[b];
  copy->target_strides[a] = copy->target_strides[b];
  copy->dims[b] = dim;
  copy->source_strides[b] = source;
  copy->target_strides[b] = target;
}

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

static void drop_axis(pph_strided_copy *copy, int32_t axis) {
  for (int32_t i = axis; i + 1 < copy->rank; i++)
    swap_axes(copy, i, i + 1);
  copy->rank--;
}

void pph_strided_copy_simplify(pph_strided_copy *copy) {
  for (int32_t i = copy->rank - 1; i >= 0; i--)
    if (copy->dims[i] == 1)
      drop_axis(copy, i);
  /* Writing in memory order; an insertion sort, ranks are small. */
  for (int32_t i = 1; i < copy->rank; i++)
    for (int32_t j = i; j > 0 && magnitude(copy->target_strides[j - 1]) <
                                     magnitude(copy->target_strides[j]);
         j--)
      swap_axes(copy, j - 1, j);
  for (int32_t i = copy->rank - 2; i >= 0; i--) {
    bool joined = copy->source_strides[i] ==
                      copy->source_strides[i + 1] * copy->dims[i + 1] &&
                  copy->target_strides[i] ==
                      copy->target_strides[i + 1] * copy->dims[i + 1];
    if (!joined)
      continue;
    copy->dims[i + 1] *= copy->dims[i];
    drop_axis(copy, i);
  }
}

void pph_strided_copy_speed_up(pph_strided_copy *copy, pph_cpu cpu) {
  if (copy->element_size == sizeof(float))
    copy->transpose = (pph_transpose_kernel)pph_kernel_find(
                          "f32_transpose", pph_cpu_choose(cpu))
                          ->run;
}

/* The innermost axis, one element at a time, for a known element size. */
#define DEFINE_ROW(name, type)                                                 \
  static void name(char *target, int64_t target_stride, const char *source,    \
                   int64_t source_stride, int64_t count) {                     \
    type *to = (type *)(void *)target;                                         \
    const type *from = (const type *)(const void *)source;                     \
    if (target_stride == 1 && source_stride == 0) {                            \
      type value = *from;                                                      \
      for (int64_t i = 0; i < count; i++)                                      \
        to[i] = value;                                                         \
      return;                                                                  \
    }                                                                          \
    for (int64_t i = 0; i < count; i++)                                        \
      to[i * target_stride] = from[i * source_stride];                         \
  }
DEFINE_ROW(copy_row_8, uint8_t)
DEFINE_ROW(copy_row_16, uint16_t)
DEFINE_ROW(copy_row_32, uint32_t)
DEFINE_ROW(copy_row_64, uint64_t)

static void copy_row(const pph_strided_copy *copy, char *target,
                     const char *source) {
  int32_t axis = copy->rank - 1;
  int64_t count = copy->dims[axis];
  int64_t to = copy->target_strides[axis], from = copy->source_strides[axis];
  size_t size = copy->element_size;
  if (to == 1 && from == 1)
    memcpy(target, source, (size_t)count * size);
  else if (size == 4)
    copy_row_32(target, to, source, from, count);
  else if (size == 8)
    copy_row_64(target, to, source, from, count);
  else if (size == 2)
    copy_row_16(target, to, source, from, count);
  else
    copy_row_8(target, to, source, from, count);
}

/* The last two axes, rows of few bytes that lie dense in both views: a call of
   memcpy for each would take longer than the bytes. */
static void copy_lines(const pph_strided_copy *copy, char *target,
                       const char *source) {
  enum { STEP = 16 };
  int32_t axis = copy->rank - 1;
  size_t size = copy->element_size;
  size_t bytes = (size_t)copy->dims[axis] * size;
  int64_t to = copy->target_strides[axis - 1] * (int64_t)size;
  int64_t from = copy->source_strides[axis - 1] * (int64_t)size;
  for (int64_t row = 0; row < copy->dims[axis - 1]; row++) {
    for (size_t at = 0; at < bytes; at += STEP) { /* the last overlaps */
      size_t place = at + STEP <= bytes ? at : bytes - STEP;
      memcpy(target + place, source + place, STEP);
    }
    target += to;
    source += from;
  }
}

static bool has_lines(const pph_strided_copy *copy) {
  enum { LEAST = 16, MOST = 256 };
  int32_t axis = copy->rank - 1;
  size_t bytes = (size_t)copy->dims[axis] * copy->element_size;
  return axis > 0 && copy->target_strides[axis] == 1 &&
         copy->source_strides[axis] == 1 && bytes >= LEAST && bytes <= MOST;
}

/* A transpose: the last axis is dense in the target, `across` in the source. */
static void copy_turned(const pph_strided_copy *copy, char *target,
                        const char *source, int32_t across) {
  int32_t axis = copy->rank - 1;
  copy->transpose(&(pph_transpose_block){
      .rows = (size_t)copy->dims[axis],
      .columns = (size_t)copy->dims[across],
      .source = (const float *)(const void *)source,
      .source_step = (size_t)copy->source_strides[axis],
      .target = (float *)(void *)target,
      .target_step = (size_t)copy->target_strides[across]});
}

/* The axis that is dense in the source when the last one is dense in the target
   only; -1 when the copy is no transpose, or none that has a kernel. */
static int32_t find_across(const pph_strided_copy *copy) {
  int32_t last = copy->rank - 1;
  if (!copy->transpose || last < 1 || copy->target_strides[last] != 1 ||
      copy->source_strides[last] <= 1)
    return -1;
  for (int32_t i = 0; i < last; i++)
    if (copy->source_strides[i] == 1 && copy->target_strides[i] > 0)
      return i;
  return -1;
}

/* Odometer over the axes that no inner loop covers. */
static bool advance(const pph_strided_copy *copy, int64_t *index,
                    int32_t skip, int64_t *source, int64_t *target) {
  for (int32_t i = copy->rank - 2; i >= 0; i--) {
    if (i == skip)
      continue;
    *source += copy->source_strides[i];
    *target += copy->target_strides[i];
    if (++index[i] < copy->dims[i])
      return true;
    *source -= copy->source_strides[i] * copy->dims[i];
    *target -= copy->target_strides[i] * copy->dims[i];
    index[i] = 0;
  }
  return false;
}

void pph_strided_copy_run(const pph_strided_copy *whole, const void *source,
                          void *target, int64_t begin, int64_t end) {
  pph_strided_copy copy = *whole;
  size_t size = copy.element_size;
  if (copy.rank == 0) {
    memcpy((char *)target + (size_t)copy.target_offset * size,
           (const char *)source + copy.source_offset * (int64_t)size, size);
    return;
  }
  int64_t from = copy.source_offset + begin * copy.source_strides[0];
  int64_t to = copy.target_offset + begin * copy.target_strides[0];
  copy.dims[0] = end - begin;
  for (int32_t i = 0; i < copy.rank; i++)
    if (copy.dims[i] <= 0)
      return;
  int32_t across = find_across(&copy);
  bool lines = has_lines(&copy);
  if (lines)
    across = copy.rank - 2;
  int64_t index[PPH_COPY_MAX_RANK] = {0};
  do {
    char *to_bytes = (char *)target + to * (int64_t)size;
    const char *from_bytes = (const char *)source + from * (int64_t)size;
    if (lines)
      copy_lines(&copy, to_bytes, from_bytes);
    else if (across >= 0)
      copy_turned(&copy, to_bytes, from_bytes, across);
    else
      copy_row(&copy, to_bytes, from_bytes);
  } while (advance(&copy, index, across, &from, &to));
}

double pph_strided_copy_bytes(const pph_strided_copy *copy) {
  double bytes = (double)copy->element_size;
  for (int32_t i = 0; i < copy->rank; i++)
    bytes *= (double)copy->dims[i];
  return bytes;
}
