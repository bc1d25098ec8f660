#include "pass/constant_walk.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval.h"
#include "graph/shape.h"

static double count(const pph_value *value) {
  size_t elements;
  return value && value->has_rank && pph_shape_count(&value->shape, &elements)
             ? (double)elements
             : 0;
}

static double product(const pph_node *node, pph_attribute_key key) {
  uint32_t length;
  const int64_t *ints = pph_node_ints(node, key, &length);
  double result = 1;
  for (uint32_t i = 0; i < length; i++)
    result *= (double)ints[i];
  return result;
}

/* Steps per output element of the kinds whose loops go deeper than one. */
static double find_depth(const pph_graph *graph, const pph_node *node) {
  const pph_value *a = pph_node_find_input(graph, node, 0);
  const pph_value *b = pph_node_find_input(graph, node, 1);
  switch ((int)node->kind) {
  case PPH_NODE_CONV:
  case PPH_NODE_CONV_TRANSPOSE:
    return count(b);
  case PPH_NODE_GEMM:
  case PPH_NODE_MATMUL:
    return count(b) + 1;
  case PPH_NODE_AVERAGE_POOL:
  case PPH_NODE_MAX_POOL:
    return product(node, PPH_ATTR_KERNEL_SHAPE);
  case PPH_NODE_RESIZE:
    return 64;
  case PPH_NODE_GRU:
    return count(a) * count(b);
  default:
    return 1;
  }
}

static double find_work(const pph_graph *graph, const pph_node *node) {
  double result = 0;
  for (uint32_t i = 0; i < node->input_count; i++)
    result += count(pph_node_find_input(graph, node, i));
  for (uint32_t i = 0; i < node->output_count; i++)
    if (node->outputs[i] != PPH_NO_VALUE)
      result += count(pph_graph_value(graph, node->outputs[i])) *
                find_depth(graph, node);
  return result;
}

static bool reads_constants(const pph_graph *graph, const pph_node *node) {
  for (uint32_t i = 0; i < node->input_count; i++) {
    const pph_value *value = pph_node_find_input(graph, node, i);
    if (value && !value->data)
      return false;
  }
  return true;
}

static bool sum_bytes(const pph_graph *graph, const pph_id *ids,
                      uint32_t id_count, size_t *sum) {
  *sum = 0;
  for (uint32_t i = 0; i < id_count; i++) {
    if (ids[i] == PPH_NO_VALUE)
      continue;
    const pph_value *value = pph_graph_value(graph, ids[i]);
    size_t bytes;
    if (!pph_shape_bytes(&value->shape, value->type, &bytes) ||
        !pph_checked_add(*sum, bytes, sum))
      return false;
  }
  return true;
}

/* Takes what the node would cost off the budget. */
static bool spend(const pph_graph *graph, const pph_node *node,
                  pph_constant_budget *budget) {
  size_t in, out;
  if (!sum_bytes(graph, node->inputs, node->input_count, &in) ||
      !sum_bytes(graph, node->outputs, node->output_count, &out))
    return false;
  if (out > budget->result_bytes && !(budget->shrink && out <= in))
    return false;
  double work = find_work(graph, node);
  if (work > budget->node_work || work > budget->total_work ||
      (double)out > budget->total_bytes)
    return false;
  budget->total_work -= work;
  budget->total_bytes -= (double)out;
  return true;
}

static pph_status allocate_outputs(pph_graph *graph, const pph_node *node,
                                   pph_tensor *outputs, pph_error *error) {
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i] == PPH_NO_VALUE)
      continue;
    const pph_value *value = pph_graph_value(graph, node->outputs[i]);
    size_t bytes;
    if (!pph_shape_bytes(&value->shape, value->type, &bytes) ||
        bytes > SIZE_MAX - 64)
      return pph_fail_memory(error);
    outputs[i].type = value->type;
    outputs[i].shape = value->shape;
    /* 64 more, as pph_graph_add_constant: XNNPACK may read past the end. */
    outputs[i].data = pph_arena_allocate(&graph->arena, bytes + 64, 1);
    if (!outputs[i].data)
      return pph_fail_memory(error);
  }
  return PPH_OK;
}

static pph_status evaluate(pph_graph *graph, const pph_node *node,
                           pph_tensor *tensors, pph_error *error) {
  pph_tensor *outputs = tensors + node->input_count;
  for (uint32_t i = 0; i < node->input_count; i++)
    pph_node_find_constant(graph, node, i, &tensors[i]);
  PPH_TRY(allocate_outputs(graph, node, outputs, error));
  return pph_eval_node(graph, node, tensors, outputs, error);
}

static void take_origin(pph_graph *graph, const pph_node *node,
                        pph_value *value) {
  const pph_value *first = pph_node_find_input(graph, node, 0);
  if (first)
    value->origin = first->origin;
}

/* Turns the outputs into constants; *done stays false where the evaluator has
   no loop for the type. */
static pph_status fold(pph_graph *graph, pph_node *node, bool *done,
                       pph_error *error) {
  size_t slots = (size_t)node->input_count + node->output_count;
  pph_tensor *tensors =
      pph_heap_allocate_zeroed(graph->heap, slots, sizeof *tensors);
  if (!tensors)
    return pph_fail_memory(error);
  pph_status status = evaluate(graph, node, tensors, error);
  for (uint32_t i = 0; status == PPH_OK && i < node->output_count; i++)
    if (node->outputs[i] != PPH_NO_VALUE) {
      pph_value *value = pph_graph_value(graph, node->outputs[i]);
      value->data = tensors[node->input_count + i].data;
      take_origin(graph, node, value);
    }
  pph_heap_release(graph->heap, tensors);
  *done = status == PPH_OK;
  if (*done)
    pph_graph_remove_node(graph, node);
  return status == PPH_UNSUPPORTED ? PPH_OK : status;
}

/* Shape and Size answer as soon as the shape is known. */
static pph_status answer_shape(pph_graph *graph, pph_node *node,
                               pph_error *error) {
  const pph_value *input = pph_node_find_input(graph, node, 0);
  bool size = node->kind == PPH_NODE_SIZE;
  int64_t *data =
      pph_arena_allocate(&graph->arena, PPH_MAX_RANK + 1, sizeof *data);
  size_t elements;
  if (!data)
    return pph_fail_memory(error);
  if (!pph_shape_count(&input->shape, &elements))
    return PPH_OK;
  if (size)
    data[0] = (int64_t)elements;
  else
    memcpy(data, input->shape.dims, sizeof input->shape.dims);
  pph_graph_value(graph, node->outputs[0])->data = data;
  pph_graph_remove_node(graph, node);
  return PPH_OK;
}

static pph_status walk_node(pph_graph *graph, pph_node *node,
                            pph_constant_budget *budget, pph_error *error) {
  PPH_TRY(pph_shape_infer_node(graph, node, error));
  if (node->kind == PPH_NODE_SHAPE || node->kind == PPH_NODE_SIZE)
    return answer_shape(graph, node, error);
  if (node->kind == PPH_NODE_RELAYOUT || !pph_eval_supports(node->kind) ||
      !reads_constants(graph, node) || !spend(graph, node, budget))
    return PPH_OK;
  bool done;
  return fold(graph, node, &done, error);
}

pph_status pph_constant_walk(pph_graph *graph, pph_constant_budget *budget,
                             pph_error *error) {
  for (pph_node *node = graph->first, *next; node; node = next) {
    next = node->next;
    PPH_TRY(walk_node(graph, node, budget, error));
  }
  return PPH_OK;
}
