/* The invariants of a graph. */
#include "graph/verify.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/text_names.h"

/* How a value came to be, as far as the walk has got. */
typedef enum origin_mark {
  MARK_NONE,
  MARK_CONSTANT,
  MARK_INPUT,
  MARK_PRODUCED
} origin_mark;

typedef struct verifier {
  const pph_graph *graph;
  unsigned char *marks; /* one origin_mark per value */
  pph_error *error;
} verifier;

static pph_status fail_value(const verifier *verify, pph_id id,
                             const char *what) {
  const char *name = verify->graph->values[id].name;
  char place[192];
  snprintf(place, sizeof place, "value %u \"%.100s\"", id, name ? name : "");
  return pph_fail(verify->error, PPH_BAD_MODEL, place, "%s", what);
}

static bool is_dtype(pph_dtype type) {
  return type == PPH_DTYPE_NONE || pph_dtype_size(type) > 0;
}

static pph_status check_shape(const verifier *verify, pph_id id) {
  const pph_value *value = &verify->graph->values[id];
  if (!value->has_rank)
    return PPH_OK;
  if (value->shape.rank < 0 || value->shape.rank > PPH_MAX_RANK)
    return fail_value(verify, id, "the rank is not in 0..8");
  for (int32_t i = 0; i < value->shape.rank; i++)
    if (value->shape.dims[i] < -1)
      return fail_value(verify, id,
                        "a dimension is below 0 and not -1 (unknown)");
  return PPH_OK;
}

static pph_status check_layout(const verifier *verify, pph_id id) {
  const pph_value *value = &verify->graph->values[id];
  if (value->layout == PPH_LAYOUT_PLAIN)
    return PPH_OK;
  if (value->layout != PPH_LAYOUT_CHANNELS_LAST)
    return fail_value(verify, id, "unknown layout");
  if (!value->has_rank || value->shape.rank < 3)
    return fail_value(verify, id, "channels_last needs rank 3 or more");
  return PPH_OK;
}

static pph_status check_constant(const verifier *verify, pph_id id) {
  const pph_value *value = &verify->graph->values[id];
  size_t bytes;
  if (!value->data)
    return PPH_OK;
  verify->marks[id] = MARK_CONSTANT;
  if (value->type == PPH_DTYPE_NONE)
    return fail_value(verify, id, "a constant without an element type");
  if (!value->has_rank || !pph_shape_known(&value->shape))
    return fail_value(verify, id, "a constant whose shape is not known");
  if (!pph_shape_bytes(&value->shape, value->type, &bytes))
    return fail_value(verify, id, "a constant's size overflows");
  if (value->layout != PPH_LAYOUT_PLAIN)
    return fail_value(verify, id, "a constant's layout is not plain");
  return PPH_OK;
}

static pph_status check_value(const verifier *verify, pph_id id) {
  const pph_value *value = &verify->graph->values[id];
  if (!value->name || !value->name[0])
    return fail_value(verify, id, "a value without a name");
  if (!is_dtype(value->type))
    return fail_value(verify, id, "unknown element type");
  PPH_TRY(check_shape(verify, id));
  PPH_TRY(check_layout(verify, id));
  return check_constant(verify, id);
}

static pph_status check_names(const verifier *verify,
                              pph_text_names *names) {
  for (pph_id id = 0; id < verify->graph->value_count; id++) {
    pph_id existing;
    PPH_TRY(pph_text_names_add(names, id, &existing, verify->error));
    if (existing != PPH_NO_VALUE)
      return fail_value(verify, id, "another value has the same name");
  }
  return PPH_OK;
}

static pph_status check_inputs(const verifier *verify) {
  const pph_graph *graph = verify->graph;
  for (uint32_t i = 0; i < graph->input_count; i++) {
    pph_id id = graph->inputs[i];
    if (id >= graph->value_count)
      return pph_fail(verify->error, PPH_BAD_MODEL, "the graph",
                      "input %u is value %u of %u", i, id,
                      graph->value_count);
    if (verify->marks[id] == MARK_INPUT)
      return fail_value(verify, id, "the graph has this input twice");
    if (verify->marks[id] == MARK_CONSTANT)
      return fail_value(verify, id, "a constant is an input of the graph");
    verify->marks[id] = MARK_INPUT;
  }
  return PPH_OK;
}

static pph_status check_outputs(const verifier *verify) {
  const pph_graph *graph = verify->graph;
  for (uint32_t i = 0; i < graph->output_count; i++) {
    pph_id id = graph->outputs[i];
    if (id >= graph->value_count)
      return pph_fail(verify->error, PPH_BAD_MODEL, "the graph",
                      "output %u is value %u of %u", i, id,
                      graph->value_count);
    if (verify->marks[id] == MARK_NONE)
      return fail_value(verify, id,
                        "an output of the graph that nothing produces");
  }
  return PPH_OK;
}

/* A count outside of [least, most]. */
static pph_status fail_count(const verifier *verify, const pph_node *node,
                             const char *what, const uint32_t *counts) {
  return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                       counts[2] == UINT32_MAX
                           ? "%u %s, must be at least %u"
                           : "%u %s, must be %u to %u",
                       counts[0], what, counts[1], counts[2]);
}

static pph_status check_counts(const verifier *verify, const pph_node *node) {
  const pph_node_kind_info *info = pph_node_kind_find_info(node->kind);
  const uint32_t ins[] = {node->input_count, info->min_inputs,
                          info->max_inputs};
  const uint32_t outs[] = {node->output_count, info->min_outputs,
                           info->max_outputs};
  if (ins[0] < ins[1] || ins[0] > ins[2])
    return fail_count(verify, node, "inputs", ins);
  if (outs[0] < outs[1] || outs[0] > outs[2])
    return fail_count(verify, node, "outputs", outs);
  if ((ins[0] && !node->inputs) || (outs[0] && !node->outputs))
    return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                         "inputs or outputs are not there");
  return PPH_OK;
}

static pph_status check_node_inputs(const verifier *verify,
                                    const pph_node *node) {
  const pph_node_kind_info *info = pph_node_kind_find_info(node->kind);
  for (uint32_t i = 0; i < node->input_count; i++) {
    pph_id id = node->inputs[i];
    if (id == PPH_NO_VALUE) {
      if (i < info->min_inputs || info->max_inputs == UINT32_MAX)
        return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                             "input %u is missing, must be there", i);
      continue;
    }
    if (id >= verify->graph->value_count)
      return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                           "input %u is value %u of %u", i, id,
                           verify->graph->value_count);
    if (verify->marks[id] == MARK_NONE)
      return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                           "input %u \"%.100s\" is read before anything "
                           "produces it",
                           i, verify->graph->values[id].name);
  }
  return PPH_OK;
}

static pph_status check_node_output(const verifier *verify,
                                    const pph_node *node, uint32_t slot) {
  static const char *const reasons[] = {
      [MARK_CONSTANT] = "is a constant",
      [MARK_INPUT] = "is an input of the graph",
      [MARK_PRODUCED] = "is produced twice"};
  pph_id id = node->outputs[slot];
  if (id >= verify->graph->value_count)
    return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                         "output %u is value %u of %u", slot, id,
                         verify->graph->value_count);
  const pph_value *value = &verify->graph->values[id];
  if (verify->marks[id] != MARK_NONE)
    return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                         "output %u \"%.100s\" %s", slot, value->name,
                         reasons[verify->marks[id]]);
  if (value->producer != node)
    return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                         "output %u \"%.100s\" names another producer", slot,
                         value->name);
  verify->marks[id] = MARK_PRODUCED;
  return PPH_OK;
}

static pph_status check_node_outputs(const verifier *verify,
                                     const pph_node *node) {
  const pph_node_kind_info *info = pph_node_kind_find_info(node->kind);
  for (uint32_t i = 0; i < node->output_count; i++) {
    /* Of several outputs any may go unused, as GRU's first does. */
    if (node->outputs[i] == PPH_NO_VALUE && info->max_outputs > 1)
      continue;
    PPH_TRY(check_node_output(verify, node, i));
  }
  return PPH_OK;
}

static bool has_payload(const pph_attribute *attribute) {
  switch (pph_attribute_key_type(attribute->key)) {
  case PPH_ATTRIBUTE_TEXT:
    return attribute->text != NULL;
  case PPH_ATTRIBUTE_INTS:
    return !attribute->count || attribute->ints != NULL;
  case PPH_ATTRIBUTE_FLOATS:
    return !attribute->count || attribute->floats != NULL;
  case PPH_ATTRIBUTE_INT:
  case PPH_ATTRIBUTE_FLOAT:
    break;
  }
  return true;
}

static pph_status check_attributes(const verifier *verify,
                                   const pph_node *node) {
  bool seen[PPH_ATTRIBUTE_KEY_COUNT] = {false};
  for (uint32_t i = 0; i < node->attribute_count; i++) {
    const pph_attribute *attribute = &node->attributes[i];
    if ((unsigned)attribute->key >= PPH_ATTRIBUTE_KEY_COUNT)
      return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                           "attribute %u has an unknown key", i);
    const char *name = pph_attribute_key_name(attribute->key);
    if (seen[attribute->key])
      return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                           "attribute %s is there twice", name);
    if (!has_payload(attribute))
      return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                           "attribute %s has no value", name);
    seen[attribute->key] = true;
  }
  if ((unsigned)node->activation > PPH_ACTIVATION_PRELU)
    return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                         "unknown activation %d", (int)node->activation);
  if (node->activation == PPH_ACTIVATION_PRELU &&
      !seen[PPH_ATTR_ACTIVATION_SLOPES])
    return pph_node_fail(node, verify->error, PPH_BAD_MODEL,
                         "activation prelu without activation_slopes");
  return PPH_OK;
}

static pph_status check_node(const verifier *verify, const pph_node *node) {
  PPH_TRY(check_counts(verify, node));
  PPH_TRY(check_attributes(verify, node));
  PPH_TRY(check_node_inputs(verify, node));
  return check_node_outputs(verify, node);
}

static pph_status check_nodes(const verifier *verify) {
  const pph_graph *graph = verify->graph;
  const pph_node *previous = NULL;
  uint32_t count = 0;
  for (const pph_node *node = graph->first; node; node = node->next) {
    /* The count ends the walk of a list that runs in a circle. */
    if (count++ == graph->node_count || node->previous != previous ||
        (unsigned)node->kind >= PPH_NODE_KIND_COUNT || !node->name)
      return pph_fail(verify->error, PPH_BAD_MODEL, "the graph",
                      "the list of nodes is broken at node %u", count - 1);
    PPH_TRY(check_node(verify, node));
    previous = node;
  }
  if (count != graph->node_count || graph->last != previous)
    return pph_fail(verify->error, PPH_BAD_MODEL, "the graph",
                    "the list has %u nodes, the graph counts %u", count,
                    graph->node_count);
  return PPH_OK;
}

/* A producer that is not in the list. */
static pph_status check_producers(const verifier *verify) {
  for (pph_id id = 0; id < verify->graph->value_count; id++)
    if (verify->graph->values[id].producer &&
        verify->marks[id] != MARK_PRODUCED)
      return fail_value(verify, id,
                        "its producer is no node that has it as an output");
  return PPH_OK;
}

static pph_status check_graph(const verifier *verify) {
  for (pph_id id = 0; id < verify->graph->value_count; id++)
    PPH_TRY(check_value(verify, id));
  pph_text_names names;
  pph_text_names_init(&names, verify->graph);
  pph_status status = check_names(verify, &names);
  pph_text_names_clear(&names);
  PPH_TRY(status);
  PPH_TRY(check_inputs(verify));
  PPH_TRY(check_nodes(verify));
  PPH_TRY(check_producers(verify));
  return check_outputs(verify);
}

pph_status pph_graph_verify(const pph_graph *graph, pph_error *error) {
  verifier verify = {.graph = graph, .error = error};
  verify.marks =
      pph_heap_allocate_zeroed(graph->heap, graph->value_count, 1);
  if (!verify.marks)
    return pph_fail_memory(error);
  pph_status status = check_graph(&verify);
  pph_heap_release(graph->heap, verify.marks);
  return status;
}
