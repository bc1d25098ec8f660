/* Threads: no more than processors that may be used, whatever is asked for, and
   the same results with each number of them. */
#include <dirent.h>
#include <pthreadpool.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "conv_case.h"

/* Those of this process. */
static uint32_t count_threads(void) {
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  uint32_t count = 0;
  for (struct dirent *entry; (entry = readdir(folder));)
    count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/* Joined threads are seen a little longer. */
static void wait_for_threads(uint32_t wanted) {
  for (int i = 0; i < 1000 && count_threads() != wanted; i++)
    usleep(1000);
}

/* Those that are there besides a pool's: a sanitizer starts one of its own with
   the first. */
static uint32_t count_alone(void) {
  pthreadpool_t pool = pthreadpool_create(2);
  assert_non_null(pool);
  uint32_t with = count_threads();
  pthreadpool_destroy(pool);
  wait_for_threads(with - 1);
  return with - 1;
}

/* The first `count` processors of `all`. */
static void use_processors(const cpu_set_t *all, int count) {
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&some) < count; i++)
    if (CPU_ISSET(i, all))
      CPU_SET(i, &some);
  assert_int_equal(sched_setaffinity(0, sizeof some, &some), 0);
}

static void check_pool(uint32_t wanted, uint32_t expected) {
  pph_thread_pool *pool;
  pph_error error = {0};
  assert_int_equal(pph_cpu_threads(wanted), expected);
  test_assert_ok(pph_thread_pool_create(wanted, &pool, &error), &error);
  assert_int_equal(pthreadpool_get_threads_count(pool), expected);
  pph_thread_pool_destroy(pool);
}

static void check_session(const pph_model *model, uint32_t wanted,
                          uint32_t expected, uint32_t alone) {
  pph_session_options options;
  pph_session *session;
  pph_error error = {0};
  wait_for_threads(alone);
  pph_session_options_init(&options);
  options.threads = wanted;
  test_assert_ok(pph_session_create(model, &options, &session, &error),
                 &error);
  assert_int_equal(count_threads(), alone + expected - 1);
  pph_session_destroy(session);
}

/* Returns the workspace of an operator for `threads`, its output compared. */
static size_t check_operator(conv_case *c, uint32_t threads, float **first) {
  any_op op;
  pph_error error = {0};
  int64_t output[PPH_MAX_AXES];
  size_t bytes;
  c->desc.threads = threads;
  test_assert_ok(conv_case_make(c->up, &c->desc, c->w, c->b, &op, &error),
                 &error);
  test_assert_ok(
      conv_case_reshape(&op, c->batch, c->input, output, &bytes, &error),
      &error);
  pph_thread_pool *pool = pthreadpool_create(3);
  float *result = malloc((c->outputs + 1) * sizeof *result);
  assert_true(pool && result);
  conv_case_run_with(&op, c, bytes, pool, result);
  if (*first)
    assert_memory_equal(result, *first, c->outputs * sizeof *result);
  else
    *first = result;
  if (*first != result)
    free(result);
  pph_thread_pool_destroy(pool);
  conv_case_destroy(&op);
  return bytes;
}

static void check_operators(uint32_t processors) {
  for (int up = 0; up < 2; up++) {
    conv_case c = conv_case_plain(up, 64, 48);
    float *first = NULL;
    conv_case_fill(&c, 3);
    size_t one = check_operator(&c, 1, &first);
    assert_true(one > 0);
    assert_int_equal(check_operator(&c, PPH_MAX_THREADS, &first),
                     check_operator(&c, processors, &first));
    if (processors == 1)
      assert_int_equal(check_operator(&c, PPH_MAX_THREADS, &first), one);
    free(first);
    conv_case_drop(&c);
  }
}

static void test_processors(void **state) {
  cpu_set_t all;
  const uint32_t alone = count_alone();
  pph_model *model;
  pph_error error = {0};
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  test_assert_ok(pph_model_load(PPH_SOURCE_DIR "/examples/upscale/upscale.onnx",
                                NULL, &model, &error),
                 &error);
  for (int count = 1; count <= CPU_COUNT(&all) && count <= 3; count++) {
    const uint32_t most = (uint32_t)count;
    const uint32_t wanted[] = {0, 1, 2, 3, 64, PPH_MAX_THREADS};
    use_processors(&all, count);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
      uint32_t expected = wanted[i] && wanted[i] < most ? wanted[i] : most;
      check_pool(wanted[i], expected);
      check_session(model, wanted[i], expected, alone);
    }
    check_operators(most);
  }
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  pph_model_destroy(model);
}

static void test_refusals(void **state) {
  pph_thread_pool *pool;
  pph_error error = {0};
  assert_int_equal(pph_thread_pool_create(PPH_MAX_THREADS + 1, &pool, &error),
                   PPH_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "threads is 257"));
  assert_int_equal(pph_thread_pool_create(1, NULL, &error),
                   PPH_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_processors),
                                     cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
