/* polyphase/model.h */
#include "polyphase/model.h"

#include <string.h>

#include "base/fail.h"
#include "base/public_struct.h"
#include "runtime/loaded_model.h"

void pph_model_options_init(pph_model_options *options) {
  *options = (pph_model_options){.struct_size = sizeof *options};
}

static pph_status make_model(const pph_model_options *options,
                             pph_model **model, pph_error *error) {
  if (options)
    PPH_TRY(pph_check_struct_size("pph_model_options", options->struct_size,
                                  sizeof *options, error));
  pph_limits limits;
  PPH_TRY(pph_limits_take(options ? options->limits : NULL, NULL, &limits,
                          error));
  /* The model lies in its own heap; a heap on the stack starts it. */
  pph_heap heap;
  pph_heap_init(&heap, options ? options->allocator : NULL,
                limits.heap_bytes);
  pph_model *made = pph_heap_allocate_zeroed(&heap, 1, sizeof *made);
  if (!made)
    return pph_error_at(error, "pph_model", pph_fail_memory(error));
  pph_heap_init(&made->heap, options ? options->allocator : NULL,
                limits.heap_bytes);
  made->limits = limits;
  pph_graph_init(&made->graph, &made->heap, &limits);
  *model = made;
  return PPH_OK;
}

/* Takes the model over, whatever the outcome. */
static pph_status finish_load(pph_model *made, const char *folder,
                              const pph_model_options *options,
                              pph_status status, pph_model **model,
                              pph_error *error) {
  if (status == PPH_OK)
    status = pph_loaded_model_import(made, folder, options, error);
  if (status != PPH_OK) {
    pph_model_destroy(made);
    return status;
  }
  *model = made;
  return PPH_OK;
}

/* The folder part of a path, "." when it has none. */
static pph_status copy_folder(pph_model *model, const char *path,
                              char **folder, pph_error *error) {
  const char *slash = strrchr(path, '/');
  if (!slash)
    *folder = pph_arena_copy_text(&model->graph.arena, ".", 1);
  else
    *folder = pph_arena_copy_text(&model->graph.arena, path,
                                  slash == path ? 1 : (size_t)(slash - path));
  return *folder ? PPH_OK : pph_fail_memory(error);
}

pph_status pph_model_load(const char *path, const pph_model_options *options,
                          pph_model **model, pph_error *error) {
  PPH_TRY_POINTER("pph_model_load", model, error);
  *model = NULL;
  PPH_TRY_POINTER("pph_model_load", path, error);
  pph_model *made;
  PPH_TRY(make_model(options, &made, error));
  char *folder = NULL;
  pph_status status = copy_folder(made, path, &folder, error);
  if (status == PPH_OK)
    status = pph_file_read(path, &made->limits, &made->heap, &made->bytes,
                           &made->length, error);
  status = finish_load(made, folder, options, status, model, error);
  return pph_error_in_file(error, path, status);
}

pph_status pph_model_load_bytes(const void *bytes, size_t length,
                                const char *folder,
                                const pph_model_options *options,
                                pph_model **model, pph_error *error) {
  PPH_TRY_POINTER("pph_model_load_bytes", model, error);
  *model = NULL;
  if (length)
    PPH_TRY_POINTER("pph_model_load_bytes", bytes, error);
  pph_model *made;
  PPH_TRY(make_model(options, &made, error));
  pph_status status = PPH_OK;
  made->bytes = pph_heap_allocate(&made->heap, length, 1);
  if (!made->bytes)
    status = pph_fail_memory(error);
  else if (length)
    memcpy(made->bytes, bytes, length);
  made->length = length;
  status = finish_load(made, folder, options, status, model, error);
  return pph_error_at(error, "pph_model_load_bytes", status);
}

void pph_model_destroy(pph_model *model) {
  if (!model)
    return;
  pph_graph_clear(&model->graph);
  pph_heap_release(&model->heap, model->bytes);
  /* The block that holds the model was counted by make_model's heap. */
  pph_heap last;
  pph_heap_init(&last, &model->heap.allocator, 0);
  pph_heap_release(&last, model);
}

static pph_value_info describe(const pph_graph *graph, const pph_id *ids,
                               uint32_t count, uint32_t index) {
  pph_value_info info = {0};
  if (index >= count)
    return info;
  const pph_value *value = pph_graph_value(graph, ids[index]);
  info.name = value->name;
  info.type = value->type;
  info.shape = value->shape;
  if (!value->has_rank)
    info.shape.rank = -1;
  info.bounds = info.shape;
  memcpy(info.dim_names, value->dim_names, sizeof info.dim_names);
  return info;
}

uint32_t pph_model_input_count(const pph_model *model) {
  return model->graph.input_count - model->graph.state_count;
}

uint32_t pph_model_output_count(const pph_model *model) {
  return model->graph.output_count - model->graph.state_count;
}

pph_value_info pph_model_input(const pph_model *model, uint32_t index) {
  pph_value_info info = describe(&model->graph, model->graph.inputs,
                                 pph_model_input_count(model), index);
  if (model->graph.bounds && index < pph_model_input_count(model))
    info.bounds = model->graph.bounds[index];
  return info;
}

pph_value_info pph_model_output(const pph_model *model, uint32_t index) {
  return describe(&model->graph, model->graph.outputs,
                  pph_model_output_count(model), index);
}
