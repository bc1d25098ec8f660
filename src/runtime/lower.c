/* Nodes to steps. */
#include "base/fail.h"
#include "graph/shape.h"
#include "runtime/program.h"
#include "runtime/tune.h"

/* Which backends an engine asks, in order. */
static const pph_backend *const engines[][4] = {
    [PPH_ENGINE_AUTO] = {&pph_backend_xnnpack, &pph_backend_native,
                         &pph_backend_reference},
    [PPH_ENGINE_NATIVE] = {&pph_backend_native, &pph_backend_reference},
    [PPH_ENGINE_XNNPACK] = {&pph_backend_xnnpack, &pph_backend_native,
                            &pph_backend_reference},
    [PPH_ENGINE_REFERENCE] = {&pph_backend_reference},
};

static const pph_backend *choose_backend(const pph_graph *graph,
                                         const pph_node *node,
                                         pph_engine engine) {
  for (int i = 0; engine == PPH_ENGINE_AUTO && engines[engine][i]; i++)
    if (engines[engine][i]->prefers && engines[engine][i]->prefers(graph, node))
      return engines[engine][i];
  for (int i = 0; engines[engine][i]; i++)
    if (engines[engine][i]->supports(graph, node))
      return engines[engine][i];
  return NULL;
}

static pph_status lower_node(pph_program *program, const pph_node *node,
                             const pph_program_options *options,
                             pph_backend_context *context, pph_error *error) {
  const pph_backend *backend =
      choose_backend(&program->graph, node, options->engine);
  if (!backend)
    return pph_node_fail(node, error, PPH_UNSUPPORTED,
                         "no backend runs this node");
  pph_step *step = &program->steps[program->step_count];
  *step = (pph_step){.backend = backend,
                     .graph = &program->graph,
                     .node = node,
                     .algorithm = backend->name,
                     .alias_input = UINT32_MAX};
  bool prepared = false;
  if (options->tuner)
    PPH_TRY(pph_tuner_prepare(options->tuner, options->engine, context, step,
                              &prepared, error));
  if (!prepared)
    PPH_TRY(backend->prepare(context, step, error));
  program->step_count++;
  bool moves = node->kind == PPH_NODE_RELAYOUT ||
               node->kind == PPH_NODE_TRANSPOSE;
  program->transposes += moves && step->alias_input == UINT32_MAX;
  return PPH_OK;
}

static void count_operands(const pph_program *program, size_t *inputs,
                           size_t *outputs) {
  *inputs = *outputs = 0;
  for (const pph_node *node = program->graph.first; node; node = node->next) {
    *inputs += node->input_count;
    *outputs += node->output_count;
  }
}

static pph_status allocate_tables(pph_program *program, pph_error *error) {
  pph_heap *heap = program->heap;
  size_t nodes = program->graph.node_count, inputs, outputs;
  count_operands(program, &inputs, &outputs);
  program->steps = pph_heap_allocate_zeroed(heap, nodes, sizeof(pph_step));
  program->microseconds = pph_heap_allocate_zeroed(heap, nodes,
                                                   sizeof(double));
  program->inputs = pph_heap_allocate_zeroed(heap, inputs, sizeof(void *));
  program->outputs = pph_heap_allocate_zeroed(heap, outputs, sizeof(void *));
  program->first_input = pph_heap_allocate(heap, nodes, sizeof(uint32_t));
  program->first_output = pph_heap_allocate(heap, nodes, sizeof(uint32_t));
  if (!program->steps || !program->microseconds || !program->inputs ||
      !program->outputs || !program->first_input || !program->first_output)
    return pph_fail_memory(error);
  return PPH_OK;
}

static pph_status lower_nodes(pph_program *program,
                              const pph_program_options *options,
                              pph_backend_context *context, pph_error *error) {
  uint32_t input = 0, output = 0;
  for (const pph_node *node = program->graph.first; node; node = node->next) {
    program->first_input[program->step_count] = input;
    program->first_output[program->step_count] = output;
    input += node->input_count;
    output += node->output_count;
    PPH_TRY(lower_node(program, node, options, context, error));
    if (options->tuner)
      pph_tuner_tell(options->tuner, program->step_count,
                     program->graph.node_count);
  }
  return PPH_OK;
}

pph_status pph_program_lower(pph_program *program,
                             const pph_program_options *options,
                             pph_backend_context *context, pph_error *error) {
  PPH_TRY(allocate_tables(program, error));
  if (options->tuner)
    pph_tuner_begin(options->tuner);
  pph_status status = lower_nodes(program, options, context, error);
  if (options->tuner)
    pph_tuner_end(options->tuner, program);
  return status;
}

double pph_program_flops(const pph_graph *graph, const pph_node *node) {
  if (node->kind != PPH_NODE_CONV && node->kind != PPH_NODE_CONV_TRANSPOSE)
    return 0;
  pph_window window;
  if (pph_shape_find_window(graph, node, &window, NULL) != PPH_OK)
    return 0;
  bool transposed = node->kind == PPH_NODE_CONV_TRANSPOSE;
  double flops = 2.0 * (double)window.batch * (double)window.in_channels *
                 (double)window.out_channels / (double)window.group;
  for (uint32_t i = 0; i < window.axes; i++)
    flops *= (double)window.kernel[i] *
             (double)(transposed ? window.input[i] : window.output[i]);
  return flops;
}
