/* Graphs to ExecuTorch programs and back: what is written opens, imports, and
   computes what the graph does. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/sha256.h"
#include "graph/shape.h"
#include "graph_runner.h"
#include "optimize/optimize.h"
#include "pte/container_write.h"
#include "pte/import_plan.h"
#include "pte/program_export.h"

typedef struct export_case {
  const char *name, *text;
  pph_polyphase_mode mode;
} export_case;

#define X2D "input %x f32 [2,4,5,6]\n"
#define ALWAYS PPH_POLYPHASE_ALWAYS
#define NEVER PPH_POLYPHASE_NEVER

static const export_case cases[] = {
    {"dense phases, one convolution",
     X2D "const %w f32 [4,3,4,4] = splat 77\nconst %b f32 [3] = {1, -2, 3}\n"
         "%y = ConvTranspose(%x, %w, %b) {strides=[2,2], pads=[1,1,1,1]}\n"
         "%z = Relu(%y)\noutput %z\n",
     ALWAYS},
    {"depthwise phases, odd kernel",
     X2D "const %w f32 [4,1,3,3] = splat 77\n"
         "%y = ConvTranspose(%x, %w) {strides=[2,2], group=4, pads=[1,1,1,1],"
         " output_padding=[1,1]}\noutput %y\n",
     ALWAYS},
    {"phases without taps, crops",
     X2D "const %w f32 [4,2,1,2] = splat 77\nconst %b f32 [2] = {1, -2}\n"
         "%y = ConvTranspose(%x, %w, %b) {strides=[3,3], pads=[0,1,1,0]}\n"
         "output %y\n",
     ALWAYS},
    {"deconvolution, grouped, asymmetric",
     X2D "const %w f32 [4,3,3,2] = splat 77\nconst %b f32 [6] ="
         " {1, 2, 3, 4, 5, 6}\n"
         "%y = ConvTranspose(%x, %w, %b) {strides=[2,3], group=2,"
         " pads=[1,0,0,1], output_padding=[0,1]}\n"
         "%z = LeakyRelu(%y) {alpha=0.25}\noutput %z\n",
     NEVER},
    {"no deconvolution of XNNPACK's, however small",
     "input %x f32 [2,4,1,1]\nconst %w f32 [4,1,1,2] = splat 77\n"
     "%y = ConvTranspose(%x, %w) {strides=[3,2], group=4}\noutput %y\n",
     PPH_POLYPHASE_AUTO},
    {"one dimension",
     "input %x f32 [2,4,7]\nconst %w f32 [4,3,8] = splat 77\n"
     "const %v f32 [3,1,3] = splat 77\nconst %s f32 [] = {0.5}\n"
     "%y = ConvTranspose(%x, %w) {strides=[4], pads=[2,2]}\n"
     "%m = Mul(%y, %s)\n"
     "%c = Conv(%m, %v) {group=3, pads=[1,1]}\noutput %c\noutput %m\n",
     ALWAYS},
    {"convolutions and pools",
     X2D "const %w f32 [6,2,3,2] = splat 77\nconst %b f32 [6] ="
         " {1, 2, 3, 4, 5, 6}\nconst %v f32 [12,1,3,3] = splat 77\n"
         "const %six f32 [] = {6}\nconst %zero f32 [] = {0}\n"
         "%a = Conv(%x, %w, %b) {group=2, strides=[2,1], pads=[2,0,1,1],"
         " dilations=[1,2]}\n%k = Clip(%a, %zero, %six)\n"
         "%d = Conv(%k, %v) {group=6, pads=[1,1,1,1]}\n"
         "%p = MaxPool(%d) {kernel_shape=[2,2], ceil_mode=1, strides=[2,2]}\n"
         "%q = AveragePool(%d) {kernel_shape=[3,3], pads=[1,1,1,1]}\n"
         "%i = AveragePool(%d) {kernel_shape=[3,2], pads=[1,1,0,1],"
         " strides=[1,2], count_include_pad=1}\n"
         "%g = GlobalAveragePool(%q)\n%h = GlobalMaxPool(%q)\n"
         "output %p\noutput %g\noutput %h\noutput %i\n",
     ALWAYS},
    {"resizing and blocks",
     X2D "const %up f32 [4] = {1, 1, 2, 3}\n"
         "const %up2 f32 [4] = {1, 1, 2, 2}\n"
         "const %none f32 [0] = {}\n"
         "%n = Resize(%x, %none, %up) {mode=\"nearest\","
         " coordinate_transformation_mode=\"asymmetric\","
         " nearest_mode=\"floor\"}\n"
         "%l = Resize(%x, %none, %up2) {mode=\"linear\"}\n"
         "%d = DepthToSpace(%x) {blocksize=[2,2], mode=\"CRD\"}\n"
         "%e = DepthToSpace(%x) {blocksize=[2,2], mode=\"DCR\"}\n"
         "%s = SpaceToDepth(%n) {blocksize=[2,3]}\n"
         "output %n\noutput %l\noutput %d\noutput %e\noutput %s\n",
     ALWAYS},
    {"moves",
     X2D "const %b i64 [2] = {1, 0}\nconst %e i64 [2] = {3, 4}\n"
         "const %a i64 [2] = {1, 2}\nconst %pad i64 [8] ="
         " {0, 0, 1, -1, 0, 0, 2, 1}\n"
         "const %far f32 [] = {9}\nconst %r i64 [3] = {2, 20, 6}\n"
         "const %mirror i64 [8] = {0, 0, 2, 1, 0, 0, 1, 3}\n"
         "const %t i64 [4] = {1, 1, 2, 1}\n"
         "const %w f32 [4,4,1,1] = splat 77\n%c = Conv(%x, %w)\n"
         "%s = Slice(%c, %b, %e, %a)\n%p = Pad(%c, %pad, %far)\n"
         "%m = Pad(%c, %mirror) {mode=\"reflect\"}\n"
         "%k = Concat(%c, %x, %c, %c, %c, %c) {axis=1}\n"
         "%q = Reshape(%c, %r)\n%u = Transpose(%c) {perm=[0,2,1,3]}\n"
         "%tt = Tile(%c, %t)\n%f, %h = Split(%c) {axis=1}\n"
         "output %s\noutput %p\noutput %m\noutput %k\noutput %q\noutput %u\n"
         "output %tt\noutput %f\noutput %h\noutput %x\n",
     ALWAYS},
    {"elementwise",
     X2D "const %c f32 [4,1,1] = {1, 2, 3, 4}\nconst %p f32 [5,6] = splat 77\n"
         "const %w f32 [4,4,1,1] = splat 77\nconst %sl f32 [4,1,1] ="
         " {0.5, -1, 0.25, 2}\nconst %two f32 [] = {2}\n"
         "%v = Conv(%x, %w)\n%a = Add(%v, %c)\n%b = Mul(%a, %p)\n"
         "%d = Sub(%b, %x)\n%e = Max(%d, %v, %c)\n%f = PRelu(%d, %sl)\n"
         "%g = Softplus(%d)\n%h = HardSigmoid(%d)\n%i = Sigmoid(%d)\n"
         "%j = Tanh(%d)\n%k = Pow(%d, %two)\n%l = Elu(%d)\n%m = Abs(%d)\n"
         "%n = Add(%m, %two)\n%o = Reciprocal(%n)\n%q = Div(%d, %n)\n"
         "%r = HardSwish(%d)\n"
         "output %e\noutput %f\noutput %g\noutput %h\noutput %i\noutput %j\n"
         "output %k\noutput %l\noutput %o\noutput %q\noutput %r\n",
     ALWAYS},
    {"slices with steps",
     X2D "const %b i64 [3] = {1, 1, 0}\nconst %far i64 [3] = {99, 99, 99}\n"
         "const %a i64 [3] = {1, 2, 3}\nconst %s i64 [3] = {2, 3, 4}\n"
         "const %last i64 [2] = {-1, 9}\nconst %first i64 [2] = {-99, 0}\n"
         "const %back i64 [2] = {-2, -3}\nconst %ax i64 [2] = {2, 3}\n"
         "const %w f32 [4,4,1,1] = splat 77\n%c = Conv(%x, %w)\n"
         "%d = Slice(%c, %b, %far, %a, %s)\n"
         "%e = Slice(%c, %last, %first, %ax, %back)\n"
         "%f = Slice(%x, %b, %far, %a, %s)\n"
         "output %d\noutput %e\noutput %f\n",
     ALWAYS},
    {"gathers",
     X2D "const %i i64 [2,3] = {0, 2, 4, -1, 1, 2}\n"
         "const %k i32 [] = {-3}\nconst %m i64 [4] = {3, 3, 0, 1}\n"
         "%a = Gather(%x, %i) {axis=2}\n%b = Gather(%x, %k) {axis=3}\n"
         "%c = Gather(%x, %m) {axis=-3}\n"
         "output %a\noutput %b\noutput %c\n",
     ALWAYS},
    {"scattered boxes",
     X2D "input %u f32 [2,4,5,6]\ninput %v f32 [1,2,2,6]\n"
         "const %one i64 [1,1] = {1}\n"
         "const %box i64 [1,2,2,3] ="
         " {-1, 1, 2, -1, 1, 3, -1, 2, 2, -1, 2, 3}\n"
         "const %z i64 [1] = {0}\nconst %o i64 [1] = {1}\n"
         "%h = Slice(%u, %z, %o)\n%a = ScatterND(%x, %one, %h)\n"
         "%b = ScatterND(%x, %box, %v)\noutput %a\noutput %b\n",
     ALWAYS},
    {"powers",
     "input %x f32 [2,3]\nconst %e f32 [] = {3}\nconst %f f32 [] = {-1}\n"
     "const %g f32 [1,1,1] = {2.5}\nconst %h f32 [] = {0.45}\n"
     "const %i f32 [3] = {0.25, -1.3, 1.7}\nconst %k f32 [] = {10}\n"
     "%s = Sigmoid(%x)\n%a = Pow(%s, %e)\n%b = Pow(%s, %f)\n"
     "%c = Pow(%s, %g)\n%d = Pow(%s, %h)\n%j = Pow(%s, %i)\n"
     "%l = Pow(%s, %k)\noutput %a\noutput %b\noutput %c\noutput %d\n"
     "output %j\noutput %l\n",
     ALWAYS},
    {"recurrence, reset after the product, both ways",
     "input %x f32 [7,2,3]\ninput %s f32 [2,2,4]\n"
     "const %w f32 [2,12,3] = splat 77\nconst %r f32 [2,12,4] = splat 77\n"
     "const %b f32 [2,24] = splat 77\nconst %half f32 [] = {0.125}\n"
     "%y = Mul(%x, %half)\n%t = Mul(%s, %half)\n"
     "%a, %l = GRU(%y, %w, %r, %b, _, %t) {direction=\"bidirectional\","
     " linear_before_reset=1}\noutput %a\noutput %l\n",
     ALWAYS},
    {"recurrence, reset before the product, backwards",
     "input %x f32 [3,2,3]\n"
     "const %w f32 [1,12,3] = splat 77\nconst %r f32 [1,12,4] = splat 77\n"
     "const %b f32 [1,24] = splat 77\nconst %half f32 [] = {0.125}\n"
     "%y = Mul(%x, %half)\n%a, _ = GRU(%y, %w, %r, %b)"
     " {direction=\"reverse\"}\n_, %l = GRU(%y, %w, %r)\n"
     "output %a\noutput %l\n",
     ALWAYS},
    {"products, reductions, softmax",
     "input %x f32 [2,3,4]\nconst %w f32 [4,5] = splat 77\n"
     "const %v f32 [6,5] = splat 77\nconst %b f32 [6] ="
     " {1, 2, 3, 4, 5, 6}\nconst %r i64 [2] = {6, 5}\nconst %ax i64 [1] ="
     " {-1}\n%m = MatMul(%x, %w)\n%q = Reshape(%m, %r)\n"
     "%g = Gemm(%q, %v, %b) {transB=1, alpha=0.5, beta=2}\n"
     "%t = Transpose(%x) {perm=[0,2,1]}\n%p = MatMul(%x, %t)\n"
     "%s = Softmax(%p)\n%s1 = Softmax(%x) {axis=1}\n"
     "%e = ReduceMean(%x, %ax)\n%u = ReduceSum(%x, %ax) {keepdims=0}\n"
     "output %g\noutput %s\noutput %s1\noutput %e\noutput %u\n",
     ALWAYS},
    {"dense convolutions, a line too",
     X2D "const %w f32 [3,4,3,3] = splat 77\nconst %b f32 [3] = {1, -2, 3}\n"
         "const %v f32 [3,3,5] = splat 77\nconst %r i64 [3] = {2, 3, 30}\n"
         "%y = Conv(%x, %w, %b) {pads=[1,1,1,1]}\n%z = Relu(%y)\n"
         "%l = Reshape(%z, %r)\n%u = Conv(%l, %v) {pads=[4,4], dilations=[2]}\n"
         "output %z\noutput %u\n",
     ALWAYS},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The graph after the passes as files; the caller clears. */
static pph_status export_graph(const pph_graph *source, pph_heap *heap,
                               pph_polyphase_mode mode, bool external,
                               pph_pte_files *files, pph_error *error) {
  pph_graph graph;
  pph_pass_options options;
  pph_pass_options_init(&options);
  options.polyphase = mode;
  test_assert_ok(pph_graph_copy(&graph, source, heap, error), error);
  graph.method = "encode"; /* as of a program whose method it was */
  pph_status status = pph_pipeline_run(&graph, &options, error);
  const pph_pte_export_options writes = {.external = external};
  if (status == PPH_OK)
    status = pph_pte_export(&graph, &writes, files, error);
  pph_graph_clear(&graph);
  return status;
}

/* What the program in `files` computes. */
static void run_files(const pph_pte_files *files, pph_heap *heap,
                      const pph_tensor *inputs, graph_results *results) {
  pph_error error = {0};
  pph_graph graph;
  pph_pte *pte;
  test_assert_ok(pph_pte_files_open(files, heap, &pte, &error), &error);
  const pph_pte_plan *plan = pph_pte_find_method(pte, "encode");
  assert_non_null(plan);
  pph_graph_init(&graph, heap, NULL);
  test_assert_ok(pph_pte_import(pte, plan, &graph, &error), &error);
  assert_string_equal(graph.method, "encode");
  test_assert_ok(pph_shape_infer(&graph, &error), &error);
  test_assert_ok(graph_run(&graph, inputs, results, &error), &error);
  pph_graph_clear(&graph);
  pph_pte_close(pte);
}

static void assert_same_files(const pph_pte_files *a, const pph_pte_files *b) {
  assert_int_equal(a->program_bytes, b->program_bytes);
  assert_memory_equal(a->program, b->program, a->program_bytes);
}

/* The files compute the same. All is released. */
static void close_trial(graph_trial *t, const export_case *one,
                        pph_pte_files *files) {
  graph_results found = {0};
  run_files(files, &t->heap, t->inputs, &found);
  double distance = graph_results_distance(&t->expected, &found);
  if (!(distance < 1e-5))
    fail_msg("%s: results differ by %g", one->name, distance);
  pph_pte_files_clear(files, &t->heap);
  graph_results_release(&found);
  graph_trial_close(t);
}

static void check_case(const export_case *one, bool external) {
  graph_trial t;
  pph_error error = {0};
  pph_pte_files files, again;
  graph_trial_open(&t, one->text, 7);
  test_assert_ok(export_graph(&t.graph, &t.heap, one->mode, external, &files,
                              &error),
                 &error);
  test_assert_ok(export_graph(&t.graph, &t.heap, one->mode, external, &again,
                              &error),
                 &error);
  assert_same_files(&files, &again);
  pph_pte_files_clear(&again, &t.heap);
  close_trial(&t, one, &files);
}

static void test_computes_the_same(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++)
    check_case(&cases[i], false);
}

static void test_constants_beside(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++)
    check_case(&cases[i], true);
}

/* The program rewritten with phases everywhere, in place of the old files. */
static void optimize_files(pph_pte_files *files, pph_heap *heap,
                           bool transposes) {
  const pph_optimize_options options = {.always = true};
  bool external = files->constants != NULL;
  pph_optimize_result result;
  pph_pte_files made = {.program = NULL};
  pph_error error = {0};
  pph_pte *pte;
  test_assert_ok(pph_pte_files_open(files, heap, &pte, &error), &error);
  test_assert_ok(pph_pte_optimize(pte, &options, &result, &error), &error);
  assert_true(!transposes || result.changes);
  test_assert_ok(pph_pte_write(pte, heap, &made.program, &made.program_bytes,
                               &error),
                 &error);
  if (external)
    test_assert_ok(pph_pte_write_external(&pte->externals[0], heap,
                                          &made.constants,
                                          &made.constant_bytes, &error),
                   &error);
  assert_int_equal(!result.changes,
                   made.program_bytes == files->program_bytes &&
                       memcmp(made.program, files->program,
                              made.program_bytes) == 0);
  pph_pte_close(pte);
  pph_pte_files_clear(files, heap);
  *files = made;
}

/* The seeds of fuzz_optimize, which says how they begin: PPH_WRITE_SEEDS names
   their folder. */
static void save_seed(const export_case *one, const pph_pte_files *files) {
  const char *folder = getenv("PPH_WRITE_SEEDS");
  char path[4096];
  size_t length = files->program_bytes;
  const unsigned char head[] = {1, (unsigned char)length,
                                (unsigned char)(length >> 8),
                                (unsigned char)(length >> 16)};
  if (!folder)
    return;
  snprintf(path, sizeof path, "%s/%d%s", folder, (int)(one - cases),
           files->constants ? "-beside" : "");
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fwrite(head, 1, sizeof head, file);
  fwrite(files->program, 1, length, file);
  if (files->constants)
    fwrite(files->constants, 1, files->constant_bytes, file);
  assert_int_equal(fclose(file), 0);
}

/* Programs with deconvolutions compute the same with phases in their place. */
static void check_optimized(const export_case *one, bool external) {
  graph_trial t;
  pph_error error = {0};
  pph_pte_files files;
  graph_trial_open(&t, one->text, 7);
  test_assert_ok(export_graph(&t.graph, &t.heap, NEVER, external, &files,
                              &error),
                 &error);
  save_seed(one, &files);
  optimize_files(&files, &t.heap, strstr(one->text, "ConvTranspose") != NULL);
  close_trial(&t, one, &files);
}

static void test_optimized(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    if (cases[i].mode == PPH_POLYPHASE_AUTO)
      continue; /* has no program without phases */
    check_optimized(&cases[i], false);
    check_optimized(&cases[i], true);
  }
}

/* Every node without a form is named, and nothing is left behind. */
static void check_refused(const char *text, const char *const *names) {
  pph_heap heap;
  pph_graph graph;
  pph_error error = {0};
  pph_pte_files files;
  pph_heap_init(&heap, NULL, 0);
  pph_graph_init(&graph, &heap, NULL);
  graph_parse(&graph, &heap, text);
  assert_int_equal(export_graph(&graph, &heap, ALWAYS, false, &files, &error),
                   PPH_UNSUPPORTED);
  assert_null(files.program);
  for (; *names; names++)
    assert_non_null(strstr(error.message, *names));
  pph_graph_clear(&graph);
  assert_int_equal(atomic_load(&heap.used), 0);
}

static void test_names_what_has_no_form(void **state) {
  (void)state;
  check_refused(X2D "%a = Erf(%x)\n%b = Round(%a)\n%c = Relu(%b)\n"
                    "%d = Sign(%x)\noutput %c\noutput %d\n",
                (const char *const[]){"3 nodes", "Erf", "Round", "Sign", NULL});
}

/* An interleaving reads the phases itself: those must be there. */
static void test_phases_without_a_form(void **state) {
  (void)state;
  check_refused(
      X2D "const %w f32 [3,4,1,1] = splat 77\n"
          "%a = Conv(%x, %w)\n%b = Round(%a)\n"
          "%j = Concat(%a, %b, %a, %b) {axis=1}\n"
          "%y = DepthToSpace(%j) {blocksize=[2,2], mode=\"DCR\"}\n"
          "output %y\n",
      (const char *const[]){"1 node has no form", "Round", NULL});
}

/* The standard's own examples, and a length that needs a block more. */
static void test_digests(void **state) {
  (void)state;
  static const struct {
    const char *text, *digest;
  } known[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc",
       "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char digest[PPH_SHA256_TEXT];
    pph_sha256_print(known[i].text, strlen(known[i].text), digest);
    assert_string_equal(digest, known[i].digest);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_computes_the_same),
      cmocka_unit_test(test_constants_beside),
      cmocka_unit_test(test_optimized),
      cmocka_unit_test(test_names_what_has_no_form),
      cmocka_unit_test(test_phases_without_a_form),
      cmocka_unit_test(test_digests),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
