/* Quantized sums and products of a payload give what XNNPACK's own
   operators give, for all pairs of integers and many scales. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xnnpack.h>

#include "base/fail.h"
#include "graph/verify.h"
#include "model_case.h"
#include "pte/xnn_import.h"
#include "runtime/loaded_model.h"
#include "test_support.h"

#ifndef PPH_XNNPACK_RESHAPE

enum { PAIRS = 256 * 256, ROUNDS = 24 };

/* A payload of one node: inputs are values 0 and 1, the output is the last. */
typedef struct payload_case {
  pph_payload_kind kind;
  float scales[3];
  int32_t zeros[3];
  uint8_t *data[3];
} payload_case;

static pph_status import(const payload_case *c, pph_model *model,
                         pph_error *error) {
  static const uint32_t dims[] = {PAIRS};
  enum { count = 3 };
  pph_payload_tensor tensors[3];
  pph_payload_per_tensor whole[3];
  pph_payload_quantized quantized[3];
  pph_payload_value values[3];
  pph_id arguments[3];
  pph_graph *graph = &model->graph;
  pph_payload_binary binary = {.input1_id = 0, .input2_id = 1, .output_id = 2};
  pph_payload_node node = {.xnode_union = {&binary, (uint8_t)c->kind}};
  for (uint32_t i = 0; i < count; i++) {
    tensors[i] = (pph_payload_tensor){
        .datatype = PPH_PAYLOAD_Q8,
        .num_dims = 1, .dims = {dims, 1}, .external_id = i,
        .id_out = i, .flags = i + 1 == count ? 2 : 1};
    whole[i] = (pph_payload_per_tensor){c->scales[i], c->zeros[i]};
    quantized[i] = (pph_payload_quantized){
        .tensor_value = &tensors[i],
        .quant_params = {&whole[i], PPH_PAYLOAD_PER_TENSOR}};
    values[i].xvalue_union = (pph_flat_choice){&quantized[i], 2};
    if (i + 1 == count)
      break;
    PPH_TRY(pph_graph_add_value(graph, NULL, &arguments[i], error));
    pph_value *value = pph_graph_value(graph, arguments[i]);
    value->type = PPH_I8;
    value->has_rank = true;
    value->shape = (pph_shape){1, {PAIRS}};
  }
  pph_payload_graph tables = {.version = {"0", 1}, .xnodes = {&node, 1},
                              .xvalues = {values, count},
                              .num_externs = count};
  pph_payload payload = {.graph = &tables, .identifier = {'X', 'N', '0', '1'}};
  pph_payload_index index;
  PPH_TRY(pph_graph_set_inputs(graph, arguments, count - 1, error));
  PPH_TRY(pph_payload_check(&payload, &graph->arena, &index, error));
  PPH_TRY(pph_payload_import(&index, NULL, graph, arguments, count, error));
  PPH_TRY(pph_graph_set_outputs(graph, &arguments[count - 1], 1, error));
  return pph_graph_verify(graph, error);
}

/* All engines give c->data[2]. */
static void check_import(const payload_case *c) {
  pph_model model = {.bytes = NULL};
  pph_error error = {0};
  pph_limits_init(&model.limits);
  pph_heap_init(&model.heap, NULL, (uint64_t)1 << 28);
  pph_graph_init(&model.graph, &model.heap, NULL);
  test_assert_ok(import(c, &model, &error), &error);
  pph_dtype type = PPH_I8;
  model_case both = {.path = pph_payload_kind_name(c->kind),
                     .inputs = {{type, {1, {PAIRS}}, c->data[0]},
                                {type, {1, {PAIRS}}, c->data[1]}},
                     .outputs = {{type, {1, {PAIRS}}, c->data[2]}},
                     .input_count = 2,
                     .output_count = 1};
  model_case_check_model(&both, &model);
  pph_graph_clear(&model.graph);
}

/* Every pair of bytes. */
static void open_case(payload_case *c, pph_payload_kind kind) {
  *c = (payload_case){.kind = kind};
  for (int i = 0; i < 3; i++) {
    c->data[i] = malloc(PAIRS + 64); /* XNNPACK may read behind the end */
    assert_non_null(c->data[i]);
    memset(c->data[i], 0, PAIRS + 64);
  }
  for (int i = 0; i < PAIRS; i++) {
    c->data[0][i] = (uint8_t)i;
    c->data[1][i] = (uint8_t)(i >> 8);
  }
  assert_int_equal(xnn_initialize(NULL), xnn_status_success);
}

static void close_case(payload_case *c) {
  for (int i = 0; i < 3; i++)
    free(c->data[i]);
}

/* Scales of 2^-6 to 2^2 and any zero points. */
static void draw(payload_case *c, test_random *random, int32_t least) {
  for (int i = 0; i < 3; i++) {
    c->scales[i] =
        ldexpf(1 + (float)test_random_range(random, 0, 1 << 20) / (1 << 20),
               (int)test_random_range(random, -6, 2));
    c->zeros[i] = least + (int32_t)test_random_range(random, 0, 255);
  }
}

typedef enum xnn_status binary_create(int8_t, float, int8_t, float, int8_t,
                                      float, int8_t, int8_t, uint32_t,
                                      xnn_operator_t *);
typedef enum xnn_status binary_setup(xnn_operator_t, size_t, const size_t *,
                                     size_t, const size_t *, const int8_t *,
                                     const int8_t *, int8_t *, pthreadpool_t);

static void check_binary(pph_payload_kind kind, binary_create *create,
                         binary_setup *setup) {
  static const size_t shape[] = {PAIRS};
  payload_case c;
  test_random random = {test_seed("integer pairs")};
  open_case(&c, kind);
  for (int i = 0; i < ROUNDS; i++) {
    xnn_operator_t op = NULL;
    draw(&c, &random, -128);
    assert_int_equal(create((int8_t)c.zeros[0], c.scales[0],
                            (int8_t)c.zeros[1], c.scales[1],
                            (int8_t)c.zeros[2], c.scales[2], -128, 127, 0,
                            &op),
                     xnn_status_success);
    assert_int_equal(setup(op, 1, shape, 1, shape, (int8_t *)c.data[0],
                           (int8_t *)c.data[1], (int8_t *)c.data[2], NULL),
                     xnn_status_success);
    assert_int_equal(xnn_run_operator(op, NULL), xnn_status_success);
    xnn_delete_operator(op);
    check_import(&c);
  }
  close_case(&c);
}

static void test_add(void **state) {
  check_binary(PPH_PAYLOAD_ADD, xnn_create_add_nd_qs8, xnn_setup_add_nd_qs8);
}

static void test_subtract(void **state) {
  check_binary(PPH_PAYLOAD_SUBTRACT, xnn_create_subtract_nd_qs8,
               xnn_setup_subtract_nd_qs8);
}

static void test_multiply(void **state) {
  check_binary(PPH_PAYLOAD_MULTIPLY, xnn_create_multiply_nd_qs8,
               xnn_setup_multiply_nd_qs8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_add), cmocka_unit_test(test_subtract),
      cmocka_unit_test(test_multiply)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* That XNNPACK has other functions. */
int main(void) { return 0; }

#endif
