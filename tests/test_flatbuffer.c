/* Flatbuffers of ExecuTorch: programs written by the builder and by others
   read, compare and come out again; damaged ones are refused or read, without
   a fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pte/flat_build.h"
#include "pte/flat_read.h"
#include "pte/program_tables.h"
#include "test_support.h"

typedef struct image {
  uint8_t *bytes;
  size_t length;
} image;

typedef struct reading {
  pph_heap heap;
  pph_arena arena;
  void *root;
  pph_flat_unknown unknown;
  pph_error error;
  pph_status status;
} reading;

static void read_bytes(const pph_flat_table *table, const void *bytes,
                       size_t length, reading *r) {
  memset(r, 0, sizeof *r);
  pph_heap_init(&r->heap, NULL, (uint64_t)1 << 28);
  pph_arena_init(&r->arena, &r->heap);
  r->status = pph_flat_read(bytes, length, table, &r->arena, &r->root,
                            &r->unknown, &r->error);
  if (r->status != PPH_OK) {
    assert_null(r->root);
    assert_int_equal(r->error.status, r->status);
    assert_true(r->error.where[0] && r->error.message[0]);
  }
}

static void forget(reading *r) {
  pph_arena_clear(&r->arena);
  assert_int_equal(atomic_load(&r->heap.used), 0);
}

static image build(const pph_flat_table *table, const void *root,
                   const char *identifier) {
  pph_heap heap;
  pph_error error = {0};
  void *bytes;
  image made;
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(pph_flat_build(table, root, identifier, &heap, &bytes,
                                &made.length, &error),
                 &error);
  made.bytes = malloc(made.length);
  assert_non_null(made.bytes);
  memcpy(made.bytes, bytes, made.length);
  pph_heap_release(&heap, bytes);
  assert_int_equal(atomic_load(&heap.used), 0);
  return made;
}

/* A program with every kind of field: scalars, texts, vectors of all widths,
   tables, unions, absent and empty things. */
static image small_program(void) {
  static const int32_t sizes[] = {1, 3, -2, 1 << 30};
  static const uint8_t order[] = {0, 1, 2, 3}, blob[] = {9, 8, 7, 6, 5};
  static const int32_t args[] = {1, 0};
  static const int64_t memory[] = {0, INT64_MAX};
  static const double reals[] = {0.5, -0.0};
  static pph_pte_allocation place = {1, 64, 0};
  static pph_pte_tensor tensor = {.scalar_type = 6,
                                  .sizes = {sizes, 4},
                                  .dim_order = {order, 4},
                                  .allocation_info = &place};
  static pph_pte_int number = {-5};
  static pph_pte_null none;
  static pph_pte_double_list list = {{reals, 2}};
  static pph_pte_value values[] = {
      {{&tensor, 5}}, {{&number, 2}}, {{&none, 1}}, {{&list, 8}}};
  static pph_pte_delegate_call call = {0, {args, 2}};
  static pph_pte_instruction instructions[] = {{{&call, 2}}};
  static pph_pte_chain chains[] = {
      {.inputs = {args, 0}, .instructions = {instructions, 1}}};
  static pph_pte_data_reference processed = {1, 7};
  static pph_pte_compile_spec specs[] = {{{"key", 3}, {blob, 5}}, {{"", 0}, {0}}};
  static pph_pte_delegate delegates[] = {
      {{"Xnn", 3}, &processed, {specs, 2}}};
  static pph_pte_plan plans[] = {{.name = {"forward", 7},
                                  .values = {values, 4},
                                  .inputs = {args, 1},
                                  .outputs = {args, 2},
                                  .chains = {chains, 1},
                                  .delegates = {delegates, 1},
                                  .non_const_buffer_sizes = {memory, 2}}};
  static pph_pte_inline_data data[] = {{{blob, 5}}};
  static pph_pte_program program = {.version = 3,
                                    .execution_plan = {plans, 1},
                                    .backend_delegate_data = {data, 1}};
  return build(pph_pte_program_schema(), &program, "ET12");
}

static void test_small_program(void **state) {
  const pph_flat_table *table = pph_pte_program_schema();
  image made = small_program();
  reading r;
  read_bytes(table, made.bytes, made.length, &r);
  test_assert_ok(r.status, &r.error);
  assert_null(r.unknown.table);
  const pph_pte_program *program = r.root;
  assert_int_equal(program->version, 3);
  assert_null(program->named_data.at);
  const pph_pte_plan *plan = &program->execution_plan.at[0];
  assert_memory_equal(plan->name.at, "forward", 8);
  assert_int_equal(plan->non_const_buffer_sizes.at[1], INT64_MAX);
  assert_non_null(plan->chains.at[0].inputs.at);
  assert_int_equal(plan->chains.at[0].inputs.count, 0);
  assert_null(plan->chains.at[0].outputs.at);
  assert_int_equal(plan->values.at[0].val.type, 5);
  const pph_pte_tensor *tensor = plan->values.at[0].val.value;
  assert_int_equal(tensor->sizes.at[2], -2);
  assert_int_equal(tensor->allocation_info->memory_offset_low, 64);
  const uint8_t *blob = program->backend_delegate_data.at[0].data.at;
  assert_int_equal((blob - made.bytes) % 16, 0);
  image again = build(table, r.root, "ET12");
  assert_int_equal(again.length, made.length);
  assert_memory_equal(again.bytes, made.bytes, made.length);
  forget(&r);
  free(made.bytes);
  free(again.bytes);
}

/* One field after another changed: equal must see it. */
static void test_equal_sees_differences(void **state) {
  const pph_flat_table *table = pph_pte_program_schema();
  image made = small_program();
  reading a, b;
  read_bytes(table, made.bytes, made.length, &a);
  read_bytes(table, made.bytes, made.length, &b);
  assert_true(pph_flat_equal(table, a.root, b.root));
  pph_pte_program *program = b.root;
  pph_pte_plan *plan = &program->execution_plan.at[0];
  plan->values.at[1].val.type = 3;
  assert_false(pph_flat_equal(table, a.root, b.root));
  plan->values.at[1].val.type = 2;
  ((pph_pte_int *)plan->values.at[1].val.value)->int_val = 5;
  assert_false(pph_flat_equal(table, a.root, b.root));
  ((pph_pte_int *)plan->values.at[1].val.value)->int_val = -5;
  plan->chains.at[0].inputs.at = NULL; /* absent is not empty */
  assert_false(pph_flat_equal(table, a.root, b.root));
  forget(&a);
  forget(&b);
  free(made.bytes);
}

/* Reads a copy of exactly that length, so that a sanitizer sees more. */
static bool survives(const uint8_t *bytes, size_t length) {
  uint8_t *copy = malloc(length ? length : 1);
  reading r;
  assert_non_null(copy);
  memcpy(copy, bytes, length);
  read_bytes(pph_pte_program_schema(), copy, length, &r);
  bool ok = r.status == PPH_OK;
  forget(&r);
  free(copy);
  return ok;
}

static void damage(const uint8_t *bytes, size_t length, uint64_t seed,
                   int rounds) {
  test_random random = {seed};
  uint8_t *copy = malloc(length);
  assert_non_null(copy);
  for (int i = 0; i < rounds; i++) {
    memcpy(copy, bytes, length);
    for (int64_t flips = test_random_range(&random, 1, 4); flips; flips--)
      copy[test_random_range(&random, 0, (int64_t)length - 1)] ^=
          (uint8_t)(1 << test_random_range(&random, 0, 7));
    survives(copy, length);
  }
  free(copy);
}

static void test_damage(void **state) {
  image made = small_program();
  for (size_t length = 0; length < 8; length++)
    assert_false(survives(made.bytes, length));
  for (size_t length = 8; length < made.length; length++)
    survives(made.bytes, length);
  damage(made.bytes, made.length, test_seed("damaged programs"), 20000);
  free(made.bytes);
}

static void refuse(image made, const char *where, const char *what) {
  reading r;
  read_bytes(pph_pte_program_schema(), made.bytes, made.length, &r);
  assert_int_equal(r.status, PPH_BAD_MODEL);
  if (!strstr(r.error.where, where) || !strstr(r.error.message, what))
    fail_msg("\"%s: %s\" should say %s: %s", r.error.where, r.error.message,
             where, what);
  forget(&r);
  free(made.bytes);
}

static uint32_t load(const image *made, size_t at) {
  uint32_t value;
  memcpy(&value, made->bytes + at, 4);
  return value;
}

static void test_refusals(void **state) {
  uint32_t high = UINT32_MAX, one = 1;
  image made = small_program();
  memcpy(made.bytes, &high, 4);
  refuse(made, "Program", "leads out of");
  made = small_program();
  memcpy(made.bytes + load(&made, 0), &high, 4);
  refuse(made, "Program", "vtable's length");
  made = small_program();
  size_t root = load(&made, 0), vtable = root - load(&made, root);
  made.bytes[vtable] = 5; /* odd */
  refuse(made, "Program", "vtable's length");
  made = small_program();
  made.bytes[vtable + 6] = 255; /* execution_plan's place in the table */
  refuse(made, "Program.execution_plan", "byte 255 of a table");
  made = small_program();
  made.bytes[vtable + 6] = 0;
  refuse(made, "Program.execution_plan", "must be there");
  made = small_program();
  size_t field = root + made.bytes[vtable + 6];
  memcpy(made.bytes + field + load(&made, field), &high, 4);
  refuse(made, "Program.execution_plan", "vector's length");
  made = small_program();
  uint8_t *name = memmem(made.bytes, made.length, "forward", 8);
  assert_non_null(name);
  name[7] = 'x';
  refuse(made, "Program.execution_plan[0].name", "does not end in a 0");
  made = small_program();
  name = memmem(made.bytes, made.length, "forward", 8);
  assert_non_null(name);
  memcpy(name - 4, &high, 4);
  refuse(made, "Program.execution_plan[0].name", "text's length");
  made = small_program();
  memcpy(made.bytes + field + load(&made, field) + 4, &one, 4);
  refuse(made, "Program.execution_plan[0]", "the offset");
}

/* A later version's field or union member is noted, not followed; a union
   with only half of itself is refused. */
static void test_unknown(void **state) {
  static const int32_t none[] = {0};
  pph_pte_operator named = {{"a", 1}, {"b", 1}};
  image made = build(pph_pte_operator_schema(), &named, "ET12");
  reading r;
  read_bytes(pph_pte_data_reference_schema(), made.bytes, made.length, &r);
  forget(&r);
  read_bytes(pph_pte_string_schema(), made.bytes, made.length, &r);
  test_assert_ok(r.status, &r.error);
  assert_string_equal(r.unknown.table, "String");
  assert_int_equal(r.unknown.number, 1);
  forget(&r);
  free(made.bytes);

  pph_pte_kernel_call call = {1, {none, 1}};
  pph_pte_instruction step = {{&call, 1}};
  made = build(pph_pte_instruction_schema(), &step, "ET12");
  size_t root = load(&made, 0), vtable = root - load(&made, root);
  uint8_t *type = made.bytes + root + made.bytes[vtable + 4];
  *type = 77;
  read_bytes(pph_pte_instruction_schema(), made.bytes, made.length, &r);
  test_assert_ok(r.status, &r.error);
  assert_string_equal(r.unknown.table, "InstructionArguments");
  assert_int_equal(r.unknown.number, 77);
  pph_heap heap;
  pph_heap_init(&heap, NULL, 0);
  void *bytes;
  size_t length;
  assert_int_equal(pph_flat_build(pph_pte_instruction_schema(), r.root, "ET12",
                                  &heap, &bytes, &length, &r.error),
                   PPH_UNSUPPORTED);
  assert_null(bytes);
  assert_int_equal(atomic_load(&heap.used), 0);
  forget(&r);
  *type = 0;
  read_bytes(pph_pte_instruction_schema(), made.bytes, made.length, &r);
  assert_int_equal(r.status, PPH_BAD_MODEL);
  forget(&r);
  free(made.bytes);
}

/* Many offsets to one table with many absent fields: refused before memory
   grows out of proportion. */
static void test_shared_targets(void **state) {
  enum { COUNT = 20000 };
  pph_pte_program program = {0};
  static pph_pte_plan plans[COUNT];
  static pph_pte_value values[COUNT];
  plans[0].name = (pph_flat_text){"m", 1};
  plans[0].values.at = values;
  plans[0].values.count = COUNT;
  static const int32_t none[1];
  static const int64_t sizes[1];
  static pph_pte_chain chains[1];
  static pph_pte_delegate delegates[1];
  plans[0].inputs.at = plans[0].outputs.at = none;
  plans[0].chains.at = chains;
  plans[0].delegates.at = delegates;
  plans[0].non_const_buffer_sizes.at = sizes;
  for (uint32_t i = 1; i < COUNT; i++)
    plans[i] = plans[0], plans[i].values.count = 0;
  program.execution_plan.at = plans;
  program.execution_plan.count = COUNT;
  image made = build(pph_pte_program_schema(), &program, "ET12");
  size_t root = load(&made, 0), vtable = root - load(&made, root);
  size_t field = root + made.bytes[vtable + 6];
  size_t first = field + load(&made, field) + 4;
  size_t target = first + load(&made, first);
  for (size_t i = 0; i < COUNT; i++) {
    uint32_t offset = (uint32_t)(target - (first + 4 * i));
    memcpy(made.bytes + first + 4 * i, &offset, 4);
  }
  reading r;
  read_bytes(pph_pte_program_schema(), made.bytes, made.length, &r);
  assert_int_equal(r.status, PPH_LIMIT_EXCEEDED);
  forget(&r);
  free(made.bytes);
}

/* Takes the header behind the identifier out: eh00 or FH01, which moved the
   root by `header` bytes. */
static void drop_header(image *file, size_t size, size_t header) {
  memmove(file->bytes + 8, file->bytes + 8 + header, size - 8 - header);
  uint32_t root = load(file, 0) - (uint32_t)header;
  memcpy(file->bytes, &root, 4);
  file->length = size - header;
}

static const pph_flat_table *prepare(image *file) {
  uint64_t size;
  if (memcmp(file->bytes + 4, "BP08", 4) == 0)
    return pph_bundle_program_schema();
  if (memcmp(file->bytes + 4, "FT01", 4) == 0) {
    memcpy(&size, file->bytes + 24, 8);
    drop_header(file, (size_t)size + 48, 48);
    return pph_ptd_flat_tensor_schema();
  }
  assert_memory_equal(file->bytes + 4, "ET12", 4);
  memcpy(&size, file->bytes + 16, 8);
  if (memcmp(file->bytes + 8, "eh00", 4) == 0)
    drop_header(file, (size_t)size, 32);
  return pph_pte_program_schema();
}

/* What others wrote reads with nothing unknown and comes out equal; returns
   whether the bytes are the same too. */
static bool check_file(const char *path) {
  image file;
  file.bytes = test_read_file(path, &file.length);
  char identifier[4];
  memcpy(identifier, file.bytes + 4, 4);
  const pph_flat_table *table = prepare(&file);
  reading r, s;
  read_bytes(table, file.bytes, file.length, &r);
  test_assert_ok(r.status, &r.error);
  if (r.unknown.table)
    fail_msg("%s: %s has an unknown %u", path, r.unknown.table,
             r.unknown.number);
  image again = build(table, r.root, identifier);
  read_bytes(table, again.bytes, again.length, &s);
  test_assert_ok(s.status, &s.error);
  assert_true(pph_flat_equal(table, r.root, s.root));
  bool same = again.length <= file.length &&
              memcmp(again.bytes, file.bytes, again.length) == 0;
  for (size_t i = 0; i < 50; i++)
    survives(file.bytes, file.length * i / 50);
  damage(file.bytes, file.length, file.length, 200);
  forget(&r);
  forget(&s);
  free(file.bytes);
  free(again.bytes);
  return same;
}

static void visit(const char *path, void *context) {
  int *same = context;
  *same += check_file(path);
}

static void test_shared_files(void **state) {
  static const char *const ends[] = {"pte", ".ptd", NULL};
  int same = 0;
  assert_int_equal(test_each_shared_file("pte", ends, visit, &same), 14);
  same = 0;
  int files = test_each_shared_file("pte/real", ends, visit, &same);
  printf("%d of %d files of the exporter come out byte for byte\n", same,
         files);
  assert_int_equal(files, 89);
  /* The 5 .ptd files come from another writer, with other orders inside. */
  assert_int_equal(same, files - 5);
}

static pph_status read_and_build(test_failing *memory, const image *made,
                                 pph_error *error) {
  pph_allocator allocator = test_failing_allocator(memory);
  const pph_flat_table *table = pph_pte_program_schema();
  pph_heap heap;
  pph_arena arena;
  void *root, *bytes = NULL;
  size_t length;
  pph_flat_unknown unknown;
  pph_heap_init(&heap, &allocator, 0);
  pph_arena_init(&arena, &heap);
  pph_status status = pph_flat_read(made->bytes, made->length, table, &arena,
                                    &root, &unknown, error);
  if (status == PPH_OK)
    status = pph_flat_build(table, root, "ET12", &heap, &bytes, &length,
                            error);
  pph_heap_release(&heap, bytes);
  pph_arena_clear(&arena);
  return status;
}

static void test_no_memory(void **state) {
  image made = small_program();
  for (size_t n = 1;; n++) {
    test_failing memory = {.fail_at = n};
    pph_error error = {0};
    pph_status status = read_and_build(&memory, &made, &error);
    assert_int_equal(memory.open, 0);
    if (memory.count < n) {
      test_assert_ok(status, &error);
      assert_true(n > 5);
      break;
    }
    assert_int_equal(status, PPH_OUT_OF_MEMORY);
  }
  free(made.bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_program),
      cmocka_unit_test(test_equal_sees_differences),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_unknown),
      cmocka_unit_test(test_shared_targets),
      cmocka_unit_test(test_damage),
      cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_shared_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
