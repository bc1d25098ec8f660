/* One node of the graph to nodes of the file. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "onnx/export.h"

/* Attributes that only newer opsets have; equal to `neutral` (ints: all of
   them) they say nothing and are left out. */
static const struct newer_attribute {
  pph_node_kind kind;
  pph_attribute_key key;
  int64_t opset, neutral;
  const char *neutral_text;
} newer_attributes[] = {
    {PPH_NODE_AVERAGE_POOL, PPH_ATTR_DILATIONS, 19, 1, NULL},
    {PPH_NODE_RESIZE, PPH_ATTR_ANTIALIAS, 18, 0, NULL},
    {PPH_NODE_RESIZE, PPH_ATTR_AXES, 18, -1, NULL},
    {PPH_NODE_RESIZE, PPH_ATTR_KEEP_ASPECT_RATIO_POLICY, 18, 0, "stretch"},
};

/* Values of text attributes that only newer opsets have. */
static const struct newer_text {
  pph_node_kind kind;
  pph_attribute_key key;
  const char *text;
  int64_t opset;
} newer_texts[] = {
    {PPH_NODE_PAD, PPH_ATTR_MODE, "wrap", 19},
    {PPH_NODE_RESIZE, PPH_ATTR_COORDINATE_TRANSFORMATION_MODE,
     "half_pixel_symmetric", 19},
    {PPH_NODE_SCATTER_ND, PPH_ATTR_REDUCTION, "max", 18},
    {PPH_NODE_SCATTER_ND, PPH_ATTR_REDUCTION, "min", 18},
};

enum {
  NEWER_ATTRIBUTES = sizeof newer_attributes / sizeof *newer_attributes,
  NEWER_TEXTS = sizeof newer_texts / sizeof *newer_texts
};

static const struct newer_attribute *find_newer(pph_node_kind kind,
                                                pph_attribute_key key) {
  for (size_t i = 0; i < NEWER_ATTRIBUTES; i++)
    if (newer_attributes[i].kind == kind && newer_attributes[i].key == key)
      return &newer_attributes[i];
  return NULL;
}

static bool is_neutral(const struct newer_attribute *newer,
                       const pph_attribute *attribute) {
  if (newer->neutral_text)
    return strcmp(newer->neutral_text, attribute->text) == 0;
  if (pph_attribute_key_type(attribute->key) == PPH_ATTRIBUTE_INT)
    return attribute->i == newer->neutral;
  for (uint32_t i = 0; i < attribute->count; i++)
    if (attribute->ints[i] != newer->neutral)
      return false;
  return true;
}

static int64_t find_text_opset(const pph_node *node) {
  int64_t opset = 17;
  for (size_t i = 0; i < NEWER_TEXTS; i++) {
    const struct newer_text *newer = &newer_texts[i];
    if (newer->kind == node->kind && newer->opset > opset &&
        strcmp(pph_node_text(node, newer->key, ""), newer->text) == 0)
      opset = newer->opset;
  }
  return opset;
}

/* Kinds whose axes are an attribute until opset 17. */
static bool is_late_reduce(pph_node_kind kind) {
  return kind == PPH_NODE_REDUCE_MAX || kind == PPH_NODE_REDUCE_MEAN ||
         kind == PPH_NODE_REDUCE_MIN;
}

/* The size of output `at` of a Split along its axis, -1 when not known. */
static int64_t find_part(const pph_graph *graph, const pph_node *node,
                         uint32_t at) {
  const pph_value *part = pph_graph_value(graph, node->outputs[at]);
  int64_t axis = pph_node_int(node, PPH_ATTR_AXIS, 0);
  axis += axis < 0 ? part->shape.rank : 0;
  if (!part->has_rank || axis < 0 || axis >= part->shape.rank)
    return -1;
  return part->shape.dims[axis];
}

/* Parts that may differ, by an unknown number: only opset 18 has that. */
static bool is_open_split(const pph_graph *graph, const pph_node *node) {
  if (node->kind != PPH_NODE_SPLIT || pph_node_find_input(graph, node, 1))
    return false;
  for (uint32_t i = 0; i < node->output_count; i++)
    if (find_part(graph, node, i) < 0)
      return true;
  return false;
}

static bool has_open_axes(const pph_graph *graph, const pph_node *node) {
  int64_t axes[PPH_MAX_RANK];
  size_t count;
  return is_late_reduce(node->kind) && pph_node_find_input(graph, node, 1) &&
         !pph_node_read_ints(graph, node, 1, axes, PPH_MAX_RANK, &count);
}

int64_t pph_export_find_opset(const pph_graph *graph, const pph_node *node) {
  int64_t opset = find_text_opset(node);
  for (uint32_t i = 0; i < node->attribute_count; i++) {
    const struct newer_attribute *newer =
        find_newer(node->kind, node->attributes[i].key);
    if (newer && newer->opset > opset &&
        !is_neutral(newer, &node->attributes[i]))
      opset = newer->opset;
  }
  bool pads_axes = node->kind == PPH_NODE_PAD && node->input_count > 3;
  if (opset < 18 &&
      (pads_axes || is_open_split(graph, node) || has_open_axes(graph, node)))
    opset = 18;
  return opset;
}

/* Inputs, outputs, attributes */

static const char *input_name(pph_export *export, const pph_node *node,
                              uint32_t slot) {
  if (slot >= node->input_count || node->inputs[slot] == PPH_NO_VALUE)
    return "";
  pph_id id = export->stands_for[node->inputs[slot]];
  export->used[id] = 1;
  return pph_graph_value(export->graph, id)->name;
}

static pph_status find_inputs(pph_export *export, const pph_node *node,
                              uint32_t count, const char ***names) {
  void *block;
  PPH_TRY(
      pph_export_allocate(export, (size_t)count + 2, sizeof **names, &block));
  *names = block;
  for (uint32_t i = 0; i < count; i++)
    (*names)[i] = input_name(export, node, i);
  return PPH_OK;
}

static pph_status find_outputs(pph_export *export, const pph_node *node,
                               const char ***names) {
  void *block;
  PPH_TRY(pph_export_allocate(export, (size_t)node->output_count + 1,
                              sizeof **names, &block));
  *names = block;
  for (uint32_t i = 0; i < node->output_count; i++)
    (*names)[i] = node->outputs[i] == PPH_NO_VALUE
                      ? ""
                      : pph_graph_value(export->graph, node->outputs[i])->name;
  return PPH_OK;
}

static pph_status write_attributes(pph_export *export, const pph_node *node) {
  for (uint32_t i = 0; i < node->attribute_count; i++) {
    const pph_attribute *attribute = &node->attributes[i];
    if (attribute->key == PPH_ATTR_ACTIVATION_ALPHA ||
        attribute->key == PPH_ATTR_ACTIVATION_MAX ||
        attribute->key == PPH_ATTR_ACTIVATION_MIN)
      continue;
    const struct newer_attribute *newer =
        find_newer(node->kind, attribute->key);
    if (newer && export->opset < newer->opset)
      continue; /* neutral, else the opset would be newer */
    PPH_TRY(pph_export_set_attribute(
        export, pph_attribute_key_name(attribute->key),
        pph_attribute_key_type(attribute->key), attribute));
  }
  return PPH_OK;
}

/* The node as it is, with its first `count` inputs. */
static pph_status write_plain(pph_export *export, const pph_node *node,
                              uint32_t count, const char *const *outputs) {
  const char **inputs;
  PPH_TRY(find_inputs(export, node, count, &inputs));
  while (count && !inputs[count - 1][0])
    count--;
  PPH_TRY(pph_export_add_node(export, node,
                              pph_node_kind_find_info(node->kind)->name,
                              (pph_export_names){inputs, count},
                              (pph_export_names){outputs, node->output_count}));
  return write_attributes(export, node);
}

/* Kinds that are not written as they are */

typedef pph_status write_rule(pph_export *export, const pph_node *node,
                              const char *const *outputs);

static pph_status write_block(pph_export *export, const pph_node *node,
                              const char *const *outputs) {
  return pph_export_block(export, node, input_name(export, node, 0),
                          outputs[0]);
}

static pph_status write_constant_of_shape(pph_export *export,
                                          const pph_node *node,
                                          const char *const *outputs) {
  pph_tensor value;
  bool known = pph_node_find_constant(export->graph, node, 1, &value);
  if (!known && pph_node_find_input(export->graph, node, 1))
    return pph_node_fail(node, export->error, PPH_UNSUPPORTED,
                         "ONNX needs a constant value");
  PPH_TRY(write_plain(export, node, 1, outputs));
  if (!known)
    return PPH_OK;
  value.shape = (pph_shape){1, {1}};
  return pph_export_set_tensor(export, "value", &value);
}

/* Until opset 17 axes are an attribute. */
static pph_status write_reduce(pph_export *export, const pph_node *node,
                               const char *const *outputs) {
  int64_t axes[PPH_MAX_RANK];
  size_t count;
  if (export->opset >= 18 ||
      !pph_node_read_ints(export->graph, node, 1, axes, PPH_MAX_RANK, &count))
    return write_plain(export, node, node->input_count, outputs);
  PPH_TRY(write_plain(export, node, 1, outputs));
  void *copy;
  PPH_TRY(pph_export_allocate(export, count + 1, sizeof *axes, &copy));
  memcpy(copy, axes, count * sizeof *axes);
  pph_attribute attribute = {.count = (uint32_t)count, .ints = copy};
  return pph_export_set_attribute(export, "axes", PPH_ATTRIBUTE_INTS,
                                  &attribute);
}

/* Known parts are told, because before opset 18 others than equal ones must
   be; else their number is. */
static pph_status write_split(pph_export *export, const pph_node *node,
                              const char *const *outputs) {
  void *block;
  const char **inputs;
  if (pph_node_find_input(export->graph, node, 1))
    return write_plain(export, node, node->input_count, outputs);
  if (is_open_split(export->graph, node)) {
    PPH_TRY(write_plain(export, node, 1, outputs));
    return pph_export_set_int(export, "num_outputs", node->output_count);
  }
  PPH_TRY(pph_export_allocate(export, (size_t)node->output_count + 1,
                              sizeof(int64_t), &block));
  int64_t *parts = block;
  for (uint32_t i = 0; i < node->output_count; i++)
    parts[i] = find_part(export->graph, node, i);
  PPH_TRY(find_inputs(export, node, 1, &inputs));
  PPH_TRY(pph_export_add_ints(export, parts, node->output_count, &inputs[1]));
  PPH_TRY(pph_export_add_node(export, node, "Split",
                              (pph_export_names){inputs, 2},
                              (pph_export_names){outputs, node->output_count}));
  return write_attributes(export, node);
}

static const struct {
  pph_node_kind kind;
  write_rule *write;
} rules[] = {
    {PPH_NODE_CONSTANT_OF_SHAPE, write_constant_of_shape},
    {PPH_NODE_DEPTH_TO_SPACE, write_block},
    {PPH_NODE_REDUCE_MAX, write_reduce},
    {PPH_NODE_REDUCE_MEAN, write_reduce},
    {PPH_NODE_REDUCE_MIN, write_reduce},
    {PPH_NODE_SPACE_TO_DEPTH, write_block},
    {PPH_NODE_SPLIT, write_split},
};

static pph_status write_kind(pph_export *export, const pph_node *node,
                             const char *const *outputs) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (rules[i].kind == node->kind)
      return rules[i].write(export, node, outputs);
  return write_plain(export, node, node->input_count, outputs);
}

/* Fused activations */

static pph_status write_bound(pph_export *export, const pph_node *node,
                              float bound, const char **name) {
  pph_dtype type = pph_graph_value(export->graph, node->outputs[0])->type;
  *name = "";
  if (isinf(bound))
    return PPH_OK;
  if (type != PPH_F32 && type != PPH_F64 && type != PPH_DTYPE_NONE)
    return pph_node_fail(node, export->error, PPH_UNSUPPORTED,
                         "a clamp of %s cannot be written",
                         pph_dtype_name(type));
  return pph_export_add_scalar(export, type ? type : PPH_F32, bound, name);
}

static pph_status write_clamp(pph_export *export, const pph_node *node,
                              const char *from, const char *to) {
  float low = pph_node_float(node, PPH_ATTR_ACTIVATION_MIN, -INFINITY);
  float high = pph_node_float(node, PPH_ATTR_ACTIVATION_MAX, INFINITY);
  if (low == 0 && high == INFINITY)
    return pph_export_add_unary(export, node, "Relu", from, to);
  const char *inputs[3] = {from};
  PPH_TRY(write_bound(export, node, low, &inputs[1]));
  PPH_TRY(write_bound(export, node, high, &inputs[2]));
  uint32_t count = inputs[2][0] ? 3 : inputs[1][0] ? 2 : 1;
  return pph_export_add_node(export, node, "Clip",
                             (pph_export_names){inputs, count},
                             (pph_export_names){&to, 1});
}

static pph_status write_activation(pph_export *export, const pph_node *node,
                                   const char *from, const char *to) {
  if (node->activation == PPH_ACTIVATION_CLAMP)
    return write_clamp(export, node, from, to);
  pph_attribute alpha = {
      .f = pph_node_float(node, PPH_ATTR_ACTIVATION_ALPHA, 0)};
  PPH_TRY(pph_export_add_unary(export, node, "LeakyRelu", from, to));
  return pph_export_set_attribute(export, "alpha", PPH_ATTRIBUTE_FLOAT, &alpha);
}

static pph_status write_activated(pph_export *export, const pph_node *node,
                                  const char **outputs) {
  const char *to = outputs[0];
  outputs[0] = pph_export_make_name(export, to);
  if (!outputs[0])
    return pph_fail_memory(export->error);
  PPH_TRY(write_kind(export, node, outputs));
  return write_activation(export, node, outputs[0], to);
}

/* A copy between layouts is nothing in ONNX; an output of the graph keeps its
   name through an Identity. */
static pph_status drop_relayout(pph_export *export, const pph_node *node) {
  pph_id from = export->stands_for[node->inputs[0]], to = node->outputs[0];
  if (!pph_graph_is_output(export->graph, to)) {
    export->stands_for[to] = from;
    return PPH_OK;
  }
  return pph_export_add_unary(export, node, "Identity",
                              input_name(export, node, 0),
                              pph_graph_value(export->graph, to)->name);
}

pph_status pph_export_node(pph_export *export, const pph_node *node) {
  const char **outputs;
  if (node->kind == PPH_NODE_RELAYOUT)
    return drop_relayout(export, node);
  if (node->activation == PPH_ACTIVATION_PRELU || pph_node_adds_residual(node))
    return pph_node_fail(node, export->error, PPH_UNSUPPORTED,
                         "ONNX has no such convolution");
  PPH_TRY(find_outputs(export, node, &outputs));
  if (node->activation == PPH_ACTIVATION_NONE)
    return write_kind(export, node, outputs);
  return write_activated(export, node, outputs);
}
