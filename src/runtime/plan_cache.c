/* Plans of a session, one per combination of input shapes. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/loaded_model.h"

pph_status pph_input_check(const pph_value *declared,
                           const pph_tensor *tensor, pph_error *error) {
  char found[128], legal[128], what[40];
  if (tensor->type != declared->type)
    return pph_fail(error, PPH_INVALID_ARGUMENT, declared->name,
                    "the input has type %s, must be %s",
                    pph_dtype_text(tensor->type, found, sizeof found),
                    pph_dtype_name(declared->type));
  PPH_TRY(pph_check_range(declared->name, "the input's rank",
                          tensor->shape.rank, 0, PPH_MAX_RANK, error));
  bool fits =
      !declared->has_rank || tensor->shape.rank == declared->shape.rank;
  for (int32_t i = 0; i < tensor->shape.rank; i++) {
    snprintf(what, sizeof what, "the input's dimension %d", (int)i);
    PPH_TRY(pph_check_range(declared->name, what, tensor->shape.dims[i], 0,
                            INT64_MAX, error));
    int64_t dim = fits && declared->has_rank ? declared->shape.dims[i] : -1;
    fits &= dim < 0 || dim == tensor->shape.dims[i];
  }
  if (fits)
    return PPH_OK;
  return pph_fail(error, PPH_INVALID_ARGUMENT, declared->name,
                  "the input has shape %s, must be %s",
                  pph_shape_text(&tensor->shape, found, sizeof found),
                  pph_shape_text(&declared->shape, legal, sizeof legal));
}

/* Same shapes, and same values where these decide shapes. */
static bool matches(const pph_session *session, const pph_program *program,
                    const pph_tensor *inputs) {
  for (uint32_t i = 0; i < program->graph.input_count; i++) {
    const pph_value *value =
        pph_graph_value(&program->graph, program->graph.inputs[i]);
    if (!pph_shape_equal(&value->shape, &inputs[i].shape))
      return false;
    size_t bytes;
    if (!session->is_shape_input[i])
      continue;
    if (!inputs[i].data ||
        !pph_shape_bytes(&value->shape, value->type, &bytes) ||
        memcmp(program->shape_values[i], inputs[i].data, bytes) != 0)
      return false;
  }
  return true;
}

static void move_to_front(pph_session *session, uint32_t index) {
  pph_program *program = session->plans[index];
  memmove(session->plans + 1, session->plans, index * sizeof *session->plans);
  session->plans[0] = program;
  session->current = program;
}

/* The oldest plan goes before the new one is made, so that no more than the
   capacity are ever in memory. */
static void make_room(pph_session *session) {
  session->current = NULL;
  if (session->plan_count == session->plan_capacity)
    pph_program_destroy(session->plans[--session->plan_count],
                        &session->context);
}

pph_status pph_session_find_plan(pph_session *session,
                                 const pph_tensor *inputs, pph_error *error) {
  const pph_graph *graph = &session->model->graph;
  for (uint32_t i = 0; i < graph->input_count; i++)
    PPH_TRY(pph_input_check(pph_graph_value(graph, graph->inputs[i]),
                            &inputs[i], error));
  for (uint32_t i = 0; i < session->plan_count; i++)
    if (matches(session, session->plans[i], inputs)) {
      move_to_front(session, i);
      return PPH_OK;
    }
  make_room(session);
  pph_program *program;
  PPH_TRY(pph_program_create(graph, inputs, &session->options,
                             &session->context, &program, error));
  session->plans[session->plan_count++] = program;
  move_to_front(session, session->plan_count - 1);
  return PPH_OK;
}

pph_status pph_session_reserve_block(pph_session *session, pph_error *error) {
  size_t wanted = session->current->block_bytes;
  if (session->block && session->block_bytes >= wanted)
    return PPH_OK;
  pph_heap_release(&session->heap, session->block);
  session->block_bytes = 0;
  session->block = pph_heap_allocate(&session->heap, wanted, 1);
  /* Pointers of other plans were made for the old block. */
  for (uint32_t i = 0; i < session->plan_count; i++)
    session->plans[i]->block = NULL;
  if (!session->block)
    return pph_fail(error, PPH_OUT_OF_MEMORY, "",
                    "no memory for the %zu bytes that the model's values need, "
                    "or the limit is reached (pph_limits.heap_bytes)",
                    wanted);
  session->block_bytes = wanted;
  return PPH_OK;
}
