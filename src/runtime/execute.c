/* Running a program. */
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/program.h"

double pph_program_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

/* The memory of a value, NULL for an omitted one. Constants are not written:
   they are inputs only. */
static void *locate(const pph_program *program, pph_id id, char *block) {
  if (id == PPH_NO_VALUE)
    return NULL;
  pph_id root = program->slots[id].root;
  const pph_slot *slot = &program->slots[root];
  if (slot->place == PPH_PLACE_CONSTANT)
    return (void *)(uintptr_t)program->graph.values[root].data;
  return slot->place == PPH_PLACE_BLOCK ? block + slot->offset : NULL;
}

static void bind(pph_program *program, void *block) {
  size_t input = 0, output = 0;
  for (uint32_t i = 0; i < program->step_count; i++) {
    const pph_node *node = program->steps[i].node;
    for (uint32_t k = 0; k < node->input_count; k++)
      program->inputs[input++] = locate(program, node->inputs[k], block);
    for (uint32_t k = 0; k < node->output_count; k++)
      program->outputs[output++] = locate(program, node->outputs[k], block);
  }
  program->block = block;
}

static void copy_inputs(const pph_program *program, const pph_tensor *inputs,
                        char *block) {
  for (uint32_t i = 0; i < program->graph.input_count; i++) {
    void *target = locate(program, program->graph.inputs[i], block);
    size_t bytes;
    if (target && inputs[i].data &&
        pph_shape_bytes(&inputs[i].shape, inputs[i].type, &bytes))
      memcpy(target, inputs[i].data, bytes);
  }
}

static pph_status run_step(pph_program *program, uint32_t index,
                           pph_backend_context *context, char *block,
                           pph_error *error) {
  const pph_step *step = &program->steps[index];
  if (step->alias_input != UINT32_MAX)
    return PPH_OK;
  pph_run_pointers pointers = {
      program->inputs + program->first_input[index],
      program->outputs + program->first_output[index],
      block + program->workspace_offset};
  double start = pph_program_now();
  PPH_TRY(step->backend->run(context, step, &pointers, error));
  program->microseconds[index] = pph_program_now() - start;
  return PPH_OK;
}

pph_status pph_program_run(pph_program *program, pph_backend_context *context,
                           const pph_tensor *inputs, void *block,
                           pph_tensor *outputs, pph_error *error) {
  if (program->block != block)
    bind(program, block);
  copy_inputs(program, inputs, block);
  for (uint32_t i = 0; i < program->step_count; i++) {
    PPH_TRY(run_step(program, i, context, block, error));
    if (context->progress)
      context->progress(context->progress_context, i + 1,
                        program->step_count);
  }
  for (uint32_t i = 0; i < program->graph.output_count; i++) {
    pph_id id = program->graph.outputs[i];
    const pph_value *value = pph_graph_value(&program->graph, id);
    outputs[i] = (pph_tensor){value->type, value->shape,
                              locate(program, id, block)};
  }
  return PPH_OK;
}
