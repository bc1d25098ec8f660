/* Each invariant of a graph, broken once. */
#include "test_support.h"

#include <stdio.h>
#include <string.h>

#include "graph/text.h"
#include "graph/verify.h"

static pph_heap heap;

static const char good[] = "input %x f32 [1,3,8,8]\n"
                           "const %w f32 [3,2,2,2] = splat 1\n"
                           "const %p i64 [2] = {1, 2}\n"
                           "%y = ConvTranspose \"up\"(%x, %w, _) "
                           "{strides=[2,2], auto_pad=\"VALID\"}\n"
                           "%z = Relu(%y)\n"
                           "%a, %b = GRU(%x, %w, %w)\n"
                           "output %z\n";

/* Values in the order of the text. */
enum { X, W, P, Y, Z, A, B };

static void break_name_missing(pph_graph *g) { g->values[Y].name = NULL; }
static void break_name_empty(pph_graph *g) { g->values[Y].name = ""; }
static void break_name_twice(pph_graph *g) { g->values[Y].name = "w"; }
static void break_type(pph_graph *g) { g->values[Y].type = (pph_dtype)8; }
static void break_rank(pph_graph *g) {
  g->values[Y].has_rank = true;
  g->values[Y].shape.rank = 9;
}
static void break_dim(pph_graph *g) { g->values[X].shape.dims[2] = -2; }
static void break_layout(pph_graph *g) {
  g->values[Y].layout = PPH_LAYOUT_CHANNELS_LAST;
}
static void break_layout_unknown(pph_graph *g) {
  g->values[X].layout = (pph_layout)7;
}
static void break_constant_type(pph_graph *g) {
  g->values[W].type = PPH_DTYPE_NONE;
}
static void break_constant_rank(pph_graph *g) {
  g->values[W].has_rank = false;
}
static void break_constant_shape(pph_graph *g) {
  g->values[W].shape.dims[0] = -1;
}
static void break_constant_size(pph_graph *g) {
  g->values[W].shape.dims[0] = INT64_MAX;
  g->values[W].shape.dims[1] = INT64_MAX;
}
static void break_constant_layout(pph_graph *g) {
  g->values[W].layout = PPH_LAYOUT_CHANNELS_LAST;
}
static void break_constant_lost(pph_graph *g) { g->values[W].data = NULL; }
static void break_input_range(pph_graph *g) { g->inputs[0] = 100; }
static void break_input_omitted(pph_graph *g) { g->inputs[0] = PPH_NO_VALUE; }
static void break_input_twice(pph_graph *g) {
  static pph_id twice[] = {X, X};
  g->inputs = twice;
  g->input_count = 2;
}
static void break_input_constant(pph_graph *g) { g->inputs[0] = P; }
static void break_input_produced(pph_graph *g) { g->inputs[0] = Y; }
static void break_output_range(pph_graph *g) { g->outputs[0] = 100; }
static void break_output_lost(pph_graph *g) {
  pph_graph_remove_node(g, g->first->next);
}
static void break_too_few(pph_graph *g) { g->first->input_count = 1; }
static void break_too_many(pph_graph *g) { g->first->next->input_count = 2; }
static void break_outputs_few(pph_graph *g) { g->first->output_count = 0; }
static void break_outputs_many(pph_graph *g) { g->first->output_count = 2; }
static void break_ids_lost(pph_graph *g) { g->first->inputs = NULL; }
static void break_read_range(pph_graph *g) { g->first->inputs[1] = 100; }
static void break_read_missing(pph_graph *g) {
  g->first->inputs[1] = PPH_NO_VALUE;
}
static void break_read_early(pph_graph *g) { g->first->inputs[0] = Z; }
static void break_read_own(pph_graph *g) { g->first->inputs[0] = Y; }
static void break_write_range(pph_graph *g) { g->first->outputs[0] = 100; }
static void break_write_none(pph_graph *g) {
  g->first->outputs[0] = PPH_NO_VALUE;
}
static void break_write_input(pph_graph *g) { g->first->outputs[0] = X; }
static void break_write_constant(pph_graph *g) { g->first->outputs[0] = P; }
static void break_write_twice(pph_graph *g) {
  g->first->next->outputs[0] = Y;
  g->outputs[0] = Y;
}
static void break_producer_other(pph_graph *g) {
  g->values[Y].producer = g->last;
}
static void break_producer_lost(pph_graph *g) {
  g->values[P].producer = g->last;
}
static void break_key(pph_graph *g) {
  g->first->attributes[0].key = PPH_ATTRIBUTE_KEY_COUNT;
}
static void break_key_twice(pph_graph *g) {
  g->first->attributes[1] = g->first->attributes[0];
}
static void break_ints(pph_graph *g) { g->first->attributes[0].ints = NULL; }
static void break_text(pph_graph *g) { g->first->attributes[1].text = NULL; }
static void break_slopes(pph_graph *g) {
  g->first->activation = PPH_ACTIVATION_PRELU;
}
static void break_activation(pph_graph *g) {
  g->first->activation = (pph_activation)9;
}
static void break_kind(pph_graph *g) {
  g->first->kind = PPH_NODE_KIND_COUNT;
}
static void break_ring(pph_graph *g) { g->last->next = g->first; }
static void break_back_link(pph_graph *g) { g->first->next->previous = NULL; }
static void break_count(pph_graph *g) { g->node_count++; }
static void break_last(pph_graph *g) { g->last = g->first; }

static const struct {
  const char *name;
  void (*damage)(pph_graph *graph);
  const char *where, *message;
} cases[] = {
    {"name missing", break_name_missing, "value 3 \"\"", "without a name"},
    {"name empty", break_name_empty, "value 3 \"\"", "without a name"},
    {"name twice", break_name_twice, "value 3 \"w\"", "the same name"},
    {"type", break_type, "value 3 \"y\"", "unknown element type"},
    {"rank", break_rank, "value 3 \"y\"", "rank is not in 0..8"},
    {"dim", break_dim, "value 0 \"x\"", "dimension is below 0"},
    {"layout", break_layout, "value 3 \"y\"", "rank 3 or more"},
    {"layout unknown", break_layout_unknown, "value 0 \"x\"", "layout"},
    {"constant type", break_constant_type, "value 1 \"w\"", "element type"},
    {"constant rank", break_constant_rank, "value 1 \"w\"", "not known"},
    {"constant shape", break_constant_shape, "value 1 \"w\"", "not known"},
    {"constant size", break_constant_size, "value 1 \"w\"", "overflows"},
    {"constant layout", break_constant_layout, "value 1 \"w\"", "not plain"},
    {"constant lost", break_constant_lost, "node 0", "input 1 \"w\" is read"},
    {"input range", break_input_range, "the graph", "input 0 is value 100"},
    {"input omitted", break_input_omitted, "the graph", "input 0 is value"},
    {"input twice", break_input_twice, "value 0 \"x\"", "input twice"},
    {"input constant", break_input_constant, "value 2 \"p\"", "a constant"},
    {"input produced", break_input_produced, "node 0", "input 0 \"x\""},
    {"output range", break_output_range, "the graph", "output 0 is value 100"},
    {"output lost", break_output_lost, "value 4 \"z\"", "nothing produces"},
    {"too few", break_too_few, "node 0", "1 inputs, must be 2 to 4"},
    {"too many", break_too_many, "node 1 Relu", "2 inputs, must be 1 to 1"},
    {"outputs few", break_outputs_few, "node 0", "0 outputs, must be 1 to 1"},
    {"outputs many", break_outputs_many, "node 0", "2 outputs"},
    {"ids lost", break_ids_lost, "node 0", "not there"},
    {"read range", break_read_range, "node 0", "input 1 is value 100 of 7"},
    {"read missing", break_read_missing, "node 0", "input 1 is missing"},
    {"read early", break_read_early, "node 0", "\"z\" is read before"},
    {"read own", break_read_own, "node 0", "\"y\" is read before"},
    {"write range", break_write_range, "node 0", "output 0 is value 100 of 7"},
    {"write none", break_write_none, "node 0", "output 0 is value"},
    {"write input", break_write_input, "node 0", "is an input of the graph"},
    {"write constant", break_write_constant, "node 0", "is a constant"},
    {"write twice", break_write_twice, "node 1 Relu", "is produced twice"},
    {"producer other", break_producer_other, "node 0", "another producer"},
    {"producer lost", break_producer_lost, "value 2 \"p\"", "its producer"},
    {"key", break_key, "node 0", "unknown key"},
    {"key twice", break_key_twice, "node 0", "strides is there twice"},
    {"ints", break_ints, "node 0", "strides has no value"},
    {"text", break_text, "node 0", "auto_pad has no value"},
    {"slopes", break_slopes, "node 0", "activation_slopes"},
    {"activation", break_activation, "node 0", "unknown activation 9"},
    {"kind", break_kind, "the graph", "broken at node 0"},
    {"ring", break_ring, "the graph", "broken at node"},
    {"back link", break_back_link, "the graph", "broken at node 1"},
    {"count", break_count, "the graph", "3 nodes, the graph counts 4"},
    {"last", break_last, "the graph", "the list has 3 nodes"},
};

static void test_broken(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pph_graph graph;
    pph_error error;
    pph_graph_init(&graph, &heap, NULL);
    test_assert_ok(pph_text_parse(good, sizeof good - 1, &graph, &error),
                   &error);
    test_assert_ok(pph_graph_verify(&graph, &error), &error);
    cases[i].damage(&graph);
    pph_status status = pph_graph_verify(&graph, &error);
    if (status != PPH_BAD_MODEL ||
        strncmp(error.where, cases[i].where, strlen(cases[i].where)) != 0 ||
        !strstr(error.message, cases[i].message))
      fail_msg("%s: %s: %s: %s", cases[i].name, pph_status_name(status),
               error.where, error.message);
    assert_int_equal(pph_graph_verify(&graph, NULL), PPH_BAD_MODEL);
    pph_graph_clear(&graph);
    assert_int_equal(atomic_load(&heap.used), 0);
  }
}

/* What is odd but right. */
static void test_legal(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",
      "input %x\noutput %x\noutput %x\n",
      "const %w f32 [0] = {}\noutput %w\n",
      "input %x\n_, %h = GRU(%x, %x, %x)\noutput %h\n",
      "input %x\n%y = Add(%x, %x)\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    pph_graph graph;
    pph_error error;
    pph_graph_init(&graph, &heap, NULL);
    test_assert_ok(
        pph_text_parse(texts[i], strlen(texts[i]), &graph, &error), &error);
    test_assert_ok(pph_graph_verify(&graph, &error), &error);
    pph_graph_clear(&graph);
  }
}

/* Names that share long prefixes, or differ in every bit. */
static void test_many_names(void **state) {
  (void)state;
  test_random random = {test_seed("test_many_names")};
  pph_graph graph;
  pph_error error;
  pph_graph_init(&graph, &heap, NULL);
  enum { COUNT = 20000 };
  for (int i = 0; i < COUNT; i++) {
    char name[48];
    pph_id id;
    if (i % 2)
      snprintf(name, sizeof name, "long/common/prefix/%d", i);
    else
      snprintf(name, sizeof name, "%c%c%d",
               (char)test_random_range(&random, -127, -1),
               (char)test_random_range(&random, 1, 127), i);
    test_assert_ok(pph_graph_add_value(&graph, name, &id, &error), &error);
  }
  test_assert_ok(pph_graph_verify(&graph, &error), &error);
  for (int i = 0; i < 20; i++) {
    pph_id one = (pph_id)test_random_range(&random, 0, COUNT - 1);
    pph_id other = (pph_id)((one + 1 + (pph_id)i * 7) % COUNT);
    const char *saved = graph.values[one].name;
    graph.values[one].name = graph.values[other].name;
    assert_int_equal(pph_graph_verify(&graph, &error), PPH_BAD_MODEL);
    graph.values[one].name = saved;
  }
  pph_graph_clear(&graph);
}

static void test_no_memory(void **state) {
  (void)state;
  pph_graph graph;
  pph_error error;
  pph_graph_init(&graph, &heap, NULL);
  test_assert_ok(pph_text_parse(good, sizeof good - 1, &graph, &error),
                 &error);
  heap.limit = atomic_load(&heap.used);
  assert_int_equal(pph_graph_verify(&graph, &error), PPH_OUT_OF_MEMORY);
  heap.limit += 512;
  assert_int_equal(pph_graph_verify(&graph, &error), PPH_OUT_OF_MEMORY);
  heap.limit = SIZE_MAX;
  pph_graph_clear(&graph);
}

int main(void) {
  pph_heap_init(&heap, NULL, 0);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_broken),
      cmocka_unit_test(test_legal),
      cmocka_unit_test(test_many_names),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
