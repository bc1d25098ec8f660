/* conv_transpose_to_polyphase against the definition: random problems on small
   integers, so that any order of summation gives the same bits. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/shape.h"
#include "graph/verify.h"
#include "graph_runner.h"

typedef struct problem {
  uint32_t axes;
  int64_t batch, group, inner, outer; /* channels per group */
  int64_t input[2], kernel[2], stride[2], dilation[2], padding[2];
  int64_t begin[2], end[2];
  bool biased;
  pph_activation activation;
  int64_t output_shape[2]; /* of one in eight problems, else 0 */
} problem;

static void pick_axis(problem *p, uint32_t i, test_random *random) {
  p->input[i] = test_random_range(random, 1, 6);
  p->kernel[i] = test_random_range(random, 1, 7);
  p->stride[i] = test_random_range(random, 1, 4);
  p->dilation[i] =
      test_random_range(random, 0, 3) ? 1 : test_random_range(random, 1, 4);
  int64_t most = pph_max_i64(p->stride[i], p->dilation[i]) - 1;
  p->padding[i] = test_random_range(random, 0, 2)
                      ? 0
                      : test_random_range(random, 0, most);
  int64_t length = (p->input[i] - 1) * p->stride[i] +
                   (p->kernel[i] - 1) * p->dilation[i] + 1 + p->padding[i];
  p->begin[i] = test_random_range(random, 0, pph_min_i64(length - 1, 9));
  p->end[i] =
      test_random_range(random, 0, pph_min_i64(length - 1 - p->begin[i], 9));
  p->output_shape[i] = length + test_random_range(random, -2, 4);
  if (p->output_shape[i] < 1)
    p->output_shape[i] = 1;
}

static problem pick(test_random *random) {
  static const int64_t groups[] = {1, 1, 1, 2, 3, 4};
  problem p = {.axes = (uint32_t)test_random_range(random, 1, 2)};
  p.batch = test_random_range(random, 1, 2);
  p.group = groups[test_random_range(random, 0, 5)];
  p.inner = test_random_range(random, 0, 1)
                ? 1
                : test_random_range(random, 1, 3);
  p.outer = test_random_range(random, 0, 1)
                ? 1
                : test_random_range(random, 1, 3);
  for (uint32_t i = 0; i < p.axes; i++)
    pick_axis(&p, i, random);
  p.biased = test_random_range(random, 0, 2);
  p.activation = (pph_activation)test_random_range(random, 0, 2);
  if (test_random_range(random, 0, 7))
    p.output_shape[0] = 0;
  return p;
}

static const char *print(const problem *p, char *text, size_t size) {
  int at = snprintf(text, size, "n%d g%d ci%d co%d", (int)p->batch,
                    (int)p->group, (int)(p->inner * p->group),
                    (int)(p->outer * p->group));
  for (uint32_t i = 0; i < p->axes; i++)
    at += snprintf(text + at, size - (size_t)at,
                   " (i%d k%d s%d d%d p%d,%d op%d os%d)", (int)p->input[i],
                   (int)p->kernel[i], (int)p->stride[i], (int)p->dilation[i],
                   (int)p->begin[i], (int)p->end[i], (int)p->padding[i],
                   p->output_shape[0] ? (int)p->output_shape[i] : 0);
  return text;
}

static pph_id add_constant(pph_graph *graph, pph_shape shape,
                           test_random *random) {
  pph_error error = {0};
  float data[4096];
  size_t count;
  pph_id id;
  assert_true(pph_shape_count(&shape, &count) && count <= 4096);
  for (size_t i = 0; i < count; i++)
    data[i] = (float)test_random_range(random, -3, 3);
  pph_tensor tensor = {PPH_F32, shape, data};
  test_assert_ok(pph_graph_add_constant(graph, NULL, &tensor, &id, &error),
                 &error);
  return id;
}

static void set_ints(pph_graph *graph, pph_node *node, pph_attribute_key key,
                     const int64_t *ints, uint32_t count) {
  pph_error error = {0};
  test_assert_ok(pph_node_set_ints(graph, node, key, ints, count, &error),
                 &error);
}

static void set_attributes(pph_graph *graph, pph_node *node,
                           const problem *p) {
  pph_error error = {0};
  int64_t pads[4];
  for (uint32_t i = 0; i < p->axes; i++) {
    pads[i] = p->begin[i];
    pads[p->axes + i] = p->end[i];
  }
  set_ints(graph, node, PPH_ATTR_STRIDES, p->stride, p->axes);
  set_ints(graph, node, PPH_ATTR_DILATIONS, p->dilation, p->axes);
  set_ints(graph, node, PPH_ATTR_OUTPUT_PADDING, p->padding, p->axes);
  if (p->output_shape[0])
    set_ints(graph, node, PPH_ATTR_OUTPUT_SHAPE, p->output_shape, p->axes);
  else
    set_ints(graph, node, PPH_ATTR_PADS, pads, 2 * p->axes);
  test_assert_ok(
      pph_node_set_int(graph, node, PPH_ATTR_GROUP, p->group, &error),
      &error);
  node->activation = p->activation;
  if (p->activation == PPH_ACTIVATION_LEAKY_RELU)
    test_assert_ok(pph_node_set_float(graph, node, PPH_ATTR_ACTIVATION_ALPHA,
                                      0.5f, &error),
                   &error);
  if (p->activation == PPH_ACTIVATION_CLAMP) {
    test_assert_ok(pph_node_set_float(graph, node, PPH_ATTR_ACTIVATION_MIN,
                                      -1.0f, &error),
                   &error);
    test_assert_ok(pph_node_set_float(graph, node, PPH_ATTR_ACTIVATION_MAX,
                                      20.0f, &error),
                   &error);
  }
}

static void build(pph_graph *graph, pph_heap *heap, const problem *p,
                  test_random *random) {
  pph_error error = {0};
  pph_graph_init(graph, heap, NULL);
  pph_id ids[3], output;
  test_assert_ok(pph_graph_add_value(graph, "x", &ids[0], &error), &error);
  pph_value *x = pph_graph_value(graph, ids[0]);
  x->type = PPH_F32;
  x->has_rank = true;
  x->shape = (pph_shape){(int32_t)p->axes + 2,
                         {p->batch, p->inner * p->group, p->input[0],
                          p->input[1]}};
  test_assert_ok(pph_graph_set_inputs(graph, ids, 1, &error), &error);
  ids[1] = add_constant(graph,
                        (pph_shape){(int32_t)p->axes + 2,
                                    {p->inner * p->group, p->outer,
                                     p->kernel[0], p->kernel[1]}},
                        random);
  ids[2] = add_constant(graph, (pph_shape){1, {p->outer * p->group}}, random);
  pph_node *node;
  test_assert_ok(pph_graph_insert(graph, PPH_NODE_CONV_TRANSPOSE, NULL, ids,
                                  p->biased ? 3 : 2, &node, &error),
                 &error);
  set_attributes(graph, node, p);
  output = node->outputs[0];
  test_assert_ok(pph_graph_set_outputs(graph, &output, 1, &error), &error);
  test_assert_ok(pph_shape_infer(graph, &error), &error);
}

static void check(const problem *p, pph_polyphase_mode mode,
                  test_random *random) {
  char text[256];
  pph_error error = {0};
  pph_heap heap;
  pph_heap_init(&heap, NULL, 0);
  pph_graph graph;
  build(&graph, &heap, p, random);
  graph_results expected, found;
  pph_tensor *inputs = graph_inputs_make(&graph, &heap, random);
  test_assert_ok(graph_run(&graph, inputs, &expected, &error), &error);
  pph_pass_options options;
  pph_pass_options_init(&options);
  options.polyphase = mode;
  test_assert_ok(pph_pass_run(&graph, "conv_transpose_to_polyphase", &options,
                              &error),
                 &error);
  test_assert_ok(pph_graph_verify(&graph, &error), &error);
  if (mode == PPH_POLYPHASE_ALWAYS &&
      graph_count(&graph, PPH_NODE_CONV_TRANSPOSE) != 0)
    fail_msg("not lowered: %s: %s", print(p, text, sizeof text),
             graph.first_note->reason);
  assert_non_null(graph.first_note);
  pph_status status = graph_run(&graph, inputs, &found, &error);
  if (status != PPH_OK || graph_results_distance(&expected, &found) != 0)
    fail_msg("wrong: %s (%s)", print(p, text, sizeof text), error.message);
  graph_results_release(&expected);
  graph_results_release(&found);
  graph_inputs_release(&graph, &heap, inputs);
  pph_graph_clear(&graph);
  assert_int_equal(heap.used, 0);
}

static void test_always(void **state) {
  (void)state;
  test_random random = {test_seed("polyphase always")};
  for (int i = 0; i < 12000; i++) {
    problem p = pick(&random);
    check(&p, PPH_POLYPHASE_ALWAYS, &random);
  }
}

static void test_auto(void **state) {
  (void)state;
  test_random random = {test_seed("polyphase auto")};
  for (int i = 0; i < 500; i++) {
    problem p = pick(&random);
    check(&p, PPH_POLYPHASE_AUTO, &random);
    check(&p, PPH_POLYPHASE_NEVER, &random);
  }
}

/* What was measured in the official runtime, and one that must be so: a
   convolution for each phase costs more than a few numbers. */
static const struct {
  const char *what;
  pph_window window;
  bool lowered;
} measured[] = {
    {"k3 s2 64->64 at 32x32: 1.7 times as fast",
     {.axes = 2, .group = 1, .in_channels = 64, .out_channels = 64, .batch = 1,
      .input = {32, 32}, .output = {64, 64}, .kernel = {3, 3},
      .stride = {2, 2}, .dilation = {1, 1}, .pad_begin = {1, 1},
      .pad_end = {1, 1}, .output_padding = {1, 1}},
     true},
    {"k2 s2 64->32 at 128x128: 1.1",
     {.axes = 2, .group = 1, .in_channels = 64, .out_channels = 32, .batch = 1,
      .input = {128, 128}, .output = {256, 256}, .kernel = {2, 2},
      .stride = {2, 2}, .dilation = {1, 1}},
     true},
    {"k4 s2 32->3 at 128x128: 9",
     {.axes = 2, .group = 1, .in_channels = 32, .out_channels = 3, .batch = 1,
      .input = {128, 128}, .output = {256, 256}, .kernel = {4, 4},
      .stride = {2, 2}, .dilation = {1, 1}, .pad_begin = {1, 1},
      .pad_end = {1, 1}},
     true},
    {"k16 s8 256->128 at 400: 1.9",
     {.axes = 1, .group = 1, .in_channels = 256, .out_channels = 128,
      .batch = 1, .input = {400}, .output = {3200}, .kernel = {16},
      .stride = {8}, .dilation = {1}, .pad_begin = {4}, .pad_end = {4}},
     true},
    {"k1 s2 1->1 at 2x2 stays",
     {.axes = 2, .group = 1, .in_channels = 1, .out_channels = 1, .batch = 1,
      .input = {2, 2}, .output = {3, 3}, .kernel = {1, 1},
      .stride = {2, 2}, .dilation = {1, 1}},
     false},
    {"k1 s3 1->1 of one pixel: XNNPACK has no such deconvolution",
     {.axes = 2, .group = 1, .in_channels = 1, .out_channels = 1, .batch = 1,
      .input = {1, 1}, .output = {1, 1}, .kernel = {1, 1},
      .stride = {3, 3}, .dilation = {1, 1}},
     true},
};

static void add_measured(pph_graph *graph, const pph_window *w) {
  static float zeros[256 * 128 * 16];
  pph_error error = {0};
  pph_id ids[2];
  test_assert_ok(pph_graph_add_value(graph, "x", &ids[0], &error), &error);
  pph_value *x = pph_graph_value(graph, ids[0]);
  x->type = PPH_F32;
  x->has_rank = true;
  x->shape = (pph_shape){(int32_t)w->axes + 2,
                         {w->batch, w->in_channels, w->input[0], w->input[1]}};
  pph_tensor weight = {PPH_F32,
                       {(int32_t)w->axes + 2,
                        {w->in_channels, w->out_channels, w->kernel[0],
                         w->kernel[1]}},
                       zeros};
  test_assert_ok(pph_graph_add_constant(graph, "w", &weight, &ids[1], &error),
                 &error);
  test_assert_ok(pph_graph_set_inputs(graph, ids, 1, &error), &error);
  pph_node *node;
  test_assert_ok(pph_graph_insert(graph, PPH_NODE_CONV_TRANSPOSE, NULL, ids, 2,
                                  &node, &error),
                 &error);
  int64_t pads[4];
  memcpy(pads, w->pad_begin, w->axes * sizeof *pads);
  memcpy(pads + w->axes, w->pad_end, w->axes * sizeof *pads);
  set_ints(graph, node, PPH_ATTR_STRIDES, w->stride, w->axes);
  set_ints(graph, node, PPH_ATTR_PADS, pads, 2 * w->axes);
  set_ints(graph, node, PPH_ATTR_OUTPUT_PADDING, w->output_padding, w->axes);
  test_assert_ok(pph_graph_set_outputs(graph, node->outputs, 1, &error),
                 &error);
  test_assert_ok(pph_shape_infer(graph, &error), &error);
}

static void test_cost(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
    pph_error error = {0};
    pph_heap heap;
    pph_heap_init(&heap, NULL, 0);
    pph_graph graph;
    pph_graph_init(&graph, &heap, NULL);
    add_measured(&graph, &measured[i].window);
    pph_pass_options options;
    pph_pass_options_init(&options);
    test_assert_ok(pph_pass_run(&graph, "conv_transpose_to_polyphase",
                                &options, &error),
                   &error);
    bool lowered = graph_count(&graph, PPH_NODE_CONV_TRANSPOSE) == 0;
    printf("%s: %s\n", measured[i].what, graph.first_note->reason);
    if (lowered != measured[i].lowered)
      fail_msg("%s: %s", measured[i].what, graph.first_note->reason);
    pph_graph_clear(&graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cost),
                                     cmocka_unit_test(test_always),
                                     cmocka_unit_test(test_auto)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
