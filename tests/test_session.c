/* The public API: options, misuse, plans, memory. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "model_writer.h"
#include "polyphase/polyphase.h"
#include "test_support.h"

static const char path[] = PPH_SOURCE_DIR "/examples/upscale/upscale.onnx";

static pph_model *load(void) {
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(pph_model_load(path, NULL, &model, &error), &error);
  return model;
}

static pph_session *open_session(const pph_model *model) {
  pph_session *session;
  pph_error error = {0};
  test_assert_ok(pph_session_create(model, NULL, &session, &error), &error);
  return session;
}

static void test_describe(void **state) {
  pph_model *model = load();
  assert_int_equal(pph_model_input_count(model), 1);
  assert_int_equal(pph_model_output_count(model), 1);
  pph_value_info info = pph_model_input(model, 0);
  assert_string_equal(info.name, "picture");
  assert_int_equal(info.type, PPH_F32);
  assert_int_equal(info.shape.rank, 4);
  assert_int_equal(info.shape.dims[1], 3);
  assert_int_equal(info.shape.dims[2], -1);
  assert_string_equal(info.dim_names[2], "height");
  assert_null(pph_model_input(model, 1).name);
  assert_null(pph_model_output(model, 7).name);
  pph_model_destroy(model);
}

static void test_load_misuse(void **state) {
  pph_model *model = (pph_model *)&path;
  pph_error error = {0};
  assert_int_equal(pph_model_load(NULL, NULL, &model, &error),
                   PPH_INVALID_ARGUMENT);
  assert_int_equal(pph_model_load("no/such/file", NULL, &model, &error),
                   PPH_IO_FAILED);
  assert_null(model);
  assert_string_equal(error.where, "no/such/file");
  assert_int_equal(pph_model_load("/", NULL, &model, &error), PPH_IO_FAILED);
  assert_int_equal(pph_model_load_bytes("xyz", 3, NULL, NULL, &model, &error),
                   PPH_BAD_MODEL);
  assert_int_equal(pph_model_load_bytes(NULL, 0, NULL, NULL, &model, &error),
                   PPH_BAD_MODEL);
  assert_null(model);
  pph_model_destroy(NULL);
}

static void test_limits(void **state) {
  pph_limits limits;
  pph_model_options options;
  pph_limits_init(&limits);
  pph_model_options_init(&options);
  options.limits = &limits;
  pph_model *model;
  pph_error error = {0};
  limits.file_bytes = 1000;
  assert_int_equal(pph_model_load(path, &options, &model, &error),
                   PPH_LIMIT_EXCEEDED);
  pph_limits_init(&limits);
  limits.nodes = 3;
  assert_int_equal(pph_model_load(path, &options, &model, &error),
                   PPH_LIMIT_EXCEEDED);
  pph_limits_init(&limits);
  limits.heap_bytes = 100000;
  assert_int_equal(pph_model_load(path, &options, &model, &error),
                   PPH_OUT_OF_MEMORY);
  assert_string_equal(error.where, path);
  assert_non_null(strstr(error.message, "pph_limits.heap_bytes"));
  limits.heap_bytes = 0; /* no bound */
  test_assert_ok(pph_model_load(path, &options, &model, &error), &error);
  pph_model_destroy(model);
}

/* However little memory there is, an error says where. */
static void test_errors_have_a_place(void **state) {
  pph_model *model = load();
  pph_model_options options;
  pph_session_options few;
  pph_limits limits;
  pph_limits_init(&limits);
  pph_model_options_init(&options);
  pph_session_options_init(&few);
  options.limits = few.limits = &limits;
  float pixels[3 * 4 * 4] = {0};
  pph_tensor input = {PPH_F32, {4, {1, 3, 4, 4}}, pixels}, output;
  for (limits.heap_bytes = 1; limits.heap_bytes < 1 << 18;
       limits.heap_bytes += limits.heap_bytes / 4 + 1) {
    pph_error error = {0};
    pph_model *other;
    pph_session *session;
    if (pph_model_load(path, &options, &other, &error) == PPH_OUT_OF_MEMORY)
      assert_true(error.where[0]);
    pph_model_destroy(other);
    error.where[0] = 0;
    if (pph_session_create(model, &few, &session, &error) != PPH_OK)
      assert_string_equal(error.where, "pph_session_create");
    else if (pph_session_run(session, &input, 1, &output, 1, &error) != PPH_OK)
      assert_true(error.where[0]);
    pph_session_destroy(session);
  }
  pph_model_destroy(model);
}

/* Shapes that the model allows one by one, and whose parts do not fit. */
static void test_shapes_that_do_not_fit(void **state) {
  model_bytes bytes = model_write("opset 13; in x f32 1x?; in y f32 2x?;"
                                  "in z f32 1x5; out s; node Add x z -> t;"
                                  "node Add t y -> s @name=sum");
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(pph_model_load_bytes(bytes.data, bytes.length, NULL, NULL,
                                      &model, &error),
                 &error);
  pph_session *session = open_session(model);
  float numbers[10] = {0};
  pph_tensor inputs[] = {{PPH_F32, {2, {1, 5}}, numbers},
                         {PPH_F32, {2, {2, 5}}, numbers},
                         {PPH_F32, {2, {1, 5}}, numbers}},
             output;
  test_assert_ok(pph_session_run(session, inputs, 3, &output, 1, &error),
                 &error);
  inputs[1].shape.dims[1] = 4;
  assert_int_equal(pph_session_run(session, inputs, 3, &output, 1, &error),
                   PPH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.where, "Add \"sum\""));
  const char *start =
      "inputs \"x\" of shape [1,5], \"y\" of shape [2,4] do not fit: ";
  assert_int_equal(strncmp(error.message, start, strlen(start)), 0);
  assert_true(strlen(error.message) > strlen(start));
  assert_int_equal(pph_session_prepare(session, inputs, 3, NULL),
                   PPH_INVALID_ARGUMENT);
  pph_session_destroy(session);
  pph_model_destroy(model);
  model_bytes_free(&bytes);
}

/* A file that is named so long that only its end has room. */
static void test_long_path(void **state) {
  char folder[300], end[] = "/none.onnx";
  memset(folder, 'x', sizeof folder);
  memcpy(folder + sizeof folder - sizeof end, end, sizeof end);
  pph_model *model;
  pph_error error = {0};
  assert_int_not_equal(pph_model_load(folder, NULL, &model, &error), PPH_OK);
  assert_true(error.where[0]);
  pph_error inner = {.where = "node 3 Add"};
  assert_int_equal(pph_error_in_file(&inner, folder, PPH_BAD_MODEL),
                   PPH_BAD_MODEL);
  assert_int_equal(strncmp(inner.where, "...x", 4), 0);
  assert_non_null(strstr(inner.where, "/none.onnx: node 3 Add"));
}

static void test_create_misuse(void **state) {
  pph_model *model = load();
  pph_session *session;
  pph_session_options options;
  pph_error error = {0};
  assert_int_equal(pph_session_create(NULL, NULL, &session, &error),
                   PPH_INVALID_ARGUMENT);
  pph_session_options_init(&options);
  options.threads = 1000;
  assert_int_equal(pph_session_create(model, &options, &session, &error),
                   PPH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "threads is 1000"));
  pph_session_options_init(&options);
  options.plans = 0;
  assert_int_equal(pph_session_create(model, &options, &session, &error),
                   PPH_INVALID_ARGUMENT);
  options = (pph_session_options){0};
  assert_int_equal(pph_session_create(model, &options, &session, &error),
                   PPH_INVALID_ARGUMENT);
  assert_null(session);
  pph_session_destroy(NULL);
  pph_model_destroy(model);
}

static void expect_refused(pph_session *session, pph_tensor *input,
                           uint32_t inputs, uint32_t outputs,
                           const char *text) {
  pph_tensor output = {PPH_F32, {0}, &output};
  pph_error error = {0};
  assert_int_equal(pph_session_run(session, input, inputs, &output, outputs,
                                   &error),
                   PPH_INVALID_ARGUMENT);
  assert_null(output.data);
  if (!strstr(error.message, text))
    fail_msg("\"%s\" is not in \"%s\"", text, error.message);
}

static void test_run_misuse(void **state) {
  pph_model *model = load();
  pph_session *session = open_session(model);
  float pixels[3 * 4 * 4] = {0};
  pph_tensor input = {PPH_F32, {4, {1, 3, 4, 4}}, pixels};
  expect_refused(session, &input, 2, 1, "input_count is 2, the model has 1");
  expect_refused(session, &input, 1, 2, "the model has 1");
  input.type = PPH_I64;
  expect_refused(session, &input, 1, 1, "type i64, must be f32");
  input.type = 77;
  expect_refused(session, &input, 1, 1, "type 77 (of no pph_dtype), must be");
  input.type = PPH_F32;
  input.shape.dims[1] = 4;
  expect_refused(session, &input, 1, 1, "shape [1,4,4,4]");
  input.shape.rank = 99;
  expect_refused(session, &input, 1, 1, "rank is 99, must be 0 to 8");
  input.shape = (pph_shape){4, {1, 3, 4, -1}};
  expect_refused(session, &input, 1, 1, "dimension 3 is -1, must be at least 0");
  input.shape = (pph_shape){4, {1, 3, 4, 4}};
  input.data = NULL;
  expect_refused(session, &input, 1, 1, "data is NULL");
  pph_error error = {0};
  assert_int_equal(pph_session_run(session, &input, 1, NULL, 1, &error),
                   PPH_INVALID_ARGUMENT);
  assert_string_equal(error.message, "outputs must not be NULL");
  pph_session_destroy(session);
  pph_model_destroy(model);
}

/* Sizes come and go; results of a size never depend on what was before, and
   memory is flat once the largest has been seen (public bug P40). */
static void test_many_sizes(void **state) {
  pph_model *model = load();
  pph_session *session = open_session(model);
  enum { MOST = 24 };
  float *pixels = calloc(3 * MOST * MOST, sizeof(float));
  float first[4] = {0};
  test_random random = {test_seed("many sizes")};
  for (int i = 0; i < 3 * MOST * MOST; i++)
    pixels[i] = (float)test_random_range(&random, 0, 255) / 255;
  uint64_t peak = 0;
  for (int round = 0; round < 60; round++) {
    int64_t height = round % 10 == 0 ? MOST : test_random_range(&random, 1, MOST);
    int64_t width = round % 10 == 0 ? MOST : test_random_range(&random, 1, MOST);
    pph_tensor input = {PPH_F32, {4, {1, 3, height, width}}, pixels}, output;
    pph_error error = {0};
    test_assert_ok(pph_session_run(session, &input, 1, &output, 1, &error),
                   &error);
    assert_int_equal(output.shape.dims[2], 2 * height);
    assert_int_equal(output.shape.dims[3], 2 * width);
    if (round == 0)
      memcpy(first, output.data, sizeof first);
    else if (round % 10 == 0)
      assert_memory_equal(first, output.data, sizeof first);
    if (round == 20)
      peak = pph_session_plan(session).peak_bytes;
  }
  /* Five plans are held while one is exchanged for another. */
  assert_true(pph_session_plan(session).peak_bytes <= peak + peak / 10);
  free(pixels);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

static void test_empty_picture(void **state) {
  pph_model *model = load();
  pph_session *session = open_session(model);
  pph_tensor input = {PPH_F32, {4, {1, 3, 0, 5}}, NULL}, output;
  pph_error error = {0};
  pph_status status =
      pph_session_run(session, &input, 1, &output, 1, &error);
  if (status == PPH_OK)
    assert_int_equal(output.shape.dims[3], 10);
  else
    assert_true(strlen(error.message) > 0);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

/* Nothing times too much: no element, but strides that overflow. */
static void test_empty_huge_picture(void **state) {
  pph_model *model = load();
  pph_session *session = open_session(model);
  pph_tensor input = {PPH_F32, {4, {1, 3, 0, (int64_t)1 << 62}}, NULL}, output;
  pph_error error = {0};
  assert_int_equal(pph_session_run(session, &input, 1, &output, 1, &error),
                   PPH_LIMIT_EXCEEDED);
  assert_non_null(strstr(error.message, "larger than the limit"));
  pph_session_destroy(session);
  pph_model_destroy(model);
}

static void test_report(void **state) {
  pph_model *model = load();
  pph_session *session = open_session(model);
  assert_int_equal(pph_session_plan(session).steps, 0);
  assert_int_equal(pph_session_plan(NULL).steps, 0);
  assert_null(pph_session_step(NULL, 0).name);
  assert_null(pph_session_note(NULL, 0).name);
  assert_null(pph_session_step(session, 0).name);
  pph_tensor input = {PPH_F32, {4, {1, 3, 8, 8}}, NULL};
  pph_error error = {0};
  test_assert_ok(pph_session_prepare(session, &input, 1, &error), &error);
  pph_plan_info plan = pph_session_plan(session);
  assert_true(plan.steps >= 6);
  assert_int_equal(plan.notes, 1);
  assert_true(plan.transposes <= 2);
  pph_note_info note = pph_session_note(session, 0);
  assert_string_equal(note.name, "up");
  assert_string_equal(note.kind, "ConvTranspose");
  assert_true(note.lowered || note.reason);
  assert_null(pph_session_step(session, plan.steps).name);
  assert_null(pph_session_note(session, 1).name);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

static void count_progress(void *context, uint32_t done, uint32_t steps) {
  uint32_t *calls = context;
  assert_int_equal(done, ++*calls);
  assert_true(done <= steps);
}

static void test_progress(void **state) {
  pph_model *model = load();
  pph_session *session;
  pph_session_options options;
  pph_error error = {0};
  uint32_t calls = 0;
  pph_session_options_init(&options);
  options.progress = count_progress;
  options.progress_context = &calls;
  float pixels[3 * 4 * 4] = {0};
  pph_tensor input = {PPH_F32, {4, {1, 3, 4, 4}}, pixels}, output;
  test_assert_ok(pph_session_create(model, &options, &session, &error),
                 &error);
  test_assert_ok(pph_session_run(session, &input, 1, &output, 1, &error),
                 &error);
  assert_int_equal(calls, pph_session_plan(session).steps);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_describe),      cmocka_unit_test(test_load_misuse),
      cmocka_unit_test(test_limits),        cmocka_unit_test(test_errors_have_a_place),
      cmocka_unit_test(test_shapes_that_do_not_fit),
      cmocka_unit_test(test_long_path),
      cmocka_unit_test(test_create_misuse),
      cmocka_unit_test(test_run_misuse),    cmocka_unit_test(test_many_sizes),
      cmocka_unit_test(test_empty_picture),
      cmocka_unit_test(test_empty_huge_picture),
      cmocka_unit_test(test_report),
      cmocka_unit_test(test_progress)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
