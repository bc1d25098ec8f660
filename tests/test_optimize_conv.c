/* Convolutions of ExecuTorch programs written as minimal filtering, and several
   pixels at once: each form computes what the convolution does, at every kind
   of edge, and is left alone by a second run. */
#include <math.h>

#include "base/checked.h"
#include "graph/shape.h"
#include "graph_runner.h"
#include "optimize/filter_form.h"
#include "optimize/optimize.h"
#include "pte/container_write.h"
#include "pte/import_plan.h"
#include "pte/program_export.h"

typedef struct conv_case {
  const char *input, *weight, *attributes;
  uint32_t out_channels, taps;
  bool is_filtered; /* some filter has a form for it */
  uint32_t pixels;  /* that its columns are a multiple of; 1: none */
} conv_case;

static const conv_case cases[] = {
    {"[1,5,8,6]", "[4,5,3,3]", "pads=[1,1,1,1]", 4, 3, true, 3},
    {"[2,3,11,7]", "[5,3,3,3]", "pads=[1,1,1,1]", 5, 3, true, 7},
    {"[1,3,9,8]", "[2,3,3,2]", "pads=[0,0,0,1]", 2, 3, true, 4},   /* no pads */
    {"[1,3,9,8]", "[2,3,3,3]", "pads=[2,1,2,1]", 2, 3, true, 8},   /* full */
    {"[1,2,6,5]", "[3,2,2,2]", "pads=[1,0,0,1]", 3, 2, true, 5},   /* phases */
    {"[1,2,6,5]", "[3,2,2,2]", "pads=[0,1,1,0]", 3, 2, true, 5},
    {"[1,4,7,6]", "[3,4,5,5]", "pads=[2,2,2,2]", 3, 5, true, 2},
    {"[1,2,13,4]", "[2,2,7,3]", "pads=[3,1,3,1]", 2, 7, true, 4},  /* groups */
    {"[1,2,9,4]", "[2,2,11,1]", "pads=[5,0,5,0]", 2, 11, true, 4},
    {"[1,3,8,9]", "[4,3,3,5]", "strides=[1,2], pads=[1,2,1,2]", 4, 3, true, 1},
    {"[1,3,8,9]", "[4,3,3,2]", "dilations=[1,3], pads=[1,1,1,2]", 4, 3, true, 1},
    {"[1,3,1,4]", "[4,3,3,3]", "pads=[1,1,1,1]", 4, 3, true, 2},   /* one row */
    {"[1,3,2,1]", "[4,3,3,1]", "pads=[1,0,1,0]", 4, 3, true, 2},   /* a column */
    {"[1,3,24]", "[4,3,3]", "pads=[1,1]", 4, 3, true, 12},         /* lines */
    {"[2,3,24]", "[4,3,3]", "dilations=[4], pads=[4,4]", 4, 3, true, 1},
    {"[1,3,30]", "[4,3,7]", "dilations=[3], pads=[9,9]", 4, 7, true, 1},
    {"[1,3,29]", "[1,3,11]", "pads=[5,5]", 1, 11, true, 1},
    {"[1,3,16]", "[1,3,7]", "pads=[3,3]", 1, 7, true, 16},
    {"[1,3,25]", "[4,3,3]", "dilations=[4], pads=[4,4]", 4, 3, false, 1},
    {"[1,3,8,8]", "[4,3,3,3]", "strides=[2,2], pads=[1,1,1,1]", 4, 3, false, 1},
    {"[1,3,8,8]", "[4,3,3,3]", "dilations=[2,2], pads=[2,2,2,2]", 4, 3, false, 1},
    {"[1,4,8,8]", "[4,2,3,3]", "group=2, pads=[1,1,1,1]", 4, 3, false, 1},
    {"[1,3,8,8]", "[4,3,1,1]", "pads=[0,0,0,0]", 4, 1, false, 8},
};
enum { CASES = sizeof cases / sizeof *cases };

static void export_graph(graph_trial *t, bool external, pph_pte_files *files) {
  pph_graph graph;
  pph_pass_options options;
  pph_error error = {0};
  const pph_pte_export_options writes = {.external = external};
  pph_pass_options_init(&options);
  test_assert_ok(pph_graph_copy(&graph, &t->graph, &t->heap, &error), &error);
  test_assert_ok(pph_pipeline_run(&graph, &options, &error), &error);
  test_assert_ok(pph_pte_export(&graph, &writes, files, &error), &error);
  pph_graph_clear(&graph);
}

/* The program in `files`, rewritten; how many things were changed. */
static uint32_t optimize_files(graph_trial *t, const pph_optimize_options *options,
                               pph_pte_files *files) {
  pph_optimize_result result;
  pph_pte_files made = {.program = NULL};
  pph_error error = {0};
  pph_pte *pte;
  test_assert_ok(pph_pte_files_open(files, &t->heap, &pte, &error), &error);
  test_assert_ok(pph_pte_optimize(pte, options, &result, &error), &error);
  test_assert_ok(pph_pte_write(pte, &t->heap, &made.program,
                               &made.program_bytes, &error),
                 &error);
  if (files->constants)
    test_assert_ok(pph_pte_write_external(&pte->externals[0], &t->heap,
                                          &made.constants,
                                          &made.constant_bytes, &error),
                   &error);
  pph_pte_close(pte);
  pph_pte_files_clear(files, &t->heap);
  *files = made;
  return result.changes;
}

static void run_files(graph_trial *t, const pph_pte_files *files,
                      graph_results *results) {
  pph_error error = {0};
  pph_graph graph;
  pph_pte *pte;
  test_assert_ok(pph_pte_files_open(files, &t->heap, &pte, &error), &error);
  const pph_pte_plan *plan = pph_pte_find_method(pte, "forward");
  assert_non_null(plan);
  pph_graph_init(&graph, &t->heap, NULL);
  test_assert_ok(pph_pte_import(pte, plan, &graph, &error), &error);
  test_assert_ok(pph_shape_infer(&graph, &error), &error);
  test_assert_ok(graph_run(&graph, t->inputs, results, &error), &error);
  pph_graph_clear(&graph);
  pph_pte_close(pte);
}

/* Rewritten once it computes the same; again, nothing is left to do. */
static void check(const char *text, const pph_optimize_options *options,
                  bool external, bool changes) {
  graph_trial t;
  pph_pte_files files;
  graph_results found = {0};
  graph_trial_open(&t, text, 11);
  export_graph(&t, external, &files);
  bool made = optimize_files(&t, options, &files) > 0;
  if (made != changes)
    fail_msg("filter %u, %u pixels: %schanged: %s",
             options->only_filter, options->only_pixels, made ? "" : "not ",
             text);
  run_files(&t, &files, &found);
  double distance = graph_results_distance(&t.expected, &found);
  if (!(distance < 1e-4))
    fail_msg("filter %u, %u pixels: results differ by %g: %s",
             options->only_filter, options->only_pixels, distance, text);
  if (optimize_files(&t, options, &files))
    fail_msg("filter %u, %u pixels: a second run changes what the first made "
             "of %s",
             options->only_filter, options->only_pixels, text);
  graph_results_release(&found);
  pph_pte_files_clear(&files, &t.heap);
  graph_trial_close(&t);
}

/* With a bias and a clamp that cuts some of what there is, or neither. */
static void describe(const conv_case *one, bool is_bare, char *text,
                     size_t size) {
  if (is_bare)
    snprintf(text, size,
             "input %%x f32 %s\nconst %%w f32 %s = splat 77\n"
             "%%y = Conv(%%x, %%w) {%s}\noutput %%y\n",
             one->input, one->weight, one->attributes);
  else
    snprintf(text, size,
             "input %%x f32 %s\nconst %%w f32 %s = splat 77\n"
             "const %%b f32 [%u] = splat 77\nconst %%l f32 [] = {-9}\n"
             "const %%h f32 [] = {9}\n%%v = Conv(%%x, %%w, %%b) {%s}\n"
             "%%y = Clip(%%v, %%l, %%h)\noutput %%y\n",
             one->input, one->weight, one->out_channels, one->attributes);
}

/* Longer kernels than a filter's are for those of as many outputs as taps. */
static bool has_form(const conv_case *one, const pph_filter_form *form) {
  return one->is_filtered &&
         (one->taps <= form->taps || form->outputs == form->taps);
}

static void test_filters(void **state) {
  uint32_t count;
  const pph_filter_form *forms = pph_filter_forms(&count);
  char text[512];
  (void)state;
  for (uint32_t f = 0; f < count; f++)
    for (int i = 0; i < CASES; i++) {
      const pph_optimize_options options = {.only_filter = f + 1,
                                            .only_pixels = 1};
      describe(&cases[i], (i + f) % 2, text, sizeof text);
      check(text, &options, i % 3 == 0, has_form(&cases[i], &forms[f]));
    }
}

static void test_pixels(void **state) {
  char text[512];
  (void)state;
  for (int i = 0; i < CASES; i++) {
    const pph_optimize_options options = {.accuracy = PPH_ACCURACY_EXACT,
                                          .only_pixels = cases[i].pixels};
    describe(&cases[i], i % 2, text, sizeof text);
    check(text, &options, i % 3 == 0, cases[i].pixels > 1);
  }
}

/* What the cost rules take by themselves, and at which accuracy. */
static void test_rules(void **state) {
  static const char wide[] =
      "input %x f32 [1,64,32,32]\nconst %w f32 [64,64,3,3] = splat 77\n"
      "%y = Conv(%x, %w) {pads=[1,1,1,1]}\noutput %y\n";
  static const char narrow[] =
      "input %x f32 [1,16,64,64]\nconst %w f32 [2,16,3,3] = splat 77\n"
      "%y = Conv(%x, %w) {pads=[1,1,1,1]}\noutput %y\n";
  static const char small[] =
      "input %x f32 [1,4,4,4]\nconst %w f32 [16,4,3,3] = splat 77\n"
      "%y = Conv(%x, %w) {pads=[1,1,1,1]}\noutput %y\n";
  (void)state;
  for (int accuracy = PPH_ACCURACY_NORMAL; accuracy <= PPH_ACCURACY_EXACT;
       accuracy++) {
    const pph_optimize_options options = {.accuracy = (pph_accuracy)accuracy};
    check(wide, &options, false, accuracy != PPH_ACCURACY_EXACT);
    check(narrow, &options, false, 1);
    check(small, &options, false, 0);
  }
}

/* E (docs/numbers): the error beside the largest sum of magnitudes that a
   tile's inputs have part in, over eps. */
static double find_error(const graph_results *found,
                         const graph_results *expected,
                         const graph_results *magnitude) {
  enum { NEAR = 8 };
  const int64_t *d = expected->tensors[0].shape.dims;
  const float *a = found->tensors[0].data, *b = expected->tensors[0].data;
  const float *m = magnitude->tensors[0].data;
  double worst = 0;
  for (int64_t i = 0; i < d[0] * d[1] * d[2] * d[3]; i++) {
    int64_t row = i / d[3] % d[2];
    double most = 0;
    for (int64_t k = -NEAR; k <= NEAR; k++)
      if (row + k >= 0 && row + k < d[2])
        most = fmax(most, m[i + k * d[3]]);
    worst = fmax(worst, fabs((double)a[i] - b[i]) / (most * 0x1p-23));
  }
  return worst;
}

/* A sum of twelve uniform numbers. */
static float draw(test_random *random) {
  double sum = 0;
  for (int i = 0; i < 12; i++)
    sum += (double)test_random_range(random, -1000, 1000);
  return (float)(sum / 2000);
}

static void fill_normal(test_random *random, float *to, size_t count,
                        bool is_magnitude) {
  for (size_t i = 0; i < count; i++) {
    float x = draw(random);
    to[i] = is_magnitude ? fabsf(x) : x;
  }
}

static void open_normal(graph_trial *t, const char *text, bool is_magnitude) {
  pph_error error = {0};
  test_random random = {5};
  pph_tensor weight;
  graph_trial_open(t, text, 11);
  pph_node_find_constant(&t->graph, t->graph.first, 1, &weight);
  size_t count;
  assert_true(pph_shape_count(&weight.shape, &count));
  fill_normal(&random, weight.data, count, is_magnitude);
  assert_true(pph_shape_count(&t->inputs[0].shape, &count));
  fill_normal(&random, t->inputs[0].data, count, is_magnitude);
  graph_results_release(&t->expected);
  test_assert_ok(graph_run(&t->graph, t->inputs, &t->expected, &error),
                 &error);
}

static void test_errors(void **state) {
  uint32_t count;
  const pph_filter_form *forms = pph_filter_forms(&count);
  char text[256];
  (void)state;
  for (uint32_t f = 0; f < count; f++) {
    const pph_optimize_options options = {.only_filter = f + 1,
                                          .only_pixels = 1};
    graph_trial t, magnitude;
    pph_pte_files files;
    graph_results found = {0};
    snprintf(text, sizeof text,
             "input %%x f32 [1,48,23,6]\n"
             "const %%w f32 [8,48,%u,3] = splat 77\n"
             "%%y = Conv(%%x, %%w) {pads=[1,1,%u,1]}\noutput %%y\n",
             forms[f].taps, forms[f].taps - 2);
    open_normal(&t, text, false);
    open_normal(&magnitude, text, true);
    export_graph(&t, false, &files);
    assert_int_not_equal(optimize_files(&t, &options, &files), 0);
    run_files(&t, &files, &found);
    double error = find_error(&found, &t.expected, &magnitude.expected);
    if (!(error <= (forms[f].is_high ? 4 : 24)))
      fail_msg("%s: F(%u, %u) has E = %g", text, forms[f].outputs,
               forms[f].taps, error);
    graph_results_release(&found);
    pph_pte_files_clear(&files, &t.heap);
    graph_trial_close(&magnitude);
    graph_trial_close(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_filters), cmocka_unit_test(test_pixels),
      cmocka_unit_test(test_rules), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
