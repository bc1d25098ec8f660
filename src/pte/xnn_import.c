#include "pte/xnn_import.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

/* XNNPACK's flags. */
enum { TRANSPOSE_WEIGHTS = 1, ALIGN_CORNERS = 8, KEEP_DIMS = 0x40 };

static const pph_payload_rule rules[PPH_PAYLOAD_KIND_COUNT] = {
#define PLAIN(name, kind)                                                      \
  [PPH_PAYLOAD_##name] = {pph_payload_make_plain, PPH_NODE_##kind, 0}
#define OWN(name, make, flags)                                                 \
  [PPH_PAYLOAD_##name] = {pph_payload_make_##make, PPH_NODE_KIND_COUNT, flags}
    PLAIN(ADD, ADD),
    PLAIN(SUBTRACT, SUB),
    PLAIN(MULTIPLY, MUL),
    PLAIN(DIV, DIV),
    PLAIN(MINIMUM, MIN),
    PLAIN(MAXIMUM, MAX),
    PLAIN(PRELU, PRELU),
    PLAIN(SIGMOID, SIGMOID),
    PLAIN(CLAMP, IDENTITY),
    PLAIN(COPY, IDENTITY),
    PLAIN(FLOOR, FLOOR),
    PLAIN(CEILING, CEIL),
    PLAIN(SQUARE_ROOT, SQRT),
    PLAIN(HARD_SWISH, HARD_SWISH),
    PLAIN(NEGATE, NEG),
    PLAIN(ABS, ABS),
    PLAIN(LOG, LOG),
    PLAIN(TANH, TANH),
    PLAIN(EXP, EXP),
    PLAIN(SIN, SIN),
    PLAIN(COS, COS),
    OWN(LEAKY_RELU, leaky, 0),
    OWN(ELU, elu, 0),
    OWN(SQUARE, square, 0),
    OWN(RECIPROCAL_ROOT, reciprocal_root, 0),
    OWN(GELU, gelu, 0),
    OWN(SOFTMAX, softmax, 0),
    OWN(CONVERT, convert, 0),
    OWN(TRANSPOSE, transpose, 0),
    OWN(RESHAPE, reshape, 0),
    OWN(SLICE, slice, 0),
    OWN(PAD, pad, 0),
    OWN(CONCATENATE_2, concatenate, 0),
    OWN(CONCATENATE_3, concatenate, 0),
    OWN(CONCATENATE_4, concatenate, 0),
    OWN(CONCATENATE_5, concatenate, 0),
    OWN(FULLY_CONNECTED, linear, TRANSPOSE_WEIGHTS),
    OWN(BATCH_MATMUL, matmul, TRANSPOSE_WEIGHTS),
    OWN(CONV, conv, 0),
    OWN(DEPTHWISE, conv, 0),
    OWN(CONV_TRANSPOSE, conv, 0),
    OWN(MAX_POOL, pool, KEEP_DIMS),
    OWN(AVERAGE_POOL, pool, KEEP_DIMS),
    OWN(ARGMAX_POOL, argmax, KEEP_DIMS),
    OWN(GLOBAL_AVERAGE, global_average, KEEP_DIMS),
    OWN(RESIZE, resize, ALIGN_CORNERS),
#undef PLAIN
#undef OWN
};

const pph_payload_rule *pph_payload_find_rule(uint32_t kind) {
  return &rules[kind];
}

pph_status pph_payload_fail(const pph_payload_step *step, pph_status status,
                            const char *format, ...) {
  char where[96], message[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  snprintf(where, sizeof where, "payload's node %u XNN%s", step->number,
           pph_payload_kind_name(step->node->xnode_union.type));
  return pph_fail(step->importer->error, status, where, "%s", message);
}

pph_status pph_payload_floats(const pph_payload_step *step, uint32_t slot,
                              const float **data, const char **external) {
  const pph_payload_importer *importer = step->importer;
  const pph_pte_external *file;
  pph_pte_bytes bytes;
  *data = NULL;
  PPH_TRY(pph_payload_find_constant(importer->index, step->inputs[slot],
                                    importer->pte, &bytes, &file,
                                    importer->error));
  if (bytes.count > importer->graph->tensor_limit)
    return pph_payload_fail(step, PPH_LIMIT_EXCEEDED,
                            "a constant has %zu bytes, more than the limit",
                            bytes.count);
  float *copy =
      pph_arena_allocate(&importer->graph->arena, bytes.count + 64, 1);
  if (!copy)
    return pph_fail_memory(importer->error);
  if (bytes.count)
    memcpy(copy, bytes.at, bytes.count);
  *data = copy;
  *external = NULL;
  if (file && !(*external = pph_arena_copy_text(
                    &importer->graph->arena, file->name, strlen(file->name))))
    return pph_fail_memory(importer->error);
  return PPH_OK;
}

pph_status pph_payload_add_floats(const pph_payload_step *step,
                                  const float *data, const pph_shape *shape,
                                  const char *external, pph_id *id) {
  pph_graph *graph = step->importer->graph;
  PPH_TRY(pph_graph_add_value(graph, NULL, id, step->importer->error));
  pph_value *value = pph_graph_value(graph, *id);
  value->type = PPH_F32;
  value->has_rank = true;
  value->shape = *shape;
  value->data = data;
  value->origin.external = external;
  return PPH_OK;
}

pph_status pph_payload_input(const pph_payload_step *step, uint32_t slot,
                             pph_id *id) {
  const pph_payload_slot *from = step->inputs[slot];
  pph_id *known =
      &step->importer->ids[from - step->importer->index->slots];
  if (*known == PPH_NO_VALUE) {
    pph_shape shape = {.rank = (int32_t)from->tensor->dims.count};
    const float *data;
    const char *external;
    for (int32_t i = 0; i < shape.rank; i++)
      shape.dims[i] = from->tensor->dims.at[i];
    PPH_TRY(pph_payload_floats(step, slot, &data, &external));
    PPH_TRY(pph_payload_add_floats(step, data, &shape, external, known));
  }
  *id = *known;
  return PPH_OK;
}

pph_status pph_payload_emit(const pph_payload_step *step, pph_node_kind kind,
                            const pph_id *inputs, uint32_t count,
                            pph_node **node, pph_id *output) {
  pph_node *made;
  char name[64];
  pph_graph *graph = step->importer->graph;
  pph_error *error = step->importer->error;
  snprintf(name, sizeof name, "XNN%s_%u",
           pph_payload_kind_name(step->node->xnode_union.type), step->number);
  PPH_TRY(pph_graph_add_node(graph, kind, name, NULL, &made, error));
  made->index = step->number;
  PPH_TRY(pph_node_set_inputs(graph, made, inputs, count, error));
  PPH_TRY(pph_graph_add_value(graph, NULL, output, error));
  if (node)
    *node = made;
  return pph_node_set_outputs(graph, made, output, 1, error);
}

static pph_status permute(const pph_payload_step *step, const int64_t *perm,
                          pph_id from, pph_id *to) {
  pph_node *node;
  PPH_TRY(pph_payload_emit(step, PPH_NODE_TRANSPOSE, &from, 1, &node, to));
  return pph_node_set_ints(step->importer->graph, node, PPH_ATTR_PERM, perm, 4,
                           step->importer->error);
}

pph_status pph_payload_to_channels_first(const pph_payload_step *step,
                                         pph_id from, pph_id *to) {
  static const int64_t perm[] = {0, 3, 1, 2};
  return permute(step, perm, from, to);
}

pph_status pph_payload_to_channels_last(const pph_payload_step *step,
                                        pph_id from, pph_id *to) {
  static const int64_t perm[] = {0, 2, 3, 1};
  return permute(step, perm, from, to);
}

pph_status pph_payload_clamp(const pph_payload_step *step, pph_id *id) {
  static const pph_shape scalar = {0};
  const pph_payload_min_max *range = step->node->output_min_max;
  pph_graph *graph = step->importer->graph;
  pph_id inputs[3] = {*id, PPH_NO_VALUE, PPH_NO_VALUE};
  if (!range || (isinf(range->output_min) && isinf(range->output_max)))
    return PPH_OK;
  if (range->output_min == 0 && isinf(range->output_max))
    return pph_payload_emit(step, PPH_NODE_RELU, inputs, 1, NULL, id);
  const float limits[2] = {range->output_min, range->output_max};
  for (int i = 0; i < 2; i++) {
    const pph_tensor limit = {PPH_F32, scalar, (void *)(uintptr_t)&limits[i]};
    PPH_TRY(pph_graph_add_constant(graph, NULL, &limit, &inputs[1 + i],
                                   step->importer->error));
  }
  return pph_payload_emit(step, PPH_NODE_CLIP, inputs, 3, NULL, id);
}

void pph_payload_finish(const pph_payload_step *step, uint32_t slot,
                        pph_id id) {
  step->importer->ids[step->outputs[slot] - step->importer->index->slots] = id;
}

static void open_step(pph_payload_importer *importer, uint32_t number,
                      pph_payload_step *step) {
  pph_payload_uses uses;
  const pph_payload_node *node =
      &importer->index->payload->graph->xnodes.at[number];
  *step = (pph_payload_step){.importer = importer,
                             .node = node,
                             .table = node->xnode_union.value,
                             .number = number};
  pph_payload_find_uses(node, &uses);
  step->input_count = uses.input_count;
  step->output_count = uses.output_count;
  for (uint32_t i = 0; i < uses.input_count; i++)
    step->inputs[i] = pph_payload_find(importer->index, uses.inputs[i]);
  for (uint32_t i = 0; i < uses.output_count; i++)
    step->outputs[i] = pph_payload_find(importer->index, uses.outputs[i]);
}

/* The flags of a node; every table has them. */
static uint32_t find_flags(const pph_payload_node *node) {
  const pph_flat_table *table =
      pph_payload_node_union_members()->tables[node->xnode_union.type]();
  uint32_t flags = 0;
  for (uint32_t i = 0; i < table->field_count; i++)
    if (strcmp(table->fields[i].name, "flags") == 0)
      memcpy(&flags,
             (const char *)node->xnode_union.value + table->fields[i].offset,
             sizeof flags);
  return flags;
}

static void name_type(const pph_payload_slot *slot, char *text, size_t size) {
  size_t used = strlen(text);
  snprintf(text + used, size - used, "%s%s", used ? ", " : "",
           slot ? pph_payload_type_name(slot->tensor->datatype) : "none");
}

/* Whether the node and the types of its values can be imported. */
static pph_status check_step(const pph_payload_step *step) {
  const pph_payload_rule *rule =
      pph_payload_find_rule(step->node->xnode_union.type);
  uint32_t flags = find_flags(step->node);
  char types[128] = "";
  bool all_floats = true;
  if (!rule->make)
    return pph_payload_fail(step, PPH_UNSUPPORTED,
                            "this kind of node is not supported");
  if (flags & ~rule->flags)
    return pph_payload_fail(step, PPH_UNSUPPORTED,
                            "flags 0x%x of its 0x%x are not supported",
                            flags & ~rule->flags, flags);
  for (uint32_t i = 0; i < step->input_count; i++) {
    name_type(step->inputs[i], types, sizeof types);
    all_floats &= !step->inputs[i] ||
                  step->inputs[i]->tensor->datatype == PPH_PAYLOAD_F32;
  }
  name_type(step->outputs[0], types, sizeof types);
  all_floats &= step->outputs[0]->tensor->datatype == PPH_PAYLOAD_F32;
  return all_floats
             ? PPH_OK
             : pph_payload_fail(step, PPH_UNSUPPORTED,
                                "the types %s are not supported, fp32 is",
                                types);
}

static pph_status take_inputs(pph_payload_importer *importer,
                              const pph_id *arguments, uint32_t count) {
  for (uint32_t i = 0; i < importer->index->count; i++) {
    const pph_payload_tensor *tensor = importer->index->slots[i].tensor;
    importer->ids[i] = PPH_NO_VALUE;
    if (tensor->flags && tensor->external_id >= count)
      return pph_fail(importer->error, PPH_BAD_MODEL, "payload",
                      "it has an external value %u, its call %u arguments",
                      tensor->external_id, count);
    if (tensor->flags == PPH_PAYLOAD_INPUT)
      importer->ids[i] = arguments[tensor->external_id];
  }
  return PPH_OK;
}

static pph_status give_outputs(const pph_payload_importer *importer,
                               pph_id *arguments) {
  for (uint32_t i = 0; i < importer->index->count; i++) {
    const pph_payload_tensor *tensor = importer->index->slots[i].tensor;
    if (tensor->flags != PPH_PAYLOAD_OUTPUT)
      continue;
    if (importer->ids[i] == PPH_NO_VALUE)
      return pph_fail(importer->error, PPH_UNSUPPORTED, "payload",
                      "its output %u is a constant or an index of ArgMax",
                      tensor->external_id);
    arguments[tensor->external_id] = importer->ids[i];
  }
  return PPH_OK;
}

static pph_status import_all(pph_payload_importer *importer,
                             pph_id *arguments, uint32_t count) {
  uint32_t nodes = importer->index->payload->graph->xnodes.count;
  pph_payload_step step;
  PPH_TRY(take_inputs(importer, arguments, count));
  for (uint32_t i = 0; i < nodes; i++) {
    open_step(importer, i, &step);
    PPH_TRY(check_step(&step));
  }
  for (uint32_t i = 0; i < nodes; i++) {
    open_step(importer, i, &step);
    PPH_TRY(pph_payload_find_rule(step.node->xnode_union.type)->make(&step));
  }
  return give_outputs(importer, arguments);
}

pph_status pph_payload_import(const pph_payload_index *index,
                              const pph_pte *pte, pph_graph *graph,
                              pph_id *arguments, uint32_t count,
                              pph_error *error) {
  pph_payload_importer importer = {index, pte, graph, NULL, error};
  importer.ids =
      pph_heap_allocate(graph->heap, index->count, sizeof *importer.ids);
  if (!importer.ids)
    return pph_fail_memory(error);
  pph_status status = import_all(&importer, arguments, count);
  pph_heap_release(graph->heap, importer.ids);
  return status;
}
