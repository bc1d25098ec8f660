/* Making a program: copy, specialise, passes, lower, plan. */
#include "runtime/program.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/input_shapes.h"

/* The input stays a graph input, but its readers read a constant. */
static pph_status bind_value(pph_graph *graph, pph_id input,
                             const pph_tensor *tensor, const void **values,
                             pph_error *error) {
  const char *name = pph_graph_value(graph, input)->name;
  if (!tensor->data)
    return pph_fail(error, PPH_INVALID_ARGUMENT, name,
                    "shapes depend on this input's values: its data is needed "
                    "to plan");
  pph_id constant;
  PPH_TRY(pph_graph_add_constant(graph, NULL, tensor, &constant, error));
  *values = pph_graph_value(graph, constant)->data;
  pph_graph_replace_uses(graph, input, constant);
  return PPH_OK;
}

static pph_status specialise(pph_program *program, const pph_tensor *inputs,
                             const bool *is_shape_input, pph_error *error) {
  pph_graph *graph = &program->graph;
  program->shape_values =
      pph_arena_allocate(&graph->arena, (size_t)graph->input_count + 1,
                         sizeof *program->shape_values);
  if (!program->shape_values)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < graph->input_count; i++) {
    pph_value *value = pph_graph_value(graph, graph->inputs[i]);
    if (!pph_shape_fits(&inputs[i].shape, inputs[i].type,
                        graph->tensor_limit))
      return pph_fail(error, PPH_LIMIT_EXCEEDED, value->name,
                      "the input is larger than the limit of %llu bytes",
                      (unsigned long long)graph->tensor_limit);
    value->shape = inputs[i].shape;
    value->type = inputs[i].type;
    value->has_rank = true;
    if (is_shape_input && is_shape_input[i])
      PPH_TRY(bind_value(graph, graph->inputs[i], &inputs[i],
                         &program->shape_values[i], error));
  }
  return PPH_OK;
}

static const pph_shape *find_shape(const void *inputs, uint32_t input) {
  return &((const pph_tensor *)inputs)[input].shape;
}

static pph_status build(pph_program *program, const pph_tensor *inputs,
                        const pph_program_options *options,
                        pph_backend_context *context, pph_error *error) {
  PPH_TRY(specialise(program, inputs, options->is_shape_input, error));
  PPH_TRY(pph_pipeline_run(&program->graph, &options->passes, error));
  PPH_TRY(pph_program_lower(program, options, context, error));
  return pph_program_plan_memory(program, error);
}

pph_status pph_program_create(const pph_graph *model, const pph_tensor *inputs,
                              const pph_program_options *options,
                              pph_backend_context *context,
                              pph_program **result, pph_error *error) {
  *result = NULL;
  pph_program *program =
      pph_heap_allocate_zeroed(context->heap, 1, sizeof *program);
  if (!program)
    return pph_fail_memory(error);
  program->heap = context->heap;
  pph_status status =
      pph_graph_copy(&program->graph, model, context->heap, error);
  if (status != PPH_OK) {
    pph_heap_release(context->heap, program);
    return status;
  }
  status = pph_blame_inputs(
      model, find_shape, inputs,
      build(program, inputs, options, context, error), error);
  if (status != PPH_OK) {
    pph_program_destroy(program, context);
    return status;
  }
  *result = program;
  return PPH_OK;
}

void pph_program_destroy(pph_program *program, pph_backend_context *context) {
  if (!program)
    return;
  for (uint32_t i = 0; i < program->step_count; i++)
    program->steps[i].backend->release(context, &program->steps[i]);
  pph_heap *heap = program->heap;
  pph_heap_release(heap, program->steps);
  pph_heap_release(heap, program->microseconds);
  pph_heap_release(heap, program->slots);
  pph_heap_release(heap, program->inputs);
  pph_heap_release(heap, program->outputs);
  pph_heap_release(heap, program->first_input);
  pph_heap_release(heap, program->first_output);
  pph_graph_clear(&program->graph);
  pph_heap_release(heap, program);
}
