/* Containers of ExecuTorch: what others wrote opens, and every part is found.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pte/container.h"
#include "test_support.h"

static pph_pte_bytes load_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    fail_msg("%s cannot be opened", path);
  fseek(file, 0, SEEK_END);
  size_t length = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(length);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, length, file), length);
  fclose(file);
  return (pph_pte_bytes){bytes, length};
}

static void release(pph_pte_bytes bytes) {
  free((void *)(uintptr_t)bytes.at);
}

/* All bytes of what is found are there: a sanitizer would see it. */
static unsigned touch(pph_pte_bytes bytes) {
  unsigned sum = 0;
  for (size_t i = 0; i < bytes.count; i++)
    sum += bytes.at[i];
  return sum;
}

static void look_at_plan(const pph_pte *pte, const pph_pte_plan *plan) {
  pph_pte_bytes bytes;
  for (uint32_t i = 0; i < plan->delegates.count; i++) {
    const pph_pte_delegate *delegate = &plan->delegates.at[i];
    bytes = pph_pte_delegate_payload(pte, delegate);
    assert_true(pph_flat_text_is(delegate->id, "XnnpackBackend"));
    assert_true(bytes.count > 8);
    touch(bytes);
  }
  for (uint32_t i = 0; i < plan->values.count; i++) {
    const pph_pte_tensor *tensor = plan->values.at[i].val.value;
    if (plan->values.at[i].val.type != PPH_PTE_TENSOR)
      continue;
    if (pph_pte_tensor_bytes(pte, tensor, &bytes))
      touch(bytes);
    else
      assert_int_not_equal(pph_pte_tensor_storage(tensor), PPH_PTE_CONSTANT);
  }
}

static void open_file(const char *path) {
  pph_heap heap;
  pph_pte *pte;
  pph_error error = {0};
  pph_pte_source source = {path, load_file(path)};
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(pph_pte_open(&source, NULL, 0, &heap, &pte, &error), &error);
  for (uint32_t i = 0; pte->program && i < pte->program->execution_plan.count;
       i++)
    look_at_plan(pte, &pte->program->execution_plan.at[i]);
  pph_pte_close(pte);
  assert_int_equal(atomic_load(&heap.used), 0);
  release(source.bytes);
}

static bool has_end(const char *name, const char *end) {
  size_t length = strlen(name), tail = strlen(end);
  return length > tail && strcmp(name + length - tail, end) == 0;
}

static int open_folder(const char *relative) {
  const char *path = test_shared_path(relative);
  int files = 0;
  if (!path)
    skip();
  char folder[2048], name[4096];
  snprintf(folder, sizeof folder, "%s", path);
  DIR *list = opendir(folder);
  assert_non_null(list);
  for (struct dirent *entry; (entry = readdir(list));) {
    if (!has_end(entry->d_name, "pte") && !has_end(entry->d_name, ".ptd"))
      continue;
    snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
    open_file(name);
    files++;
  }
  closedir(list);
  return files;
}

static void test_shared_files(void **state) {
  assert_int_equal(open_folder("pte"), 14);
  assert_int_equal(open_folder("pte/real"), 89);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shared_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
