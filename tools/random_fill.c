#include "random_fill.h"

void random_fill(float *data, size_t count, float low, uint32_t seed) {
  const float step = (1 - low) / (1 << 24);
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = low + (float)(seed >> 8) * step;
  }
}
