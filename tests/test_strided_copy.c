/* Copies between strided views beside a walk over their elements. */
#include <stdlib.h>
#include <string.h>

#include "kernel/strided_copy.h"
#include "test_support.h"

enum { MOST = 1 << 16, GUARD = 64 };

static uint32_t state = 7;
static int64_t draw(int64_t low, int64_t high) {
  state = state * 1664525u + 1013904223u;
  return low + (int64_t)(state >> 8) % (high - low + 1);
}

/* Strides of dense axes in the order `order`, outermost first, with some gap
   after each axis. */
static int64_t lay(int32_t rank, const int64_t *dims, const int32_t *order,
                   bool gaps, int64_t *strides) {
  int64_t size = 1;
  for (int32_t i = rank - 1; i >= 0; i--) {
    strides[order[i]] = size;
    size *= dims[order[i]];
    size += gaps ? draw(0, 2) : 0;
  }
  return size;
}

static void shuffle(int32_t rank, int32_t *order) {
  for (int32_t i = 0; i < rank; i++)
    order[i] = i;
  for (int32_t i = rank - 1; i > 0; i--) {
    int32_t other = (int32_t)draw(0, i), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
}

static void walk(const pph_strided_copy *copy, int32_t axis, int64_t from,
                 int64_t to, const unsigned char *source,
                 unsigned char *target) {
  size_t size = copy->element_size;
  if (axis == copy->rank) {
    memcpy(target + (size_t)to * size, source + (size_t)from * size, size);
    return;
  }
  for (int64_t i = 0; i < copy->dims[axis]; i++)
    walk(copy, axis + 1, from + i * copy->source_strides[axis],
         to + i * copy->target_strides[axis], source, target);
}

/* A random copy, in two parts as two threads would do it. */
static void check_one(unsigned char *source, unsigned char *target,
                      unsigned char *expected) {
  static const size_t sizes[] = {1, 2, 4, 4, 4, 8};
  pph_strided_copy copy = {.rank = (int32_t)draw(0, 4),
                           .element_size = sizes[draw(0, 5)]};
  int32_t order[PPH_COPY_MAX_RANK];
  for (int32_t i = 0; i < copy.rank; i++)
    copy.dims[i] = draw(0, 3) ? draw(1, 9) : draw(16, 40);
  shuffle(copy.rank, order);
  int64_t needed =
      lay(copy.rank, copy.dims, order, draw(0, 1), copy.source_strides);
  shuffle(copy.rank, order);
  int64_t stored =
      lay(copy.rank, copy.dims, order, draw(0, 1), copy.target_strides);
  if (needed > MOST || stored > MOST)
    return;
  for (int32_t i = 0; i < copy.rank; i++) {
    if (draw(0, 9) == 0) { /* repeated */
      copy.source_strides[i] = 0;
    } else if (draw(0, 9) == 0) { /* backwards */
      copy.source_offset += copy.source_strides[i] * (copy.dims[i] - 1);
      copy.source_strides[i] *= -1;
    }
  }
  size_t bytes = (size_t)stored * copy.element_size + GUARD;
  memset(target, 0xa5, bytes);
  memset(expected, 0xa5, bytes);
  walk(&copy, 0, copy.source_offset, 0, source, expected);
  pph_strided_copy_simplify(&copy);
  pph_strided_copy_speed_up(&copy, draw(0, 1) ? PPH_CPU_BEST : PPH_CPU_SCALAR);
  int64_t rows = copy.rank ? copy.dims[0] : 1;
  int64_t middle = copy.rank ? draw(0, rows) : 0;
  if (copy.rank)
    pph_strided_copy_run(&copy, source, target, 0, middle);
  pph_strided_copy_run(&copy, source, target, middle, rows);
  assert_memory_equal(target, expected, bytes);
}

static void test_copies(void **unused) {
  (void)unused;
  unsigned char *source = malloc(8 * MOST), *target = malloc(8 * MOST + GUARD);
  unsigned char *expected = malloc(8 * MOST + GUARD);
  assert_true(source && target && expected);
  for (size_t i = 0; i < 8 * MOST; i++)
    source[i] = (unsigned char)draw(0, 255);
  for (int i = 0; i < 20000; i++)
    check_one(source, target, expected);
  free(source);
  free(target);
  free(expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
