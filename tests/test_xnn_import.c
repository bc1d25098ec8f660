/* XNNPACK payloads as graphs: programs of one delegate give the stored results
   on every engine; damaged payloads are refused or imported, without a fault;
   what cannot be imported is named. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "graph/shape.h"
#include "graph/verify.h"
#include "model_case.h"
#include "npy.h"
#include "pte/xnn_import.h"
#include "runtime/loaded_model.h"
#include "test_support.h"

/* A graph whose inputs are the payload's, which its outputs are ours. */
static pph_status import_whole(const pph_payload *payload, const pph_pte *pte,
                               const pph_pte_plan *plan, const int32_t *args,
                               uint32_t count, pph_graph *graph,
                               pph_error *error) {
  pph_id arguments[CASE_MAX], inputs[CASE_MAX], outputs[CASE_MAX];
  uint32_t input_count = 0, output_count = 0;
  pph_arena arena;
  pph_payload_index index;
  pph_arena_init(&arena, graph->heap);
  pph_status status = pph_payload_check(payload, &arena, &index, error);
  bool is_input[CASE_MAX] = {false}, is_output[CASE_MAX] = {false};
  for (uint32_t i = 0; i < index.count && status == PPH_OK; i++) {
    const pph_payload_tensor *tensor = index.slots[i].tensor;
    if (!tensor->flags || tensor->external_id >= count)
      continue;
    uint32_t at = tensor->external_id;
    is_input[at] = tensor->flags == 1;
    is_output[at] = tensor->flags == 2;
    if (!is_input[at])
      continue;
    PPH_TRY(pph_graph_add_value(graph, NULL, &arguments[at], error));
    pph_value *value = pph_graph_value(graph, arguments[at]);
    value->type = PPH_F32;
    value->has_rank = true;
    value->shape.rank = (int32_t)tensor->dims.count;
    for (uint32_t d = 0; d < tensor->dims.count; d++)
      value->shape.dims[d] = tensor->dims.at[d];
  }
  (void)plan;
  (void)args;
  for (uint32_t i = 0; i < count; i++)
    if (is_input[i])
      inputs[input_count++] = arguments[i];
  if (status == PPH_OK)
    status = pph_graph_set_inputs(graph, inputs, input_count, error);
  if (status == PPH_OK)
    status = pph_payload_import(&index, pte, graph, arguments, count, error);
  for (uint32_t i = 0; i < count && status == PPH_OK; i++)
    if (is_output[i])
      outputs[output_count++] = arguments[i];
  if (status == PPH_OK)
    status = pph_graph_set_outputs(graph, outputs, output_count, error);
  for (pph_node *node = graph->first; node && status == PPH_OK;
       node = node->next)
    status = pph_shape_check_node(graph, node, error);
  if (status == PPH_OK)
    status = pph_graph_verify(graph, error);
  pph_arena_clear(&arena);
  return status;
}

/* Files of others */

typedef struct fixture {
  char stem[1024];
  pph_pte_source sources[3];
  pph_heap heap;
  pph_pte *pte;
} fixture;

static pph_pte_bytes load_file(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  size_t length = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(length);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, length, file), length);
  fclose(file);
  return (pph_pte_bytes){bytes, length};
}

static void open_fixture(fixture *f) {
  static const char *const ends[] = {".pte", ".ptd", ".1.ptd"};
  static char paths[3][2048];
  pph_error error = {0};
  uint32_t count = 0;
  for (int i = 0; i < 3; i++) {
    snprintf(paths[count], sizeof *paths, "%s%s", f->stem, ends[i]);
    if (access(paths[count], R_OK) != 0)
      continue;
    f->sources[count] =
        (pph_pte_source){paths[count], load_file(paths[count])};
    count++;
  }
  pph_heap_init(&f->heap, NULL, 0);
  test_assert_ok(pph_pte_open(&f->sources[0], &f->sources[1], count - 1,
                              &f->heap, &f->pte, &error),
                 &error);
}

static void close_fixture(fixture *f) {
  pph_pte_close(f->pte);
  for (int i = 0; i < 3; i++)
    free((void *)(uintptr_t)f->sources[i].bytes.at);
}

/* Its only instruction calls a delegate. */
static const pph_pte_delegate_call *find_call(const pph_pte *pte,
                                              const pph_pte_plan **plan) {
  *plan = &pte->program->execution_plan.at[0];
  const pph_pte_chain *chain = &(*plan)->chains.at[0];
  if (pte->program->execution_plan.count != 1 || (*plan)->chains.count != 1 ||
      chain->instructions.count != 1 ||
      chain->instructions.at[0].instr_args.type != PPH_PTE_DELEGATE_CALL)
    return NULL;
  return chain->instructions.at[0].instr_args.value;
}

/* Rearranges what the program keeps channels last into the payload's order. */
static void to_payload_order(pph_tensor *tensor, const pph_pte_tensor *value) {
  if (value->dim_order.count != 4 || value->dim_order.at[1] != 2)
    return;
  int64_t *d = tensor->shape.dims;
  int64_t c = d[1], plane = d[2] * d[3];
  float *from = tensor->data, *to = malloc((size_t)(d[0] * c * plane) * 4 + 64);
  assert_non_null(to);
  for (int64_t n = 0; n < d[0]; n++)
    for (int64_t i = 0; i < c; i++)
      for (int64_t p = 0; p < plane; p++)
        to[(n * plane + p) * c + i] = from[(n * c + i) * plane + p];
  free(from);
  tensor->data = to;
  d[1] = d[2];
  d[2] = d[3];
  d[3] = c;
}

static uint32_t load_side(const fixture *f, const char *side,
                          const pph_pte_plan *plan, const int32_t *numbers,
                          pph_tensor *tensors) {
  uint32_t count = 0;
  for (; count < CASE_MAX; count++) {
    char path[2048];
    pph_error error = {0};
    snprintf(path, sizeof path, "%s.%s%u.npy", f->stem, side, count);
    if (access(path, R_OK) != 0)
      break;
    test_assert_ok(npy_load(path, &tensors[count], &error), &error);
    to_payload_order(&tensors[count],
                     plan->values.at[numbers[count]].val.value);
  }
  return count;
}

/* 1: right results; 0: not this test's, because several instructions, or
   refused as unsupported. */
static int check_fixture(const char *folder, const char *name) {
  fixture f = {.pte = NULL};
  pph_model model = {.bytes = NULL};
  pph_error error = {0};
  const pph_pte_plan *plan;
  snprintf(f.stem, sizeof f.stem, "%s/%.*s", folder, (int)strlen(name) - 4,
           name);
  open_fixture(&f);
  const pph_pte_delegate_call *call = find_call(f.pte, &plan);
  if (!call) {
    close_fixture(&f);
    return 0;
  }
  pph_payload payload;
  pph_arena arena;
  pph_arena_init(&arena, &f.heap);
  test_assert_ok(
      pph_payload_read(
          pph_pte_delegate_payload(
              f.pte, &plan->delegates.at[call->delegate_index]),
          &arena, &payload, &error),
      &error);
  pph_limits_init(&model.limits);
  pph_heap_init(&model.heap, NULL, 0);
  pph_graph_init(&model.graph, &model.heap, NULL);
  pph_status status =
      import_whole(&payload, f.pte, plan, call->args.at, call->args.count,
                   &model.graph, &error);
  if (status == PPH_UNSUPPORTED)
    printf("%s: %s: %s\n", name, error.where, error.message);
  else
    test_assert_ok(status, &error);
  if (status == PPH_OK) {
    model_case one = {.path = f.stem, .absolute = 1e-4, .relative = 1e-4};
    one.input_count =
        load_side(&f, "in", plan, plan->inputs.at, one.inputs);
    one.output_count =
        load_side(&f, "out", plan, plan->outputs.at, one.outputs);
    pph_shape *shape = &pph_graph_value(&model.graph, model.graph.inputs[0])
                            ->shape;
    for (uint32_t i = 0; i < one.input_count; i++) {
      shape = &pph_graph_value(&model.graph, model.graph.inputs[i])->shape;
      *shape = one.inputs[i].shape;
    }
    model_case_check_model(&one, &model);
    model_case_clear(&one);
  }
  pph_graph_clear(&model.graph);
  pph_arena_clear(&arena);
  close_fixture(&f);
  return status == PPH_OK;
}

static void test_fixtures(void **state) {
  const char *path = test_shared_path("pte/real");
  char folder[512];
  int count = 0;
  if (!path)
    skip();
  snprintf(folder, sizeof folder, "%s", path);
  DIR *list = opendir(folder);
  assert_non_null(list);
  for (struct dirent *entry; (entry = readdir(list));) {
    size_t length = strlen(entry->d_name);
    if (length > 4 && strcmp(entry->d_name + length - 4, ".pte") == 0)
      count += check_fixture(folder, entry->d_name);
  }
  closedir(list);
  printf("%d programs give the stored results\n", count);
  assert_true(count >= 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fixtures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
