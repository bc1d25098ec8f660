#include "pte_maker.h"

#include <stdlib.h>
#include <string.h>

#include "pte/container_write.h"
#include "test_support.h"

#define SPAN(array) {array, sizeof array / sizeof *(array)}
#define TEXT(text) {text, sizeof text - 1}

void pte_release(pph_pte_bytes bytes) {
  free((void *)(uintptr_t)bytes.at);
}

static pph_pte_bytes write_image(const pph_pte_image *image,
                                 const pph_flat_table *table, const void *root,
                                 const char *identifier,
                                 pph_pte_data_segment *rows) {
  pph_heap heap;
  pph_error error = {0};
  void *bytes;
  size_t length;
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(pph_pte_image_write(image, table, root, identifier, rows,
                                     &heap, &bytes, &length, &error),
                 &error);
  uint8_t *copy = malloc(length);
  assert_non_null(copy);
  memcpy(copy, bytes, length);
  pph_heap_release(&heap, bytes);
  assert_int_equal(atomic_load(&heap.used), 0);
  return (pph_pte_bytes){copy, length};
}

pph_pte_bytes pte_write_program(const pph_pte_image *image,
                                pph_pte_program *program) {
  return write_image(image, pph_pte_program_schema(), program, "ET12",
                     program->segments.at);
}

uint8_t *pte_write_payload(const pph_payload *payload, size_t *length) {
  pph_heap heap;
  pph_error error = {0};
  void *bytes;
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(pph_payload_write(payload, &heap, &bytes, length, &error),
                 &error);
  uint8_t *copy = malloc(*length);
  assert_non_null(copy);
  memcpy(copy, bytes, *length);
  pph_heap_release(&heap, bytes);
  assert_int_equal(atomic_load(&heap.used), 0);
  return copy;
}

static const int32_t shape[] = {1, 4};
static const uint8_t order[] = {0, 1};
static const float constants[] = {1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t payload[] = "an inline payload";
static const uint8_t other_payload[] = "a payload in a segment";
static const uint8_t named[] = "named data";

#define TENSOR .scalar_type = 6, .sizes = SPAN(shape), .dim_order = SPAN(order)

/* Values: 0 constant, 1 external, 2 state, 3 state with contents, 4 input,
   5 output, 6 to 8 an Int and lists, 9 Bool, 10 Null, 11 text, 12 Double. */
static pph_pte_value *make_values(void) {
  static const int64_t ints[] = {6, 6};
  static const int32_t tensors[] = {4, 5}, optional[] = {4, -1, 10};
  static pph_pte_extra_info extra = {.fully_qualified_name = TEXT("scale"),
                                     .location = 1};
  static pph_pte_allocation places[] = {{1, 0, 0}, {1, 16, 0}, {1, 32, 0},
                                        {1, 48, 0}};
  static pph_pte_tensor list[] = {
      {TENSOR, .data_buffer_idx = 1},
      {TENSOR, .extra_tensor_info = &extra},
      {TENSOR, .allocation_info = &places[0]},
      {TENSOR, .allocation_info = &places[1], .data_buffer_idx = 1},
      {TENSOR, .allocation_info = &places[2], .shape_dynamism = 1},
      {TENSOR, .allocation_info = &places[3], .shape_dynamism = 1}};
  static pph_pte_int number = {3};
  static pph_pte_int_list int_list = {SPAN(ints)};
  static pph_pte_tensor_list tensor_list = {SPAN(tensors)};
  static pph_pte_optional_tensor_list optional_list = {SPAN(optional)};
  static pph_pte_bool truth = {1};
  static pph_pte_null none;
  static pph_pte_string text = {TEXT("bilinear")};
  static pph_pte_double real = {0.25};
  static pph_pte_value values[] = {
      {{&list[0], 5}},       {{&list[1], 5}}, {{&list[2], 5}},
      {{&list[3], 5}},       {{&list[4], 5}}, {{&list[5], 5}},
      {{&number, 2}},        {{&int_list, 7}}, {{&tensor_list, 10}},
      {{&truth, 3}},         {{&none, 1}},    {{&text, 6}},
      {{&real, 4}},          {{&optional_list, 11}}};
  return values;
}
enum { VALUES = 14 };

static pph_pte_chain *make_chain(void) {
  static const int32_t kernel_args[] = {4, 0, 12, 5, 5}, copy_args[] = {2, 5},
                       delegate_args[] = {4, 1, 3, 5};
  static pph_pte_kernel_call kernel = {0, SPAN(kernel_args)};
  static pph_pte_kernel_call copy = {1, SPAN(copy_args)};
  static pph_pte_delegate_call inlined = {0, SPAN(delegate_args)};
  static pph_pte_delegate_call segment = {1, SPAN(delegate_args)};
  static pph_pte_jump_false_call jump = {9, 5};
  static pph_pte_move_call move = {4, 5};
  static pph_pte_free_call release = {4};
  static pph_pte_instruction steps[] = {
      {{&kernel, 1}}, {{&jump, 4}}, {{&inlined, 2}}, {{&segment, 2}},
      {{&move, 3}},   {{&copy, 1}}, {{&release, 5}}};
  static pph_pte_chain chain = {.instructions = SPAN(steps)};
  return &chain;
}

static void make_plan(const char *name, pph_pte_plan *plan) {
  static const int32_t inputs[] = {4}, outputs[] = {5, 4};
  static const int64_t sizes[] = {0, 64};
  static pph_pte_operator operators[] = {{TEXT("aten::add"), TEXT("out")},
                                         {TEXT("aten::copy_"), TEXT("")}};
  static pph_pte_data_reference places[] = {{0, 0}, {1, 2}};
  static pph_pte_delegate delegates[] = {
      {.id = TEXT("OneBackend"), .processed = &places[0]},
      {.id = TEXT("OtherBackend"), .processed = &places[1]}};
  *plan = (pph_pte_plan){.name = {name, (uint32_t)strlen(name)},
                         .values = {make_values(), VALUES},
                         .inputs = SPAN(inputs),
                         .outputs = SPAN(outputs),
                         .chains = {make_chain(), 1},
                         .operators = SPAN(operators),
                         .delegates = SPAN(delegates),
                         .non_const_buffer_sizes = SPAN(sizes)};
}

pph_pte_bytes pte_make_program(void) {
  static const uint64_t offsets[] = {0, 16}, first_contents[] = {0, 0};
  pph_pte_subsegment constant = {0, SPAN(offsets)};
  pph_pte_subsegment mutable_data[] = {{1, SPAN(first_contents)}};
  pph_pte_plan plans[2];
  pph_pte_inline_data data[] = {{{payload, sizeof payload}}};
  pph_pte_named_data keys[] = {{TEXT("one"), 3}, {TEXT("two"), 3},
                               {TEXT("nothing"), 4}};
  pph_pte_data_segment rows[5];
  pph_pte_bytes segments[] = {{(const uint8_t *)constants, sizeof constants},
                              {(const uint8_t *)constants, 16},
                              {other_payload, sizeof other_payload},
                              {named, sizeof named},
                              {NULL, 0}};
  make_plan("forward", &plans[0]);
  make_plan("again", &plans[1]);
  pph_pte_program program = {.execution_plan = SPAN(plans),
                             .backend_delegate_data = SPAN(data),
                             .segments = SPAN(rows),
                             .constant_segment = &constant,
                             .mutable_data_segments = SPAN(mutable_data),
                             .named_data = SPAN(keys)};
  pph_pte_image image = {.segments = segments, .segment_count = 5};
  return pte_write_program(&image, &program);
}

pph_pte_bytes pte_make_external(void) {
  pph_ptd_layout layout = {6, SPAN(shape), SPAN(order)};
  pph_ptd_named_data keys[] = {{TEXT("scale"), 0, &layout},
                               {TEXT("blob"), 1, NULL}};
  pph_pte_data_segment rows[2];
  pph_pte_bytes segments[] = {{(const uint8_t *)constants + 16, 16},
                              {named, sizeof named}};
  pph_ptd_flat_tensor root = {.segments = SPAN(rows), .named_data = SPAN(keys)};
  pph_pte_image image = {.segments = segments, .segment_count = 2};
  return write_image(&image, pph_ptd_flat_tensor_schema(), &root, "FT01",
                     rows);
}

pph_pte_bytes pte_make_bundle(pph_pte_bytes program) {
  static pph_bundle_tensor tensor = {
      6, SPAN(shape), {(const uint8_t *)constants, 16}, SPAN(order)};
  static pph_bundle_value values[] = {{{&tensor, 1}}, {{&tensor, 1}}};
  pph_bundle_test_case test = {{values, 1}, {values, 2}};
  pph_bundle_test_suite suite = {TEXT("forward"), {&test, 1}};
  pph_bundle_program root = {
      .method_test_suites = {&suite, 1},
      .program = {program.at, (uint32_t)program.count}};
  pph_pte_image image = {0};
  return write_image(&image, pph_bundle_program_schema(), &root, "BP08", NULL);
}

pph_pte_bytes pte_make_old_program(void) {
  pph_pte_tensor tensor = {TENSOR, .data_buffer_idx = 1};
  pph_pte_value values[] = {{{&tensor, 5}}};
  static const int32_t outputs[] = {0};
  static const int64_t sizes[] = {0};
  pph_pte_chain chain = {.instructions = {(void *)values, 0}};
  pph_pte_buffer buffers[] = {
      {{0}}, {{(const uint8_t *)constants, 16}}};
  pph_pte_plan plan = {.name = TEXT("forward"),
                       .values = SPAN(values),
                       .inputs = {outputs, 0},
                       .outputs = SPAN(outputs),
                       .chains = {&chain, 1},
                       .delegates = {(void *)values, 0},
                       .non_const_buffer_sizes = SPAN(sizes)};
  pph_pte_program program = {.execution_plan = {&plan, 1},
                             .constant_buffer = SPAN(buffers)};
  pph_pte_image image = {0};
  return pte_write_program(&image, &program);
}
