/* ONNX's own conformance cases for transposed convolution, convolution, depth
   to space and resize, on every engine, optimized and not. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "model_case.h"
#include "onnx_subset.pb-c.h"
#include "test_support.h"

/* Cases of operators that Polyphase does not have. */
static const char *const left_out[] = {"deform_conv", "col2im", "convinteger",
                                       "qlinearconv", NULL};

static bool is_left_out(const char *name) {
  for (int i = 0; left_out[i]; i++)
    if (strstr(name, left_out[i]))
      return true;
  return false;
}

static void *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  void *bytes = malloc(*length + 1);
  assert_int_equal(fread(bytes, 1, *length, file), *length);
  fclose(file);
  return bytes;
}

/* The typed field that holds the elements when raw_data is absent. */
static void copy_typed(const Pph__Onnx__TensorProto *proto, size_t count,
                       pph_tensor *tensor) {
  for (size_t i = 0; i < count; i++) {
    if (tensor->type == PPH_F32)
      ((float *)tensor->data)[i] = proto->float_data[i];
    else if (tensor->type == PPH_I64)
      ((int64_t *)tensor->data)[i] = proto->int64_data[i];
    else
      fail_msg("type %d without raw data", tensor->type);
  }
}

static bool load_tensor(const char *path, pph_tensor *tensor) {
  size_t length, bytes, count;
  void *file = read_file(path, &length);
  if (!file)
    return false;
  Pph__Onnx__TensorProto *proto =
      pph__onnx__tensor_proto__unpack(NULL, length, file);
  assert_non_null(proto);
  *tensor = (pph_tensor){(pph_dtype)proto->data_type,
                         {(int32_t)proto->n_dims, {0}},
                         NULL};
  for (size_t i = 0; i < proto->n_dims; i++)
    tensor->shape.dims[i] = proto->dims[i];
  assert_true(pph_shape_bytes(&tensor->shape, tensor->type, &bytes));
  assert_true(pph_shape_count(&tensor->shape, &count));
  tensor->data = calloc(bytes + 1, 1);
  if (proto->raw_data.len)
    memcpy(tensor->data, proto->raw_data.data, bytes);
  else
    copy_typed(proto, count, tensor);
  pph__onnx__tensor_proto__free_unpacked(proto, NULL);
  free(file);
  return true;
}

static void run_case(const char *folder) {
  char path[4096], model[4096];
  snprintf(model, sizeof model, "%s/model.onnx", folder);
  model_case one = {.path = model, .absolute = 1e-4, .relative = 1e-4};
  for (; one.input_count < CASE_MAX; one.input_count++) {
    snprintf(path, sizeof path, "%s/test_data_set_0/input_%u.pb", folder,
             one.input_count);
    if (!load_tensor(path, &one.inputs[one.input_count]))
      break;
  }
  for (; one.output_count < CASE_MAX; one.output_count++) {
    snprintf(path, sizeof path, "%s/test_data_set_0/output_%u.pb", folder,
             one.output_count);
    if (!load_tensor(path, &one.outputs[one.output_count]))
      break;
  }
  assert_true(one.output_count > 0);
  model_case_check_all(&one);
  model_case_clear(&one);
}

/* Every case folder below `relative`; how many were run. */
static int run_folder(const char *relative) {
  const char *shared = test_shared_path(relative);
  if (!shared)
    return -1;
  char root[1024], path[2048];
  snprintf(root, sizeof root, "%s", shared);
  DIR *folder = opendir(root);
  assert_non_null(folder);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (strncmp(entry->d_name, "test_", 5) || is_left_out(entry->d_name))
      continue;
    snprintf(path, sizeof path, "%s/%s", root, entry->d_name);
    run_case(path);
    count++;
  }
  closedir(folder);
  printf("%s: %d cases\n", relative, count);
  return count;
}

static void test_node_cases(void **state) {
  int count = run_folder("models/onnx-backend-node");
  if (count < 0)
    skip();
  assert_true(count >= 59);
}

static void test_pytorch_cases(void **state) {
  int converted = run_folder("models/onnx-backend-pytorch/pytorch-converted");
  if (converted < 0)
    skip();
  assert_int_equal(converted, 3);
  assert_int_equal(run_folder("models/onnx-backend-pytorch/pytorch-operator"),
                   1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_node_cases),
                                     cmocka_unit_test(test_pytorch_cases)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
