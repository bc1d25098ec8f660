/* conv_transpose.h and conv.h as a caller sees them: what they refuse, what
   they compute, and that it does not depend on threads, levels or history. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "polyphase/polyphase.h"
#include "test_support.h"

/* Either kind of operator. */
typedef struct any_op {
  pph_conv_transpose *up;
  pph_conv *plain;
} any_op;

static pph_status make(bool up, const pph_conv_desc *desc, const float *weights,
                       const float *bias, any_op *op, pph_error *error) {
  *op = (any_op){0};
  return up ? pph_conv_transpose_create(desc, weights, bias, &op->up, error)
            : pph_conv_create(desc, weights, bias, &op->plain, error);
}

static pph_status reshape(const any_op *op, int64_t batch, const int64_t *input,
                          int64_t *output, size_t *bytes, pph_error *error) {
  return op->up
             ? pph_conv_transpose_reshape(op->up, batch, input, output, bytes,
                                          error)
             : pph_conv_reshape(op->plain, batch, input, output, bytes, error);
}

static pph_status run(const any_op *op, const pph_conv_tensors *tensors,
                      pph_error *error) {
  return op->up ? pph_conv_transpose_run(op->up, tensors, error)
                : pph_conv_run(op->plain, tensors, error);
}

static pph_operator_info explain(const any_op *op) {
  return op->up ? pph_conv_transpose_explain(op->up)
                : pph_conv_explain(op->plain);
}

static void destroy(any_op *op) {
  pph_conv_transpose_destroy(op->up);
  pph_conv_destroy(op->plain);
  *op = (any_op){0};
}

/* A problem and its data. */
typedef struct conv_case {
  bool up;
  pph_conv_desc desc;
  int64_t batch, input[3], output[3];
  size_t inputs, outputs, weight_count;
  float *x, *w, *b, *r, *slopes;
} conv_case;

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

static void fill_data(conv_case *c, uint64_t seed) {
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

static void drop_data(conv_case *c) {
  free(c->x);
  free(c->w);
  free(c->b);
  free(c->r);
  free(c->slopes);
}

/* kernel 4, stride 2, pad 1 up; kernel 3, pad 1 plain */
static conv_case plain_case(bool up, int64_t ins, int64_t outs) {
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

static void *take_workspace(size_t bytes) {
  void *workspace = bytes ? aligned_alloc(64, bytes) : NULL;
  assert_true(workspace || !bytes);
  return workspace;
}

/* Runs a reshaped operator. */
static void run_with(const any_op *op, const conv_case *c, size_t bytes,
                     pph_thread_pool *pool, float *output) {
  pph_error error = {0};
  void *workspace = take_workspace(bytes);
  pph_conv_tensors tensors = {.input = c->x,
                              .residual = c->desc.residual ? c->r : NULL,
                              .output = output,
                              .workspace = workspace,
                              .pool = pool};
  test_assert_ok(run(op, &tensors, &error), &error);
  free(workspace);
}

/* create, reshape, run, destroy; the result is the caller's. */
static float *compute(const conv_case *c, pph_thread_pool *pool) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  float *result = malloc(c->outputs * sizeof *result);
  assert_non_null(result);
  test_assert_ok(make(c->up, &c->desc, c->w, c->b, &op, &error), &error);
  test_assert_ok(reshape(&op, c->batch, c->input, output, &bytes, &error),
                 &error);
  for (uint32_t i = 0; i < c->desc.axes; i++)
    assert_int_equal(output[i], c->output[i]);
  assert_int_equal(bytes, explain(&op).workspace_bytes);
  run_with(&op, c, bytes, pool, result);
  destroy(&op);
  return result;
}

static bool same_bits(const float *a, const float *b, size_t count) {
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
static void check_definition(const conv_case *c, const float *result) {
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

static void draw_case(test_random *random, conv_case *c) {
  pph_conv_desc *d = &c->desc;
  *c = (conv_case){.up = test_random_range(random, 0, 1),
                   .batch = test_random_range(random, 1, 2)};
  pph_conv_desc_init(d);
  d->axes = (uint32_t)test_random_range(random, 1, 3);
  d->group = test_random_range(random, 0, 3) ? 1 : 3;
  d->in_channels = d->group * test_random_range(random, 1, 20);
  d->out_channels = d->group * test_random_range(random, 1, 20);
  for (uint32_t i = 0; i < d->axes; i++) {
    d->kernel[i] = test_random_range(random, 1, 5);
    d->stride[i] = test_random_range(random, 1, 3);
    d->dilation[i] = test_random_range(random, 1, 2);
    d->pad_begin[i] = test_random_range(random, 0, d->kernel[i] / 2);
    d->pad_end[i] = test_random_range(random, 0, d->kernel[i] / 2);
    d->output_padding[i] =
        c->up ? test_random_range(random, 0, d->stride[i] - 1) : 0;
    c->input[i] = test_random_range(random, 9, d->axes == 3 ? 9 : 14);
  }
  d->input_channels_first = test_random_range(random, 0, 1);
  d->output_channels_first = test_random_range(random, 0, 1);
  d->residual = test_random_range(random, 0, 1);
  d->activation = (pph_activation)test_random_range(random, 0, 3);
  d->low = -1;
  d->high = 3;
  fill_data(c, test_random_next(random));
}

static void test_definition(void **state) {
  test_random random = {test_seed("definition")};
  for (int i = 0; i < 150; i++) {
    conv_case c;
    draw_case(&random, &c);
    float *result = compute(&c, NULL);
    check_definition(&c, result);
    free(result);
    drop_data(&c);
  }
}

/* Refusals */

/* What is wrong: one change of a good desc, and what comes of it. */
typedef struct refusal {
  void (*spoil)(pph_conv_desc *desc);
  pph_status status;
  const char *message; /* a part of it */
} refusal;

#define SPOIL(name, statement)                                                 \
  static void name(pph_conv_desc *d) { statement; }
SPOIL(spoil_size, d->struct_size = 8)
SPOIL(spoil_no_axes, d->axes = 0)
SPOIL(spoil_axes, d->axes = 4)
SPOIL(spoil_type, d->type = PPH_I64)
SPOIL(spoil_group, d->group = 0)
SPOIL(spoil_in, d->group = 4; d->in_channels = 6)
SPOIL(spoil_out, d->group = 4; d->out_channels = 6)
SPOIL(spoil_no_in, d->in_channels = 0)
SPOIL(spoil_no_out, d->out_channels = -1)
SPOIL(spoil_kernel, d->kernel[1] = 0)
SPOIL(spoil_stride, d->stride[0] = 0)
SPOIL(spoil_dilation, d->dilation[1] = 0)
SPOIL(spoil_begin, d->pad_begin[0] = -1)
SPOIL(spoil_end, d->pad_end[1] = -1)
SPOIL(spoil_op, d->output_padding[1] = 2)
SPOIL(spoil_op_sign, d->output_padding[1] = -1)
SPOIL(spoil_prelu, d->activation = PPH_ACTIVATION_PRELU)
SPOIL(spoil_activation, d->activation = (pph_activation)4)
SPOIL(spoil_clamp, d->activation = PPH_ACTIVATION_CLAMP; d->low = 2;
      d->high = 1)
SPOIL(spoil_nan, d->activation = PPH_ACTIVATION_CLAMP; d->low = NAN)
SPOIL(spoil_no_threads, d->threads = 0)
SPOIL(spoil_threads, d->threads = 257)
SPOIL(spoil_accuracy, d->accuracy = (pph_accuracy)3)
SPOIL(spoil_cpu, d->cpu = (pph_cpu)5)
SPOIL(spoil_weights, d->in_channels = d->out_channels = INT32_MAX)

static void test_refusals(void **state) {
  static const refusal all[] = {
      {spoil_size, PPH_INVALID_ARGUMENT, "struct_size"},
      {spoil_no_axes, PPH_INVALID_ARGUMENT, "axes"},
      {spoil_axes, PPH_INVALID_ARGUMENT, "axes"},
      {spoil_type, PPH_UNSUPPORTED, "type"},
      {spoil_group, PPH_INVALID_ARGUMENT, "group"},
      {spoil_in, PPH_INVALID_ARGUMENT, "in_channels"},
      {spoil_out, PPH_INVALID_ARGUMENT, "out_channels"},
      {spoil_no_in, PPH_INVALID_ARGUMENT, "in_channels"},
      {spoil_no_out, PPH_INVALID_ARGUMENT, "out_channels"},
      {spoil_kernel, PPH_INVALID_ARGUMENT, "kernel"},
      {spoil_stride, PPH_INVALID_ARGUMENT, "stride"},
      {spoil_dilation, PPH_INVALID_ARGUMENT, "dilation"},
      {spoil_begin, PPH_INVALID_ARGUMENT, "pad_begin"},
      {spoil_end, PPH_INVALID_ARGUMENT, "pad_end"},
      {spoil_op, PPH_INVALID_ARGUMENT, "output_padding"},
      {spoil_op_sign, PPH_INVALID_ARGUMENT, "output_padding"},
      {spoil_prelu, PPH_INVALID_ARGUMENT, "slopes"},
      {spoil_activation, PPH_INVALID_ARGUMENT, "activation"},
      {spoil_clamp, PPH_INVALID_ARGUMENT, "low"},
      {spoil_nan, PPH_INVALID_ARGUMENT, "low"},
      {spoil_no_threads, PPH_INVALID_ARGUMENT, "threads"},
      {spoil_threads, PPH_INVALID_ARGUMENT, "threads"},
      {spoil_accuracy, PPH_INVALID_ARGUMENT, "accuracy"},
      {spoil_cpu, PPH_INVALID_ARGUMENT, "cpu"},
      {spoil_weights, PPH_LIMIT_EXCEEDED, "weights"}};
  static const float weights[64 * 16];
  for (int up = 0; up < 2; up++)
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
      conv_case c = plain_case(up, 8, 8);
      any_op op;
      pph_error error = {0};
      all[i].spoil(&c.desc);
      assert_int_equal(make(up, &c.desc, weights, NULL, &op, &error),
                       all[i].status);
      assert_true(!op.up && !op.plain);
      if (!strstr(error.message, all[i].message))
        fail_msg("\"%s\" does not say %s", error.message, all[i].message);
    }
}

static void test_null(void **state) {
  for (int up = 0; up < 2; up++) {
    conv_case c = plain_case(up, 8, 8);
    any_op op;
    pph_error error = {0};
    assert_int_equal(make(up, &c.desc, NULL, NULL, &op, &error),
                     PPH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "weights"));
    assert_int_equal(make(up, NULL, NULL, NULL, &op, NULL),
                     PPH_INVALID_ARGUMENT);
    assert_true(!op.up && !op.plain);
    destroy(&op);
  }
  /* An ordinary convolution has no output padding at all. */
  conv_case c = plain_case(false, 1, 1);
  pph_conv *op;
  float weights[9] = {0};
  c.desc.stride[0] = 2;
  c.desc.output_padding[0] = 1;
  assert_int_equal(pph_conv_create(&c.desc, weights, NULL, &op, NULL),
                   PPH_INVALID_ARGUMENT);
}

/* A desc whose size is wrong may end before its pointers. */
static void test_short_desc(void **state) {
  size_t *size = malloc(sizeof *size);
  assert_non_null(size);
  *size = sizeof *size;
  const pph_conv_desc *desc = (const pph_conv_desc *)(const void *)size;
  pph_conv_transpose *op;
  assert_int_equal(pph_conv_transpose_create(desc, NULL, NULL, &op, NULL),
                   PPH_INVALID_ARGUMENT);
  assert_null(op);
  free(size);
}

static void check_reshape(conv_case *c, pph_status status, const char *part) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  float *weights = calloc(64 * 16, sizeof *weights), y;
  test_assert_ok(make(c->up, &c->desc, weights, NULL, &op, &error), &error);
  free(weights);
  assert_int_equal(reshape(&op, c->batch, c->input, output, &bytes, &error),
                   status);
  if (!strstr(error.message, part))
    fail_msg("\"%s\" does not say %s", error.message, part);
  assert_int_equal(bytes, 0);
  pph_conv_tensors tensors = {.input = &y, .output = &y};
  assert_int_equal(run(&op, &tensors, NULL), PPH_INVALID_ARGUMENT);
  assert_null(explain(&op).algorithm);
  destroy(&op);
}

static void test_reshape_refusals(void **state) {
  for (int up = 0; up < 2; up++) {
    conv_case c = plain_case(up, 8, 8);
    c.desc.algorithm = "magic";
    check_reshape(&c, PPH_INVALID_ARGUMENT, "unknown");
    c.desc.algorithm = "depthwise";
    check_reshape(&c, PPH_INVALID_ARGUMENT, "does not support");
    c.desc.algorithm = "filtered";
    c.desc.accuracy = PPH_ACCURACY_EXACT;
    check_reshape(&c, PPH_INVALID_ARGUMENT, "does not support");
    c.desc.algorithm = "gather";
    c.desc.weight_bytes = 100;
    check_reshape(&c, PPH_LIMIT_EXCEEDED, "weight_bytes is 100");
    c = plain_case(up, 8, 8);
    c.input[1] = 0;
    check_reshape(&c, PPH_INVALID_ARGUMENT, "at least 1");
    c = plain_case(up, 8, 8);
    c.batch = 0;
    check_reshape(&c, PPH_INVALID_ARGUMENT, "at least 1");
    c = plain_case(up, 8, 8);
    c.input[0] = 1;
    c.desc.pad_begin[0] = c.desc.pad_end[0] = up ? 2 : 0;
    check_reshape(&c, PPH_INVALID_ARGUMENT, up ? "output" : "kernel");
    c = plain_case(up, 8, 8);
    c.input[0] = c.input[1] = INT32_MAX;
    check_reshape(&c, PPH_LIMIT_EXCEEDED, "bytes");
  }
}

/* Life of an operator */

static void test_reshapes(void **state) {
  static const int64_t shapes[][3] = {{1, 7, 9}, {2, 3, 40}, {1, 1, 1},
                                      {1, 7, 9}, {1, 60, 2}, {2, 3, 40}};
  for (int up = 0; up < 2; up++) {
    conv_case c = plain_case(up, 32, 24);
    any_op op = {0};
    pph_error error = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      int64_t output[3];
      size_t bytes, again;
      c.batch = shapes[i][0];
      memcpy(c.input, shapes[i] + 1, 2 * sizeof *c.input);
      fill_data(&c, 5);
      if (!op.up && !op.plain)
        test_assert_ok(make(up, &c.desc, c.w, c.b, &op, &error), &error);
      test_assert_ok(reshape(&op, c.batch, c.input, output, &bytes, &error),
                     &error);
      test_assert_ok(reshape(&op, c.batch, c.input, output, &again, &error),
                     &error);
      assert_int_equal(bytes, again);
      float *result = malloc(c.outputs * sizeof *result);
      run_with(&op, &c, bytes, NULL, result);
      check_definition(&c, result);
      free(result);
      drop_data(&c);
    }
    destroy(&op);
  }
}

static void test_run_refusals(void **state) {
  for (int up = 0; up < 2; up++) {
    conv_case c = plain_case(up, 32, 24);
    any_op op;
    pph_error error = {0};
    int64_t output[3];
    size_t bytes;
    c.desc.residual = true;
    c.desc.algorithm = "gather";
    fill_data(&c, 1);
    float *y = malloc(c.outputs * sizeof *y);
    test_assert_ok(make(up, &c.desc, c.w, c.b, &op, &error), &error);
    assert_null(explain(&op).algorithm);
    assert_true(explain(&op).done_flops == 0);
    pph_conv_tensors good = {.input = c.x, .residual = c.r, .output = y};
    assert_int_equal(run(&op, &good, &error), PPH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "reshape"));
    test_assert_ok(reshape(&op, 1, c.input, output, &bytes, &error), &error);
    assert_true(bytes > 0);
    assert_int_equal(run(&op, &good, NULL), PPH_INVALID_ARGUMENT);
    char *workspace = take_workspace(bytes + 64);
    good.workspace = workspace + 4;
    assert_int_equal(run(&op, &good, &error), PPH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "aligned"));
    good.workspace = workspace;
    pph_conv_tensors bad[3] = {good, good, good};
    bad[0].input = bad[1].residual = NULL;
    bad[2].output = NULL;
    for (int i = 0; i < 3; i++)
      assert_int_equal(run(&op, &bad[i], NULL), PPH_INVALID_ARGUMENT);
    test_assert_ok(run(&op, &good, &error), &error);
    check_definition(&c, y);
    free(workspace);
    free(y);
    destroy(&op);
    drop_data(&c);
  }
}

static void test_explain(void **state) {
  conv_case c = plain_case(true, 32, 24);
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  c.desc.algorithm = "gather";
  c.desc.threads = 3;
  fill_data(&c, 1);
  test_assert_ok(make(true, &c.desc, c.w, c.b, &op, &error), &error);
  test_assert_ok(reshape(&op, 1, c.input, output, &bytes, &error), &error);
  pph_operator_info info = explain(&op);
  assert_string_equal(info.algorithm, "gather");
  assert_int_equal(strncmp(info.kernel, "pph_f32_gemm", 12), 0);
  assert_true(info.error_bound > 0 && info.error_bound <= 4);
  assert_true(info.useful_flops == 2.0 * 7 * 9 * 16 * 32 * 24);
  assert_true(info.done_flops > 0.5 * info.useful_flops);
  assert_true(info.moved_bytes ==
              4.0 * (double)(c.inputs + c.outputs + c.weight_count));
  assert_true(info.estimated_us > 0);
  assert_true(info.packed_bytes >= 4 * c.weight_count);
  assert_int_equal(info.workspace_bytes, bytes);
  assert_int_equal(bytes % (3 * 64), 0);
  destroy(&op);
  drop_data(&c);
  assert_null(pph_conv_explain(NULL).algorithm);
  assert_null(pph_conv_transpose_explain(NULL).algorithm);
}

/* Everything that create reads may go afterwards. */
static void test_copies(void **state) {
  for (int up = 0; up < 2; up++) {
    conv_case c = plain_case(up, 32, 24);
    any_op op;
    pph_error error = {0};
    int64_t output[3];
    size_t bytes;
    c.desc.activation = PPH_ACTIVATION_PRELU;
    fill_data(&c, 1);
    float *y = malloc(c.outputs * sizeof *y);
    size_t outs = (size_t)c.desc.out_channels;
    pph_conv_desc *desc = malloc(sizeof *desc);
    pph_limits *limits = malloc(sizeof *limits);
    char *name = strdup("gather");
    float *w = malloc(c.weight_count * sizeof *w);
    float *b = malloc(outs * sizeof *b), *slopes = malloc(outs * sizeof *b);
    memcpy(w, c.w, c.weight_count * sizeof *w);
    memcpy(b, c.b, outs * sizeof *b);
    memcpy(slopes, c.slopes, outs * sizeof *b);
    pph_limits_init(limits);
    *desc = c.desc;
    desc->limits = limits;
    desc->algorithm = name;
    desc->slopes = slopes;
    test_assert_ok(make(up, desc, w, b, &op, &error), &error);
    memset(limits, 0, sizeof *limits);
    memset(name, 'x', strlen(name));
    void *gone[] = {w, b, slopes, name, limits, desc};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
      free(gone[i]);
    test_assert_ok(reshape(&op, 1, c.input, output, &bytes, &error), &error);
    run_with(&op, &c, bytes, NULL, y);
    check_definition(&c, y);
    free(y);
    destroy(&op);
    drop_data(&c);
  }
}

/* Threads and levels */

enum { RUNNERS = 4, ROUNDS = 20 };

typedef struct runner {
  const any_op *op;
  const conv_case *c;
  size_t bytes;
  float *output;
  const float *expected;
  bool same;
} runner;

/* No cmocka in here: its failures must come from the test's own thread. */
static void *run_rounds(void *argument) {
  runner *r = argument;
  void *workspace = r->bytes ? aligned_alloc(64, r->bytes) : NULL;
  pph_conv_tensors tensors = {
      .input = r->c->x, .output = r->output, .workspace = workspace};
  r->same = workspace || !r->bytes;
  for (int i = 0; i < ROUNDS && r->same; i++) {
    memset(r->output, 0xff, r->c->outputs * sizeof(float));
    r->same = run(r->op, &tensors, NULL) == PPH_OK &&
              same_bits(r->output, r->expected, r->c->outputs);
  }
  free(workspace);
  return NULL;
}

static void check_runners(const conv_case *c) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  pthread_t threads[RUNNERS];
  runner runners[RUNNERS];
  float *expected = compute(c, NULL);
  test_assert_ok(make(c->up, &c->desc, c->w, c->b, &op, &error), &error);
  test_assert_ok(reshape(&op, c->batch, c->input, output, &bytes, &error),
                 &error);
  for (int i = 0; i < RUNNERS; i++) {
    runners[i] = (runner){.op = &op,
                          .c = c,
                          .bytes = bytes,
                          .output = malloc(c->outputs * sizeof(float)),
                          .expected = expected};
    assert_non_null(runners[i].output);
    assert_int_equal(pthread_create(&threads[i], NULL, run_rounds, &runners[i]),
                     0);
  }
  for (int i = 0; i < RUNNERS; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < RUNNERS; i++) {
    assert_true(runners[i].same);
    free(runners[i].output);
  }
  free(expected);
  destroy(&op);
}

/* Cases that different algorithms are chosen for. */
static conv_case varied_case(int i) {
  conv_case c = plain_case(i & 1, i & 2 ? 64 : 24, i & 4 ? 3 : 48);
  if (i == 6 || i == 7)
    c.desc.group = c.desc.in_channels = c.desc.out_channels = 24;
  fill_data(&c, (uint64_t)i);
  return c;
}

static void test_shared_operator(void **state) {
  for (int i = 0; i < 8; i++) {
    conv_case c = varied_case(i);
    check_runners(&c);
    drop_data(&c);
  }
}

/* The name of the algorithm that is chosen; static. */
static const char *find_algorithm(const conv_case *c) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  test_assert_ok(make(c->up, &c->desc, c->w, c->b, &op, &error), &error);
  test_assert_ok(reshape(&op, c->batch, c->input, output, &bytes, &error),
                 &error);
  const char *name = explain(&op).algorithm;
  destroy(&op);
  return name;
}

/* The choice itself may depend on desc.threads; what EXACT gives may not. */
static void test_pools(void **state) {
  pph_thread_pool *pools[3];
  for (uint32_t i = 0; i < 3; i++)
    assert_int_equal(pph_thread_pool_create(i + 1, &pools[i], NULL), PPH_OK);
  for (int i = 0; i < 24; i++) {
    conv_case c = varied_case(i % 8);
    c.desc.accuracy = (pph_accuracy)(i / 8);
    float *expected = compute(&c, NULL);
    check_definition(&c, expected);
    if (c.desc.accuracy != PPH_ACCURACY_EXACT)
      c.desc.algorithm = find_algorithm(&c);
    for (int p = 0; p < 9; p++) {
      c.desc.threads = (uint32_t)(p / 3 + 1); /* fewer or more than the pool */
      float *result = compute(&c, pools[p % 3]);
      for (size_t k = 0; k < c.outputs; k++)
        if (memcmp(&expected[k], &result[k], sizeof(float)) != 0)
          fail_msg("case %d, element %zu is %.9g alone, %.9g on %d threads "
                   "of %u",
                   i, k, (double)expected[k], (double)result[k], p % 3 + 1,
                   c.desc.threads);
      free(result);
    }
    free(expected);
    drop_data(&c);
  }
  for (int i = 0; i < 3; i++)
    pph_thread_pool_destroy(pools[i]);
}

/* A level that is not there falls to a lower one: scalar has no fused
   multiply-add in hardware, so only AVX2 and above promise the same bits. */
static void test_exact_levels(void **state) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    skip();
  static const char *const names[] = {NULL, "gather", "reference"};
  for (int i = 0; i < 8; i++) {
    conv_case c = varied_case(i);
    c.desc.accuracy = PPH_ACCURACY_EXACT;
    c.desc.cpu = PPH_CPU_AVX2;
    float *expected = compute(&c, NULL);
    for (int k = 0; k < 6; k++) {
      c.desc.cpu = k % 2 ? PPH_CPU_AVX512 : PPH_CPU_AVX2;
      c.desc.algorithm = names[k / 2];
      float *result = compute(&c, NULL);
      if (!same_bits(expected, result, c.outputs))
        fail_msg("case %d differs in way %d", i, k);
      free(result);
    }
    free(expected);
    drop_data(&c);
  }
}

/* Allocation n fails */

typedef struct failing {
  size_t count, fail_at, open;
} failing;

static void *allocate(void *context, size_t alignment, size_t size) {
  failing *state = context;
  void *block = NULL;
  if (++state->count == state->fail_at ||
      posix_memalign(&block, alignment, size) != 0)
    return NULL;
  state->open++;
  return block;
}

static void release(void *context, void *block) {
  failing *state = context;
  state->open--;
  free(block);
}

/* After a failure the same reshape, with memory, succeeds. */
static pph_status try_all(const conv_case *c, failing *state, float *y) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  pph_status status = make(c->up, &c->desc, c->w, c->b, &op, &error);
  if (status != PPH_OK) {
    assert_true(!op.up && !op.plain);
    return status;
  }
  status = reshape(&op, c->batch, c->input, output, &bytes, &error);
  if (status != PPH_OK) {
    assert_int_equal(bytes, 0);
    assert_null(explain(&op).algorithm);
    test_assert_ok(reshape(&op, c->batch, c->input, output, &bytes, &error),
                   &error);
  }
  size_t before = state->count;
  run_with(&op, c, bytes, NULL, y);
  assert_int_equal(state->count, before);
  check_definition(c, y);
  destroy(&op);
  return status;
}

static void fail_each(conv_case *c) {
  float *y = malloc(c->outputs * sizeof *y);
  for (size_t n = 1;; n++) {
    failing state = {.fail_at = n};
    pph_allocator allocator = {&state, allocate, release};
    c->desc.allocator = &allocator;
    pph_status status = try_all(c, &state, y);
    assert_int_equal(state.open, 0);
    if (state.count < n) {
      assert_int_equal(status, PPH_OK);
      break;
    }
    if (status != PPH_OUT_OF_MEMORY)
      fail_msg("allocation %zu failed, and the status is %s", n,
               pph_status_name(status));
  }
  free(y);
}

static void test_allocation(void **state) {
  static const char *const names[] = {NULL, "gather", "narrow", "scatter",
                                      "reference"};
  for (int i = 0; i < 8; i++)
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      conv_case c = varied_case(i);
      c.desc.algorithm = names[k];
      if (k >= 2 && k <= 3 && (i != 5 || !c.up)) { /* narrow ones */
        drop_data(&c);
        continue;
      }
      c.desc.activation = PPH_ACTIVATION_PRELU;
      c.desc.slopes = c.slopes;
      fail_each(&c);
      drop_data(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_definition),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_null),
                                     cmocka_unit_test(test_short_desc),
                                     cmocka_unit_test(test_reshape_refusals),
                                     cmocka_unit_test(test_reshapes),
                                     cmocka_unit_test(test_run_refusals),
                                     cmocka_unit_test(test_explain),
                                     cmocka_unit_test(test_copies),
                                     cmocka_unit_test(test_shared_operator),
                                     cmocka_unit_test(test_pools),
                                     cmocka_unit_test(test_exact_levels),
                                     cmocka_unit_test(test_allocation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
