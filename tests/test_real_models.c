/* Real models with stored results, on every engine, optimized and not, one and
   two threads. POLYPHASE_MODEL=NAME runs those whose path holds NAME;
   POLYPHASE_FULL=1 adds the slow combinations of the reference engine;
   POLYPHASE_QUICK=1 leaves that engine out (for valgrind and sanitizers). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "model_case.h"
#include "npy.h"
#include "test_support.h"

/* Paths below ../shared/models without ".onnx"; `slow` nets take the reference
   engine more than a few seconds. */
static const struct {
  const char *path;
  int cases;
  bool slow;
} models[] = {
    {"waifu2x-upconv7-onnx/scale2.0x_model", 1, true},
    {"waifu2x-upconv7-onnx/noise1_scale2.0x_model", 1, true},
    {"ppocr-det-onnx/ch_ppocr_mobile_v2.0_det_infer", 1, false},
    {"ppocr-det-onnx/en_PP-OCRv3_det_infer", 2, false},
    {"ppocrv5-det/ppocrv5-det", 1, true},
    {"agllnet-lowlight-onnx/agllnet_256x256", 1, true},
    {"portrait-segmentation/prisma_nchw", 1, false},
    {"sed-gen-unet-onnx/unet", 1, false},
    {"fastestdet-onnx/FastestDet", 1, false},
    {"gtcrn/gtcrn", 1, false},
    {"gtcrn/gtcrn_simple", 1, false},
    {"hifigan-v3/hifigan-v3", 2, true},
    {"hifigan-v3-tf2onnx/hifigan-v3-tf2onnx", 1, true},
    {"lyragan-stream/lyragan-stream", 2, false},
    {"realcugan-se-up2x/realcugan-se-up2x", 1, true},
    {"realesr-animevideov3-x4/realesr-animevideov3-x4", 1, true},
    {"fsrcnn-x2/fsrcnn-x2", 1, false},
    {"selfie-segmentation/selfie-segmentation", 1, false},
    {"deepfilternet3-erb-dec/deepfilternet3-erb-dec", 1, false},
};

/* DIR/in.NAME.npy where NAME has every character outside [A-Za-z0-9_.]
   replaced by '_', or outside [A-Za-z0-9_] (older cases). */
static void file_name(const char *folder, const char *side, const char *name,
                      char *path, size_t size) {
  char clean[512];
  for (int keep_dots = 1; keep_dots >= 0; keep_dots--) {
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof clean; i++) {
      char c = name[i];
      bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                   (c >= '0' && c <= '9') || c == '_' ||
                   (keep_dots && c == '.');
      clean[i] = plain ? c : '_';
    }
    clean[i] = 0;
    snprintf(path, size, "%s/%s.%s.npy", folder, side, clean);
    if (access(path, R_OK) == 0)
      return;
  }
}

static void load_npy(const char *folder, const char *side, const char *name,
                     pph_tensor *tensor) {
  char path[2048];
  pph_error error = {0};
  file_name(folder, side, name, path, sizeof path);
  test_assert_ok(npy_load(path, tensor, &error), &error);
}

static void load_case(const char *model_path, const char *folder,
                      model_case *one) {
  pph_model *model;
  pph_error error = {0};
  *one = (model_case){
      .path = model_path, .absolute = 1e-4, .relative = 1e-4};
  test_assert_ok(pph_model_load(model_path, NULL, &model, &error), &error);
  one->input_count = pph_model_input_count(model);
  one->output_count = pph_model_output_count(model);
  assert_true(one->input_count <= CASE_MAX && one->output_count <= CASE_MAX);
  for (uint32_t i = 0; i < one->input_count; i++)
    load_npy(folder, "in", pph_model_input(model, i).name, &one->inputs[i]);
  for (uint32_t i = 0; i < one->output_count; i++)
    load_npy(folder, "out", pph_model_output(model, i).name,
             &one->outputs[i]);
  pph_model_destroy(model);
}

static void check_case(const model_case *one, bool slow) {
  if (getenv("POLYPHASE_QUICK")) {
    model_case_check(
        one, &(model_way){PPH_ENGINE_XNNPACK, true, PPH_LOWERING_ALWAYS, 2});
    return;
  }
  bool full = getenv("POLYPHASE_FULL") || !slow;
  for (uint32_t threads = 1; threads <= 2; threads++) {
    const pph_engine fast = PPH_ENGINE_XNNPACK, slow_one = PPH_ENGINE_REFERENCE;
    model_case_check(one,
                     &(model_way){fast, true, PPH_LOWERING_AUTO, threads});
    model_case_check(one,
                     &(model_way){fast, true, PPH_LOWERING_ALWAYS, threads});
    model_case_check(one,
                     &(model_way){fast, false, PPH_LOWERING_AUTO, threads});
    if (threads == 1 || full)
      model_case_check(
          one, &(model_way){slow_one, true, PPH_LOWERING_ALWAYS, threads});
    if (full)
      model_case_check(
          one, &(model_way){slow_one, false, PPH_LOWERING_AUTO, threads});
  }
}

static void test_models(void **state) {
  const char *wanted = getenv("POLYPHASE_MODEL");
  char relative[512], path[2048], folder[2048];
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    if (wanted && !strstr(models[i].path, wanted))
      continue;
    for (int n = 0; n < models[i].cases; n++) {
      snprintf(relative, sizeof relative, "models/%s.onnx", models[i].path);
      const char *shared = test_shared_path(relative);
      if (!shared)
        skip();
      snprintf(path, sizeof path, "%s", shared);
      snprintf(folder, sizeof folder, "%.*s.case%d",
               (int)(strlen(path) - strlen(".onnx")), path, n);
      printf("  %s case %d\n", models[i].path, n);
      fflush(stdout);
      model_case one;
      load_case(path, folder, &one);
      check_case(&one, models[i].slow);
      model_case_clear(&one);
    }
  }
}

/* acnet has no stored result: the engines judge each other. */
static void test_acnet(void **state) {
  const char *shared = test_shared_path("models/acnet-onnx/ACNetHDNL0.onnx");
  const char *wanted = getenv("POLYPHASE_MODEL");
  bool quick = getenv("POLYPHASE_QUICK") != NULL;
  if (!shared || (wanted && !strstr(shared, wanted)))
    skip();
  char path[1024];
  snprintf(path, sizeof path, "%s", shared);
  pph_model *model;
  pph_session *session;
  pph_session_options options;
  pph_error error = {0};
  model_case one = {.path = path,
                    .absolute = 1e-4,
                    .relative = 1e-4,
                    .input_count = 1,
                    .output_count = 1};
  size_t count = 1920 * 1080, bytes;
  one.inputs[0] = (pph_tensor){PPH_F32, {4, {1, 1, 1920, 1080}}, NULL};
  float *data = one.inputs[0].data = calloc(count, sizeof(float));
  test_random random = {7};
  for (size_t i = 0; i < count; i++)
    data[i] = (float)test_random_range(&random, 0, 255) / 255;
  pph_session_options_init(&options);
  options.engine = quick ? PPH_ENGINE_XNNPACK : PPH_ENGINE_REFERENCE;
  test_assert_ok(pph_model_load(path, NULL, &model, &error), &error);
  test_assert_ok(pph_session_create(model, &options, &session, &error),
                 &error);
  pph_tensor right;
  test_assert_ok(
      pph_session_run(session, one.inputs, 1, &right, 1, &error), &error);
  one.outputs[0] = right;
  assert_true(pph_shape_bytes(&right.shape, right.type, &bytes));
  one.outputs[0].data = malloc(bytes);
  memcpy(one.outputs[0].data, right.data, bytes);
  pph_session_destroy(session);
  pph_model_destroy(model);
  model_case_check(&one, &(model_way){PPH_ENGINE_XNNPACK, true,
                                      PPH_LOWERING_ALWAYS, 1});
  model_case_check(&one, &(model_way){PPH_ENGINE_XNNPACK, true,
                                      PPH_LOWERING_AUTO, 2});
  model_case_clear(&one);
}

/* The output "next.NAME" that input "state.NAME" is fed from. */
static uint32_t find_next(const pph_model *model, uint32_t input) {
  const char *state = pph_model_input(model, input).name;
  for (uint32_t i = 0; i < pph_model_output_count(model); i++) {
    const char *next = pph_model_output(model, i).name;
    if (strncmp(next, "next.", 5) == 0 &&
        strcmp(next + 5, state + strlen("state.")) == 0)
      return i;
  }
  fail_msg("no output feeds %s", state);
  return 0;
}

/* A codec's decoder, frame after frame with its states carried, over 172 real
   frames: the audio must be the stored one all along. */
static void test_lyragan_stream(void **state) {
  const char *shared =
      test_shared_path("models/lyragan-stream/lyragan-stream.onnx");
  const char *wanted = getenv("POLYPHASE_MODEL");
  if (!shared || (wanted && !strstr(shared, wanted)))
    skip();
  char path[1024], name[2048];
  snprintf(path, sizeof path, "%s", shared);
  pph_error error = {0};
  pph_tensor features, audio;
  snprintf(name, sizeof name, "%.*sstream.features.npy",
           (int)(strrchr(path, '/') - path + 1), path);
  test_assert_ok(npy_load(name, &features, &error), &error);
  snprintf(name, sizeof name, "%.*sstream.audio.npy",
           (int)(strrchr(path, '/') - path + 1), path);
  test_assert_ok(npy_load(name, &audio, &error), &error);
  char shape[128];
  printf("  features %s", pph_shape_text(&features.shape, shape, 128));
  printf(", audio %s\n", pph_shape_text(&audio.shape, shape, 128));
  pph_model *model;
  pph_session *session;
  test_assert_ok(pph_model_load(path, NULL, &model, &error), &error);
  test_assert_ok(pph_session_create(model, NULL, &session, &error), &error);
  uint32_t count = pph_model_input_count(model);
  assert_int_equal(count, pph_model_output_count(model));
  pph_tensor inputs[CASE_MAX], outputs[CASE_MAX];
  for (uint32_t i = 0; i < count; i++) {
    pph_value_info info = pph_model_input(model, i);
    size_t bytes;
    assert_true(pph_shape_bytes(&info.shape, info.type, &bytes));
    inputs[i] = (pph_tensor){info.type, info.shape, calloc(bytes + 1, 1)};
  }
  size_t elements, samples;
  assert_true(pph_shape_count(&features.shape, &elements));
  assert_true(pph_shape_count(&audio.shape, &samples));
  size_t frames = elements / 64, hop = samples / frames, worst_frame = 0;
  assert_int_equal(frames, 172);
  /* [.., 64, 172] or [172, 64]: the axis of length 172 is time. */
  bool time_last =
      features.shape.dims[features.shape.rank - 1] == (int64_t)frames;
  double worst = 0;
  for (size_t frame = 0; frame < frames; frame++) {
    for (size_t c = 0; c < 64; c++)
      ((float *)inputs[0].data)[c] =
          ((float *)features.data)[time_last ? c * frames + frame
                                             : frame * 64 + c];
    test_assert_ok(pph_session_run(session, inputs, count, outputs, count,
                                   &error),
                   &error);
    for (size_t i = 0; i < hop; i++) {
      double found = (double)((float *)outputs[0].data)[i];
      double right = (double)((float *)audio.data)[frame * hop + i];
      double distance = found > right ? found - right : right - found;
      if (distance > worst) {
        worst = distance;
        worst_frame = frame;
      }
      if (!(distance <= 1e-4 + 1e-4 * (right < 0 ? -right : right)))
        fail_msg("frame %zu sample %zu is %g, should be %g", frame, i, found,
                 right);
    }
    for (uint32_t i = 1; i < count; i++) {
      size_t bytes;
      const pph_tensor *next = &outputs[find_next(model, i)];
      assert_true(pph_shape_equal(&inputs[i].shape, &next->shape));
      assert_true(pph_shape_bytes(&inputs[i].shape, inputs[i].type, &bytes));
      memcpy(inputs[i].data, next->data, bytes);
    }
  }
  printf("  largest difference %g in frame %zu\n", worst, worst_frame);
  for (uint32_t i = 0; i < count; i++)
    free(inputs[i].data);
  free(features.data);
  free(audio.data);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_models),
                                     cmocka_unit_test(test_acnet),
                                     cmocka_unit_test(test_lyragan_stream)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
