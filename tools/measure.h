/* Timing: samples, their least and median, and the machine's own figures. */
#ifndef TOOLS_MEASURE_H
#define TOOLS_MEASURE_H

#include <stddef.h>

#include "polyphase/operator.h"

/* Microseconds of a monotonic clock. */
double measure_now(void);

/* A growing set of times; zero-initialise. */
typedef struct measure_samples {
  double *values;
  size_t count, capacity;
} measure_samples;

/* Adds one; silently drops it when memory is out. */
void measure_add(measure_samples *samples, double microseconds);
double measure_least(const measure_samples *samples);
double measure_median(measure_samples *samples); /* sorts */
void measure_clear(measure_samples *samples);

/* The f32 multiply-add peak of one core in GFLOP/s, measured for about
   `milliseconds` with independent multiply-adds of the widest vectors that the
   processor has. */
double measure_peak_gflops(double milliseconds);

/* The same with the vectors of that level (scalar: NEON too). */
double measure_level_gflops(pph_cpu cpu, double milliseconds);

/* The same over whole spans of about `us` microseconds each, the best of
   `spans`: what something that takes as long can be compared with, since a
   clock that moves and neighbours on the machine slow both down. */
double measure_sustained_gflops(pph_cpu cpu, double us, unsigned spans);

/* Least microseconds of a memcpy of `bytes`; 0 when memory is out. */
double measure_memcpy(size_t bytes);

#endif
