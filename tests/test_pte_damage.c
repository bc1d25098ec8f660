/* Programs of others with damage: every truncated or altered copy of those in
   ../shared/pte, and of the constants beside them, is refused or runs, and so
   is what `optimize` makes of it; nothing crashes, reads past what it has (under a sanitizer), hangs or keeps memory.
   POLYPHASE_FULL=1 tries a hundred times as many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "optimize/optimize.h"
#include "polyphase/polyphase.h"
#include "pte/container_write.h"
#include "pte/import_plan.h"
#include "test_support.h"

enum {
  FILES = 3, /* of constants */
  MOST = 64, /* inputs and outputs */
  INPUT_BYTES = 1 << 16,
  HEAD = 2048 /* where tables are; behind it, weights mostly */
};

typedef struct damage {
  test_random random;
  uint32_t rounds, loaded, ran, rewritten;
} damage;

static void set_limits(pph_limits *limits) {
  pph_limits_init(limits);
  limits->tensor_bytes = 1 << 20;
  limits->heap_bytes = 64 << 20;
  limits->nodes = 2000;
}

/* Ones of the declared shape; false when that is not small. */
static bool make_input(const pph_model *model, uint32_t index,
                       const void *data, pph_tensor *tensor) {
  pph_value_info info = pph_model_input(model, index);
  size_t bytes = pph_dtype_size(info.type);
  *tensor = (pph_tensor){
      .data = (void *)(uintptr_t)data, .type = info.type, .shape = info.shape};
  if (info.shape.rank < 0)
    return false;
  for (int32_t i = 0; i < info.shape.rank; i++) {
    if (tensor->shape.dims[i] < 0)
      tensor->shape.dims[i] = 2;
    if (tensor->shape.dims[i] > INPUT_BYTES)
      return false;
    bytes *= (size_t)tensor->shape.dims[i];
    if (bytes > INPUT_BYTES)
      return false;
  }
  return true;
}

static void run_model(damage *d, const pph_model *model) {
  static uint8_t data[INPUT_BYTES];
  pph_tensor inputs[MOST], outputs[MOST];
  uint32_t ins = pph_model_input_count(model);
  uint32_t outs = pph_model_output_count(model);
  pph_session_options options;
  pph_session *session;
  pph_error error;
  pph_session_options_init(&options);
  options.optimize = test_random_next(&d->random) % 2;
  options.lowering = test_random_next(&d->random) % 2 ? PPH_LOWERING_ALWAYS
                                                       : PPH_LOWERING_AUTO;
  if (ins > MOST || outs > MOST)
    return;
  for (uint32_t i = 0; i < ins; i++)
    if (!make_input(model, i, data, &inputs[i]))
      return;
  if (pph_session_create(model, &options, &session, &error) != PPH_OK)
    return;
  for (int step = 0; step < 2; step++)
    d->ran += pph_session_run(session, inputs, ins, outputs, outs, &error) ==
              PPH_OK;
  pph_session_destroy(session);
}

static void try(damage *d, const uint8_t *bytes, size_t length,
                const char *const *constants, uint32_t constant_count) {
  test_failing memory = {.fail_at = 0};
  pph_allocator allocator = test_failing_allocator(&memory);
  pph_limits limits;
  pph_model_options options;
  pph_model *model = NULL;
  pph_error error = {0};
  set_limits(&limits);
  pph_model_options_init(&options);
  options.allocator = &allocator;
  options.limits = &limits;
  options.constants = constants;
  options.constant_count = constant_count;
  pph_status status =
      pph_model_load_bytes(bytes, length, NULL, &options, &model, &error);
  if (status == PPH_OK) {
    d->loaded++;
    run_model(d, model);
  } else {
    assert_null(model);
    assert_true(error.message[0] != 0);
  }
  pph_model_destroy(model);
  assert_int_equal(memory.open, 0);
}

/* Which methods can be imported, the first as bit 0. */
static uint32_t import_all(const pph_pte *pte) {
  uint32_t good = 0;
  pph_limits limits;
  set_limits(&limits);
  for (uint32_t i = 0; i < pte->program->execution_plan.count && i < 32; i++) {
    pph_graph graph;
    pph_heap heap;
    pph_error error = {0};
    pph_heap_init(&heap, NULL, limits.heap_bytes);
    pph_graph_init(&graph, &heap, &limits);
    if (pph_pte_import(pte, &pte->program->execution_plan.at[i], &graph,
                       &error) == PPH_OK)
      good |= (uint32_t)1 << i;
    pph_graph_clear(&graph);
  }
  return good;
}

/* All files of a program: its own, then the constants. */
typedef struct files {
  pph_pte_source sources[1 + FILES];
  uint32_t count;
} files;

static void release_files(const files *all, uint32_t first, pph_heap *heap) {
  for (uint32_t i = first; i < all->count; i++) {
    void *bytes = (void *)(uintptr_t)all->sources[i].bytes.at;
    if (heap)
      pph_heap_release(heap, bytes);
    else
      free(bytes);
  }
}

static pph_status open_files(const files *all, pph_heap *heap, pph_pte **pte,
                             pph_error *error) {
  return pph_pte_open(&all->sources[0], &all->sources[1], all->count - 1, heap,
                      pte, error);
}

/* Nothing changed is nothing written otherwise. False where there is something
   that cannot be written. */
static bool write_files(pph_pte *pte, const files *from, bool changed,
                        files *to) {
  pph_error error = {0};
  *to = (files){.count = from->count};
  for (uint32_t i = 0; i < from->count; i++) {
    void *bytes;
    pph_pte_source *made = &to->sources[i];
    const pph_pte_source *old = &from->sources[i];
    pph_status status =
        i ? pph_pte_write_external(&pte->externals[i - 1], pte->heap, &bytes,
                                   &made->bytes.count, &error)
          : pph_pte_write(pte, pte->heap, &bytes, &made->bytes.count, &error);
    if (status != PPH_OK) {
      assert_int_equal(status, PPH_UNSUPPORTED);
      return false;
    }
    made->bytes.at = bytes;
    made->name = old->name;
    if (!changed) {
      assert_int_equal(made->bytes.count, old->bytes.count);
      assert_memory_equal(made->bytes.at, old->bytes.at, old->bytes.count);
    }
  }
  return true;
}

/* What is rewritten can be read, and run where it could be before. */
static void check_rewritten(damage *d, pph_pte *pte, const files *all) {
  const pph_optimize_options options = {
      .always = test_random_next(&d->random) % 2};
  pph_optimize_result result;
  pph_pte *again;
  pph_error error = {0};
  files made;
  uint32_t before = import_all(pte);
  if (pph_pte_optimize(pte, &options, &result, &error) != PPH_OK) {
    assert_true(error.message[0] != 0);
    return;
  }
  if (write_files(pte, all, result.changes > 0, &made)) {
    test_assert_ok(open_files(&made, pte->heap, &again, &error), &error);
    assert_int_equal(import_all(again) & before, before);
    d->rewritten += result.changes > 0;
    pph_pte_close(again);
  }
  release_files(&made, 0, pte->heap);
}

static void try_optimize(damage *d, const uint8_t *bytes, size_t length,
                         const char *const *constants, uint32_t count) {
  files all = {.count = 1 + count};
  pph_heap heap;
  pph_pte *pte;
  pph_error error = {0};
  pph_heap_init(&heap, NULL, 64 << 20);
  all.sources[0] = (pph_pte_source){"program", {bytes, length}};
  for (uint32_t i = 0; i < count; i++) {
    size_t its;
    uint8_t *beside = test_read_file(constants[i], &its);
    all.sources[1 + i] = (pph_pte_source){constants[i], {beside, its}};
  }
  if (open_files(&all, &heap, &pte, &error) == PPH_OK) {
    if (pte->program)
      check_rewritten(d, pte, &all);
    pph_pte_close(pte);
  }
  release_files(&all, 1, NULL);
  assert_int_equal(atomic_load(&heap.used), 0);
}

/* A copy of exactly the length that is left. */
static uint8_t *spoil(damage *d, const uint8_t *bytes, size_t *length) {
  size_t full = *length;
  test_random *random = &d->random;
  bool cuts = test_random_next(random) % 4 == 0;
  if (cuts)
    *length = (size_t)test_random_range(random, 0, (int64_t)full - 1);
  uint8_t *copy = malloc(*length + !*length);
  assert_non_null(copy);
  memcpy(copy, bytes, *length);
  if (cuts)
    return copy;
  for (int64_t flips = test_random_range(random, 1, 4); flips; flips--) {
    size_t part = full > HEAD && test_random_next(random) % 4 ? HEAD : full;
    size_t at = (size_t)test_random_range(random, 0, (int64_t)part - 1);
    copy[at] ^= (uint8_t)(1u << test_random_next(random) % 8);
  }
  return copy;
}

/* NAME.ptd and NAME.1.ptd beside NAME.pte. */
static uint32_t find_constants(const char *path, char names[FILES][4096]) {
  static const char *const ends[] = {".ptd", ".1.ptd"};
  uint32_t count = 0;
  int stem = (int)(strrchr(path, '.') - path);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    snprintf(names[count], sizeof *names, "%.*s%s", stem, path, ends[i]);
    if (access(names[count], R_OK) == 0)
      count++;
  }
  return count;
}

/* The program as it is with the first file of constants spoilt. */
static void spoil_constants(damage *d, const uint8_t *bytes, size_t length,
                            const char **constants, uint32_t count) {
  char path[] = "/tmp/pph_damage_XXXXXX";
  size_t all;
  uint8_t *whole = test_read_file(constants[0], &all);
  int made = mkstemp(path);
  assert_true(made >= 0);
  close(made);
  constants[0] = path;
  for (uint32_t i = 0; i < d->rounds; i++) {
    size_t left = all;
    uint8_t *copy = spoil(d, whole, &left);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(copy, 1, left, file), left);
    assert_int_equal(fclose(file), 0);
    free(copy);
    try(d, bytes, length, constants, count);
    try_optimize(d, bytes, length, constants, count);
  }
  remove(path);
  free(whole);
}

static void visit(const char *path, void *context) {
  damage *d = context;
  char names[FILES][4096];
  const char *constants[FILES];
  size_t length;
  uint8_t *bytes = test_read_file(path, &length);
  uint32_t count = find_constants(path, names);
  for (uint32_t i = 0; i < count; i++)
    constants[i] = names[i];
  for (uint32_t i = 0; i < d->rounds; i++) {
    size_t left = length;
    uint8_t *copy = spoil(d, bytes, &left);
    try(d, copy, left, constants, count);
    try_optimize(d, copy, left, constants, count);
    free(copy);
  }
  if (count)
    spoil_constants(d, bytes, length, constants, count);
  free(bytes);
}

static void damage_all(const char *folder) {
  static const char *const ends[] = {".pte", ".bpte", NULL};
  damage d = {.random = {test_seed(folder)},
              .rounds = getenv("POLYPHASE_FULL") ? 2000 : 20};
  assert_true(test_each_shared_file(folder, ends, visit, &d) > 0);
  print_message("%u loaded, %u runs, %u rewritten\n", d.loaded, d.ran,
                d.rewritten);
  /* Else the damage would be too coarse to try anything. */
  assert_true(d.ran > 0 && d.rewritten > 0);
}

static void test_made(void **state) {
  (void)state;
  damage_all("pte");
}

static void test_real(void **state) {
  (void)state;
  damage_all("pte/real");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_made),
                                     cmocka_unit_test(test_real)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
