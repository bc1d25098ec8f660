/* A graph to a ModelProto. */
#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "onnx/export.h"
#include "onnx/onnx.h"
#include "polyphase/version.h"

/* protobuf-c's structures are not const-correct; packing only reads. */
static void *unconst(const void *pointer) { return (void *)(uintptr_t)pointer; }

pph_status pph_export_allocate(pph_export *export, size_t count, size_t size,
                               void **block) {
  *block = pph_arena_allocate(&export->arena, count, size);
  return *block ? PPH_OK : pph_fail_memory(export->error);
}

pph_status pph_export_make_tensor(pph_export *export, const char *name,
                                  const pph_tensor *tensor,
                                  Pph__Onnx__TensorProto **made) {
  size_t bytes, rank = (size_t)tensor->shape.rank;
  void *block, *dims;
  if (!pph_shape_bytes(&tensor->shape, tensor->type, &bytes))
    return pph_fail(export->error, PPH_LIMIT_EXCEEDED, "",
                    "constant \"%.120s\" is too large", name);
  PPH_TRY(pph_export_allocate(export, 1, sizeof **made, &block));
  PPH_TRY(pph_export_allocate(export, rank + 1, sizeof(int64_t), &dims));
  if (rank)
    memcpy(dims, tensor->shape.dims, rank * sizeof(int64_t));
  *made = block;
  pph__onnx__tensor_proto__init(*made);
  (*made)->name = unconst(name);
  (*made)->dims = dims;
  (*made)->n_dims = rank;
  (*made)->has_data_type = 1;
  (*made)->data_type = (int32_t)tensor->type;
  (*made)->has_raw_data = 1;
  (*made)->raw_data.data = tensor->data;
  (*made)->raw_data.len = bytes;
  return PPH_OK;
}

static pph_status make_dims(pph_export *export, const pph_value *value,
                            Pph__Onnx__TensorShapeProto *shape) {
  size_t rank = (size_t)value->shape.rank;
  void *dims, *pointers;
  PPH_TRY(pph_export_allocate(export, rank + 1,
                              sizeof(Pph__Onnx__TensorShapeDimension), &dims));
  PPH_TRY(pph_export_allocate(export, rank + 1, sizeof *shape->dim, &pointers));
  shape->dim = pointers;
  shape->n_dim = rank;
  for (size_t i = 0; i < rank; i++) {
    Pph__Onnx__TensorShapeDimension *dim =
        (Pph__Onnx__TensorShapeDimension *)dims + i;
    pph__onnx__tensor_shape_dimension__init(dim);
    dim->has_dim_value = value->shape.dims[i] >= 0;
    dim->dim_value = value->shape.dims[i];
    if (!dim->has_dim_value)
      dim->dim_param = unconst(value->dim_names[i]);
    shape->dim[i] = dim;
  }
  return PPH_OK;
}

static pph_status make_type(pph_export *export, const pph_value *value,
                            Pph__Onnx__TypeProto **made) {
  void *type, *tensor, *shape;
  PPH_TRY(pph_export_allocate(export, 1, sizeof **made, &type));
  PPH_TRY(pph_export_allocate(export, 1, sizeof(Pph__Onnx__TensorTypeProto),
                              &tensor));
  PPH_TRY(pph_export_allocate(export, 1, sizeof(Pph__Onnx__TensorShapeProto),
                              &shape));
  *made = type;
  pph__onnx__type_proto__init(*made);
  (*made)->tensor_type = tensor;
  pph__onnx__tensor_type_proto__init(tensor);
  (*made)->tensor_type->has_elem_type = 1;
  (*made)->tensor_type->elem_type = (int32_t)value->type;
  if (!value->has_rank)
    return PPH_OK;
  (*made)->tensor_type->shape = shape;
  pph__onnx__tensor_shape_proto__init(shape);
  return make_dims(export, value, shape);
}

static pph_status make_infos(pph_export *export, const pph_id *ids,
                             uint32_t count,
                             Pph__Onnx__ValueInfoProto ***infos) {
  void *block, *pointers;
  PPH_TRY(
      pph_export_allocate(export, (size_t)count + 1, sizeof ***infos, &block));
  PPH_TRY(pph_export_allocate(export, (size_t)count + 1, sizeof **infos,
                              &pointers));
  *infos = pointers;
  for (uint32_t i = 0; i < count; i++) {
    const pph_value *value = pph_graph_value(export->graph, ids[i]);
    Pph__Onnx__ValueInfoProto *info = (Pph__Onnx__ValueInfoProto *)block + i;
    pph__onnx__value_info_proto__init(info);
    info->name = unconst(value->name);
    if (value->type)
      PPH_TRY(make_type(export, value, &info->type));
    (*infos)[i] = info;
  }
  return PPH_OK;
}

/* The graph's constants that a node reads or that are outputs. */
static pph_status add_constants(pph_export *export) {
  const pph_graph *graph = export->graph;
  for (uint32_t i = 0; i < graph->output_count; i++)
    export->used[graph->outputs[i]] = 1;
  for (uint32_t i = 0; i < graph->value_count; i++) {
    const pph_value *value = pph_graph_value(graph, i);
    if (!value->data || !export->used[i])
      continue;
    pph_tensor tensor = {value->type, value->shape, unconst(value->data)};
    PPH_TRY(pph_export_make_tensor(export, value->name, &tensor,
                                   &export->tensors[export->tensor_count]));
    export->tensor_count++;
  }
  return PPH_OK;
}

static pph_status pack(pph_export *export, const Pph__Onnx__ModelProto *model,
                       void **bytes, size_t *length) {
  size_t size = pph__onnx__model_proto__get_packed_size(model);
  if (size > INT_MAX)
    return pph_fail(export->error, PPH_LIMIT_EXCEEDED, "",
                    "the model has %zu bytes, an ONNX file at most %d", size,
                    INT_MAX);
  uint8_t *block = pph_heap_allocate(export->graph->heap, size, 1);
  if (!block)
    return pph_fail_memory(export->error);
  *length = pph__onnx__model_proto__pack(model, block);
  *bytes = block;
  return PPH_OK;
}

static pph_status write_model(pph_export *export, void **bytes,
                              size_t *length) {
  const pph_graph *graph = export->graph;
  Pph__Onnx__ModelProto model = PPH__ONNX__MODEL_PROTO__INIT;
  Pph__Onnx__GraphProto body = PPH__ONNX__GRAPH_PROTO__INIT;
  Pph__Onnx__OperatorSetIdProto set = PPH__ONNX__OPERATOR_SET_ID_PROTO__INIT;
  Pph__Onnx__OperatorSetIdProto *sets[] = {&set};
  char empty[] = "", unnamed[] = "graph", producer[] = "polyphase";
  set.domain = empty;
  set.has_version = 1;
  set.version = export->opset;
  body.name = graph->name[0] ? unconst(graph->name) : unnamed;
  body.node = export->nodes;
  body.n_node = export->node_count;
  body.initializer = export->tensors;
  body.n_initializer = export->tensor_count;
  PPH_TRY(make_infos(export, graph->inputs, graph->input_count, &body.input));
  body.n_input = graph->input_count;
  PPH_TRY(
      make_infos(export, graph->outputs, graph->output_count, &body.output));
  body.n_output = graph->output_count;
  model.has_ir_version = 1;
  model.ir_version = export->opset < 19 ? 8 : 9;
  model.producer_name = producer;
  model.producer_version = unconst(pph_version());
  model.graph = &body;
  model.opset_import = sets;
  model.n_opset_import = 1;
  return pack(export, &model, bytes, length);
}

static pph_status enter_names(pph_export *export) {
  pph_id existing;
  for (uint32_t i = 0; i < export->graph->value_count; i++)
    PPH_TRY(pph_text_names_add(&export->names, i, &existing, export->error));
  return PPH_OK;
}

static pph_status prepare(pph_export *export) {
  const pph_graph *graph = export->graph;
  size_t made = (size_t)graph->node_count * PPH_EXPORT_PER_NODE + 1;
  void *ids, *used, *nodes, *tensors;
  PPH_TRY(pph_export_allocate(export, (size_t)graph->value_count + 1,
                              sizeof(pph_id), &ids));
  PPH_TRY(
      pph_export_allocate(export, (size_t)graph->value_count + 1, 1, &used));
  PPH_TRY(pph_export_allocate(export, made, sizeof *export->nodes, &nodes));
  PPH_TRY(pph_export_allocate(export, made + graph->value_count,
                              sizeof *export->tensors, &tensors));
  export->stands_for = ids;
  export->used = used;
  export->nodes = nodes;
  export->tensors = tensors;
  for (uint32_t i = 0; i < graph->value_count; i++)
    export->stands_for[i] = i;
  for (const pph_node *node = graph->first; node; node = node->next)
    export->opset =
        pph_max_i64(export->opset, pph_export_find_opset(graph, node));
  return enter_names(export);
}

static pph_status export_all(pph_export *export, void **bytes, size_t *length) {
  PPH_TRY(prepare(export));
  for (const pph_node *node = export->graph->first; node; node = node->next)
    PPH_TRY(pph_export_node(export, node));
  PPH_TRY(add_constants(export));
  return write_model(export, bytes, length);
}

pph_status pph_onnx_export(const pph_graph *graph, void **bytes, size_t *length,
                           pph_error *error) {
  pph_export export = {.graph = graph, .opset = 17, .error = error};
  *bytes = NULL;
  *length = 0;
  pph_arena_init(&export.arena, graph->heap);
  pph_text_names_init(&export.names, graph);
  pph_graph_init(&export.node_names, graph->heap, NULL);
  pph_text_names_init(&export.node_table, &export.node_names);
  pph_status status = export_all(&export, bytes, length);
  pph_text_names_clear(&export.names);
  pph_text_names_clear(&export.node_table);
  pph_graph_clear(&export.node_names);
  pph_arena_clear(&export.arena);
  return status;
}
