/* Methods of portable operators as graphs: every operator of the table on a
   program built here, what is refused, and the exporter's programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "npy.h"
#include "polyphase/polyphase.h"
#include "pte/import_plan.h"
#include "pte_maker.h"
#include "test_support.h"

#define SPAN(array) {array, sizeof array / sizeof *(array)}

/* x is [1,4,1,2] with -1 to 6 in it, w has ones of the row's shape. `args` has
   one letter per argument: x, w, a tensor list "l" of x and x, n for null, t
   and f for bools, digits for an Int (m for -1), '(' and ')' around a list of
   Ints, '[' and ']' around one of Doubles, h for the Double 0.5. */
typedef struct operator_case {
  const char *name, *overload, *args;
  int32_t weight[4];
  uint32_t weight_rank;
  int32_t result[5];
  uint32_t rank;
  float expected[16];
} operator_case;

static const operator_case cases[] = {
    {"aten::abs", "out", "x", {0}, 0, {1, 4, 1, 2}, 4,
     {1, 0, 1, 2, 3, 4, 5, 6}},
    {"aten::neg", "out", "x", {0}, 0, {1, 4, 1, 2}, 4,
     {1, 0, -1, -2, -3, -4, -5, -6}},
    {"aten::relu", "out", "x", {0}, 0, {1, 4, 1, 2}, 4,
     {0, 0, 1, 2, 3, 4, 5, 6}},
    {"aten::mul", "out", "xx", {0}, 0, {1, 4, 1, 2}, 4,
     {1, 0, 1, 4, 9, 16, 25, 36}},
    {"aten::add", "out", "xx1", {0}, 0, {1, 4, 1, 2}, 4,
     {-2, 0, 2, 4, 6, 8, 10, 12}},
    {"aten::sub", "out", "xw1", {1}, 1, {1, 4, 1, 2}, 4,
     {-2, -1, 0, 1, 2, 3, 4, 5}},
    {"aten::div", "out", "xw", {1}, 1, {1, 4, 1, 2}, 4,
     {-1, 0, 1, 2, 3, 4, 5, 6}},
    {"aten::maximum", "out", "xw", {1}, 1, {1, 4, 1, 2}, 4,
     {1, 1, 1, 2, 3, 4, 5, 6}},
    {"aten::minimum", "out", "xw", {1}, 1, {1, 4, 1, 2}, 4,
     {-1, 0, 1, 1, 1, 1, 1, 1}},
    {"aten::clamp", "out", "xn3", {0}, 0, {1, 4, 1, 2}, 4,
     {-1, 0, 1, 2, 3, 3, 3, 3}},
    {"aten::hardtanh", "out", "x1h", {0}, 0, {1, 4, 1, 2}, 4,
     {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f}},
    {"aten::leaky_relu", "out", "xh", {0}, 0, {1, 4, 1, 2}, 4,
     {-0.5f, 0, 1, 2, 3, 4, 5, 6}},
    {"aten::mean", "out", "x(23)tn", {0}, 0, {1, 4, 1, 1}, 4,
     {-0.5f, 1.5f, 3.5f, 5.5f}},
    {"aten::sum", "IntList_out", "x(1)fn", {0}, 0, {1, 1, 2}, 3, {8, 12}},
    {"aten::convolution", "out", "xwn(11)(00)(11)f(00)1", {1, 4, 1, 1}, 4,
     {1, 1, 1, 2}, 4, {8, 12}},
    {"aten::convolution", "out", "xwn(12)(00)(11)t(00)1", {4, 1, 1, 2}, 4,
     {1, 1, 1, 4}, 4, {8, 8, 12, 12}},
    {"aten::upsample_nearest2d", "vec_out", "xn[12]", {0}, 0, {1, 4, 1, 4}, 4,
     {-1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}},
    {"aten::upsample_nearest2d", "vec_out", "x(14)n", {0}, 0, {1, 4, 1, 4}, 4,
     {-1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}},
    {"aten::native_layer_norm", "out", "x(2)ww0", {2}, 1, {1, 4, 1, 2}, 4,
     {0, 2, 0, 2, 0, 2, 0, 2}},
    {"aten::native_group_norm", "out", "xww14140", {4}, 1, {1, 4, 1, 2}, 4,
     {0, 2, 0, 2, 0, 2, 0, 2}},
    {"aten::native_group_norm", "out", "xnn14110", {0}, 0, {1, 4, 1, 2}, 4,
     {-1.5275252f, -1.0910895f, -0.65465367f, -0.21821789f, 0.21821789f,
      0.65465367f, 1.0910895f, 1.5275252f}},
    {"aten::_softmax", "out", "xmf", {0}, 0, {1, 4, 1, 2}, 4,
     {0.26894142f, 0.73105858f, 0.26894142f, 0.73105858f, 0.26894142f,
      0.73105858f, 0.26894142f, 0.73105858f}},
    {"dim_order_ops::_to_dim_order_copy", "out", "xf(0123)", {0}, 0,
     {1, 4, 1, 2}, 4, {-1, 0, 1, 2, 3, 4, 5, 6}},
    {"aten::view_copy", "out", "x(2m)", {0}, 0, {2, 4}, 2,
     {-1, 0, 1, 2, 3, 4, 5, 6}},
    {"aten::permute_copy", "out", "x(02m1)", {0}, 0, {1, 1, 2, 4}, 4,
     {-1, 1, 3, 5, 0, 2, 4, 6}},
    {"aten::unsqueeze_copy", "out", "xm", {0}, 0, {1, 4, 1, 2, 1}, 5,
     {-1, 0, 1, 2, 3, 4, 5, 6}},
    {"aten::cat", "out", "lm", {0}, 0, {1, 4, 1, 4}, 4,
     {-1, 0, -1, 0, 1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6}},
    {"aten::slice_copy", "Tensor_out", "x11n2", {0}, 0, {1, 2, 1, 2}, 4,
     {1, 2, 5, 6}},
    {"aten::pixel_shuffle", "out", "x2", {0}, 0, {1, 1, 2, 4}, 4,
     {-1, 1, 0, 2, 3, 5, 4, 6}},
};
enum { CASES = sizeof cases / sizeof *cases, VALUES = 48 };

static const float x_data[] = {-1, 0, 1, 2, 3, 4, 5, 6};
static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
static const uint8_t order[] = {0, 1, 2, 3, 4};

/* A plan under construction; the first values are x, w and the result. */
typedef struct plan_maker {
  pph_pte_value values[VALUES];
  pph_pte_tensor tensors[3];
  pph_pte_int ints[VALUES];
  pph_pte_double doubles[2];
  pph_pte_bool bools[2];
  pph_pte_null none;
  int64_t items[VALUES];
  double reals[VALUES];
  pph_pte_int_list int_lists[8];
  pph_pte_double_list double_lists[2];
  pph_pte_tensor_list tensor_list;
  int32_t args[VALUES];
  uint32_t count, arg_count;
} plan_maker;

static int32_t add_value(plan_maker *m, uint8_t type, void *value) {
  assert_true(m->count < VALUES);
  m->values[m->count].val = (pph_flat_choice){value, type};
  return (int32_t)m->count++;
}

static int32_t add_int(plan_maker *m, char letter) {
  pph_pte_int *number = &m->ints[m->count];
  number->int_val = letter == 'm' ? -1 : letter - '0';
  return add_value(m, PPH_PTE_INT, number);
}

/* Adds a list up to its closing letter, and returns the letter's place. */
static const char *add_list(plan_maker *m, const char *at) {
  bool has_ints = *at++ == '(';
  uint32_t first = m->count, count = 0;
  for (; *at != ')' && *at != ']'; at++, count++)
    if (has_ints)
      m->items[first + count] = add_int(m, *at);
    else
      m->reals[first + count] = *at - '0';
  uint32_t list = m->arg_count % 8;
  m->int_lists[list].items.at = &m->items[first];
  m->int_lists[list].items.count = count;
  m->double_lists[0].items.at = &m->reals[first];
  m->double_lists[0].items.count = count;
  m->args[m->arg_count++] =
      has_ints ? add_value(m, PPH_PTE_INT_LIST, &m->int_lists[list])
               : add_value(m, PPH_PTE_DOUBLE_LIST, &m->double_lists[0]);
  return at;
}

static int32_t add_argument(plan_maker *m, char letter) {
  static const int32_t both[] = {0, 0};
  m->doubles[0].double_val = 0.5;
  m->bools[1].bool_val = 1;
  m->tensor_list.items.at = both;
  m->tensor_list.items.count = 2;
  switch (letter) {
  case 'x':
  case 'w':
    return letter == 'w';
  case 'n':
    return add_value(m, PPH_PTE_NULL, &m->none);
  case 't':
  case 'f':
    return add_value(m, PPH_PTE_BOOL, &m->bools[letter == 't']);
  case 'h':
    return add_value(m, PPH_PTE_DOUBLE, &m->doubles[0]);
  case 'l':
    return add_value(m, PPH_PTE_TENSOR_LIST, &m->tensor_list);
  default:
    return add_int(m, letter);
  }
}

static void make_values(plan_maker *m, const operator_case *c) {
  static const int32_t shape[] = {1, 4, 1, 2};
  memset(m, 0, sizeof *m);
  m->tensors[0] = (pph_pte_tensor){
      .scalar_type = 6, .sizes = {shape, 4}, .dim_order = {order, 4}};
  m->tensors[1] = (pph_pte_tensor){.scalar_type = 6,
                                   .sizes = {c->weight, c->weight_rank},
                                   .dim_order = {order, c->weight_rank},
                                   .data_buffer_idx = 1};
  m->tensors[2] = (pph_pte_tensor){.scalar_type = 6,
                                   .sizes = {c->result, c->rank},
                                   .dim_order = {order, c->rank}};
  for (int i = 0; i < 3; i++)
    add_value(m, PPH_PTE_TENSOR, &m->tensors[i]);
  for (const char *at = c->args; *at; at++)
    if (*at == '(' || *at == '[')
      at = add_list(m, at);
    else
      m->args[m->arg_count++] = add_argument(m, *at);
  m->args[m->arg_count++] = 2;
  m->args[m->arg_count++] = 2;
}

static pph_pte_bytes make_case(const operator_case *c) {
  static plan_maker m;
  static const int32_t input[] = {0}, output[] = {2};
  static const int64_t sizes[] = {0};
  static const uint64_t offsets[] = {0, 0};
  make_values(&m, c);
  pph_pte_kernel_call call = {0, {m.args, m.arg_count}};
  pph_pte_instruction step = {{&call, PPH_PTE_KERNEL_CALL}};
  pph_pte_chain chain = {.instructions = {&step, 1}};
  pph_pte_operator operator = {{c->name, (uint32_t)strlen(c->name)},
                               {c->overload, (uint32_t)strlen(c->overload)}};
  pph_pte_delegate none;
  pph_pte_plan plan = {.name = {"forward", 7},
                       .values = {m.values, m.count},
                       .inputs = SPAN(input),
                       .outputs = SPAN(output),
                       .chains = {&chain, 1},
                       .operators = {&operator, 1},
                       .delegates = {&none, 0},
                       .non_const_buffer_sizes = SPAN(sizes)};
  pph_pte_subsegment constant = {0, SPAN(offsets)};
  pph_pte_data_segment row;
  pph_pte_program program = {.execution_plan = {&plan, 1},
                             .segments = {&row, 1},
                             .constant_segment = &constant};
  pph_pte_bytes segment = {(const uint8_t *)ones, sizeof ones};
  pph_pte_image image = {.segments = &segment, .segment_count = 1};
  return pte_write_program(&image, &program);
}

static pph_status load(pph_pte_bytes file, pph_model **model,
                       pph_error *error) {
  return pph_model_load_bytes(file.at, file.count, NULL, NULL, model, error);
}

/* Runs on one input; the first output's shape and elements must be those. */
static void run_and_compare(const pph_model *model, const pph_tensor *input,
                            const pph_tensor *expected, double tolerance) {
  pph_session *session;
  pph_error error = {0};
  pph_tensor output = {0};
  size_t count = 0;
  test_assert_ok(pph_session_create(model, NULL, &session, &error), &error);
  test_assert_ok(
      pph_session_run(session, input, 1, &output, 1, &error), &error);
  assert_true(pph_shape_equal(&output.shape, &expected->shape));
  assert_int_equal(output.type, PPH_F32);
  assert_true(pph_shape_count(&output.shape, &count));
  for (size_t i = 0; i < count; i++) {
    float found = ((const float *)output.data)[i];
    float right = ((const float *)expected->data)[i];
    if (!(fabs((double)found - (double)right) <=
          tolerance * (1 + fabs((double)right))))
      fail_msg("element %zu is %g, not %g", i, (double)found, (double)right);
  }
  pph_session_destroy(session);
}

static void test_operators(void **state) {
  pph_tensor input = {PPH_F32, {4, {1, 4, 1, 2}},
                      (void *)(uintptr_t)x_data};
  for (size_t i = 0; i < CASES; i++) {
    const operator_case *c = &cases[i];
    pph_pte_bytes file = make_case(c);
    pph_model *model;
    pph_error error = {0};
    printf("%s.%s %s\n", c->name, c->overload, c->args);
    pph_status status = load(file, &model, &error);
    pte_release(file);
    test_assert_ok(status, &error);
    pph_tensor expected = {PPH_F32, {(int32_t)c->rank, {0}},
                           (void *)(uintptr_t)c->expected};
    for (uint32_t k = 0; k < c->rank; k++)
      expected.shape.dims[k] = c->result[k];
    run_and_compare(model, &input, &expected, 1e-6);
    pph_model_destroy(model);
  }
}

static void refuse(pph_pte_bytes file, pph_status status, const char *what) {
  pph_model *model;
  pph_error error = {0};
  assert_int_equal(load(file, &model, &error), status);
  if (!strstr(error.message, what))
    fail_msg("\"%s\" should say %s", error.message, what);
  pte_release(file);
}

static void test_refusals(void **state) {
  static const operator_case unknown = {
      "aten::sort", "values", "x", {0}, 0, {1, 4, 1, 2}, 4, {0}};
  static const operator_case alpha = {
      "aten::add", "out", "xxh", {0}, 0, {1, 4, 1, 2}, 4, {0}};
  static const operator_case number = {
      "aten::relu", "out", "h", {0}, 0, {1, 4, 1, 2}, 4, {0}};
  static const operator_case early = {
      "aten::permute_copy", "out", "x(9)", {0}, 0, {1, 4, 1, 2}, 4, {0}};
  static const operator_case nameless = {
      "", "", "x", {0}, 0, {1, 4, 1, 2}, 4, {0}};
  refuse(make_case(&nameless), PPH_UNSUPPORTED, "without a name");
  refuse(make_case(&unknown), PPH_UNSUPPORTED, "aten::sort.values");
  refuse(make_case(&alpha), PPH_UNSUPPORTED, "alpha is 0.5");
  refuse(make_case(&number), PPH_UNSUPPORTED, "only a tensor");
  refuse(make_case(&early), PPH_BAD_MODEL, "dimension 9");
  refuse(pte_make_external(), PPH_UNSUPPORTED, "no model");
  refuse(pte_make_program(), PPH_UNSUPPORTED, "delegate OneBackend");
}

/* Damaged programs are refused or run, without a fault. */
static void test_damage(void **state) {
  test_random random = {test_seed("damaged methods")};
  for (int i = 0; i < 2000; i++) {
    pph_pte_bytes file = make_case(&cases[i % CASES]);
    uint8_t *bytes = (uint8_t *)(uintptr_t)file.at;
    pph_model *model;
    for (int64_t flips = test_random_range(&random, 1, 4); flips; flips--)
      bytes[test_random_range(&random, 40, (int64_t)file.count - 1)] ^=
          (uint8_t)(1 << test_random_range(&random, 0, 7));
    if (load(file, &model, NULL) == PPH_OK)
      pph_model_destroy(model);
    pte_release(file);
  }
}

static void load_npy(const char *name, const char *step, const char *what,
                     pph_tensor *tensor) {
  char path[256];
  pph_error error = {0};
  snprintf(path, sizeof path, "pte/real/%s%s.%s.npy", name, step, what);
  test_assert_ok(npy_load(test_shared_path(path), tensor, &error), &error);
}

static void test_shared_programs(void **state) {
  static const struct {
    const char *name;
    int steps;
    const char *constants;
  } rows[] = {{"portable_ct2d", 1, NULL},
              {"portable_ct2d_all", 1, NULL},
              {"portable_ct1d", 1, NULL},
              {"portable_nearest_conv", 1, NULL},
              {"dyn_portable_ct2d", 3, NULL},
              {"portable_view", 2, NULL},
              {"ext_portable", 1, "pte/real/ext_portable.ptd"}};
  static const char *const steps[] = {"", ".s1", ".s2"};
  if (!test_shared_path("pte/real"))
    skip();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char path[256], constants[2048];
    const char *const list[] = {constants};
    pph_model_options options;
    pph_model *model;
    pph_error error = {0};
    pph_model_options_init(&options);
    options.constants = list;
    options.constant_count = rows[i].constants != NULL;
    if (rows[i].constants)
      snprintf(constants, sizeof constants, "%s",
               test_shared_path(rows[i].constants));
    snprintf(path, sizeof path, "pte/real/%s.pte", rows[i].name);
    test_assert_ok(
        pph_model_load(test_shared_path(path), &options, &model, &error),
        &error);
    for (int k = 0; k < rows[i].steps; k++) {
      pph_tensor input, expected;
      load_npy(rows[i].name, steps[k], "in0", &input);
      load_npy(rows[i].name, steps[k], "out0", &expected);
      run_and_compare(model, &input, &expected, 1e-5);
      free(input.data);
      free(expected.data);
    }
    pph_model_destroy(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_operators),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_damage),
      cmocka_unit_test(test_shared_programs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
