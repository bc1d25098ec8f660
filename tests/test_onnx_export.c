/* What is written: each form of ours as ONNX has it, and that a model which was
   written and read again is the same graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/shape.h"
#include "graph/text.h"
#include "graph_runner.h"
#include "model_writer.h"
#include "onnx/onnx.h"
#include "test_support.h"

/* Helpers for writing models; one definition for the tests of ONNX. */
#include "model_writer.h"

typedef struct written {
  pph_heap heap;
  pph_graph graph, again;
  void *bytes;
  size_t length;
  pph_error error;
} written;

/* Writes model->graph and reads it back into model->again. */
static void write_and_read(written *model) {
  test_assert_ok(pph_onnx_export(&model->graph, &model->bytes, &model->length,
                                 &model->error),
                 &model->error);
  test_assert_ok(pph_onnx_import(model->bytes, model->length, NULL, NULL,
                                 &model->again, &model->error),
                 &model->error);
}

static void start(written *model) {
  model->error = (pph_error){0};
  model->bytes = NULL;
  pph_heap_init(&model->heap, NULL, 0);
  pph_graph_init(&model->graph, &model->heap, NULL);
  pph_graph_init(&model->again, &model->heap, NULL);
}

static void finish(written *model) {
  pph_heap_release(&model->heap, model->bytes);
  pph_graph_clear(&model->graph);
  pph_graph_clear(&model->again);
  assert_int_equal(atomic_load(&model->heap.used), 0);
}

/* A graph in the text form, inferred when its shapes are known. */
static void parse(written *model, const char *text, bool infer) {
  start(model);
  test_assert_ok(
      pph_text_parse(text, strlen(text), &model->graph, &model->error),
      &model->error);
  if (infer)
    test_assert_ok(pph_shape_infer(&model->graph, &model->error),
                   &model->error);
}

static void check_written(const char *text, bool infer, const char *expected) {
  written model;
  parse(&model, text, infer);
  write_and_read(&model);
  if (strcmp(model_summary(&model.again), expected) != 0)
    fail_msg("%s\n  gives    %s\n  expected %s", text,
             model_summary(&model.again), expected);
  finish(&model);
}

/* The opset that the file declares: field 8 of the model, field 2 in it. */
static int read_opset(const written *model) {
  const unsigned char *bytes = model->bytes;
  for (size_t i = 0; i + 6 <= model->length; i++)
    if (bytes[i] == 0x42 && bytes[i + 1] == 4 && bytes[i + 2] == 0x0a &&
        bytes[i + 3] == 0 && bytes[i + 4] == 0x10)
      return bytes[i + 5];
  return -1;
}

static void check_opset(const char *text, int opset) {
  written model;
  model_bytes bytes = model_write(text);
  start(&model);
  test_assert_ok(pph_onnx_import(bytes.data, bytes.length, NULL, NULL,
                                 &model.graph, &model.error),
                 &model.error);
  write_and_read(&model);
  if (read_opset(&model) != opset)
    fail_msg("%s: opset %d, expected %d", text, read_opset(&model), opset);
  model_bytes_free(&bytes);
  finish(&model);
}

/* Models whose nodes come back as they were. */
static const char *const same[] = {
    "opset 17;in x f32 Nx4x6x8;init w f32 4x1x2x2 1 2 3 4 5 6 7 8 9 10 11 12 "
    "13 14 15 16;init b f32 4 1 2 3 4;node ConvTranspose x w b -> y "
    "group=i:4 strides=is:2,2 output_padding=is:1,0 @name=up;out y f32",
    "opset 17;in x f32 2x4x6x8;node DepthToSpace x -> y blocksize=i:2 "
    "mode=s:CRD;node SpaceToDepth y -> z blocksize=i:2;out z",
    "opset 17;in x f32 2x4x6x8;init a i64 2 2 3;node ReduceSum x a -> y "
    "keepdims=i:0;node ReduceMean y -> z;out z",
    "opset 13;in x f32 2x4x6x8;node ReduceMax x -> y axes=is:1,2;out y",
    "opset 17;in s i64 3;node ConstantOfShape s -> y value=t:i64:1:7;"
    "node ConstantOfShape s -> z;out y;out z",
    "opset 17;in x f32 2x4x6x8;init s f32 4 1 1 2 2;node Resize x _ s -> y "
    "mode=s:linear coordinate_transformation_mode=s:align_corners;out y",
    "opset 17;in x f32 4;init lo f32 scalar -1;node Clip x lo -> y;"
    "init hi f32 scalar 1;node Clip y _ hi -> z;out z",
    "opset 17;in x f32 3x1x2;in w f32 1x6x2;in r f32 1x6x2;in h f32 1x1x2;"
    "node GRU x w r _ _ h -> y z hidden_size=i:2 linear_before_reset=i:1;"
    "out y;out z",
    "opset 17;in x f16 4;init c f16 1 15360;node Mul x c -> y;out y",
    "opset 17;in x bool 4;init c bool 4 1 0 1 0;node And x c -> y;"
    "node Cast y -> z to=i:11;out z",
    "opset 17;in x f32 2x5;init s i64 2 2 3;node Split x s -> y z axis=i:1;"
    "out y;out z",
    "opset 17;in x f32 2x3;node Concat x x -> y axis=i:0;"
    "node Transpose y -> z perm=is:1,0;node Flatten z -> f axis=i:0;out f",
    "opset 19;in x f32 1x1x8x8;node AveragePool x -> y kernel_shape=is:2,2 "
    "dilations=is:2,2 count_include_pad=i:1;out y",
    "opset 18;in x f32 1x1x8x8;init s f32 2 2 2;node Resize x _ s -> y "
    "axes=is:2,3;out y",
    "opset 18;in x f32 2x4;in a i64 1;node ReduceMin x a -> y;out y",
    "opset 18;in x f32 2x?;node Split x -> y z axis=i:1 num_outputs=i:2;"
    "out y;out z;init a i64 1 1;node ReduceMin x a -> w;out w",
};

static void test_same_again(void **state) {
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    model_bytes bytes = model_write(same[i]);
    written model;
    start(&model);
    test_assert_ok(pph_onnx_import(bytes.data, bytes.length, NULL, NULL,
                                   &model.graph, &model.error),
                   &model.error);
    write_and_read(&model);
    char *before = strdup(model_summary(&model.graph));
    if (strcmp(before, model_summary(&model.again)) != 0)
      fail_msg("%s\n  before %s\n  after  %s", same[i], before,
               model_summary(&model.again));
    free(before);
    model_bytes_free(&bytes);
    finish(&model);
  }
}

static void test_opset(void **state) {
  check_opset("opset 9;in x f32 1;node Relu x -> y;out y", 17);
  check_opset("opset 13;in x f32 ?;node Split x -> y z;out y;out z", 18);
  check_opset("opset 22;in x f32 1x1x8;node AveragePool x -> y "
              "kernel_shape=is:2 dilations=is:1;out y",
              17);
  check_opset("opset 22;in x f32 1x1x8;node AveragePool x -> y "
              "kernel_shape=is:2 dilations=is:2;out y",
              19);
  check_opset("opset 18;in x f32 1x1x8;init s f32 3 1 1 2;node Resize x _ s "
              "-> y antialias=i:0 keep_aspect_ratio_policy=s:stretch;out y",
              17);
  check_opset("opset 18;in x f32 1x1x8;init s f32 3 1 1 2;node Resize x _ s "
              "-> y antialias=i:1 mode=s:linear;out y",
              18);
  check_opset("opset 19;in x f32 1x1x8;init s f32 3 1 1 2;node Resize x _ s "
              "-> y coordinate_transformation_mode=s:half_pixel_symmetric;out "
              "y",
              19);
}

static void test_infos_again(void **state) {
  model_bytes bytes = model_write("opset 17;in x f32 Nx3x?;in q i64;"
                                  "in s f64 scalar;node Relu x -> y;"
                                  "out y f32 Nx3xL;out s;out q");
  written model;
  start(&model);
  test_assert_ok(pph_onnx_import(bytes.data, bytes.length, NULL, NULL,
                                 &model.graph, &model.error),
                 &model.error);
  write_and_read(&model);
  const pph_graph *again = &model.again;
  assert_int_equal(again->input_count, 3);
  const pph_value *x = pph_graph_value(again, again->inputs[0]);
  assert_string_equal(x->name, "x");
  assert_int_equal(x->type, PPH_F32);
  assert_string_equal(x->dim_names[0], "N");
  assert_int_equal(x->shape.dims[1], 3);
  assert_int_equal(x->shape.dims[2], -1);
  assert_null(x->dim_names[2]);
  assert_false(pph_graph_value(again, again->inputs[1])->has_rank);
  assert_int_equal(pph_graph_value(again, again->inputs[2])->shape.rank, 0);
  assert_int_equal(again->output_count, 3);
  const pph_value *y = pph_graph_value(again, again->outputs[0]);
  assert_string_equal(y->name, "y");
  assert_string_equal(y->dim_names[2], "L");
  assert_string_equal(again->name, "test");
  model_bytes_free(&bytes);
  finish(&model);
}

/* Every element and every bit of constants. */
static void test_constants_again(void **state) {
  model_bytes bytes = model_write(
      "opset 17;init a f32 4 1 -2.5 nan inf;init b i64 2 -1 "
      "9223372036854775807;init c u8 3 1 2 255;init d f64 1 0.1;"
      "init e f32 0;init unused f32 1 1;out a;out b;out c;out d;out e");
  written model;
  start(&model);
  test_assert_ok(pph_onnx_import(bytes.data, bytes.length, NULL, NULL,
                                 &model.graph, &model.error),
                 &model.error);
  write_and_read(&model);
  assert_int_equal(model.again.value_count, 5);
  for (uint32_t i = 0; i < 5; i++) {
    const pph_value *before = pph_graph_value(&model.graph, i);
    const pph_value *after = pph_graph_value(&model.again, i);
    assert_string_equal(before->name, after->name);
    assert_int_equal(before->type, after->type);
    assert_int_equal(before->shape.dims[0], after->shape.dims[0]);
    assert_memory_equal(before->data, after->data,
                        (size_t)before->shape.dims[0] *
                            pph_dtype_size(before->type));
  }
  model_bytes_free(&bytes);
  finish(&model);
}

/* Forms of ours */

static void test_activations(void **state) {
  check_written("input %x f32 [1,2,3]\n"
                "%y = Abs(%x) {activation_min=0, activation_max=inf} "
                "activation=clamp\noutput %y\n",
                false, "Abs(x) -> #0; Relu(#0) -> y");
  check_written("input %x f32 [1,2,3]\n"
                "%y = Abs(%x) {activation_min=0, activation_max=6} "
                "activation=clamp\noutput %y\n",
                true, "Abs(x) -> #0; Clip(#0,{0},{6}) -> y");
  check_written("input %x f32 [1,2,3]\n"
                "%y = Abs(%x) {activation_min=-inf, activation_max=6} "
                "activation=clamp\noutput %y\n",
                true, "Abs(x) -> #0; Clip(#0,_,{6}) -> y");
  check_written("input %x f64 [1,2,3]\n"
                "%y = Abs(%x) {activation_min=-1, activation_max=inf} "
                "activation=clamp\n%z = Relu(%y)\noutput %z\n",
                true, "Abs(x) -> #0; Clip(#0,{-1}) -> y; Relu(y) -> z");
  check_written("input %x f32 [1,2,3]\n"
                "%y = Softmax(%x) {axis=1, activation_alpha=0.5} "
                "activation=leaky_relu\noutput %y\n",
                true, "Softmax(x) axis=1 -> #0; LeakyRelu(#0) alpha=0.5 -> y");
}

static void test_relayout_is_dropped(void **state) {
  check_written("input %x f32 [1,2,3,4]\n%a = Relayout(%x)\n"
                "%b = Abs(%a)\n%c = Relayout(%b)\n%d = Relayout(%c)\n"
                "%e = Relu(%d)\noutput %e\n",
                true, "Abs(x) -> b; Relu(b) -> e");
  check_written("input %x f32 [1,2,3,4]\n%a = Abs(%x)\n"
                "%b = Relayout(%a)\noutput %b\n",
                true, "Abs(x) -> a; Identity(a) -> b");
}

static void test_split_tells_its_parts(void **state) {
  check_written("input %x f32 [1,5]\n%a, %b = Split(%x) {axis=1}\n"
                "output %a\noutput %b\n",
                true, "Split(x,{3 2}) axis=1 -> a,b");
}

/* The name that the exporter would take for a value of its own is taken. */
static void test_names_are_new(void **state) {
  check_written("input %x f32 [1]\n%y = Abs(%x) {activation_min=0, "
                "activation_max=inf} activation=clamp\n"
                "%\"y~x0\" = Exp(%y)\noutput %\"y~x0\"\n",
                true, "Abs(x) -> #0; Relu(#0) -> y; Exp(y) -> #2");
}

/* A pass gives what it makes the original's name; ONNX Runtime wants names to
   differ. */
static void test_node_names_differ(void **state) {
  static const char text[] =
      "input %x f32 [1,6,4]\n%a = Abs \"up\"(%x)\n%b = Exp \"up~x1\"(%a)\n"
      "%c = DepthToSpace \"up\"(%b) {blocksize=[3], activation_min=0, "
      "activation_max=inf} activation=clamp\noutput %c\n";
  written model;
  parse(&model, text, true);
  write_and_read(&model);
  assert_int_equal(model.again.node_count, 6);
  assert_string_equal(model.again.first->name, "up");
  for (const pph_node *one = model.again.first; one; one = one->next)
    for (const pph_node *two = one->next; two; two = two->next)
      assert_string_not_equal(one->name, two->name);
  finish(&model);
}

static void check_refused(const char *text, bool infer, pph_status status,
                          const char *message) {
  written model;
  parse(&model, text, infer);
  assert_int_equal(
      pph_onnx_export(&model.graph, &model.bytes, &model.length, &model.error),
      status);
  assert_null(model.bytes);
  assert_int_equal(model.length, 0);
  if (!strstr(model.error.message, message))
    fail_msg("%s\n  gives    %s\n  expected %s", text, model.error.message,
             message);
  finish(&model);
}

static void test_export_refusals(void **state) {
  check_refused("input %x f32\n%y = DepthToSpace(%x) {blocksize=[3]}\n"
                "output %y\n",
                false, PPH_UNSUPPORTED, "rank is not known");
  check_refused("input %x f32 [1,?,?]\n"
                "%y = DepthToSpace(%x) {blocksize=[3]}\noutput %y\n",
                false, PPH_UNSUPPORTED, "too many dimensions");
  check_refused("input %s i64 [1]\ninput %v f32 [1]\n"
                "%y = ConstantOfShape(%s, %v)\noutput %y\n",
                false, PPH_UNSUPPORTED, "constant value");
  check_refused("input %x f32 [1,1,4]\nconst %w f32 [1,1,1] = {2}\n"
                "%y = Conv(%x, %w, _, %x)\noutput %y\n",
                true, PPH_UNSUPPORTED, "no such convolution");
  check_refused("input %x f32 [1,1,4]\nconst %w f32 [1,1,1] = {2}\n"
                "%y = Conv(%x, %w) {activation_slopes=[0.5]} "
                "activation=prelu\noutput %y\n",
                true, PPH_UNSUPPORTED, "no such convolution");
}

/* Blocks that ONNX does not have: the written model computes the same. */

static void compare_outputs(written *model) {
  test_random random = {test_seed("compare_outputs")};
  graph_results before = {0}, after = {0};
  pph_tensor *inputs = graph_inputs_make(&model->graph, &model->heap, &random);
  test_assert_ok(pph_shape_infer(&model->again, &model->error), &model->error);
  test_assert_ok(graph_run(&model->graph, inputs, &before, &model->error),
                 &model->error);
  test_assert_ok(graph_run(&model->again, inputs, &after, &model->error),
                 &model->error);
  assert_true(graph_results_distance(&before, &after) == 0);
  graph_results_release(&before);
  graph_results_release(&after);
  graph_inputs_release(&model->graph, &model->heap, inputs);
}

static void check_block(const char *kind, const char *shape,
                        const char *attributes, const char *kinds) {
  char text[256], found[256] = "";
  written model;
  snprintf(text, sizeof text,
           "input %%x f32 %s\n%%y = %s(%%x) {%s}\noutput %%y\n", shape, kind,
           attributes);
  parse(&model, text, true);
  write_and_read(&model);
  for (const pph_node *node = model.again.first; node; node = node->next) {
    strcat(found, pph_node_kind_find_info(node->kind)->name);
    strcat(found, node->next ? " " : "");
  }
  assert_string_equal(found, kinds);
  compare_outputs(&model);
  finish(&model);
}

static void test_blocks(void **state) {
  static const char *const modes[] = {"", ", mode=\"DCR\"", ", mode=\"CRD\""};
  static const char three[] = "Reshape Transpose Reshape";
  char text[64];
  for (int i = 0; i < 3; i++) {
    snprintf(text, sizeof text, "blocksize=[3]%s", modes[i]);
    check_block("DepthToSpace", "[2,6,5]", text, three);
    snprintf(text, sizeof text, "blocksize=[2,3]%s", modes[i]);
    check_block("DepthToSpace", "[2,12,4,5]", text, three);
    snprintf(text, sizeof text, "blocksize=[2,2]%s", modes[i]);
    check_block("DepthToSpace", "[2,12,4,5]", text, "DepthToSpace");
  }
  check_block("SpaceToDepth", "[2,3,6]", "blocksize=[3]", three);
  check_block("SpaceToDepth", "[2,3,6,8]", "blocksize=[3,2]", three);
  check_block("SpaceToDepth", "[2,3,6,8]", "blocksize=[2,2]", "SpaceToDepth");
}

/* One spatial dimension may be open, and the batch. */
static void test_open_block(void **state) {
  check_written("input %x f32 [?,6,?]\n"
                "%y = DepthToSpace(%x) {blocksize=[3]}\noutput %y\n",
                false,
                "Reshape(x,{0 3 2 -1}) -> #0; Transpose(#0) perm=0,2,3,1 -> "
                "#1; Reshape(#1,{0 2 -1}) -> y");
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
  static const char text[] = "input %x f32 [2,6,5]\n%y = DepthToSpace(%x) "
                             "{blocksize=[3]}\noutput %y\n";
  scarce memory = {SIZE_MAX};
  pph_allocator allocator = {&memory, allocate_scarce, release_scarce};
  written model;
  start(&model);
  pph_heap_init(&model.heap, &allocator, 0);
  test_assert_ok(pph_text_parse(text, strlen(text), &model.graph, &model.error),
                 &model.error);
  size_t before = atomic_load(&model.heap.used);
  pph_status status = PPH_OUT_OF_MEMORY;
  for (size_t allowed = 0; status != PPH_OK; allowed++) {
    memory.left = allowed;
    status = pph_onnx_export(&model.graph, &model.bytes, &model.length,
                             &model.error);
    if (status != PPH_OK) {
      assert_int_equal(status, PPH_OUT_OF_MEMORY);
      assert_int_equal(atomic_load(&model.heap.used), before);
    }
    assert_true(allowed < 1000);
  }
  finish(&model);
}

/* Real models */

static const struct {
  const char *path;
  pph_status status;
} real_models[] = {
    {"acnet-onnx/ACNetHDNL0", PPH_OK},
    {"agllnet-lowlight-onnx/agllnet_256x256", PPH_OK},
    {"deepfilternet3-erb-dec/deepfilternet3-erb-dec", PPH_OK},
    {"fastestdet-onnx/FastestDet", PPH_OK},
    {"fsrcnn-x2/fsrcnn-x2", PPH_OK},
    {"gtcrn/gtcrn", PPH_OK},
    {"gtcrn/gtcrn_simple", PPH_OK},
    {"hifigan-v3/hifigan-v3", PPH_OK},
    {"hifigan-v3-tf2onnx/hifigan-v3-tf2onnx", PPH_OK},
    {"lyragan-stream/lyragan-stream", PPH_OK},
    {"piper-plus-test-onnx/zero-shot-test", PPH_UNSUPPORTED},
    {"portrait-segmentation/prisma_nchw", PPH_OK},
    {"ppocr-det-onnx/ch_ppocr_mobile_v2.0_det_infer", PPH_OK},
    {"ppocr-det-onnx/en_PP-OCRv3_det_infer", PPH_OK},
    {"ppocrv5-det/ppocrv5-det", PPH_OK},
    {"realcugan-se-up2x/realcugan-se-up2x", PPH_OK},
    {"realesr-animevideov3-x4/realesr-animevideov3-x4", PPH_OK},
    {"sed-gen-unet-onnx/unet", PPH_OK},
    {"selfie-segmentation/selfie-segmentation", PPH_OK},
    {"waifu2x-upconv7-onnx/noise1_scale2.0x_model", PPH_OK},
    {"waifu2x-upconv7-onnx/scale2.0x_model", PPH_OK},
};

static void check_real(const char *path, pph_status expected) {
  size_t length;
  unsigned char *bytes = test_read_file(path, &length);
  written model;
  start(&model);
  pph_status status =
      pph_onnx_import(bytes, length, NULL, NULL, &model.graph, &model.error);
  if (status != expected)
    fail_msg("%s: %s: %s", path, model.error.where, model.error.message);
  if (status == PPH_OK) {
    write_and_read(&model);
    assert_int_equal(model.graph.node_count, model.again.node_count);
    assert_int_equal(model.graph.input_count, model.again.input_count);
    assert_int_equal(model.graph.output_count, model.again.output_count);
  }
  finish(&model);
  free(bytes);
}

static void test_real_models(void **state) {
  for (size_t i = 0; i < sizeof real_models / sizeof *real_models; i++) {
    char relative[128];
    snprintf(relative, sizeof relative, "models/%s.onnx", real_models[i].path);
    const char *path = test_shared_path(relative);
    if (path)
      check_real(path, real_models[i].status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_again),
      cmocka_unit_test(test_opset),
      cmocka_unit_test(test_infos_again),
      cmocka_unit_test(test_constants_again),
      cmocka_unit_test(test_activations),
      cmocka_unit_test(test_relayout_is_dropped),
      cmocka_unit_test(test_split_tells_its_parts),
      cmocka_unit_test(test_names_are_new),
      cmocka_unit_test(test_node_names_differ),
      cmocka_unit_test(test_export_refusals),
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_open_block),
      cmocka_unit_test(test_memory_runs_out),
      cmocka_unit_test(test_real_models),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
