/* Shape inference: what comes out per kind, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/shape.h"
#include "graph/text.h"
#include "test_support.h"

/* Lines before the node, the node, and "TYPE SHAPE" of %y or part of the
   refusal's message (starts with '!'). */
static const struct {
  const char *lines, *node, *expected;
} cases[] = {
#define X "input %x f32 [2,3,4,5]\n"
    {X, "%y = Abs(%x)", "f32 [2,3,4,5]"},
    {X, "%y = Relu(%x)", "f32 [2,3,4,5]"},
    {"input %x bool [2]\n", "%y = Neg(%x)", "!bool, must be a number"},
    {"input %x bool [2]\n", "%y = Not(%x)", "bool [2]"},
    {X, "%y = Not(%x)", "!must be bool"},
    {X, "%y = Cast(%x) {to=7}", "i64 [2,3,4,5]"},
    {X, "%y = Cast(%x) {to=99}", "!to is 99"},
    {X "const %l f32 [] = {0}\n", "%y = Clip(%x, %l)", "f32 [2,3,4,5]"},
    {X "const %l f32 [2] = {0,1}\n", "%y = Clip(%x, %l)", "!must be a scalar"},
    {X "input %z f32 [3,1,1]\n", "%y = Add(%x, %z)", "f32 [2,3,4,5]"},
    {X "input %z f32 [7,1,1,4,1]\n", "%y = Mul(%x, %z)", "f32 [7,2,3,4,5]"},
    {X "input %z f32 [4]\n", "%y = Sub(%x, %z)", "!do not broadcast"},
    {X "input %z i64 [5]\n", "%y = Div(%x, %z)", "!type i64"},
    {X "input %z f32 [5]\n", "%y = Less(%x, %z)", "bool [2,3,4,5]"},
    {X "input %z f32 [5]\n", "%y = And(%x, %z)", "!must be bool"},
    {"input %a bool [2]\ninput %b bool [1]\n", "%y = Or(%a, %b)", "bool [2]"},
    {X "input %z i64 []\n", "%y = Pow(%x, %z)", "f32 [2,3,4,5]"},
    {X "input %z f32 [3,1,1]\n", "%y = PRelu(%x, %z)", "f32 [2,3,4,5]"},
    {X "input %z f32 [7,1,3,1,1]\n", "%y = PRelu(%x, %z)", "!slope"},
    {X "input %c bool [1]\n", "%y = Where(%c, %x, %x)", "f32 [2,3,4,5]"},
    {X, "%y = Where(%x, %x, %x)", "!must be bool"},
    {X "input %z f32 [2,3,4,2]\n", "%y = Concat(%x, %z) {axis=-1}",
     "f32 [2,3,4,7]"},
    {X "input %z f32 [2,3,5,5]\n", "%y = Concat(%x, %z) {axis=0}",
     "!but for axis 0"},
    {X, "%y = Concat(%x) {axis=4}", "!axis is 4, must be in [-4,4)"},
    {"input %x f32 [2,1]\nconst %s i64 [3] = {4,1,6}\n",
     "%y = Expand(%x, %s)", "f32 [4,2,6]"},
    {"input %x f32 [2,3]\nconst %s i64 [1] = {4}\n", "%y = Expand(%x, %s)",
     "!does not broadcast"},
    {X, "%y = Flatten(%x) {axis=2}", "f32 [6,20]"},
    {X, "%y = Flatten(%x) {axis=5}", "!axis is 5"},
    {X "input %i i64 [6,7]\n", "%y = Gather(%x, %i) {axis=1}",
     "f32 [2,6,7,4,5]"},
    {X "input %i i64 []\n", "%y = Gather(%x, %i) {axis=-1}", "f32 [2,3,4]"},
    {X "input %i f32 [1]\n", "%y = Gather(%x, %i)", "!must be i32 or i64"},
    {X "const %p i64 [8] = {0,0,1,-2,0,0,2,0}\n", "%y = Pad(%x, %p)",
     "f32 [2,3,7,3]"},
    {X "const %p i64 [8] = {0,0,0,-6,0,0,0,0}\n", "%y = Pad(%x, %p)",
     "!has 5 elements"},
    {X "const %p i64 [2] = {5,0}\nconst %a i64 [1] = {3}\n",
     "%y = Pad(%x, %p, _, %a) {mode=\"reflect\"}", "!must be below 5"},
    {X "const %p i64 [3] = {1,1,1}\n", "%y = Pad(%x, %p)", "!must have 8"},
    {X "const %s i64 [3] = {0,-1,2}\n", "%y = Reshape(%x, %s)",
     "f32 [2,30,2]"},
    {X "const %s i64 [2] = {7,-1}\n", "%y = Reshape(%x, %s)",
     "!cannot become"},
    {X "const %s i64 [2] = {-1,-1}\n", "%y = Reshape(%x, %s)",
     "!more than one -1"},
    {X "input %s i64 [2]\n", "%y = Reshape(%x, %s)", "!not known before"},
    {X "input %i i64 [6,2]\ninput %u f32 [6,4,5]\n",
     "%y = ScatterND(%x, %i, %u)", "f32 [2,3,4,5]"},
    {X "input %i i64 [6,2]\ninput %u f32 [6,5]\n",
     "%y = ScatterND(%x, %i, %u)", "!must be [6,4,5]"},
    {X "const %r i64 [4] = {1,2,1,3}\n", "%y = Tile(%x, %r)",
     "f32 [2,6,4,15]"},
    {X "const %r i64 [1] = {1}\n", "%y = Tile(%x, %r)", "!must have 4"},
    {X, "%y = Transpose(%x) {perm=[0,2,3,1]}", "f32 [2,4,5,3]"},
    {X, "%y = Transpose(%x)", "f32 [5,4,3,2]"},
    {X, "%y = Transpose(%x) {perm=[0,0,3,1]}", "!permutation"},
    {X "const %s i64 [2] = {1,10}\nconst %e i64 [2] = {3,-10}\n"
       "const %a i64 [2] = {2,3}\nconst %t i64 [2] = {1,-2}\n",
     "%y = Slice(%x, %s, %e, %a, %t)", "f32 [2,3,2,3]"},
    {X "const %s i64 [1] = {0}\nconst %e i64 [1] = {2}\n"
       "const %a i64 [1] = {2}\nconst %t i64 [1] = {0}\n",
     "%y = Slice(%x, %s, %e, %a, %t)", "!step 0 is 0"},
    {X "const %s i64 [1] = {5}\nconst %e i64 [1] = {2}\n",
     "%y = Slice(%x, %s, %e)", "f32 [0,3,4,5]"},
    {X, "%y, %z = Split(%x) {axis=3}", "f32 [2,3,4,3]"},
    {X "const %s i64 [2] = {1,3}\n", "%y, %z = Split(%x, %s) {axis=2}",
     "f32 [2,3,1,5]"},
    {X "const %s i64 [2] = {1,2}\n", "%y, %z = Split(%x, %s) {axis=2}",
     "!sums to 3"},
    {"input %x f32 [1,3,1]\n", "%y = Squeeze(%x)", "f32 [3]"},
    {"input %x f32 [1,3,1]\nconst %a i64 [1] = {1}\n", "%y = Squeeze(%x, %a)",
     "!has 3 elements"},
    {"input %x f32 [3]\nconst %a i64 [2] = {0,-1}\n",
     "%y = Unsqueeze(%x, %a)", "f32 [1,3,1]"},
    {"input %x f32 [3]\nconst %a i64 [2] = {0,0}\n",
     "%y = Unsqueeze(%x, %a)", "!named twice"},
    {X, "%y = Relayout(%x)", "f32 [2,3,4,5]"},
    {"const %s i64 [2] = {2,3}\n", "%y = ConstantOfShape(%s)", "f32 [2,3]"},
    {"const %s i64 [1] = {-2}\n", "%y = ConstantOfShape(%s)", "!size 0 is -2"},
    {"const %s i64 [2] = {1000000000,1000000000}\n",
     "%y = ConstantOfShape(%s)", "!larger than the limit"},
    {"const %a i64 [] = {2}\nconst %b i64 [] = {9}\nconst %c i64 [] = {3}\n",
     "%y = Range(%a, %b, %c)", "i64 [3]"},
    {"const %a i64 [] = {2}\nconst %c i64 [] = {0}\n",
     "%y = Range(%a, %a, %c)", "!delta is 0"},
    {X, "%y = Shape(%x)", "i64 [4]"},
    {X, "%y = Size(%x)", "i64 []"},
    {"input %a f32 [3,2]\ninput %b f32 [4,3]\ninput %c f32 [4]\n",
     "%y = Gemm(%a, %b, %c) {transA=1, transB=1}", "f32 [2,4]"},
    {"input %a f32 [3,2]\ninput %b f32 [4,3]\n", "%y = Gemm(%a, %b)",
     "!inner sizes are 2 and 4"},
    {"input %a f32 [7,1,3,2]\ninput %b f32 [5,2,4]\n", "%y = MatMul(%a, %b)",
     "f32 [7,5,3,4]"},
    {"input %a f32 [2]\ninput %b f32 [2]\n", "%y = MatMul(%a, %b)", "f32 []"},
    {"input %a f32 [2]\ninput %b f32 [3]\n", "%y = MatMul(%a, %b)",
     "!inner sizes"},
    {X "const %a i64 [2] = {-1,1}\n", "%y = ReduceMean(%x, %a)",
     "f32 [2,1,4,1]"},
    {X "const %a i64 [1] = {2}\n", "%y = ReduceSum(%x, %a) {keepdims=0}",
     "f32 [2,3,5]"},
    {X, "%y = ReduceMax(%x) {keepdims=0}", "f32 []"},
    {X, "%y = Softmax(%x) {axis=7}", "!axis is 7"},
    {"input %x f32 [9,1,3]\ninput %w f32 [2,12,3]\ninput %r f32 [2,12,4]\n",
     "%y = GRU(%x, %w, %r) {hidden_size=4, direction=\"bidirectional\"}",
     "f32 [9,2,1,4]"},
    {"input %x f32 [9,1,3]\ninput %w f32 [1,12,2]\ninput %r f32 [1,12,4]\n",
     "%y = GRU(%x, %w, %r) {hidden_size=4}", "!must be [1,12,3]"},
    /* convolutions and pools */
    {X "input %w f32 [6,3,3,3]\n",
     "%y = Conv(%x, %w) {pads=[1,1,1,1], strides=[2,1]}", "f32 [2,6,2,5]"},
    {X "input %w f32 [6,3,3,3]\n", "%y = Conv(%x, %w) {auto_pad=\"SAME_UPPER\"}",
     "f32 [2,6,4,5]"},
    {X "input %w f32 [6,3,3,3]\n", "%y = Conv(%x, %w) {auto_pad=\"SAME\"}",
     "!auto_pad is \"SAME\""},
    {X "input %w f32 [6,4,3,3]\n", "%y = Conv(%x, %w)",
     "!input has 3 channels, the weight is made for 4"},
    {X "input %w f32 [3,6,4,4]\n",
     "%y = ConvTranspose(%x, %w) {strides=[2,2], pads=[1,1,1,1]}",
     "f32 [2,6,8,10]"},
    {X "input %w f32 [3,2,3,3]\n",
     "%y = ConvTranspose(%x, %w) {group=3, output_padding=[1,0], "
     "strides=[2,1]}",
     "f32 [2,6,10,7]"},
    {X "input %w f32 [3,2,3,3]\n", "%y = ConvTranspose(%x, %w) {group=2}",
     "!no multiple of group 2"},
    {X "input %w f32 [3,2,3,3]\n", "%y = ConvTranspose(%x, %w) {group=0}",
     "!group is 0"},
    {X "input %w f32 [3,2,3,3]\n",
     "%y = ConvTranspose(%x, %w) {strides=[0,1]}", "!strides[0] is 0"},
    {X "input %w f32 [3,2,3,3]\n",
     "%y = ConvTranspose(%x, %w) {dilations=[1,0]}", "!dilations[1] is 0"},
    {X "input %w f32 [3,2,3,3]\n",
     "%y = ConvTranspose(%x, %w) {pads=[1,1,-1,1]}", "!pads[2] is -1"},
    {X "input %w f32 [3,2,3,3]\n", "%y = ConvTranspose(%x, %w) {pads=[1,1]}",
     "!must have 4"},
    {X "input %w f32 [3,2,3,3]\n",
     "%y = ConvTranspose(%x, %w) {strides=[2,2], output_padding=[2,0]}",
     "!output_padding[0] is 2"},
    {X "input %w f32 [3,2,3,3]\n",
     "%y = ConvTranspose(%x, %w) {kernel_shape=[3,2]}",
     "!kernel_shape[1] is 2, the weight has 3"},
    {X "input %w f32 [3,2,3,3]\ninput %b f32 [3]\n",
     "%y = ConvTranspose(%x, %w, %b)", "!must be [2]"},
    {"input %x f32 [1,2,9]\ninput %w f32 [2,4,8]\n",
     "%y = ConvTranspose(%x, %w) {strides=[4], pads=[2,2], "
     "output_padding=[1]}",
     "f32 [1,4,37]"},
    {X "input %w f32 [3,2,3]\n", "%y = Conv(%x, %w)",
     "!the input has rank 4, the weight 3"},
    {X "input %w f32 []\n", "%y = Conv(%x, %w)",
     "!the weight has rank 0, must be at least 3"},
    {"const %s i64 [3] = {0,1024,3}\n", "%y = ConstantOfShape(%s)",
     "f32 [0,1024,3]"},
    {"const %s i64 [3] = {0,4611686018427387904,3}\n",
     "%y = ConstantOfShape(%s)", "!larger than the limit"},
    {"const %s i64 [3] = {1099511627776,1,0}\n",
     "%y = ConstantOfShape(%s)", "!larger than the limit"},
    {X, "%y = MaxPool(%x) {kernel_shape=[2,2], strides=[2,2]}",
     "f32 [2,3,2,2]"},
    {X, "%y = AveragePool(%x) {kernel_shape=[2,2], strides=[2,2], "
        "ceil_mode=1}",
     "f32 [2,3,2,3]"},
    {X, "%y = MaxPool(%x)", "!kernel_shape is missing"},
    {X, "%y = GlobalAveragePool(%x)", "f32 [2,3,1,1]"},
    {X "input %c f32 [3]\n", "%y = BatchNormalization(%x, %c, %c, %c, %c)",
     "f32 [2,3,4,5]"},
    {X "input %c f32 [4]\n", "%y = BatchNormalization(%x, %c, %c, %c, %c)",
     "!scale has shape [4], must be [3]"},
    {"input %x f32 [1,12,2,3]\n", "%y = DepthToSpace(%x) {blocksize=[2,3]}",
     "f32 [1,2,4,9]"},
    {"input %x f32 [1,5,2,3]\n", "%y = DepthToSpace(%x) {blocksize=[2,2]}",
     "!5 channels, must be a multiple of 4"},
    {"input %x f32 [1,5,2,3]\n", "%y = DepthToSpace(%x) {blocksize=[0,0]}",
     "!blocksize is 0"},
    {"input %x f32 [1,5,4,6]\n", "%y = SpaceToDepth(%x) {blocksize=[2,3]}",
     "f32 [1,30,2,2]"},
    {"input %x f32 [1,5,4,6]\n", "%y = SpaceToDepth(%x) {blocksize=[3,3]}",
     "!multiple of blocksize 3"},
    {"input %x f32 [1,1,86,1]\nconst %s f32 [4] = {1,1,2.97674418,1}\n",
     "%y = Resize(%x, _, %s)", "f32 [1,1,256,1]"},
    {X "const %s i64 [2] = {7,3}\n", "%y = Resize(%x, _, _, %s) {axes=[3,2]}",
     "f32 [2,3,3,7]"},
    {X "const %s i64 [2] = {8,8}\n",
     "%y = Resize(%x, _, _, %s) {axes=[2,3], "
     "keep_aspect_ratio_policy=\"not_larger\"}",
     "f32 [2,3,6,8]"},
    {X "const %s f32 [4] = {1,1,0,1}\n", "%y = Resize(%x, _, %s)",
     "!scales[2] is 0"},
    {X, "%y = Resize(%x)", "!neither"},
    {X "const %s f32 [4] = {1,1,1,1}\n",
     "%y = Resize(%x, _, %s) {mode=\"lanczos\"}", "!mode is \"lanczos\""},
};

static void check(size_t index) {
  char text[2048], found[192], shape[128];
  pph_heap heap;
  pph_graph graph;
  pph_error error = {0};
  snprintf(text, sizeof text, "graph \"g\"\n%s%s\noutput %%y\n",
           cases[index].lines, cases[index].node);
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&graph, &heap, NULL);
  test_assert_ok(pph_text_parse(text, strlen(text), &graph, &error), &error);
  error = (pph_error){0};
  pph_status status = pph_shape_check_node(&graph, graph.first, &error);
  if (status == PPH_OK)
    status = pph_shape_infer(&graph, &error);
  const pph_value *y = pph_graph_value(&graph, graph.outputs[0]);
  if (status == PPH_OK)
    snprintf(found, sizeof found, "%s %s", pph_dtype_name(y->type),
             pph_shape_text(&y->shape, shape, sizeof shape));
  else
    snprintf(found, sizeof found, "!%.190s", error.message);
  bool refused = cases[index].expected[0] == '!';
  bool right = refused ? status != PPH_OK &&
                             strstr(error.message, cases[index].expected + 1)
                       : strcmp(found, cases[index].expected) == 0;
  if (!right)
    fail_msg("%s%s\nfound    %s\nexpected %s", cases[index].lines,
             cases[index].node, found, cases[index].expected);
  if (refused)
    assert_non_null(strstr(error.where, "node 0 "));
  pph_graph_clear(&graph);
}

static void test_rules(void **state) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check(i);
}

/* Every kind has a rule and at least one case above. */
static void test_every_kind(void **state) {
  for (int kind = 0; kind < PPH_NODE_KIND_COUNT; kind++) {
    pph_heap heap;
    pph_graph graph;
    pph_node *node;
    pph_error error = {0};
    pph_heap_init(&heap, NULL, 0);
    pph_graph_init(&graph, &heap, NULL);
    test_assert_ok(pph_graph_add_node(&graph, (pph_node_kind)kind, "n", NULL,
                                      &node, &error),
                   &error);
    /* Without inputs every rule refuses, but not for being missing. */
    assert_int_not_equal(pph_shape_infer_node(&graph, node, &error), PPH_OK);
    assert_null(strstr(error.message, "no shape rule"));
    pph_graph_clear(&graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules),
                                     cmocka_unit_test(test_every_kind)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
