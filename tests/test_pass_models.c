/* The pipeline on real models: the optimized graph computes what the graph as
   it is computes, and the figures that matter stay good. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "graph/verify.h"
#include "graph_runner.h"
#include "onnx/onnx.h"

typedef struct model_case {
  const char *path;
  int64_t dims[4];       /* for the unknown dimensions, in order; 0: 1 */
  uint32_t most_nodes;   /* after the pipeline; 0: any number */
  bool run;              /* small enough for the reference evaluator */
} model_case;

static const model_case models[] = {
    {"models/hifigan-v3-tf2onnx/hifigan-v3-tf2onnx.onnx", {6}, 80, true},
    {"models/hifigan-v3/hifigan-v3.onnx", {6}, 80, true},
    {"models/fsrcnn-x2/fsrcnn-x2.onnx", {12, 16}, 25, true},
    {"models/lyragan-stream/lyragan-stream.onnx", {0}, 150, true},
    {"models/gtcrn/gtcrn_simple.onnx", {0}, 420, true},
    {"models/selfie-segmentation/selfie-segmentation.onnx", {0}, 140, true},
    {"models/fastestdet-onnx/FastestDet.onnx", {0}, 170, true},
    {"models/ppocr-det-onnx/ch_ppocr_mobile_v2.0_det_infer.onnx",
     {1, 32, 64}, 110, true},
    {"models/ppocrv5-det/ppocrv5-det.onnx", {1, 32, 64}, 200, true},
    {"models/waifu2x-upconv7-onnx/scale2.0x_model.onnx", {1}, 12,
     false},
    {"models/portrait-segmentation/prisma_nchw.onnx", {1}, 160, false},
    {"models/agllnet-lowlight-onnx/agllnet_256x256.onnx", {0}, 180, false},
};

static void *read_model(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  void *bytes = aligned_alloc(64, (*length + 127) / 64 * 64);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *length, file), *length);
  fclose(file);
  return bytes;
}

static void set_shapes(pph_graph *graph, const int64_t *dims) {
  size_t next = 0;
  for (uint32_t i = 0; i < graph->input_count; i++) {
    pph_value *value = pph_graph_value(graph, graph->inputs[i]);
    for (int32_t d = 0; d < value->shape.rank; d++)
      if (value->shape.dims[d] < 0) {
        int64_t dim = next < 4 ? dims[next++] : 0;
        value->shape.dims[d] = dim ? dim : 1;
      }
  }
}

/* Inputs between -1 and 1, as the models expect them. */
static pph_tensor *make_inputs(const pph_graph *graph, test_random *random) {
  pph_tensor *inputs = graph_inputs_make(graph, graph->heap, random);
  for (uint32_t i = 0; i < graph->input_count; i++) {
    size_t count;
    if (inputs[i].type != PPH_F32 || !pph_shape_count(&inputs[i].shape, &count))
      continue;
    for (size_t k = 0; k < count; k++)
      ((float *)inputs[i].data)[k] *= 0.25f;
  }
  return inputs;
}

static void run_pipeline(pph_graph *graph, bool optimize,
                         pph_polyphase_mode polyphase, const char *what) {
  pph_error error = {0};
  pph_pass_options options;
  pph_pass_options_init(&options);
  options.optimize = optimize;
  options.polyphase = polyphase;
  pph_status status = pph_pipeline_run(graph, &options, &error);
  if (status == PPH_OK)
    status = pph_graph_verify(graph, &error);
  if (status != PPH_OK)
    fail_msg("%s: %s: %s", what, error.where, error.message);
}

static void compare(const pph_graph *before, const pph_graph *after,
                    const char *what) {
  pph_error error = {0};
  test_random random = {11};
  graph_results expected, found;
  pph_tensor *inputs = make_inputs(before, &random);
  pph_status status = graph_run(before, inputs, &expected, &error);
  if (status == PPH_OK)
    status = graph_run(after, inputs, &found, &error);
  if (status != PPH_OK)
    fail_msg("%s: %s: %s", what, error.where, error.message);
  double distance = graph_results_distance(&expected, &found);
  printf("%s: distance %g\n", what, distance);
  if (!(distance < 1e-3))
    fail_msg("%s: results differ by %g", what, distance);
  graph_results_release(&expected);
  graph_results_release(&found);
  graph_inputs_release(before, before->heap, inputs);
}

static void check(const model_case *one, const char *path) {
  pph_error error = {0};
  pph_heap heap;
  pph_heap_init(&heap, NULL, 0);
  pph_limits limits;
  pph_limits_init(&limits);
  pph_graph before, after, whole; /* whole: no node is split into phases */
  pph_graph_init(&before, &heap, &limits);
  size_t length;
  void *bytes = read_model(path, &length);
  pph_status status =
      pph_onnx_import(bytes, length, NULL, &limits, &before, &error);
  if (status != PPH_OK)
    fail_msg("%s: %s: %s", one->path, error.where, error.message);
  set_shapes(&before, one->dims);
  test_assert_ok(pph_graph_copy(&after, &before, &heap, &error), &error);
  test_assert_ok(pph_graph_copy(&whole, &before, &heap, &error), &error);
  uint32_t count = before.node_count;
  run_pipeline(&before, false, PPH_POLYPHASE_AUTO, one->path);
  run_pipeline(&after, true, PPH_POLYPHASE_AUTO, one->path);
  run_pipeline(&whole, true, PPH_POLYPHASE_NEVER, one->path);
  printf("%s: %u nodes, optimized %u (%u with phases), %u relayouts, %u "
         "transposes\n",
         one->path, count, whole.node_count, after.node_count,
         graph_count(&after, PPH_NODE_RELAYOUT),
         graph_count(&after, PPH_NODE_TRANSPOSE));
  assert_in_range(whole.node_count, 1, one->most_nodes);
  if (one->run)
    compare(&before, &after, one->path);
  pph_graph_clear(&before);
  pph_graph_clear(&after);
  pph_graph_clear(&whole);
  assert_int_equal(heap.used, 0);
  free(bytes);
}

static void test_models(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    const char *path = test_shared_path(models[i].path);
    if (path)
      check(&models[i], path);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
