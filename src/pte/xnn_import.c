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
#define PLAIN(name, kind, types)                                               \
  [PPH_PAYLOAD_##name] = {pph_payload_make_plain, PPH_NODE_##kind, 0,          \
                          PPH_PAYLOAD_##types}
#define BOTH(name, make, kind) /* of integers, or a plain node */             \
  [PPH_PAYLOAD_##name] = {pph_payload_make_##make, PPH_NODE_##kind, 0,         \
                          PPH_PAYLOAD_COMPUTES}
#define OWN(name, make, flags, types)                                          \
  [PPH_PAYLOAD_##name] = {pph_payload_make_##make, PPH_NODE_KIND_COUNT, flags, \
                          PPH_PAYLOAD_##types}
    BOTH(ADD, sum, ADD),
    BOTH(SUBTRACT, sum, SUB),
    BOTH(MULTIPLY, product, MUL),
    PLAIN(DIV, DIV, FLOATS),
    PLAIN(MINIMUM, MIN, FLOATS),
    PLAIN(MAXIMUM, MAX, FLOATS),
    PLAIN(PRELU, PRELU, FLOATS),
    PLAIN(SIGMOID, SIGMOID, COMPUTES),
    PLAIN(CLAMP, IDENTITY, MOVES),
    PLAIN(COPY, IDENTITY, MOVES),
    PLAIN(FLOOR, FLOOR, FLOATS),
    PLAIN(CEILING, CEIL, FLOATS),
    PLAIN(SQUARE_ROOT, SQRT, FLOATS),
    PLAIN(HARD_SWISH, HARD_SWISH, COMPUTES),
    PLAIN(NEGATE, NEG, FLOATS),
    PLAIN(ABS, ABS, FLOATS),
    PLAIN(LOG, LOG, FLOATS),
    PLAIN(TANH, TANH, COMPUTES),
    PLAIN(EXP, EXP, FLOATS),
    PLAIN(SIN, SIN, FLOATS),
    PLAIN(COS, COS, FLOATS),
    OWN(LEAKY_RELU, leaky, 0, COMPUTES),
    OWN(ELU, elu, 0, COMPUTES),
    OWN(SQUARE, square, 0, FLOATS),
    OWN(RECIPROCAL_ROOT, reciprocal_root, 0, FLOATS),
    OWN(GELU, gelu, 0, FLOATS),
    OWN(SOFTMAX, softmax, 0, FLOATS),
    OWN(CONVERT, convert, 0, CONVERTS),
    OWN(TRANSPOSE, transpose, 0, MOVES),
    OWN(RESHAPE, reshape, 0, MOVES),
    OWN(SLICE, slice, 0, MOVES),
    OWN(PAD, pad, 0, MOVES),
    OWN(CONCATENATE_2, concatenate, 0, MOVES),
    OWN(CONCATENATE_3, concatenate, 0, MOVES),
    OWN(CONCATENATE_4, concatenate, 0, MOVES),
    OWN(CONCATENATE_5, concatenate, 0, MOVES),
    OWN(FULLY_CONNECTED, linear, TRANSPOSE_WEIGHTS, SUMS),
    OWN(BATCH_MATMUL, matmul, TRANSPOSE_WEIGHTS, FLOATS),
    OWN(CONV, conv, 0, SUMS),
    OWN(DEPTHWISE, conv, 0, SUMS),
    OWN(CONV_TRANSPOSE, conv, 0, SUMS),
    OWN(MAX_POOL, pool, KEEP_DIMS, MOVES),
    OWN(AVERAGE_POOL, pool, KEEP_DIMS, FLOATS),
    OWN(ARGMAX_POOL, argmax, KEEP_DIMS, FLOATS),
    OWN(GLOBAL_AVERAGE, global_average, KEEP_DIMS, COMPUTES),
    OWN(RESIZE, resize, ALIGN_CORNERS, FLOATS),
#undef PLAIN
#undef BOTH
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
    const char *external;
    float *data = pph_payload_allocate(step, pph_payload_count(from));
    if (!data)
      return pph_fail_memory(step->importer->error);
    for (int32_t i = 0; i < shape.rank; i++)
      shape.dims[i] = from->tensor->dims.at[i];
    PPH_TRY(pph_payload_numbers(step, slot, data, &external));
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

pph_status pph_payload_emit_number(const pph_payload_step *step,
                                   pph_node_kind kind, pph_id left,
                                   float number, pph_id *output) {
  const pph_tensor scalar = {PPH_F32, {0}, &number};
  pph_id ids[2] = {left, 0};
  PPH_TRY(pph_graph_add_constant(step->importer->graph, NULL, &scalar, &ids[1],
                                 step->importer->error));
  return pph_payload_emit(step, kind, ids, 2, NULL, output);
}

pph_status pph_payload_clip(const pph_payload_step *step, float low,
                            float high, pph_id *id) {
  static const pph_shape scalar = {0};
  pph_graph *graph = step->importer->graph;
  pph_id inputs[3] = {*id, PPH_NO_VALUE, PPH_NO_VALUE};
  float limits[2] = {low, high};
  if (low == 0 && isinf(high))
    return pph_payload_emit(step, PPH_NODE_RELU, inputs, 1, NULL, id);
  for (int i = 0; i < 2; i++) {
    const pph_tensor limit = {PPH_F32, scalar, &limits[i]};
    PPH_TRY(pph_graph_add_constant(graph, NULL, &limit, &inputs[1 + i],
                                   step->importer->error));
  }
  return pph_payload_emit(step, PPH_NODE_CLIP, inputs, 3, NULL, id);
}

pph_status pph_payload_clamp(const pph_payload_step *step, pph_id *id) {
  const pph_payload_min_max *range = step->node->output_min_max;
  if (!range || (isinf(range->output_min) && isinf(range->output_max)))
    return PPH_OK;
  float low = range->output_min, high = range->output_max;
  if (pph_payload_is_static(step->outputs[0]))
    pph_payload_find_limits(step, &low, &high);
  return pph_payload_clip(step, low, high, id);
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

/* Whether the node and the types of its values can be imported. */
static pph_status check_step(const pph_payload_step *step) {
  const pph_payload_rule *rule =
      pph_payload_find_rule(step->node->xnode_union.type);
  uint32_t flags = find_flags(step->node);
  if (!rule->make)
    return pph_payload_fail(step, PPH_UNSUPPORTED,
                            "this kind of node is not supported");
  if (flags & ~rule->flags)
    return pph_payload_fail(step, PPH_UNSUPPORTED,
                            "flags 0x%x of its 0x%x are not supported",
                            flags & ~rule->flags, flags);
  return pph_payload_check_types(step);
}

static pph_status cast(const pph_payload_importer *importer, pph_dtype type,
                       pph_id *id) {
  pph_node *node;
  PPH_TRY(pph_graph_insert(importer->graph, PPH_NODE_CAST, NULL, id, 1, &node,
                           importer->error));
  *id = node->outputs[0];
  return pph_node_set_int(importer->graph, node, PPH_ATTR_TO, type,
                          importer->error);
}

static pph_status shift(const pph_payload_importer *importer,
                        const pph_payload_slot *slot, pph_node_kind kind,
                        pph_id *id) {
  const pph_payload_per_tensor *whole = slot->quantization;
  float zero = (float)whole->zero_point;
  const pph_tensor scalar = {PPH_F32, {0}, &zero};
  pph_id ids[2] = {*id, 0};
  pph_node *node;
  PPH_TRY(pph_graph_add_constant(importer->graph, NULL, &scalar, &ids[1],
                                 importer->error));
  PPH_TRY(pph_graph_insert(importer->graph, kind, NULL, ids, 2, &node,
                           importer->error));
  *id = node->outputs[0];
  return PPH_OK;
}

/* What the program has as numbers of ours, or back. */
static pph_status cross(const pph_payload_importer *importer,
                        const pph_payload_slot *slot, bool inwards,
                        pph_id *id) {
  int16_t type = slot->tensor->datatype;
  pph_dtype outside = type == PPH_PAYLOAD_F16  ? PPH_F16
                      : type == PPH_PAYLOAD_Q8 ? PPH_I8
                                               : PPH_U8;
  if (type == PPH_PAYLOAD_F32)
    return PPH_OK;
  if (inwards)
    PPH_TRY(cast(importer, PPH_F32, id));
  if (type != PPH_PAYLOAD_F16)
    PPH_TRY(shift(importer, slot, inwards ? PPH_NODE_SUB : PPH_NODE_ADD, id));
  return inwards ? PPH_OK : cast(importer, outside, id);
}

static pph_status check_externals(const pph_payload_importer *importer,
                                  uint32_t count) {
  for (uint32_t i = 0; i < importer->index->count; i++) {
    const pph_payload_slot *slot = &importer->index->slots[i];
    const pph_payload_tensor *tensor = slot->tensor;
    if (tensor->flags && tensor->external_id >= count)
      return pph_fail(importer->error, PPH_BAD_MODEL, "payload",
                      "it has an external value %u, its call %u arguments",
                      tensor->external_id, count);
    if (tensor->flags && !pph_payload_is_float(slot) &&
        !pph_payload_is_static(slot))
      return pph_fail(importer->error, PPH_UNSUPPORTED, "payload",
                      "external values of type %s are not supported",
                      pph_payload_type_name(tensor->datatype));
  }
  return PPH_OK;
}

static pph_status take_inputs(pph_payload_importer *importer,
                              const pph_id *arguments) {
  for (uint32_t i = 0; i < importer->index->count; i++) {
    const pph_payload_tensor *tensor = importer->index->slots[i].tensor;
    importer->ids[i] = PPH_NO_VALUE;
    if (tensor->flags != PPH_PAYLOAD_INPUT)
      continue;
    importer->ids[i] = arguments[tensor->external_id];
    PPH_TRY(cross(importer, &importer->index->slots[i], true,
                  &importer->ids[i]));
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
    pph_id *argument = &arguments[tensor->external_id];
    *argument = importer->ids[i];
    PPH_TRY(cross(importer, &importer->index->slots[i], false, argument));
  }
  return PPH_OK;
}

static pph_status import_all(pph_payload_importer *importer,
                             pph_id *arguments, uint32_t count) {
  uint32_t nodes = importer->index->payload->graph->xnodes.count;
  pph_payload_step step;
  PPH_TRY(check_externals(importer, count));
  for (uint32_t i = 0; i < nodes; i++) {
    open_step(importer, i, &step);
    PPH_TRY(check_step(&step));
  }
  PPH_TRY(take_inputs(importer, arguments));
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
  pph_payload_importer importer = {index, pte, graph, NULL, NULL, error};
  importer.ids =
      pph_heap_allocate(graph->heap, 2 * (size_t)index->count,
                        sizeof *importer.ids);
  if (!importer.ids)
    return pph_fail_memory(error);
  importer.scales = importer.ids + index->count;
  pph_status status = import_all(&importer, arguments, count);
  pph_heap_release(graph->heap, importer.ids);
  return status;
}
