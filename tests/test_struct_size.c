/* Structs with a struct_size: one that is too short is refused without a look
   behind its end, one of another size too. */
#include <string.h>

#include "guarded.h"
#include "polyphase/polyphase.h"
#include "test_support.h"

/* Hands `struct_size` and no more of a struct to each function that takes one,
   NULL for the rest of its arguments where that is legal. */
typedef pph_status taker(void *given, pph_error *error);

static const char path[] = PPH_SOURCE_DIR "/examples/upscale/upscale.onnx";
static const float weights[16];

static pph_status load(const pph_model_options *options, pph_error *error) {
  pph_model *model = (pph_model *)(uintptr_t)8;
  pph_status status = pph_model_load(path, options, &model, error);
  if (status != PPH_OK)
    assert_null(model);
  pph_model_destroy(model);
  return status;
}

static pph_status load_bytes(void *given, pph_error *error) {
  pph_model *model = (pph_model *)(uintptr_t)8;
  pph_status status = pph_model_load_bytes("", 0, NULL, given, &model, error);
  assert_null(model);
  return status;
}

static pph_status take_model(void *given, pph_error *error) {
  return load(given, error);
}

static pph_status take_model_limits(void *given, pph_error *error) {
  pph_model_options options;
  pph_model_options_init(&options);
  options.limits = given;
  return load(&options, error);
}

static pph_status open_session(const pph_session_options *options,
                               pph_error *error) {
  pph_model *model;
  pph_session *session = (pph_session *)(uintptr_t)8;
  test_assert_ok(pph_model_load(path, NULL, &model, error), error);
  pph_status status = pph_session_create(model, options, &session, error);
  if (status != PPH_OK)
    assert_null(session);
  pph_session_destroy(session);
  pph_model_destroy(model);
  return status;
}

static pph_status take_session(void *given, pph_error *error) {
  return open_session(given, error);
}

static pph_status take_session_limits(void *given, pph_error *error) {
  pph_session_options options;
  pph_session_options_init(&options);
  options.limits = given;
  return open_session(&options, error);
}

static pph_status take_transposed(void *given, pph_error *error) {
  pph_conv_transpose *op = (pph_conv_transpose *)(uintptr_t)8;
  pph_status status =
      pph_conv_transpose_create(given, weights, NULL, &op, error);
  if (status != PPH_OK)
    assert_null(op);
  pph_conv_transpose_destroy(op);
  return status;
}

static pph_status take_conv(void *given, pph_error *error) {
  pph_conv *op = (pph_conv *)(uintptr_t)8;
  pph_status status = pph_conv_create(given, weights, NULL, &op, error);
  if (status != PPH_OK)
    assert_null(op);
  pph_conv_destroy(op);
  return status;
}

static pph_status open_stream(const pph_conv_desc *desc,
                              const pph_conv_stream_options *options,
                              pph_error *error) {
  pph_conv_stream *stream = (pph_conv_stream *)(uintptr_t)8;
  pph_status status =
      pph_conv_stream_create(desc, options, weights, NULL, &stream, error);
  if (status != PPH_OK)
    assert_null(stream);
  pph_conv_stream_destroy(stream);
  return status;
}

static pph_status take_stream(void *given, pph_error *error) {
  pph_conv_stream_options options;
  pph_conv_stream_options_init(&options);
  options.longest = 1;
  return open_stream(given, &options, error);
}

static pph_status take_stream_options(void *given, pph_error *error) {
  pph_conv_desc desc;
  pph_conv_desc_init(&desc);
  desc.axes = 1;
  desc.in_channels = desc.out_channels = desc.kernel[0] = 2;
  return open_stream(&desc, given, error);
}

static pph_status take_operator_limits(void *given, pph_error *error) {
  pph_conv_desc desc;
  pph_conv_desc_init(&desc);
  desc.axes = 1;
  desc.in_channels = desc.out_channels = desc.kernel[0] = 2;
  desc.limits = given;
  pph_status status = take_stream(&desc, error);
  assert_int_equal(take_conv(&desc, NULL), status);
  assert_int_equal(take_transposed(&desc, NULL), status);
  return status;
}

typedef struct struct_row {
  const char *name;
  size_t size;
  taker *take;
} struct_row;

static const struct_row rows[] = {
    {"pph_model_options", sizeof(pph_model_options), take_model},
    {"pph_model_options", sizeof(pph_model_options), load_bytes},
    {"pph_session_options", sizeof(pph_session_options), take_session},
    {"pph_conv_desc", sizeof(pph_conv_desc), take_transposed},
    {"pph_conv_desc", sizeof(pph_conv_desc), take_conv},
    {"pph_conv_desc", sizeof(pph_conv_desc), take_stream},
    {"pph_conv_stream_options", sizeof(pph_conv_stream_options),
     take_stream_options},
    {"pph_limits", sizeof(pph_limits), take_model_limits},
    {"pph_limits", sizeof(pph_limits), take_session_limits},
    {"pph_limits", sizeof(pph_limits), take_operator_limits}};

/* A struct of which `room` bytes lie before a guard page. */
static void check_refused(const struct_row *row, size_t size, size_t room) {
  guarded memory = guarded_make(room / sizeof(float), GUARDED_END);
  memcpy(memory.data, &size, sizeof size);
  pph_error error = {0};
  char expected[128];
  snprintf(expected, sizeof expected,
           "struct_size is %zu, must be %zu: call %s_init first", size,
           row->size, row->name);
  assert_int_equal(row->take(memory.data, &error), PPH_INVALID_ARGUMENT);
  assert_string_equal(error.where, row->name);
  assert_string_equal(error.message, expected);
  assert_true(guarded_intact(&memory));
  guarded_drop(&memory);
}

static void test_refused(void **state) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct_row *row = &rows[i];
    check_refused(row, 0, sizeof(size_t));
    for (size_t size = sizeof(size_t); size < row->size; size += 8)
      check_refused(row, size, size);
    check_refused(row, row->size + 8, row->size + 8);
    check_refused(row, SIZE_MAX, row->size);
  }
}

/* What the same functions take. */
static void test_taken(void **state) {
  pph_model_options model;
  pph_session_options session;
  pph_limits limits;
  pph_error error = {0};
  pph_model_options_init(&model);
  pph_session_options_init(&session);
  pph_limits_init(&limits);
  test_assert_ok(take_model(&model, &error), &error);
  test_assert_ok(take_session(&session, &error), &error);
  test_assert_ok(take_model_limits(&limits, &error), &error);
  test_assert_ok(take_session_limits(&limits, &error), &error);
  test_assert_ok(take_operator_limits(&limits, &error), &error);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_taken)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
