/* The whole pipeline on random small graphs: results before and after agree.
   Integers throughout, but passes that scale weights round, so the bound is
   relative. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/shape.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "graph_runner.h"

/* A graph being grown: every step reads values that are there. */
typedef struct maker {
  pph_graph graph;
  test_random *random;
  pph_id pool[64];
  uint32_t count;
  int32_t axes; /* spatial */
} maker;

static pph_id pick_value(const maker *m) {
  return m->pool[test_random_range(m->random, 0, (int64_t)m->count - 1)];
}

static pph_shape shape_of(const maker *m, pph_id id) {
  return pph_graph_value(&m->graph, id)->shape;
}

static pph_id add_floats(maker *m, pph_shape shape) {
  float data[4096];
  size_t count = 1;
  for (int32_t i = 0; i < shape.rank; i++)
    count *= (size_t)shape.dims[i];
  assert_true(count <= 4096);
  for (size_t i = 0; i < count; i++)
    data[i] = (float)test_random_range(m->random, -3, 3);
  pph_tensor tensor = {PPH_F32, shape, data};
  pph_error error = {0};
  pph_id id;
  test_assert_ok(
      pph_graph_add_constant(&m->graph, NULL, &tensor, &id, &error), &error);
  return id;
}

static pph_id add_ints(maker *m, const int64_t *ints, size_t count) {
  pph_error error = {0};
  pph_id id;
  test_assert_ok(
      pph_graph_add_ints(&m->graph, NULL, ints, count, &id, &error), &error);
  return id;
}

static pph_node *add(maker *m, pph_node_kind kind, const pph_id *ids,
                     uint32_t count) {
  pph_error error = {0};
  pph_node *node;
  test_assert_ok(
      pph_graph_insert(&m->graph, kind, NULL, ids, count, &node, &error),
      &error);
  return node;
}

static void set_ints(maker *m, pph_node *node, pph_attribute_key key,
                     const int64_t *ints, uint32_t count) {
  pph_error error = {0};
  test_assert_ok(pph_node_set_ints(&m->graph, node, key, ints, count, &error),
                 &error);
}

/* Keeps the result if it is small and not empty. */
static void finish(maker *m, pph_node *node) {
  pph_error error = {0};
  test_assert_ok(pph_shape_infer_node(&m->graph, node, &error), &error);
  pph_shape shape = shape_of(m, node->outputs[0]);
  int64_t size = 1;
  for (int32_t i = 0; i < shape.rank; i++)
    size *= shape.dims[i];
  bool kept = size > 0 && size < 3000 && shape.rank == m->axes + 2 &&
              shape.dims[1] <= 8;
  if (kept && m->count < 64)
    m->pool[m->count++] = node->outputs[0];
}

static void make_conv(maker *m, bool transposed) {
  pph_id ids[3] = {pick_value(m)};
  pph_shape in = shape_of(m, ids[0]);
  int64_t channels = in.dims[1], out = test_random_range(m->random, 1, 4);
  int64_t group = test_random_range(m->random, 0, 1) ? channels : 1;
  pph_shape weight = {.rank = in.rank};
  int64_t ones[3] = {1, 1, 1}, pads[6] = {0};
  weight.dims[0] = transposed ? channels : out * (group > 1 ? group : 1);
  weight.dims[1] = transposed ? out : channels / group;
  if (group > 1 && weight.dims[0] > 8 && !transposed)
    weight.dims[0] = group;
  for (int32_t i = 2; i < in.rank; i++) {
    weight.dims[i] = test_random_range(m->random, 1, 3);
    ones[i - 2] = transposed ? test_random_range(m->random, 1, 3) : 1;
    if (!transposed) {
      pads[i - 2] = test_random_range(m->random, 0, 2);
      pads[i - 2 + m->axes] = test_random_range(m->random, 1, 2);
    }
  }
  ids[1] = add_floats(m, weight);
  ids[2] = add_floats(
      m, (pph_shape){1, {transposed ? out * group : weight.dims[0]}});
  pph_node *node = add(m, transposed ? PPH_NODE_CONV_TRANSPOSE : PPH_NODE_CONV,
                       ids, test_random_range(m->random, 0, 1) ? 3 : 2);
  pph_error error = {0};
  test_assert_ok(
      pph_node_set_int(&m->graph, node, PPH_ATTR_GROUP, group, &error),
      &error);
  set_ints(m, node, PPH_ATTR_STRIDES, ones, (uint32_t)m->axes);
  set_ints(m, node, PPH_ATTR_PADS, pads, 2 * (uint32_t)m->axes);
  finish(m, node);
}

static void make_plain_conv(maker *m) {
  pph_id saved[64];
  /* A window larger than its padded input is not legal. */
  pph_shape in = shape_of(m, m->pool[m->count - 1]);
  memcpy(saved, m->pool, sizeof saved);
  for (int32_t i = 2; i < in.rank; i++)
    if (in.dims[i] < 2)
      return;
  uint32_t count = m->count;
  m->pool[0] = m->pool[count - 1];
  m->count = 1;
  make_conv(m, false);
  pph_id made = m->count == 2 ? m->pool[1] : PPH_NO_VALUE;
  memcpy(m->pool, saved, sizeof saved);
  m->count = count;
  if (made != PPH_NO_VALUE && count < 64)
    m->pool[m->count++] = made;
}

static void make_transposed(maker *m) { make_conv(m, true); }

static void make_unary(maker *m) {
  static const pph_node_kind kinds[] = {
      PPH_NODE_RELU, PPH_NODE_NEG, PPH_NODE_IDENTITY, PPH_NODE_LEAKY_RELU,
      PPH_NODE_ABS};
  pph_id id = pick_value(m);
  finish(m, add(m, kinds[test_random_range(m->random, 0, 4)], &id, 1));
}

static void make_clip(maker *m) {
  float low = -2, high = 5;
  pph_error error = {0};
  pph_id ids[3] = {pick_value(m)};
  pph_tensor first = {PPH_F32, {0, {0}}, &low}, second = {PPH_F32, {0, {0}},
                                                          &high};
  test_assert_ok(
      pph_graph_add_constant(&m->graph, NULL, &first, &ids[1], &error),
      &error);
  test_assert_ok(
      pph_graph_add_constant(&m->graph, NULL, &second, &ids[2], &error),
      &error);
  finish(m, add(m, PPH_NODE_CLIP, ids, 3));
}

static void make_binary_constant(maker *m) {
  static const pph_node_kind kinds[] = {PPH_NODE_ADD, PPH_NODE_SUB,
                                        PPH_NODE_MUL, PPH_NODE_MAX};
  pph_id ids[2] = {pick_value(m)};
  pph_shape in = shape_of(m, ids[0]), shape = {.rank = m->axes + 1};
  shape.dims[0] = test_random_range(m->random, 0, 2) ? in.dims[1] : 1;
  for (int32_t i = 1; i < shape.rank; i++)
    shape.dims[i] = test_random_range(m->random, 0, 4) ? 1 : in.dims[i + 1];
  ids[1] = add_floats(m, shape);
  if (test_random_range(m->random, 0, 2) == 0) {
    pph_id swap = ids[0];
    ids[0] = ids[1];
    ids[1] = swap;
  }
  finish(m, add(m, kinds[test_random_range(m->random, 0, 3)], ids, 2));
}

static void make_sum(maker *m) {
  pph_id ids[2] = {pick_value(m), pick_value(m)};
  pph_shape result;
  pph_shape a = shape_of(m, ids[0]), b = shape_of(m, ids[1]);
  if (pph_shape_broadcast(&a, &b, &result))
    finish(m, add(m, PPH_NODE_ADD, ids, 2));
}

static void make_there_and_back(maker *m) {
  static const int64_t to[2][4] = {{0, 2, 1}, {0, 2, 3, 1}};
  static const int64_t back[2][4] = {{0, 2, 1}, {0, 3, 1, 2}};
  pph_id id = pick_value(m);
  pph_error error = {0};
  uint32_t rank = (uint32_t)m->axes + 2;
  pph_node *first = add(m, PPH_NODE_TRANSPOSE, &id, 1);
  set_ints(m, first, PPH_ATTR_PERM, to[m->axes - 1], rank);
  test_assert_ok(pph_shape_infer_node(&m->graph, first, &error), &error);
  id = first->outputs[0];
  pph_shape in = shape_of(m, id);
  pph_id ids[2] = {id, add_floats(m, (pph_shape){1, {in.dims[in.rank - 1]}})};
  pph_node *middle = add(m, PPH_NODE_ADD, ids, 2);
  test_assert_ok(pph_shape_infer_node(&m->graph, middle, &error), &error);
  if (test_random_range(m->random, 0, 1)) {
    int64_t pads[8] = {0};
    pads[1] = 1;
    pads[rank + 1] = 2;
    pph_id more[2] = {middle->outputs[0], add_ints(m, pads, 2 * rank)};
    middle = add(m, PPH_NODE_PAD, more, 2);
    test_assert_ok(pph_shape_infer_node(&m->graph, middle, &error), &error);
  }
  id = middle->outputs[0];
  pph_node *last = add(m, PPH_NODE_TRANSPOSE, &id, 1);
  set_ints(m, last, PPH_ATTR_PERM, back[m->axes - 1], rank);
  finish(m, last);
}

static void make_pad(maker *m) {
  int64_t pads[8] = {0};
  uint32_t rank = (uint32_t)m->axes + 2;
  for (uint32_t i = 2; i < rank; i++) {
    pads[i] = test_random_range(m->random, 0, 2);
    pads[rank + i] = test_random_range(m->random, 0, 2);
  }
  pph_id ids[2] = {pick_value(m), add_ints(m, pads, 2 * rank)};
  finish(m, add(m, PPH_NODE_PAD, ids, 2));
}

static void make_slice(maker *m) {
  int64_t start = test_random_range(m->random, 0, 1);
  int64_t end = test_random_range(m->random, 0, 1) ? INT64_MAX : -1;
  int64_t axis = test_random_range(m->random, 2, m->axes + 1);
  pph_id ids[4] = {pick_value(m), add_ints(m, &start, 1), add_ints(m, &end, 1),
                   add_ints(m, &axis, 1)};
  finish(m, add(m, PPH_NODE_SLICE, ids, 4));
}

static void make_concat(maker *m) {
  pph_id ids[2] = {pick_value(m)};
  ids[1] = ids[0];
  for (int i = 0; i < 4; i++) {
    pph_id other = pick_value(m);
    pph_shape a = shape_of(m, ids[0]), b = shape_of(m, other);
    a.dims[1] = b.dims[1];
    if (memcmp(a.dims, b.dims, (size_t)a.rank * sizeof *a.dims) == 0)
      ids[1] = other;
  }
  pph_error error = {0};
  pph_node *node = add(m, PPH_NODE_CONCAT, ids, 2);
  test_assert_ok(
      pph_node_set_int(&m->graph, node, PPH_ATTR_AXIS, 1, &error), &error);
  finish(m, node);
}

static void make_normalization(maker *m) {
  float ones[8] = {1, 4, 1, 16, 1, 4, 1, 1};
  pph_error error = {0};
  pph_id ids[5] = {pick_value(m)};
  int64_t channels = shape_of(m, ids[0]).dims[1];
  for (int i = 1; i < 4; i++)
    ids[i] = add_floats(m, (pph_shape){1, {channels}});
  pph_tensor variance = {PPH_F32, {1, {channels}}, ones};
  test_assert_ok(
      pph_graph_add_constant(&m->graph, NULL, &variance, &ids[4], &error),
      &error);
  finish(m, add(m, PPH_NODE_BATCH_NORMALIZATION, ids, 5));
}

static void make_mean(maker *m) {
  int64_t axes[2] = {2, 3};
  pph_id ids[2] = {pick_value(m), add_ints(m, axes, (size_t)m->axes)};
  finish(m, add(m, PPH_NODE_REDUCE_MEAN, ids, 2));
}

static void (*const makers[])(maker *) = {
    make_plain_conv,     make_plain_conv,      make_transposed,
    make_transposed,     make_unary,           make_unary,
    make_clip,           make_binary_constant, make_binary_constant,
    make_sum,            make_there_and_back,  make_pad,
    make_slice,          make_concat,          make_normalization,
    make_mean};

static void grow(maker *m, pph_heap *heap, test_random *random) {
  pph_error error = {0};
  pph_graph_init(&m->graph, heap, NULL);
  m->random = random;
  m->axes = (int32_t)test_random_range(random, 1, 2);
  test_assert_ok(pph_graph_add_value(&m->graph, "x", &m->pool[0], &error),
                 &error);
  pph_value *x = pph_graph_value(&m->graph, m->pool[0]);
  x->type = PPH_F32;
  x->has_rank = true;
  x->shape = (pph_shape){m->axes + 2, {test_random_range(random, 1, 2),
                                       test_random_range(random, 1, 3),
                                       test_random_range(random, 2, 5),
                                       test_random_range(random, 2, 5)}};
  m->count = 1;
  test_assert_ok(pph_graph_set_inputs(&m->graph, m->pool, 1, &error), &error);
  int64_t steps = test_random_range(random, 1, 12);
  for (int64_t i = 0; i < steps; i++)
    makers[test_random_range(random, 0,
                             sizeof makers / sizeof *makers - 1)](m);
  pph_id outputs[2] = {m->pool[m->count - 1], pick_value(m)};
  uint32_t count = outputs[1] == outputs[0] || outputs[1] == m->pool[0] ? 1
                                                                        : 2;
  test_assert_ok(
      pph_graph_set_outputs(&m->graph, outputs, count, &error), &error);
}

static void fail_graph(const pph_graph *graph, const char *what,
                       const pph_error *error, int trial) {
  char *text;
  pph_error ignored;
  if (pph_text_print(graph, 600, &text, &ignored) == PPH_OK)
    printf("%s\n", text);
  fail_msg("trial %d: %s: %s %s", trial, what, error->where, error->message);
}

/* As if the native operator ran every other convolution. */
static bool runs_some(const pph_graph *graph, const pph_node *node) {
  (void)graph;
  return node->outputs[0] % 2 == 0;
}

static void check(const pph_graph *graph, const pph_pass_options *options,
                  int trial) {
  pph_error error = {0};
  pph_graph changed;
  test_random random = {(uint64_t)trial};
  graph_results expected, found;
  test_assert_ok(pph_graph_copy(&changed, graph, graph->heap, &error), &error);
  if (pph_pipeline_run(&changed, options, &error) != PPH_OK ||
      pph_graph_verify(&changed, &error) != PPH_OK)
    fail_graph(graph, "pipeline", &error, trial);
  pph_tensor *inputs = graph_inputs_make(graph, graph->heap, &random);
  test_assert_ok(graph_run(graph, inputs, &expected, &error), &error);
  if (graph_run(&changed, inputs, &found, &error) != PPH_OK)
    fail_graph(&changed, "run", &error, trial);
  double distance = graph_results_distance(&expected, &found);
  if (!(distance < 1e-3)) {
    snprintf(error.message, sizeof error.message, "distance %g", distance);
    fail_graph(graph, "values", &error, trial);
  }
  for (uint32_t i = 0; i < graph->output_count; i++)
    assert_string_equal(
        pph_graph_value(graph, graph->outputs[i])->name,
        pph_graph_value(&changed, changed.outputs[i])->name);
  graph_results_release(&expected);
  graph_results_release(&found);
  graph_inputs_release(graph, graph->heap, inputs);
  pph_graph_clear(&changed);
}

static void test_random_graphs(void **state) {
  (void)state;
  test_random random = {test_seed("random graphs")};
  for (int trial = 0; trial < 3000; trial++) {
    pph_heap heap;
    pph_heap_init(&heap, NULL, 0);
    static maker m;
    grow(&m, &heap, &random);
    pph_pass_options options;
    pph_pass_options_init(&options);
    options.polyphase =
        (pph_polyphase_mode)test_random_range(&random, 0, 2);
    options.optimize = trial % 16 != 0;
    options.choose_layout = trial % 3 != 0;
    options.fuses_natively = trial % 2 ? runs_some : NULL;
    check(&m.graph, &options, trial);
    pph_graph_clear(&m.graph);
    assert_int_equal(heap.used, 0);
  }
}

/* An allocator that fails from the n-th time on. */
typedef struct stingy {
  long left;
} stingy;

static void *allocate_stingily(void *context, size_t alignment, size_t size) {
  stingy *own = context;
  void *block = NULL;
  if (own->left-- <= 0 || posix_memalign(&block, alignment, size) != 0)
    return NULL;
  return block;
}

static void release_block(void *context, void *block) {
  (void)context;
  free(block);
}

/* Whatever allocation fails, the pipeline says so and nothing is lost. */
static void test_no_memory(void **state) {
  (void)state;
  test_random random = {test_seed("no memory")};
  for (int trial = 0; trial < 40; trial++) {
    stingy source = {LONG_MAX};
    pph_allocator allocator = {&source, allocate_stingily, release_block};
    pph_heap heap;
    pph_heap_init(&heap, &allocator, 0);
    static maker m;
    grow(&m, &heap, &random);
    pph_pass_options options;
    pph_pass_options_init(&options);
    options.polyphase = PPH_POLYPHASE_ALWAYS;
    options.fuses_natively = runs_some;
    pph_status status = PPH_OUT_OF_MEMORY;
    for (long n = 0; status != PPH_OK; n++) {
      pph_error error = {0};
      pph_graph graph;
      source.left = LONG_MAX;
      test_assert_ok(pph_graph_copy(&graph, &m.graph, &heap, &error), &error);
      source.left = n;
      status = pph_pipeline_run(&graph, &options, &error);
      if (status != PPH_OK && status != PPH_OUT_OF_MEMORY)
        fail_msg("allocation %ld: %s %s", n, error.where, error.message);
      pph_graph_clear(&graph);
    }
    pph_graph_clear(&m.graph);
    assert_int_equal(heap.used, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs),
                                     cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
