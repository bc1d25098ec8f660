/* Programs whose lengths are open: at every size they compute what the model
   does, in as few nodes as can be had, and what has no such form is named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "graph_runner.h"
#include "onnx/onnx.h"
#include "polyphase/polyphase.h"
#include "pte/container.h"
#include "runtime/compile.h"
#include "runtime/loaded_model.h"
#include "test_support.h"

enum { MOST_SIZES = 8, MOST_INPUTS = 2 };

typedef struct open_case {
  const char *name, *text;
  const char *ranges[MOST_INPUTS]; /* as of --shape */
  const char *sizes[MOST_SIZES];   /* of inputs, parted by blanks */
  pph_node_kind kind;              /* how many of these the program has */
  uint32_t count;
  pph_lowering lowering;
} open_case;

#define AUTO PPH_LOWERING_AUTO
#define ALWAYS PPH_LOWERING_ALWAYS
#define IMAGE "input %x f32 [?,4,?,?]\n"
#define WEIGHTS                                                                \
  "const %w f32 [4,4,3,3] = splat 77\nconst %b f32 [4] = splat 77\n"           \
  "const %up f32 [4,3,4,4] = splat 77\n"
#define TRANSPOSED                                                             \
  WEIGHTS "%a = Conv(%x, %w, %b) {pads=[1,1,1,1]}\n%c = Relu(%a)\n"            \
          "%y = ConvTranspose(%c, %up) {strides=[2,2], pads=[1,1,1,1]}\n"      \
          "output %y\n"

static const open_case cases[] = {
    {"a signal's length, phases stay",
     "input %x f32 [1,4,?]\nconst %w f32 [4,3,4] = splat 77\n"
     "const %v f32 [3,1,3] = splat 77\n"
     "%y = ConvTranspose(%x, %w) {strides=[4]}\n"
     "%z = LeakyRelu(%y) {alpha=0.25}\n"
     "%c = Conv(%z, %v) {group=3, pads=[1,1]}\noutput %c\noutput %y\n",
     {"1x4x2..40"}, {"1x4x40", "1x4x2", "1x4x3", "1x4x17"},
     PPH_NODE_CONV_TRANSPOSE, 0, ALWAYS},
    {"a signal's length, phases and what is cut off of them",
     "input %x f32 [1,4,?]\nconst %w f32 [4,3,8] = splat 77\n"
     "const %v f32 [4,3,3] = splat 77\n"
     "%y = ConvTranspose(%x, %w) {strides=[4], pads=[2,2]}\n"
     "%z = LeakyRelu(%y) {alpha=0.25}\n%a = Conv(%z, %v) {pads=[1,1]}\n"
     "%c = Conv(%z, %v) {pads=[1,1]}\n%d = Mul(%a, %c)\noutput %d\n",
     {"1x4x2..40"}, {"1x4x40", "1x4x2", "1x4x3", "1x4x17"},
     PPH_NODE_CONV, 2, ALWAYS},
    {"what is cut off of a signal, channels first",
     "input %x f32 [1,4,?]\nconst %s i64 [1] = {2}\nconst %e i64 [1] = {-1}\n"
     "const %p i64 [6] = {0, 0, -2, 0, 0, -3}\n"
     "%y = Slice(%x, %s, %e, %e)\n%z = Pad(%x, %p)\noutput %y\noutput %z\n",
     {"1x4x8..40"}, {"1x4x40", "1x4x8", "1x4x9"},
     PPH_NODE_CONV_TRANSPOSE, 2, AUTO},
    {"batch, phases stay", IMAGE TRANSPOSED, {"1..4x4x5x6"},
     {"4x4x5x6", "1x4x5x6", "3x4x5x6"}, PPH_NODE_CONV_TRANSPOSE, 0, ALWAYS},
    {"height, phases stay", IMAGE TRANSPOSED, {"2x4x3..16x6"},
     {"2x4x16x6", "2x4x3x6", "2x4x7x6"}, PPH_NODE_CONV, 2, ALWAYS},
    {"width, phases stay", IMAGE TRANSPOSED, {"2x4x6x3..16"},
     {"2x4x6x16", "2x4x6x3", "2x4x6x7"}, PPH_NODE_CONV, 2, ALWAYS},
    {"all, the transposed convolution stays", IMAGE TRANSPOSED,
     {"1..2x4x3..16x3..16"},
     {"2x4x16x16", "1x4x3x3", "2x4x7x4", "1x4x4x15"},
     PPH_NODE_CONV_TRANSPOSE, 1, AUTO},
    {"pools, sums and joins",
     IMAGE WEIGHTS
     "%a = Conv(%x, %w, %b) {strides=[2,2], pads=[1,1,1,1]}\n"
     "%p = MaxPool(%x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\n"
     "%q = AveragePool(%x) {kernel_shape=[3,3], strides=[2,2],"
     " pads=[1,1,1,1], count_include_pad=1}\n"
     "%g = GlobalAveragePool(%a)\n%s = Sigmoid(%g)\n%m = Mul(%p, %s)\n"
     "%j = Concat(%a, %m, %q) {axis=1}\noutput %j\noutput %g\n",
     {"1..3x4x4..20x4..20"}, {"3x4x20x20", "1x4x4x4", "2x4x5x12", "1x4x7x7"},
     PPH_NODE_CONV_TRANSPOSE, 0, AUTO},
    {"nearest and blocks, by transposed convolutions",
     "input %x f32 [?,8,?,?]\nconst %up f32 [4] = {1, 1, 2, 3}\n"
     "const %none f32 [0] = {}\n"
     "%n = Resize(%x, %none, %up) {mode=\"nearest\","
     " coordinate_transformation_mode=\"asymmetric\","
     " nearest_mode=\"floor\"}\n"
     "%d = DepthToSpace(%x) {blocksize=[2,2], mode=\"CRD\"}\n"
     "%e = DepthToSpace(%x) {blocksize=[2,2], mode=\"DCR\"}\n"
     "output %n\noutput %d\noutput %e\n",
     {"1..2x8x2..9x2..9"}, {"2x8x9x9", "1x8x2x2", "2x8x3x8"},
     PPH_NODE_CONV_TRANSPOSE, 3, AUTO},
    {"interpolation between pixels",
     "input %x f32 [?,20,?,?]\nconst %none f32 [0] = {}\n"
     "const %two f32 [4] = {1, 1, 2, 2}\nconst %more f32 [4] = {1, 1, 3, 4}\n"
     "%a = Resize(%x, %none, %two) {mode=\"linear\"}\n"
     "%b = Resize(%x, %none, %more) {mode=\"linear\"}\n"
     "%c = Resize(%x, %none, %two) {mode=\"linear\","
     " coordinate_transformation_mode=\"pytorch_half_pixel\"}\n"
     "output %a\noutput %b\noutput %c\n",
     {"1..2x20x2..9x2..9"}, {"2x20x9x9", "1x20x2x2", "2x20x3x8"},
     PPH_NODE_CONV_TRANSPOSE, 6, AUTO},
    {"nearest and blocks, one length",
     "input %x f32 [1,8,?,7]\nconst %up f32 [4] = {1, 1, 2, 3}\n"
     "const %none f32 [0] = {}\n"
     "%n = Resize(%x, %none, %up) {mode=\"nearest\","
     " coordinate_transformation_mode=\"asymmetric\","
     " nearest_mode=\"floor\"}\n"
     "%d = DepthToSpace(%x) {blocksize=[2,2], mode=\"CRD\"}\n"
     "output %n\noutput %d\n",
     {"1x8x2..9x7"}, {"1x8x9x7", "1x8x2x7", "1x8x3x7"},
     PPH_NODE_CONV_TRANSPOSE, 0, AUTO},
    {"what is cut off before and behind",
     IMAGE WEIGHTS
     "const %s i64 [2] = {1, 2}\nconst %e i64 [2] = {-2, -1}\n"
     "const %far i64 [2] = {99999, 99999}\nconst %ax i64 [2] = {2, 3}\n"
     "%a = Conv(%x, %w, %b) {pads=[1,1,1,1]}\n"
     "%m = Slice(%a, %s, %e, %ax)\n%n = Slice(%a, %s, %far, %ax)\n"
     "%y = Conv(%m, %w)\n%z = Conv(%n, %w)\noutput %y\noutput %z\n",
     {"1x4x8..20x8..20"}, {"1x4x20x20", "1x4x8x8", "1x4x9x14"},
     PPH_NODE_CONV_TRANSPOSE, 1, AUTO},
    {"one channel: a reshape that is a transpose",
     "input %x f32 [?,1,?,?]\nconst %w f32 [1,1,3,3] = splat 77\n"
     "%a = Conv(%x, %w) {pads=[1,1,1,1]}\noutput %a\n",
     {"1..2x1x3..9x3..9"}, {"2x1x9x9", "1x1x3x3", "2x1x4x7"},
     PPH_NODE_RESHAPE, 0, AUTO},
    {"lengths that the model computes",
     "input %x f32 [?,4,6]\nconst %w f32 [24,5] = splat 77\n"
     "const %z i64 [1] = {0}\nconst %o i64 [1] = {1}\n"
     "const %minus i64 [1] = {-1}\n%s = Shape(%x)\n"
     "%n = Slice(%s, %z, %o)\n%to = Concat(%n, %minus) {axis=0}\n"
     "%f = Reshape(%x, %to)\n%g = Gemm(%f, %w)\n%p = Softmax(%g)\n"
     "output %p\n",
     {"1..5x4x6"}, {"5x4x6", "1x4x6", "3x4x6"}, PPH_NODE_CONV, 0, AUTO},
    {"steps that keep halves whole",
     "input %x f32 [1,4,?,?]\n" WEIGHTS
     "%a = Conv(%x, %w, %b) {strides=[2,2], auto_pad=\"SAME_UPPER\"}\n"
     "%d = DepthToSpace(%a) {blocksize=[2,2], mode=\"DCR\"}\noutput %d\n",
     {"1x4x4..20:2x4..20:2"}, {"1x4x20x20", "1x4x4x4", "1x4x6x10"},
     PPH_NODE_CONV, 1, AUTO},
    {"a length of two inputs",
     "input %x f32 [1,4,?](_,_,\"t\")\ninput %y f32 [1,2,?](_,_,\"t\")\n"
     "const %w f32 [4,6,3] = splat 77\n"
     "%j = Concat(%x, %y) {axis=1}\n%a = Conv(%j, %w) {pads=[1,1]}\n"
     "output %a\n",
     {"1x4x2..9", "1x2x2..9"}, {"1x4x9 1x2x9", "1x4x2 1x2x2", "1x4x5 1x2x5"},
     PPH_NODE_CONV, 1, AUTO},
};
enum { CASES = sizeof cases / sizeof *cases };

/* LEAST..MOST:STEP or LENGTH, with x between them. */
static pph_shape_range parse_range(const char *text) {
  pph_shape_range shape = {.rank = 0};
  for (;; text++) {
    char *end;
    pph_length_range *range = &shape.dims[shape.rank++];
    range->step = 1;
    range->least = range->most = strtoll(text, &end, 10);
    if (*end == '.')
      range->most = strtoll(end + 2, &end, 10);
    if (*end == ':')
      range->step = strtoll(end + 1, &end, 10);
    text = end;
    if (*text != 'x')
      return shape;
  }
}

/* The text as a model that was loaded from a file. */
static pph_model *load_text(const char *text) {
  pph_heap heap;
  pph_graph graph;
  pph_model *model;
  pph_error error = {0};
  test_random random = {7};
  void *bytes;
  size_t length;
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&graph, &heap, NULL);
  graph_parse(&graph, &heap, text);
  graph_fill_weights(&graph, &random);
  test_assert_ok(pph_onnx_export(&graph, &bytes, &length, &error), &error);
  test_assert_ok(pph_model_load_bytes(bytes, length, NULL, NULL, &model,
                                      &error),
                 &error);
  pph_heap_release(&heap, bytes);
  pph_graph_clear(&graph);
  return model;
}

static pph_status compile(const pph_model *model, const char *const *ranges,
                          pph_lowering lowering, pph_heap *heap,
                          pph_pte_files *files, pph_error *error) {
  const pph_compile_options options = {.lowering = lowering};
  pph_shape_range shapes[MOST_INPUTS];
  for (uint32_t i = 0; i < pph_model_input_count(model); i++)
    shapes[i] = parse_range(ranges[i]);
  return pph_model_compile(model, shapes, &options, heap, files, error);
}

static void check_outputs(const open_case *one, const char *size,
                          const pph_tensor *right, const pph_tensor *found,
                          uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    size_t elements;
    if (!pph_shape_equal(&right[i].shape, &found[i].shape))
      fail_msg("%s, %s: output %u has another shape", one->name, size, i);
    assert_true(pph_shape_count(&right[i].shape, &elements));
    for (size_t k = 0; k < elements; k++) {
      float a = ((const float *)right[i].data)[k];
      float b = ((const float *)found[i].data)[k];
      if (!(fabsf(a - b) <= 1e-4f * (1 + fabsf(a))))
        fail_msg("%s, %s: output %u is %g at %zu, should be %g", one->name,
                 size, i, (double)b, k, (double)a);
    }
  }
}

/* Both sessions keep their plans of the sizes before. */
static void check_size(const open_case *one, const char *size,
                       pph_session *model, pph_session *program,
                       uint32_t input_count, uint32_t output_count) {
  enum { MOST_OUTPUTS = 4 };
  pph_tensor inputs[MOST_INPUTS], right[MOST_OUTPUTS], found[MOST_OUTPUTS];
  pph_error error = {0};
  test_random random = {11};
  const char *text = size;
  for (uint32_t i = 0; i < input_count; i++) {
    pph_shape_range range = parse_range(text);
    pph_shape shape = {.rank = range.rank};
    size_t count;
    for (int32_t k = 0; k < range.rank; k++)
      shape.dims[k] = range.dims[k].most;
    assert_true(pph_shape_count(&shape, &count));
    float *data = calloc(count, sizeof *data);
    for (size_t k = 0; k < count; k++)
      data[k] = (float)test_random_range(&random, -8, 8) / 8;
    inputs[i] = (pph_tensor){PPH_F32, shape, data};
    text = strchr(text, ' ') ? strchr(text, ' ') + 1 : text;
  }
  assert_true(output_count <= MOST_OUTPUTS);
  test_assert_ok(pph_session_run(model, inputs, input_count, right,
                                 output_count, &error),
                 &error);
  test_assert_ok(pph_session_run(program, inputs, input_count, found,
                                 output_count, &error),
                 &error);
  check_outputs(one, size, right, found, output_count);
  for (uint32_t i = 0; i < input_count; i++)
    free(inputs[i].data);
}

static void check_case(const open_case *one) {
  pph_model *model = load_text(one->text), *program;
  pph_session *sessions[2];
  pph_session_options options;
  pph_pte_files files;
  pph_heap heap;
  pph_error error = {0};
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(compile(model, one->ranges, one->lowering, &heap, &files,
                         &error),
                 &error);
  test_assert_ok(pph_model_load_bytes(files.program, files.program_bytes, NULL,
                                      NULL, &program, &error),
                 &error);
  if (graph_count(&program->graph, one->kind) != one->count)
    fail_msg("%s: there are %u %s, should be %u", one->name,
             graph_count(&program->graph, one->kind),
             pph_node_kind_find_info(one->kind)->name, one->count);
  pph_session_options_init(&options);
  options.engine = PPH_ENGINE_REFERENCE;
  test_assert_ok(pph_session_create(model, &options, &sessions[0], &error),
                 &error);
  test_assert_ok(pph_session_create(program, &options, &sessions[1], &error),
                 &error);
  for (int i = 0; i < MOST_SIZES && one->sizes[i]; i++)
    check_size(one, one->sizes[i], sessions[0], sessions[1],
               pph_model_input_count(model), pph_model_output_count(model));
  pph_session_destroy(sessions[0]);
  pph_session_destroy(sessions[1]);
  pph_model_destroy(program);
  pph_model_destroy(model);
  pph_pte_files_clear(&files, &heap);
  assert_int_equal(atomic_load(&heap.used), 0);
}

static void test_computes_the_same(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++)
    check_case(&cases[i]);
}

/* Inputs and outputs tell the runtime their upper bounds, and others that they
   are fixed. */
static void test_tensors_are_bounded(void **state) {
  (void)state;
  static const char *const ranges[] = {"1x4x2..40"};
  pph_model *model = load_text(
      "input %x f32 [1,4,?]\nconst %w f32 [2,4,1] = splat 77\n"
      "%y = Conv(%x, %w)\n%g = GlobalAveragePool(%y)\noutput %y\noutput %g\n");
  pph_heap heap;
  pph_pte_files files;
  pph_pte *pte;
  pph_error error = {0};
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(compile(model, ranges, AUTO, &heap, &files,
                         &error),
                 &error);
  const pph_pte_source source = {"", {files.program, files.program_bytes}};
  test_assert_ok(pph_pte_open(&source, NULL, 0, &heap, &pte, &error), &error);
  const pph_pte_plan *plan = pph_pte_find_method(pte, "forward");
  static const int32_t bounds[] = {40, 40, 1}, dynamism[] = {1, 1, 0};
  assert_int_equal(plan->values.count, 3);
  for (uint32_t i = 0; i < 3; i++) {
    const pph_pte_tensor *tensor = plan->values.at[i].val.value;
    assert_int_equal(tensor->sizes.at[2], bounds[i]);
    assert_int_equal(tensor->shape_dynamism, dynamism[i]);
    assert_non_null(tensor->allocation_info);
  }
  /* In and out, [1,4,40] and [1,2,40] floats, at multiples of 16. */
  assert_int_equal(plan->non_const_buffer_sizes.at[1], 640 + 320 + 16);
  pph_pte_close(pte);
  pph_pte_files_clear(&files, &heap);
  pph_model_destroy(model);
}

typedef struct refusal {
  const char *text;
  const char *ranges[MOST_INPUTS];
  pph_lowering lowering;
  pph_status status;
  const char *says[2];
} refusal;

static const refusal refusals[] = {
    {"input %x f32 [1,4,?,?]\nconst %none f32 [0] = {}\n"
     "const %up f32 [4] = {1, 1, 2, 2}\n"
     "%l = Resize(%x, %none, %up) {mode=\"linear\","
     " coordinate_transformation_mode=\"align_corners\"}\noutput %l\n",
     {"1x4x4..9x4..9"}, AUTO, PPH_UNSUPPORTED,
     {"Resize", "interpolation to open lengths"}},
    {"input %x f32 [?,2,3]\nconst %w f32 [1,12,3] = splat 77\n"
     "const %r f32 [1,12,4] = splat 77\n%a, _ = GRU(%x, %w, %r)\noutput %a\n",
     {"2..9x2x3"}, AUTO, PPH_UNSUPPORTED,
     {"GRU", "lengths decide what is computed"}},
    {"input %x f32 [?,4,?]\nconst %w f32 [4,4,3] = splat 77\n"
     "%y = Conv(%x, %w)\noutput %y\n",
     {"1..3x4x4..9"}, AUTO, PPH_UNSUPPORTED,
     {"Relayout", "two open lengths in one reshape"}},
    {IMAGE TRANSPOSED, {"1x4x3..16x3..16"}, ALWAYS,
     PPH_UNSUPPORTED, {"two open lengths in one reshape", "node"}},
    {"input %x f32 [1,4,?,?]\n" WEIGHTS
     "%a = Conv(%x, %w, %b) {strides=[2,2], auto_pad=\"SAME_UPPER\"}\n"
     "output %a\n",
     {"1x4x4..20x4..20"}, AUTO, PPH_UNSUPPORTED,
     {"would give", "a step"}},
    {"input %x f32 [1,4,8]\n%y = Relu(%x)\noutput %y\n", {"1x4x4..8"},
     AUTO, PPH_INVALID_ARGUMENT,
     {"has shape [1,4,4], must be [1,4,8]", ""}},
    {"input %x f32 [1,4,?]\n%y = Relu(%x)\noutput %y\n", {"1x4x9..8"},
     AUTO, PPH_INVALID_ARGUMENT,
     {"dimension 2 has the lengths 9..8:1", "below the second"}},
    {"input %x f32 [1,4,?]\n%y = Relu(%x)\noutput %y\n", {"1x4x4..8:5"},
     AUTO, PPH_INVALID_ARGUMENT,
     {"4..8:5", "the step at most their distance"}},
    {"input %x f32 [1,?](_,\"t\")\ninput %y f32 [1,?](_,\"t\")\n"
     "%z = Add(%x, %y)\noutput %z\n",
     {"1x4..8", "1x4..9"}, AUTO, PPH_INVALID_ARGUMENT,
     {"dimension 1 is \"t\"", "other lengths in input \"y\""}},
};

static void test_refusals(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    const refusal *one = &refusals[i];
    pph_model *model = load_text(one->text);
    pph_heap heap;
    pph_pte_files files;
    pph_error error = {0};
    pph_heap_init(&heap, NULL, 0);
    pph_status status = compile(model, one->ranges, one->lowering, &heap,
                                &files, &error);
    if (status != one->status || !strstr(error.message, one->says[0]) ||
        !strstr(error.message, one->says[1]))
      fail_msg("%s\n%s: %s", one->text, pph_status_name(status),
               error.message);
    assert_null(files.program);
    assert_int_equal(atomic_load(&heap.used), 0);
    pph_model_destroy(model);
  }
}

/* Memory that runs out anywhere is told, and nothing is left behind. */
static void test_no_memory(void **state) {
  (void)state;
  static const char *const ranges[] = {"1x4x2..40"};
  pph_model *model = load_text(cases[0].text);
  pph_status status = PPH_OUT_OF_MEMORY;
  for (size_t fail_at = 1; status != PPH_OK; fail_at++) {
    test_failing memory = {.fail_at = fail_at};
    pph_allocator allocator = test_failing_allocator(&memory);
    pph_heap heap;
    pph_pte_files files;
    pph_error error = {0};
    pph_heap_init(&heap, &allocator, 0);
    status = compile(model, ranges, AUTO, &heap, &files, &error);
    assert_true(status == PPH_OK || status == PPH_OUT_OF_MEMORY);
    assert_true((status == PPH_OK) == (files.program != NULL));
    pph_pte_files_clear(&files, &heap);
    assert_int_equal(memory.open, 0);
  }
  pph_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_computes_the_same),
      cmocka_unit_test(test_tensors_are_bounded),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
