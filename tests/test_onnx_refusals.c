/* Models that are refused: each with its status, its place and its words. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model_writer.h"
#include "onnx/onnx.h"
#include "polyphase/model.h"
#include "test_support.h"

/* Helpers for writing models; one definition for the tests of ONNX. */
#include "model_writer.h"

typedef struct refusal {
  const char *text;
  pph_status status;
  const char *where, *message; /* parts of them */
} refusal;

static pph_status import_text(const char *text, const char *folder,
                              pph_error *error) {
  model_bytes bytes = model_write(text);
  pph_heap heap;
  pph_graph graph;
  *error = (pph_error){0};
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&graph, &heap, NULL);
  pph_status status =
      pph_onnx_import(bytes.data, bytes.length, folder, NULL, &graph, error);
  pph_graph_clear(&graph);
  assert_int_equal(atomic_load(&heap.used), 0);
  model_bytes_free(&bytes);
  return status;
}

static void check_refusal(const refusal *one, const char *folder) {
  pph_error error;
  pph_status status = import_text(one->text, folder, &error);
  if (status != one->status || error.status != status ||
      !strstr(error.where, one->where) || !strstr(error.message, one->message))
    fail_msg("%s\n  gives %s, %s: %s\n  expected %s, %s: %s", one->text,
             pph_status_name(status), error.where, error.message,
             pph_status_name(one->status), one->where, one->message);
}

#define B PPH_BAD_MODEL
#define U PPH_UNSUPPORTED
#define L PPH_LIMIT_EXCEEDED
#define X4 "in x f32 1x4x6x8;out y;"

static const refusal refusals[] = {
    /* the model */
    {"in x f32 1;node Relu x -> y;out y", B, "", "declares no opset"},
    {"opset ai.onnx.ml 2;in x f32 1;node Relu x -> y;out y", B, "",
     "declares no opset"},
    {"opset 5;" X4 "node Relu x -> y", U, "", "opset 5, opsets 6 to"},
    {"opset 99;" X4 "node Relu x -> y", U, "", "opset 99, opsets 6 to"},
    {"opset 13;in x f32 1;node Relu x -> y", B, "", "has no outputs"},
    /* operators */
    {"opset 13;" X4 "node Mish x -> y", U, "node 0 Mish",
     "operator Mish is not supported"},
    {"opset 13;" X4 "node Mean x x -> y @name=m", U, "node 0 Mean \"m\"",
     "operator Mean"},
    {"opset 13;opset com.x 1;" X4 "node Relu x -> z;node com.x::Relu z -> y", U,
     "node 1 Relu", "com.x::Relu"},
    {"opset 13;" X4 "node If x -> y then_branch=g: else_branch=g:", U,
     "node 0 If", "operator If"},
    {"opset 13;" X4 "node Relu x -> y alpha=f:1", U, "node 0 Relu",
     "attribute \"alpha\" is not supported"},
    {"opset 8;" X4 "node Erf x -> y", B, "node 0 Erf",
     "from opset 9 on, the model has opset 8"},
    {"opset 10;" X4 "node Upsample x x -> y", B, "node 0 Upsample",
     "until opset 9"},
    /* attributes */
    {"opset 13;" X4 "node LeakyRelu x -> y alpha=i:1", B, "LeakyRelu",
     "attribute \"alpha\" is an int, must be a float"},
    {"opset 13;" X4 "node Concat x -> y axis=is:1", B, "Concat",
     "attribute \"axis\" is ints, must be an int"},
    {"opset 13;" X4 "node Concat x -> y axis=g:", B, "Concat",
     "attribute \"axis\" is a graph, must be an int"},
    {"opset 13;" X4 "node Concat x -> y axis=i:1 axis=i:1", B, "Concat",
     "attribute \"axis\" is twice"},
    {"opset 13;" X4 "node Clip x -> y min=f:0", B, "Clip",
     "attribute \"min\" is an input from opset 11 on"},
    {"opset 13;" X4 "node Squeeze x -> y axes=is:0", B, "Squeeze",
     "an input from opset 13 on"},
    {"opset 10;" X4 "node Slice x -> y starts=is:0 ends=is:1", B, "Slice",
     "an input from opset 10 on"},
    {"opset 9;" X4 "node Slice x -> y starts=is:0", B, "Slice",
     "has no attribute"},
    {"opset 9;" X4 "node Pad x -> y", B, "Pad", "has no attribute \"pads\""},
    {"opset 9;in x f64 1;out y;node Clip x x -> y", B, "Clip",
     "has 2 inputs, before opset 11 it has 1"},
    {"opset 9;in x i32 1;out y;node Clip x -> y min=f:0", U, "Clip",
     "not supported for i32"},
    {"opset 7;" X4 "node Add x x -> y broadcast=i:1", B, "Add",
     "until opset 6"},
    {"opset 6;" X4 "init b f32 4 1 1 1 1;node Add x b -> y broadcast=i:1 "
     "axis=i:4",
     B, "Add", "axis is 4, must be 0 to 3"},
    {"opset 6;in x f32;out y;init b f32 4 1 1 1 1;node Add x b -> y "
     "broadcast=i:1 axis=i:1",
     U, "Add", "unknown rank"},
    {"opset 6;in x f32;out y;init b f32 4 1 1 1 1;node PRelu x b -> y", U,
     "PRelu", "unknown rank"},
    {"opset 18;" X4 "node Split x -> y z num_outputs=i:3", B, "Split",
     "num_outputs is 3, the node has 2 outputs"},
    {"opset 18;in a i64 1;" X4 "node ReduceMean x a -> y "
     "noop_with_empty_axes=i:1",
     U, "ReduceMean", "noop_with_empty_axes"},
    {"opset 10;" X4 "node Resize x -> y", B, "Resize", "two inputs"},
    {"opset 10;" X4 "init s f32 4 1 1 2 0.5;node Resize x s -> y", U, "Resize",
     "enlarging one axis and reducing another"},
    {"opset 11;" X4 "init e f32 0;node Resize x e e -> y", B, "Resize",
     "must have scales or sizes"},
    {"opset 13;" X4 "init s f32 4 1 1 2 2;init z i64 4 1 4 12 16;"
     "node Resize x _ s z -> y",
     B, "Resize", "not both"},
    {"opset 7;" X4 "node Upsample x -> y", B, "Upsample", "\"scales\""},
    {"opset 9;" X4 "node Upsample x x -> y scales=fs:1,1,2,2", B, "Upsample",
     "an input from opset 9 on"},
    /* forms that are not there */
    {"opset 6;" X4 "init a f32 4 1 1 1 1;"
     "node BatchNormalization x a a a a -> y spatial=i:0",
     U, "BatchNormalization", "spatial is 0, only 1"},
    {"opset 14;" X4 "init a f32 4 1 1 1 1;"
     "node BatchNormalization x a a a a -> y training_mode=i:1",
     U, "BatchNormalization", "training_mode is 1, only 0"},
    {"opset 14;" X4 "init a f32 4 1 1 1 1;"
     "node BatchNormalization x a a a a -> y m",
     U, "BatchNormalization", "outputs of training"},
    {"opset 13;" X4 "init t bool scalar 1;node Dropout x _ t -> y", U,
     "Dropout", "training_mode"},
    {"opset 13;" X4 "node MaxPool x -> y i kernel_shape=is:2,2", U, "MaxPool",
     "indices"},
    {"opset 13;" X4 "node MaxPool x -> y kernel_shape=is:2,2 storage_order=i:1",
     U, "MaxPool", "storage_order is 1, only 0"},
    {"opset 13;" X4 "node GRU x x x -> y hidden_size=i:8 layout=i:1", U, "GRU",
     "layout is 1, only 0"},
    {"opset 13;" X4 "node GRU x x x -> y hidden_size=i:8 clip=f:1", U, "GRU",
     "clip is not supported"},
    {"opset 13;" X4 "node GRU x x x -> y hidden_size=i:8 "
     "activations=ss:Tanh,Tanh",
     U, "GRU", "activations other than"},
    {"opset 14;" X4 "init s i64 2 0 -1;node Reshape x s -> y allowzero=i:1", U,
     "Reshape", "allowzero"},
    {"opset 13;" X4 "node Cast x -> y to=i:16", U, "Cast", "to is 16"},
    {"opset 13;" X4 "node Cast x -> y", B, "Cast", "to is 0"},
    {"opset 14;" X4 "node Shape x -> y start=i:1", B, "Shape",
     "from opset 15 on"},
    {"opset 13;" X4 "node DepthToSpace x -> y", B, "DepthToSpace",
     "has no attribute \"blocksize\""},
    {"opset 28;" X4 "node SpaceToDepth x -> y mode=s:CRD blocksize=i:2", U,
     "SpaceToDepth", "mode is \"CRD\", only \"DCR\""},
    {"opset 13;in s i64 2;out y;node ConstantOfShape s -> y "
     "value=t:f32:2:1,2",
     B, "ConstantOfShape", "another shape than [1]"},
    {"opset 13;out y;node Constant -> y", B, "Constant",
     "has 0 attributes, must have one"},
    {"opset 13;out y;node Constant -> y value_string=s:a", U, "Constant",
     "attribute \"value_string\""},
    {"opset 13;out y;node Constant -> y value=t:f32:3:1,2", B, "Constant",
     "raw_data has 8 bytes, dims need 12"},
    {"opset 12;" X4 "node Einsum x x -> y equation=s:abcd,abce->ab", U,
     "Einsum", "equation \"abcd,abce->ab\" of 2 operands"},
    {"opset 12;" X4 "node Einsum x -> y equation=s:abcd->abdc", U, "Einsum",
     "of 1 operands"},
    {"opset 12;" X4 "node Einsum x x -> y equation=s:...d,...d->...", U,
     "Einsum", "is not supported"},
    {"opset 12;" X4 "node Einsum x x -> y equation=s:aacd,abcd->b", U, "Einsum",
     "is not supported"},
    {"opset 12;" X4 "node Einsum x x -> y equation=s:abcd,abcd->abcdz", U,
     "Einsum", "is not supported"},
    {"opset 12;" X4 "node Einsum x x -> y equation=s:abcdefghi,a->b", U,
     "Einsum", "is not supported"},
    /* counts */
    {"opset 13;" X4 "node Relu x x -> y", B, "Relu",
     "has 2 inputs, must have 1"},
    {"opset 13;" X4 "node Conv x -> y", B, "Conv",
     "has 1 inputs, must have 2 to 3"},
    {"opset 13;" X4 "node Conv _ x -> y", B, "Conv", "input 0 is omitted"},
    {"opset 13;" X4 "node Concat x _ x -> y axis=i:1", B, "Concat",
     "input 1 is omitted"},
    {"opset 13;" X4 "node Concat -> y axis=i:1", B, "Concat",
     "has 0 inputs, must have at least 1"},
    {"opset 13;" X4 "node Relu x -> y z", B, "Relu",
     "has 2 outputs, must have 1"},
    {"opset 13;" X4 "node Relu x -> y;node Relu x ->", B, "node 1 Relu",
     "has no outputs"},
    /* what a shape check finds at load */
    {"opset 13;" X4 "init w f32 1x4x1x1 1 1 1 1;node Conv x w -> y "
     "strides=is:1,0",
     B, "node 0 Conv", "strides[1] is 0"},
    {"opset 13;" X4 "node DepthToSpace x -> y blocksize=i:0", B,
     "node 0 DepthToSpace", "blocksize"},
    /* names */
    {"opset 13;" X4 "node Relu nowhere -> y", B, "node 0 Relu",
     "input 0 \"nowhere\" is made by no node"},
    {"opset 13;in x f32 1;out z;node Relu x -> y", B, "output 0 \"z\"",
     "no node makes it"},
    {"opset 13;" X4 "out y;node Relu x -> y", B, "output 1 \"y\"",
     "listed twice"},
    {"opset 13;" X4 "node Relu x -> y;node Abs x -> y", B, "node 1 Abs",
     "\"y\" belongs to two values"},
    {"opset 13;" X4 "node Relu x -> x;node Abs x -> y", B, "node 0 Relu",
     "\"x\" belongs to two values"},
    {"opset 13;" X4 "in x f32 1;node Relu x -> y", B, "input 1 \"x\"",
     "\"x\" belongs to two values"},
    {"opset 13;" X4 "init w f32 1 1;init w f32 1 1;node Relu x -> y", B,
     "initializer 1 \"w\"", "belongs to two values"},
    {"opset 13;" X4 "init w f32 1 1;node Relu x -> w;node Relu x -> y", B,
     "node 0 Relu", "belongs to two values"},
    {"opset 13;" X4 "node Relu y -> a;node Relu a -> y", B, "Relu", "cycle"},
    {"opset 13;" X4 "node Relu y -> y", B, "Relu", "cycle"},
    /* inputs */
    {"opset 13;in x;out y;node Relu x -> y", B, "input 0 \"x\"", "no type"},
    {"opset 13;in x str 1;out y;node Relu x -> y", U, "input 0 \"x\"",
     "element type 8"},
    {"opset 13;in x f32 1x-2;out y;node Relu x -> y", B, "input 0 \"x\"",
     "dimension 1 is -2, must be at least 0"},
    {"opset 13;in x f32 1x1x1x1x1x1x1x1x1;out y;node Relu x -> y", U,
     "input 0 \"x\"", "has 9 dimensions, at most 8"},
    /* tensors */
    {"opset 13;init c f32 3 1 2;out c", B, "initializer 0 \"c\"",
     "raw_data has 8 bytes, dims need 12"},
    {"opset 13;init c f32 3;out c", B, "initializer 0 \"c\"",
     "its data has 0 elements, dims need 3"},
    {"opset 13;init c f32 1 1 2;out c", B, "initializer 0 \"c\"",
     "raw_data has 8 bytes, dims need 4"},
    {"opset 13;typed c f32 3 1 2;out c", B, "initializer 0 \"c\"",
     "its data has 2 elements, dims need 3"},
    {"opset 13;unpacked c i64 1 1 2;out c", B, "initializer 0 \"c\"",
     "its data has 2 elements, dims need 1"},
    {"opset 13;init c f32 -1 1;out c", B, "initializer 0 \"c\"",
     "dims[0] is -1, must be at least 0"},
    {"opset 13;init c f32 4294967296x4294967296x2 1;out c", L,
     "initializer 0 \"c\"", "more elements than can be counted"},
    {"opset 13;init c f32 9223372036854775807 1;out c", L,
     "initializer 0 \"c\"", "more elements than can be counted"},
    {"opset 13;init c f32 1099511627776 1;out c", L, "initializer 0 \"c\"",
     "the limit is"},
    {"opset 13;init c f32 1x1x1x1x1x1x1x1x1 1;out c", U, "initializer 0 \"c\"",
     "9 dimensions, at most 8"},
    {"opset 13;init c bf16 1 1;out c", U, "initializer 0 \"c\"",
     "element type 16"},
    {"opset 13;init c str 1 1;out c", U, "initializer 0 \"c\"",
     "element type 8"},
};

static void test_refusals(void **state) {
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    check_refusal(&refusals[i], NULL);
}

/* External data: a folder with a file in it, a link that leaves it, a link
   that stays, a folder and a pipe. */

typedef struct place {
  char root[64], folder[80], path[160];
} place;

static const char *join(place *where, const char *folder, const char *name) {
  snprintf(where->path, sizeof where->path, "%s/%s", folder, name);
  return where->path;
}

static void write_floats(const char *path, int count) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < count; i++) {
    float x = (float)i;
    fwrite(&x, sizeof x, 1, file);
  }
  fclose(file);
}

static void make_place(place *where) {
  char target[160];
  strcpy(where->root, "/tmp/polyphase-external-XXXXXX");
  assert_non_null(mkdtemp(where->root));
  snprintf(where->folder, sizeof where->folder, "%s/model", where->root);
  assert_int_equal(mkdir(where->folder, 0700), 0);
  assert_int_equal(mkdir(join(where, where->folder, "sub"), 0700), 0);
  write_floats(join(where, where->folder, "w.bin"), 8);
  write_floats(join(where, where->folder, "sub/w.bin"), 8);
  write_floats(join(where, where->root, "secret.bin"), 8);
  /* a neighbour whose name begins like the folder's */
  assert_int_equal(mkdir(join(where, where->root, "model2"), 0700), 0);
  write_floats(join(where, where->root, "model2/w.bin"), 8);
  snprintf(target, sizeof target, "%s/secret.bin", where->root);
  assert_int_equal(symlink(target, join(where, where->folder, "out.bin")), 0);
  assert_int_equal(
      symlink("../model2/w.bin", join(where, where->folder, "next.bin")), 0);
  assert_int_equal(symlink("..", join(where, where->folder, "up")), 0);
  assert_int_equal(symlink("w.bin", join(where, where->folder, "in.bin")), 0);
  assert_int_equal(symlink("loop", join(where, where->folder, "loop")), 0);
  assert_int_equal(mkfifo(join(where, where->folder, "pipe"), 0600), 0);
}

static void remove_place(place *where) {
  static const char *const files[] = {"w.bin",    "sub/w.bin", "out.bin",
                                      "next.bin", "up",        "in.bin",
                                      "loop",     "pipe"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    unlink(join(where, where->folder, files[i]));
  rmdir(join(where, where->folder, "sub"));
  unlink(join(where, where->root, "model2/w.bin"));
  rmdir(join(where, where->root, "model2"));
  unlink(join(where, where->root, "secret.bin"));
  rmdir(where->folder);
  assert_int_equal(rmdir(where->root), 0);
}

#define E(rest) "opset 13;external c f32 4 " rest ";out c"

static const refusal external_refusals[] = {
    {E("location=../secret.bin"), B, "initializer 0 \"c\"",
     "is not inside the model's folder"},
    {E("location=sub/../../secret.bin"), B, "", "is not inside"},
    {E("location=.."), B, "", "is not inside"},
    {E("location=/etc/passwd"), B, "", "is not inside"},
    {E("location=out.bin"), B, "", "leads out of the model's folder"},
    {E("location=next.bin"), B, "", "leads out of the model's folder"},
    {E("location=up/secret.bin"), B, "", "leads out of the model's folder"},
    {E("location=missing.bin"), PPH_IO_FAILED, "", "cannot be opened"},
    {E("location=loop"), PPH_IO_FAILED, "", "cannot be opened"},
    {E("location=sub"), B, "", "is not a regular file"},
    {E("location=."), B, "", "leads out"},
    {E("location=pipe"), B, "", "is not a regular file"},
    {E("location="), B, "", "has no location"},
    {E("offset=0"), B, "", "has no location"},
    {E("location=w.bin offset=20"), B, "",
     "has 32 bytes, 16 from byte 20 are needed"},
    {E("location=w.bin offset=9223372036854775807"), B, "", "are needed"},
    {E("location=w.bin offset=99999999999999999999"), B, "",
     "offset is \"99999999999999999999\", must be a number"},
    {E("location=w.bin offset=-1"), B, "", "must be a number"},
    {E("location=w.bin offset=1x"), B, "", "must be a number"},
    {E("location=w.bin length=15"), B, "",
     "external data has 15 bytes, dims need 16"},
};

/* Nobody writes to the pipe: opening it must not wait. */
static void test_model_is_pipe(void **state) {
  char path[] = "/tmp/pph-pipe-XXXXXX", pipe[sizeof path + 2];
  pph_model *model;
  pph_error error = {0};
  assert_non_null(mkdtemp(path));
  snprintf(pipe, sizeof pipe, "%s/m", path);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  assert_int_equal(pph_model_load(pipe, NULL, &model, &error), PPH_IO_FAILED);
  assert_string_equal(error.message, "is not a regular file");
  unlink(pipe);
  rmdir(path);
}

static void test_external_refusals(void **state) {
  place where;
  make_place(&where);
  for (size_t i = 0; i < sizeof external_refusals / sizeof *external_refusals;
       i++)
    check_refusal(&external_refusals[i], where.folder);
  remove_place(&where);
}

static void test_external_without_folder(void **state) {
  const refusal one = {E("location=w.bin"), PPH_IO_FAILED,
                       "initializer 0 \"c\"", "has no folder"};
  check_refusal(&one, NULL);
}

static void check_external(const char *text, const char *folder, float first,
                           const char *origin) {
  model_bytes bytes = model_write(text);
  pph_heap heap;
  pph_graph graph;
  pph_error error = {0};
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&graph, &heap, NULL);
  test_assert_ok(
      pph_onnx_import(bytes.data, bytes.length, folder, NULL, &graph, &error),
      &error);
  const float *data = graph.values[0].data;
  for (int i = 0; i < 4; i++)
    assert_true(data[i] == first + (float)i);
  assert_string_equal(graph.values[0].origin.external, origin);
  pph_graph_clear(&graph);
  model_bytes_free(&bytes);
}

static void test_external_data(void **state) {
  place where;
  make_place(&where);
  check_external(E("location=w.bin"), where.folder, 0, "w.bin");
  check_external(E("location=w.bin offset=16 length=16"), where.folder, 4,
                 "w.bin");
  check_external(E("location=./sub/w.bin offset=4"), where.folder, 1,
                 "./sub/w.bin");
  check_external(E("location=in.bin offset=8"), where.folder, 2, "in.bin");
  check_external(E("location=w.bin"), join(&where, where.folder, "sub/.."), 0,
                 "w.bin");
  remove_place(&where);
}

/* Limits */

static void test_node_limit(void **state) {
  model_bytes bytes = model_write(
      "opset 13;" X4 "node Relu x -> a;node Relu a -> b;node Relu b -> y");
  pph_limits limits;
  pph_error error = {0};
  pph_limits_init(&limits);
  for (limits.nodes = 0; limits.nodes < 5; limits.nodes++) {
    pph_heap heap;
    pph_graph graph;
    pph_heap_init(&heap, NULL, 0);
    pph_graph_init(&graph, &heap, &limits);
    pph_status status = pph_onnx_import(bytes.data, bytes.length, NULL, &limits,
                                        &graph, &error);
    assert_int_equal(status, limits.nodes < 3 ? PPH_LIMIT_EXCEEDED : PPH_OK);
    pph_graph_clear(&graph);
  }
  model_bytes_free(&bytes);
}

static void test_tensor_limit(void **state) {
  model_bytes bytes = model_write("opset 13;init c f32 4 1 2 3 4;out c");
  pph_limits limits;
  pph_error error = {0};
  pph_limits_init(&limits);
  limits.tensor_bytes = 15;
  pph_heap heap;
  pph_graph graph;
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&graph, &heap, &limits);
  assert_int_equal(
      pph_onnx_import(bytes.data, bytes.length, NULL, &limits, &graph, &error),
      PPH_LIMIT_EXCEEDED);
  assert_non_null(strstr(error.message, "16 bytes, the limit is 15"));
  pph_graph_clear(&graph);
  model_bytes_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_model_is_pipe),
      cmocka_unit_test(test_external_refusals),
      cmocka_unit_test(test_external_without_folder),
      cmocka_unit_test(test_external_data),
      cmocka_unit_test(test_node_limit),
      cmocka_unit_test(test_tensor_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
