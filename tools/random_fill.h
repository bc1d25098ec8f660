/* Repeatable random data to measure with. */
#ifndef TOOLS_RANDOM_FILL_H
#define TOOLS_RANDOM_FILL_H

#include <stddef.h>
#include <stdint.h>

/* Values in [low, 1), `low` 0 or -1. */
void random_fill(float *data, size_t count, float low, uint32_t seed);

#endif
