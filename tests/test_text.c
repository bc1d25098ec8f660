/* The text form: round trips of everything it can say, errors with their
   place, and texts that were damaged. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/text.h"
#include "graph/text_number.h"
#include "graph/verify.h"

static pph_heap heap;

static int set_up(void **state) {
  (void)state;
  pph_heap_init(&heap, NULL, (uint64_t)1 << 28);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  assert_int_equal(atomic_load(&heap.used), 0);
  return 0;
}

static void parse(const char *text, pph_graph *graph) {
  pph_error error;
  pph_graph_init(graph, &heap, NULL);
  test_assert_ok(pph_text_parse(text, strlen(text), graph, &error), &error);
}

/* Canonical text comes back as it was. */
static void round_trip(const char *text) {
  pph_graph graph;
  pph_error error;
  char *back;
  parse(text, &graph);
  test_assert_ok(pph_text_print(&graph, SIZE_MAX, &back, &error), &error);
  assert_string_equal(back, text);
  pph_heap_release(&heap, back);
  pph_graph_clear(&graph);
}

static const char whole[] =
    "graph \"all of it\"\n"
    "input %x f32 [1,3,?,?] (\"N\",_,\"h\",\"w\")\n"
    "input %s\n"
    "input %r f32\n"
    "const %w f32 [3,2,1,1] = {1, -2.5, 0.1, -0, inf, nan} external "
    "\"w.bin\"\n"
    "const %b f32 [] = {1e-45}\n"
    "const %none i64 [0] = {}\n"
    "const %many f32 [4,4] = splat 0.5\n"
    "%y: f32 [1,2,?,?] channels_last = ConvTranspose \"up\"(%x, %w, _) "
    "{strides=[2,2], pads=[1,1,1,1], auto_pad=\"NOTSET\"} activation=clamp\n"
    "%a: f32, _, %\"c:0\": [1] = Split(%y) {axis=-1}\n"
    "%z = LeakyRelu \"r\"(%a) {alpha=0.2} activation=leaky_relu\n"
    "%k = Transpose(%z) {perm=[]}\n"
    "output %k\n"
    "output %\"c:0\"\n";

static void test_whole(void **state) {
  (void)state;
  round_trip(whole);
  round_trip("");
  round_trip("input %x f32 [1,2,3,4,5,6,7,8] channels_last\n");
}

static void test_meaning(void **state) {
  (void)state;
  pph_graph graph;
  parse(whole, &graph);
  assert_string_equal(graph.name, "all of it");
  assert_int_equal(graph.input_count, 3);
  const pph_value *x = pph_graph_value(&graph, graph.inputs[0]);
  assert_string_equal(x->name, "x");
  assert_int_equal(x->type, PPH_F32);
  assert_int_equal(x->shape.rank, 4);
  assert_int_equal(x->shape.dims[1], 3);
  assert_int_equal(x->shape.dims[2], -1);
  assert_string_equal(x->dim_names[3], "w");
  assert_null(x->dim_names[1]);
  const pph_value *s = pph_graph_value(&graph, graph.inputs[1]);
  assert_false(s->has_rank);
  assert_int_equal(s->type, PPH_DTYPE_NONE);

  const pph_node *up = graph.first;
  assert_int_equal(up->kind, PPH_NODE_CONV_TRANSPOSE);
  assert_string_equal(up->name, "up");
  assert_int_equal(up->input_count, 3);
  assert_int_equal(up->inputs[2], PPH_NO_VALUE);
  assert_int_equal(up->activation, PPH_ACTIVATION_CLAMP);
  uint32_t count;
  const int64_t *strides = pph_node_ints(up, PPH_ATTR_STRIDES, &count);
  assert_int_equal(count, 2);
  assert_int_equal(strides[1], 2);
  assert_string_equal(pph_node_text(up, PPH_ATTR_AUTO_PAD, ""), "NOTSET");
  pph_tensor weight;
  assert_true(pph_node_find_constant(&graph, up, 1, &weight));
  assert_true(((float *)weight.data)[1] == -2.5f);
  assert_string_equal(
      pph_graph_value(&graph, up->inputs[1])->origin.external, "w.bin");

  const pph_node *split = up->next;
  assert_int_equal(split->output_count, 3);
  assert_int_equal(split->outputs[1], PPH_NO_VALUE);
  assert_int_equal(pph_node_int(split, PPH_ATTR_AXIS, 0), -1);
  assert_ptr_equal(pph_graph_value(&graph, split->outputs[2])->producer,
                   split);
  assert_true(pph_node_float(split->next, PPH_ATTR_ALPHA, 0) == 0.2f);
  assert_int_equal(graph.output_count, 2);
  pph_graph_clear(&graph);
}

/* Types may be left out, lists may break, blanks do not matter. */
static void test_loose(void **state) {
  (void)state;
  pph_graph graph;
  pph_error error;
  char *text;
  parse("  # a comment\n\n"
        "\tinput  %x:f32[ 1 , ?](_ , \"w\")\r\n"
        "const %p : i64 [2]={ 0x10 , # first\n\n  -0x2 }   # ] }\n"
        "%y=Add ( %x,\n %x )  { } # done\n"
        "output %y",
        &graph);
  test_assert_ok(pph_text_print(&graph, SIZE_MAX, &text, &error), &error);
  assert_string_equal(text, "input %x f32 [1,?] (_,\"w\")\n"
                            "const %p i64 [2] = {16, -2}\n"
                            "%y = Add(%x, %x)\n"
                            "output %y\n");
  pph_heap_release(&heap, text);
  pph_graph_clear(&graph);
}

static void test_names(void **state) {
  (void)state;
  round_trip("graph \"\\\"\\\\\\n\\r\\t\\x01\\x7f\\x9b "
             "\xc3\xa9 \xe2\x82\xac\"\n"
             "input %a/b.c~1-2_3\n"
             "input %\"a b\"\n"
             "input %\"x:0\"\n"
             "input %\"\\\"\"\n"
             "input %\"\xc3\xa9\"\n"
             "input %\"\\xc2\\x85\"\n"
             "input %\"\\xff\"\n"
             "input %_\n"
             "%ab = Relu \"\\n\"(%_)\n");
}

/* Names made after parsing stay apart from names that were parsed. */
static void test_made_names(void **state) {
  (void)state;
  pph_graph graph;
  pph_id id;
  pph_error error;
  parse("input %v~0\ninput %v~7\ninput %w~x9\ninput %~\n", &graph);
  test_assert_ok(pph_graph_add_value(&graph, NULL, &id, &error), &error);
  test_assert_ok(pph_graph_verify(&graph, &error), &error);
  assert_string_equal(pph_graph_value(&graph, id)->name, "v~8");
  pph_graph_clear(&graph);
}

static void test_elements(void **state) {
  (void)state;
  round_trip("const %a f32 [5] = {3.4028235e+38, 1.1754944e-38, -inf, "
             "nan:0x7fc00001, nan:0xffc00000}\n");
  round_trip("const %a f64 [6] = {0.1, 5e-324, "
             "1.7976931348623157e+308, inf, nan, nan:0xfff8000000000000}\n");
  round_trip("const %a f16 [7] = {6.55e+04, 6e-08, 6.1e-05, 0.1, -inf, nan, "
             "nan:0xfe01}\n");
  round_trip("const %a u8 [2] = {0, 255}\n");
  round_trip("const %a i8 [2] = {-128, 127}\n");
  round_trip("const %a u16 [1] = {65535}\n");
  round_trip("const %a i16 [2] = {-32768, 32767}\n");
  round_trip("const %a i32 [2] = {-2147483648, 2147483647}\n");
  round_trip("const %a u32 [1] = {4294967295}\n");
  round_trip("const %a i64 [2] = {-9223372036854775808, "
             "9223372036854775807}\n");
  round_trip("const %a u64 [1] = {18446744073709551615}\n");
  round_trip("const %a bool [2] = {0, 1}\n");
  round_trip("const %a bool [2,5] = splat 1\n");
  round_trip("const %a i16 [9] = splat -3\n");
  round_trip("const %a f32 [3,3] = splat -0\n");
}

static void test_attribute_kinds(void **state) {
  (void)state;
  round_trip("input %x\n"
             "%y = Resize(%x) {mode=\"nearest\", cubic_coeff_a=-0.75, "
             "antialias=1, axes=[-9223372036854775808,3], "
             "extrapolation_value=nan, coordinate_transformation_mode="
             "\"half_pixel\"}\n"
             "%z = Conv(%x, %y) {activation_min=-inf, activation_max=6} "
             "activation=clamp\n");
}

static void test_long_list(void **state) {
  (void)state;
  char text[8192] = "input %x\n%y = Transpose(%x) {perm=[0";
  for (int i = 1; i < 1000; i++)
    snprintf(text + strlen(text), 16, ",%d", i);
  strcat(text, "]}\n");
  round_trip(text);
}

/* Every bit pattern of the small types, random ones of the others. */
static void check_bits(pph_dtype type, uint64_t bits) {
  char word[PPH_TEXT_NUMBER_SIZE];
  uint64_t back = ~bits;
  pph_text_print_number(type, &bits, 0, word);
  assert_true(pph_text_parse_number(type, word, &back, 0));
  if (memcmp(&bits, &back, pph_dtype_size(type)) != 0)
    fail_msg("%s 0x%llx printed as %s", pph_dtype_name(type),
             (unsigned long long)bits, word);
}

static void test_every_bit(void **state) {
  (void)state;
  test_random random = {test_seed("test_every_bit")};
  for (uint64_t bits = 0; bits < 65536; bits++)
    check_bits(PPH_F16, bits);
  for (int i = 0; i < 20000; i++) {
    check_bits(PPH_F32, test_random_next(&random));
    check_bits(PPH_F64, test_random_next(&random));
    check_bits(PPH_I64, test_random_next(&random));
    check_bits(PPH_U32, test_random_next(&random));
    check_bits(PPH_I8, test_random_next(&random));
  }
}

/* Decimals round to the nearest half, ties to even. */
static void test_half_rounding(void **state) {
  (void)state;
  static const struct {
    const char *word;
    uint16_t bits;
  } cases[] = {{"1", 0x3c00},       {"65504", 0x7bff},
               {"65519", 0x7bff},   {"2049", 0x6800},
               {"2051", 0x6802},    {"5.9604645e-08", 0x0001},
               {"2.98e-08", 0x0000}, {"6.1035156e-05", 0x0400},
               {"0x1.ff8p-15", 0x03ff}, {"6.1034e-05", 0x0400}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint16_t bits = 0;
    assert_true(pph_text_parse_number(PPH_F16, cases[i].word, &bits, 0));
    assert_int_equal(bits, cases[i].bits);
  }
}

static void test_bad_numbers(void **state) {
  (void)state;
  static const struct {
    pph_dtype type;
    const char *word;
  } cases[] = {
      {PPH_F32, ""},           {PPH_F32, "1e39"},     {PPH_F32, "1x"},
      {PPH_F32, "infinity"},   {PPH_F32, "nan(1)"},   {PPH_F32, "."},
      {PPH_F32, "--1"},        {PPH_F32, "nan:0"},    {PPH_F32, "nan:"},
      {PPH_F32, "nan:0x1ffffffff"},                   {PPH_F32, "1,5"},
      {PPH_F16, "65520"},      {PPH_F64, "1e999"},    {PPH_U8, "256"},
      {PPH_U8, "-1"},          {PPH_I8, "128"},       {PPH_I8, "-129"},
      {PPH_BOOL, "2"},         {PPH_I64, "9223372036854775808"},
      {PPH_I64, "-9223372036854775809"},              {PPH_I32, "1.5"},
      {PPH_U64, "18446744073709551616"},              {PPH_I32, "0x"},
      {PPH_I32, "abc"},        {PPH_I32, "-"},        {PPH_I32, "1e3"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t bits;
    if (pph_text_parse_number(cases[i].type, cases[i].word, &bits, 0))
      fail_msg("%s was read as %s", cases[i].word,
               pph_dtype_name(cases[i].type));
  }
}

static void test_left_out(void **state) {
  (void)state;
  pph_graph graph, other;
  pph_error error;
  char *text;
  parse("const %a i8 [3] = {1, 2, 3}\nconst %b i8 [9] = splat 4\n", &graph);
  test_assert_ok(pph_text_print(&graph, 2, &text, &error), &error);
  assert_string_equal(text, "const %a i8 [3] = ... fnv 0xd0aa6218672cf5ab\n"
                            "const %b i8 [9] = splat 4\n");
  pph_graph_init(&other, &heap, NULL);
  assert_int_equal(pph_text_parse(text, strlen(text), &other, &error),
                   PPH_BAD_MODEL);
  assert_non_null(strstr(error.message, "left out"));
  pph_graph_clear(&other);
  pph_heap_release(&heap, text);
  pph_graph_clear(&graph);
}

static void test_comments(void **state) {
  (void)state;
  pph_graph graph;
  pph_error error;
  char *text;
  parse("input %x\n%y = Relu \"a\"(%x)\n", &graph);
  graph.first->lowered = "two\nlines";
  test_assert_ok(
      pph_graph_add_note(&graph, graph.first, NULL, "not \"faster\"", &error),
      &error);
  test_assert_ok(pph_text_print(&graph, 2, &text, &error), &error);
  assert_string_equal(text, "input %x\n"
                            "# lowered \"two\\nlines\"\n"
                            "%y = Relu \"a\"(%x)\n"
                            "# note Relu \"a\" because "
                            "\"not \\\"faster\\\"\"\n");
  pph_heap_release(&heap, text);
  pph_graph_clear(&graph);
}

static const struct {
  const char *text, *where, *message;
} mistakes[] = {
    {"input x", "line 1, column 7", "expected a value such as %x, found 'x'"},
    {"input %", "line 1, column 7", "name is empty"},
    {"input %\"\"", "line 1, column 7", "name is empty"},
    {"input %x\ninput %x", "line 2, column 7", "\"x\" is defined twice"},
    {"input %x f33", "line 1, column 10", "found 'f33'"},
    {"input %x f32 [1,", "line 1, column 17", "expected a number"},
    {"input %x f32 [-1]", "line 1, column 15", "must be at least 0"},
    {"input %x f32 [1 2]", "line 1, column 17", "expected ',' or ']'"},
    {"input %x [1,1,1,1,1,1,1,1,1]", "line 1, column 27", "more than 8"},
    {"input %x [1] (_,_)", "line 1, column 17", "more names"},
    {"input %x [1,2] (_)", "line 1, column 17", "1 names of dimensions"},
    {"input %x [1] channels_last", "line 1, column 27", "rank 3"},
    {"input %x %y", "line 1, column 10", "expected a line's end"},
    {"\n\n  outputs %x", "line 3, column 3", "found 'outputs'"},
    {"output %x", "line 1, column 8", "\"x\" is not defined before"},
    {"graph \"a\"\ngraph \"b\"", "line 2, column 6", "name already"},
    {"graph \"a", "line 1, column 7", "does not end"},
    {"graph \"a\nb\"", "line 1, column 7", "does not end"},
    {"graph \"a\\", "line 1, column 7", "does not end"},
    {"graph \"\\q\"", "line 1, column 8", "bad byte or escape"},
    {"graph \"\\x00\"", "line 1, column 8", "bad byte or escape"},
    {"graph \"\\x1\"", "line 1, column 8", "bad byte or escape"},
    {"const %w f32 = {1}", "line 1, column 7", "needs a type and a shape"},
    {"const %w [1] = {1}", "line 1, column 7", "needs a type and a shape"},
    {"const %w f32 [?] = {1}", "line 1, column 7", "unknown or too large"},
    {"const %w f32 [1]", "line 1, column 17", "expected '='"},
    {"const %w f32 [2] = {1}", "line 1, column 20", "1 elements"},
    {"const %w f32 [1] = {1, 2}", "line 1, column 24", "more elements"},
    {"const %w f32 [1] = {x}", "line 1, column 21", "no number of type f32"},
    {"const %w f32 [99] = {1}", "line 1, column 21", "fewer elements"},
    {"const %w u8 [1] = splat 300", "line 1, column 25",
     "300 is no number of type u8"},
    {"const %w f32 [1] = {1} internal", "line 1, column 24", "line's end"},
    {"%y = Relu(%y)", "line 1, column 11", "not defined before"},
    {"%y = Foo()", "line 1, column 6", "unknown node kind Foo"},
    {"%y = Relu()", "line 1, column 1", "Relu has 0 inputs, must have 1"},
    {"input %x\n%y, %z = Relu(%x)", "line 2, column 1", "2 outputs"},
    {"input %x\n%y = Relu(%x) {foo=1}", "line 2, column 16",
     "unknown attribute foo"},
    {"input %x\n%y = Relu(%x) {to=1, to=2}", "line 2, column 22", "twice"},
    {"input %x\n%y = Relu(%x) {to=1.5}", "line 2, column 19", "type i64"},
    {"input %x\n%y = Relu(%x) {mode=1}", "line 2, column 21", "quoted"},
    {"input %x\n%y = Relu(%x) {axes=1}", "line 2, column 21", "'['"},
    {"input %x\n%y = Relu(%x) activation=tanh", "line 2, column 26",
     "clamp, leaky_relu or prelu"},
    {"input %x\n%y = Relu(%x) activation=prelu", "node 0 Relu",
     "activation_slopes"},
    {"input %x\n_ = Relu(%x)", "node 0 Relu", "output 0"},
    {"input %x\n%y = Relu(_)", "node 0 Relu", "input 0 is missing"},
};

static void test_mistakes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    pph_graph graph;
    pph_error error = {PPH_OK, "", ""};
    const char *text = mistakes[i].text;
    pph_graph_init(&graph, &heap, NULL);
    pph_status status = pph_text_parse(text, strlen(text), &graph, &error);
    if (status != PPH_BAD_MODEL || strcmp(error.where, mistakes[i].where) ||
        !strstr(error.message, mistakes[i].message))
      fail_msg("\"%s\" gave %s: %s: %s", text, pph_status_name(status),
               error.where, error.message);
    pph_graph_clear(&graph);
    pph_graph_init(&graph, &heap, NULL);
    assert_int_equal(pph_text_parse(text, strlen(text), &graph, NULL), status);
    pph_graph_clear(&graph);
  }
}

static void test_limits(void **state) {
  (void)state;
  static const char *const texts[] = {
      "const %w f32 [1000,1000,1000] = splat 1",
      "const %w f64 [4611686018427387904] = splat 1",
      "const %w f32 [4294967296,2147483647] = splat 0",
      "input %x\n%a = Relu(%x)\n%b = Relu(%x)\n%c = Relu(%x)"};
  pph_limits limits;
  pph_limits_init(&limits);
  limits.tensor_bytes = 1 << 20;
  limits.nodes = 2;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    pph_graph graph;
    pph_error error;
    pph_graph_init(&graph, &heap, &limits);
    assert_int_equal(
        pph_text_parse(texts[i], strlen(texts[i]), &graph, &error),
        PPH_LIMIT_EXCEEDED);
    assert_memory_equal(error.where, "line ", 5);
    pph_graph_clear(&graph);
  }
}

/* Parses from a block of exactly that size, so that a sanitizer sees a read
   beyond it; a text that is accepted prints to one that comes back the same. */
static bool survive(const char *text, size_t length) {
  pph_graph graph;
  pph_error error;
  pph_limits limits;
  pph_limits_init(&limits);
  limits.tensor_bytes = 1 << 20;
  char *exact = malloc(length + 1);
  assert_non_null(exact);
  memcpy(exact + 1, text, length);
  pph_graph_init(&graph, &heap, &limits);
  pph_status status = pph_text_parse(exact + 1, length, &graph, &error);
  if (status == PPH_OK) {
    char *printed;
    test_assert_ok(pph_text_print(&graph, SIZE_MAX, &printed, &error),
                   &error);
    round_trip(printed);
    pph_heap_release(&heap, printed);
  } else {
    assert_true(error.where[0] && error.message[0]);
  }
  pph_graph_clear(&graph);
  free(exact);
  return status == PPH_OK;
}

static void test_truncated(void **state) {
  (void)state;
  for (size_t length = 0; length < sizeof whole; length++)
    survive(whole, length);
}

static void test_damaged(void **state) {
  (void)state;
  static const char pool[] = "%_\"\\#,:=()[]{}?.-+x019 \n\t\0\xff";
  test_random random = {test_seed("test_damaged")};
  int accepted = 0;
  for (int i = 0; i < 3000; i++) {
    char text[sizeof whole];
    memcpy(text, whole, sizeof whole);
    size_t length = sizeof whole - 1;
    int64_t changes = test_random_range(&random, 1, 3);
    for (int64_t c = 0; c < changes; c++) {
      size_t at = (size_t)test_random_range(&random, 0, (int64_t)length - 2);
      if (test_random_range(&random, 0, 2)) {
        text[at] = pool[test_random_range(&random, 0, sizeof pool - 1)];
      } else {
        length--;
        memmove(text + at, text + at + 1, length - at);
      }
    }
    accepted += survive(text, length);
  }
  assert_true(accepted > 100);
}

/* Deep or long repetitions: no recursion, no quadratic time. */
static void test_repeated(void **state) {
  (void)state;
  static const char *const units[] = {"(", "[", "{", "\"", "%", "%a ", "#",
                                      "\\", "_,", "input %", "%x=Relu("};
  enum { BYTES = 1 << 20 };
  char *text = malloc(BYTES);
  assert_non_null(text);
  for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
    size_t length = strlen(units[u]);
    for (size_t i = 0; i < BYTES; i++)
      text[i] = units[u][i % length];
    pph_graph graph;
    pph_error error;
    pph_graph_init(&graph, &heap, NULL);
    pph_status status = pph_text_parse(text, BYTES, &graph, &error);
    assert_int_equal(status == PPH_OK, units[u][0] == '#');
    pph_graph_clear(&graph);
  }
  free(text);
}

static void test_many_values(void **state) {
  (void)state;
  enum { COUNT = 30000 };
  char *text = malloc(COUNT * 64);
  assert_non_null(text);
  size_t at = 0;
  at += (size_t)sprintf(text + at, "input %%x\n");
  for (int i = 0; i < COUNT; i++)
    at += (size_t)sprintf(text + at, "%%same/long/prefix/%d = Relu(%%x)\n", i);
  at += (size_t)sprintf(text + at, "output %%same/long/prefix/%d\n", COUNT / 2);
  round_trip(text);
  free(text);
}

/* With memory for only so much, an error and nothing left behind. */
static void test_no_memory(void **state) {
  (void)state;
  bool worked = false;
  for (uint64_t limit = 64; !worked; limit += 512) {
    pph_heap small;
    pph_graph graph;
    pph_error error;
    pph_heap_init(&small, NULL, limit);
    pph_graph_init(&graph, &small, NULL);
    pph_status status =
        pph_text_parse(whole, sizeof whole - 1, &graph, &error);
    char *text = NULL;
    if (status == PPH_OK)
      status = pph_text_print(&graph, SIZE_MAX, &text, &error);
    worked = status == PPH_OK;
    if (!worked)
      assert_int_equal(status, PPH_OUT_OF_MEMORY);
    pph_heap_release(&small, text);
    pph_graph_clear(&graph);
    assert_int_equal(atomic_load(&small.used), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole),
      cmocka_unit_test(test_meaning),
      cmocka_unit_test(test_loose),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_made_names),
      cmocka_unit_test(test_elements),
      cmocka_unit_test(test_attribute_kinds),
      cmocka_unit_test(test_long_list),
      cmocka_unit_test(test_every_bit),
      cmocka_unit_test(test_half_rounding),
      cmocka_unit_test(test_bad_numbers),
      cmocka_unit_test(test_left_out),
      cmocka_unit_test(test_comments),
      cmocka_unit_test(test_mistakes),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_repeated),
      cmocka_unit_test(test_many_values),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
