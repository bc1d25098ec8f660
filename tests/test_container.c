/* Containers of ExecuTorch: what others and the tests wrote opens, every part
   is found, and what is not changed is written as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pte/container_write.h"
#include "pte_maker.h"
#include "test_support.h"

/* All bytes of what is found are there: a sanitizer would see it. */
static unsigned touch(pph_pte_bytes bytes) {
  unsigned sum = 0;
  for (size_t i = 0; i < bytes.count; i++)
    sum += bytes.at[i];
  return sum;
}

static void look_at_plan(const pph_pte *pte, const pph_pte_plan *plan) {
  pph_pte_bytes bytes;
  for (uint32_t i = 0; i < plan->delegates.count; i++)
    touch(pph_pte_delegate_payload(pte, &plan->delegates.at[i]));
  for (uint32_t i = 0; i < plan->values.count; i++) {
    const pph_pte_tensor *tensor = plan->values.at[i].val.value;
    if (plan->values.at[i].val.type != PPH_PTE_TENSOR || !tensor)
      continue;
    if (pph_pte_tensor_bytes(pte, tensor, &bytes))
      touch(bytes);
    else
      assert_int_not_equal(pph_pte_tensor_storage(tensor), PPH_PTE_CONSTANT);
  }
}

static void look_at_all(const pph_pte *pte) {
  for (uint32_t i = 0; pte->program && i < pte->program->execution_plan.count;
       i++)
    look_at_plan(pte, &pte->program->execution_plan.at[i]);
  for (uint32_t i = 0; i < pte->image.segment_count; i++)
    touch(pte->image.segments[i]);
  for (uint32_t i = 0; i < pte->external_count; i++)
    for (uint32_t k = 0; k < pte->externals[i].image.segment_count; k++)
      touch(pte->externals[i].image.segments[k]);
}

typedef struct opened {
  pph_heap heap;
  pph_pte *pte;
  pph_error error;
} opened;

static pph_status open_bytes(opened *o, pph_pte_bytes bytes,
                             pph_pte_bytes external) {
  pph_pte_source source = {"main", bytes}, beside = {"beside", external};
  memset(o, 0, sizeof *o);
  pph_heap_init(&o->heap, NULL, (uint64_t)1 << 28);
  return pph_pte_open(&source, &beside, external.count > 0, &o->heap, &o->pte,
                      &o->error);
}

static const pph_pte_bytes nothing = {NULL, 0};

static void close_opened(opened *o) {
  pph_pte_close(o->pte);
  assert_int_equal(atomic_load(&o->heap.used), 0);
}

/* Opens, and when that goes well looks at all. */
static bool survives(const uint8_t *bytes, size_t length) {
  uint8_t *copy = malloc(length ? length : 1);
  opened o;
  assert_non_null(copy);
  memcpy(copy, bytes, length);
  pph_status status = open_bytes(&o, (pph_pte_bytes){copy, length}, nothing);
  if (status == PPH_OK)
    look_at_all(o.pte);
  else
    assert_true(o.error.where[0] && o.error.message[0] && !o.pte);
  close_opened(&o);
  free(copy);
  return status == PPH_OK;
}

static void damage(pph_pte_bytes file, uint64_t seed, int rounds) {
  test_random random = {seed};
  uint8_t *copy = malloc(file.count);
  assert_non_null(copy);
  for (int i = 0; i < rounds; i++) {
    memcpy(copy, file.at, file.count);
    for (int64_t flips = test_random_range(&random, 1, 4); flips; flips--)
      copy[test_random_range(&random, 0, (int64_t)file.count - 1)] ^=
          (uint8_t)(1 << test_random_range(&random, 0, 7));
    survives(copy, file.count);
  }
  free(copy);
}

static void write_again(opened *o, pph_pte_bytes file) {
  void *bytes;
  size_t length;
  test_assert_ok(pph_pte_write(o->pte, &o->heap, &bytes, &length, &o->error),
                 &o->error);
  assert_int_equal(length, file.count);
  assert_memory_equal(bytes, file.at, length);
  pph_heap_release(&o->heap, bytes);
}

/* What was not changed comes out byte for byte. */
static void check_file(pph_pte_bytes file) {
  opened o;
  test_assert_ok(open_bytes(&o, file, nothing), &o.error);
  look_at_all(o.pte);
  write_again(&o, file);
  close_opened(&o);
}

static void visit(const char *path, void *context) {
  pph_pte_bytes file;
  file.at = test_read_file(path, &file.count);
  check_file(file);
  for (size_t i = 0; i < 50; i++)
    survives(file.at, file.count * i / 50);
  damage(file, file.count, 200);
  pte_release(file);
}

static void test_shared_files(void **state) {
  static const char *const ends[] = {"pte", ".ptd", NULL};
  assert_int_equal(test_each_shared_file("pte", ends, visit, NULL), 14);
  assert_int_equal(test_each_shared_file("pte/real", ends, visit, NULL), 89);
}

/* The seeds of fuzz_pte: PPH_WRITE_SEEDS names their folder. */
static void save_seed(int index, pph_pte_bytes bytes) {
  static const char *const names[] = {"program.pte", "constants.ptd",
                                      "bundle.bpte", "old.pte"};
  const char *folder = getenv("PPH_WRITE_SEEDS");
  char path[4096];
  if (!folder)
    return;
  snprintf(path, sizeof path, "%s/%s", folder, names[index]);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes.at, 1, bytes.count, file), bytes.count);
  fclose(file);
}

static void test_made_files(void **state) {
  pph_pte_bytes program = pte_make_program();
  pph_pte_bytes files[] = {program, pte_make_external(),
                           pte_make_bundle(program), pte_make_old_program()};
  for (int i = 0; i < 4; i++) {
    check_file(files[i]);
    save_seed(i, files[i]);
    for (size_t length = 0; length < files[i].count; length++)
      survives(files[i].at, length);
    damage(files[i], test_seed("damaged containers"), 5000);
  }
  for (int i = 0; i < 4; i++)
    pte_release(files[i]);
}

static void assert_data(const pph_pte *pte, const char *key,
                        const char *contents, bool is_external) {
  pph_flat_text text = {key, (uint32_t)strlen(key)};
  const pph_pte_external *from;
  pph_pte_bytes bytes;
  bool found = pph_pte_find_data(pte, text, &bytes, &from);
  assert_int_equal(found, contents != NULL);
  assert_int_equal(found && from, is_external);
  if (found)
    assert_string_equal((const char *)bytes.at, contents);
}

static void test_finds(void **state) {
  pph_pte_bytes file = pte_make_program(), beside = pte_make_external();
  pph_pte_bytes bytes;
  opened o;
  test_assert_ok(open_bytes(&o, file, beside), &o.error);
  assert_null(pph_pte_find_method(o.pte, "forwards"));
  const pph_pte_plan *plan = pph_pte_find_method(o.pte, "again");
  assert_non_null(plan);
  bytes = pph_pte_delegate_payload(o.pte, &plan->delegates.at[0]);
  assert_string_equal((const char *)bytes.at, "an inline payload");
  bytes = pph_pte_delegate_payload(o.pte, &plan->delegates.at[1]);
  assert_string_equal((const char *)bytes.at, "a payload in a segment");
  assert_data(o.pte, "one", "named data", false);
  assert_data(o.pte, "two", "named data", false);
  assert_data(o.pte, "three", NULL, false);
  assert_data(o.pte, "blob", "named data", true);
  static const pph_pte_storage storage[] = {
      PPH_PTE_CONSTANT, PPH_PTE_EXTERNAL, PPH_PTE_PLANNED,
      PPH_PTE_STATE,    PPH_PTE_PLANNED,  PPH_PTE_PLANNED};
  static const float first[] = {5, 5, 0, 1, 0, 0};
  for (int i = 0; i < 6; i++) {
    const pph_pte_tensor *tensor = plan->values.at[i].val.value;
    float value = 0;
    assert_int_equal(pph_pte_tensor_storage(tensor), storage[i]);
    assert_int_equal(pph_pte_is_state(plan, (uint32_t)i), i == 2 || i == 3);
    if (pph_pte_tensor_bytes(o.pte, tensor, &bytes)) {
      assert_int_equal(bytes.count, 16);
      memcpy(&value, bytes.at, sizeof value);
    }
    assert_true(value == first[i]);
  }
  close_opened(&o);
  pte_release(file);
  pte_release(beside);
}

/* One wrong number each, and what the refusal says. */
static pph_pte_plan *first_plan(pph_pte *pte) {
  return &pte->program->execution_plan.at[0];
}
static pph_pte_tensor *tensor_of(pph_pte *pte, int value) {
  return first_plan(pte)->values.at[value].val.value;
}
static void *step_of(pph_pte *pte, int step) {
  return first_plan(pte)->chains.at[0].instructions.at[step].instr_args.value;
}
static void no_methods(pph_pte *pte) {
  pte->program->execution_plan.count = 0;
}
static void no_chains(pph_pte *pte) {
  first_plan(pte)->chains.count = 0;
}
static void bad_type(pph_pte *pte) {
  tensor_of(pte, 4)->scalar_type = 99;
}
static void bad_size(pph_pte *pte) {
  static const int32_t sizes[] = {-1, 4};
  tensor_of(pte, 4)->sizes.at = sizes;
}
static void huge_size(pph_pte *pte) {
  static const int32_t sizes[] = {INT32_MAX, INT32_MAX};
  tensor_of(pte, 4)->sizes.at = sizes;
}
static void bad_order(pph_pte *pte) {
  static const uint8_t order[] = {1, 1};
  tensor_of(pte, 4)->dim_order.at = order;
}
static void bad_memory(pph_pte *pte) {
  tensor_of(pte, 4)->allocation_info->memory_id = 2;
}
static void bad_place(pph_pte *pte) {
  tensor_of(pte, 4)->allocation_info->memory_offset_high = 1;
}
static void bad_constant(pph_pte *pte) {
  tensor_of(pte, 0)->data_buffer_idx = 2;
}
static void bad_operator(pph_pte *pte) {
  ((pph_pte_kernel_call *)step_of(pte, 0))->op_index = 2;
}
static void bad_delegate(pph_pte *pte) {
  ((pph_pte_delegate_call *)step_of(pte, 2))->delegate_index = -1;
}
static void bad_argument(pph_pte *pte) {
  static const int32_t args[] = {0, 14};
  ((pph_pte_kernel_call *)step_of(pte, 5))->args.at = args;
}
static void bad_jump(pph_pte *pte) {
  ((pph_pte_jump_false_call *)step_of(pte, 1))->destination_instruction = 8;
}
static void bad_condition(pph_pte *pte) {
  ((pph_pte_jump_false_call *)step_of(pte, 1))->cond_value_index = 6;
}
static void bad_move(pph_pte *pte) {
  ((pph_pte_move_call *)step_of(pte, 4))->move_to = 14;
}
static void bad_list(pph_pte *pte) {
  static const int64_t items[] = {6, 4};
  ((pph_pte_int_list *)first_plan(pte)->values.at[7].val.value)->items.at =
      items;
}
static void bad_payload(pph_pte *pte) {
  first_plan(pte)->delegates.at[1].processed->index = 5;
}
static void bad_key(pph_pte *pte) {
  pte->program->named_data.at[1].segment_index = 5;
}

static const struct {
  void (*change)(pph_pte *pte);
  const char *where, *message;
} refusals[] = {
    {no_methods, "Program.execution_plan", "at least one method"},
    {no_chains, "execution_plan[0].chains", "at least one chain"},
    {bad_type, "values[4]", "scalar_type is 99"},
    {bad_size, "values[4]", "sizes[0] is -1"},
    {huge_size, "values[4]", "more bytes than can be counted"},
    {bad_order, "values[4]", "dim_order[1] is 1"},
    {bad_memory, "values[4]", "memory_id is 2, legal is 1 to 1"},
    {bad_place, "values[4]", "leave buffer 1"},
    {bad_constant, "values[0]", "data_buffer_idx is 2"},
    {bad_operator, "chains[0].instructions[0]", "op_index is 2"},
    {bad_delegate, "instructions[2]", "delegate_index is -1"},
    {bad_argument, "instructions[5].args[1]", "is 14, legal is 0 to 13"},
    {bad_jump, "instructions[1]", "is 8, legal is 0 to 7"},
    {bad_condition, "instructions[1]", "has type 2; legal is 3"},
    {bad_move, "instructions[4]", "move_to is 14"},
    {bad_list, "values[7].items[1]", "has type 5; legal is 2"},
    {bad_payload, "delegates[1]", "processed.index is 5"},
    {bad_key, "named_data[1]", "segment_index is 5"},
};

static void test_refusals(void **state) {
  pph_pte_bytes file = pte_make_program();
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    opened o, again;
    void *bytes;
    size_t length;
    test_assert_ok(open_bytes(&o, file, nothing), &o.error);
    refusals[i].change(o.pte);
    test_assert_ok(pph_pte_write(o.pte, &o.heap, &bytes, &length, &o.error),
                   &o.error);
    assert_int_equal(open_bytes(&again, (pph_pte_bytes){bytes, length},
                                nothing),
                     PPH_BAD_MODEL);
    if (!strstr(again.error.where, refusals[i].where) ||
        !strstr(again.error.message, refusals[i].message))
      fail_msg("\"%s: %s\" should say %s: %s", again.error.where,
               again.error.message, refusals[i].where, refusals[i].message);
    close_opened(&again);
    pph_heap_release(&o.heap, bytes);
    close_opened(&o);
  }
  pte_release(file);
}

/* A .ptd's flatbuffer ends at a sum: its parts stay as they were found. */
static void test_odd_header(void **state) {
  pph_pte_bytes file = pte_make_external();
  uint8_t *bytes = (uint8_t *)(uintptr_t)file.at;
  bytes[16] -= 8;
  bytes[24] += 8;
  check_file(file);
  pte_release(file);
}

/* Numbers of the extended header out of range. */
static void test_header(void **state) {
  static const struct {
    size_t at;
    uint64_t value;
    const char *message;
  } rows[] = {{12, 23, "the length"},
              {16, 39, "the flatbuffer's end"},
              {16, (uint64_t)1 << 63, "the flatbuffer's end"},
              {24, 48, "the segments' place"},
              {32, UINT64_MAX, "the segments' size"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    pph_pte_bytes file = pte_make_program();
    opened o;
    memcpy((uint8_t *)(uintptr_t)file.at + rows[i].at, &rows[i].value,
           rows[i].at == 12 ? 4 : 8);
    assert_int_equal(open_bytes(&o, file, nothing), PPH_BAD_MODEL);
    assert_string_equal(o.error.where, "main: extended header");
    assert_non_null(strstr(o.error.message, rows[i].message));
    close_opened(&o);
    pte_release(file);
  }
}

/* A segment of another size: all parts are placed anew and found again, and
   the trailing bytes stay. */
static void test_changed_segment(void **state) {
  static const uint8_t longer[300] = "longer named data";
  pph_pte_bytes file = pte_make_program();
  uint8_t *with_tail = malloc(file.count + 5);
  assert_non_null(with_tail);
  memcpy(with_tail, file.at, file.count);
  memcpy(with_tail + file.count, "tail", 5);
  opened o, again;
  pph_pte_bytes tailed = {with_tail, file.count + 5};
  test_assert_ok(open_bytes(&o, tailed, nothing), &o.error);
  write_again(&o, tailed);
  o.pte->image.segments[3] = (pph_pte_bytes){longer, sizeof longer};
  void *bytes;
  size_t length;
  test_assert_ok(pph_pte_write(o.pte, &o.heap, &bytes, &length, &o.error),
                 &o.error);
  assert_string_equal((const char *)bytes + length - 5, "tail");
  test_assert_ok(open_bytes(&again, (pph_pte_bytes){bytes, length}, nothing),
                 &again.error);
  assert_data(again.pte, "two", "longer named data", false);
  for (uint32_t i = 0; i < 5; i++) {
    const pph_pte_bytes *a = &o.pte->image.segments[i];
    const pph_pte_bytes *b = &again.pte->image.segments[i];
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->at ? a->at : b->at, b->at, b->count);
    assert_int_equal(again.pte->program->segments.at[i].offset % 128, 0);
  }
  close_opened(&again);
  pph_heap_release(&o.heap, bytes);
  close_opened(&o);
  pte_release(file);
  free(with_tail);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_made_files),
      cmocka_unit_test(test_finds),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_header),
      cmocka_unit_test(test_odd_header),
      cmocka_unit_test(test_changed_segment),
      cmocka_unit_test(test_shared_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
