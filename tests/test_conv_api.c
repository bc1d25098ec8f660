/* conv_transpose.h and conv.h as a caller sees them: what they refuse, what
   they compute, and that it does not depend on threads, levels or history. */
#include <math.h>
#include <pthread.h>
#include <pthreadpool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "conv_case.h"
#include "op/algo.h"

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
  conv_case_fill(c, test_random_next(random));
}

static void test_definition(void **state) {
  test_random random = {test_seed("definition")};
  for (int i = 0; i < 150; i++) {
    conv_case c;
    draw_case(&random, &c);
    float *result = conv_case_compute(&c, NULL);
    conv_case_check(&c, result);
    free(result);
    conv_case_drop(&c);
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
SPOIL(spoil_slope, d->activation = PPH_ACTIVATION_LEAKY_RELU; d->slope = NAN)
SPOIL(spoil_algorithm, d->algorithm = "magic")
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
      {spoil_kernel, PPH_INVALID_ARGUMENT, "kernel[1] is 0"},
      {spoil_stride, PPH_INVALID_ARGUMENT, "stride[0] is 0"},
      {spoil_dilation, PPH_INVALID_ARGUMENT, "dilation[1]"},
      {spoil_begin, PPH_INVALID_ARGUMENT, "pad_begin[0]"},
      {spoil_end, PPH_INVALID_ARGUMENT, "pad_end[1]"},
      {spoil_op, PPH_INVALID_ARGUMENT, "output_padding[1]"},
      {spoil_op_sign, PPH_INVALID_ARGUMENT, "output_padding"},
      {spoil_prelu, PPH_INVALID_ARGUMENT, "slopes"},
      {spoil_activation, PPH_INVALID_ARGUMENT, "activation"},
      {spoil_clamp, PPH_INVALID_ARGUMENT, "low"},
      {spoil_nan, PPH_INVALID_ARGUMENT, "low"},
      {spoil_no_threads, PPH_INVALID_ARGUMENT, "threads"},
      {spoil_threads, PPH_INVALID_ARGUMENT, "threads"},
      {spoil_slope, PPH_INVALID_ARGUMENT, "slope"},
      {spoil_algorithm, PPH_INVALID_ARGUMENT,
       "\"magic\", must be NULL or one of "},
      {spoil_algorithm, PPH_INVALID_ARGUMENT, ", reference"},
      {spoil_accuracy, PPH_INVALID_ARGUMENT, "accuracy"},
      {spoil_cpu, PPH_INVALID_ARGUMENT, "cpu"},
      {spoil_weights, PPH_LIMIT_EXCEEDED, "weights"}};
  static const float weights[64 * 16];
  for (int up = 0; up < 2; up++)
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
      conv_case c = conv_case_plain(up, 8, 8);
      any_op op;
      pph_error error = {0};
      all[i].spoil(&c.desc);
      assert_int_equal(conv_case_make(up, &c.desc, weights, NULL, &op, &error),
                       all[i].status);
      assert_true(!op.up && !op.plain);
      if (!strstr(error.message, all[i].message))
        fail_msg("\"%s\" does not say %s", error.message, all[i].message);
    }
}

static void test_null(void **state) {
  for (int up = 0; up < 2; up++) {
    conv_case c = conv_case_plain(up, 8, 8);
    any_op op;
    pph_error error = {0};
    assert_int_equal(conv_case_make(up, &c.desc, NULL, NULL, &op, &error),
                     PPH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "weights"));
    assert_int_equal(conv_case_make(up, NULL, NULL, NULL, &op, &error),
                     PPH_INVALID_ARGUMENT);
    assert_string_equal(error.message, "desc must not be NULL");
    assert_true(!op.up && !op.plain);
    conv_case_destroy(&op);
  }
  /* An ordinary convolution has no output padding at all. */
  conv_case c = conv_case_plain(false, 1, 1);
  pph_conv *op;
  float weights[9] = {0};
  c.desc.stride[0] = 2;
  c.desc.output_padding[0] = 1;
  assert_int_equal(pph_conv_create(&c.desc, weights, NULL, &op, NULL),
                   PPH_INVALID_ARGUMENT);
}

static void check_reshape(conv_case *c, pph_status status, const char *part) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  float *weights = calloc(64 * 16, sizeof *weights), y;
  test_assert_ok(conv_case_make(c->up, &c->desc, weights, NULL, &op, &error),
                 &error);
  free(weights);
  assert_int_equal(
      conv_case_reshape(&op, c->batch, c->input, output, &bytes, &error),
      status);
  if (!strstr(error.message, part))
    fail_msg("\"%s\" does not say %s", error.message, part);
  assert_int_equal(bytes, 0);
  pph_conv_tensors tensors = {.input = &y, .output = &y};
  assert_int_equal(conv_case_run(&op, &tensors, NULL), PPH_INVALID_ARGUMENT);
  assert_null(conv_case_explain(&op).algorithm);
  conv_case_destroy(&op);
}

static void test_reshape_refusals(void **state) {
  for (int up = 0; up < 2; up++) {
    conv_case c = conv_case_plain(up, 8, 8);
    c.desc.algorithm = "depthwise";
    check_reshape(&c, PPH_INVALID_ARGUMENT, "does not support");
    c.desc.algorithm = "filtered";
    c.desc.accuracy = PPH_ACCURACY_EXACT;
    check_reshape(&c, PPH_INVALID_ARGUMENT, "does not support");
    c.desc.algorithm = "gather";
    c.desc.weight_bytes = 100;
    check_reshape(&c, PPH_LIMIT_EXCEEDED, "weight_bytes is 100");
    c = conv_case_plain(up, 8, 8);
    c.input[1] = 0;
    check_reshape(&c, PPH_INVALID_ARGUMENT,
                  "input length is 0, must be at least 1");
    c = conv_case_plain(up, 8, 8);
    c.batch = 0;
    check_reshape(&c, PPH_INVALID_ARGUMENT, "at least 1");
    c = conv_case_plain(up, 8, 8);
    c.input[0] = 1;
    c.desc.pad_begin[0] = c.desc.pad_end[0] = up ? 2 : 0;
    check_reshape(&c, PPH_INVALID_ARGUMENT,
                  up ? "output length is 0, must be at least 1" : "kernel");
    c.desc.pad_begin[0] += up ? 3 : 0;
    check_reshape(&c, PPH_INVALID_ARGUMENT,
                  up ? "output length is -3, must be at least 1" : "kernel");
    c = conv_case_plain(up, 8, 8);
    c.input[0] = c.input[1] = INT32_MAX;
    check_reshape(&c, PPH_LIMIT_EXCEEDED, "bytes");
  }
}

/* Life of an operator */

static void test_reshapes(void **state) {
  static const int64_t shapes[][3] = {{1, 7, 9}, {2, 3, 40}, {1, 1, 1},
                                      {1, 7, 9}, {1, 60, 2}, {2, 3, 40}};
  for (int up = 0; up < 2; up++) {
    conv_case c = conv_case_plain(up, 32, 24);
    any_op op = {0};
    pph_error error = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      int64_t output[3];
      size_t bytes, again;
      c.batch = shapes[i][0];
      memcpy(c.input, shapes[i] + 1, 2 * sizeof *c.input);
      conv_case_fill(&c, 5);
      if (!op.up && !op.plain)
        test_assert_ok(conv_case_make(up, &c.desc, c.w, c.b, &op, &error),
                       &error);
      test_assert_ok(
          conv_case_reshape(&op, c.batch, c.input, output, &bytes, &error),
          &error);
      test_assert_ok(
          conv_case_reshape(&op, c.batch, c.input, output, &again, &error),
          &error);
      assert_int_equal(bytes, again);
      int64_t both[3] = {c.input[0], c.input[1]};
      test_assert_ok(
          conv_case_reshape(&op, c.batch, both, both, &again, &error), &error);
      assert_memory_equal(both, output, 2 * sizeof *both);
      float *result = malloc(c.outputs * sizeof *result);
      conv_case_run_with(&op, &c, bytes, NULL, result);
      conv_case_check(&c, result);
      free(result);
      conv_case_drop(&c);
    }
    conv_case_destroy(&op);
  }
}

static void test_run_refusals(void **state) {
  for (int up = 0; up < 2; up++) {
    conv_case c = conv_case_plain(up, 32, 24);
    any_op op;
    pph_error error = {0};
    int64_t output[3];
    size_t bytes;
    c.desc.residual = true;
    c.desc.algorithm = "gather";
    conv_case_fill(&c, 1);
    float *y = malloc(c.outputs * sizeof *y);
    test_assert_ok(conv_case_make(up, &c.desc, c.w, c.b, &op, &error), &error);
    assert_null(conv_case_explain(&op).algorithm);
    assert_true(conv_case_explain(&op).done_flops == 0);
    pph_conv_tensors good = {.input = c.x, .residual = c.r, .output = y};
    assert_int_equal(conv_case_run(&op, &good, &error), PPH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "reshape"));
    test_assert_ok(conv_case_reshape(&op, 1, c.input, output, &bytes, &error),
                   &error);
    assert_true(bytes > 0);
    assert_int_equal(conv_case_run(&op, &good, NULL), PPH_INVALID_ARGUMENT);
    char *workspace = conv_case_workspace(bytes + 64);
    good.workspace = workspace + 4;
    assert_int_equal(conv_case_run(&op, &good, &error), PPH_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "aligned"));
    good.workspace = workspace;
    pph_conv_tensors bad[3] = {good, good, good};
    bad[0].input = bad[1].residual = NULL;
    bad[2].output = NULL;
    for (int i = 0; i < 3; i++)
      assert_int_equal(conv_case_run(&op, &bad[i], NULL), PPH_INVALID_ARGUMENT);
    test_assert_ok(conv_case_run(&op, &good, &error), &error);
    conv_case_check(&c, y);
    free(workspace);
    free(y);
    conv_case_destroy(&op);
    conv_case_drop(&c);
  }
}

static void test_explain(void **state) {
  conv_case c = conv_case_plain(true, 32, 24);
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  c.desc.algorithm = "gather";
  c.desc.threads = 3;
  conv_case_fill(&c, 1);
  test_assert_ok(conv_case_make(true, &c.desc, c.w, c.b, &op, &error), &error);
  test_assert_ok(conv_case_reshape(&op, 1, c.input, output, &bytes, &error),
                 &error);
  pph_operator_info info = conv_case_explain(&op);
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
  assert_int_equal(bytes % (pph_cpu_threads(3) * 64), 0);
  conv_case_destroy(&op);
  conv_case_drop(&c);
  assert_null(pph_conv_explain(NULL).algorithm);
  assert_null(pph_conv_transpose_explain(NULL).algorithm);
}

static pph_operator_info choose(conv_case *c, pph_accuracy accuracy) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  c->desc.accuracy = accuracy;
  test_assert_ok(conv_case_make(true, &c->desc, c->w, c->b, &op, &error),
                 &error);
  test_assert_ok(conv_case_reshape(&op, 1, c->input, output, &bytes, &error),
                 &error);
  pph_operator_info info = conv_case_explain(&op);
  conv_case_destroy(&op);
  return info;
}

/* `normal` takes a larger E only for at least 3 per cent of the time. (Scalar
   levels never do here.) */
static void test_larger_error_pays(void **state) {
  conv_case c = conv_case_plain(true, 64, 32);
  conv_case_fill(&c, 1);
  int larger = 0, same = 0;
  for (c.input[1] = 4; c.input[1] < 80; c.input[1] += 3) {
    pph_operator_info high = choose(&c, PPH_ACCURACY_HIGH);
    pph_operator_info normal = choose(&c, PPH_ACCURACY_NORMAL);
    if (normal.error_bound <= 4)
      same += strcmp(normal.algorithm, high.algorithm) == 0;
    else
      larger += normal.estimated_us * 1.03 <= high.estimated_us;
    assert_true(high.error_bound <= 4);
  }
  assert_int_equal(larger + same, 26);
  conv_case_drop(&c);
}

/* Everything that create reads may go afterwards. */
static void test_copies(void **state) {
  for (int up = 0; up < 2; up++) {
    conv_case c = conv_case_plain(up, 32, 24);
    any_op op;
    pph_error error = {0};
    int64_t output[3];
    size_t bytes;
    c.desc.activation = PPH_ACTIVATION_PRELU;
    conv_case_fill(&c, 1);
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
    test_assert_ok(conv_case_make(up, desc, w, b, &op, &error), &error);
    memset(limits, 0, sizeof *limits);
    memset(name, 'x', strlen(name));
    void *gone[] = {w, b, slopes, name, limits, desc};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
      free(gone[i]);
    test_assert_ok(conv_case_reshape(&op, 1, c.input, output, &bytes, &error),
                   &error);
    conv_case_run_with(&op, &c, bytes, NULL, y);
    conv_case_check(&c, y);
    free(y);
    conv_case_destroy(&op);
    conv_case_drop(&c);
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
    r->same = conv_case_run(r->op, &tensors, NULL) == PPH_OK &&
              conv_case_same(r->output, r->expected, r->c->outputs);
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
  float *expected = conv_case_compute(c, NULL);
  test_assert_ok(conv_case_make(c->up, &c->desc, c->w, c->b, &op, &error),
                 &error);
  test_assert_ok(
      conv_case_reshape(&op, c->batch, c->input, output, &bytes, &error),
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
  conv_case_destroy(&op);
}

/* Cases that different algorithms are chosen for; the last are lines,
   the very last of a long kernel. */
enum { VARIED_CASES = 13 };
static conv_case varied_case(int i) {
  conv_case c = conv_case_plain(i & 1, i & 2 ? 64 : 24, i & 4 ? 3 : 48);
  if (i >= 8) {
    c.desc.kernel[0] = c.desc.stride[0] = 1;
    c.desc.pad_begin[0] = c.desc.pad_end[0] = 0;
  }
  if (i == 12) {
    c.desc.kernel[1] = 7;
    c.desc.pad_begin[1] = c.desc.pad_end[1] = 3;
  }
  if (i == 6 || i == 7)
    c.desc.group = c.desc.in_channels = c.desc.out_channels = 24;
  conv_case_fill(&c, (uint64_t)i);
  return c;
}

static void test_shared_operator(void **state) {
  for (int i = 0; i < VARIED_CASES; i++) {
    conv_case c = varied_case(i);
    check_runners(&c);
    conv_case_drop(&c);
  }
}

/* At every level of accuracy, the choice of an algorithm included. */
static void test_pools(void **state) {
  pph_thread_pool *pools[3];
  for (uint32_t i = 0; i < 3; i++)
    assert_non_null(pools[i] = pthreadpool_create(i + 1));
  for (int i = 0; i < 3 * VARIED_CASES; i++) {
    conv_case c = varied_case(i % VARIED_CASES);
    c.desc.accuracy = (pph_accuracy)(i / VARIED_CASES);
    float *expected = conv_case_compute(&c, NULL);
    conv_case_check(&c, expected);
    for (int p = 0; p < 9; p++) {
      c.desc.threads = (uint32_t)(p / 3 + 1); /* fewer or more than the pool */
      float *result = conv_case_compute(&c, pools[p % 3]);
      for (size_t k = 0; k < c.outputs; k++)
        if (memcmp(&expected[k], &result[k], sizeof(float)) != 0)
          fail_msg("case %d, element %zu is %.9g alone, %.9g on %d threads "
                   "of %u",
                   i, k, (double)expected[k], (double)result[k], p % 3 + 1,
                   c.desc.threads);
      free(result);
    }
    free(expected);
    conv_case_drop(&c);
  }
  for (int i = 0; i < 3; i++)
    pph_thread_pool_destroy(pools[i]);
}

/* Scalar need not have a fused multiply-add: only the others promise the same
   bits. */
static void test_exact_levels(void **state) {
  pph_cpu best = pph_cpu_choose(PPH_CPU_BEST);
#if defined(__aarch64__)
  assert_int_equal(best, PPH_CPU_NEON);
#endif
  if (best == PPH_CPU_SCALAR)
    skip();
  pph_cpu lowest = best == PPH_CPU_NEON ? best : PPH_CPU_AVX2;
  static const char *const names[] = {NULL, "gather", "reference"};
  for (int i = 0; i < VARIED_CASES; i++) {
    conv_case c = varied_case(i);
    c.desc.accuracy = PPH_ACCURACY_EXACT;
    c.desc.cpu = lowest;
    float *expected = conv_case_compute(&c, NULL);
    for (int k = 0; k < 6; k++) {
      c.desc.cpu = k % 2 ? best : lowest;
      c.desc.algorithm = names[k / 2];
      float *result = conv_case_compute(&c, NULL);
      if (!conv_case_same(expected, result, c.outputs))
        fail_msg("case %d differs in way %d", i, k);
      free(result);
    }
    free(expected);
    conv_case_drop(&c);
  }
}

/* Allocation n fails */

/* After a failure the same reshape, with memory, succeeds. */
static pph_status try_all(const conv_case *c, test_failing *memory, float *y) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  pph_status status = conv_case_make(c->up, &c->desc, c->w, c->b, &op, &error);
  if (status != PPH_OK) {
    assert_true(!op.up && !op.plain);
    return status;
  }
  status = conv_case_reshape(&op, c->batch, c->input, output, &bytes, &error);
  if (status != PPH_OK) {
    assert_int_equal(bytes, 0);
    assert_null(conv_case_explain(&op).algorithm);
    test_assert_ok(
        conv_case_reshape(&op, c->batch, c->input, output, &bytes, &error),
        &error);
  }
  size_t before = memory->count;
  conv_case_run_with(&op, c, bytes, NULL, y);
  assert_int_equal(memory->count, before);
  conv_case_check(c, y);
  conv_case_destroy(&op);
  return status;
}

static void fail_each(conv_case *c) {
  float *y = malloc(c->outputs * sizeof *y);
  for (size_t n = 1;; n++) {
    test_failing memory = {.fail_at = n};
    pph_allocator allocator = test_failing_allocator(&memory);
    c->desc.allocator = &allocator;
    pph_status status = try_all(c, &memory, y);
    assert_int_equal(memory.open, 0);
    if (memory.count < n) {
      assert_int_equal(status, PPH_OK);
      break;
    }
    if (status != PPH_OUT_OF_MEMORY)
      fail_msg("allocation %zu failed, and the status is %s", n,
               pph_status_name(status));
  }
  free(y);
}

static bool is_supported(const conv_case *c) {
  any_op op;
  pph_error error = {0};
  int64_t output[3];
  size_t bytes;
  test_assert_ok(conv_case_make(c->up, &c->desc, c->w, c->b, &op, &error),
                 &error);
  pph_status status =
      conv_case_reshape(&op, c->batch, c->input, output, &bytes, NULL);
  conv_case_destroy(&op);
  return status == PPH_OK;
}

/* Every algorithm by its name, and none. */
static void test_allocation(void **state) {
  size_t count;
  const pph_algo *const *list = pph_algo_list(&count);
  for (size_t k = 0; k <= count; k++) {
    int supported = 0;
    for (int i = 0; i < VARIED_CASES; i++) {
      conv_case c = varied_case(i);
      c.desc.algorithm = k < count ? list[k]->name : NULL;
      c.desc.activation = PPH_ACTIVATION_PRELU;
      c.desc.slopes = c.slopes;
      if (is_supported(&c)) {
        supported++;
        fail_each(&c);
      }
      conv_case_drop(&c);
    }
    if (!supported)
      fail_msg("%s: no case has it", list[k]->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_definition),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_null),
                                     cmocka_unit_test(test_reshape_refusals),
                                     cmocka_unit_test(test_reshapes),
                                     cmocka_unit_test(test_run_refusals),
                                     cmocka_unit_test(test_explain),
                                     cmocka_unit_test(test_larger_error_pays),
                                     cmocka_unit_test(test_copies),
                                     cmocka_unit_test(test_shared_operator),
                                     cmocka_unit_test(test_pools),
                                     cmocka_unit_test(test_exact_levels),
                                     cmocka_unit_test(test_allocation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
