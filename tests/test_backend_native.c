/* The native backend against the reference one: every kind of move, and what is
   fused into convolutions, in every combination of layouts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/checked.h"
#include "graph/shape.h"
#include "graph_runner.h"
#include "test_support.h"

enum { SLACK = 64, MARK = 0x5a, MAX_OPERANDS = 8 };

/* Node texts over %x (and %z): inputs' shapes, then the expression. The output
   is %y, or %y and %u. */
static const struct {
  const char *x, *z; /* shapes; z NULL when there is no second input */
  const char *constants, *outputs, *expression;
} nodes[] = {
    {"[2,3,4,5]", NULL, "", "%y", "Relayout(%x)"},
    {"[2,3,7]", NULL, "", "%y", "Identity(%x)"},
    {"[2,3,4,5]", NULL, "", "%y", "Transpose(%x) {perm=[0,2,3,1]}"},
    {"[2,3,4,5]", NULL, "", "%y", "Transpose(%x) {perm=[0,3,1,2]}"},
    {"[2,3,4,5]", NULL, "", "%y", "Transpose(%x) {perm=[3,1,0,2]}"},
    {"[2,3,40]", NULL, "", "%y", "Transpose(%x) {perm=[2,0,1]}"},
    {"[2,3,4,5]", "[2,6,4,5]", "", "%y", "Concat(%x, %z) {axis=1}"},
    {"[2,3,4,5]", "[2,3,4,1]", "", "%y", "Concat(%x, %z) {axis=-1}"},
    {"[2,3,4,5]", "[1,3,4,5]", "", "%y", "Concat(%x, %z) {axis=0}"},
    {"[2,6,4,5]", NULL, "", "%y, %u", "Split(%x) {axis=1}"},
    {"[2,6,4,5]", NULL, "const %c i64 [2] = {1,4}\n", "%y, %u",
     "Split(%x, %c) {axis=3}"},
    {"[2,3,9,8]", NULL,
     "const %s i64 [2] = {1,7}\nconst %e i64 [2] = {9,-9}\n"
     "const %a i64 [2] = {2,3}\nconst %t i64 [2] = {3,-2}\n",
     "%y", "Slice(%x, %s, %e, %a, %t)"},
    {"[2,5,3,4]", NULL,
     "const %s i64 [1] = {-4}\nconst %e i64 [1] = {9223372036854775807}\n"
     "const %a i64 [1] = {1}\n",
     "%y", "Slice(%x, %s, %e, %a)"},
    {"[2,1,4,1]", NULL, "const %c i64 [4] = {2,3,4,5}\n", "%y",
     "Expand(%x, %c)"},
    {"[2,3,1,2]", NULL, "const %c i64 [4] = {1,2,3,2}\n", "%y",
     "Tile(%x, %c)"},
    {"[2,3,4,5]", NULL, "const %c i64 [8] = {0,1,2,0,1,0,-1,3}\n", "%y",
     "Pad(%x, %c)"},
    {"[2,3,4,5]", NULL,
     "const %c i64 [4] = {2,-1,0,1}\nconst %v f32 [] = {7.5}\n"
     "const %a i64 [2] = {3,1}\n",
     "%y", "Pad(%x, %c, %v, %a)"},
    {"[2,12,3,4]", NULL, "", "%y", "DepthToSpace(%x) {blocksize=[2,2]}"},
    {"[2,12,3,4]", NULL, "", "%y",
     "DepthToSpace(%x) {blocksize=[2,2], mode=\"CRD\"}"},
    {"[2,12,3,4]", NULL, "", "%y", "DepthToSpace(%x) {blocksize=[1,3]}"},
    {"[2,12,3]", NULL, "", "%y", "DepthToSpace(%x) {blocksize=[4]}"},
    {"[2,3,4,6]", NULL, "", "%y", "SpaceToDepth(%x) {blocksize=[2,3]}"},
    {"[2,3,1,4]", NULL, "const %c i64 [1] = {2}\n", "%y",
     "Squeeze(%x, %c)"},
    {"[2,3,4]", NULL, "const %c i64 [1] = {2}\n", "%y",
     "Unsqueeze(%x, %c)"},
    {"[2,3,4,5]", NULL, "const %c i64 [3] = {2,3,20}\n", "%y",
     "Reshape(%x, %c)"},
    {"[2,3,4,5]", NULL, "const %s f32 [4] = {1,1,2,3}\n", "%y",
     "Resize(%x, _, %s)"},
    {"[1,2,3,3]", NULL, "const %s i64 [4] = {1,2,12,6}\n", "%y",
     "Resize(%x, _, _, %s) {coordinate_transformation_mode=\"asymmetric\", "
     "nearest_mode=\"floor\"}"},
    {"[0,3,4,5]", NULL, "", "%y", "Transpose(%x) {perm=[0,2,3,1]}"},
    {"[2,3,4,5]", NULL, "", "%y", "Tanh(%x)"},
    {"[2,3,4,5]", NULL, "", "%y", "HardSigmoid(%x) {alpha=0.2, beta=0.5}"},
    {"[2,3,7]", "[2,2,6]",
     "const %w f32 [2,3,2] = {1,2,-3,4,-5,6,7,8,9,-10,11,-12}\n"
     "const %b f32 [2] = {3,-4}\n",
     "%y",
     "Conv(%x, %w, %b, %z) {activation_slopes=[0.25,-2.0]} "
     "activation=prelu"},
    {"[2,3,2,5]", "[2,2,4,10]",
     "const %w f32 [3,2,2,2] = {1,2,-3,4,-5,6,7,8,9,-10,11,-12,"
     "1,-2,3,4,5,-6,7,-8,-9,10,11,12}\n",
     "%y",
     "ConvTranspose(%x, %w, _, %z) {strides=[2,2], activation_max=100.0, "
     "activation_min=-100.0} activation=clamp"},
};

/* Every block ends in a mark that nobody may touch. */
static unsigned char *make_block(const pph_value *value, size_t *bytes) {
  assert_true(pph_shape_bytes(&value->shape, value->type, bytes));
  unsigned char *block = malloc(*bytes + SLACK);
  memset(block, MARK, *bytes + SLACK);
  return block;
}

static void run_node(const pph_backend *backend, pph_graph *graph,
                     pph_node *node, const void *const *inputs,
                     void *const *outputs) {
  pph_error error = {0};
  pph_backend_context context = {.heap = graph->heap};
  pph_step step = {.backend = backend,
                   .graph = graph,
                   .node = node,
                   .alias_input = UINT32_MAX};
  test_assert_ok(backend->prepare(&context, &step, &error), &error);
  if (step.alias_input != UINT32_MAX) {
    size_t bytes;
    const pph_value *value = pph_graph_value(graph, node->outputs[0]);
    assert_true(pph_shape_bytes(&value->shape, value->type, &bytes));
    memcpy(outputs[0], inputs[step.alias_input], bytes);
  } else {
    void *workspace = aligned_alloc(64, (step.workspace / 64 + 1) * 64);
    pph_run_pointers pointers = {inputs, outputs, workspace};
    test_assert_ok(backend->run(&context, &step, &pointers, &error), &error);
    free(workspace);
  }
  backend->release(&context, &step);
}

static void compare(pph_graph *graph, pph_node *node, const char *text) {
  const void *inputs[MAX_OPERANDS] = {NULL};
  void *found[MAX_OPERANDS], *right[MAX_OPERANDS];
  size_t bytes;
  for (uint32_t i = 0; i < node->input_count; i++) {
    pph_value *value = pph_node_find_input(graph, node, i);
    inputs[i] = value ? value->data : NULL;
    if (!value || value->data)
      continue;
    float *data = (float *)(void *)make_block(value, &bytes);
    for (size_t k = 0; k < bytes / 4; k++)
      data[k] = (float)k * 0.25f + (float)i * 1000;
    inputs[i] = data;
  }
  for (uint32_t i = 0; i < node->output_count; i++) {
    pph_value *value = pph_graph_value(graph, node->outputs[i]);
    found[i] = make_block(value, &bytes);
    right[i] = make_block(value, &bytes);
  }
  run_node(&pph_backend_native, graph, node, inputs, found);
  run_node(&pph_backend_reference, graph, node, inputs, right);
  for (uint32_t i = 0; i < node->output_count; i++) {
    pph_value *value = pph_graph_value(graph, node->outputs[i]);
    assert_true(pph_shape_bytes(&value->shape, value->type, &bytes));
    const float *a = found[i], *b = right[i];
    for (size_t k = 0; k < bytes / 4; k++)
      if (!(a[k] - b[k] < 1e-6f && b[k] - a[k] < 1e-6f))
        fail_msg("output %u element %zu is %g, should be %g in\n%s", i, k,
                 (double)a[k], (double)b[k], text);
    assert_memory_equal((char *)found[i] + bytes, (char *)right[i] + bytes,
                        SLACK);
    free(found[i]);
    free(right[i]);
  }
  for (uint32_t i = 0; i < node->input_count; i++)
    if (inputs[i] && !pph_node_find_input(graph, node, i)->data)
      free((void *)(uintptr_t)inputs[i]);
}

/* One node with the layouts that the bits of `layouts` say: inputs first. */
static bool check_node(size_t index, unsigned layouts) {
  char text[2048];
  snprintf(text, sizeof text,
           "graph \"g\"\ninput %%x f32 %s\n%s%s%s%s%s = %s\noutput %%y\n",
           nodes[index].x, nodes[index].z ? "input %z f32 " : "",
           nodes[index].z ? nodes[index].z : "", nodes[index].z ? "\n" : "",
           nodes[index].constants, nodes[index].outputs,
           nodes[index].expression);
  pph_heap heap;
  pph_graph graph;
  pph_error error = {0};
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&graph, &heap, NULL);
  graph_parse(&graph, &heap, text);
  test_assert_ok(pph_shape_infer(&graph, &error), &error);
  pph_node *node = graph.first;
  for (uint32_t i = 0; i < node->input_count; i++) {
    pph_value *value = pph_node_find_input(&graph, node, i);
    if (value && !value->data && layouts & 1)
      value->layout = PPH_LAYOUT_CHANNELS_LAST;
  }
  for (uint32_t i = 0; i < node->output_count; i++) {
    pph_value *value = pph_graph_value(&graph, node->outputs[i]);
    if (layouts & 2 && value->shape.rank >= 3)
      value->layout = PPH_LAYOUT_CHANNELS_LAST;
  }
  bool supported = pph_backend_native.supports(&graph, node);
  if (supported)
    compare(&graph, node, text);
  pph_graph_clear(&graph);
  assert_int_equal(atomic_load(&heap.used), 0);
  return supported;
}

static void test_nodes(void **state) {
  int supported = 0;
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
    for (unsigned layouts = 0; layouts < 4; layouts++) {
      bool runs = check_node(i, layouts);
      if (layouts == 0)
        assert_true(runs); /* plain order is always there */
      supported += runs;
    }
  printf("%d combinations run natively\n", supported);
  assert_true(supported > 90);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
