/* A ModelProto to a graph: values first, so that nodes may stand in any order,
   then nodes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "graph/shape.h"
#include "graph/verify.h"
#include "onnx/import.h"
#include "onnx/onnx.h"
#include "onnx/wire_scan.h"

enum { OLDEST_OPSET = 6, NEWEST_OPSET = 28 };

/* Unpacking */

typedef struct unpacker {
  pph_arena *arena;
  bool failed;
} unpacker;

/* Large blocks may become constants: 64 bytes of slack, because XNNPACK may
   read past a tensor's end. */
static void *allocate(void *context, size_t size) {
  unpacker *unpack = context;
  size_t slack = size < 1024 ? 0 : 64;
  void *block = size > SIZE_MAX - slack
                    ? NULL
                    : pph_arena_allocate(unpack->arena, size + slack, 1);
  unpack->failed |= !block;
  return block;
}

static void release(void *context, void *block) {
  (void)context; /* the arena keeps it */
  (void)block;
}

static pph_status unpack_model(pph_import *import, const void *bytes,
                               size_t length, const pph_limits *limits,
                               pph_onnx_model **model) {
  PPH_TRY(pph_wire_scan(bytes, length, &pph__onnx__model_proto__descriptor,
                        limits, import->error));
  unpacker unpack = {&import->graph->arena, false};
  ProtobufCAllocator allocator = {allocate, release, &unpack};
  *model = pph__onnx__model_proto__unpack(&allocator, length, bytes);
  if (*model)
    return PPH_OK;
  if (unpack.failed)
    return pph_fail_memory(import->error);
  return pph_fail(import->error, PPH_BAD_MODEL, "",
                  "a field has the wrong type or its numbers are cut off: not "
                  "an ONNX file or damaged");
}

/* Values */

/* Our own names end in "~" and a number: start beyond the file's. */
static void skip_number(pph_graph *graph, const char *name) {
  const char *tail = strrchr(name, '~');
  if (!tail || tail[1] < '0' || tail[1] > '9')
    return;
  char *end;
  unsigned long long number = strtoull(tail + 1, &end, 10);
  if (!*end && number < UINT32_MAX / 2 && number >= graph->name_counter)
    graph->name_counter = (uint32_t)number + 1;
}

/* Enters a value's name; a second value of that name is refused. */
static pph_status enter_name(pph_import *import, pph_id id) {
  pph_id existing;
  const char *name = pph_graph_value(import->graph, id)->name;
  PPH_TRY(pph_text_names_add(&import->names, id, &existing, import->error));
  if (existing != PPH_NO_VALUE)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "the name \"%.200s\" belongs to two values", name);
  skip_number(import->graph, name);
  return PPH_OK;
}

static pph_status add_initializer(pph_import *import, pph_onnx_tensor *source) {
  if (!source->name || !*source->name)
    return pph_fail(import->error, PPH_BAD_MODEL, "", "it has no name");
  pph_id id;
  PPH_TRY(pph_import_add_constant(import, source->name, source, &id));
  return enter_name(import, id);
}

static pph_status add_initializers(pph_import *import) {
  const pph_onnx_graph *source = import->source;
  if (source->n_sparse_initializer)
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "sparse initializers are not supported");
  for (size_t i = 0; i < source->n_initializer; i++) {
    pph_status status = add_initializer(import, source->initializer[i]);
    if (status == PPH_OK)
      continue;
    const char *name = source->initializer[i]->name;
    pph_error_set_where(import->error, "initializer %zu \"%.120s\"", i,
                        name ? name : "");
    return status;
  }
  return PPH_OK;
}

/* One dimension of a declared shape; -1 is what some exporters write for one
   that is not known. */
static pph_status read_dimension(pph_import *import, pph_id id,
                                 const Pph__Onnx__TensorShapeDimension *source,
                                 size_t at) {
  pph_value *value = pph_graph_value(import->graph, id);
  value->dim_names[at] = NULL;
  value->shape.dims[at] = source->has_dim_value ? source->dim_value : -1;
  if (value->shape.dims[at] < -1)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "dimension %zu is %" PRId64 ", must be at least 0", at,
                    value->shape.dims[at]);
  if (!source->has_dim_value && source->dim_param && *source->dim_param)
    value->dim_names[at] = source->dim_param;
  return PPH_OK;
}

static pph_status read_type(pph_import *import, pph_id id,
                            const Pph__Onnx__TypeProto *type) {
  if (!type || !type->tensor_type)
    return pph_fail(import->error, type ? PPH_UNSUPPORTED : PPH_BAD_MODEL, "",
                    type ? "only tensors are supported" : "has no type");
  const Pph__Onnx__TensorTypeProto *tensor = type->tensor_type;
  pph_value *value = pph_graph_value(import->graph, id);
  value->type = pph_import_dtype(tensor->elem_type);
  if (!value->type)
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "element type %" PRId32 " is not supported",
                    tensor->elem_type);
  if (!tensor->shape)
    return PPH_OK;
  if (tensor->shape->n_dim > PPH_MAX_RANK)
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "has %zu dimensions, at most %d are supported",
                    tensor->shape->n_dim, PPH_MAX_RANK);
  for (size_t i = 0; i < tensor->shape->n_dim; i++)
    PPH_TRY(read_dimension(import, id, tensor->shape->dim[i], i));
  value->shape.rank = (int32_t)tensor->shape->n_dim;
  value->has_rank = true;
  return PPH_OK;
}

static bool is_known(const pph_import *import, const char *name, pph_id *id) {
  *id = pph_text_names_find(&import->names, name, strlen(name));
  return *id != PPH_NO_VALUE;
}

/* Old files list initializers among the inputs: they are constants. */
static pph_status add_input(pph_import *import,
                            const pph_onnx_value_info *source, pph_id *id) {
  *id = PPH_NO_VALUE;
  if (!source->name || !*source->name)
    return pph_fail(import->error, PPH_BAD_MODEL, "", "it has no name");
  pph_id constant;
  if (is_known(import, source->name, &constant) &&
      pph_graph_value(import->graph, constant)->data)
    return PPH_OK;
  PPH_TRY(pph_graph_add_value(import->graph, source->name, id, import->error));
  PPH_TRY(enter_name(import, *id));
  return read_type(import, *id, source->type);
}

static pph_status add_inputs(pph_import *import) {
  const pph_onnx_graph *source = import->source;
  pph_id *ids = pph_arena_allocate(&import->graph->arena, source->n_input + 1,
                                   sizeof *ids);
  if (!ids)
    return pph_fail_memory(import->error);
  uint32_t count = 0;
  for (size_t i = 0; i < source->n_input; i++) {
    const char *name = source->input[i]->name;
    pph_status status = add_input(import, source->input[i], &ids[count]);
    if (status != PPH_OK) {
      pph_error_set_where(import->error, "input %zu \"%.120s\"", i,
                          name ? name : "");
      return status;
    }
    count += ids[count] != PPH_NO_VALUE;
  }
  return pph_graph_set_inputs(import->graph, ids, count, import->error);
}

/* Nodes */

static bool is_constant_node(const pph_onnx_node *node) {
  return node->op_type && strcmp(node->op_type, "Constant") == 0 &&
         (!node->domain || !*node->domain ||
          strcmp(node->domain, "ai.onnx") == 0);
}

static pph_status declare_outputs(pph_import *import, uint32_t index) {
  const pph_onnx_node *node = import->source->node[index];
  pph_id id;
  if (is_constant_node(node)) {
    PPH_TRY(pph_import_constant_node(import, node, index, &id));
    return enter_name(import, id);
  }
  for (size_t i = 0; i < node->n_output; i++) {
    if (!node->output[i][0])
      continue;
    PPH_TRY(pph_graph_add_value(import->graph, node->output[i], &id,
                                import->error));
    PPH_TRY(enter_name(import, id));
  }
  return PPH_OK;
}

static pph_status add_nodes(pph_import *import) {
  const pph_onnx_graph *source = import->source;
  if (source->n_node > UINT32_MAX / 2)
    return pph_fail(import->error, PPH_LIMIT_EXCEEDED, "",
                    "the graph has %zu nodes", source->n_node);
  for (uint32_t i = 0; i < source->n_node; i++) {
    pph_status status = declare_outputs(import, i);
    if (status != PPH_OK) {
      pph_import_set_where(import->error, source->node[i], i);
      return status;
    }
  }
  for (uint32_t i = 0; i < source->n_node; i++)
    if (!is_constant_node(source->node[i]))
      PPH_TRY(pph_import_node(import, i));
  return PPH_OK;
}

/* Outputs */

/* The declared type and shape of an output are kept until they are inferred;
   one that makes no sense is as good as none. */
static void keep_declaration(pph_import *import, pph_id id,
                             const pph_onnx_value_info *source) {
  pph_value *value = pph_graph_value(import->graph, id);
  if (!value->producer)
    return;
  pph_error *error = import->error;
  import->error = NULL;
  if (read_type(import, id, source->type) != PPH_OK) {
    value->type = PPH_DTYPE_NONE;
    value->has_rank = false;
    memset(value->dim_names, 0, sizeof value->dim_names);
  }
  /* Exporters write no dimensions where they do not know them. */
  value->has_rank &= value->shape.rank > 0;
  import->error = error;
}

static pph_status add_output(pph_import *import,
                             const pph_onnx_value_info *source,
                             unsigned char *listed, pph_id *id) {
  if (!source->name || !*source->name)
    return pph_fail(import->error, PPH_BAD_MODEL, "", "it has no name");
  if (!is_known(import, source->name, id))
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "no node makes it and no input or initializer has its "
                    "name");
  if (listed[*id]++)
    return pph_fail(import->error, PPH_BAD_MODEL, "", "it is listed twice");
  keep_declaration(import, *id, source);
  return PPH_OK;
}

static pph_status list_outputs(pph_import *import, unsigned char *listed) {
  const pph_onnx_graph *source = import->source;
  pph_id *ids = pph_arena_allocate(&import->graph->arena, source->n_output + 1,
                                   sizeof *ids);
  if (!ids)
    return pph_fail_memory(import->error);
  if (source->n_output == 0)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "the graph has no outputs");
  for (size_t i = 0; i < source->n_output; i++) {
    const char *name = source->output[i]->name;
    pph_status status = add_output(import, source->output[i], listed, &ids[i]);
    if (status != PPH_OK) {
      pph_error_set_where(import->error, "output %zu \"%.120s\"", i,
                          name ? name : "");
      return status;
    }
  }
  return pph_graph_set_outputs(import->graph, ids, (uint32_t)source->n_output,
                               import->error);
}

static pph_status add_outputs(pph_import *import) {
  pph_heap *heap = import->graph->heap;
  unsigned char *listed =
      pph_heap_allocate_zeroed(heap, import->graph->value_count, 1);
  if (!listed)
    return pph_fail_memory(import->error);
  pph_status status = list_outputs(import, listed);
  pph_heap_release(heap, listed);
  return status;
}

/* The whole */

static pph_status find_opset(pph_import *import, const pph_onnx_model *model) {
  import->opset = 0;
  for (size_t i = 0; i < model->n_opset_import; i++) {
    const char *domain = model->opset_import[i]->domain;
    if (!domain || !*domain || strcmp(domain, "ai.onnx") == 0)
      import->opset = model->opset_import[i]->version;
  }
  if (import->opset < 1)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "the model declares no opset of ONNX's own operators");
  if (import->opset < OLDEST_OPSET || import->opset > NEWEST_OPSET)
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "the model has opset %" PRId64
                    ", opsets %d to %d are supported",
                    import->opset, OLDEST_OPSET, NEWEST_OPSET);
  return PPH_OK;
}

static pph_status check_nodes(pph_import *import) {
  for (pph_node *node = import->graph->first; node; node = node->next)
    PPH_TRY(pph_shape_check_node(import->graph, node, import->error));
  return PPH_OK;
}

static pph_status build(pph_import *import, const pph_onnx_model *model) {
  if (!model->graph)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "the model has no graph: not an ONNX file or damaged");
  import->source = model->graph;
  PPH_TRY(find_opset(import, model));
  if (model->graph->name)
    import->graph->name = model->graph->name;
  PPH_TRY(add_initializers(import));
  PPH_TRY(add_inputs(import));
  PPH_TRY(add_nodes(import));
  PPH_TRY(add_outputs(import));
  PPH_TRY(check_nodes(import));
  PPH_TRY(pph_graph_sort(import->graph, import->error));
  return pph_graph_verify(import->graph, import->error);
}

pph_status pph_onnx_import(const void *bytes, size_t length, const char *folder,
                           const pph_limits *limits, pph_graph *graph,
                           pph_error *error) {
  pph_limits standard;
  pph_limits_init(&standard);
  pph_import import = {.graph = graph, .folder = folder, .error = error};
  pph_text_names_init(&import.names, graph);
  pph_onnx_model *model = NULL;
  pph_status status =
      unpack_model(&import, bytes, length, limits ? limits : &standard, &model);
  if (status == PPH_OK)
    status = build(&import, model);
  pph_text_names_clear(&import.names);
  pph_heap_release(graph->heap, import.facts);
  return status;
}
