/* conv_stream.h: however a signal is cut, the pieces' outputs are those of the
   operator on the whole of it. */
#include <math.h>
#include <pthreadpool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "conv_case.h"

static pph_status make(const conv_case *c,
                       const pph_conv_stream_options *options,
                       pph_conv_stream **stream, pph_error *error) {
  return (c->up ? pph_conv_stream_create_transposed : pph_conv_stream_create)(
      &c->desc, options, c->w, c->b, stream, error);
}

static pph_conv_stream_options choose(int64_t batch, int64_t longest) {
  pph_conv_stream_options options;
  pph_conv_stream_options_init(&options);
  options.batch = batch;
  options.longest = longest;
  return options;
}

/* Positions [at, at + count) between a tensor of `length` positions and a dense
   one of that part. */
static void move_part(bool back, float *part, float *whole, size_t lines,
                      size_t unit, const int64_t range[3]) {
  size_t at = (size_t)range[0], count = (size_t)range[1];
  for (size_t i = 0; i < lines; i++) {
    float *inside = whole + (i * (size_t)range[2] + at) * unit;
    float *outside = part + i * count * unit;
    memcpy(back ? inside : outside, back ? outside : inside,
           count * unit * sizeof(float));
  }
}

static float *cut_input(const conv_case *c, int64_t at, int64_t count) {
  bool first = c->desc.input_channels_first;
  size_t ins = (size_t)c->desc.in_channels, batch = (size_t)c->batch;
  float *part = malloc(batch * ins * (size_t)count * sizeof *part + 1);
  assert_non_null(part);
  move_part(false, part, c->x, first ? batch * ins : batch, first ? 1 : ins,
            (int64_t[3]){at, count, c->input[0]});
  return part;
}

static void join_output(const conv_case *c, float *part, int64_t at,
                        int64_t count, float *result) {
  bool first = c->desc.output_channels_first;
  size_t outs = (size_t)c->desc.out_channels, batch = (size_t)c->batch;
  assert_true(at + count <= c->output[0]);
  move_part(true, part, result, first ? batch * outs : batch, first ? 1 : outs,
            (int64_t[3]){at, count, c->output[0]});
}

/* Room for `count` positions between values that must stay. */
static float *make_room(const conv_case *c, int64_t count) {
  size_t floats = (size_t)(c->batch * c->desc.out_channels * count);
  float *room = malloc((floats + 2) * sizeof *room);
  assert_non_null(room);
  room[0] = room[floats + 1] = 77;
  return room + 1;
}

static void drop_room(const conv_case *c, float *room, int64_t count) {
  size_t floats = (size_t)(c->batch * c->desc.out_channels * count);
  assert_true(room[-1] == 77 && room[floats] == 77);
  free(room - 1);
}

/* Pushes `count` positions from `at`; returns where the output ends. */
static int64_t push(const conv_case *c, pph_conv_stream *stream,
                    const int64_t range[2], int64_t done, float *result) {
  pph_conv_stream_info info = pph_conv_stream_explain(stream);
  pph_error error = {0};
  int64_t most = range[1] / info.step * info.outputs, written;
  int64_t left = info.skipped - range[0] / info.step * info.outputs;
  left = left < 0 ? 0 : left > most ? most : left;
  float *input = cut_input(c, range[0], range[1]);
  float *output = make_room(c, most - left);
  test_assert_ok(pph_conv_stream_push(stream, input, range[1], output, &written,
                                      &error),
                 &error);
  assert_int_equal(written, most - left);
  join_output(c, output, done, written, result);
  drop_room(c, output, written);
  free(input);
  return done + written;
}

static int64_t flush(const conv_case *c, pph_conv_stream *stream, int64_t done,
                     float *result) {
  pph_error error = {0};
  int64_t written, most = pph_conv_stream_explain(stream).flushed;
  float *output = make_room(c, most);
  test_assert_ok(pph_conv_stream_flush(stream, output, &written, &error),
                 &error);
  assert_true(written <= most);
  join_output(c, output, done, written, result);
  drop_room(c, output, most);
  return done + written;
}

/* The whole signal in random pieces; `longest` is the stream's. */
static void feed(const conv_case *c, pph_conv_stream *stream, int64_t longest,
                 test_random *random, float *result) {
  int64_t step = pph_conv_stream_explain(stream).step, done = 0;
  memset(result, 0xff, c->outputs * sizeof *result);
  for (int64_t at = 0; at < c->input[0];) {
    int64_t most = (c->input[0] - at < longest ? c->input[0] - at : longest);
    int64_t count = test_random_range(random, 0, most / step) * step;
    if (test_random_range(random, 0, 3) == 0)
      count = step;
    done = push(c, stream, (int64_t[2]){at, count}, done, result);
    at += count;
  }
  assert_int_equal(flush(c, stream, done, result), c->output[0]);
}

static int64_t count_output(const conv_case *c) {
  const pph_conv_desc *d = &c->desc;
  int64_t extent = (d->kernel[0] - 1) * d->dilation[0] + 1;
  int64_t pads = d->pad_begin[0] + d->pad_end[0];
  int64_t rest = c->input[0] + pads - extent;
  if (c->up)
    return (c->input[0] - 1) * d->stride[0] + d->output_padding[0] + extent -
           pads;
  return rest < 0 ? 0 : rest / d->stride[0] + 1;
}

/* Pads of nothing to all that a kernel covers, and beyond. */
static void draw_axis(test_random *random, conv_case *c) {
  pph_conv_desc *d = &c->desc;
  do {
    d->kernel[0] = test_random_range(random, 1, 9);
    d->stride[0] = test_random_range(random, 1, 5);
    d->dilation[0] = test_random_range(random, 1, 3);
    int64_t span = (d->kernel[0] - 1) * d->dilation[0];
    int64_t most = c->up ? span + 4 : span;
    d->pad_begin[0] = test_random_range(random, 0, most);
    d->pad_end[0] = test_random_range(random, 0, most);
    int64_t room = d->stride[0] > d->dilation[0] ? d->stride[0]
                                                 : d->dilation[0];
    d->output_padding[0] = c->up ? test_random_range(random, 0, room - 1) : 0;
    c->input[0] = test_random_range(random, 1, 40) * (c->up ? 1 : d->stride[0]);
  } while (count_output(c) < 1);
}

static void draw_case(test_random *random, conv_case *c) {
  pph_conv_desc *d = &c->desc;
  *c = (conv_case){.up = test_random_range(random, 0, 2) > 0,
                   .batch = test_random_range(random, 1, 3)};
  pph_conv_desc_init(d);
  d->axes = 1;
  int64_t most = test_random_range(random, 0, 3) ? 20 : 70;
  d->group = test_random_range(random, 0, 2) ? 1 : 4;
  d->in_channels = d->group * test_random_range(random, 1, most / d->group);
  d->out_channels = d->group * test_random_range(random, 1, most / d->group);
  if (test_random_range(random, 0, 5) == 0)
    d->group = d->in_channels = d->out_channels;
  draw_axis(random, c);
  d->input_channels_first = test_random_range(random, 0, 3) == 0;
  d->output_channels_first = test_random_range(random, 0, 3) == 0;
  d->activation = (pph_activation)test_random_range(random, 0, 3);
  d->low = -1;
  d->high = 3;
  d->accuracy = test_random_range(random, 0, 2) ? PPH_ACCURACY_EXACT
                                                : PPH_ACCURACY_NORMAL;
  conv_case_fill(c, test_random_next(random));
}

static void compare(const conv_case *c, const float *expected,
                    const float *result) {
  const pph_conv_desc *d = &c->desc;
  if (d->accuracy != PPH_ACCURACY_EXACT) {
    conv_case_check(c, result);
    return;
  }
  for (size_t i = 0; i < c->outputs; i++)
    if (memcmp(&expected[i], &result[i], sizeof *result) != 0)
      fail_msg("%s, %s k%lld s%lld d%lld p%lld,%lld op%lld g%lld ci%lld co%lld "
               "i%lld: element %zu is %.9g, not %.9g",
               pph_cpu_name(d->cpu), c->up ? "transposed" : "ordinary",
               (long long)d->kernel[0], (long long)d->stride[0],
               (long long)d->dilation[0], (long long)d->pad_begin[0],
               (long long)d->pad_end[0], (long long)d->output_padding[0],
               (long long)d->group, (long long)d->in_channels,
               (long long)d->out_channels, (long long)c->input[0], i,
               (double)result[i], (double)expected[i]);
}

/* Three times through one stream: after a flush, and after a reset. */
static void check_cuttings(const conv_case *c, int64_t longest,
                           test_random *random) {
  pph_conv_stream_options options = choose(c->batch, longest);
  pph_conv_stream *stream;
  pph_error error = {0};
  float *expected = conv_case_compute(c, NULL);
  float *result = malloc(c->outputs * sizeof *result);
  assert_non_null(result);
  test_assert_ok(make(c, &options, &stream, &error), &error);
  feed(c, stream, longest, random, result);
  compare(c, expected, result);
  feed(c, stream, longest, random, result);
  compare(c, expected, result);
  int64_t step = pph_conv_stream_explain(stream).step;
  push(c, stream, (int64_t[2]){0, step}, 0, result);
  pph_conv_stream_reset(stream);
  feed(c, stream, longest, random, result);
  compare(c, expected, result);
  pph_conv_stream_destroy(stream);
  free(expected);
  free(result);
}

/* Levels whose algorithms all promise the same bits. */
static pph_cpu draw_level(test_random *random, const conv_case *c) {
  static const pph_cpu levels[] = {PPH_CPU_AVX2, PPH_CPU_AVX512, PPH_CPU_NEON};
  pph_cpu level = levels[test_random_range(random, 0, 2)];
  bool there = pph_cpu_choose(level) == level;
  bool exact = c->desc.accuracy == PPH_ACCURACY_EXACT;
  return there ? level : exact ? PPH_CPU_BEST : PPH_CPU_SCALAR;
}

static void test_cuttings(void **state) {
  test_random random = {test_seed("cuttings")};
  for (int i = 0; i < 300; i++) {
    conv_case c;
    draw_case(&random, &c);
    c.desc.cpu = draw_level(&random, &c);
    int64_t step = c.up ? 1 : c.desc.stride[0];
    check_cuttings(&c, test_random_range(&random, 1, 14) * step, &random);
    conv_case_drop(&c);
  }
}

/* Transposed or not, with one kernel, stride, dilation, pads, output padding. */
static conv_case make_case(bool up, const int64_t v[6]) {
  conv_case c = {.up = up, .batch = 1, .input = {12 * v[1]}};
  pph_conv_desc_init(&c.desc);
  c.desc.axes = 1;
  c.desc.in_channels = 20;
  c.desc.out_channels = 24;
  c.desc.kernel[0] = v[0];
  c.desc.stride[0] = v[1];
  c.desc.dilation[0] = v[2];
  c.desc.pad_begin[0] = v[3];
  c.desc.pad_end[0] = v[4];
  c.desc.output_padding[0] = v[5];
  c.desc.accuracy = PPH_ACCURACY_EXACT;
  conv_case_fill(&c, 3);
  return c;
}

static pph_conv_stream *make_stream(const conv_case *c, int64_t longest) {
  pph_conv_stream_options options = choose(1, longest);
  pph_conv_stream *stream;
  pph_error error = {0};
  test_assert_ok(make(c, &options, &stream, &error), &error);
  return stream;
}

/* What comes of each push, by hand. */
static void test_lengths(void **state) {
  static const struct {
    bool up;
    int64_t axis[6], skipped, flushed;
  } all[] = {
      {true, {16, 8, 1, 4, 4, 0}, 4, 4},  /* a vocoder's */
      {true, {16, 8, 1, 0, 8, 0}, 0, 0},  /* causal */
      {true, {2, 2, 1, 0, 0, 0}, 0, 0},   /* nothing overlaps */
      {true, {2, 2, 1, 0, 3, 0}, 3, 0},   /* an end that is padding */
      {true, {1, 5, 1, 0, 0, 4}, 0, 0},   /* gaps of bias */
      {true, {1, 1, 3, 0, 0, 2}, 0, 2},   /* bias after the end */
      {true, {3, 1, 4, 2, 1, 3}, 2, 10},
      {false, {7, 1, 1, 6, 0, 0}, 0, 0},  /* causal */
      {false, {7, 1, 1, 3, 3, 0}, 3, 3},
      {false, {7, 1, 3, 18, 0, 0}, 0, 0},
      {false, {4, 2, 1, 2, 0, 0}, 0, 0},
      {false, {4, 2, 1, 0, 0, 0}, 1, 0},
      {false, {1, 3, 1, 0, 0, 0}, 0, 0},
  };
  test_random random = {test_seed("lengths")};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    conv_case c = make_case(all[i].up, all[i].axis);
    int64_t step = all[i].up ? 1 : all[i].axis[1];
    pph_conv_stream *stream = make_stream(&c, 3 * step);
    pph_conv_stream_info info = pph_conv_stream_explain(stream);
    assert_int_equal(info.step, step);
    assert_int_equal(info.outputs, all[i].up ? all[i].axis[1] : 1);
    assert_int_equal(info.skipped, all[i].skipped);
    assert_int_equal(info.flushed, all[i].flushed);
    assert_non_null(info.longest.algorithm);
    pph_conv_stream_destroy(stream);
    for (int64_t longest = 1; longest <= 12; longest++)
      check_cuttings(&c, longest * step, &random);
    conv_case_drop(&c);
  }
}

static const int64_t vocoder[6] = {16, 8, 1, 4, 4, 0};

/* Nothing in, nothing out, no pointers needed. */
static void test_nothing(void **state) {
  conv_case c = make_case(true, vocoder);
  pph_conv_stream *stream = make_stream(&c, 4);
  pph_error error = {0};
  for (int i = 0; i < 2; i++) {
    int64_t written = 9;
    test_assert_ok(pph_conv_stream_push(stream, NULL, 0, NULL, &written,
                                        &error),
                   &error);
    assert_int_equal(written, 0);
    written = 9;
    test_assert_ok(pph_conv_stream_flush(stream, NULL, &written, &error),
                   &error);
    assert_int_equal(written, 0);
  }
  pph_conv_stream_destroy(stream);
  pph_conv_stream_destroy(NULL);
  pph_conv_stream_reset(NULL);
  assert_int_equal(pph_conv_stream_explain(NULL).step, 0);
  conv_case_drop(&c);
}

/* A signal shorter than what is cut off at its begin. */
static void test_all_cut(void **state) {
  conv_case c = make_case(true, (int64_t[6]){4, 2, 1, 9, 9, 0});
  pph_conv_stream *stream = make_stream(&c, 4);
  pph_error error = {0};
  int64_t written;
  for (int64_t count = 1; count <= 4; count++) {
    test_assert_ok(pph_conv_stream_push(stream, c.x, count, NULL, &written,
                                        &error),
                   &error);
    assert_int_equal(written, 0);
    test_assert_ok(pph_conv_stream_flush(stream, NULL, &written, &error),
                   &error);
    assert_int_equal(written, 0);
  }
  test_random random = {1};
  pph_conv_stream_destroy(stream);
  check_cuttings(&c, 4, &random);
  conv_case_drop(&c);
}

/* A refused push changes nothing. */
static void test_push_refusals(void **state) {
  conv_case c = make_case(false, (int64_t[6]){6, 2, 1, 5, 0, 0});
  pph_conv_stream *stream = make_stream(&c, 4);
  float *expected = conv_case_compute(&c, NULL);
  float *result = malloc(c.outputs * sizeof *result);
  test_random random = {1};
  int64_t done = 0, written = 9;
  for (int64_t at = 0; at < c.input[0]; at += 2) {
    static const int64_t counts[] = {-2, 1, 3, 6, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
      assert_int_equal(pph_conv_stream_push(stream, c.x, counts[i], result,
                                            &written, NULL),
                       PPH_INVALID_ARGUMENT);
      assert_int_equal(written, 0);
    }
    assert_int_equal(pph_conv_stream_push(stream, NULL, 2, result, &written,
                                          NULL),
                     PPH_INVALID_ARGUMENT);
    assert_int_equal(pph_conv_stream_push(stream, c.x, 2, NULL, &written,
                                          NULL),
                     PPH_INVALID_ARGUMENT);
    assert_int_equal(pph_conv_stream_push(stream, c.x, 2, result, NULL, NULL),
                     PPH_INVALID_ARGUMENT);
    done = push(&c, stream, (int64_t[2]){at, 2}, done, result);
  }
  assert_int_equal(pph_conv_stream_push(NULL, c.x, 2, result, &written, NULL),
                   PPH_INVALID_ARGUMENT);
  assert_int_equal(pph_conv_stream_flush(NULL, result, &written, NULL),
                   PPH_INVALID_ARGUMENT);
  assert_int_equal(flush(&c, stream, done, result), c.output[0]);
  compare(&c, expected, result);
  feed(&c, stream, 4, &random, result);
  compare(&c, expected, result);
  pph_conv_stream_destroy(stream);
  free(expected);
  free(result);
  conv_case_drop(&c);
}

static void refuse(const conv_case *c, pph_conv_stream_options options,
                   pph_status status, const char *part) {
  pph_conv_stream *stream = (pph_conv_stream *)(uintptr_t)8;
  pph_error error = {0};
  assert_int_equal(make(c, &options, &stream, &error), status);
  assert_null(stream);
  if (!strstr(error.message, part))
    fail_msg("\"%s\" does not say %s", error.message, part);
}

static void test_refusals(void **state) {
  const pph_conv_stream_options good = choose(1, 4);
  conv_case c = make_case(true, vocoder), bad = c;
  refuse(&c, choose(0, 4), PPH_INVALID_ARGUMENT,
         "batch");
  refuse(&c, choose(1, 0), PPH_INVALID_ARGUMENT,
         "longest");
  refuse(&c, choose(1, INT64_MAX),
         PPH_INVALID_ARGUMENT, "longest");
  refuse(&c, choose(INT64_MAX, 4),
         PPH_LIMIT_EXCEEDED, "bytes");
  bad.desc.axes = 2; /* and no kernel for the second */
  refuse(&bad, good, PPH_INVALID_ARGUMENT, "axes");
  bad = c;
  bad.desc.residual = true;
  refuse(&bad, good, PPH_INVALID_ARGUMENT, "residual");
  bad = c;
  bad.desc.struct_size = 4;
  refuse(&bad, good, PPH_INVALID_ARGUMENT, "struct_size");
  bad = c;
  bad.desc.algorithm = "magic";
  refuse(&bad, good, PPH_INVALID_ARGUMENT, "magic");
  bad = c;
  bad.desc.algorithm = "gather";
  bad.desc.weight_bytes = 4 * c.weight_count;
  refuse(&bad, good, PPH_LIMIT_EXCEEDED, "weight_bytes");
  bad = c;
  bad.desc.pad_end[0] = INT32_MAX;
  refuse(&bad, good, PPH_LIMIT_EXCEEDED, "reach");
  bad = c;
  bad.w = NULL;
  refuse(&bad, good, PPH_INVALID_ARGUMENT, "weights");
  conv_case_drop(&c);
  c = make_case(false, (int64_t[6]){6, 2, 1, 5, 5, 0});
  bad = c;
  bad.desc.pad_begin[0] = 6;
  refuse(&bad, good, PPH_UNSUPPORTED, "pad_begin");
  bad = c;
  bad.desc.pad_end[0] = 6;
  refuse(&bad, good, PPH_UNSUPPORTED, "pad_end");
  refuse(&c, choose(1, 3),
         PPH_INVALID_ARGUMENT, "multiple");
  assert_int_equal(pph_conv_stream_create(&c.desc, NULL, c.w, c.b, NULL, NULL),
                   PPH_INVALID_ARGUMENT);
  conv_case_drop(&c);
}

/* Threads change no bit, and what create read may go. */
static void test_pool(void **state) {
  test_random random = {test_seed("pool")};
  pph_thread_pool *pool;
  pph_error error = {0};
  assert_non_null(pool = pthreadpool_create(3));
  for (int i = 0; i < 40; i++) {
    conv_case c;
    draw_case(&random, &c);
    c.desc.accuracy = PPH_ACCURACY_EXACT;
    c.desc.threads = 3;
    conv_case given = c;
    conv_case_fill(&given, 5);
    size_t outs = (size_t)c.desc.out_channels;
    memcpy(given.w, c.w, c.weight_count * sizeof *c.w);
    memcpy(given.b, c.b, outs * sizeof *c.b);
    memcpy(given.slopes, c.slopes, outs * sizeof *c.slopes);
    int64_t longest = 6 * (c.up ? 1 : c.desc.stride[0]);
    pph_conv_stream_options options = choose(c.batch, longest);
    options.pool = pool;
    pph_conv_stream *stream;
    test_assert_ok(make(&given, &options, &stream, &error), &error);
    conv_case_drop(&given);
    float *expected = conv_case_compute(&c, NULL);
    float *result = malloc(c.outputs * sizeof *result);
    feed(&c, stream, longest, &random, result);
    compare(&c, expected, result);
    free(expected);
    free(result);
    pph_conv_stream_destroy(stream);
    conv_case_drop(&c);
  }
  pph_thread_pool_destroy(pool);
}

/* Whichever allocation fails, create leaves nothing behind; a stream takes no
   memory once it is there. */
static void test_out_of_memory(void **state) {
  test_random random = {1};
  for (int up = 0; up < 2; up++) {
    conv_case c = make_case(up, (int64_t[6]){6, 2, 1, 4, 4, 0});
    float *expected = conv_case_compute(&c, NULL);
    float *result = malloc(c.outputs * sizeof *result);
    pph_status status = PPH_OUT_OF_MEMORY;
    for (size_t n = 1; status != PPH_OK; n++) {
      test_failing memory = {.fail_at = n};
      pph_allocator allocator = test_failing_allocator(&memory);
      pph_conv_stream_options options = choose(1, 8);
      pph_conv_stream *stream;
      pph_error error = {0};
      c.desc.allocator = &allocator;
      status = make(&c, &options, &stream, &error);
      assert_true(status == PPH_OK || status == PPH_OUT_OF_MEMORY);
      if (status == PPH_OK) {
        assert_true(memory.count < n);
        size_t before = memory.count;
        feed(&c, stream, 8, &random, result);
        compare(&c, expected, result);
        assert_int_equal(memory.count, before);
      }
      pph_conv_stream_destroy(stream);
      assert_int_equal(memory.open, 0);
    }
    free(expected);
    free(result);
    conv_case_drop(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cuttings), cmocka_unit_test(test_lengths),
      cmocka_unit_test(test_nothing),  cmocka_unit_test(test_all_cut),
      cmocka_unit_test(test_push_refusals), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_pool),     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
