/* Problem descriptors: round trips, refusals, flops. */
#include "test_support.h"

#include <stdio.h>
#include <string.h>

#include "geometry/problem.h"

static const char *const canonical[] = {
    "f32 n1 g1 ci256 co128 i1x400 k1x16 s1x8 d1x1 p0,4,0,4 op0x0",
    "f32 n2 g4 ci8 co12 i5x7 k3x4 s2x3 d2x1 p1,0,2,3 op1x2",
    "f32 n1 g128 ci128 co128 i128x128 k4x4 s2x2 d1x1 p1,1,1,1 op0x0",
    "conv f32 n1 g1 ci64 co64 i128x128 k3x3 s1x1 d1x1 p1,1,1,1",
};

static void test_round_trips(void **state) {
  for (size_t i = 0; i < sizeof canonical / sizeof canonical[0]; i++) {
    pph_problem problem, again;
    pph_error error = {0};
    char text[256];
    test_assert_ok(pph_problem_parse(canonical[i], &problem, &error), &error);
    assert_ptr_equal(pph_problem_print(&problem, text, sizeof text), text);
    assert_string_equal(text, canonical[i]);
    test_assert_ok(pph_problem_parse(text, &again, &error), &error);
    assert_memory_equal(&problem, &again, sizeof problem);
  }
}

static void test_fields(void **state) {
  pph_problem p;
  pph_error error = {0};
  test_assert_ok(pph_problem_parse(canonical[1], &p, &error), &error);
  assert_true(p.transposed);
  assert_int_equal(p.type, PPH_F32);
  assert_int_equal(p.batch, 2);
  assert_int_equal(p.group, 4);
  assert_int_equal(p.in_channels, 8);
  assert_int_equal(p.out_channels, 12);
  const pph_axis height = {5, 3, 2, 2, 1, 2, 1, 11};
  const pph_axis width = {7, 4, 3, 1, 0, 3, 2, 21};
  assert_memory_equal(&p.axes[PPH_HEIGHT], &height, sizeof height);
  assert_memory_equal(&p.axes[PPH_WIDTH], &width, sizeof width);
}

/* op may be left out, and a text that is cut keeps its end. */
static void test_defaults_and_cuts(void **state) {
  pph_problem problem;
  pph_error error = {0};
  char text[256];
  test_assert_ok(
      pph_problem_parse("f32 n1 g1 ci1 co1 i1x4 k1x4 s1x2 d1x1 p0,1,0,1",
                        &problem, &error),
      &error);
  pph_problem_print(&problem, text, sizeof text);
  assert_string_equal(text,
                      "f32 n1 g1 ci1 co1 i1x4 k1x4 s1x2 d1x1 p0,1,0,1 op0x0");
  for (size_t size = 1; size < sizeof text; size++) {
    char cut[256];
    memset(cut, '#', sizeof cut);
    pph_problem_print(&problem, cut, size);
    size_t length = strlen(text) < size ? strlen(text) : size - 1;
    assert_memory_equal(cut, text, length);
    assert_int_equal(cut[length], 0);
    if (size < sizeof cut)
      assert_int_equal(cut[size], '#');
  }
}

/* An axis from output_shape may have a negative end pad; its text says the
   same with output padding. */
static void test_negative_pads(void **state) {
  pph_problem problem, again;
  pph_error error = {0};
  char text[256];
  test_assert_ok(
      pph_problem_parse("f32 n1 g1 ci1 co1 i1x3 k1x3 s1x3 d1x1 p0,0,0,0",
                        &problem, &error),
      &error);
  test_assert_ok(pph_axis_resolve_transposed(&problem.axes[PPH_WIDTH],
                                             PPH_AUTO_PAD_NOTSET, 10, &error),
                 &error);
  assert_int_equal(problem.axes[PPH_WIDTH].pad_end, -1);
  pph_problem_print(&problem, text, sizeof text);
  assert_string_equal(text,
                      "f32 n1 g1 ci1 co1 i1x3 k1x3 s1x3 d1x1 p0,0,0,0 op0x1");
  test_assert_ok(pph_problem_parse(text, &again, &error), &error);
  assert_int_equal(again.axes[PPH_WIDTH].output, 10);
}

static void test_random_round_trips(void **state) {
  test_random r = {test_seed("random round trips")};
  for (int n = 0; n < 3000; n++) {
    pph_problem problem, again;
    pph_error error = {0};
    char text[256], printed[256];
    int g = (int)test_random_range(&r, 1, 5);
#define UP_TO(high) (int)test_random_range(&r, 1, high)
    snprintf(text, sizeof text,
             "%sf32 n%d g%d ci%d co%d i%dx%d k%dx%d s%dx%d d%dx%d "
             "p%d,%d,%d,%d",
             n % 2 ? "conv " : "", UP_TO(9), g, g * UP_TO(9), g * UP_TO(9),
             9 + UP_TO(900), 9 + UP_TO(900), UP_TO(4), UP_TO(4), UP_TO(5),
             UP_TO(5), UP_TO(3), UP_TO(3), UP_TO(4) - 1, UP_TO(4) - 1,
             UP_TO(4) - 1, UP_TO(4) - 1);
#undef UP_TO
    if (n % 2 == 0)
      strcat(text, " op0x0");
    test_assert_ok(pph_problem_parse(text, &problem, &error), &error);
    pph_problem_print(&problem, printed, sizeof printed);
    assert_string_equal(printed, text);
    test_assert_ok(pph_problem_parse(printed, &again, &error), &error);
    assert_memory_equal(&problem, &again, sizeof problem);
  }
}

typedef struct refusal {
  const char *text, *where, *words;
} refusal;

#define REST " i4x4 k3x3 s1x1 d1x1 p0,0,0,0"
static const refusal refusals[] = {
    {"", "problem, column 1", "\"f32\""},
    {"f32 n1 g1", "problem, column 10", "the text ends, \"ci\" is missing"},
    {"f32 n1 g1 ci1 co1 i4x4 k3x3 s1x1 d1x1", "problem, column 38",
     "\"p\" is missing"},
    {"f64 n1", "problem, column 1", "found \"f64 n1\", expected \"f32\""},
    {"conv n1", "problem, column 6", "expected \"f32\""},
    {"f32 ", "problem, column 5", "key \"n\""},
    {"f32 n g1", "problem, column 6", "found \" g1\", expected a number"},
    {"f32 n-1 g1", "problem, column 6", "expected a number"},
    {"f32 n1 ci1", "problem, column 8", "key \"g\""},
    {"f32 n1 g1  ci1", "problem, column 11", "key \"ci\""},
    {"f32 n1 g1 ci1 co1 i4", "problem, column 21",
     "the text ends in \"i\", \"x\" is missing"},
    {"f32 n1 g1 ci1 co1 i4x", "problem, column 22",
     "the text ends in \"i\", a number of digits 0 to 9 is missing"},
    {"f32 n1 g1 ci1 co1" REST " op0", "problem, column 51", "\"x\""},
    {"f32 n1 g1 ci1 co1" REST " op0x0 ", "problem, column 53", "the end"},
    {"f32 n1 g1 ci1 co1" REST ",", "problem, column 47", "a space"},
    {"f32 n99999999999999999999 g1", "problem, column 6", "below 2^63"},
    {"f32 n0 g1 ci1 co1" REST, "problem", "n is 0, must be 1 to"},
    {"f32 n1 g0 ci1 co1" REST, "problem", "g is 0, must be 1 to"},
    {"f32 n1 g1 ci0 co1" REST, "problem", "ci is 0, must be 1 to"},
    {"f32 n1 g1 ci1 co9000000000" REST, "problem", "co is 9000000000, must"},
    {"f32 n1 g2 ci3 co4" REST, "problem", "ci is 3, must be a multiple of g"},
    {"f32 n1 g2 ci4 co3" REST, "problem", "co is 3, must be a multiple of g"},
    {"f32 n1 g1 ci1 co1 i4x4 k3x3 s0x1 d1x1 p0,0,0,0", "problem, height",
     "stride is 0, must be at least 1"},
    {"f32 n1 g1 ci1 co1 i4x4 k3x3 s1x1 d1x0 p0,0,0,0", "problem, width",
     "dilation is 0, must be at least 1"},
    {"f32 n1 g1 ci1 co1 i4x4 k3x3 s2x2 d1x1 p0,0,0,0 op2x0", "problem, height",
     "output_padding is 2, must be at least 0 and below the larger"},
    {"f32 n1 g1 ci1 co1 i4x4 k1x1 s1x1 d1x1 p2,0,2,0", "problem, height",
     "output length is 0, must be at least 1"},
    {"f32 n1 g1 ci1 co1 i4x4 k1x1 s1x1 d1x1 p0,9,0,9", "problem, width",
     "output length is -14, must be at least 1"},
    {"f32 n1 g1 ci1 co1 i4x0 k1x1 s1x1 d1x1 p0,0,0,0", "problem, width",
     "input length is 0, must be at least 1"},
    {"conv f32 n1 g1 ci1 co1" REST " op1x0", "problem", "op is 1, must be 0"},
    {"conv f32 n1 g1 ci1 co1 i2x4 k3x3 s1x1 d1x1 p0,0,0,0", "problem, height",
     "kernel length with dilation is 3"},
};

static void test_refusals(void **state) {
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    static const pph_problem zero;
    pph_problem problem;
    pph_error error = {0};
    memset(&problem, 0xff, sizeof problem);
    assert_int_equal(pph_problem_parse(refusals[i].text, &problem, &error),
                     PPH_INVALID_ARGUMENT);
    assert_memory_equal(&problem, &zero, sizeof zero);
    if (strcmp(error.where, refusals[i].where) != 0 ||
        !strstr(error.message, refusals[i].words))
      fail_msg("%s gives: %s: %s", refusals[i].text, error.where,
               error.message);
    assert_int_equal(pph_problem_parse(refusals[i].text, &problem, NULL),
                     PPH_INVALID_ARGUMENT);
  }
}

static void test_bounds(void **state) {
  static const char *const texts[] = {
      "f32 n1 g1 ci1 co1 i4x1099511627776 k1x1 s1x1 d1x1 p0,0,0,0",
      "conv f32 n1 g1 ci1 co1 i4x1099511627776 k1x1 s1x1 d1x1 p0,0,0,0"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    pph_problem problem;
    pph_error error = {0};
    assert_int_equal(pph_problem_parse(texts[i], &problem, &error),
                     PPH_LIMIT_EXCEEDED);
    assert_string_equal(error.where, "problem, width");
  }
}

/* Any text is refused or accepted, never more than that. */
static void test_mutations(void **state) {
  test_random r = {test_seed("mutations")};
  for (int n = 0; n < 20000; n++) {
    char text[256];
    pph_problem problem;
    snprintf(text, sizeof text, "%s", canonical[n % 4]);
    for (int64_t m = test_random_range(&r, 1, 4); m > 0; m--)
      text[test_random_range(&r, 0, (int64_t)strlen(canonical[n % 4]))] =
          "0123456789 x,-nfpkc\xff"[test_random_range(&r, 0, 19)];
    text[sizeof text - 1] = 0;
    pph_status status = pph_problem_parse(text, &problem, NULL);
    assert_true(status == PPH_OK || status == PPH_INVALID_ARGUMENT ||
                status == PPH_LIMIT_EXCEEDED);
    if (status == PPH_OK)
      assert_true(pph_problem_flops(&problem) > 0);
  }
}

static void test_flops(void **state) {
  pph_problem problem;
  pph_error error = {0};
  test_assert_ok(pph_problem_parse(canonical[0], &problem, &error), &error);
  assert_true(pph_problem_flops(&problem) == 2.0 * 400 * 16 * 256 * 128);
  test_assert_ok(pph_problem_parse(canonical[1], &problem, &error), &error);
  assert_true(pph_problem_flops(&problem) == 2.0 * 2 * 35 * 12 * 8 * 3);
  test_assert_ok(pph_problem_parse(canonical[3], &problem, &error), &error);
  assert_true(pph_problem_flops(&problem) == 2.0 * 16384 * 9 * 64 * 64);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trips),
      cmocka_unit_test(test_fields),
      cmocka_unit_test(test_defaults_and_cuts),
      cmocka_unit_test(test_negative_pads),
      cmocka_unit_test(test_random_round_trips),
      cmocka_unit_test(test_refusals), cmocka_unit_test(test_bounds),
      cmocka_unit_test(test_mutations),
      cmocka_unit_test(test_flops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
