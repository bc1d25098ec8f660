/* Passes as text in, text out: tests/pass/NAME.txt holds cases of pass NAME.

     === what it shows [always]
     graph text
     ---
     graph text that the pass makes of it

   Shapes are inferred before, dead nodes dropped after. Each case is also run
   before and after on random inputs. [native]: the native operator runs all
   convolutions but those named "elsewhere". POLYPHASE_UPDATE=1 writes what came out
   into the files, to be read before it is kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/shape.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "graph_runner.h"

enum { MAX_TEXT = 1 << 18 };

typedef struct file_case {
  char *title, *before, *after;
} file_case;

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  static char text[MAX_TEXT];
  size_t length = fread(text, 1, MAX_TEXT - 1, file);
  fclose(file);
  text[length] = 0;
  return text;
}

/* Cuts one case off the front of *rest; false when there is none. */
static bool next_case(char **rest, file_case *found) {
  char *start = strstr(*rest, "=== ");
  if (!start)
    return false;
  found->title = start + 4;
  char *end = strchr(found->title, '\n');
  if (!end)
    return false;
  *end = 0;
  found->before = end + 1;
  char *line = strstr(found->before, "---\n");
  if (!line)
    return false;
  *line = 0;
  /* The line's end stays, so that a case without a result ends there too. */
  char *next = strstr(line + 3, "\n=== ");
  found->after = next == line + 3 ? line : line + 4;
  *rest = next ? next + 1 : found->after + strlen(found->after);
  if (next)
    *next = 0;
  return true;
}

static void trim(char *text) {
  size_t length = strlen(text);
  while (length && text[length - 1] == '\n')
    text[--length] = 0;
}

static void compare_values(const pph_graph *before, const pph_graph *after,
                           const char *title) {
  pph_error error = {0};
  test_random random = {7};
  graph_results expected, found;
  pph_tensor *inputs = graph_inputs_make(before, before->heap, &random);
  test_assert_ok(graph_run(before, inputs, &expected, &error), &error);
  test_assert_ok(graph_run(after, inputs, &found, &error), &error);
  double distance = graph_results_distance(&expected, &found);
  if (distance > 1e-5)
    fail_msg("%s: results differ by %g", title, distance);
  graph_results_release(&expected);
  graph_results_release(&found);
  graph_inputs_release(before, before->heap, inputs);
}

static bool runs_here(const pph_graph *graph, const pph_node *node) {
  (void)graph;
  return strcmp(node->name, "elsewhere") != 0;
}

/* What the pass makes of the text, to be released with the heap. */
static char *apply(pph_heap *heap, const char *pass, const file_case *one) {
  pph_error error = {0};
  pph_graph before, graph;
  pph_pass_options options;
  pph_pass_options_init(&options);
  if (strstr(one->title, "[always]"))
    options.polyphase = PPH_POLYPHASE_ALWAYS;
  if (strstr(one->title, "[native]"))
    options.fuses_natively = runs_here;
  graph_parse(&before, heap, one->before);
  /* Where shapes depend on shapes, only the pass itself can infer them. */
  bool inferred = pph_shape_infer(&before, &error) == PPH_OK;
  test_assert_ok(pph_graph_copy(&graph, &before, heap, &error), &error);
  pph_status status = pph_pass_run(&graph, pass, &options, &error);
  if (status == PPH_OK)
    status = pph_pass_drop_dead_nodes(&graph, &options, &error);
  if (status == PPH_OK)
    status = pph_graph_verify(&graph, &error);
  if (status != PPH_OK)
    fail_msg("%s: %s: %s %s", pass, one->title, error.where, error.message);
  if (inferred)
    compare_values(&before, &graph, one->title);
  char *text;
  test_assert_ok(pph_text_print(&graph, 64, &text, &error), &error);
  pph_graph_clear(&graph);
  pph_graph_clear(&before);
  trim(text);
  return text;
}

static void write_file(const char *path, FILE *update, char **text,
                       size_t *size) {
  fclose(update);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  fwrite(*text, 1, *size, file);
  fclose(file);
  free(*text);
}

static void run_file(const char *pass) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/pass/%s.txt", PPH_SOURCE_DIR, pass);
  char *rest = read_file(path);
  if (!rest)
    fail_msg("%s is missing", path);
  char *written = NULL;
  size_t size = 0;
  FILE *update =
      getenv("POLYPHASE_UPDATE") ? open_memstream(&written, &size) : NULL;
  file_case one;
  int wrong = 0, count = 0;
  for (; next_case(&rest, &one); count++) {
    pph_heap heap;
    pph_heap_init(&heap, NULL, 0);
    char *text = apply(&heap, pass, &one);
    trim(one.after);
    if (update)
      fprintf(update, "%s=== %s\n%s---\n%s\n", count ? "\n" : "", one.title,
              one.before, text);
    else if (strcmp(text, one.after) != 0) {
      printf("%s: %s\nexpected:\n%s\nfound:\n%s\n", pass, one.title,
             one.after, text);
      wrong++;
    }
    pph_heap_release(&heap, text);
    assert_int_equal(heap.used, 0);
  }
  if (update)
    write_file(path, update, &written, &size);
  assert_int_not_equal(count, 0);
  assert_int_equal(wrong, 0);
}

static void test_files(void **state) {
  (void)state;
  size_t count;
  const pph_pass *passes = pph_pass_list(&count);
  for (size_t i = 0; i < count; i++) {
    size_t first = 0; /* a pass may stand in the list twice */
    while (strcmp(passes[first].name, passes[i].name) != 0)
      first++;
    if (first == i)
      run_file(passes[i].name);
  }
}

static void test_unknown_name(void **state) {
  (void)state;
  pph_heap heap;
  pph_heap_init(&heap, NULL, 0);
  pph_graph graph;
  pph_graph_init(&graph, &heap, NULL);
  pph_pass_options options;
  pph_pass_options_init(&options);
  pph_error error = {0};
  assert_int_equal(pph_pass_run(&graph, "nonsense", &options, &error),
                   PPH_INVALID_ARGUMENT);
  assert_string_equal(error.message, "there is no pass \"nonsense\"");
  pph_graph_clear(&graph);
}

static void test_dump(void **state) {
  (void)state;
  pph_heap heap;
  pph_heap_init(&heap, NULL, 0);
  pph_graph graph;
  graph_parse(&graph, &heap, "input %x f32 [2]\n"
                             "%y = Relu(%x)\n"
                             "output %y\n");
  char text[4096] = "";
  pph_pass_options options;
  pph_pass_options_init(&options);
  options.dump = "infer_shapes";
  options.dump_file = fmemopen(text, sizeof text, "w");
  assert_non_null(options.dump_file);
  pph_error error = {0};
  test_assert_ok(pph_pipeline_run(&graph, &options, &error), &error);
  fclose(options.dump_file);
  assert_string_equal(text, "# after infer_shapes\n"
                            "input %x f32 [2]\n"
                            "%y: f32 [2] = Relu(%x)\n"
                            "output %y\n\n");
  pph_graph_clear(&graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_files),
                                     cmocka_unit_test(test_unknown_name),
                                     cmocka_unit_test(test_dump)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
