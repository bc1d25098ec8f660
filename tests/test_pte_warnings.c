/* What info warns of in a delegate's payload: a constant with two readers, and
   linear layers of 4-bit weights alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optimize/optimize.h"
#include "pte/warnings.h"
#include "pte/xnn_payload.h"
#include "pte_maker.h"
#include "test_support.h"

#define SPAN(array) {array, sizeof(array) / sizeof *(array)}
#define TEXT(text) {text, sizeof(text) - 1}
enum { ROWS = 3, IN = 4, OUT = 2, BIAS = OUT * IN };

/* A linear layer, then an addition of a constant. */
typedef struct layer {
  bool reads_bias_again; /* the addition takes it, not a constant of its own */
  bool has_halves;       /* the filter is no whole numbers */
  bool hands_in_scales;
  int16_t filter_type;
} layer;

static pph_pte_bytes make_payload(const layer *l) {
  static const uint32_t x[] = {ROWS, IN}, y[] = {ROWS, OUT}, w[] = {OUT, IN},
                        b[] = {OUT};
  float numbers[BIAS + OUT] = {1, -8, 7, 3, 0, 2, -1, 5, 0.5f, 0.25f};
  pph_payload_tensor tensors[] = {
      {1, 2, SPAN(x), 0, 0, 1, 0, 0}, {1, 2, SPAN(y), 0, 1, 2, 1, 0},
      {1, 2, SPAN(w), 1, 0, 0, 2, 0}, {1, 1, SPAN(b), 2, 0, 0, 3, 0},
      {1, 2, SPAN(y), 0, 0, 0, 4, 0}, {1, 1, SPAN(b), 2, 0, 0, 5, 0}};
  pph_payload_per_group groups = {.scale = {numbers, OUT}, .group_size = IN};
  pph_payload_quantized quantized = {&tensors[2], {&groups, 4}};
  pph_payload_value values[6];
  pph_payload_linear linear = {0, 2, 3, 4, 0};
  pph_payload_binary add = {4, l->reads_bias_again ? 3 : 5, 1, 0};
  pph_payload_node nodes[] = {
      {.xnode_union = {&linear, PPH_PAYLOAD_FULLY_CONNECTED}},
      {.xnode_union = {&add, PPH_PAYLOAD_ADD}}};
  static const uint32_t inputs[] = {0}, outputs[] = {1};
  pph_payload_data data[] = {{.offset = 0},
                             {.offset = 0, .size = BIAS * sizeof *numbers},
                             {.offset = BIAS * sizeof *numbers,
                              .size = OUT * sizeof *numbers}};
  pph_payload_graph graph = {.version = TEXT("0"),
                             .xnodes = SPAN(nodes),
                             .xvalues = SPAN(values),
                             .num_externs = 3,
                             .input_ids = SPAN(inputs),
                             .output_ids = SPAN(outputs),
                             .constant_data = SPAN(data)};
  pph_payload payload = {
      .graph = &graph,
      .identifier = {'X', 'N', '0', '1'},
      .constants = {(const uint8_t *)numbers, sizeof numbers}};
  for (int i = 0; i < 6; i++)
    values[i].xvalue_union = (pph_flat_choice){&tensors[i], 1};
  if (l->has_halves)
    numbers[3] = 0.5f;
  tensors[2].datatype = l->filter_type;
  if (l->filter_type == PPH_PAYLOAD_QB4)
    values[2].xvalue_union = (pph_flat_choice){&quantized, 2};
  size_t length;
  uint8_t *bytes = pte_write_payload(&payload, &length);
  return (pph_pte_bytes){bytes, length};
}

static pph_pte_bytes make_program(const layer *l) {
  static const int32_t in[] = {ROWS, IN}, out[] = {ROWS, OUT},
                       rows[] = {OUT, 1};
  static const uint8_t order[] = {0, 1};
  static const float scales[] = {0.5f, 0.25f, 0, 0};
  static const int32_t inputs[] = {0}, outputs[] = {1}, args[] = {0, 1, 2};
  static const int64_t sizes[] = {0, 128};
  static const uint64_t offsets[] = {0, 0};
  pph_pte_allocation places[] = {{1, 0, 0}, {1, 64, 0}};
  pph_pte_tensor tensors[] = {
      {.scalar_type = 6, .sizes = SPAN(in), .dim_order = SPAN(order),
       .allocation_info = &places[0]},
      {.scalar_type = 6, .sizes = SPAN(out), .dim_order = SPAN(order),
       .allocation_info = &places[1]},
      {.scalar_type = 6, .sizes = SPAN(rows), .dim_order = SPAN(order),
       .data_buffer_idx = 1}};
  pph_pte_value values[] = {
      {{&tensors[0], 5}}, {{&tensors[1], 5}}, {{&tensors[2], 5}}};
  pph_pte_delegate_call call = {0, {args, l->hands_in_scales ? 3 : 2}};
  pph_pte_instruction steps[] = {{{&call, 2}}};
  pph_pte_chain chain = {.instructions = SPAN(steps)};
  pph_pte_data_reference place = {0, 0};
  pph_pte_delegate delegate = {.id = TEXT("XnnpackBackend"),
                               .processed = &place};
  pph_pte_plan plan = {.name = TEXT("forward"),
                       .values = SPAN(values),
                       .inputs = SPAN(inputs),
                       .outputs = SPAN(outputs),
                       .chains = {&chain, 1},
                       .operators = {(void *)values, 0},
                       .delegates = {&delegate, 1},
                       .non_const_buffer_sizes = SPAN(sizes)};
  pph_pte_bytes payload = make_payload(l);
  pph_pte_inline_data data = {{payload.at, (uint32_t)payload.count}};
  pph_pte_subsegment constant = {0, SPAN(offsets)};
  pph_pte_data_segment row;
  pph_pte_bytes segment = {(const uint8_t *)scales, sizeof scales};
  pph_pte_program program = {.execution_plan = {&plan, 1},
                             .backend_delegate_data = {&data, 1},
                             .segments = {&row, 1},
                             .constant_segment = &constant};
  pph_pte_image image = {.segments = &segment, .segment_count = 1};
  pph_pte_bytes made = pte_write_program(&image, &program);
  pte_release(payload);
  return made;
}

typedef struct warnings {
  uint32_t count;
  char last[512];
} warnings;

static void note(void *context, pph_flat_text method, const char *text) {
  warnings *w = context;
  assert_true(method.count > 0);
  w->count++;
  strncpy(w->last, text, sizeof w->last - 1);
}

/* The only warning says all of `text`; NULL: there is none, which is also what
   it comes to when `optimize` was there. */
static void expect(pph_pte_bytes bytes, const char *text, bool optimizes) {
  const pph_optimize_options options = {.never = true};
  pph_optimize_result result;
  pph_pte_source source = {"made.pte", bytes};
  pph_heap heap;
  pph_pte *pte;
  pph_error error = {0};
  warnings found = {0};
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(pph_pte_open(&source, NULL, 0, &heap, &pte, &error), &error);
  if (optimizes)
    test_assert_ok(pph_pte_optimize(pte, &options, &result, &error), &error);
  pph_pte_warn(pte, note, &found);
  if (found.count != (text != NULL) || (text && !strstr(found.last, text)))
    fail_msg("%u warnings, the last \"%s\", not \"%s\"", found.count,
             found.last, text ? text : "");
  pph_pte_close(pte);
  assert_int_equal(atomic_load(&heap.used), 0);
}

static void expect_made(const layer *l, const char *text, bool optimizes) {
  pph_pte_bytes bytes = make_program(l);
  expect(bytes, text, optimizes);
  pte_release(bytes);
}

static void test_two_readers(void **state) {
  layer l = {.filter_type = PPH_PAYLOAD_F32};
  expect_made(&l, NULL, false);
  l.reads_bias_again = true;
  expect_made(&l, "delegate 0: the constant 3 is packed", false);
  expect_made(&l, NULL, true);
}

static void test_weights_only(void **state) {
  layer l = {.filter_type = PPH_PAYLOAD_F32, .hands_in_scales = true};
  expect_made(&l, "node 0: a linear layer has 4-bit weights only: its scales",
              false);
  l.has_halves = true;
  expect_made(&l, NULL, false);
  l = (layer){.filter_type = PPH_PAYLOAD_QB4};
  expect_made(&l, "no Convert quantizes its input", false);
}

static void test_real(void **state) {
  static const struct {
    const char *name, *before, *after;
  } files[] = {
      {"bias_read_again", "cures the program", NULL},
      {"stream_ct1d", "cures the program", NULL},
      {"w4_linear_group", "its scales", "its scales"},
      {"w4a8_linear_group", NULL, NULL},
      {"qd8_linear", NULL, NULL},
      {"ct2d_k4s2p1", NULL, NULL}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char relative[128];
    size_t length;
    snprintf(relative, sizeof relative, "pte/real/%s.pte", files[i].name);
    const char *path = test_shared_path(relative);
    if (!path)
      skip();
    uint8_t *bytes = test_read_file(path, &length);
    expect((pph_pte_bytes){bytes, length}, files[i].before, false);
    expect((pph_pte_bytes){bytes, length}, files[i].after, true);
    free(bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_readers),
                                     cmocka_unit_test(test_weights_only),
                                     cmocka_unit_test(test_real)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
