#include "kernel_check.h"

#include <math.h>
#include <string.h>

float *kernel_data(kernel_check *check, int slot, size_t count) {
  assert_true(slot < KERNEL_SLOTS && count <= KERNEL_FLOATS);
  guarded *room = &check->slots[slot][check->edge];
  if (!room->pages)
    *room = guarded_make(KERNEL_FLOATS, check->edge);
  float *data = room->data;
  if (check->edge == GUARDED_END)
    data += KERNEL_FLOATS - count;
  for (size_t i = 0; i < count; i++)
    data[i] = (float)kernel_draw(check, -(1 << 20), 1 << 20) / (1 << 19);
  return data;
}

int64_t kernel_draw(kernel_check *check, int64_t low, int64_t high) {
  return test_random_range(&check->random, low, high);
}

float kernel_fma(const kernel_check *check, float a, float b, float c) {
  return check->kernel->cpu == PPH_CPU_SCALAR ? a * b + c : fmaf(a, b, c);
}

pph_epilogue kernel_epilogue(kernel_check *check, size_t columns,
                             size_t stored) {
  pph_epilogue epilogue = {.low = -INFINITY, .high = INFINITY};
  int64_t parts = kernel_draw(check, 0, 31);
  if (parts & 1)
    epilogue.bias = kernel_data(check, KERNEL_SLOTS - 1, columns);
  if (parts & 2)
    epilogue.slopes = kernel_data(check, KERNEL_SLOTS - 2, columns);
  if (parts & 4)
    epilogue.residual = kernel_data(check, KERNEL_SLOTS - 3, stored);
  if (parts & 8)
    epilogue.low = -1;
  if (parts & 16)
    epilogue.high = 1.5f;
  return epilogue;
}

float kernel_finish(const pph_epilogue *epilogue, float sum, size_t column,
                    size_t at) {
  if (epilogue->bias)
    sum += epilogue->bias[column];
  if (epilogue->residual)
    sum += epilogue->residual[at];
  if (epilogue->slopes && sum < 0)
    sum *= epilogue->slopes[column];
  return fminf(fmaxf(sum, epilogue->low), epilogue->high);
}

float *kernel_target(kernel_check *check, int slot, size_t count) {
  float *target = kernel_data(check, slot, count);
  memcpy(check->expected, target, count * sizeof *target);
  return target;
}

void kernel_compare(const kernel_check *check, const float *target,
                    size_t count, const char *what) {
  for (size_t i = 0; i < count; i++)
    if (!(target[i] == check->expected[i]))
      fail_msg("%s, %s, %s edge: element %zu is %.9g, not %.9g",
               check->kernel->name, what,
               check->edge == GUARDED_END ? "end" : "begin", i,
               (double)target[i], (double)check->expected[i]);
}
