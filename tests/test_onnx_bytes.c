/* Files that are damaged or made to harm: cut off, bits turned over, nested,
   repeated, random; and memory that runs out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model_writer.h"
#include "onnx/onnx.h"
#include "test_support.h"

/* Helpers for writing models; one definition for the tests of ONNX. */
#include "model_writer.h"

static const char small_model[] =
    "opset 9;ir 4;in x f32 Nx4x6x8;init w f32 4x2x2x2 1 2 3 4 5 6 7 8 9 10 11 "
    "12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32;"
    "typed b f32 2 1 2;unpacked s f32 4 1 1 2 2;"
    "node ConvTranspose x w b -> a strides=is:2,2 pads=is:0,0,0,0 @name=up;"
    "node Clip a -> c min=f:0 max=f:6;node Upsample c s -> d mode=s:nearest;"
    "node Constant -> k value=t:i64:4:0,-1,4,4;node Slice d -> e axes=is:1 "
    "starts=is:0 ends=is:1;node Reshape e k -> f;node Softmax f -> g;"
    "node Sum g f g -> h;node Dropout h -> y mask;out y f32 Nx1x4x4;out a";

/* Loads bytes; whatever comes, all memory is given back. */
static pph_status try_bytes(const void *bytes, size_t length,
                            pph_error *error) {
  pph_heap heap;
  pph_graph graph;
  *error = (pph_error){0};
  pph_heap_init(&heap, NULL, (uint64_t)1 << 30);
  pph_graph_init(&graph, &heap, NULL);
  pph_status status = pph_onnx_import(bytes, length, NULL, NULL, &graph, error);
  pph_graph_clear(&graph);
  assert_int_equal(atomic_load(&heap.used), 0);
  if (status != PPH_OK) {
    assert_int_equal(error->status, status);
    assert_true(error->message[0]);
    assert_int_not_equal(status, PPH_INVALID_ARGUMENT);
  }
  return status;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void test_small_model_loads(void **state) {
  model_bytes bytes = model_write(small_model);
  pph_error error;
  test_assert_ok(try_bytes(bytes.data, bytes.length, &error), &error);
  model_bytes_free(&bytes);
}

/* A copy of exactly the length, so that a sanitizer sees a read beyond. */
static pph_status try_copy(const void *bytes, size_t length, pph_error *error) {
  unsigned char *copy = malloc(length ? length : 1);
  assert_non_null(copy);
  memcpy(copy, bytes, length);
  pph_status status = try_bytes(copy, length, error);
  free(copy);
  return status;
}

static void test_truncations(void **state) {
  model_bytes bytes = model_write(small_model);
  pph_error error;
  for (size_t length = 0; length < bytes.length; length++)
    assert_int_not_equal(try_copy(bytes.data, length, &error), PPH_OK);
  model_bytes_free(&bytes);
}

static void test_bit_flips(void **state) {
  model_bytes bytes = model_write(small_model);
  pph_error error;
  double start = seconds();
  for (size_t at = 0; at < bytes.length; at++)
    for (unsigned bit = 0; bit < 8; bit++) {
      bytes.data[at] ^= (unsigned char)(1u << bit);
      (void)!try_copy(bytes.data, bytes.length, &error);
      bytes.data[at] ^= (unsigned char)(1u << bit);
    }
  assert_true(seconds() - start < 60);
  model_bytes_free(&bytes);
}

/* Several bytes replaced at once. */
static void test_random_damage(void **state) {
  model_bytes bytes = model_write(small_model);
  test_random random = {test_seed("test_random_damage")};
  unsigned char *copy = malloc(bytes.length);
  assert_non_null(copy);
  pph_error error;
  for (int round = 0; round < 20000; round++) {
    memcpy(copy, bytes.data, bytes.length);
    for (int64_t i = test_random_range(&random, 1, 4); i > 0; i--) {
      int64_t last = (int64_t)bytes.length - 1;
      copy[test_random_range(&random, 0, last)] =
          (unsigned char)test_random_next(&random);
    }
    (void)!try_bytes(copy, bytes.length, &error);
  }
  free(copy);
  model_bytes_free(&bytes);
}

static void test_random_bytes(void **state) {
  test_random random = {test_seed("test_random_bytes")};
  unsigned char bytes[64];
  pph_error error;
  for (int round = 0; round < 20000; round++) {
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (unsigned char)test_random_next(&random);
    size_t length = (size_t)test_random_range(&random, 0, sizeof bytes);
    assert_int_not_equal(try_copy(bytes, length, &error), PPH_OK);
  }
}

static void test_other_files(void **state) {
  static const char *const texts[] = {"", "hello", "PK\3\4", "{\"a\": 1}",
                                      "\x89PNG\r\n\x1a\n"};
  pph_error error;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    assert_int_equal(try_copy(texts[i], strlen(texts[i]), &error),
                     PPH_BAD_MODEL);
}

/* Messages inside messages, built from the innermost out. */

typedef struct nest {
  unsigned char *data;
  size_t start, end;
} nest;

static void wrap(nest *it, unsigned field) {
  uint64_t length = it->end - it->start;
  unsigned char head[16];
  size_t count = 0;
  head[count++] = (unsigned char)(field << 3 | 2);
  do {
    head[count++] = (length & 0x7f) | (length > 0x7f ? 0x80 : 0);
    length >>= 7;
  } while (length);
  it->start -= count;
  memcpy(it->data + it->start, head, count);
}

/* `depth` times a graph in an attribute (field 6 or 11) of a node. */
static pph_status try_nested(int depth, unsigned field, pph_error *error) {
  size_t size = (size_t)depth * 24 + 64;
  nest it = {malloc(size), size, size};
  assert_non_null(it.data);
  for (int i = 0; i < depth; i++) {
    wrap(&it, field); /* AttributeProto.g or graphs */
    wrap(&it, 5);     /* NodeProto.attribute */
    wrap(&it, 1);     /* GraphProto.node */
  }
  wrap(&it, 7); /* ModelProto.graph */
  pph_status status = try_bytes(it.data + it.start, it.end - it.start, error);
  free(it.data);
  return status;
}

static void test_deep_nesting(void **state) {
  pph_error error;
  double start = seconds();
  assert_int_equal(try_nested(100000, 6, &error), PPH_LIMIT_EXCEEDED);
  assert_non_null(strstr(error.message, "deeper than the limit of 64"));
  assert_int_equal(try_nested(100000, 11, &error), PPH_LIMIT_EXCEEDED);
  assert_true(seconds() - start < 1);
  /* few levels are legal and refused for what they are */
  assert_int_not_equal(try_nested(10, 6, &error), PPH_LIMIT_EXCEEDED);
  assert_int_not_equal(try_nested(20, 11, &error), PPH_LIMIT_EXCEEDED);
  assert_int_equal(try_nested(22, 11, &error), PPH_LIMIT_EXCEEDED);
}

static void test_nesting_limit(void **state) {
  model_bytes bytes = model_write(small_model);
  pph_limits limits;
  pph_limits_init(&limits);
  for (uint32_t nesting = 0; nesting < 10; nesting++) {
    pph_heap heap;
    pph_graph graph;
    pph_error error = {0};
    limits.nesting = nesting;
    pph_heap_init(&heap, NULL, 0);
    pph_graph_init(&graph, &heap, &limits);
    /* model, graph, input, type, tensor, shape, dimension */
    assert_int_equal(pph_onnx_import(bytes.data, bytes.length, NULL, &limits,
                                     &graph, &error),
                     nesting < 7 ? PPH_LIMIT_EXCEEDED : PPH_OK);
    pph_graph_clear(&graph);
  }
  model_bytes_free(&bytes);
}

/* protobuf-c merges a single message that comes again: quadratic work. */
static void test_repeated_single_message(void **state) {
  model_bytes model = {0};
  pph_error error;
  for (int i = 0; i < 50000; i++) {
    model_bytes graph = {0}, node = {0};
    model_put_text(&node, 4, "Relu");
    model_put_message(&graph, 1, &node);
    model_put_message(&model, 7, &graph);
  }
  double start = seconds();
  assert_int_equal(try_bytes(model.data, model.length, &error), PPH_BAD_MODEL);
  assert_non_null(strstr(error.message, "graph of ModelProto occurs twice"));
  assert_true(seconds() - start < 1);
  model_bytes_free(&model);
}

/* Two bytes a message in the file, hundreds in memory: bounded by a limit. */
static void test_many_empty_messages(void **state) {
  model_bytes model = {0}, graph = {0};
  pph_limits limits;
  pph_error error = {0};
  for (int i = 0; i < 1200000; i++)
    model_put_bytes(&graph, 1, "", 0);
  model_put_message(&model, 7, &graph);
  pph_limits_init(&limits);
  limits.nodes = 100;
  pph_heap heap;
  pph_graph imported;
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&imported, &heap, &limits);
  assert_int_equal(pph_onnx_import(model.data, model.length, NULL, &limits,
                                   &imported, &error),
                   PPH_LIMIT_EXCEEDED);
  pph_graph_clear(&imported);
  assert_true(atomic_load(&heap.peak) < 1 << 16);
  model_bytes_free(&model);
}

static void test_wire_errors(void **state) {
  static const struct {
    const char *bytes;
    size_t length;
    const char *message;
  } cases[] = {
      {"\x0b", 1, "unknown kind"}, /* a group begins */
      {"\x0c", 1, "unknown kind"}, /* a group ends */
      {"\x0f", 1, "unknown kind"}, /* wire type 7 */
      {"\x00\x01", 2, "number is out of range"},
      {"\x80\x80\x80\x80\x10\x01", 6, "number is out of range"},
      {"\x08", 1, "cut off"},
      {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, "10 bytes"},
      {"\x3a\x05\x0a", 3, "longer than"},
      {"\x3a\x02\x0a\x05", 4, "longer than"},
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "longer than"},
      {"\x09\x01", 2, "longer than"},
      {"\x0d\x01", 2, "longer than"},
      {"\x38\x01", 2, "wrong type"}, /* graph as a number */
  };
  pph_error error;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(try_copy(cases[i].bytes, cases[i].length, &error),
                     PPH_BAD_MODEL);
    if (!strstr(error.message, cases[i].message))
      fail_msg("case %zu: %s", i, error.message);
  }
}

/* Fields that our subset does not know, of every wire type, in the model and in
   its graph. */
static void test_unknown_fields(void **state) {
  model_bytes model = model_write("opset 13;in x f32 2;node Relu x -> y;out y");
  pph_error error;
  model_put_number(&model, 1000, UINT64_MAX);
  model_put_float(&model, 1001, 1.0f);
  model_put_text(&model, 536870911, "anything \xff\xff\xff");
  model_put_varint(&model, 1002 << 3 | 1);
  for (int i = 0; i < 8; i++)
    model_put_varint(&model, 0x7f);
  test_assert_ok(try_bytes(model.data, model.length, &error), &error);
  model_bytes_free(&model);
}

static void put_info(model_bytes *graph, unsigned field, const char *name) {
  model_bytes info = {0}, type = {0}, tensor = {0};
  model_put_text(&info, 1, name);
  model_put_number(&tensor, 1, 1);
  model_put_message(&type, 1, &tensor);
  model_put_message(&info, 2, &type);
  model_put_message(graph, field, &info);
}

/* Concat whose attribute axis does not say its type, as in old files. */
static model_bytes write_untyped(bool as_float) {
  model_bytes model = {0}, opset = {0}, graph = {0}, node = {0};
  model_bytes attribute = {0};
  model_put_text(&attribute, 1, "axis");
  if (as_float)
    model_put_float(&attribute, 2, 1.0f);
  else
    model_put_number(&attribute, 3, 1);
  model_put_text(&node, 1, "x");
  model_put_text(&node, 2, "y");
  model_put_text(&node, 4, "Concat");
  model_put_message(&node, 5, &attribute);
  model_put_message(&graph, 1, &node);
  put_info(&graph, 11, "x");
  put_info(&graph, 12, "y");
  model_put_number(&opset, 2, 13);
  model_put_message(&model, 8, &opset);
  model_put_message(&model, 7, &graph);
  return model;
}

static void test_untyped_attributes(void **state) {
  pph_error error;
  model_bytes good = write_untyped(false), bad = write_untyped(true);
  test_assert_ok(try_bytes(good.data, good.length, &error), &error);
  assert_int_equal(try_bytes(bad.data, bad.length, &error), PPH_BAD_MODEL);
  assert_non_null(strstr(error.message, "is a float, must be an int"));
  model_bytes_free(&good);
  model_bytes_free(&bad);
}

/* Memory that runs out at every point */

typedef struct scarce {
  size_t left;
} scarce;

static void *allocate_scarce(void *context, size_t alignment, size_t size) {
  scarce *memory = context;
  void *block = NULL;
  if (memory->left == 0)
    return NULL;
  memory->left--;
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

static void release_scarce(void *context, void *block) { free(block); }

static void test_memory_runs_out(void **state) {
  model_bytes bytes = model_write(small_model);
  pph_status status = PPH_OUT_OF_MEMORY;
  size_t allowed = 0;
  for (; status != PPH_OK; allowed++) {
    scarce memory = {allowed};
    pph_allocator allocator = {&memory, allocate_scarce, release_scarce};
    pph_heap heap;
    pph_graph graph;
    pph_error error = {0};
    pph_heap_init(&heap, &allocator, 0);
    pph_graph_init(&graph, &heap, NULL);
    status =
        pph_onnx_import(bytes.data, bytes.length, NULL, NULL, &graph, &error);
    if (status != PPH_OK)
      assert_int_equal(status, PPH_OUT_OF_MEMORY);
    pph_graph_clear(&graph);
    assert_int_equal(atomic_load(&heap.used), 0);
    assert_true(allowed < 10000);
  }
  assert_true(allowed > 3);
  model_bytes_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_model_loads),
      cmocka_unit_test(test_truncations),
      cmocka_unit_test(test_bit_flips),
      cmocka_unit_test(test_random_damage),
      cmocka_unit_test(test_random_bytes),
      cmocka_unit_test(test_other_files),
      cmocka_unit_test(test_deep_nesting),
      cmocka_unit_test(test_nesting_limit),
      cmocka_unit_test(test_repeated_single_message),
      cmocka_unit_test(test_many_empty_messages),
      cmocka_unit_test(test_wire_errors),
      cmocka_unit_test(test_unknown_fields),
      cmocka_unit_test(test_untyped_attributes),
      cmocka_unit_test(test_memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
