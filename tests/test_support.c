#include "test_support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t test_random_next(test_random *random) {
  uint64_t z = random->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

int64_t test_random_range(test_random *random, int64_t low, int64_t high) {
  uint64_t span = (uint64_t)(high - low) + 1;
  return low + (int64_t)(test_random_next(random) % span);
}

uint64_t test_seed(const char *what) {
  const char *text = getenv("POLYPHASE_SEED");
  uint64_t seed = text ? strtoull(text, NULL, 0) : 20261202;
  printf("%s: POLYPHASE_SEED=%llu\n", what, (unsigned long long)seed);
  return seed;
}

uint32_t test_rounds(uint32_t count) {
  return getenv("POLYPHASE_EMULATED") ? (count + 4) / 5 : count;
}

void test_fill_x(float *data, size_t count) {
  for (size_t i = 0; i < count; i++)
    data[i] = (float)((7 * i + 3) % 11) - 5.0f;
}

void test_fill_w(float *data, size_t count) {
  for (size_t i = 0; i < count; i++)
    data[i] = (float)((5 * i + 1) % 7) - 3.0f;
}

void test_fill_b(float *data, size_t count) {
  for (size_t i = 0; i < count; i++)
    data[i] = (float)(i % 5) - 2.0f;
}

void test_fill_ramp(float *data, size_t count) {
  for (size_t i = 0; i < count; i++)
    data[i] = (float)(i + 1);
}

const char *test_shared_path(const char *relative) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/%s", PPH_SHARED_DATA, relative);
  if (access(path, R_OK) == 0)
    return path;
  printf("skipped: %s is not there\n", relative);
  return NULL;
}

static void *allocate(void *context, size_t alignment, size_t size) {
  test_failing *memory = context;
  void *block = NULL;
  if (++memory->count == memory->fail_at ||
      posix_memalign(&block, alignment, size) != 0)
    return NULL;
  memory->open++;
  return block;
}

static void release(void *context, void *block) {
  test_failing *memory = context;
  memory->open--;
  free(block);
}

pph_allocator test_failing_allocator(test_failing *memory) {
  return (pph_allocator){memory, allocate, release};
}

void test_assert_ok(pph_status status, const pph_error *error) {
  if (status != PPH_OK)
    fail_msg("%s: %s: %s", pph_status_name(status), error->where,
             error->message);
}

uint8_t *test_read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file)
    fail_msg("%s cannot be opened", path);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(*length);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *length, file), *length);
  fclose(file);
  return bytes;
}

static bool has_end(const char *name, const char *const *ends) {
  size_t length = strlen(name);
  for (; *ends; ends++) {
    size_t tail = strlen(*ends);
    if (length > tail && strcmp(name + length - tail, *ends) == 0)
      return true;
  }
  return false;
}

int test_each_shared_file(const char *folder, const char *const *ends,
                          void (*visit)(const char *path, void *context),
                          void *context) {
  const char *path = test_shared_path(folder);
  int files = 0;
  if (!path)
    skip();
  char root[2048], name[4096]; /* the path's buffer is used again */
  snprintf(root, sizeof root, "%s", path);
  DIR *list = opendir(root);
  assert_non_null(list);
  for (struct dirent *entry; (entry = readdir(list));) {
    if (!has_end(entry->d_name, ends))
      continue;
    snprintf(name, sizeof name, "%s/%s", root, entry->d_name);
    visit(name, context);
    files++;
  }
  closedir(list);
  return files;
}
