/* Choosing by measurement: values stay what they are allowed to be, a remembered
   choice is obeyed, and no file can do harm. What was faster is not judged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "polyphase/polyphase.h"
#include "runtime/tune_table.h"
#include "test_support.h"

enum { SIDE = 12, IN = 3 * SIDE * SIDE, OUT = 4 * IN, PATH = 256 };

static char folder[64];

typedef struct outcome {
  pph_plan_info plan;
  float values[OUT];
  char algorithms[16][48]; /* of the convolutions, in their order */
  int count;
} outcome;

static const char *place(char text[PATH], const char *name) {
  snprintf(text, PATH, "%s/%s", folder, name);
  return text;
}

static pph_model *load(void) {
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(
      pph_model_load(PPH_SOURCE_DIR "/examples/upscale/upscale.onnx", NULL,
                     &model, &error),
      &error);
  return model;
}

static pph_session_options tuned(const char *path) {
  pph_session_options options;
  pph_session_options_init(&options);
  options.tune = true;
  options.tune_file = path;
  return options;
}

static pph_status try_run(const pph_model *model,
                          const pph_session_options *options, outcome *result,
                          pph_error *error) {
  float pixels[IN];
  pph_tensor input = {PPH_F32, {4, {1, 3, SIDE, SIDE}}, pixels}, output;
  pph_session *session;
  test_fill_x(pixels, IN);
  *result = (outcome){.count = 0};
  pph_status status =
      pph_session_create(model, options, &session, error);
  if (status != PPH_OK)
    return status;
  status = pph_session_run(session, &input, 1, &output, 1, error);
  result->plan = pph_session_plan(session);
  if (status == PPH_OK)
    memcpy(result->values, output.data, sizeof result->values);
  for (uint32_t i = 0; i < result->plan.steps; i++) {
    pph_step_info step = pph_session_step(session, i);
    if (strncmp(step.kind, "Conv", 4) == 0)
      snprintf(result->algorithms[result->count++], 48, "%s", step.algorithm);
  }
  pph_session_destroy(session);
  return status;
}

static void run(const pph_model *model, const pph_session_options *options,
                outcome *result) {
  pph_error error = {0};
  test_assert_ok(try_run(model, options, result, &error), &error);
  assert_int_equal(result->count, 6);
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static char *read_text(const char *path) {
  size_t length;
  uint8_t *bytes = test_read_file(path, &length);
  char *text = malloc(length + 1);
  assert_non_null(text);
  memcpy(text, bytes, length);
  text[length] = 0;
  free(bytes);
  return text;
}

/* The file with `choice` behind every key. */
static void force(const char *path, const char *choice) {
  char *text = read_text(path);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    char *end = strstr(line, " = ");
    assert_non_null(end);
    fprintf(file, "%.*s = %s\n", (int)(end - line), line, choice);
  }
  assert_int_equal(fclose(file), 0);
  free(text);
}

static void check_close(const outcome *a, const outcome *b) {
  for (int i = 0; i < OUT; i++)
    if (!(fabsf(a->values[i] - b->values[i]) <= 1e-4f))
      fail_msg("element %d is %g, must be %g", i, (double)a->values[i],
               (double)b->values[i]);
}

static void test_values(void **state) {
  static const pph_engine engines[] = {PPH_ENGINE_AUTO, PPH_ENGINE_NATIVE};
  pph_model *model = load();
  outcome judge, plain, measured, remembered;
  char path[PATH];
  pph_session_options reference = tuned(NULL);
  reference.tune = false;
  reference.engine = PPH_ENGINE_REFERENCE;
  run(model, &reference, &judge);
  assert_int_equal(judge.plan.measured, 0);
  for (int engine = 0; engine < 2; engine++)
    for (int accuracy = 0; accuracy <= PPH_ACCURACY_EXACT; accuracy++)
      for (uint32_t threads = 1; threads <= 2; threads++) {
        pph_session_options options = tuned(place(path, "values"));
        options.engine = engines[engine];
        options.accuracy = (pph_accuracy)accuracy;
        options.threads = threads;
        unlink(path);
        run(model, &options, &measured);
        assert_int_equal(measured.plan.measured, 3);
        assert_int_equal(measured.plan.equal, 3);
        assert_int_equal(measured.plan.remembered, 0);
        assert_int_equal(measured.plan.unwritten, 0);
        run(model, &options, &remembered);
        assert_int_equal(remembered.plan.measured, 0);
        assert_int_equal(remembered.plan.equal, 0);
        assert_int_equal(remembered.plan.remembered, 6);
        assert_memory_equal(measured.algorithms, remembered.algorithms,
                            sizeof measured.algorithms);
        assert_memory_equal(measured.values, remembered.values,
                            sizeof measured.values);
        check_close(&measured, &judge);
        options.tune = false;
        run(model, &options, &plain);
        assert_int_equal(plain.plan.remembered, 0);
        if (accuracy == PPH_ACCURACY_EXACT)
          assert_memory_equal(measured.values, plain.values,
                              sizeof plain.values);
      }
  pph_model_destroy(model);
}

/* Other engines have nothing to choose. */
static void test_other_engines(void **state) {
  pph_model *model = load();
  outcome result;
  char path[PATH];
  pph_session_options options = tuned(place(path, "none"));
  options.engine = PPH_ENGINE_XNNPACK;
  run(model, &options, &result);
  assert_int_equal(result.plan.measured, 0);
  options.engine = PPH_ENGINE_REFERENCE;
  run(model, &options, &result);
  assert_int_equal(result.plan.measured + result.plan.remembered, 0);
  assert_int_not_equal(access(path, F_OK), 0);
  pph_model_destroy(model);
}

static void test_forced(void **state) {
  static const char *const names[] = {"native.gather", "native.reference",
                                      "native.filtered.c2", "xnnpack"};
  pph_model *model = load();
  outcome judge, result;
  char path[PATH];
  pph_session_options options = tuned(place(path, "forced"));
  run(model, &options, &judge);
  for (int i = 0; i < 4; i++) {
    force(path, names[i]);
    run(model, &options, &result);
    check_close(&result, &judge);
    /* filtered.c2 is not for 5 x 5 taps, which the first has */
    bool some = i == 2;
    assert_true(result.plan.remembered >= (some ? 4 : 6));
    assert_true(some || result.plan.measured == 0);
    for (int k = some; k < result.count - some; k++)
      if (strncmp(result.algorithms[k], names[i], strlen(names[i])) != 0)
        fail_msg("%s was taken, not %s", result.algorithms[k], names[i]);
  }
  pph_model_destroy(model);
}

/* A choice that the accuracy does not allow is measured again. */
static void test_not_allowed(void **state) {
  static const char *const names[] = {"native.filtered.c4", "xnnpack",
                                      "native.filtered", "native.none",
                                      "reference", "native", "native."};
  pph_model *model = load();
  outcome plain, result;
  char path[PATH];
  pph_session_options options = tuned(place(path, "allowed"));
  options.accuracy = PPH_ACCURACY_EXACT;
  options.tune = false;
  run(model, &options, &plain);
  options.tune = true;
  run(model, &options, &result);
  for (int i = 0; i < 7; i++) {
    force(path, names[i]);
    run(model, &options, &result);
    assert_int_equal(result.plan.measured, 3);
    assert_memory_equal(result.values, plain.values, sizeof plain.values);
  }
  pph_model_destroy(model);
}

static void test_damaged(void **state) {
  pph_model *model = load();
  outcome judge, result;
  char path[PATH];
  test_random random = {test_seed("tune")};
  pph_session_options options = tuned(place(path, "damaged"));
  run(model, &options, &judge);
  char *good = read_text(path);
  size_t length = strlen(good);
  for (uint32_t round = 0; round < test_rounds(100); round++) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs("key = choice\n", file); /* by which it is known as one of these */
    size_t cut = (size_t)test_random_range(&random, 0, (int64_t)length);
    for (size_t i = 0; i < cut; i++) {
      bool hit = test_random_range(&random, 0, 99) == 0;
      fputc(hit ? (int)test_random_range(&random, 0, 255) : good[i], file);
    }
    assert_int_equal(fclose(file), 0);
    run(model, &options, &result);
    check_close(&result, &judge);
    assert_int_equal(result.plan.measured + result.plan.equal +
                         result.plan.remembered,
                     6);
    assert_int_equal(result.plan.unwritten, 0);
    run(model, &options, &result);
    assert_int_equal(result.plan.remembered, 6);
  }
  write_text(path, " = \n = x\nx = \n\n\n=\nkey = choice = more\nlast = one");
  run(model, &options, &result);
  assert_int_equal(result.plan.measured, 3);
  free(good);
  good = read_text(path);
  assert_non_null(strstr(good, "last = one\n"));
  assert_null(strstr(good, "\n = "));
  free(good);
  pph_model_destroy(model);
}

static void test_unwritable(void **state) {
  pph_model *model = load();
  outcome result;
  char path[PATH];
  struct stat facts;
  pph_session_options options = tuned(place(path, "no/such/folder"));
  run(model, &options, &result);
  assert_int_equal(result.plan.measured, 3);
  assert_int_equal(result.plan.unwritten, 3);
  options.tune_file = folder;
  run(model, &options, &result);
  assert_int_equal(result.plan.unwritten, 3);
  options.tune_file = "/dev/null";
  run(model, &options, &result);
  assert_int_equal(result.plan.unwritten, 3);
  assert_int_equal(stat("/dev/null", &facts), 0);
  assert_true(S_ISCHR(facts.st_mode));
  pph_model_destroy(model);
}

/* The file does not grow for ever, and keeps what came last. */
static void test_bounded(void **state) {
  pph_model *model = load();
  outcome result;
  char path[PATH];
  pph_session_options options = tuned(place(path, "long"));
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < PPH_TUNE_MOST; i++)
    fprintf(file, "key %d = choice\n", i);
  assert_int_equal(fclose(file), 0);
  run(model, &options, &result);
  char *text = read_text(path);
  int lines = 0;
  for (const char *c = text; *c; c++)
    lines += *c == '\n';
  assert_int_equal(lines, PPH_TUNE_MOST);
  assert_null(strstr(text, "key 2 ="));
  assert_non_null(strstr(text, "key 3 ="));
  free(text);
  file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < 200000; i++)
    fprintf(file, "key %d = choice\n", i);
  assert_int_equal(fclose(file), 0);
  run(model, &options, &result);
  assert_int_equal(result.plan.measured, 3); /* too long to be read */
  assert_int_equal(result.plan.unwritten, 3);
  pph_model_destroy(model);
}

/* A file that is something else stays as it is. */
static void test_foreign(void **state) {
  static const char text[] = "a letter\n\nof somebody\n";
  pph_model *model = load();
  outcome result;
  char path[PATH];
  pph_session_options options = tuned(place(path, "letter"));
  write_text(path, text);
  run(model, &options, &result);
  assert_int_equal(result.plan.measured, 3);
  assert_int_equal(result.plan.unwritten, 3);
  char *now = read_text(path);
  assert_string_equal(now, text);
  free(now);
  pph_model_destroy(model);
}

/* Two tables that write one file keep what the other wrote. */
static void test_shared(void **state) {
  pph_heap heap;
  pph_tune_table a, b, found;
  pph_error error = {0};
  char path[PATH];
  place(path, "shared");
  pph_heap_init(&heap, NULL, 0);
  pph_tune_table_init(&a, &heap);
  pph_tune_table_init(&b, &heap);
  pph_tune_table_init(&found, &heap);
  test_assert_ok(pph_tune_table_read(&a, path, &error), &error);
  test_assert_ok(pph_tune_table_read(&b, path, &error), &error);
  test_assert_ok(pph_tune_table_set(&a, "one", "a", &error), &error);
  test_assert_ok(pph_tune_table_set(&a, "two", "a", &error), &error);
  test_assert_ok(pph_tune_table_set(&b, "two", "b", &error), &error);
  test_assert_ok(pph_tune_table_write(&a, path, &error), &error);
  assert_int_equal(pph_tune_table_count_fresh(&a), 0);
  test_assert_ok(pph_tune_table_write(&b, path, &error), &error);
  test_assert_ok(pph_tune_table_read(&found, path, &error), &error);
  assert_int_equal(found.count, 2);
  assert_string_equal(pph_tune_table_find(&found, "one"), "a");
  assert_string_equal(pph_tune_table_find(&found, "two"), "b");
  assert_null(pph_tune_table_find(&found, "three"));
  pph_tune_table_clear(&a);
  pph_tune_table_clear(&b);
  pph_tune_table_clear(&found);
  assert_int_equal(atomic_load(&heap.used), 0);
}

static void test_usual_place(void **state) {
  pph_model *model = load();
  outcome result;
  char cache[PATH], home[PATH], path[PATH];
  pph_session_options options = tuned(NULL);
  setenv("XDG_CACHE_HOME", place(cache, "cache"), 1);
  setenv("HOME", place(home, "home"), 1);
  assert_int_equal(mkdir(home, 0777), 0);
  run(model, &options, &result);
  assert_int_equal(result.plan.unwritten, 0);
  assert_int_equal(access(place(path, "cache/polyphase/tune"), R_OK), 0);
  unsetenv("XDG_CACHE_HOME");
  run(model, &options, &result);
  assert_int_equal(result.plan.measured, 3);
  assert_int_equal(access(place(path, "home/.cache/polyphase/tune"), R_OK), 0);
  unsetenv("HOME");
  run(model, &options, &result);
  assert_int_equal(result.plan.unwritten, 3);
  pph_model_destroy(model);
}

typedef struct seen {
  uint32_t calls, done, nodes;
} seen;

static void count_call(void *context, uint32_t done, uint32_t nodes) {
  seen *all = context;
  all->calls++;
  all->done = done;
  all->nodes = nodes;
}

static void test_progress(void **state) {
  pph_model *model = load();
  outcome result;
  seen all = {0};
  char path[PATH];
  pph_session_options options = tuned(place(path, "progress"));
  options.tune_progress = count_call;
  options.progress_context = &all;
  run(model, &options, &result);
  assert_int_equal(all.calls, result.plan.steps);
  assert_int_equal(all.done, result.plan.steps);
  assert_int_equal(all.nodes, result.plan.steps);
  pph_model_destroy(model);
}

static void test_misuse(void **state) {
  pph_model *model = load();
  outcome result;
  pph_error error = {0};
  pph_session_options options = tuned("");
  assert_int_equal(try_run(model, &options, &result, &error),
                   PPH_INVALID_ARGUMENT);
  assert_string_equal(error.message, "tune_file must not be empty");
  pph_model_destroy(model);
}

/* Wherever memory runs out, in measuring too, all of it comes back. */
static void test_out_of_memory(void **state) {
  outcome result;
  char path[PATH];
  pph_session_options options = tuned(place(path, "memory"));
  pph_model_options model_options;
  pph_status status = PPH_OUT_OF_MEMORY;
  pph_model_options_init(&model_options);
  for (size_t i = 1; status == PPH_OUT_OF_MEMORY || i < 400; i += 1 + i / 40) {
    test_failing memory = {.fail_at = 0};
    pph_allocator allocator = test_failing_allocator(&memory);
    pph_model *model;
    pph_error error = {0};
    model_options.allocator = &allocator;
    test_assert_ok(
        pph_model_load(PPH_SOURCE_DIR "/examples/upscale/upscale.onnx",
                       &model_options, &model, &error),
        &error);
    memory.fail_at = memory.count + i;
    unlink(path);
    status = try_run(model, &options, &result, &error);
    assert_true(status == PPH_OK || status == PPH_OUT_OF_MEMORY);
    pph_model_destroy(model);
    assert_int_equal(memory.open, 0);
    assert_true(i < 100000);
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),       cmocka_unit_test(test_other_engines),
      cmocka_unit_test(test_forced),       cmocka_unit_test(test_not_allowed),
      cmocka_unit_test(test_foreign),
      cmocka_unit_test(test_damaged),      cmocka_unit_test(test_unwritable),
      cmocka_unit_test(test_bounded),      cmocka_unit_test(test_shared),
      cmocka_unit_test(test_usual_place),  cmocka_unit_test(test_progress),
      cmocka_unit_test(test_misuse),       cmocka_unit_test(test_out_of_memory),
  };
  snprintf(folder, sizeof folder, "/tmp/polyphase_tune_XXXXXX");
  if (!mkdtemp(folder))
    return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command) != 0 || failed;
}
