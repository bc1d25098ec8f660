/* Programs of others: each one of ../shared/pte gives its stored outputs within
   its tolerance, on every engine, optimized and not, step by step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "graph/eval_rules.h"
#include "npy.h"
#include "optimize/optimize.h"
#include "polyphase/polyphase.h"
#include "pte/container_write.h"
#include "test_support.h"

enum { FILES = 8, STEPS = 4 };

/* A list of names; they point into the text of cases.json. */
typedef struct names {
  const char *at[FILES];
  uint32_t count;
} names;

typedef struct program_case {
  const char *folder, *name;
  const char *programs; /* a folder with other .pte and .ptd; NULL: folder */
  double tolerance;
  names files;
  struct {
    const char *method;
    names in, out;
  } steps[STEPS];
  uint32_t step_count;
} program_case;

/* cases.json has one key or item a line, and no quotes inside texts that are
   read here. Texts are cut in place. */
static const char *cut_text(char **at) {
  char *begin = strchr(*at, '"');
  assert_non_null(begin);
  char *end = strchr(begin + 1, '"');
  assert_non_null(end);
  *end = 0;
  *at = end + 1;
  return begin + 1;
}

static names cut_list(char **at) {
  names list = {.count = 0};
  char *end = strchr(*at, ']');
  for (;;) {
    char *quote = strchr(*at, '"');
    if (!quote || quote > end)
      break;
    assert_true(list.count < FILES);
    list.at[list.count++] = cut_text(at);
  }
  *at = end + 1;
  return list;
}

/* Puts `at` behind the key if it is there. */
static bool find_key(char **at, const char *key) {
  char text[32];
  snprintf(text, sizeof text, "\n\"%s\":", key);
  char *found = strstr(*at, text);
  if (found)
    *at = found + strlen(text);
  return found != NULL;
}

static void read_case(char *at, program_case *one) {
  char *steps = at, *files = at;
  one->name = NULL;
  assert_true(find_key(&at, "tolerance"));
  one->tolerance = strtod(at, NULL);
  assert_true(find_key(&files, "files"));
  one->files = cut_list(&files);
  steps = files;
  while (find_key(&steps, "method")) {
    assert_true(one->step_count < STEPS);
    one->steps[one->step_count].method = cut_text(&steps);
    assert_true(find_key(&steps, "in"));
    one->steps[one->step_count].in = cut_list(&steps);
    assert_true(find_key(&steps, "out"));
    one->steps[one->step_count++].out = cut_list(&steps);
  }
}

/* One way to run. */
typedef struct way {
  pph_engine engine;
  bool optimize;
} way;

static void load_npy(const program_case *one, const char *name,
                     pph_tensor *tensor) {
  char path[2048];
  pph_error error = {0};
  snprintf(path, sizeof path, "%s/%s", one->folder, name);
  test_assert_ok(npy_load(path, tensor, &error), &error);
}

static void compare(const program_case *one, const char *what,
                    const pph_tensor *found, const pph_tensor *right) {
  size_t count = 0;
  char a[128], b[128];
  /* Halves are stored as floats. */
  if ((found->type != right->type && found->type != PPH_F16) ||
      !pph_shape_equal(&found->shape, &right->shape))
    fail_msg("%s: %s is %s %s, not %s %s", one->name, what,
             pph_dtype_name(found->type),
             pph_shape_text(&found->shape, a, sizeof a),
             pph_dtype_name(right->type),
             pph_shape_text(&right->shape, b, sizeof b));
  assert_true(pph_shape_count(&right->shape, &count));
  for (size_t i = 0; i < count; i++) {
    double x = pph_number_real(found, (int64_t)i);
    double y = pph_number_real(right, (int64_t)i);
    /* The tolerance is for results of size 1. */
    if (!(fabs(x - y) <= one->tolerance * fmax(1, fabs(y))))
      fail_msg("%s: %s element %zu is %.9g, not %.9g", one->name, what, i, x,
               y);
  }
}

static void run_step(const program_case *one, uint32_t number,
                     pph_session *session) {
  pph_tensor inputs[FILES], outputs[FILES];
  const names *in = &one->steps[number].in, *out = &one->steps[number].out;
  pph_error error = {0};
  for (uint32_t i = 0; i < in->count; i++)
    load_npy(one, in->at[i], &inputs[i]);
  pph_status status = pph_session_run(session, inputs, in->count, outputs,
                                      out->count, &error);
  if (status != PPH_OK)
    fail_msg("%s: step %u: %s: %s", one->name, number, error.where,
             error.message);
  for (uint32_t i = 0; i < out->count; i++) {
    pph_tensor right;
    load_npy(one, out->at[i], &right);
    compare(one, out->at[i], &outputs[i], &right);
    free(right.data);
  }
  for (uint32_t i = 0; i < in->count; i++)
    free(inputs[i].data);
}

static pph_status load(const program_case *one, const char *method,
                       pph_model **model, pph_error *error) {
  static char paths[FILES][2048];
  const char *constants[FILES];
  pph_model_options options;
  pph_model_options_init(&options);
  options.constants = constants;
  for (uint32_t i = 0; i < one->files.count; i++) {
    snprintf(paths[i], sizeof *paths, "%s/%s",
             one->programs ? one->programs : one->folder, one->files.at[i]);
    if (strstr(one->files.at[i], ".ptd"))
      constants[options.constant_count++] = paths[i];
  }
  options.method = method;
  return pph_model_load(paths[0], &options, model, error);
}

static void write_file(const char *path, const void *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

/* Reads the container, rewrites it, checks that what comes out is read back the
   same and not rewritten again, and puts all into `folder`. */
static void rewrite(const program_case *one, const char *folder, bool always) {
  pph_pte_source sources[FILES];
  uint32_t count = 0;
  pph_heap heap;
  pph_pte *pte;
  pph_error error = {0};
  pph_optimize_result result;
  const pph_optimize_options options = {.always = always};
  for (uint32_t i = 0; i < one->files.count; i++) {
    char path[2048];
    size_t length;
    snprintf(path, sizeof path, "%s/%s", one->folder, one->files.at[i]);
    if (i && !strstr(path, ".ptd"))
      continue;
    uint8_t *bytes = test_read_file(path, &length);
    sources[count++] = (pph_pte_source){one->files.at[i], {bytes, length}};
  }
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(pph_pte_open(&sources[0], sources + 1, count - 1, &heap, &pte,
                              &error),
                 &error);
  test_assert_ok(pph_pte_optimize(pte, &options, &result, &error), &error);
  for (uint32_t i = 0; i < count; i++) {
    char path[2048];
    void *bytes;
    size_t length;
    pph_status status =
        i ? pph_pte_write_external(&pte->externals[i - 1], &heap, &bytes,
                                   &length, &error)
          : pph_pte_write(pte, &heap, &bytes, &length, &error);
    test_assert_ok(status, &error);
    bool changed = i ? result.external_changed[i - 1] : result.changes > 0;
    bool equal = length == sources[i].bytes.count &&
                 memcmp(bytes, sources[i].bytes.at, length) == 0;
    if (changed == equal)
      fail_msg("%s: %s %s", one->name, sources[i].name,
               changed ? "is the same, though changes were told"
                       : "differs, though none were told");
    snprintf(path, sizeof path, "%s/%s", folder, sources[i].name);
    write_file(path, bytes, length);
    pph_heap_release(&heap, bytes);
  }
  pph_pte_close(pte);
  for (uint32_t i = 0; i < count; i++)
    free((void *)(uintptr_t)sources[i].bytes.at);
}

static void remove_rewritten(const program_case *one, const char *folder) {
  for (uint32_t i = 0; i < one->files.count; i++) {
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", folder, one->files.at[i]);
    remove(path);
  }
  assert_int_equal(rmdir(folder), 0);
}

static void run_case(const program_case *one, const way *how) {
  pph_model *model = NULL;
  pph_session *session = NULL;
  pph_session_options options;
  pph_error error = {0};
  pph_session_options_init(&options);
  options.engine = how->engine;
  options.optimize = how->optimize;
  for (uint32_t i = 0; i < one->step_count; i++) {
    const char *method = one->steps[i].method;
    if (!i || strcmp(method, one->steps[i - 1].method) != 0) {
      pph_session_destroy(session);
      pph_model_destroy(model);
      pph_status status = load(one, method, &model, &error);
      if (status != PPH_OK)
        fail_msg("%s: %s: %s", one->name, error.where, error.message);
      test_assert_ok(pph_session_create(model, &options, &session, &error),
                     &error);
    }
    run_step(one, i, session);
  }
  pph_session_destroy(session);
  pph_model_destroy(model);
}

static void check_case(const program_case *one) {
  static const way ways[] = {{PPH_ENGINE_AUTO, true},
                             {PPH_ENGINE_AUTO, false},
                             {PPH_ENGINE_NATIVE, true},
                             {PPH_ENGINE_XNNPACK, true},
                             {PPH_ENGINE_REFERENCE, true},
                             {PPH_ENGINE_REFERENCE, false}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    run_case(one, &ways[i]);
}

/* The same outputs from what `optimize` makes of the program, where it thinks
   it worth it and everywhere. */
static void check_rewritten(const program_case *one) {
  static const way ways[] = {{PPH_ENGINE_AUTO, true},
                             {PPH_ENGINE_REFERENCE, false}};
  program_case again = *one;
  char folder[] = "/tmp/pph_rewritten_XXXXXX";
  assert_non_null(mkdtemp(folder));
  again.programs = folder;
  for (int always = 0; always < 2; always++) {
    rewrite(one, folder, always);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
      run_case(&again, &ways[i]);
  }
  remove_rewritten(one, folder);
}

static void each_real(void (*check)(const program_case *one)) {
  int count = 0;
  char folder[1024];
  size_t length;
  const char *path = test_shared_path("pte/real/cases.json");
  if (!path)
    skip();
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path),
           path);
  uint8_t *bytes = test_read_file(path, &length);
  char *text = malloc(length + 1);
  assert_non_null(text);
  memcpy(text, bytes, length);
  text[length] = 0;
  char *at = text;
  bool more = find_key(&at, "name");
  while (more) {
    const char *name = cut_text(&at);
    char *begin = at;
    more = find_key(&at, "name");
    if (more)
      at[-1] = 0; /* the key's colon ends this case */
    program_case one = {.folder = folder};
    read_case(begin, &one);
    one.name = name;
    /* The file's tolerance is one step of the integers; here none differs. */
    if (name[0] == 'q' || strncmp(name, "dyn_q", 5) == 0)
      one.tolerance = 1e-6;
    check(&one);
    count++;
  }
  assert_int_equal(count, 83);
  free(text);
  free(bytes);
}

static void test_real(void **state) { each_real(check_case); }

static void test_rewritten(void **state) { each_real(check_rewritten); }

/* Raw floats as a tensor of a declared shape; the data is `floats`. */
static pph_tensor load_raw(const char *path, const pph_shape *shape,
                           uint8_t **floats) {
  size_t length, count;
  *floats = test_read_file(path, &length);
  assert_true(pph_shape_count(shape, &count));
  assert_int_equal(length, count * sizeof(float));
  return (pph_tensor){PPH_F32, *shape, *floats};
}

/* Floats of [1,C,H,W] as they lie channels last to row-major. */
static void to_rows(const pph_tensor *tensor) {
  int64_t channels = tensor->shape.dims[1];
  int64_t plane = tensor->shape.dims[2] * tensor->shape.dims[3];
  float *data = tensor->data, copy[512];
  assert_true(channels * plane <= 512);
  memcpy(copy, data, (size_t)(channels * plane) * sizeof *data);
  for (int64_t c = 0; c < channels; c++)
    for (int64_t i = 0; i < plane; i++)
      data[c * plane + i] = copy[i * channels + c];
}

/* The program of `programs` gives what the folder of `one` has. */
static void run_made(const program_case *one, const char *programs) {
  const char *name = one->name;
  char path[4][2048];
  static const char *const ends[] = {"pte", "ptd", "in", "ref"};
  const char *const constants[] = {path[1]};
  pph_model *model;
  pph_session *session;
  pph_model_options options;
  pph_error error = {0};
  uint8_t *floats[2];
  for (int i = 0; i < 4; i++)
    snprintf(path[i], sizeof *path, "%s/%s.%s", i < 2 ? programs : one->folder,
             name, ends[i]);
  pph_model_options_init(&options);
  options.constants = constants;
  options.constant_count = one->files.count - 1;
  pph_status status = pph_model_load(path[0], &options, &model, &error);
  test_assert_ok(status, &error);
  pph_shape in = pph_model_input(model, 0).shape;
  pph_tensor input = load_raw(path[2], &in, &floats[0]), output;
  bool channels_last = strncmp(name, "nchw", 4) != 0;
  if (channels_last)
    to_rows(&input);
  test_assert_ok(pph_session_create(model, NULL, &session, &error), &error);
  test_assert_ok(pph_session_run(session, &input, 1, &output, 1, &error),
                 &error);
  pph_tensor right = load_raw(path[3], &output.shape, &floats[1]);
  if (channels_last)
    to_rows(&right);
  compare(one, "output", &output, &right);
  free(floats[0]);
  free(floats[1]);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

/* As it is and as `optimize` makes it. */
static void check_made(const char *folder, const char *name) {
  char program[64], constants[64];
  char rewritten[] = "/tmp/pph_rewritten_XXXXXX";
  const program_case one = {
      .folder = folder,
      .name = name,
      .tolerance = 1e-5,
      .files = {{program, constants}, strstr(name, "_ptd") ? 2 : 1}};
  snprintf(program, sizeof program, "%s.pte", name);
  snprintf(constants, sizeof constants, "%s.ptd", name);
  run_made(&one, folder);
  assert_non_null(mkdtemp(rewritten));
  for (int always = 0; always < 2; always++) {
    rewrite(&one, rewritten, always);
    run_made(&one, rewritten);
  }
  remove_rewritten(&one, rewritten);
}

static void test_made(void **state) {
  static const char *const list[] = {
      "nchw", "nchw_inline", "nchw_inline_uaf", "nchw_poly", "nchw_ptd",
      "nchw_uaf", "nchw_uaf_ptd", "nhwc", "nhwc_poly", "nhwc_poly_ptd", "q0"};
  const char *path = test_shared_path("pte");
  char folder[1024];
  if (!path)
    skip();
  snprintf(folder, sizeof folder, "%s", path);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    check_made(folder, list[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_real),
                                     cmocka_unit_test(test_rewritten),
                                     cmocka_unit_test(test_made)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
