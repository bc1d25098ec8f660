#include "conv_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

pph_status conv_case_make(bool up, const pph_conv_desc *desc,
                          const float *weights, const float *bias, any_op *op,
                          pph_error *error) {
  *op = (any_op){0};
  return up ? pph_conv_transpose_create(desc, weights, bias, &op->up, error)
            : pph_conv_create(desc, weights, bias, &op->plain, error);
}

pph_status conv_case_reshape(const any_op *op, int64_t batch,
                             const int64_t *input, int64_t *output,
                             size_t *bytes, pph_error *error) {
  return op->up
             ? pph_conv_transpose_reshape(op->up, batch, input, output, bytes,
                                          error)
             : pph_conv_reshape(op->plain, batch, input, output, bytes, error);
}

pph_status conv_case_run(const any_op *op, const pph_conv_tensors *tensors,
                         pph_error *error) {
  return op->up ? pph_conv_transpose_run(op->up, tensors, error)
                : pph_conv_run(op->plain, tensors, error);
}

pph_operator_info conv_case_explain(const any_op *op) {
  return op->up ? pph_conv_transpose_explain(op->up)
                : pph_conv_explain(op->plain);
}

void conv_case_destroy(any_op *op) {
  pph_conv_transpose_destroy(op->up);
  pph_conv_destroy(op->plain);
  *op = (any_op){0};
}

static float *draw(test_random *random, size_t count) {
  float *values = malloc((count + 1) * sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; i < count; i++)
    values[i] = (float)test_random_range(random, -1000000, 1000000) / 500000;
  return values;
}

static void set_lengths(conv_case *c) {
  const pph_conv_desc *d = &c->desc;
  c->inputs = (size_t)(c->batch * d->in_channels);
  c->outputs = (size_t)(c->batch * d->out_channels);
  c->weight_count = (size_t)(d->in_channels * d->out_channels / d->group);
  for (uint32_t i = 0; i < d->axes; i++) {
    int64_t span = (d->kernel[i] - 1) * d->dilation[i] + 1;
    int64_t pads = d->pad_begin[i] + d->pad_end[i];
    c->output[i] = c->up ? (c->input[i] - 1) * d->stride[i] +
                               d->output_padding[i] + span - pads
                         : (c->input[i] + pads - span) / d->stride[i] + 1;
    assert_true(c->output[i] > 0);
    c->inputs *= (size_t)c->input[i];
    c->outputs *= (size_t)c->output[i];
    c->weight_count *= (size_t)d->kernel[i];
  }
}

void conv_case_fill(conv_case *c, uint64_t seed) {
  test_random random = {seed};
  size_t outs = (size_t)c->desc.out_channels;
  set_lengths(c);
  c->w = draw(&random, c->weight_count); /* first: the same for all shapes */
  c->b = draw(&random, outs);
  c->slopes = draw(&random, outs);
  c->x = draw(&random, c->inputs);
  c->r = draw(&random, c->outputs);
  if (c->desc.activation == PPH_ACTIVATION_PRELU)
    c->desc.slopes = c->slopes;
}

void conv_case_drop(conv_case *c) {
  free(c->x);
  free(c->w);
  free(c->b);
  free(c->r);
  free(c->slopes);
}

/* kernel 4, stride 2, pad 1 up; kernel 3, pad 1 plain */
conv_case conv_case_plain(bool up, int64_t ins, int64_t outs) {
  conv_case c = {.up = up, .batch = 1, .input = {7, 9, 1}};
  pph_conv_desc_init(&c.desc);
  c.desc.in_channels = ins;
  c.desc.out_channels = outs;
  for (int i = 0; i < 2; i++) {
    c.desc.kernel[i] = up ? 4 : 3;
    c.desc.stride[i] = up ? 2 : 1;
    c.desc.pad_begin[i] = c.desc.pad_end[i] = 1;
  }
  return c;
}

void *conv_case_workspace(size_t bytes) {
  void *workspace = bytes ? aligned_alloc(64, bytes) : NULL;
  assert_true(workspace || !bytes);
  return workspace;
}

/* Runs a reshaped operator. */
void conv_case_run_with(const any_op *op, const conv_case *c, size_t bytes,
                        pph_thread_pool *pool, float *output) {
  pph_error error = {0};
  void *workspace = conv_case_workspace(bytes);
  pph_conv_tensors tensors = {.input = c->x,
                              .residual = c->desc.residual ? c->r : NULL,
                              .output = output,
                              .workspace = workspace,
                              .pool = pool};
  test_assert_ok(conv_case_run(op, &tensors, &error), &error);
  free(workspace);
}

/* create, reshape, run, destroy; the result is the caller's. */
float *conv_case_compute(const conv_case *c, pph_thread_pool *pool) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  float *result = malloc(c->outputs * sizeof *result);
  assert_non_null(result);
  test_assert_ok(conv_case_make(c->up, &c->desc, c->w, c->b, &op, &error),
                 &error);
  test_assert_ok(
      conv_case_reshape(&op, c->batch, c->input, output, &bytes, &error),
      &error);
  for (uint32_t i = 0; i < c->desc.axes; i++)
    assert_int_equal(output[i], c->output[i]);
  assert_int_equal(bytes, conv_case_explain(&op).workspace_bytes);
  conv_case_run_with(&op, c, bytes, pool, result);
  conv_case_destroy(&op);
  return result;
}

bool conv_case_same(const float *a, const float *b, size_t count) {
  return memcmp(a, b, count * sizeof *a) == 0;
}

/* The definition */

/* Index of (image, place, channel) in a tensor with these lengths. */
static size_t index_of(const conv_case *c, bool first, const int64_t *lengths,
                       int64_t channels, int64_t n, const int64_t *place,
                       int64_t channel) {
  int64_t at = first ? n * channels + channel : n;
  for (uint32_t i = 0; i < c->desc.axes; i++)
    at = at * lengths[i] + place[i];
  return (size_t)(first ? at : at * channels + channel);
}

/* All products of one pair of pixels: `small` = where the stride counts from,
   the input of a transposed convolution, and `tap`. */
static void scatter_pixel(const conv_case *c, int64_t n, const int64_t *small,
                          const int64_t *tap, double *sums, double *sizes) {
  const pph_conv_desc *d = &c->desc;
  const int64_t *lengths = c->up ? c->output : c->input;
  int64_t large[3], ins = d->in_channels / d->group;
  int64_t outs = d->out_channels / d->group;
  for (uint32_t i = 0; i < d->axes; i++) {
    large[i] =
        small[i] * d->stride[i] + tap[i] * d->dilation[i] - d->pad_begin[i];
    if (large[i] < 0 || large[i] >= lengths[i])
      return;
  }
  for (int64_t in = 0; in < d->in_channels; in++)
    for (int64_t k = 0; k < outs; k++) {
      int64_t out = in / ins * outs + k;
      int64_t w = c->up ? in * outs + k : out * ins + in % ins;
      for (uint32_t i = 0; i < d->axes; i++)
        w = w * d->kernel[i] + tap[i];
      size_t x = index_of(c, d->input_channels_first, c->input, d->in_channels,
                          n, c->up ? small : large, in);
      size_t y = index_of(c, d->output_channels_first, c->output,
                          d->out_channels, n, c->up ? large : small, out);
      double term = (double)c->x[x] * (double)c->w[w];
      sums[y] += term;
      sizes[y] += fabs(term);
    }
}

/* Steps `place` through a box; false after the last. */
static bool step(int64_t *place, const int64_t *lengths, uint32_t axes) {
  for (uint32_t i = axes; i-- > 0;) {
    if (++place[i] < lengths[i])
      return true;
    place[i] = 0;
  }
  return false;
}

static void scatter(const conv_case *c, double *sums, double *sizes) {
  uint32_t axes = c->desc.axes;
  for (int64_t n = 0; n < c->batch; n++) {
    int64_t small[3] = {0};
    do {
      int64_t tap[3] = {0};
      do
        scatter_pixel(c, n, small, tap, sums, sizes);
      while (step(tap, c->desc.kernel, axes));
    } while (step(small, c->up ? c->input : c->output, axes));
  }
}

static double finish(const conv_case *c, size_t i, double sum) {
  const pph_conv_desc *d = &c->desc;
  size_t outs = (size_t)d->out_channels, plane = c->outputs / outs;
  plane /= (size_t)c->batch;
  size_t out = d->output_channels_first ? i / plane % outs : i % outs;
  sum += (double)c->b[out] + (d->residual ? (double)c->r[i] : 0);
  if (d->activation == PPH_ACTIVATION_CLAMP)
    return fmin(fmax(sum, (double)d->low), (double)d->high);
  if (d->activation == PPH_ACTIVATION_PRELU && sum < 0)
    return sum * (double)c->slopes[out];
  if (d->activation == PPH_ACTIVATION_LEAKY_RELU && sum < 0)
    return sum * (double)d->slope;
  return sum;
}

/* Slopes are at most 2 in size; bias and residual, too, count as terms. */
void conv_case_check(const conv_case *c, const float *result) {
  double *sums = calloc(2 * c->outputs, sizeof *sums);
  assert_non_null(sums);
  double *sizes = sums + c->outputs;
  scatter(c, sums, sizes);
  for (size_t i = 0; i < c->outputs; i++) {
    double right = finish(c, i, sums[i]);
    double most = 2 * 24 * (sizes[i] + 4) / (1 << 23);
    if (!(fabs((double)result[i] - right) <= most))
      fail_msg("%s, element %zu is %.9g, should be %.9g",
               c->up ? "transposed" : "ordinary", i, (double)result[i], right);
  }
  free(sums);
}
