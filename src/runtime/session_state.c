/* What a session keeps from run to run for models with state. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/loaded_model.h"

/* The tensor of state `i`. */
static pph_tensor *find_state(const pph_session *session, uint32_t i) {
  const pph_graph *graph = &session->model->graph;
  return &session->inputs[graph->input_count - graph->state_count + i];
}

static size_t count_bytes(const pph_tensor *tensor) {
  size_t bytes = 0;
  (void)pph_shape_bytes(&tensor->shape, tensor->type, &bytes);
  return bytes;
}

/* Type and shape of each, and the bytes of all. */
static pph_status describe_states(pph_session *session, size_t *total,
                                  pph_error *error) {
  const pph_graph *graph = &session->model->graph;
  *total = 0;
  for (uint32_t i = 0; i < graph->state_count; i++) {
    pph_tensor *state = find_state(session, i);
    const pph_value *value = pph_graph_value(
        graph, graph->inputs[graph->input_count - graph->state_count + i]);
    size_t bytes;
    *state = (pph_tensor){value->type, value->shape, NULL};
    if (!pph_shape_bytes(&state->shape, state->type, &bytes) ||
        !pph_checked_round_up(bytes, PPH_ALIGNMENT, &bytes) ||
        !pph_checked_add(*total, bytes, total))
      return pph_fail(error, PPH_LIMIT_EXCEEDED, value->name,
                      "the state is too large");
  }
  return PPH_OK;
}

pph_status pph_session_open_state(pph_session *session, pph_error *error) {
  const pph_graph *graph = &session->model->graph;
  pph_heap *heap = &session->heap;
  size_t total;
  session->inputs =
      pph_heap_allocate_zeroed(heap, graph->input_count, sizeof(pph_tensor));
  session->outputs =
      pph_heap_allocate_zeroed(heap, graph->output_count, sizeof(pph_tensor));
  if (!session->inputs || !session->outputs)
    return pph_fail_memory(error);
  PPH_TRY(describe_states(session, &total, error));
  session->state = pph_heap_allocate(heap, total, 1);
  if (!session->state)
    return pph_fail_memory(error);
  char *next = session->state;
  for (uint32_t i = 0; i < graph->state_count; i++) {
    size_t bytes = count_bytes(find_state(session, i));
    find_state(session, i)->data = next;
    (void)pph_checked_round_up(bytes, PPH_ALIGNMENT, &bytes);
    next += bytes;
  }
  pph_session_reset_state(session);
  return PPH_OK;
}

void pph_session_reset_state(pph_session *session) {
  const pph_graph *graph = &session->model->graph;
  for (uint32_t i = 0; i < graph->state_count; i++) {
    const pph_tensor *state = find_state(session, i);
    if (graph->states[i])
      memcpy(state->data, graph->states[i], count_bytes(state));
    else
      memset(state->data, 0, count_bytes(state));
  }
}

void pph_session_close_state(pph_session *session) {
  pph_heap_release(&session->heap, session->inputs);
  pph_heap_release(&session->heap, session->outputs);
  pph_heap_release(&session->heap, session->state);
}

const pph_tensor *pph_session_add_state(pph_session *session,
                                        const pph_tensor *inputs) {
  const pph_graph *graph = &session->model->graph;
  uint32_t given = graph->input_count - graph->state_count;
  if (given)
    memcpy(session->inputs, inputs, given * sizeof *inputs);
  return session->inputs;
}

pph_status pph_session_keep_state(pph_session *session, pph_error *error) {
  const pph_graph *graph = &session->model->graph;
  const pph_tensor *results =
      session->outputs + graph->output_count - graph->state_count;
  char a[128], b[128];
  for (uint32_t i = 0; i < graph->state_count; i++) {
    const pph_tensor *state = find_state(session, i);
    if (results[i].type != state->type ||
        !pph_shape_equal(&results[i].shape, &state->shape))
      return pph_fail(error, PPH_BAD_MODEL, "",
                      "state %u of %s %s would become %s %s", i,
                      pph_dtype_name(state->type),
                      pph_shape_text(&state->shape, a, sizeof a),
                      pph_dtype_name(results[i].type),
                      pph_shape_text(&results[i].shape, b, sizeof b));
  }
  for (uint32_t i = 0; i < graph->state_count; i++)
    if (results[i].data)
      memcpy(find_state(session, i)->data, results[i].data,
             count_bytes(&results[i]));
  return PPH_OK;
}
