#include "graph_runner.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval.h"
#include "graph/shape.h"
#include "graph/text.h"

static pph_status allocate(pph_heap *heap, pph_tensor *tensor,
                           pph_error *error) {
  size_t bytes;
  if (!pph_shape_bytes(&tensor->shape, tensor->type, &bytes))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "", "a value is too large");
  tensor->data = pph_heap_allocate_zeroed(heap, bytes + 64, 1);
  return tensor->data ? PPH_OK : pph_fail_memory(error);
}

static pph_tensor describe(const pph_graph *graph, pph_id id) {
  const pph_value *value = pph_graph_value(graph, id);
  return (pph_tensor){value->type, value->shape,
                      (void *)(uintptr_t)value->data};
}

static pph_status run_node(const pph_graph *graph, const pph_node *node,
                           pph_tensor *values, pph_error *error) {
  pph_tensor inputs[64] = {{0}}, outputs[64] = {{0}};
  if (node->input_count > 64 || node->output_count > 64)
    return pph_fail(error, PPH_UNSUPPORTED, "", "more than 64 values");
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] != PPH_NO_VALUE)
      inputs[i] = values[node->inputs[i]];
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i] == PPH_NO_VALUE)
      continue;
    outputs[i] = describe(graph, node->outputs[i]);
    PPH_TRY(allocate(graph->heap, &outputs[i], error));
    values[node->outputs[i]] = outputs[i];
  }
  return pph_eval_node(graph, node, inputs, outputs, error);
}

static pph_status copy_outputs(const pph_graph *graph,
                               const pph_tensor *values,
                               graph_results *results, pph_error *error) {
  results->tensors = pph_heap_allocate_zeroed(
      graph->heap, graph->output_count, sizeof *results->tensors);
  if (!results->tensors)
    return pph_fail_memory(error);
  results->count = graph->output_count;
  for (uint32_t i = 0; i < graph->output_count; i++) {
    pph_tensor tensor = values[graph->outputs[i]];
    size_t bytes;
    results->tensors[i] = tensor;
    PPH_TRY(allocate(graph->heap, &results->tensors[i], error));
    if (pph_shape_bytes(&tensor.shape, tensor.type, &bytes) && bytes)
      memcpy(results->tensors[i].data, tensor.data, bytes);
  }
  return PPH_OK;
}

pph_status graph_run(const pph_graph *graph, const pph_tensor *inputs,
                     graph_results *results, pph_error *error) {
  *results = (graph_results){.heap = graph->heap};
  pph_tensor *values = pph_heap_allocate_zeroed(
      graph->heap, graph->value_count, sizeof *values);
  if (!values)
    return pph_fail_memory(error);
  for (pph_id id = 0; id < graph->value_count; id++)
    if (graph->values[id].data)
      values[id] = describe(graph, id);
  for (uint32_t i = 0; i < graph->input_count; i++)
    values[graph->inputs[i]] = inputs[i];
  pph_status status = PPH_OK;
  for (const pph_node *node = graph->first; node && status == PPH_OK;
       node = node->next)
    status = run_node(graph, node, values, error);
  if (status == PPH_OK)
    status = copy_outputs(graph, values, results, error);
  for (pph_id id = 0; id < graph->value_count; id++)
    if (graph->values[id].producer)
      pph_heap_release(graph->heap, values[id].data);
  pph_heap_release(graph->heap, values);
  return status;
}

void graph_results_release(graph_results *results) {
  for (uint32_t i = 0; i < results->count; i++)
    pph_heap_release(results->heap, results->tensors[i].data);
  if (results->heap)
    pph_heap_release(results->heap, results->tensors);
  *results = (graph_results){0};
}

void graph_parse(pph_graph *graph, pph_heap *heap, const char *text) {
  pph_error error = {0};
  pph_graph_init(graph, heap, NULL);
  test_assert_ok(pph_text_parse(text, strlen(text), graph, &error), &error);
}

void graph_fill_weights(const pph_graph *graph, test_random *random) {
  for (uint32_t i = 0; i < graph->value_count; i++) {
    const pph_value *value = pph_graph_value(graph, i);
    float *data = (float *)(uintptr_t)value->data;
    size_t count;
    if (!data || value->type != PPH_F32 ||
        !pph_shape_count(&value->shape, &count) || !count || data[0] != 77)
      continue;
    for (size_t k = 0; k < count; k++)
      data[k] = (float)test_random_range(random, -3, 3);
  }
}

static void fill(pph_tensor *tensor, test_random *random) {
  size_t count;
  if (!pph_shape_count(&tensor->shape, &count))
    fail_msg("an input's shape is not known");
  for (size_t i = 0; i < count; i++) {
    int64_t value = test_random_range(random, -4, 4);
    if (tensor->type == PPH_F32)
      ((float *)tensor->data)[i] = (float)value;
    else if (tensor->type == PPH_I64)
      ((int64_t *)tensor->data)[i] = value;
    else if (tensor->type == PPH_I32)
      ((int32_t *)tensor->data)[i] = (int32_t)value;
  }
}

pph_tensor *graph_inputs_make(const pph_graph *graph, pph_heap *heap,
                              test_random *random) {
  pph_tensor *inputs =
      pph_heap_allocate_zeroed(heap, graph->input_count, sizeof *inputs);
  assert_non_null(inputs);
  for (uint32_t i = 0; i < graph->input_count; i++) {
    pph_error error = {0};
    inputs[i] = describe(graph, graph->inputs[i]);
    test_assert_ok(allocate(heap, &inputs[i], &error), &error);
    fill(&inputs[i], random);
  }
  return inputs;
}

void graph_inputs_release(const pph_graph *graph, pph_heap *heap,
                          pph_tensor *inputs) {
  for (uint32_t i = 0; i < graph->input_count; i++)
    pph_heap_release(heap, inputs[i].data);
  pph_heap_release(heap, inputs);
}

static double compare(const pph_tensor *a, const pph_tensor *b) {
  size_t count, bytes;
  if (a->type != b->type || !pph_shape_equal(&a->shape, &b->shape) ||
      !pph_shape_count(&a->shape, &count) ||
      !pph_shape_bytes(&a->shape, a->type, &bytes))
    return INFINITY;
  if (a->type != PPH_F32)
    return bytes == 0 || memcmp(a->data, b->data, bytes) == 0 ? 0 : INFINITY;
  double worst = 0;
  for (size_t i = 0; i < count; i++) {
    double x = ((const float *)a->data)[i], y = ((const float *)b->data)[i];
    if (x == y || (isnan(x) && isnan(y)))
      continue;
    double distance = fabs(x - y) / (1 + fabs(x));
    worst = distance > worst ? distance : isnan(distance) ? INFINITY : worst;
  }
  return worst;
}

double graph_results_distance(const graph_results *expected,
                              const graph_results *found) {
  if (expected->count != found->count)
    return INFINITY;
  double worst = 0;
  for (uint32_t i = 0; i < found->count; i++)
    worst = fmax(worst, compare(&expected->tensors[i], &found->tensors[i]));
  return worst;
}

uint32_t graph_count(const pph_graph *graph, pph_node_kind kind) {
  uint32_t count = 0;
  for (const pph_node *node = graph->first; node; node = node->next)
    count += node->kind == kind;
  return count;
}

void graph_trial_open(graph_trial *trial, const char *text, uint64_t seed) {
  pph_error error = {0};
  test_random random = {seed};
  *trial = (graph_trial){.inputs = NULL};
  pph_heap_init(&trial->heap, NULL, 0);
  pph_graph_init(&trial->graph, &trial->heap, NULL);
  graph_parse(&trial->graph, &trial->heap, text);
  graph_fill_weights(&trial->graph, &random);
  test_assert_ok(pph_shape_infer(&trial->graph, &error), &error);
  trial->inputs = graph_inputs_make(&trial->graph, &trial->heap, &random);
  test_assert_ok(
      graph_run(&trial->graph, trial->inputs, &trial->expected, &error),
      &error);
}

void graph_trial_close(graph_trial *trial) {
  graph_results_release(&trial->expected);
  graph_inputs_release(&trial->graph, &trial->heap, trial->inputs);
  pph_graph_clear(&trial->graph);
  assert_int_equal(atomic_load(&trial->heap.used), 0);
}
