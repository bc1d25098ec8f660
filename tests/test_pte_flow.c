/* Programs with state, jumps and views that the exporter left out: small ones
   made here give what their instructions say, run by run. */
#include <stdio.h>
#include <string.h>

#include "polyphase/polyphase.h"
#include "pte_maker.h"
#include "runtime/compile.h"
#include "test_support.h"

#define SPAN(array) {array, sizeof array / sizeof *(array)}
#define TEXT(text) {text, sizeof text - 1}

/* Values of all programs: tensors of two floats in planned memory unless said
   otherwise, numbers and the operators' other arguments. */
enum {
  X,        /* input 0 */
  WHICH,    /* input 1, a Bool tensor of one element */
  KEPT,     /* state that begins as {10, 20} */
  SUM,      /* state that begins as zeros */
  Y, Z, U,  /* planned, each in a place of its own */
  VIEW,     /* [1,2] in Y's place */
  ONE,      /* alpha */
  NO, YES,  /* fixed Bools */
  COUNT, LIMIT, DONE, /* of a loop: 0, 3 and false */
  AXIS,     /* 0 */
  BYTES,    /* two i8 */
  SCALE, LEAST, GREATEST, NONE, /* a tenth, -128, 127 and Null */
  VALUES
};

typedef struct made_program {
  pph_pte_instruction *steps;
  uint32_t step_count;
  const int32_t *inputs, *outputs;
  uint32_t input_count, output_count;
  bool is_dynamic; /* X and Y: sizes are bounds */
} made_program;

static pph_pte_value *make_values(bool is_dynamic) {
  static const int32_t pair[] = {2}, single[] = {1}, row[] = {1, 2};
  static const uint8_t order[] = {0, 1};
  static pph_pte_allocation places[VALUES];
  static pph_pte_tensor tensors[VALUES];
  static pph_pte_int one = {1};
  static pph_pte_bool no = {0}, yes = {1};
  static pph_pte_value values[VALUES];
  for (int i = 0; i <= VIEW; i++) {
    places[i] = (pph_pte_allocation){.memory_id = 1,
                                     .memory_offset_low = 16 * (uint32_t)i};
    tensors[i] = (pph_pte_tensor){.scalar_type = 6,
                                  .sizes = SPAN(pair),
                                  .dim_order = {order, 1},
                                  .allocation_info = &places[i]};
    values[i].val = (pph_flat_choice){&tensors[i], PPH_PTE_TENSOR};
  }
  static pph_pte_int count = {0}, axis = {0}, limit = {3}, least = {-128}, greatest = {127};
  static pph_pte_bool done = {0};
  static pph_pte_double scale = {0.1};
  static pph_pte_null none;
  tensors[BYTES] = tensors[X];
  tensors[BYTES].scalar_type = 1;
  tensors[BYTES].allocation_info = &places[BYTES];
  places[BYTES] = (pph_pte_allocation){
      .memory_id = 1, .memory_offset_low = 16 * (uint32_t)BYTES};
  values[COUNT].val = (pph_flat_choice){&count, PPH_PTE_INT};
  values[AXIS].val = (pph_flat_choice){&axis, PPH_PTE_INT};
  values[LIMIT].val = (pph_flat_choice){&limit, PPH_PTE_INT};
  values[DONE].val = (pph_flat_choice){&done, PPH_PTE_BOOL};
  values[BYTES].val = (pph_flat_choice){&tensors[BYTES], PPH_PTE_TENSOR};
  values[SCALE].val = (pph_flat_choice){&scale, PPH_PTE_DOUBLE};
  values[LEAST].val = (pph_flat_choice){&least, PPH_PTE_INT};
  values[GREATEST].val = (pph_flat_choice){&greatest, PPH_PTE_INT};
  values[NONE].val = (pph_flat_choice){&none, PPH_PTE_NULL};
  tensors[X].shape_dynamism = tensors[Y].shape_dynamism = is_dynamic;
  tensors[WHICH].scalar_type = 11;
  tensors[WHICH].sizes.at = single;
  tensors[WHICH].sizes.count = 1;
  tensors[KEPT].data_buffer_idx = 1;
  tensors[VIEW].sizes.at = row;
  tensors[VIEW].sizes.count = 2;
  tensors[VIEW].dim_order.count = 2;
  places[VIEW] = places[Y];
  values[ONE].val = (pph_flat_choice){&one, PPH_PTE_INT};
  values[NO].val = (pph_flat_choice){&no, PPH_PTE_BOOL};
  values[YES].val = (pph_flat_choice){&yes, PPH_PTE_BOOL};
  return values;
}

static pph_pte_bytes write_made(const made_program *made) {
  static const float contents[] = {10, 20};
  static const int64_t sizes[] = {0, 16 * VALUES};
  static const uint64_t none[] = {0}, first[] = {0, 0};
  static pph_pte_operator operators[] = {{TEXT("aten::add"), TEXT("out")},
                                         {TEXT("aten::mul"), TEXT("out")},
                                         {TEXT("aten::copy_"), TEXT("")},
                                         {TEXT("aten::neg"), TEXT("out")},
      {TEXT("executorch_prim::add"), TEXT("Scalar")},
      {TEXT("executorch_prim::eq"), TEXT("Scalar")},
      {TEXT("aten::sym_size"), TEXT("int")},
      {TEXT("aten::select_copy"), TEXT("int_out")},
      {TEXT("executorch_prim::et_copy_index"), TEXT("tensor")},
      {TEXT("quantized_decomposed::quantize_per_tensor"), TEXT("out")},
      {TEXT("quantized_decomposed::dequantize_per_tensor"), TEXT("out")},
      {TEXT("quantized_decomposed::quantize_per_channel"), TEXT("out")},
      {TEXT("quantized_decomposed::dequantize_per_channel"), TEXT("out")},
      {TEXT("executorch_prim::floordiv"), TEXT("Scalar")}};
  pph_pte_chain chain = {.instructions = {made->steps, made->step_count}};
  pph_pte_delegate delegate;
  pph_pte_plan plan = {.name = TEXT("forward"),
                       .values = {make_values(made->is_dynamic), VALUES},
                       .inputs = {made->inputs, made->input_count},
                       .outputs = {made->outputs, made->output_count},
                       .chains = {&chain, 1},
                       .operators = SPAN(operators),
                       .delegates = {&delegate, 0},
                       .non_const_buffer_sizes = SPAN(sizes)};
  pph_pte_subsegment constant = {0, SPAN(none)};
  pph_pte_subsegment mutable_data[] = {{1, SPAN(first)}};
  pph_pte_data_segment rows[2];
  pph_pte_program program = {.execution_plan = {&plan, 1},
                             .segments = SPAN(rows),
                             .constant_segment = &constant,
                             .mutable_data_segments = SPAN(mutable_data)};
  pph_pte_bytes segments[] = {
      {NULL, 0}, {(const uint8_t *)contents, sizeof contents}};
  pph_pte_image image = {.segments = segments, .segment_count = 2};
  return pte_write_program(&image, &program);
}

static pph_status load(const made_program *made, pph_model **model,
                       pph_error *error) {
  pph_pte_bytes file = write_made(made);
  pph_status status =
      pph_model_load_bytes(file.at, file.count, NULL, NULL, model, error);
  pte_release(file);
  return status;
}

/* Runs on x (and the condition) and compares output `which` with {a, b}. */
static void expect(pph_session *session, float x0, float x1, bool condition,
                   uint32_t inputs, uint32_t which, float a, float b) {
  float x[] = {x0, x1};
  uint8_t truth = condition;
  pph_tensor in[] = {{PPH_F32, {1, {2}}, x}, {PPH_BOOL, {1, {1}}, &truth}};
  pph_tensor out[2];
  pph_error error = {0};
  test_assert_ok(
      pph_session_run(session, in, inputs, out, which + 1, &error), &error);
  const float *found = out[which].data;
  assert_true(found[0] == a && found[1] == b);
}

static pph_session *open_session(const pph_model *model) {
  pph_session *session;
  pph_error error = {0};
  test_assert_ok(pph_session_create(model, NULL, &session, &error), &error);
  return session;
}

static const int32_t add_kept[] = {X, KEPT, ONE, Y, Y};
static const int32_t keep_y[] = {KEPT, Y, NO, KEPT};
static const int32_t add_sum[] = {SUM, X, ONE, Z, Z};
static const int32_t keep_z[] = {SUM, Z, NO, SUM};
static const int32_t double_x[] = {X, X, ONE, Y, Y};
static const int32_t square_x[] = {X, X, Y, Y};
static const int32_t square_to_z[] = {X, X, Z, Z};
static const int32_t negate_view[] = {VIEW, Z, Z};
static const pph_pte_kernel_call adds_kept = {0, SPAN(add_kept)};
static const pph_pte_kernel_call keeps_y = {2, SPAN(keep_y)};
static const pph_pte_kernel_call adds_sum = {0, SPAN(add_sum)};
static const pph_pte_kernel_call keeps_z = {2, SPAN(keep_z)};
static const pph_pte_kernel_call doubles = {0, SPAN(double_x)};
static const pph_pte_kernel_call squares = {1, SPAN(square_x)};
static const pph_pte_kernel_call squares_to_z = {1, SPAN(square_to_z)};
static const pph_pte_kernel_call negates = {3, SPAN(negate_view)};
static const pph_pte_move_call y_to_u = {Y, U}, z_to_u = {Z, U};

#define CALL(call) {{(void *)(uintptr_t)&(call), PPH_PTE_KERNEL_CALL}}
#define MOVE(call) {{(void *)(uintptr_t)&(call), PPH_PTE_MOVE_CALL}}
#define JUMP(call) {{(void *)(uintptr_t)&(call), PPH_PTE_JUMP_FALSE_CALL}}

static const int32_t add_y[] = {Y, X, ONE, Y, Y};
static const int32_t count_up[] = {COUNT, ONE, COUNT};
static const int32_t compare[] = {COUNT, LIMIT, DONE};
static const int32_t find_size[] = {X, AXIS, LIMIT};
static const int32_t select_row[] = {X, AXIS, COUNT, Z, Z};
static const int32_t negate_z[] = {Z, U, U};
static const int32_t put_row[] = {Y, U, COUNT, Y};
static const int32_t to_bytes[] = {X,        SCALE, LIMIT, LEAST,
                                   GREATEST, ONE,   BYTES, BYTES};
static const int32_t from_bytes[] = {BYTES,    SCALE, LIMIT, LEAST,
                                     GREATEST, ONE,   NONE,  Y, Y};
static const int32_t to_channels[] = {X,        KEPT, NONE,  COUNT, LEAST,
                                      GREATEST, ONE,  BYTES, BYTES};
static const int32_t from_channels[] = {BYTES,    KEPT, NONE, COUNT, LEAST,
                                        GREATEST, ONE,  Y,    Y};
static const int32_t divide[] = {COUNT, COUNT, COUNT};
static const pph_pte_kernel_call adds_y = {0, SPAN(add_y)},
                                 counts = {4, SPAN(count_up)},
                                 compares = {5, SPAN(compare)},
                                 sizes_x = {6, SPAN(find_size)},
                                 selects = {7, SPAN(select_row)},
                                 negates_z = {3, SPAN(negate_z)},
                                 puts_row = {8, SPAN(put_row)},
                                 quantizes = {9, SPAN(to_bytes)},
                                 dequantizes = {10, SPAN(from_bytes)},
                                 quantizes_channels = {11, SPAN(to_channels)},
                                 dequantizes_channels = {12,
                                                         SPAN(from_channels)},
                                 divides = {13, SPAN(divide)};

static const int32_t x_only[] = {X}, x_and_which[] = {X, WHICH};
static const int32_t y_and_z[] = {Y, Z}, u_only[] = {U}, y_only[] = {Y},
                     z_only[] = {Z};

/* y = x + x, of at most two. */
static void test_bounds(void **state) {
  static const int32_t twice[] = {X, X, ONE, Y, Y};
  pph_pte_kernel_call adds = {0, SPAN(twice)};
  pph_pte_instruction steps[] = {CALL(adds)};
  const made_program made = {steps, 1, x_only, y_only, 1, 1, true};
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(load(&made, &model, &error), &error);
  pph_value_info x = pph_model_input(model, 0), y = pph_model_output(model, 0);
  assert_true(x.shape.rank == 1 && x.shape.dims[0] == -1);
  assert_true(x.bounds.rank == 1 && x.bounds.dims[0] == 2);
  assert_true(y.type == PPH_F32 && y.shape.rank == 1);
  assert_true(y.shape.dims[0] == -1 && y.bounds.dims[0] == -1);
  pph_session *session = open_session(model);
  pph_tensor out, in = {PPH_F32, {1, {1}}, (float[]){3}};
  test_assert_ok(pph_session_run(session, &in, 1, &out, 1, &error), &error);
  assert_true(out.shape.dims[0] == 1 && *(const float *)out.data == 6);
  pph_session_destroy(session);
  pph_model_destroy(model);
  (void)state;
}

/* y = x + kept, kept = y; z = sum + x, sum = z. */
static void test_state(void **state) {
  pph_pte_instruction steps[] = {CALL(adds_kept), CALL(keeps_y),
                                       CALL(adds_sum), CALL(keeps_z)};
  const made_program made = {steps, 4, x_only, y_and_z, 1, 2, false};
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(load(&made, &model, &error), &error);
  assert_int_equal(pph_model_input_count(model), 1);
  assert_int_equal(pph_model_output_count(model), 2);
  assert_null(pph_model_input(model, 1).name);
  pph_value_info z_info = pph_model_output(model, 1);
  assert_int_equal(z_info.type, PPH_F32);
  assert_true(z_info.shape.rank == 1 && z_info.shape.dims[0] == 2);
  pph_session *one = open_session(model), *other = open_session(model);
  pph_tensor both[2], in = {PPH_F32, {1, {2}}, (float[]){1, 2}};
  for (int i = 1; i <= 3; i++) {
    test_assert_ok(pph_session_run(one, &in, 1, both, 2, &error), &error);
    const float *y = both[0].data, *z = both[1].data;
    assert_true(y[0] == 10 + (float)i && y[1] == 20 + 2 * (float)i);
    assert_true(z[0] == (float)i && z[1] == 2 * (float)i);
  }
  /* Sessions do not share it. */
  expect(other, 0, 0, false, 1, 1, 0, 0);
  /* A run that fails changes nothing. */
  pph_tensor bad = {PPH_F32, {1, {3}}, (float[]){1, 2, 3}};
  assert_int_equal(pph_session_run(one, &bad, 1, both, 2, &error),
                   PPH_INVALID_ARGUMENT);
  expect(one, 0, 0, false, 1, 1, 3, 6);
  pph_session_reset(one);
  expect(one, 5, 5, false, 1, 1, 5, 5);
  pph_session_destroy(one);
  pph_session_destroy(other);
  /* A program cannot be written with it. */
  pph_heap heap;
  pph_pte_files files;
  pph_heap_init(&heap, NULL, 0);
  const pph_shape_range shape = {.rank = 0};
  const pph_compile_options options = {.lowering = PPH_LOWERING_AUTO};
  assert_int_equal(pph_model_compile(model, &shape, &options, &heap, &files,
                                     &error),
                   PPH_UNSUPPORTED);
  assert_non_null(strstr(error.message, "state"));
  pph_model_destroy(model);
}

/* if (which) { y = x + x; u = y; sum = sum + x } else { z = x * x; u = z } */
static void test_branches(void **state) {
  const pph_pte_jump_false_call to_else = {WHICH, 6}, out = {NO, 8};
  pph_pte_instruction steps[] = {
      JUMP(to_else),      CALL(doubles), MOVE(y_to_u),
      CALL(adds_sum),     CALL(keeps_z), JUMP(out),
      CALL(squares_to_z), MOVE(z_to_u)};
  static const int32_t u_and_sum[] = {U, SUM};
  const made_program made = {steps, 8, x_and_which, u_and_sum, 2, 2, false};
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(load(&made, &model, &error), &error);
  pph_session *session = open_session(model);
  pph_tensor out_pair[2];
  uint8_t truth = 0;
  pph_tensor in[] = {{PPH_F32, {1, {2}}, (float[]){3, -5}},
                     {PPH_BOOL, {1, {1}}, &truth}};
  static const float right[][4] = {
      {9, 25, 0, 0}, {6, -10, 3, -5}, {9, 25, 3, -5}, {6, -10, 6, -10}};
  for (int i = 0; i < 4; i++) {
    truth = i % 2;
    test_assert_ok(pph_session_run(session, in, 2, out_pair, 2, &error),
                   &error);
    assert_memory_equal(out_pair[0].data, right[i], 8);
    assert_memory_equal(out_pair[1].data, right[i] + 2, 8);
  }
  pph_session_destroy(session);
  pph_model_destroy(model);
}

/* if (which) y = x + x, after y = x * x: a branch without else. */
static void test_branch_alone(void **state) {
  const pph_pte_jump_false_call over = {WHICH, 3};
  pph_pte_instruction steps[] = {CALL(squares), JUMP(over),
                                       CALL(doubles), MOVE(y_to_u)};
  const made_program made = {steps, 4, x_and_which, u_only, 2, 1, false};
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(load(&made, &model, &error), &error);
  pph_session *session = open_session(model);
  expect(session, 3, 4, false, 2, 0, 9, 16);
  expect(session, 3, 4, true, 2, 0, 6, 8);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

/* Jumps by fixed Bools are followed while importing: over the last call, or
   not. */
static void test_fixed_jumps(void **state) {
  static const float right[][2] = {{9, 16}, {6, 8}};
  for (int i = 0; i < 2; i++) {
    pph_pte_jump_false_call jump = {i ? YES : NO, 3};
    pph_pte_instruction steps[] = {CALL(squares), JUMP(jump), CALL(doubles)};
    const made_program made = {steps, 3, x_only, y_only, 1, 1, false};
    pph_model *model;
    pph_error error = {0};
    test_assert_ok(load(&made, &model, &error), &error);
    pph_session *session = open_session(model);
    expect(session, 3, 4, false, 1, 0, right[i][0], right[i][1]);
    pph_session_destroy(session);
    pph_model_destroy(model);
  }
}

static void test_left_out_view(void **state) {
  pph_pte_instruction steps[] = {CALL(squares), CALL(negates)};
  const made_program made = {steps, 2, x_only, z_only, 1, 1, false};
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(load(&made, &model, &error), &error);
  pph_session *session = open_session(model);
  expect(session, 3, 4, false, 1, 0, -9, -16);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

/* Loads, and compares y of one run, or of several. */
static void check_y(pph_pte_instruction *steps, uint32_t count, float x0,
                    float x1, float y0, float y1) {
  const made_program made = {steps, count, x_only, y_only, 1, 1, false};
  pph_model *model;
  pph_error error = {0};
  test_assert_ok(load(&made, &model, &error), &error);
  pph_session *session = open_session(model);
  expect(session, x0, x1, false, 1, 0, y0, y1);
  expect(session, x0, x1, false, 1, 0, y0, y1);
  pph_session_destroy(session);
  pph_model_destroy(model);
}

/* y = x * x; do y = y + x; while (++count != 3); */
static void test_loop(void **state) {
  const pph_pte_jump_false_call back = {DONE, 1};
  pph_pte_instruction steps[] = {CALL(squares), CALL(adds_y), CALL(counts),
                                 CALL(compares), JUMP(back)};
  check_y(steps, 5, 3, -4, 18, 4);
}

/* As torch.map is written: a row of x after the other, until x has no more. */
static void test_rows(void **state) {
  const pph_pte_jump_false_call back = {DONE, 1};
  pph_pte_instruction steps[] = {
      CALL(sizes_x),  CALL(selects), CALL(negates_z), CALL(puts_row),
      CALL(counts),   CALL(compares), JUMP(back)};
  check_y(steps, 7, 3, -4, -3, 4);
}

static void test_quantize(void **state) {
  pph_pte_instruction whole[] = {CALL(quantizes), CALL(dequantizes)};
  check_y(whole, 2, 0.26f, -5, 3 * 0.1f, -50 * 0.1f);
  check_y(whole, 2, 100, -100, 124 * 0.1f, -131 * 0.1f);
  pph_pte_instruction channels[] = {CALL(quantizes_channels),
                                    CALL(dequantizes_channels)};
  check_y(channels, 2, 37, -55, 40, -60);
  check_y(channels, 2, 5000, -5000, 1270, -2560);
}

static void refuse(pph_pte_instruction *steps, uint32_t count,
                   pph_status status, const char *message) {
  const made_program made = {steps, count, x_and_which, y_only, 2, 1, false};
  pph_model *model;
  pph_error error = {0};
  assert_int_equal(load(&made, &model, &error), status);
  if (!strstr(error.message, message))
    fail_msg("\"%s\" should say %s", error.message, message);
}

static void test_refusals(void **state) {
  const pph_pte_jump_false_call back = {WHICH, 0}, out = {WHICH, 5}, inner = {WHICH, 6};
  pph_pte_instruction loop[] = {CALL(squares), JUMP(back)};
  refuse(loop, 2, PPH_UNSUPPORTED, "instruction 1 jumps to 0");
  /* Loops that never end, with and without work. */
  const pph_pte_jump_false_call always = {NO, 0};
  pph_pte_instruction busy[] = {CALL(counts), CALL(squares), JUMP(always)};
  refuse(busy, 3, PPH_LIMIT_EXCEEDED, "");
  pph_pte_instruction idle[] = {JUMP(always)};
  refuse(idle, 1, PPH_LIMIT_EXCEEDED, "loops take more than");
  pph_pte_instruction zero[] = {CALL(divides), CALL(squares)};
  refuse(zero, 2, PPH_BAD_MODEL, "0 and 0 have no result");
  const pph_pte_jump_false_call late = {DONE, 1};
  pph_pte_instruction gap[] = {CALL(counts), CALL(squares), CALL(puts_row),
                               JUMP(late)};
  refuse(gap, 4, PPH_BAD_MODEL, "read before anything writes it");
  /* A branch that ends outside of the one around it. */
  pph_pte_instruction crossing[] = {CALL(squares), JUMP(out),
                                          JUMP(inner),   CALL(doubles),
                                          CALL(doubles), CALL(doubles)};
  refuse(crossing, 6, PPH_UNSUPPORTED, "instruction 2 jumps to 6");
  /* Only one branch makes y. */
  const pph_pte_jump_false_call over = {WHICH, 2};
  pph_pte_instruction half[] = {JUMP(over), CALL(squares)};
  refuse(half, 2, PPH_UNSUPPORTED, "no tensor that the method computes");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bounds),
      cmocka_unit_test(test_state),        cmocka_unit_test(test_branches),
      cmocka_unit_test(test_branch_alone), cmocka_unit_test(test_fixed_jumps),
      cmocka_unit_test(test_left_out_view), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_loop),          cmocka_unit_test(test_rows),
      cmocka_unit_test(test_quantize),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
