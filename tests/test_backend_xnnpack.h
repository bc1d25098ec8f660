/* One-node graphs for the tests of a backend: build one, run it through the
   backend on several thread counts, compare with the reference evaluator. */
#ifndef TEST_BACKEND_XNNPACK_H
#define TEST_BACKEND_XNNPACK_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval.h"
#include "graph/shape.h"

enum { MAX_INPUTS = 4, SLACK = 16, CANARY = 0x5a };

typedef enum fill { INTEGER, POSITIVE, REAL } fill;

/* A graph of one node. */
typedef struct trial {
  pph_heap heap;
  pph_graph graph;
  pph_node *node;
  test_random *random;
  pph_id ids[MAX_INPUTS];
  uint32_t count;
  pph_layout output_layout;
  fill fill;
  bool exact;
} trial;

static pthreadpool_t pools[2];

static int64_t pick(trial *t, int64_t low, int64_t high) {
  return test_random_range(t->random, low, high);
}

static void begin(trial *t, test_random *random) {
  *t = (trial){.random = random, .output_layout = PPH_LAYOUT_CHANNELS_LAST};
  t->fill = pick(t, 0, 1) ? INTEGER : REAL;
  t->exact = t->fill == INTEGER;
  pph_heap_init(&t->heap, NULL, 0);
  pph_graph_init(&t->graph, &t->heap, NULL);
}

static void end(trial *t) {
  pph_graph_clear(&t->graph);
  assert_int_equal(atomic_load(&t->heap.used), 0);
}

static void fill_floats(trial *t, float *data, size_t count, fill kind) {
  for (size_t i = 0; i < count; i++)
    data[i] = kind == INTEGER    ? (float)pick(t, -4, 4)
              : kind == POSITIVE ? (float)pick(t, 1, 4)
                                 : (float)pick(t, -1000000, 1000000) * 1e-6f;
}

static pph_shape shape_of(int32_t rank, const int64_t *dims) {
  pph_shape shape = {.rank = rank};
  memcpy(shape.dims, dims, (size_t)rank * sizeof *dims);
  return shape;
}
#define SCALAR ((pph_shape){0})
#define DIMS(...)                                                              \
  shape_of((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),      \
           (int64_t[]){__VA_ARGS__})

static void add_input(trial *t, pph_shape shape, pph_layout layout) {
  pph_error error = {0};
  pph_id id;
  test_assert_ok(pph_graph_add_value(&t->graph, NULL, &id, &error), &error);
  pph_value *value = pph_graph_value(&t->graph, id);
  value->type = PPH_F32;
  value->has_rank = true;
  value->shape = shape;
  value->layout = layout;
  t->ids[t->count++] = id;
}

static void add_floats(trial *t, pph_shape shape, const float *data) {
  pph_error error = {0};
  size_t count;
  assert_true(pph_shape_count(&shape, &count));
  float *block = malloc((count + 1) * sizeof *block);
  pph_tensor tensor = {PPH_F32, shape, block};
  if (data)
    memcpy(block, data, count * sizeof *data);
  else
    fill_floats(t, block, count, t->fill);
  test_assert_ok(pph_graph_add_constant(&t->graph, NULL, &tensor,
                                        &t->ids[t->count++], &error),
                 &error);
  free(block);
}

static void add_ints(trial *t, const int64_t *ints, size_t count) {
  pph_error error = {0};
  test_assert_ok(pph_graph_add_ints(&t->graph, NULL, ints, count,
                                    &t->ids[t->count++], &error),
                 &error);
}

static void skip_input(trial *t) { t->ids[t->count++] = PPH_NO_VALUE; }

static void add_node(trial *t, pph_node_kind kind) {
  pph_error error = {0};
  test_assert_ok(pph_graph_insert(&t->graph, kind, NULL, t->ids, t->count,
                                  &t->node, &error),
                 &error);
}

static void set_ints(trial *t, pph_attribute_key key, const int64_t *ints,
                     uint32_t count) {
  test_assert_ok(pph_node_set_ints(&t->graph, t->node, key, ints, count, NULL),
                 &(pph_error){0});
}
static void set_int(trial *t, pph_attribute_key key, int64_t value) {
  test_assert_ok(pph_node_set_int(&t->graph, t->node, key, value, NULL),
                 &(pph_error){0});
}
static void set_float(trial *t, pph_attribute_key key, float value) {
  test_assert_ok(pph_node_set_float(&t->graph, t->node, key, value, NULL),
                 &(pph_error){0});
}
static void set_text(trial *t, pph_attribute_key key, const char *text) {
  test_assert_ok(pph_node_set_text(&t->graph, t->node, key, text, NULL),
                 &(pph_error){0});
}

static void set_activation(trial *t) {
  int64_t which = pick(t, 0, 3);
  if (which == 1) {
    t->node->activation = PPH_ACTIVATION_CLAMP;
    set_float(t, PPH_ATTR_ACTIVATION_MIN, -1);
    if (pick(t, 0, 1))
      set_float(t, PPH_ATTR_ACTIVATION_MAX, 2);
    else
      set_float(t, PPH_ATTR_ACTIVATION_MAX, INFINITY);
  } else if (which == 2) {
    t->node->activation = PPH_ACTIVATION_LEAKY_RELU;
    set_float(t, PPH_ATTR_ACTIVATION_ALPHA, 0.25f);
  }
}

/* Moves between row-major order and the value's memory. */
static void relayout(const pph_value *value, const float *from, float *to,
                     bool to_memory) {
  int32_t order[PPH_MAX_RANK], rank = value->shape.rank;
  int64_t strides[PPH_MAX_RANK], index[PPH_MAX_RANK] = {0}, step = 1;
  pph_shape physical;
  size_t count;
  pph_layout_order(value, order);
  pph_layout_physical(value, &physical);
  assert_true(pph_shape_count(&physical, &count));
  for (int32_t i = rank - 1; i >= 0; i--) {
    strides[i] = step;
    step *= value->shape.dims[i];
  }
  for (size_t memory = 0; memory < count; memory++) {
    int64_t logical = 0;
    for (int32_t i = 0; i < rank; i++)
      logical += index[i] * strides[order[i]];
    if (to_memory)
      to[memory] = from[logical];
    else
      to[logical] = from[memory];
    for (int32_t i = rank - 1; i >= 0; i--) {
      if (++index[i] < physical.dims[i])
        break;
      index[i] = 0;
    }
  }
}

static size_t count_of(const pph_value *value) {
  size_t count;
  assert_true(pph_shape_count(&value->shape, &count));
  return count;
}

/* Inputs and outputs of a run, in both orders. */
typedef struct operands {
  pph_tensor tensors[MAX_INPUTS], expected;
  void *memory[MAX_INPUTS]; /* what the backend sees; freed unless constant */
} operands;

static void make_operands(trial *t, operands *o) {
  *o = (operands){0};
  for (uint32_t i = 0; i < t->node->input_count; i++) {
    pph_value *value = pph_node_find_input(&t->graph, t->node, i);
    if (!value)
      continue;
    o->tensors[i] = (pph_tensor){value->type, value->shape, NULL};
    if (value->data) {
      memcpy(&o->tensors[i].data, &value->data, sizeof(void *));
      o->memory[i] = o->tensors[i].data;
      continue;
    }
    size_t count = count_of(value);
    o->tensors[i].data = malloc(count * sizeof(float));
    o->memory[i] = malloc(count * sizeof(float) + SLACK);
    fill_floats(t, o->tensors[i].data, count, t->fill);
    relayout(value, o->tensors[i].data, o->memory[i], true);
  }
  pph_error error = {0};
  pph_value *output = pph_graph_value(&t->graph, t->node->outputs[0]);
  o->expected = (pph_tensor){PPH_F32, output->shape,
                             malloc(count_of(output) * sizeof(float))};
  test_assert_ok(
      pph_eval_node(&t->graph, t->node, o->tensors, &o->expected, &error),
      &error);
}

static void free_operands(trial *t, operands *o) {
  for (uint32_t i = 0; i < t->node->input_count; i++) {
    pph_value *value = pph_node_find_input(&t->graph, t->node, i);
    if (!value || value->data)
      continue;
    free(o->tensors[i].data);
    free(o->memory[i]);
  }
  free(o->expected.data);
}

static void compare(trial *t, const pph_value *output, const float *memory,
                    const float *expected) {
  size_t count = count_of(output);
  float *got = malloc(count * sizeof *got);
  relayout(output, memory, got, false);
  for (size_t i = 0; i < count; i++) {
    double bound = t->exact ? 0 : 1e-5 * fmax(1, fabs((double)expected[i]));
    bool same = got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]));
    if (!same && !(fabs((double)got[i] - (double)expected[i]) <= bound)) {
      char place[192];
      fail_msg("%s: element %zu is %.9g, expected %.9g",
               pph_node_place(t->node, place, sizeof place), i, (double)got[i],
               (double)expected[i]);
    }
  }
  free(got);
}

/* Runs on fresh operands; the step must not write past its output. */
static void run_once(trial *t, pph_backend_context *context,
                     const pph_step *step) {
  pph_error error = {0};
  operands o;
  make_operands(t, &o);
  pph_value *output = pph_graph_value(&t->graph, t->node->outputs[0]);
  size_t bytes = count_of(output) * sizeof(float);
  unsigned char *memory = malloc(bytes + SLACK);
  memset(memory, CANARY, bytes + SLACK);
  void *workspace = malloc(step->workspace + 64);
  void *outputs[] = {memory};
  pph_run_pointers pointers = {(const void *const *)o.memory, outputs,
                               workspace};
  size_t used = atomic_load(&t->heap.used);
  test_assert_ok(step->backend->run(context, step, &pointers, &error), &error);
  assert_int_equal(atomic_load(&t->heap.used), used);
  compare(t, output, (const float *)(void *)memory, o.expected.data);
  for (size_t i = 0; i < SLACK; i++)
    assert_int_equal(memory[bytes + i], CANARY);
  free(workspace);
  free(memory);
  free_operands(t, &o);
}

static pph_step step_of(trial *t) {
  return (pph_step){.backend = &pph_backend_xnnpack,
                    .graph = &t->graph,
                    .node = t->node,
                    .alias_input = UINT32_MAX};
}

static void run_node(trial *t, const char *algorithm) {
  pph_error error = {0};
  for (int i = -1; i < 2; i++) {
    pph_backend_context context = {.heap = &t->heap,
                                   .pool = i < 0 ? NULL : pools[i]};
    pph_step step = step_of(t);
    test_assert_ok(pph_backend_xnnpack.prepare(&context, &step, &error),
                   &error);
    assert_string_equal(step.algorithm, algorithm);
    assert_int_equal(step.alias_input, UINT32_MAX);
    run_once(t, &context, &step);
    run_once(t, &context, &step); /* other pointers */
    pph_backend_xnnpack.release(&context, &step);
    assert_null(step.state);
  }
}

/* False when the random node is no legal one. */
static bool infer(trial *t) {
  pph_error error = {0};
  if (pph_shape_infer_node(&t->graph, t->node, &error) != PPH_OK)
    return false;
  pph_graph_value(&t->graph, t->node->outputs[0])->layout = t->output_layout;
  return true;
}

static bool supported(trial *t) {
  return pph_backend_xnnpack.supports(&t->graph, t->node);
}

/* Infers, runs and ends. Counts what was legal and what ran. */
typedef struct tally {
  int legal, ran;
} tally;

static void judge(trial *t, const char *algorithm, tally *count) {
  if (infer(t)) {
    count->legal++;
    if (supported(t)) {
      count->ran++;
      run_node(t, algorithm);
    }
  }
  end(t);
}

static void expect_all(tally count, int least) {
  assert_true(count.legal >= least);
  assert_int_equal(count.ran, count.legal);
}

static void expect_most(tally count, int least) {
  assert_true(count.legal >= least);
  assert_true(count.ran * 2 > count.legal);
}

#endif
