#include "runtime/compile.h"

#include "base/checked.h"
#include "base/fail.h"
#include "optimize/optimize.h"
#include "pte/container_write.h"
#include "runtime/input_shapes.h"
#include "runtime/loaded_model.h"

static pph_status set_shapes(pph_graph *graph, const pph_shape *shapes,
                             pph_error *error) {
  char text[128];
  for (uint32_t i = 0; i < graph->input_count; i++) {
    pph_value *value = pph_graph_value(graph, graph->inputs[i]);
    if (!pph_shape_known(&shapes[i]))
      return pph_fail(error, PPH_INVALID_ARGUMENT, value->name,
                      "has the shape %s; a program is compiled for shapes "
                      "that are known",
                      pph_shape_text(&shapes[i], text, sizeof text));
    pph_tensor tensor = {value->type, shapes[i], NULL};
    PPH_TRY(pph_input_check(value, &tensor, error));
    if (!pph_shape_fits(&shapes[i], value->type, graph->tensor_limit))
      return pph_fail(error, PPH_LIMIT_EXCEEDED, value->name,
                      "the input is larger than the limit of %llu bytes",
                      (unsigned long long)graph->tensor_limit);
    value->shape = shapes[i];
    value->has_rank = true;
  }
  return PPH_OK;
}

static const pph_shape *find_shape(const void *shapes, uint32_t input) {
  return (const pph_shape *)shapes + input;
}

/* The files of an opened program that was rewritten, in place of `files`. */
static pph_status write_again(pph_pte *pte, uint32_t nodes, pph_heap *heap,
                              pph_pte_files *files, pph_error *error) {
  pph_pte_files made = {.nodes = nodes, .delegates = files->delegates};
  pph_status status = pph_pte_write(pte, heap, &made.program,
                                    &made.program_bytes, error);
  if (status == PPH_OK && files->constants)
    status = pph_pte_write_external(&pte->externals[0], heap, &made.constants,
                                    &made.constant_bytes, error);
  if (status != PPH_OK) {
    pph_pte_files_clear(&made, heap);
    return status;
  }
  pph_pte_files_clear(files, heap); /* nothing of `pte` is read any more */
  *files = made;
  return PPH_OK;
}

/* As `polyphase optimize` would rewrite the program, so that it finds nothing
   left to do. */
static pph_status optimize(pph_lowering lowering, pph_heap *heap,
                           pph_pte_files *files, pph_error *error) {
  const pph_pte_source program = {"", {files->program, files->program_bytes}};
  const pph_pte_source beside = {"",
                                 {files->constants, files->constant_bytes}};
  const pph_optimize_options options = {
      .always = lowering == PPH_LOWERING_ALWAYS,
      .never = lowering == PPH_LOWERING_NEVER};
  pph_optimize_result result;
  pph_pte *pte;
  PPH_TRY(pph_pte_open(&program, &beside, files->constants != NULL, heap, &pte,
                       error));
  pph_status status = pph_pte_optimize(pte, &options, &result, error);
  if (status == PPH_OK && result.changes)
    status = write_again(pte, result.nodes, heap, files, error);
  pph_pte_close(pte);
  return status;
}

static pph_status compile(const pph_graph *model, pph_graph *graph,
                          const pph_shape *shapes,
                          const pph_pass_options *options, bool external,
                          pph_pte_files *files, pph_error *error) {
  PPH_TRY(set_shapes(graph, shapes, error));
  PPH_TRY(pph_blame_inputs(model, find_shape, shapes,
                           pph_pipeline_run(graph, options, error), error));
  return pph_pte_export(graph, external, files, error);
}

pph_status pph_model_compile(const pph_model *model, const pph_shape *shapes,
                             pph_lowering lowering, bool external,
                             pph_heap *heap, pph_pte_files *files,
                             pph_error *error) {
  *files = (pph_pte_files){.program = NULL};
  if (model->graph.state_count)
    return pph_fail(error, PPH_UNSUPPORTED, "compile",
                    "the model keeps state from run to run, which a program "
                    "that is written here cannot");
  pph_graph graph;
  pph_pass_options options;
  pph_pass_options_init(&options);
  options.polyphase = lowering == PPH_LOWERING_ALWAYS  ? PPH_POLYPHASE_ALWAYS
                      : lowering == PPH_LOWERING_NEVER ? PPH_POLYPHASE_NEVER
                                                       : PPH_POLYPHASE_AUTO;
  PPH_TRY(pph_graph_copy(&graph, &model->graph, heap, error));
  pph_status status =
      compile(&model->graph, &graph, shapes, &options, external, files, error);
  pph_graph_clear(&graph);
  if (status == PPH_OK)
    status = optimize(lowering, heap, files, error);
  if (status != PPH_OK)
    pph_pte_files_clear(files, heap);
  return status;
}
