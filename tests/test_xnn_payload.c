/* XNNPACK payloads: what the official exporter wrote reads, and comes out
   equal; what is damaged is refused or read, without a fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pte/container.h"
#include "pte/xnn_payload.h"
#include "pte_maker.h"
#include "test_support.h"

typedef struct reading {
  pph_heap heap;
  pph_arena arena;
  pph_payload payload;
  pph_error error;
  pph_status status;
} reading;

static void read_payload(const void *bytes, size_t length, reading *r) {
  memset(r, 0, sizeof *r);
  pph_heap_init(&r->heap, NULL, (uint64_t)1 << 28);
  pph_arena_init(&r->arena, &r->heap);
  r->status = pph_payload_read((pph_pte_bytes){bytes, length}, &r->arena,
                               &r->payload, &r->error);
}

static void forget(reading *r) {
  pph_arena_clear(&r->arena);
  assert_int_equal(atomic_load(&r->heap.used), 0);
}

/* Two values and one node, in a header, with inline constants. */
static const uint8_t inline_constants[] = {1, 2, 3, 4, 5};
static pph_payload small_payload(void) {
  static const uint32_t dims[] = {1, 2, 3, 4};
  static pph_payload_tensor tensors[] = {
      {.datatype = PPH_PAYLOAD_F32, .num_dims = 4, .dims = {dims, 4},
       .flags = 1},
      {.datatype = PPH_PAYLOAD_F32, .num_dims = 4, .dims = {dims, 4},
       .external_id = 1, .flags = 2, .id_out = 1}};
  static pph_payload_value values[] = {{{&tensors[0], 1}},
                                       {{&tensors[1], 1}}};
  static pph_payload_unary clamp = {.output_id = 1};
  static pph_payload_min_max range = {-1, 2};
  static pph_payload_node nodes[] = {
      {{&clamp, PPH_PAYLOAD_CLAMP}, 7, &range}};
  static pph_payload_graph graph = {.version = {"0", 1},
                                    .xnodes = {nodes, 1},
                                    .xvalues = {values, 2},
                                    .num_externs = 2};
  return (pph_payload){
      .graph = &graph,
      .identifier = {'X', 'N', '0', '1'},
      .constants = {inline_constants, sizeof inline_constants}};
}

static void test_small(void **state) {
  pph_payload made = small_payload();
  for (int bare = 0; bare < 2; bare++) {
    size_t length;
    made.bare = bare;
    if (bare)
      made.constants.count = 0;
    uint8_t *bytes = pte_write_payload(&made, &length);
    reading r;
    read_payload(bytes, length, &r);
    test_assert_ok(r.status, &r.error);
    assert_true(pph_payload_equal(&made, &r.payload));
    pph_payload_uses uses;
    pph_payload_find_uses(&r.payload.graph->xnodes.at[0], &uses);
    assert_int_equal(uses.input_count, 1);
    assert_int_equal(uses.output_count, 1);
    assert_int_equal(uses.inputs[0], 0);
    assert_int_equal(uses.outputs[0], 1);
    r.payload.graph->xnodes.at[0].output_min_max->output_max = 3;
    assert_false(pph_payload_equal(&made, &r.payload));
    forget(&r);
    free(bytes);
  }
}

static void refuse(const uint8_t *bytes, size_t length, const char *what) {
  reading r;
  read_payload(bytes, length, &r);
  assert_int_equal(r.status, PPH_BAD_MODEL);
  if (!strstr(r.error.message, what))
    fail_msg("\"%s\" should say %s", r.error.message, what);
  forget(&r);
}

/* One number of the header after the other out of range. */
static void test_header(void **state) {
  pph_payload made = small_payload();
  size_t length;
  uint8_t *bytes = pte_write_payload(&made, &length), *copy = malloc(length);
  assert_non_null(copy);
  static const struct {
    size_t at;
    uint32_t value;
    const char *what;
  } rows[] = {{10, UINT32_MAX, "its flatbuffer"},
              {14, UINT32_MAX, "its flatbuffer"},
              {14, 7, "no graph for XNNPACK"},
              {18, 32, "its constants"},
              {18, UINT32_MAX, "its constants"},
              {26, 1, "its constants"},
              {36, 0, "no graph for XNNPACK"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    memcpy(copy, bytes, length);
    memcpy(copy + rows[i].at, &rows[i].value, 4);
    refuse(copy, length, rows[i].what);
  }
  refuse(bytes, 20, "its header alone");
  refuse(bytes, 0, "no graph for XNNPACK");
  free(bytes);
  free(copy);
}

/* What was read and has something unknown must not be written. */
static void test_unknown(void **state) {
  pph_payload made = small_payload();
  pph_heap heap;
  pph_error error = {0};
  void *bytes;
  size_t length;
  made.unknown = (pph_flat_unknown){"XNodeUnion", 48};
  pph_heap_init(&heap, NULL, 0);
  assert_int_equal(pph_payload_write(&made, &heap, &bytes, &length, &error),
                   PPH_UNSUPPORTED);
  assert_null(bytes);
  assert_string_equal(error.where, "XNodeUnion");
  assert_non_null(strstr(error.message, "48"));
}

/* Concatenations share a table; unused inputs must not count. */
static void test_uses(void **state) {
  pph_payload_concatenate three = {.input1_id = 4, .input2_id = 5,
                                   .input3_id = 6, .output_id = 7};
  pph_payload_node node = {.xnode_union = {&three,
                                           PPH_PAYLOAD_CONCATENATE_3}};
  pph_payload_uses uses;
  pph_payload_find_uses(&node, &uses);
  assert_int_equal(uses.input_count, 3);
  assert_int_equal(uses.inputs[2], 6);
  pph_payload_conv conv = {.input1_id = 1, .filter_id = 2,
                           .bias_id = PPH_PAYLOAD_NONE, .output_id = 3};
  node.xnode_union.value = &conv;
  node.xnode_union.type = PPH_PAYLOAD_CONV_TRANSPOSE;
  pph_payload_find_uses(&node, &uses);
  assert_int_equal(uses.input_count, 3);
  assert_false(uses.roles[0] & PPH_PAYLOAD_PACKED);
  assert_true(uses.roles[1] & PPH_PAYLOAD_PACKED);
  assert_true(uses.roles[2] & PPH_PAYLOAD_OPTIONAL);
  assert_int_equal(uses.inputs[2], PPH_PAYLOAD_NONE);
  node.xnode_union.type = 48;
  pph_payload_find_uses(&node, &uses);
  assert_int_equal(uses.input_count + uses.output_count, 0);
  assert_string_equal(pph_payload_kind_name(39), "ConvTranspose2d");
  assert_string_equal(pph_payload_kind_name(47), "Cos");
  assert_string_equal(pph_payload_kind_name(48), "");
  assert_string_equal(pph_payload_type_name(10), "qbint4");
}

static void survive(const uint8_t *bytes, size_t length) {
  uint8_t *copy = malloc(length ? length : 1);
  reading r;
  assert_non_null(copy);
  memcpy(copy, bytes, length);
  read_payload(copy, length, &r);
  forget(&r);
  free(copy);
}

static void damage(const uint8_t *bytes, size_t length, uint32_t rounds) {
  test_random random = {length};
  uint8_t *copy = malloc(length);
  assert_non_null(copy);
  for (uint32_t i = 0; i < rounds; i++) {
    memcpy(copy, bytes, length);
    for (int64_t flips = test_random_range(&random, 1, 4); flips; flips--)
      copy[test_random_range(&random, 0, (int64_t)length - 1)] ^=
          (uint8_t)(1 << test_random_range(&random, 0, 7));
    survive(copy, length);
  }
  free(copy);
}

static void test_damage(void **state) {
  pph_payload made = small_payload();
  size_t length;
  uint8_t *bytes = pte_write_payload(&made, &length);
  for (size_t i = 0; i <= length; i++)
    survive(bytes, i);
  damage(bytes, length, test_rounds(20000));
  free(bytes);
}

/* Files of others */

static void check_delegate(const char *path, pph_pte_bytes bytes) {
  reading r;
  read_payload(bytes.at, bytes.count, &r);
  test_assert_ok(r.status, &r.error);
  if (r.payload.unknown.table)
    fail_msg("%s: %s has an unknown %u", path, r.payload.unknown.table,
             r.payload.unknown.number);
  size_t length;
  uint8_t *again = pte_write_payload(&r.payload, &length);
  reading s;
  read_payload(again, length, &s);
  test_assert_ok(s.status, &s.error);
  assert_true(pph_payload_equal(&r.payload, &s.payload));
  for (size_t i = 0; i < 50; i++)
    survive(bytes.at, bytes.count * i / 50);
  damage(bytes.at, bytes.count, 100);
  forget(&r);
  forget(&s);
  free(again);
}

static void visit(const char *path, void *context) {
  pph_heap heap;
  pph_pte *pte;
  pph_error error = {0};
  int *count = context;
  pph_pte_source source = {.name = path};
  source.bytes.at = test_read_file(path, &source.bytes.count);
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(pph_pte_open(&source, NULL, 0, &heap, &pte, &error), &error);
  for (uint32_t i = 0; i < pte->program->execution_plan.count; i++) {
    const pph_pte_plan *plan = &pte->program->execution_plan.at[i];
    for (uint32_t j = 0; j < plan->delegates.count; j++, (*count)++)
      check_delegate(path,
                     pph_pte_delegate_payload(pte, &plan->delegates.at[j]));
  }
  pph_pte_close(pte);
  free((void *)(uintptr_t)source.bytes.at);
}

static int count_delegates(const char *folder) {
  static const char *const ends[] = {".pte", NULL};
  int count = 0;
  test_each_shared_file(folder, ends, visit, &count);
  return count;
}

static void test_shared_payloads(void **state) {
  assert_int_equal(count_delegates("pte"), 11);
  assert_int_equal(count_delegates("pte/real"), 85);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small),   cmocka_unit_test(test_header),
      cmocka_unit_test(test_unknown), cmocka_unit_test(test_uses),
      cmocka_unit_test(test_damage),  cmocka_unit_test(test_shared_payloads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
