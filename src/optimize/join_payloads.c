#include "optimize/join_payloads.h"

#include <string.h>

#include "base/fail.h"

static pph_payload_tensor *tensor_at(const pph_called_payload *called,
                                     uint32_t i) {
  return pph_payload_tensor_of(&called->payload->graph->xvalues.at[i]);
}

static uint32_t count_values(const pph_called_payload *called) {
  return called->payload->graph->xvalues.count;
}

/* The external value that the method's value `v` is; PPH_PAYLOAD_NONE. */
static uint32_t find_external(const pph_called_payload *called, int32_t v) {
  for (uint32_t i = 0; i < count_values(called); i++) {
    const pph_payload_tensor *tensor = tensor_at(called, i);
    if (tensor->flags && called->args[tensor->external_id] == v)
      return i;
  }
  return PPH_PAYLOAD_NONE;
}

bool pph_can_join_payloads(const pph_called_payload *first,
                           const pph_called_payload *second) {
  if (first->payload->constants.count || second->payload->constants.count ||
      memcmp(first->payload->identifier, second->payload->identifier, 4) != 0)
    return false;
  for (uint32_t i = 0; i < count_values(first); i++)
    if (tensor_at(first, i)->flags &&
        tensor_at(first, i)->external_id >= first->arg_count)
      return false;
  for (uint32_t i = 0; i < count_values(second); i++) {
    const pph_payload_tensor *tensor = tensor_at(second, i);
    if (!tensor->flags)
      continue;
    if (tensor->external_id >= second->arg_count)
      return false;
    uint32_t other = find_external(first, second->args[tensor->external_id]);
    if (other == PPH_PAYLOAD_NONE)
      continue;
    const pph_payload_tensor *its = tensor_at(first, other);
    if (tensor->flags != PPH_PAYLOAD_INPUT ||
        its->datatype != tensor->datatype ||
        its->num_dims != tensor->num_dims ||
        memcmp(its->dims.at, tensor->dims.at,
               its->num_dims * sizeof *its->dims.at) != 0)
      return false;
  }
  return true;
}

/* Numbers of constants move behind those of the first. */
static void move_constants(const pph_called_payload *second, uint32_t by) {
  for (uint32_t i = 0; i < count_values(second); i++) {
    const pph_payload_value *value =
        &second->payload->graph->xvalues.at[i];
    pph_payload_tensor *tensor = pph_payload_tensor_of(value);
    uint32_t *scale = pph_payload_scale_number(value);
    if (tensor->constant_buffer_idx)
      tensor->constant_buffer_idx += by;
    if (scale && *scale)
      *scale += by;
  }
}

static void *copy_both(pph_arena *arena, const void *a, size_t a_count,
                       const void *b, size_t b_count, size_t size) {
  char *both = pph_arena_allocate(arena, a_count + b_count + 1, size);
  if (both && a_count)
    memcpy(both, a, a_count * size);
  if (both && b_count)
    memcpy(both + a_count * size, b, b_count * size);
  return both;
}

static void renumber(pph_payload_node *node, const uint32_t *map) {
  pph_payload_uses uses;
  pph_payload_find_uses(node, &uses);
  for (uint32_t k = 0; k < uses.input_count; k++)
    if (uses.inputs[k] != PPH_PAYLOAD_NONE)
      uses.inputs[k] = map[uses.inputs[k]];
  for (uint32_t k = 0; k < uses.output_count; k++)
    uses.outputs[k] = map[uses.outputs[k]];
  pph_payload_set_uses(node, &uses);
}

/* External values get numbers: inputs first. `hidden` are not external. */
static void number_externals(const pph_called_payload *first,
                             const pph_called_payload *second,
                             const bool *hidden, const pph_payload_graph *graph,
                             int32_t *args, uint32_t *count) {
  *count = 0;
  for (uint32_t flag = PPH_PAYLOAD_INPUT; flag <= PPH_PAYLOAD_OUTPUT; flag++)
    for (uint32_t i = 0; i < graph->xvalues.count; i++) {
      pph_payload_tensor *tensor = pph_payload_tensor_of(&graph->xvalues.at[i]);
      const pph_called_payload *its = i < count_values(first) ? first : second;
      if (tensor->flags != flag || hidden[i])
        continue;
      args[*count] = its->args[tensor->external_id];
      tensor->external_id = (*count)++;
    }
  for (uint32_t i = 0; i < graph->xvalues.count; i++)
    if (hidden[i]) {
      pph_payload_tensor *tensor = pph_payload_tensor_of(&graph->xvalues.at[i]);
      tensor->flags = 0;
      tensor->external_id = PPH_PAYLOAD_NONE;
    }
}

static pph_status join_tables(const pph_called_payload *first,
                              const pph_called_payload *second,
                              pph_payload_graph *graph, pph_arena *arena,
                              pph_error *error) {
  const pph_payload_graph *a = first->payload->graph;
  const pph_payload_graph *b = second->payload->graph;
  uint32_t data = b->constant_data.count ? b->constant_data.count - 1 : 0;
  if (!a->constant_data.count) /* no entry that stands for none */
    data = b->constant_data.count;
  else
    move_constants(second, a->constant_data.count - 1);
  *graph = *a;
  graph->xnodes.count = a->xnodes.count + b->xnodes.count;
  graph->xvalues.count = a->xvalues.count + b->xvalues.count;
  graph->constant_data.count = a->constant_data.count + data;
  graph->xnodes.at =
      copy_both(arena, a->xnodes.at, a->xnodes.count, b->xnodes.at,
                b->xnodes.count, sizeof *graph->xnodes.at);
  graph->xvalues.at =
      copy_both(arena, a->xvalues.at, a->xvalues.count, b->xvalues.at,
                b->xvalues.count, sizeof *graph->xvalues.at);
  graph->constant_data.at = copy_both(
      arena, a->constant_data.at, a->constant_data.count,
      data ? b->constant_data.at + (b->constant_data.count - data) : NULL,
      data, sizeof *graph->constant_data.at);
  return graph->xnodes.at && graph->xvalues.at && graph->constant_data.at
             ? PPH_OK
             : pph_fail_memory(error);
}

pph_status pph_join_payloads(const pph_called_payload *first,
                             const pph_called_payload *second,
                             const bool *wanted, pph_called_payload *joined,
                             pph_arena *arena, pph_error *error) {
  uint32_t offset = count_values(first), count = offset + count_values(second);
  pph_payload *payload = pph_arena_allocate(arena, 1, sizeof *payload);
  pph_payload_graph *graph = pph_arena_allocate(arena, 1, sizeof *graph);
  uint32_t *map = pph_arena_allocate(arena, (size_t)count + 1, sizeof *map);
  bool *hidden = pph_arena_allocate(arena, (size_t)count + 1, 1);
  int32_t *args = pph_arena_allocate(arena, (size_t)count + 1, sizeof *args);
  if (!payload || !graph || !map || !hidden || !args)
    return pph_fail_memory(error);
  PPH_TRY(join_tables(first, second, graph, arena, error));
  for (uint32_t i = 0; i < offset; i++) {
    const pph_payload_tensor *tensor = tensor_at(first, i);
    hidden[i] = tensor->flags == PPH_PAYLOAD_OUTPUT &&
                !wanted[first->args[tensor->external_id]];
  }
  for (uint32_t i = 0; i < count_values(second); i++) {
    const pph_payload_tensor *tensor = tensor_at(second, i);
    uint32_t same =
        tensor->flags ? find_external(first, second->args[tensor->external_id])
                      : PPH_PAYLOAD_NONE;
    map[i] = same == PPH_PAYLOAD_NONE ? offset + i : same;
    hidden[offset + i] = same != PPH_PAYLOAD_NONE;
  }
  for (uint32_t i = first->payload->graph->xnodes.count;
       i < graph->xnodes.count; i++)
    renumber(&graph->xnodes.at[i], map);
  for (uint32_t i = 0; i < count; i++)
    pph_payload_tensor_of(&graph->xvalues.at[i])->id_out = i;
  *payload = *second->payload;
  payload->graph = graph;
  *joined = (pph_called_payload){.payload = payload, .args = args};
  number_externals(first, second, hidden, graph, args, &joined->arg_count);
  graph->num_externs = joined->arg_count;
  return PPH_OK;
}
