/* Sums and slopes that go into native convolutions: on integers every engine,
   fused or not, gives the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_writer.h"
#include "polyphase/polyphase.h"
#include "test_support.h"

enum { BATCH = 2, HEIGHT = 5, WIDTH = 7, MIDDLE = 4, LAST = 40 };
enum {
  INPUTS = BATCH * 3 * HEIGHT * WIDTH,
  MIDDLES = BATCH * MIDDLE * 4 * HEIGHT * WIDTH,
  OUTPUTS = BATCH * LAST * 4 * HEIGHT * WIDTH
};

static void put_floats(FILE *text, const char *name, const char *shape,
                       size_t count, test_random *random) {
  fprintf(text, "init %s f32 %s", name, shape);
  for (size_t i = 0; i < count; i++)
    fprintf(text, " %d", (int)test_random_range(random, -3, 3));
  fprintf(text, "\n");
}

/* Twice a convolution, an Add and an activation. */
static pph_model *make_model(void) {
  char *text;
  size_t size;
  test_random random = {test_seed("fused")};
  FILE *file = open_memstream(&text, &size);
  fprintf(file, "opset 17\n"
                "in x f32 2x3x5x7\nin r f32 2x4x10x14\nin s f32 2x40x10x14\n"
                "out b\nout y\n"
                "init slopes f32 4x1x1 0.25 -2 0 1\n"
                "init low f32 scalar -20\ninit high f32 scalar 50\n");
  put_floats(file, "w", "3x4x3x3", 3 * 4 * 9, &random);
  put_floats(file, "v", "40x4x3x3", 40 * 4 * 9, &random);
  put_floats(file, "bias", "40", 40, &random);
  fprintf(file,
          "node ConvTranspose x w -> a strides=is:2,2 pads=is:1,1,1,1 "
          "output_padding=is:1,1\n"
          "node Add r a -> sum\n"
          "node PRelu sum slopes -> b\n"
          "node Conv b v bias -> c pads=is:1,1,1,1\n"
          "node Add c s -> d\n"
          "node Clip d low high -> y\n");
  fclose(file);
  model_bytes bytes = model_write(text);
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(pph_model_load_bytes(bytes.data, bytes.length, NULL, NULL,
                                      &model, &error),
                 &error);
  model_bytes_free(&bytes);
  free(text);
  return model;
}

static int count_steps(const pph_session *session, const char *part) {
  int found = 0;
  for (uint32_t i = 0; i < pph_session_plan(session).steps; i++)
    found += strstr(pph_session_step(session, i).algorithm, part) != NULL;
  return found;
}

static void run(const pph_model *model, const pph_session_options *options,
                pph_tensor *inputs, float *results) {
  pph_session *session;
  pph_error error = {0};
  test_assert_ok(pph_session_create(model, options, &session, &error),
                 &error);
  pph_tensor outputs[2] = {{0}};
  test_assert_ok(pph_session_run(session, inputs, 3, outputs, 2, &error),
                 &error);
  bool native = options->engine == PPH_ENGINE_AUTO ||
                options->engine == PPH_ENGINE_NATIVE;
  bool fuses = options->optimize && native;
  assert_int_equal(count_steps(session, "+add"), fuses ? 2 : 0);
  assert_int_equal(count_steps(session, "+add+prelu"), fuses ? 1 : 0);
  memcpy(results, outputs[0].data, MIDDLES * sizeof(float));
  memcpy(results + MIDDLES, outputs[1].data, OUTPUTS * sizeof(float));
  pph_session_destroy(session);
}

static float *fill(size_t count, test_random *random) {
  float *values = malloc(count * sizeof *values);
  for (size_t i = 0; i < count; i++)
    values[i] = (float)test_random_range(random, -4, 4);
  return values;
}

static void test_engines(void **state) {
  static float expected[MIDDLES + OUTPUTS], found[MIDDLES + OUTPUTS];
  pph_model *model = make_model();
  test_random random = {test_seed("inputs")};
  pph_tensor inputs[3] = {
      {PPH_F32, {4, {BATCH, 3, HEIGHT, WIDTH}}, fill(INPUTS, &random)},
      {PPH_F32,
       {4, {BATCH, MIDDLE, 2 * HEIGHT, 2 * WIDTH}},
       fill(MIDDLES, &random)},
      {PPH_F32,
       {4, {BATCH, LAST, 2 * HEIGHT, 2 * WIDTH}},
       fill(OUTPUTS, &random)}};
  pph_session_options options;
  pph_session_options_init(&options);
  options.engine = PPH_ENGINE_REFERENCE;
  options.optimize = false;
  run(model, &options, inputs, expected);
  options.accuracy = PPH_ACCURACY_EXACT;
  for (int engine = PPH_ENGINE_AUTO; engine <= PPH_ENGINE_REFERENCE; engine++)
    for (int way = 0; way < 4; way++) {
      options.engine = (pph_engine)engine;
      options.optimize = way & 1;
      options.threads = way & 2 ? 2 : 1;
      run(model, &options, inputs, found);
      for (size_t i = 0; i < MIDDLES + OUTPUTS; i++)
        if (expected[i] != found[i])
          fail_msg("engine %d, way %d: element %zu is %g, not %g", engine, way,
                   i, (double)found[i], (double)expected[i]);
    }
  for (int i = 0; i < 3; i++)
    free(inputs[i].data);
  pph_model_destroy(model);
}

/* The fourth input is no model file's to give. */
static void test_refused(void **state) {
  model_bytes bytes = model_write("opset 17\nin x f32 1x1x4\nout y\n"
                                  "init w f32 1x1x1 2\ninit b f32 1 3\n"
                                  "node Conv x w b x -> y\n");
  pph_model *model;
  pph_error error = {0};
  assert_int_equal(pph_model_load_bytes(bytes.data, bytes.length, NULL, NULL,
                                        &model, &error),
                   PPH_BAD_MODEL);
  assert_non_null(strstr(error.message, "4 inputs"));
  model_bytes_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_engines),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
