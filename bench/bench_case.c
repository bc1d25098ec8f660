/* A problem's data, and its result by the definition in double precision. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "contest.h"

/* Uniform in [-1, 1): splitmix64, whose sequences of different seeds are
   independent (a sum of products shows it when they are not). */
static void fill_random(float *data, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    uint64_t z = (seed << 40) + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    data[i] = (float)(z >> 40) * (2.0f / (1 << 24)) - 1.0f;
  }
}

void bench_transpose(const float *from, float *to, size_t n, size_t rows,
                     size_t columns) {
  for (size_t i = 0; i < n; i++, from += rows * columns, to += rows * columns)
    for (size_t c = 0; c < columns; c++)
      for (size_t r = 0; r < rows; r++)
        to[c * rows + r] = from[r * columns + c];
}

/* One group of the problem. The small side (the input of a transposed one, the
   output of an ordinary one) and the large side are tied by
   large = small * stride + tap * dilation - pad. */
typedef struct judge {
  const pph_problem *problem;
  size_t ci, co; /* of the group */
  size_t first_in, first_out;
  const float *input;   /* channels last */
  double *weights;      /* [tap][ci][co] */
  double *sums, *sizes; /* channels last */
} judge;

static void arrange_weights(const judge *j, const float *weights) {
  const pph_axis *axes = j->problem->axes;
  size_t taps = (size_t)(axes[PPH_HEIGHT].kernel * axes[PPH_WIDTH].kernel);
  for (size_t i = 0; i < j->ci; i++)
    for (size_t o = 0; o < j->co; o++)
      for (size_t tap = 0; tap < taps; tap++) {
        size_t at = j->problem->transposed ? (j->first_in + i) * j->co + o
                                           : (j->first_out + o) * j->ci + i;
        j->weights[(tap * j->ci + i) * j->co + o] = weights[at * taps + tap];
      }
}

static void add_products(const judge *j, size_t in, size_t out, size_t tap) {
  const pph_problem *p = j->problem;
  const float *x = j->input + in * (size_t)p->in_channels + j->first_in;
  size_t at = out * (size_t)p->out_channels + j->first_out;
  double *restrict sums = j->sums + at, *restrict sizes = j->sizes + at;
  const double *w = j->weights + tap * j->ci * j->co;
  for (size_t i = 0; i < j->ci; i++, w += j->co)
    for (size_t o = 0; o < j->co; o++) {
      double product = (double)x[i] * w[o];
      sums[o] += product;
      sizes[o] += fabs(product);
    }
}

static void judge_tap(const judge *j, int64_t ky, int64_t kx) {
  const pph_axis *y = &j->problem->axes[PPH_HEIGHT];
  const pph_axis *x = &j->problem->axes[PPH_WIDTH];
  bool transposed = j->problem->transposed;
  int64_t small_h = transposed ? y->input : y->output;
  int64_t small_w = transposed ? x->input : x->output;
  int64_t large_h = transposed ? y->output : y->input;
  int64_t large_w = transposed ? x->output : x->input;
  for (int64_t row = 0; row < j->problem->batch * small_h; row++) {
    int64_t image = row / small_h;
    int64_t ly = row % small_h * y->stride + ky * y->dilation - y->pad_begin;
    if (ly < 0 || ly >= large_h)
      continue;
    for (int64_t sx = 0; sx < small_w; sx++) {
      int64_t lx = sx * x->stride + kx * x->dilation - x->pad_begin;
      if (lx < 0 || lx >= large_w)
        continue;
      size_t small = (size_t)(row * small_w + sx);
      size_t large = (size_t)((image * large_h + ly) * large_w + lx);
      add_products(j, transposed ? small : large, transposed ? large : small,
                   (size_t)(ky * x->kernel + kx));
    }
  }
}

static bool judge_case(bench_case *one) {
  const pph_problem *p = &one->problem;
  size_t groups = (size_t)p->group;
  judge j = {.problem = p,
             .ci = (size_t)p->in_channels / groups,
             .co = (size_t)p->out_channels / groups,
             .sums = one->expected,
             .sizes = one->magnitude};
  float *input = malloc(one->input_count * sizeof(float));
  j.weights = malloc(one->weight_count / groups * sizeof(double));
  bool ok = input && j.weights;
  if (ok)
    bench_transpose(one->input, input, (size_t)p->batch, (size_t)p->in_channels,
                    one->input_count / (size_t)(p->batch * p->in_channels));
  j.input = input;
  for (size_t group = 0; ok && group < groups; group++) {
    j.first_in = group * j.ci;
    j.first_out = group * j.co;
    arrange_weights(&j, one->weights);
    for (int64_t ky = 0; ky < p->axes[PPH_HEIGHT].kernel; ky++)
      for (int64_t kx = 0; kx < p->axes[PPH_WIDTH].kernel; kx++)
        judge_tap(&j, ky, kx);
  }
  free(input);
  free(j.weights);
  for (size_t i = 0; ok && i < one->output_count; i++) {
    double bias = one->bias[i % (size_t)p->out_channels];
    one->expected[i] += bias;
    one->magnitude[i] += fabs(bias);
  }
  return ok;
}

double bench_case_error(const bench_case *one, const float *output) {
  size_t channels = (size_t)one->problem.out_channels;
  size_t pixels = one->output_count / channels / (size_t)one->problem.batch;
  double worst = 0;
  for (size_t i = 0; i < one->output_count; i++) {
    size_t image = i / (channels * pixels), rest = i % (channels * pixels);
    size_t at = (image * pixels + rest % pixels) * channels + rest / pixels;
    double error = fabs((double)output[i] - one->expected[at]);
    double e = error == 0 ? 0 : error / (one->magnitude[at] * 0x1p-23);
    if (!(e <= worst)) /* a NaN counts as infinitely wrong */
      worst = e >= 0 ? e : INFINITY;
  }
  return worst;
}

static bool fill_case(bench_case *one) {
  const pph_problem *p = &one->problem;
  const pph_axis *y = &p->axes[PPH_HEIGHT], *x = &p->axes[PPH_WIDTH];
  size_t channels = (size_t)p->out_channels;
  one->input_count = (size_t)(p->batch * p->in_channels * y->input * x->input);
  one->weight_count = (size_t)(p->in_channels * p->out_channels / p->group *
                               y->kernel * x->kernel);
  one->output_count =
      (size_t)(p->batch * p->out_channels * y->output * x->output);
  one->input = calloc(one->input_count, sizeof(float));
  one->weights = calloc(one->weight_count, sizeof(float));
  one->bias = calloc(channels, sizeof(float));
  one->expected = calloc(one->output_count, sizeof(double));
  one->magnitude = calloc(one->output_count, sizeof(double));
  if (!one->input || !one->weights || !one->bias || !one->expected ||
      !one->magnitude)
    return false;
  fill_random(one->input, one->input_count, 1);
  fill_random(one->weights, one->weight_count, 2);
  fill_random(one->bias, channels, 3);
  return judge_case(one);
}

bench_case *bench_case_create(const char *descriptor, char *message) {
  pph_error error = {0};
  bench_case *one = calloc(1, sizeof *one);
  if (!one) {
    snprintf(message, BENCH_TEXT, "out of memory");
    return NULL;
  }
  if (pph_problem_parse(descriptor, &one->problem, &error) != PPH_OK)
    snprintf(message, BENCH_TEXT, "%s", error.message);
  else if (one->problem.axes[PPH_DEPTH].kernel != 1 ||
           one->problem.axes[PPH_DEPTH].input != 1)
    snprintf(message, BENCH_TEXT, "two dimensions only");
  else if (!fill_case(one))
    snprintf(message, BENCH_TEXT, "out of memory");
  else
    return one;
  bench_case_destroy(one);
  return NULL;
}

void bench_case_destroy(bench_case *one) {
  if (!one)
    return;
  free(one->input);
  free(one->weights);
  free(one->bias);
  free(one->expected);
  free(one->magnitude);
  free(one);
}
