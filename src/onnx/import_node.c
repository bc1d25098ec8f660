/* One ONNX node to nodes of the graph. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "onnx/import.h"

void pph_import_set_where(pph_error *error, const pph_onnx_node *node,
                          uint32_t index) {
  const char *kind = node->op_type ? node->op_type : "";
  if (node->name && *node->name)
    pph_error_set_where(error, "node %u %.60s \"%.100s\"", index, kind,
                        node->name);
  else
    pph_error_set_where(error, "node %u %.60s", index, kind);
}

pph_status pph_import_fail(const pph_import_op *op, pph_status status,
                           const char *format, ...) {
  char message[sizeof op->import->error->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  pph_fail(op->import->error, status, "", "%s", message);
  pph_import_set_where(op->import->error, op->source, op->index);
  return status;
}

/* Finding what the names mean */

static bool is_omitted(const char *name) { return !name || !*name; }

static size_t trim(char *const *names, size_t count) {
  while (count && is_omitted(names[count - 1]))
    count--;
  return count;
}

static pph_status resolve_input(pph_import_op *op, size_t at) {
  const char *name = op->source->input[at];
  op->inputs[at] = PPH_NO_VALUE;
  if (is_omitted(name))
    return PPH_OK;
  op->inputs[at] = pph_text_names_find(&op->import->names, name, strlen(name));
  if (op->inputs[at] == PPH_NO_VALUE)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "input %zu \"%.120s\" is made by no node and is no "
                           "input or initializer",
                           at, name);
  return PPH_OK;
}

static pph_status resolve_inputs(pph_import_op *op) {
  size_t count = trim(op->source->input, op->source->n_input);
  op->inputs = pph_arena_allocate(&op->import->graph->arena,
                                  count + PPH_IMPORT_SLOTS, sizeof(pph_id));
  if (!op->inputs)
    return pph_fail_memory(op->import->error);
  for (size_t i = 0; i < count; i++)
    PPH_TRY(resolve_input(op, i));
  op->input_count = (uint32_t)count;
  return PPH_OK;
}

/* An omitted output gets a value that nobody reads. Split's are not trimmed:
   their number decides its shapes. */
static pph_status resolve_outputs(pph_import_op *op) {
  pph_import *import = op->import;
  size_t count = op->row->kind == PPH_NODE_SPLIT
                     ? op->source->n_output
                     : trim(op->source->output, op->source->n_output);
  op->outputs =
      pph_arena_allocate(&import->graph->arena, count + 1, sizeof(pph_id));
  if (!op->outputs)
    return pph_fail_memory(import->error);
  for (size_t i = 0; i < count; i++) {
    const char *name = op->source->output[i];
    if (is_omitted(name))
      PPH_TRY(pph_graph_add_value(import->graph, NULL, &op->outputs[i],
                                  import->error));
    else
      op->outputs[i] = pph_text_names_find(&import->names, name, strlen(name));
  }
  op->output_count = (uint32_t)count;
  if (count == 0)
    return pph_import_fail(op, PPH_BAD_MODEL, "has no outputs");
  return PPH_OK;
}

static pph_status find_row(pph_import_op *op) {
  const char *name = op->source->op_type ? op->source->op_type : "";
  const char *domain = op->source->domain ? op->source->domain : "";
  if (*domain && strcmp(domain, "ai.onnx") != 0)
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "operator %.80s::%.80s is not supported", domain,
                           name);
  op->row = pph_import_find_row(name);
  if (!op->row)
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "operator %.80s is not supported", name);
  int64_t opset = op->import->opset;
  if (opset < op->row->since)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "%s is there from opset %d on, the model has "
                           "opset %lld",
                           name, op->row->since, (long long)opset);
  if (op->row->until && opset > op->row->until)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "%s is there until opset %d, the model has opset "
                           "%lld",
                           name, op->row->until, (long long)opset);
  return PPH_OK;
}

/* Making nodes */

pph_id pph_import_input(const pph_import_op *op, uint32_t slot) {
  return slot < op->input_count ? op->inputs[slot] : PPH_NO_VALUE;
}

void pph_import_set_input(pph_import_op *op, uint32_t slot, pph_id id) {
  while (op->input_count <= slot)
    op->inputs[op->input_count++] = PPH_NO_VALUE;
  op->inputs[slot] = id;
  while (op->input_count && op->inputs[op->input_count - 1] == PPH_NO_VALUE)
    op->input_count--;
}

pph_status pph_import_set_ints(pph_import_op *op, uint32_t slot,
                               const int64_t *ints, size_t count) {
  pph_id id;
  PPH_TRY(pph_graph_add_ints(op->import->graph, NULL, ints, count, &id,
                             op->import->error));
  pph_import_set_input(op, slot, id);
  return PPH_OK;
}

pph_status pph_import_set_scalar(pph_import_op *op, uint32_t slot,
                                 float number) {
  double wide = number;
  pph_dtype type =
      pph_import_find_fact(op->import, pph_import_input(op, 0)).type;
  pph_tensor tensor = {PPH_F32, {0}, &number};
  if (type == PPH_F64)
    tensor = (pph_tensor){PPH_F64, {0}, &wide};
  else if (type != PPH_F32 && type != PPH_DTYPE_NONE)
    return pph_import_fail(op, PPH_UNSUPPORTED,
                           "this form of the operator is not supported for "
                           "%s",
                           pph_dtype_name(type));
  pph_id id;
  PPH_TRY(pph_graph_add_constant(op->import->graph, NULL, &tensor, &id,
                                 op->import->error));
  pph_import_set_input(op, slot, id);
  return PPH_OK;
}

static pph_status fail_count(const pph_import_op *op, const char *what,
                             uint32_t found, uint32_t least, uint32_t most) {
  if (most == UINT32_MAX)
    return pph_import_fail(op, PPH_BAD_MODEL,
                           "has %u %s, must have at least %u", found, what,
                           least);
  if (most == least)
    return pph_import_fail(op, PPH_BAD_MODEL, "has %u %s, must have %u", found,
                           what, least);
  return pph_import_fail(op, PPH_BAD_MODEL, "has %u %s, must have %u to %u",
                         found, what, least, most);
}

/* Counts are what the kind allows, and no input that must be there is
   omitted. */
static pph_status check_counts(const pph_import_op *op, pph_node_kind kind) {
  const pph_node_kind_info *info = pph_node_kind_find_info(kind);
  /* The fourth is ours. */
  bool convolves = kind == PPH_NODE_CONV || kind == PPH_NODE_CONV_TRANSPOSE;
  uint32_t most = convolves ? 3 : info->max_inputs;
  if (op->input_count < info->min_inputs || op->input_count > most)
    return fail_count(op, "inputs", op->input_count, info->min_inputs, most);
  if (op->output_count < info->min_outputs ||
      op->output_count > info->max_outputs)
    return fail_count(op, "outputs", op->output_count, info->min_outputs,
                      info->max_outputs);
  uint32_t needed =
      info->max_inputs == UINT32_MAX ? op->input_count : info->min_inputs;
  for (uint32_t i = 0; i < needed; i++)
    if (op->inputs[i] == PPH_NO_VALUE)
      return pph_import_fail(op, PPH_BAD_MODEL,
                             "input %u is omitted, must be there", i);
  return PPH_OK;
}

static pph_status add_node(pph_import_op *op, pph_node_kind kind,
                           pph_node **node) {
  PPH_TRY(pph_graph_add_node(op->import->graph, kind, op->source->name, NULL,
                             node, op->import->error));
  (*node)->index = op->index;
  return PPH_OK;
}

pph_status pph_import_emit_bare(pph_import_op *op, pph_node_kind kind,
                                pph_node **node) {
  pph_node *made;
  pph_graph *graph = op->import->graph;
  pph_error *error = op->import->error;
  PPH_TRY(check_counts(op, kind));
  PPH_TRY(add_node(op, kind, &made));
  PPH_TRY(pph_node_set_inputs(graph, made, op->inputs, op->input_count, error));
  PPH_TRY(
      pph_node_set_outputs(graph, made, op->outputs, op->output_count, error));
  if (node)
    *node = made;
  return PPH_OK;
}

pph_status pph_import_emit(pph_import_op *op, pph_node **node) {
  pph_node *made;
  PPH_TRY(pph_import_emit_bare(op, op->row->kind, &made));
  PPH_TRY(pph_import_copy_attributes(op, made));
  if (node)
    *node = made;
  return PPH_OK;
}

pph_status pph_import_insert(pph_import_op *op, pph_node_kind kind,
                             const pph_id *inputs, uint32_t count,
                             pph_node **node, pph_id *output) {
  pph_graph *graph = op->import->graph;
  pph_error *error = op->import->error;
  pph_node *made;
  PPH_TRY(add_node(op, kind, &made));
  PPH_TRY(pph_node_set_inputs(graph, made, inputs, count, error));
  PPH_TRY(pph_graph_add_value(graph, NULL, output, error));
  PPH_TRY(pph_node_set_outputs(graph, made, output, 1, error));
  if (node)
    *node = made;
  return PPH_OK;
}

static pph_status convert(pph_import_op *op) {
  PPH_TRY(find_row(op));
  PPH_TRY(pph_import_check_attributes(op));
  PPH_TRY(resolve_inputs(op));
  PPH_TRY(resolve_outputs(op));
  const pph_node *last = op->import->graph->last;
  PPH_TRY(op->row->convert ? op->row->convert(op) : pph_import_emit(op, NULL));
  const pph_node *made = last ? last->next : op->import->graph->first;
  for (; made; made = made->next)
    PPH_TRY(pph_import_add_facts(op->import, made));
  return PPH_OK;
}

pph_status pph_import_node(pph_import *import, uint32_t index) {
  pph_import_op op = {
      .import = import, .source = import->source->node[index], .index = index};
  pph_status status = convert(&op);
  if (status != PPH_OK)
    pph_import_set_where(import->error, op.source, index);
  return status;
}
