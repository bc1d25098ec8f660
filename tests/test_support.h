/* What the tests share. */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/heap.h"
#include "graph/graph.h"

/* A deterministic generator (splitmix64). */
typedef struct test_random {
  uint64_t state;
} test_random;
uint64_t test_random_next(test_random *random);
/* uniform in [low, high] */
int64_t test_random_range(test_random *random, int64_t low, int64_t high);
/* The seed of this run: POLYPHASE_SEED of the environment or a fixed one;
   printed. */
uint64_t test_seed(const char *what);
/* `count` rounds of a test, but a fifth of them in an emulator, which is slow:
   where POLYPHASE_EMULATED is set. */
uint32_t test_rounds(uint32_t count);

/* The fills of ../shared/reference/public-bugs.md: X, W, b and ramp. */
void test_fill_x(float *data, size_t count);
void test_fill_w(float *data, size_t count);
void test_fill_b(float *data, size_t count);
void test_fill_ramp(float *data, size_t count);

/* Path below the shared data folder, or NULL (with a printed message "skipped:
   ...") when it is not there. Static buffer. */
const char *test_shared_path(const char *relative);

/* Memory that runs out: of the calls of allocate, number `fail_at` (from 1)
   gives NULL; `open` blocks are not yet released. */
typedef struct test_failing {
  size_t count, fail_at, open;
} test_failing;
pph_allocator test_failing_allocator(test_failing *memory);

/* Fails the test with the error's place and message unless status is ok. */
void test_assert_ok(pph_status status, const pph_error *error);

/* A whole file by malloc, of exactly its length, so that a sanitizer sees reads
   past it. Fails the test when it cannot be read. */
uint8_t *test_read_file(const char *path, size_t *length);

/* Calls `visit` for each file of a folder of the shared data whose name has one
   of the `ends` (NULL behind the last) behind other characters; returns how
   many there are. Skips the test when the folder is not there. */
int test_each_shared_file(const char *folder, const char *const *ends,
                          void (*visit)(const char *path, void *context),
                          void *context);

#endif
