#include "optimize/delegate_edit.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/growing.h"

/* The place of the value with that id in the index. */
static uint32_t find_place(const pph_payload_index *index, uint32_t id) {
  const pph_payload_slot *slot =
      id == PPH_PAYLOAD_NONE ? NULL : pph_payload_find(index, id);
  return slot ? (uint32_t)(slot - index->slots) : PPH_PAYLOAD_NONE;
}

static void number_by_place(pph_payload_graph *graph,
                            const pph_payload_index *index) {
  for (uint32_t i = 0; i < graph->xnodes.count; i++) {
    pph_payload_uses uses;
    pph_payload_find_uses(&graph->xnodes.at[i], &uses);
    for (uint32_t k = 0; k < uses.input_count; k++)
      uses.inputs[k] = find_place(index, uses.inputs[k]);
    for (uint32_t k = 0; k < uses.output_count; k++)
      uses.outputs[k] = find_place(index, uses.outputs[k]);
    pph_payload_set_uses(&graph->xnodes.at[i], &uses);
  }
}

pph_status pph_delegate_edit_open(pph_delegate_edit *edit,
                                  pph_payload *payload,
                                  const pph_payload_index *index,
                                  pph_arena *arena, pph_error *error) {
  pph_payload_graph *graph = payload->graph;
  edit->payload = payload;
  edit->x = (pph_payload_export){.arena = arena,
                                 .error = error,
                                 .nodes = graph->xnodes.at,
                                 .node_count = graph->xnodes.count,
                                 .node_capacity = graph->xnodes.count,
                                 .values = graph->xvalues.at,
                                 .value_count = graph->xvalues.count,
                                 .value_capacity = graph->xvalues.count};
  edit->data = graph->constant_data.at;
  edit->data_count = edit->data_capacity = graph->constant_data.count;
  number_by_place(graph, index);
  for (uint32_t i = 0; i < index->count; i++)
    pph_edit_tensor(edit, i)->id_out = i;
  return PPH_OK;
}

static bool is_absorbed(const pph_delegate_edit *edit,
                        const pph_payload_node *node) {
  pph_payload_uses uses;
  pph_payload_find_uses(node, &uses);
  for (uint32_t i = 0; i < edit->absorbed_count; i++)
    if (uses.output_count && edit->absorbed[i] == uses.outputs[0])
      return true;
  return false;
}

pph_status pph_delegate_edit_absorb(pph_delegate_edit *edit, uint32_t id) {
  PPH_TRY(pph_grow(edit->x.arena, &edit->absorbed, edit->absorbed_count,
                   &edit->absorbed_capacity, sizeof *edit->absorbed,
                   edit->x.error));
  edit->absorbed[edit->absorbed_count++] = id;
  return PPH_OK;
}

const pph_payload_node *pph_delegate_edit_find_user(
    const pph_delegate_edit *edit, uint32_t id) {
  const pph_payload_node *user = NULL;
  if (pph_edit_tensor(edit, id)->flags)
    return NULL;
  for (const pph_payload_node *node = edit->visited + 1;
       node < edit->visited_end; node++) {
    pph_payload_uses uses;
    pph_payload_find_uses(node, &uses);
    for (uint32_t k = 0; k < uses.input_count; k++) {
      if (uses.inputs[k] != id)
        continue;
      if (user)
        return NULL;
      user = node;
    }
  }
  return user;
}

pph_status pph_delegate_edit_walk(pph_delegate_edit *edit,
                                  pph_visit_node *visit) {
  pph_payload_export *x = &edit->x;
  const pph_payload_node *nodes = x->nodes;
  uint32_t count = x->node_count;
  x->nodes = NULL;
  x->node_count = x->node_capacity = 0;
  edit->absorbed_count = 0;
  edit->visited_end = count ? nodes + count : nodes;
  for (uint32_t i = 0; i < count; i++) {
    bool taken = is_absorbed(edit, &nodes[i]);
    uint32_t first = x->node_count;
    edit->visited = &nodes[i];
    if (!taken)
      PPH_TRY(visit(edit, &nodes[i], &taken));
    if (!taken)
      PPH_TRY(pph_delegate_edit_keep(edit, &nodes[i]));
    for (uint32_t k = first; k < x->node_count; k++)
      x->nodes[k].debug_handle = nodes[i].debug_handle;
  }
  return PPH_OK;
}

pph_status pph_delegate_edit_keep(pph_delegate_edit *edit,
                                  const pph_payload_node *node) {
  uint32_t kind = node->xnode_union.type;
  PPH_TRY(pph_payload_put_node(&edit->x, kind, node->xnode_union.value,
                               pph_payload_find_table(kind)->size,
                               node->output_min_max));
  edit->x.nodes[edit->x.node_count - 1].debug_handle = node->debug_handle;
  return PPH_OK;
}

void pph_delegate_edit_rename_last(pph_delegate_edit *edit, uint32_t id) {
  pph_payload_node *last = &edit->x.nodes[edit->x.node_count - 1];
  pph_payload_uses uses;
  pph_payload_find_uses(last, &uses);
  uses.outputs[0] = id;
  pph_payload_set_uses(last, &uses);
}

/* The table's entry for those bytes. */
static pph_status add_entry(pph_delegate_edit *edit, pph_pte_bytes bytes,
                            const char *prefix,
                            const pph_pte_external *external,
                            uint32_t *number) {
  pph_flat_text key;
  PPH_TRY(pph_constant_store_add(edit->store, bytes, prefix, external, &key,
                                 edit->x.error));
  for (*number = 1; *number < edit->data_count; ++*number) {
    pph_flat_text other = edit->data[*number].named_key;
    if (other.at && pph_flat_text_equal(other, key))
      return PPH_OK;
  }
  if (!edit->data_count) /* entry 0 stands for none */
    *number = 1;
  while (edit->data_count <= *number) {
    PPH_TRY(pph_grow(edit->x.arena, &edit->data, edit->data_count,
                     &edit->data_capacity, sizeof *edit->data,
                     edit->x.error));
    edit->data[edit->data_count++] = (pph_payload_data){
        .offset = UINT64_MAX, .named_key = key};
  }
  return PPH_OK;
}

/* Parameters per channel of its own; others are shared with `like`. */
static pph_status set_scales(pph_delegate_edit *edit,
                             const pph_made_constant *constant, uint32_t id) {
  pph_payload_quantized *value = edit->x.values[id].xvalue_union.value;
  pph_payload_per_channel *channels =
      pph_arena_allocate(edit->x.arena, 1, sizeof *channels);
  const pph_pte_bytes bytes = {(const uint8_t *)constant->scales,
                               constant->scale_count * sizeof(float)};
  if (!channels)
    return pph_fail_memory(edit->x.error);
  channels->scale.at = (const float *)channels; /* empty, but present */
  channels->channel_dim = constant->channel;
  channels->num_scales = constant->scale_count;
  PPH_TRY(add_entry(edit, bytes, "scale_", constant->external,
                    &channels->scale_buffer_idx));
  value->quant_params.value = channels;
  return PPH_OK;
}

pph_status pph_delegate_edit_add_constant(pph_delegate_edit *edit,
                                          const pph_made_constant *constant,
                                          uint32_t *id) {
  uint32_t number;
  PPH_TRY(add_entry(edit, constant->bytes, "", constant->external, &number));
  edit->x.like = constant->like;
  PPH_TRY(pph_payload_put_value(&edit->x, &constant->dims, id));
  pph_edit_tensor(edit, *id)->constant_buffer_idx = number;
  return constant->scales ? set_scales(edit, constant, *id) : PPH_OK;
}

pph_status pph_delegate_edit_find_bytes(const pph_delegate_edit *edit,
                                        uint32_t number, size_t needed,
                                        pph_pte_bytes *bytes,
                                        const pph_pte_external **external) {
  *external = NULL;
  const pph_new_constant *fresh =
      pph_constant_store_find(edit->store, edit->data[number].named_key);
  if (fresh) {
    *bytes = fresh->bytes;
    *external = fresh->external;
    return PPH_OK;
  }
  PPH_TRY(pph_payload_find_bytes(edit->payload, number, edit->pte, bytes,
                                 external, edit->x.error));
  if (bytes->count < needed)
    return pph_fail(edit->x.error, PPH_BAD_MODEL, "payload",
                    "its constant %u has %zu bytes, its value needs %zu",
                    number, bytes->count, needed);
  bytes->count = needed;
  return PPH_OK;
}

void pph_delegate_edit_report(const pph_delegate_edit *edit,
                              const pph_payload_node *node,
                              const char *details, const char *what) {
  char line[480];
  snprintf(line, sizeof line, "%s%s%s: %s",
           pph_payload_kind_name(node->xnode_union.type), *details ? " " : "",
           details, what);
  pph_delegate_edit_tell(edit, line);
}

void pph_delegate_edit_tell(const pph_delegate_edit *edit, const char *what) {
  char line[640];
  if (!edit->options->report)
    return;
  snprintf(line, sizeof line, "%s, %s", edit->name, what);
  edit->options->report(edit->options->context, line);
}

uint32_t *pph_payload_scale_number(const pph_payload_value *value) {
  const pph_payload_quantized *quantized = value->xvalue_union.value;
  if (value->xvalue_union.type != 2)
    return NULL;
  if (quantized->quant_params.type == PPH_PAYLOAD_PER_CHANNEL)
    return &((pph_payload_per_channel *)quantized->quant_params.value)
                ->scale_buffer_idx;
  if (quantized->quant_params.type == PPH_PAYLOAD_PER_GROUP)
    return &((pph_payload_per_group *)quantized->quant_params.value)
                ->scale_buffer_idx;
  return NULL;
}

/* New numbers of what is used, in `map`; PPH_PAYLOAD_NONE for the rest. */
static void mark_used(const pph_delegate_edit *edit, uint32_t *map) {
  for (uint32_t i = 0; i < edit->x.value_count; i++)
    map[i] = pph_edit_tensor(edit, i)->flags ? 0 : PPH_PAYLOAD_NONE;
  for (uint32_t i = 0; i < edit->x.node_count; i++) {
    pph_payload_uses uses;
    pph_payload_find_uses(&edit->x.nodes[i], &uses);
    for (uint32_t k = 0; k < uses.input_count; k++)
      if (uses.inputs[k] != PPH_PAYLOAD_NONE)
        map[uses.inputs[k]] = 0;
    for (uint32_t k = 0; k < uses.output_count; k++)
      map[uses.outputs[k]] = 0;
  }
}

static void drop_values(pph_delegate_edit *edit, uint32_t *map) {
  pph_payload_export *x = &edit->x;
  uint32_t count = 0;
  mark_used(edit, map);
  for (uint32_t i = 0; i < x->value_count; i++)
    if (map[i] != PPH_PAYLOAD_NONE) {
      pph_edit_tensor(edit, i)->id_out = map[i] = count;
      x->values[count++] = x->values[i];
    }
  x->value_count = count;
  for (uint32_t i = 0; i < x->node_count; i++) {
    pph_payload_uses uses;
    pph_payload_find_uses(&x->nodes[i], &uses);
    for (uint32_t k = 0; k < uses.input_count; k++)
      if (uses.inputs[k] != PPH_PAYLOAD_NONE)
        uses.inputs[k] = map[uses.inputs[k]];
    for (uint32_t k = 0; k < uses.output_count; k++)
      uses.outputs[k] = map[uses.outputs[k]];
    pph_payload_set_uses(&x->nodes[i], &uses);
  }
}

/* The bytes inside the payload that are still used, one after the other. */
static pph_status gather_inside(pph_delegate_edit *edit, const uint32_t *used) {
  enum { STEP = 16 };
  size_t total = 0, at = 0;
  for (uint32_t i = 1; i < edit->data_count; i++)
    if (used[i] && !edit->data[i].named_key.at &&
        (!pph_checked_add(total, (size_t)edit->data[i].size, &total) ||
         !pph_checked_round_up(total, STEP, &total)))
      return pph_fail_memory(edit->x.error);
  uint8_t *kept = pph_arena_allocate(edit->x.arena, total + 1, 1);
  if (!kept)
    return pph_fail_memory(edit->x.error);
  for (uint32_t i = 1; i < edit->data_count; i++) {
    pph_payload_data *data = &edit->data[i];
    const pph_pte_external *external;
    pph_pte_bytes bytes;
    if (!used[i] || data->named_key.at)
      continue;
    PPH_TRY(pph_delegate_edit_find_bytes(edit, i, (size_t)data->size, &bytes,
                                         &external));
    if (bytes.count)
      memcpy(kept + at, bytes.at, bytes.count);
    data->offset = at;
    at = pph_round_up(at + bytes.count, STEP);
  }
  edit->payload->constants = (pph_pte_bytes){kept, total};
  return PPH_OK;
}

/* Entries of constant_data that no value needs leave. */
static pph_status drop_data(pph_delegate_edit *edit) {
  pph_payload_export *x = &edit->x;
  uint32_t count = 1;
  uint32_t *map = pph_arena_allocate(x->arena, (size_t)edit->data_count + 1,
                                     sizeof *map);
  if (!map)
    return pph_fail_memory(x->error);
  for (uint32_t i = 0; i < x->value_count; i++) {
    uint32_t *scale = pph_payload_scale_number(&x->values[i]);
    map[pph_edit_tensor(edit, i)->constant_buffer_idx] = 1;
    if (scale)
      map[*scale] = 1;
  }
  PPH_TRY(gather_inside(edit, map));
  map[0] = 0;
  for (uint32_t i = 1; i < edit->data_count; i++)
    if (map[i]) {
      map[i] = count;
      edit->data[count++] = edit->data[i];
    }
  for (uint32_t i = 0; i < x->value_count; i++) {
    pph_payload_tensor *tensor = pph_edit_tensor(edit, i);
    uint32_t *scale = pph_payload_scale_number(&x->values[i]);
    tensor->constant_buffer_idx = map[tensor->constant_buffer_idx];
    if (scale)
      *scale = map[*scale];
  }
  edit->data_count = edit->data_count < count ? edit->data_count : count;
  return PPH_OK;
}

/* The external values of one kind, by their numbers. */
static pph_status list_externals(pph_delegate_edit *edit, uint32_t flag,
                                 const uint32_t **ids, uint32_t *count) {
  const pph_payload_export *x = &edit->x;
  uint32_t *list =
      pph_arena_allocate(x->arena, (size_t)x->value_count + 1, sizeof *list);
  if (!list)
    return pph_fail_memory(x->error);
  *count = 0;
  for (uint32_t i = 0; i < x->value_count; i++) {
    const pph_payload_tensor *tensor = pph_edit_tensor(edit, i);
    uint32_t at = *count;
    if (tensor->flags != flag)
      continue;
    for (; at && pph_edit_tensor(edit, list[at - 1])->external_id >
                     tensor->external_id; at--)
      list[at] = list[at - 1];
    list[at] = i;
    ++*count;
  }
  *ids = list;
  return PPH_OK;
}

pph_status pph_delegate_edit_close(pph_delegate_edit *edit) {
  pph_payload_export *x = &edit->x;
  pph_payload_graph *graph = edit->payload->graph;
  uint32_t *map = pph_arena_allocate(x->arena, (size_t)x->value_count + 1,
                                     sizeof *map);
  if (!map)
    return pph_fail_memory(x->error);
  drop_values(edit, map);
  PPH_TRY(drop_data(edit));
  PPH_TRY(list_externals(edit, PPH_PAYLOAD_INPUT, &graph->input_ids.at,
                         &graph->input_ids.count));
  PPH_TRY(list_externals(edit, PPH_PAYLOAD_OUTPUT, &graph->output_ids.at,
                         &graph->output_ids.count));
  graph->xnodes.at = x->nodes;
  graph->xnodes.count = x->node_count;
  graph->xvalues.at = x->values;
  graph->xvalues.count = x->value_count;
  graph->constant_data.at = edit->data;
  graph->constant_data.count = edit->data_count;
  return PPH_OK;
}
