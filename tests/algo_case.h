/* A problem for an algorithm of the list: its data, and what is right. */
#ifndef PPH_TESTS_ALGO_CASE_H
#define PPH_TESTS_ALGO_CASE_H

#include "guarded.h"
#include "op/algo.h"

typedef struct algo_case {
  const char *problem; /* geometry/problem.h */
  bool input_channels_first, output_channels_first;
  bool bias, residual, slopes, clamp;
  uint32_t seed;
} algo_case;

/* The flags of a case, memory order too, as the seed decides. */
algo_case algo_any_case(const char *problem, uint32_t seed);

/* The most of everything, per axis; small values are drawn more often. */
typedef struct algo_bounds {
  uint32_t axes; /* 1 to 3 */
  bool transposed, ordinary;
  int64_t group; /* 0: 1; channels are those of one group */
  int64_t batch, in_channels, out_channels, input, kernel, stride, dilation;
  bool equal; /* as many output channels as input channels */
  bool channels_last;
} algo_bounds;
/* A random case; its problem is written to `text`. */
algo_case algo_random_case(uint32_t seed, const algo_bounds *bounds, char *text,
                           size_t size);

/* What the values are like: small integers, whose sums are exact; all of one
   size; normally distributed; so, but few pixels of the input (which must be
   channels last) are large, the others tiny or zero. */
typedef enum algo_values {
  ALGO_INTEGERS,
  ALGO_UNIFORM,
  ALGO_NORMAL,
  ALGO_SPIKES
} algo_values;

typedef struct algo_data {
  pph_conv_spec spec; /* accuracy EXACT, one thread */
  guarded input, weights, bias, slopes, residual;
  size_t outputs;
} algo_data;

void algo_data_make(const algo_case *test, algo_values values,
                    guarded_edge edge, algo_data *data);
void algo_data_drop(algo_data *data);

/* One output: in EXACT's order with fused multiply-adds; nearly without
   rounding; and what E counts in units of 2^-23. */
typedef struct algo_result {
  float exact;
  double value, magnitude;
} algo_result;

/* The definition, plain loops: data->outputs results in memory order. */
void algo_data_define(const algo_data *data, algo_result *results);

/* Makes each magnitude the largest among the outputs of the same image and
   channel less than inputs * stride (dilation, where ordinary) apart along
   height and width. */
void algo_data_widen(const algo_data *data, int64_t inputs,
                     algo_result *results);

#endif
