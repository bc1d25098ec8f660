/* Small models from public bug reports: right values exactly, and refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "model_case.h"
#include "test_support.h"

static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  size_t length = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(length + 1, 1);
  assert_int_equal(fread(text, 1, length, file), length);
  fclose(file);
  return text;
}

/* The text after `"key":` within the object that starts at `object`. */
static const char *find_field(const char *object, const char *key) {
  char quoted[40];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(object, quoted);
  assert_non_null(at);
  at += strlen(quoted);
  return at + strspn(at, " \n");
}

static bool field_is(const char *object, const char *key, const char *value) {
  char quoted[40];
  snprintf(quoted, sizeof quoted, "\"%s\"", value);
  return strncmp(find_field(object, key), quoted, strlen(quoted)) == 0;
}

static pph_shape read_shape(const char *at) {
  pph_shape shape = {0};
  assert_int_equal(*at, '[');
  while (*at != ']') {
    char *end;
    shape.dims[shape.rank++] = strtoll(at + 1, &end, 10);
    at = end + strspn(end, " \n");
  }
  return shape;
}

static pph_tensor make_tensor(pph_shape shape) {
  size_t count;
  assert_true(pph_shape_count(&shape, &count));
  return (pph_tensor){PPH_F32, shape, calloc(count + 1, sizeof(float))};
}

static void check_values(const char *object, const char *path) {
  model_case one = {.path = path, .input_count = 1, .output_count = 1};
  size_t count;
  one.inputs[0] = make_tensor(read_shape(find_field(object, "x")));
  assert_true(pph_shape_count(&one.inputs[0].shape, &count));
  if (field_is(object, "fill", "ramp"))
    test_fill_ramp(one.inputs[0].data, count);
  else
    test_fill_x(one.inputs[0].data, count);
  one.outputs[0] = make_tensor(read_shape(find_field(object, "shape")));
  assert_true(pph_shape_count(&one.outputs[0].shape, &count));
  char reference[2048];
  snprintf(reference, sizeof reference, "%.*sref",
           (int)(strlen(path) - strlen("onnx")), path);
  FILE *file = fopen(reference, "rb");
  assert_non_null(file);
  assert_int_equal(fread(one.outputs[0].data, sizeof(float), count, file),
                   count);
  fclose(file);
  /* Batch normalization takes a square root: not exact by itself. */
  if (strstr(path, "P_bn_"))
    one.relative = one.absolute = 1e-6;
  model_case_check_all(&one);
  model_case_clear(&one);
}

/* Refused at load or at the first run, with a place and a message. */
static void check_refusal(const char *object, const char *path) {
  pph_model *model;
  pph_error error = {0};
  pph_status status = pph_model_load(path, NULL, &model, &error);
  if (status == PPH_OK) {
    pph_session *session;
    pph_tensor input = make_tensor(read_shape(find_field(object, "x")));
    pph_tensor output;
    test_assert_ok(pph_session_create(model, NULL, &session, &error), &error);
    status = pph_session_run(session, &input, 1, &output, 1, &error);
    assert_null(output.data);
    pph_session_destroy(session);
    pph_model_destroy(model);
    free(input.data);
  }
  if (status == PPH_OK)
    fail_msg("%s was not refused", path);
  printf("  %s: %s: %s\n", strrchr(path, '/') + 1, error.where,
         error.message);
  assert_true(status == PPH_BAD_MODEL || status == PPH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.where, "node"));
  assert_true(strlen(error.message) > 10);
}

static void test_cases(void **state) {
  const char *list = test_shared_path("bug-cases/cases.json");
  if (!list)
    skip();
  char folder[1024], path[2048];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(list, '/') - list),
           list);
  char *text = read_text(list);
  int values = 0, refusals = 0;
  for (const char *at = strstr(text, "\"id\":"); at;
       at = strstr(at + 1, "\"id\":")) {
    const char *id = strchr(find_field(at, "id"), '"') + 1;
    snprintf(path, sizeof path, "%s/%.*s.onnx", folder,
             (int)strcspn(id, "\""), id);
    if (field_is(at, "expect", "ok")) {
      check_values(at, path);
      values++;
    } else {
      check_refusal(at, path);
      refusals++;
    }
  }
  free(text);
  assert_int_equal(values, 43);
  assert_int_equal(refusals, 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
