/* Allocation n fails, for every n, on load + optimize + run: an out-of-memory
   error comes back, and nothing leaks. */
#include <stdio.h>

#include "polyphase/polyphase.h"
#include "test_support.h"

static pph_status run_once(test_failing *memory, const char *path,
                           pph_engine engine, pph_error *error) {
  static float pixels[3 * 6 * 6];
  pph_allocator allocator = test_failing_allocator(memory);
  pph_model_options model_options;
  pph_session_options options;
  pph_model_options_init(&model_options);
  model_options.allocator = &allocator;
  pph_session_options_init(&options);
  options.engine = engine;
  options.lowering = PPH_LOWERING_ALWAYS;
  pph_model *model;
  pph_session *session = NULL;
  pph_tensor input = {PPH_F32, {4, {1, 3, 6, 6}}, pixels}, output;
  pph_status status = pph_model_load(path, &model_options, &model, error);
  if (status != PPH_OK) {
    assert_null(model);
    return status;
  }
  status = pph_session_create(model, &options, &session, error);
  if (status == PPH_OK)
    status = pph_session_run(session, &input, 1, &output, 1, error);
  if (status == PPH_OK)
    assert_int_equal(output.shape.dims[2], 12);
  pph_session_destroy(session);
  pph_model_destroy(model);
  return status;
}

static void fail_each(const char *path, pph_engine engine) {
  for (size_t n = 1;; n++) {
    test_failing memory = {.fail_at = n};
    pph_error error = {0};
    pph_status status = run_once(&memory, path, engine, &error);
    assert_int_equal(memory.open, 0);
    if (memory.count < n) {
      test_assert_ok(status, &error);
      printf("%zu allocations\n", n - 1);
      return;
    }
    if (status != PPH_OUT_OF_MEMORY)
      fail_msg("allocation %zu failed, and the status is %s", n,
               pph_status_name(status));
  }
}

static void test_xnnpack(void **state) {
  fail_each(PPH_SOURCE_DIR "/examples/upscale/upscale.onnx",
            PPH_ENGINE_XNNPACK);
}

static void test_reference(void **state) {
  fail_each(PPH_SOURCE_DIR "/examples/upscale/upscale.onnx",
            PPH_ENGINE_REFERENCE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_xnnpack),
                                     cmocka_unit_test(test_reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
