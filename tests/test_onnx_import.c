/* What the importer makes of operators in every form that an opset gave them,
   of tensors in every encoding, and of names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "model_writer.h"
#include "onnx/onnx.h"
#include "test_support.h"

/* Helpers for writing models; one definition for the tests of ONNX. */
#include "model_writer.h"

typedef struct loaded {
  pph_heap heap;
  pph_graph graph;
  model_bytes bytes;
  pph_error error;
} loaded;

static pph_status import_bytes(loaded *model, model_bytes bytes) {
  model->bytes = bytes;
  model->error = (pph_error){0};
  pph_heap_init(&model->heap, NULL, 0);
  pph_graph_init(&model->graph, &model->heap, NULL);
  return pph_onnx_import(model->bytes.data, model->bytes.length, NULL, NULL,
                         &model->graph, &model->error);
}

static void load(loaded *model, const char *text) {
  pph_status status = import_bytes(model, model_write(text));
  if (status != PPH_OK)
    fail_msg("%s\n%s: %s", text, model->error.where, model->error.message);
}

static void unload(loaded *model) {
  pph_graph_clear(&model->graph);
  assert_int_equal(atomic_load(&model->heap.used), 0);
  model_bytes_free(&model->bytes);
}

/* Forms: what a node becomes */

typedef struct form {
  int opset;
  const char *text, *expected;
} form;

#define X4 "in x f32 1x4x6x8;"

static const form forms[] = {
    {6, X4 "node Relu x -> y", "Relu(x) -> y"},
    {22, X4 "node Relu x -> y", "Relu(x) -> y"},
    {13, X4 "node ai.onnx::Relu x -> y", "Relu(x) -> y"},
    {11, X4 "node LeakyRelu x -> y", "LeakyRelu(x) -> y"},
    {11, X4 "node LeakyRelu x -> y alpha=f:0.5", "LeakyRelu(x) alpha=0.5 -> y"},
    {11, X4 "node HardSigmoid x -> y alpha=f:0.25 beta=f:0.5",
     "HardSigmoid(x) alpha=0.25 beta=0.5 -> y"},
    {14, X4 "node HardSwish x -> y", "HardSwish(x) -> y"},
    {11, X4 "node Elu x -> y", "Elu(x) -> y"},
    {13, X4 "node Cast x -> y to=i:7", "Cast(x) to=7 -> y"},
    {19, X4 "node Cast x -> y to=i:7 saturate=i:0", "Cast(x) to=7 -> y"},
    /* moved attributes */
    {6, X4 "node Clip x -> y", "Clip(x) -> y"},
    {6, X4 "node Clip x -> y min=f:0 max=f:6", "Clip(x,{0},{6}) -> y"},
    {6, X4 "node Clip x -> y max=f:6", "Clip(x,_,{6}) -> y"},
    {11, X4 "init lo f32 scalar 0;node Clip x lo -> y", "Clip(x,lo) -> y"},
    {9, X4 "node Slice x -> y starts=is:0,1 ends=is:2,-1",
     "Slice(x,{0 1},{2 -1}) -> y"},
    {9, X4 "node Slice x -> y axes=is:2 starts=is:1 ends=is:3",
     "Slice(x,{1},{3},{2}) -> y"},
    {10, X4 "init s i64 1 0;init e i64 1 2;node Slice x s e -> y",
     "Slice(x,s,e) -> y"},
    {11, "in x f32 1x4x1;node Squeeze x -> y", "Squeeze(x) -> y"},
    {11, "in x f32 1x4x1;node Squeeze x -> y axes=is:0,2",
     "Squeeze(x,{0 2}) -> y"},
    {13, "in x f32 1x4x1;init a i64 1 0;node Squeeze x a -> y",
     "Squeeze(x,a) -> y"},
    {11, X4 "node Unsqueeze x -> y axes=is:0", "Unsqueeze(x,{0}) -> y"},
    {13, X4 "init a i64 1 0;node Unsqueeze x a -> y", "Unsqueeze(x,a) -> y"},
    {9, X4 "node Pad x -> y pads=is:0,0,1,1,0,0,1,1",
     "Pad(x,{0 0 1 1 0 0 1 1}) -> y"},
    {9, X4 "node Pad x -> y mode=s:constant value=f:2 pads=is:0,0,1,1,0,0,1,1",
     "Pad(x,{0 0 1 1 0 0 1 1},{2}) mode=constant -> y"},
    {11, X4 "init p i64 8 0 0 1 1 0 0 1 1;node Pad x p -> y mode=s:reflect",
     "Pad(x,p) mode=reflect -> y"},
    {11, X4 "node Split x -> y z axis=i:1 split=is:1,3",
     "Split(x,{1 3}) axis=1 -> y,z"},
    {11, X4 "node Split x -> y z axis=i:1", "Split(x) axis=1 -> y,z"},
    {13, X4 "init s i64 2 1 3;node Split x s -> y z axis=i:1",
     "Split(x,s) axis=1 -> y,z"},
    {18, X4 "node Split x -> y z axis=i:1 num_outputs=i:2",
     "Split(x) axis=1 -> y,z"},
    {11, X4 "node ReduceMean x -> y axes=is:2,3 keepdims=i:0",
     "ReduceMean(x,{2 3}) keepdims=0 -> y"},
    {13, X4 "node ReduceMax x -> y axes=is:1", "ReduceMax(x,{1}) -> y"},
    {18, X4 "init a i64 1 1;node ReduceMin x a -> y", "ReduceMin(x,a) -> y"},
    {11, X4 "node ReduceSum x -> y axes=is:1", "ReduceSum(x,{1}) -> y"},
    {13, X4 "init a i64 1 1;node ReduceSum x a -> y", "ReduceSum(x,a) -> y"},
    {13, X4 "init a i64 0;node ReduceSum x a -> y", "ReduceSum(x) -> y"},
    {13, X4 "init a i64 0;node ReduceSum x a -> y noop_with_empty_axes=i:1",
     "Identity(x) -> y"},
    {18, X4 "node ReduceMean x -> y noop_with_empty_axes=i:1 keepdims=i:1",
     "Identity(x) -> y"},
    /* resizing */
    {7, X4 "node Upsample x -> y mode=s:nearest scales=fs:1,1,2,2",
     "Resize(x,_,{1 1 2 2}) mode=nearest "
     "coordinate_transformation_mode=asymmetric nearest_mode=floor -> y"},
    {9, X4 "init s f32 4 1 1 2 2;node Upsample x s -> y mode=s:linear",
     "Resize(x,_,s) mode=linear coordinate_transformation_mode=asymmetric "
     "nearest_mode=floor -> y"},
    {10, X4 "init s f32 4 1 1 2 2;node Resize x s -> y",
     "Resize(x,_,s) coordinate_transformation_mode=asymmetric "
     "nearest_mode=floor -> y"},
    {10, X4 "init s f32 4 1 1 0.5 0.5;node Resize x s -> y",
     "Resize(x,_,s) coordinate_transformation_mode=asymmetric "
     "nearest_mode=ceil -> y"},
    {11, X4 "init r f32 0;init s f32 4 1 1 2 2;node Resize x r s -> y",
     "Resize(x,_,s) -> y"},
    {11,
     X4 "init e f32 0;init z i64 4 1 4 12 16;"
        "node Resize x e e z -> y mode=s:cubic cubic_coeff_a=f:-0.5",
     "Resize(x,_,_,z) mode=cubic cubic_coeff_a=-0.5 -> y"},
    {18, X4 "init s f32 2 2 2;node Resize x _ s -> y axes=is:2,3 antialias=i:0",
     "Resize(x,_,s) axes=2,3 antialias=0 -> y"},
    /* softmax over the tail */
    {11, "in x f32 2x3;node Softmax x -> y", "Softmax(x) axis=1 -> y"},
    {11, X4 "node Softmax x -> y axis=i:-1", "Softmax(x) axis=-1 -> y"},
    {11, X4 "node Softmax x -> y axis=i:3", "Softmax(x) axis=3 -> y"},
    {11, X4 "node Softmax x -> y",
     "Flatten(x) axis=1 -> #0; Softmax(#0) axis=1 -> #1; Shape(x) -> #2; "
     "Reshape(#1,#2) -> y"},
    {13, X4 "node Softmax x -> y", "Softmax(x) axis=-1 -> y"},
    {13, X4 "node Softmax x -> y axis=i:1", "Softmax(x) axis=1 -> y"},
    {11, "in x f32;node Softmax x -> y axis=i:-2",
     "Flatten(x) axis=-2 -> #0; Softmax(#0) axis=1 -> #1; Shape(x) -> #2; "
     "Reshape(#1,#2) -> y"},
    /* operands that line up from the left */
    {6, X4 "init b f32 4 1 2 3 4;node Add x b -> y broadcast=i:1 axis=i:1",
     "Unsqueeze(b,{1 2}) -> #0; Add(x,#0) -> y"},
    {6,
     X4 "init b f32 8 1 2 3 4 5 6 7 8;node Mul x b -> y broadcast=i:1 "
        "axis=i:3",
     "Mul(x,b) -> y"},
    {6, X4 "init b f32 8 1 2 3 4 5 6 7 8;node Mul x b -> y broadcast=i:1",
     "Mul(x,b) -> y"},
    {6,
     X4 "init b f32 1 2;node Relu x -> t;node Div t b -> y broadcast=i:1 "
        "axis=i:-4",
     "Relu(x) -> t; Unsqueeze(b,{1 2 3}) -> #1; Div(t,#1) -> y"},
    {6, X4 "init b f32 4 1 2 3 4;node PRelu x b -> y",
     "Unsqueeze(b,{1 2}) -> #0; PRelu(x,#0) -> y"},
    {6, X4 "init b f32 1 1;node PRelu x b -> y", "PRelu(x,b) -> y"},
    {7, X4 "init b f32 4x1x1 1 2 3 4;node PRelu x b -> y", "PRelu(x,b) -> y"},
    {8, X4 "node Sum x -> y", "Identity(x) -> y"},
    {8, X4 "node Sum x x -> y", "Add(x,x) -> y"},
    {8, X4 "node Sum x x x -> y", "Add(x,x) -> #0; Add(#0,x) -> y"},
    {8, X4 "node Sum x x x x -> y",
     "Add(x,x) -> #0; Add(#0,x) -> #1; Add(#1,x) -> y"},
    {8, X4 "node Max x x x -> y", "Max(x,x,x) -> y"},
    /* others */
    {6, X4 "node Dropout x -> y ratio=f:0.5 is_test=i:1", "Identity(x) -> y"},
    {7, X4 "node Dropout x -> y", "Identity(x) -> y"},
    {7, X4 "node Dropout x -> y mask;node Not mask -> z",
     "Shape(x) -> #0; ConstantOfShape(#0,{1}) -> mask; Identity(x) -> y; "
     "Not(mask) -> z"},
    {12,
     X4 "init r f32 scalar 0.5;init t bool scalar 0;"
        "node Dropout x r t -> y seed=i:3",
     "Identity(x) -> y"},
    {6,
     X4 "init a f32 4 1 1 1 1;node BatchNormalization x a a a a -> y "
        "epsilon=f:0.25 is_test=i:1 momentum=f:0.5 spatial=i:1",
     "BatchNormalization(x,a,a,a,a) epsilon=0.25 -> y"},
    {14,
     X4 "init a f32 4 1 1 1 1;node BatchNormalization x a a a a -> y "
        "training_mode=i:0",
     "BatchNormalization(x,a,a,a,a) -> y"},
    {11, X4 "node DepthToSpace x -> y blocksize=i:2",
     "DepthToSpace(x) blocksize=2,2 -> y"},
    {11, X4 "node DepthToSpace x -> y mode=s:CRD blocksize=i:2",
     "DepthToSpace(x) mode=CRD blocksize=2,2 -> y"},
    {11, X4 "node SpaceToDepth x -> y blocksize=i:2",
     "SpaceToDepth(x) blocksize=2,2 -> y"},
    {13, X4 "node Shape x -> y", "Shape(x) -> y"},
    {15, X4 "node Shape x -> y start=i:0", "Shape(x) -> y"},
    {15, X4 "node Shape x -> y start=i:1 end=i:-1",
     "Shape(x) -> #0; Slice(#0,{1},{-1}) -> y"},
    {13, X4 "node Size x -> y", "Size(x) -> y"},
    {13, "in s i64 2;node ConstantOfShape s -> y", "ConstantOfShape(s) -> y"},
    {13, "in s i64 2;node ConstantOfShape s -> y value=t:i64:1:7",
     "ConstantOfShape(s,{7}) -> y"},
    {14, X4 "init s i64 2 4 -1;node Reshape x s -> y allowzero=i:1",
     "Reshape(x,s) -> y"},
    {13, "node Constant -> c value=t:f32:2:1,2;node Relu c -> y",
     "Relu(c) -> y"},
    {7,
     X4 "init w f32 3x4 1 2 3 4 5 6 7 8 9 10 11 12;node Flatten x -> f;"
        "node Gemm f w -> y transB=i:1 alpha=f:2",
     "Flatten(x) -> f; Gemm(f,w) transB=1 alpha=2 -> y"},
    {11,
     X4 "node MaxPool x -> y kernel_shape=is:2,2 strides=is:2,2 "
        "storage_order=i:0",
     "MaxPool(x) kernel_shape=2,2 strides=2,2 -> y"},
    {7,
     "in x f32 3x1x2;in w f32 1x6x2;in r f32 1x6x2;in h f32 1x1x2;"
     "node GRU x w r _ _ h -> _ y hidden_size=i:2 "
     "activations=ss:Sigmoid,Tanh",
     "GRU(x,w,r,_,_,h) hidden_size=2 -> #0,y"},
    /* products */
    {12,
     "in x f32 1x5x16x32;in w f32 16x32x8;"
     "node Einsum x w -> y equation=s:btgi,gih->btgh",
     "Transpose(x) perm=2,0,1,3 -> #0; Unsqueeze(w,{1}) -> #1; "
     "MatMul(#0,#1) -> #2; Transpose(#2) perm=1,2,0,3 -> y"},
    {12,
     "in x f32 2x3;in w f32 3x4;node Einsum x w -> y "
     "equation=s:ij,jk->ik",
     "MatMul(x,w) -> y"},
    {12,
     "in x f32 2x3;in w f32 4x3;node Einsum x w -> y "
     "equation=s:ij,kj->ki",
     "Transpose(w) perm=1,0 -> #0; MatMul(x,#0) -> #1; Transpose(#1) "
     "perm=1,0 -> y"},
    {12, "in x f32 3;in w f32 3;node Einsum x w -> y equation=s:i,i->",
     "Unsqueeze(x,{0}) -> #0; Unsqueeze(w,{1}) -> #1; MatMul(#0,#1) -> #2; "
     "Squeeze(#2,{0 1}) -> y"},
    {12, "in x f32 2;in w f32 3x4;node Einsum x w -> y equation=s:i,jk->ijk",
     "Unsqueeze(w,{2}) -> #0; Unsqueeze(x,{0}) -> #1; Unsqueeze(#1,{0}) -> "
     "#2; MatMul(#0,#2) -> #3; Transpose(#3) perm=2,0,1 -> y"},
    /* nodes in any order */
    {13, X4 "node Relu a -> y;node Abs x -> a", "Abs(x) -> a; Relu(a) -> y"},
};

static void check_form(const form *one) {
  char text[2048];
  loaded model;
  snprintf(text, sizeof text, "opset %d;%s;out y", one->opset, one->text);
  pph_status status = import_bytes(&model, model_write(text));
  if (status != PPH_OK)
    fail_msg("%s\n%s: %s", text, model.error.where, model.error.message);
  if (strcmp(model_summary(&model.graph), one->expected) != 0)
    fail_msg("%s\n  found    %s\n  expected %s", text,
             model_summary(&model.graph), one->expected);
  unload(&model);
}

static void test_forms(void **state) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    check_form(&forms[i]);
}

/* Tensors */

static const pph_value *find_value(const loaded *model, const char *name) {
  for (uint32_t i = 0; i < model->graph.value_count; i++)
    if (strcmp(model->graph.values[i].name, name) == 0)
      return &model->graph.values[i];
  fail_msg("no value %s", name);
  return NULL;
}

static void test_initializer_encodings(void **state) {
  static const char *const styles[] = {"init", "typed", "unpacked"};
  static const char *const types[] = {"f32", "f64", "u8",  "i8",  "u16", "i16",
                                      "i32", "i64", "u32", "u64", "f16"};
  for (size_t s = 0; s < 3; s++)
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
      char text[256];
      loaded model;
      snprintf(text, sizeof text,
               "opset 13;%s c %s 2x2 1 2 3 100;node Identity c -> y;out y",
               styles[s], types[t]);
      load(&model, text);
      const pph_value *c = find_value(&model, "c");
      assert_string_equal(pph_dtype_name(c->type), types[t]);
      assert_int_equal(c->shape.rank, 2);
      assert_int_equal(c->shape.dims[0], 2);
      assert_int_equal(c->shape.dims[1], 2);
      if (c->type == PPH_F32)
        assert_true(((const float *)c->data)[3] == 100.0f);
      else if (c->type == PPH_F64)
        assert_true(((const double *)c->data)[3] == 100.0);
      else {
        size_t size = pph_dtype_size(c->type);
        const unsigned char *last = (const unsigned char *)c->data + 3 * size;
        assert_int_equal(last[0], 100);
        for (size_t i = 1; i < size; i++)
          assert_int_equal(last[i], 0);
      }
      unload(&model);
    }
}

static void test_negative_typed_elements(void **state) {
  loaded model;
  load(&model, "opset 13;typed a i8 2 -1 -128;typed b i64 1 -5;"
               "typed c i32 1 -7;node Identity a -> y;out y;"
               "node Identity b -> z;node Identity c -> w");
  const int8_t *a = find_value(&model, "a")->data;
  assert_int_equal(a[0], -1);
  assert_int_equal(a[1], -128);
  assert_int_equal(*(const int64_t *)find_value(&model, "b")->data, -5);
  assert_int_equal(*(const int32_t *)find_value(&model, "c")->data, -7);
  unload(&model);
}

static void test_bool_is_0_or_1(void **state) {
  loaded model;
  load(&model, "opset 13;init a bool 3 0 2 255;typed b bool 2 0 1;"
               "node Not a -> y;node Not b -> z;out y;out z");
  const unsigned char *a = find_value(&model, "a")->data;
  const unsigned char *b = find_value(&model, "b")->data;
  assert_memory_equal(a, "\0\1\1", 3);
  assert_memory_equal(b, "\0\1", 2);
  unload(&model);
}

/* Large constants are used where protobuf-c put them: values and alignment
   must hold there too. */
static void test_large_constants(void **state) {
  char *text = malloc(200000);
  loaded model;
  assert_non_null(text);
  for (int style = 0; style < 2; style++) {
    size_t at = (size_t)sprintf(text, "opset 13;%s c f32 5000",
                                style ? "typed" : "init");
    for (int i = 0; i < 5000; i++)
      at += (size_t)sprintf(text + at, " %d", i * 3);
    sprintf(text + at, ";node Identity c -> y;out y");
    load(&model, text);
    const float *c = find_value(&model, "c")->data;
    assert_int_equal((uintptr_t)c % 16, 0);
    for (int i = 0; i < 5000; i++)
      assert_true(c[i] == (float)(3 * i));
    unload(&model);
  }
  free(text);
}

static void test_constant_forms(void **state) {
  loaded model;
  load(&model, "opset 13;node Constant -> a value_float=f:1.5;"
               "node Constant -> b value_floats=fs:1,2;node Constant -> c "
               "value_int=i:-3;"
               "node Constant -> d value_ints=is:4,5,6;node Constant -> e "
               "value=t:i32:2:7,8;"
               "node Identity a -> u;node Identity b -> v;node Identity c -> w;"
               "node Identity d -> x;node Identity e -> y;out y");
  const pph_value *a = find_value(&model, "a"), *d = find_value(&model, "d");
  assert_int_equal(a->type, PPH_F32);
  assert_int_equal(a->shape.rank, 0);
  assert_true(*(const float *)a->data == 1.5f);
  assert_true(((const float *)find_value(&model, "b")->data)[1] == 2.0f);
  const pph_value *c = find_value(&model, "c");
  assert_int_equal(c->type, PPH_I64);
  assert_int_equal(*(const int64_t *)c->data, -3);
  assert_int_equal(d->shape.dims[0], 3);
  assert_int_equal(((const int64_t *)d->data)[2], 6);
  assert_int_equal(((const int32_t *)find_value(&model, "e")->data)[1], 8);
  assert_int_equal(model.graph.node_count, 5);
  unload(&model);
}

/* Inputs, outputs, names */

static void test_inputs_and_outputs(void **state) {
  loaded model;
  load(&model, "opset 13;ir 3;in x f32 Nx3x?x-1;in w f32 1;in z f32;"
               "in s i64 scalar;init w f32 1 2;node Mul x w -> y;"
               "node Identity s -> q;out y f32 Nx3xHxW;out x;out w;out q");
  const pph_graph *graph = &model.graph;
  assert_int_equal(graph->input_count, 3); /* w is a constant */
  const pph_value *x = pph_graph_value(graph, graph->inputs[0]);
  assert_string_equal(x->name, "x");
  assert_int_equal(x->shape.rank, 4);
  assert_int_equal(x->shape.dims[0], -1);
  assert_string_equal(x->dim_names[0], "N");
  assert_int_equal(x->shape.dims[1], 3);
  assert_int_equal(x->shape.dims[2], -1);
  assert_null(x->dim_names[2]);
  assert_int_equal(x->shape.dims[3], -1);
  assert_false(find_value(&model, "z")->has_rank);
  assert_true(find_value(&model, "s")->has_rank);
  assert_int_equal(find_value(&model, "s")->shape.rank, 0);
  assert_int_equal(graph->output_count, 4);
  const pph_value *y = pph_graph_value(graph, graph->outputs[0]);
  assert_string_equal(y->dim_names[3], "W");
  assert_int_equal(pph_graph_value(graph, graph->outputs[3])->type,
                   PPH_DTYPE_NONE);
  assert_string_equal(graph->name, "test");
  unload(&model);
}

static void test_node_index_and_name(void **state) {
  loaded model;
  load(&model, "opset 13;in x f32 2;node Constant -> c value_int=i:1;"
               "node Relu a -> y @name=last;node Abs x -> a;out y");
  assert_int_equal(model.graph.first->index, 2);
  assert_int_equal(model.graph.last->index, 1);
  assert_string_equal(model.graph.last->name, "last");
  unload(&model);
}

/* Names that a pass makes later must not meet names that are in the file. */
static void test_fresh_names_differ(void **state) {
  loaded model;
  load(&model, "opset 6;in x f32 2;init v~0 f32 scalar 1;node Mul x v~0 -> a;"
               "node Clip a -> v~7 min=f:0;out v~7");
  pph_id id;
  test_assert_ok(pph_graph_add_value(&model.graph, NULL, &id, &model.error),
                 &model.error);
  for (uint32_t i = 0; i < model.graph.value_count; i++)
    if (i != id)
      assert_string_not_equal(model.graph.values[i].name,
                              model.graph.values[id].name);
  unload(&model);
}

/* A chain of 100,000 nodes loads within a second and is not recursed into. */
static void test_large_graph(void **state) {
  enum { NODES = 100000 };
  char *text = malloc((size_t)NODES * 40), *at = text;
  loaded model;
  assert_non_null(text);
  at += sprintf(at, "opset 13;in n%d f32 2;out n0", NODES);
  for (int i = 0; i < NODES; i++) /* last first: the worst order */
    at += sprintf(at, ";node Relu n%d -> n%d", i + 1, i);
  model_bytes bytes = model_write(text);
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  test_assert_ok(import_bytes(&model, bytes), &model.error);
  clock_gettime(CLOCK_MONOTONIC, &end);
  assert_int_equal(model.graph.node_count, NODES);
  assert_true(end.tv_sec - start.tv_sec < 10); /* even under a sanitizer */
  unload(&model);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forms),
      cmocka_unit_test(test_initializer_encodings),
      cmocka_unit_test(test_negative_typed_elements),
      cmocka_unit_test(test_bool_is_0_or_1),
      cmocka_unit_test(test_large_constants),
      cmocka_unit_test(test_constant_forms),
      cmocka_unit_test(test_inputs_and_outputs),
      cmocka_unit_test(test_node_index_and_name),
      cmocka_unit_test(test_fresh_names_differ),
      cmocka_unit_test(test_large_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
