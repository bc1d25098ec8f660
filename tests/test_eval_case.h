/* One node of constant inputs, inferred and evaluated. */
#ifndef TEST_EVAL_CASE_H
#define TEST_EVAL_CASE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/eval.h"
#include "graph/shape.h"
#include "test_support.h"

enum { EVAL_INPUTS = 8, EVAL_OUTPUTS = 4 };

typedef struct eval_case {
  pph_heap heap;
  pph_graph graph;
  pph_node *node;
  pph_tensor inputs[EVAL_INPUTS], outputs[EVAL_OUTPUTS];
  pph_id input_ids[EVAL_INPUTS];
  uint32_t input_count;
  pph_error error;
} eval_case;

#define SHAPE(...)                                                             \
  ((pph_shape){(int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), {__VA_ARGS__}})
#define SCALAR ((pph_shape){0})
#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))
#define F32(shape, ...) eval_add(&c, PPH_F32, shape, (float[]){__VA_ARGS__})
#define I64(shape, ...) eval_add(&c, PPH_I64, shape, (int64_t[]){__VA_ARGS__})
#define INTS(key, ...)                                                         \
  eval_set_ints(&c, PPH_ATTR_##key, (int64_t[]){__VA_ARGS__},                  \
                COUNT(((int64_t[]){__VA_ARGS__})))
#define INT(key, value) eval_set_int(&c, PPH_ATTR_##key, value)
#define FLOAT(key, value)                                                      \
  test_assert_ok(                                                              \
      pph_node_set_float(&c.graph, c.node, PPH_ATTR_##key, value, &c.error),   \
      &c.error)
#define TEXT(key, value)                                                       \
  test_assert_ok(                                                              \
      pph_node_set_text(&c.graph, c.node, PPH_ATTR_##key, value, &c.error),    \
      &c.error)
#define EXPECT_F32(...)                                                        \
  eval_expect_f32(&c, 0, (float[]){__VA_ARGS__},                               \
                  COUNT(((float[]){__VA_ARGS__})))
#define EXPECT_I64(...)                                                        \
  eval_expect_i64(&c, (int64_t[]){__VA_ARGS__},                                \
                  COUNT(((int64_t[]){__VA_ARGS__})))

static inline void eval_begin(eval_case *c, pph_node_kind kind) {
  memset(c, 0, sizeof *c);
  pph_heap_init(&c->heap, NULL, 0);
  pph_graph_init(&c->graph, &c->heap, NULL);
  test_assert_ok(
      pph_graph_add_node(&c->graph, kind, "n", NULL, &c->node, &c->error),
      &c->error);
}

static inline void eval_add(eval_case *c, pph_dtype type, pph_shape shape,
                            const void *data) {
  uint32_t i = c->input_count++;
  pph_tensor tensor = {type, shape, (void *)(uintptr_t)data};
  test_assert_ok(pph_graph_add_constant(&c->graph, NULL, &tensor,
                                        &c->input_ids[i], &c->error),
                 &c->error);
  c->inputs[i] = tensor;
  const void *copy = pph_graph_value(&c->graph, c->input_ids[i])->data;
  c->inputs[i].data = (void *)(uintptr_t)copy;
}

static inline void eval_omit(eval_case *c) {
  c->input_ids[c->input_count++] = PPH_NO_VALUE;
}

typedef void eval_fill(float *data, size_t count);

static inline void eval_add_filled(eval_case *c, pph_shape shape,
                                   eval_fill *fill) {
  size_t count = 1;
  assert_true(pph_shape_count(&shape, &count));
  float *data = pph_heap_allocate(&c->heap, count, sizeof *data);
  assert_non_null(data);
  fill(data, count);
  eval_add(c, PPH_F32, shape, data);
  pph_heap_release(&c->heap, data);
}

static inline void eval_set_int(eval_case *c, pph_attribute_key key,
                                int64_t value) {
  test_assert_ok(pph_node_set_int(&c->graph, c->node, key, value, &c->error),
                 &c->error);
}

static inline void eval_set_ints(eval_case *c, pph_attribute_key key,
                                 const int64_t *ints, uint32_t count) {
  test_assert_ok(
      pph_node_set_ints(&c->graph, c->node, key, ints, count, &c->error),
      &c->error);
}

/* Infers and evaluates; the caller judges the status. */
static inline pph_status eval_try(eval_case *c, uint32_t outputs) {
  pph_id ids[EVAL_OUTPUTS];
  test_assert_ok(pph_node_set_inputs(&c->graph, c->node, c->input_ids,
                                     c->input_count, &c->error),
                 &c->error);
  for (uint32_t i = 0; i < outputs; i++)
    test_assert_ok(pph_graph_add_value(&c->graph, NULL, &ids[i], &c->error),
                   &c->error);
  test_assert_ok(
      pph_node_set_outputs(&c->graph, c->node, ids, outputs, &c->error),
      &c->error);
  test_assert_ok(pph_shape_infer_node(&c->graph, c->node, &c->error),
                 &c->error);
  for (uint32_t i = 0; i < outputs; i++) {
    const pph_value *value = pph_graph_value(&c->graph, ids[i]);
    size_t bytes = 0;
    assert_true(pph_shape_bytes(&value->shape, value->type, &bytes));
    c->outputs[i] = (pph_tensor){value->type, value->shape,
                                 pph_heap_allocate(&c->heap, bytes, 1)};
    assert_non_null(c->outputs[i].data);
    memset(c->outputs[i].data, 0xee, bytes);
  }
  return pph_eval_node(&c->graph, c->node, c->inputs, c->outputs, &c->error);
}

static inline void eval_run(eval_case *c, uint32_t outputs) {
  test_assert_ok(eval_try(c, outputs), &c->error);
}

static inline void eval_end(eval_case *c) {
  for (int i = 0; i < EVAL_OUTPUTS; i++)
    pph_heap_release(&c->heap, c->outputs[i].data);
  pph_graph_clear(&c->graph);
  assert_int_equal(c->heap.used, 0);
}

static inline void eval_expect_shape(const eval_case *c, pph_shape shape) {
  char found[96], wanted[96];
  assert_string_equal(pph_shape_text(&c->outputs[0].shape, found, sizeof found),
                      pph_shape_text(&shape, wanted, sizeof wanted));
}

static inline void eval_expect_f32(const eval_case *c, uint32_t output,
                                   const float *wanted, size_t count) {
  size_t found_count = 0;
  const float *found = c->outputs[output].data;
  assert_int_equal(c->outputs[output].type, PPH_F32);
  assert_true(pph_shape_count(&c->outputs[output].shape, &found_count));
  assert_int_equal(found_count, count);
  for (size_t i = 0; i < count; i++) {
    double error = fabs((double)found[i] - (double)wanted[i]);
    bool same = found[i] == wanted[i] || (isnan(found[i]) && isnan(wanted[i]));
    if (!same && !(error <= 1e-6 * (1 + fabs((double)wanted[i]))))
      fail_msg("element %zu is %.9g, must be %.9g", i, (double)found[i],
               (double)wanted[i]);
  }
}

static inline void eval_expect_i64(const eval_case *c, const int64_t *wanted,
                                   size_t count) {
  size_t found_count = 0;
  const int64_t *found = c->outputs[0].data;
  assert_int_equal(c->outputs[0].type, PPH_I64);
  assert_true(pph_shape_count(&c->outputs[0].shape, &found_count));
  assert_int_equal(found_count, count);
  for (size_t i = 0; i < count; i++)
    assert_int_equal(found[i], wanted[i]);
}

/* Sum and checksum as public-bugs.md defines them. */
static inline void eval_expect_sums(const eval_case *c, double sum,
                                    double check) {
  size_t count = 0;
  double found_sum = 0, found_check = 0;
  const float *y = c->outputs[0].data;
  assert_true(pph_shape_count(&c->outputs[0].shape, &count));
  for (size_t i = 0; i < count; i++) {
    found_sum += (double)y[i];
    found_check += (double)y[i] * (double)(i % 13 + 1);
  }
  if (fabs(found_sum - sum) > 1e-4 * (1 + fabs(sum)) ||
      fabs(found_check - check) > 1e-4 * (1 + fabs(check)))
    fail_msg("sum %g, chk %g; must be %g, %g", found_sum, found_check, sum,
             check);
}

#endif
