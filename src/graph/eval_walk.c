/* Walking over strided tensors row by row. */
#include <string.h>

#include "graph/eval_rules.h"

void pph_walk_init(pph_walk *walk, const pph_shape *shape, uint32_t operands) {
  *walk = (pph_walk){.rank = shape->rank, .operands = operands};
  memcpy(walk->dims, shape->dims, (size_t)shape->rank * sizeof *walk->dims);
}

void pph_walk_broadcast(pph_walk *walk, uint32_t operand,
                        const pph_shape *shape) {
  int64_t strides[PPH_MAX_RANK];
  int32_t missing = walk->rank - shape->rank;
  pph_eval_strides(shape, strides);
  for (int32_t i = 0; i < shape->rank; i++)
    if (i + missing >= 0)
      walk->strides[operand][i + missing] =
          shape->dims[i] == 1 ? 0 : strides[i];
}

/* Axis `outer` can be counted on by going on along axis `inner`. */
static bool joins(const pph_walk *walk, int32_t outer, int32_t inner) {
  for (uint32_t k = 0; k < walk->operands; k++)
    if (walk->strides[k][outer] != walk->strides[k][inner] * walk->dims[inner])
      return false;
  return true;
}

static void keep_axis(pph_walk *walk, int32_t to, int32_t from) {
  walk->dims[to] = walk->dims[from];
  for (uint32_t k = 0; k < walk->operands; k++)
    walk->strides[k][to] = walk->strides[k][from];
}

void pph_walk_join(pph_walk *walk) {
  int32_t kept = 0;
  for (int32_t i = 0; i < walk->rank; i++) {
    if (walk->dims[i] == 0) { /* nothing to walk over */
      walk->rank = 1;
      walk->dims[0] = 0;
      return;
    }
    if (walk->dims[i] == 1)
      continue;
    if (kept > 0 && joins(walk, kept - 1, i)) {
      int64_t length = walk->dims[kept - 1];
      keep_axis(walk, kept - 1, i);
      walk->dims[kept - 1] *= length;
    } else {
      keep_axis(walk, kept++, i);
    }
  }
  walk->rank = kept;
}

static bool start(pph_walk *walk) {
  walk->started = true;
  int32_t last = walk->rank - 1;
  walk->length = last >= 0 ? walk->dims[last] : 1;
  for (uint32_t k = 0; k < walk->operands; k++)
    walk->step[k] = last >= 0 ? walk->strides[k][last] : 0;
  for (int32_t i = 0; i < walk->rank; i++)
    if (walk->dims[i] == 0)
      return false;
  return true;
}

bool pph_walk_next(pph_walk *walk) {
  if (!walk->started)
    return start(walk);
  for (int32_t i = walk->rank - 2; i >= 0; i--) {
    for (uint32_t k = 0; k < walk->operands; k++)
      walk->offset[k] += walk->strides[k][i];
    if (++walk->index[i] < walk->dims[i])
      return true;
    for (uint32_t k = 0; k < walk->operands; k++)
      walk->offset[k] -= walk->strides[k][i] * walk->dims[i];
    walk->index[i] = 0;
  }
  return false;
}

#define COPY_ROW(type)                                                         \
  do {                                                                         \
    const type *from = (const type *)source + walk->offset[0];                 \
    type *to = (type *)target + walk->offset[1];                               \
    for (int64_t i = 0; i < walk->length; i++)                                 \
      to[i * walk->step[1]] = from[i * walk->step[0]];                         \
  } while (0)

static void copy_row(const pph_walk *walk, size_t size, const void *source,
                     void *target) {
  if (walk->step[0] == 1 && walk->step[1] == 1)
    memcpy((char *)target + walk->offset[1] * (int64_t)size,
           (const char *)source + walk->offset[0] * (int64_t)size,
           (size_t)walk->length * size);
  else if (size == 1)
    COPY_ROW(uint8_t);
  else if (size == 2)
    COPY_ROW(uint16_t);
  else if (size == 4)
    COPY_ROW(uint32_t);
  else
    COPY_ROW(uint64_t);
}

void pph_walk_copy(pph_walk *walk, size_t element_size, const void *source,
                   void *target) {
  pph_walk_join(walk);
  while (pph_walk_next(walk))
    copy_row(walk, element_size, source, target);
}

/* Where the row of the walk's index begins in the source; -1: all is fill. */
static int64_t find_row(const pph_walk *walk, const int64_t *strides,
                        const int64_t *const *tables) {
  int64_t at = 0;
  for (int32_t i = 0; i < walk->rank - 1; i++) {
    int64_t index = tables[i][walk->index[i]];
    if (index < 0)
      return -1;
    at += index * strides[i];
  }
  return at;
}

void pph_walk_gather(const pph_tensor *source, const pph_tensor *target,
                     const int64_t *const *tables, const void *fill) {
  size_t size = pph_dtype_size(source->type);
  int32_t rank = target->shape.rank;
  int64_t strides[PPH_MAX_RANK];
  pph_walk walk;
  pph_walk_init(&walk, &target->shape, 0);
  pph_eval_strides(&source->shape, strides);
  const char *from = source->data;
  char *to = target->data;
  while (pph_walk_next(&walk)) {
    int64_t row = find_row(&walk, strides, tables);
    for (int64_t i = 0; i < walk.length; i++, to += size) {
      int64_t last = rank > 0 ? tables[rank - 1][i] : 0;
      bool inside = row >= 0 && last >= 0;
      const void *element = inside ? from + (row + last) * (int64_t)size : fill;
      memcpy(to, element, size);
    }
  }
}

/* Four rows at a time: a sum is read and written once for four products. */
void pph_product_add(const pph_product *product, double *restrict sums) {
  int64_t step = product->factor_step, width = product->width;
  int64_t t = 0;
  for (; t + 4 <= product->count; t += 4) {
    const float *w = product->factors + t * step;
    const double w0 = w[0], w1 = w[step], w2 = w[2 * step], w3 = w[3 * step];
    const double *a = product->rows + t * product->row_step;
    const double *b = a + product->row_step, *c = b + product->row_step;
    const double *d = c + product->row_step;
    for (int64_t x = 0; x < width; x++)
      sums[x] += w0 * a[x] + w1 * b[x] + w2 * c[x] + w3 * d[x];
  }
  for (; t < product->count; t++) {
    const double w = product->factors[t * step];
    const double *row = product->rows + t * product->row_step;
    for (int64_t x = 0; x < width; x++)
      sums[x] += w * row[x];
  }
}
