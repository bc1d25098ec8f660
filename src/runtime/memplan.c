/* Every value's place in the block: a walk over the steps that takes memory
   when a value is made and gives it back after its last reader, best fit first.
   The end of the block grows as needed. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/program.h"

/* XNNPACK reads up to 16 bytes past a tensor's end. */
enum { SLACK = 16 };

typedef struct gap {
  size_t offset, bytes;
} gap;

typedef struct planner {
  pph_program *program;
  uint32_t *last_use; /* per value: step after which its memory is free */
  gap *gaps;          /* sorted by offset */
  size_t gap_count, gap_capacity;
} planner;

static pph_id root_of(const planner *plan, pph_id id) {
  return plan->program->slots[id].root;
}

static pph_status value_bytes(const planner *plan, pph_id id, size_t *bytes,
                              pph_error *error) {
  const pph_value *value = pph_graph_value(&plan->program->graph, id);
  if (!pph_shape_bytes(&value->shape, value->type, bytes) ||
      !pph_checked_add(*bytes, SLACK, bytes) ||
      !pph_checked_round_up(*bytes, PPH_ALIGNMENT, bytes))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, value->name,
                    "the value's size does not fit in memory");
  return PPH_OK;
}

static void remove_gap(planner *plan, size_t at) {
  memmove(&plan->gaps[at], &plan->gaps[at + 1],
          (plan->gap_count - at - 1) * sizeof(gap));
  plan->gap_count--;
}

static pph_status insert_gap(planner *plan, size_t at, gap made,
                             pph_error *error) {
  if (plan->gap_count == plan->gap_capacity) {
    size_t capacity = plan->gap_capacity * 2 + 64;
    gap *grown = pph_heap_grow(plan->program->heap, plan->gaps,
                               plan->gap_count * sizeof(gap), capacity,
                               sizeof(gap));
    if (!grown)
      return pph_fail_memory(error);
    plan->gaps = grown;
    plan->gap_capacity = capacity;
  }
  memmove(&plan->gaps[at + 1], &plan->gaps[at],
          (plan->gap_count - at) * sizeof(gap));
  plan->gaps[at] = made;
  plan->gap_count++;
  return PPH_OK;
}

/* Gives [offset, offset+bytes) back, joining neighbours. */
static pph_status give_back(planner *plan, size_t offset, size_t bytes,
                            pph_error *error) {
  size_t low = 0, high = plan->gap_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (plan->gaps[middle].offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  bool joins_before = low > 0 && plan->gaps[low - 1].offset +
                                         plan->gaps[low - 1].bytes ==
                                     offset;
  bool joins_after =
      low < plan->gap_count && plan->gaps[low].offset == offset + bytes;
  if (joins_before && joins_after) {
    plan->gaps[low - 1].bytes += bytes + plan->gaps[low].bytes;
    remove_gap(plan, low);
  } else if (joins_before) {
    plan->gaps[low - 1].bytes += bytes;
  } else if (joins_after) {
    plan->gaps[low].offset = offset;
    plan->gaps[low].bytes += bytes;
  } else {
    return insert_gap(plan, low, (gap){offset, bytes}, error);
  }
  return PPH_OK;
}

static pph_status take(planner *plan, size_t bytes, size_t *offset,
                       pph_error *error) {
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < plan->gap_count; i++)
    if (plan->gaps[i].bytes >= bytes &&
        (best == SIZE_MAX || plan->gaps[i].bytes < plan->gaps[best].bytes))
      best = i;
  if (best != SIZE_MAX) {
    *offset = plan->gaps[best].offset;
    plan->gaps[best].offset += bytes;
    plan->gaps[best].bytes -= bytes;
    if (plan->gaps[best].bytes == 0)
      remove_gap(plan, best);
    return PPH_OK;
  }
  /* At the end, together with a gap that touches it. */
  size_t end = plan->program->block_bytes;
  *offset = end;
  if (plan->gap_count) {
    gap *last = &plan->gaps[plan->gap_count - 1];
    if (last->offset + last->bytes == end) {
      *offset = last->offset;
      plan->gap_count--;
    }
  }
  if (!pph_checked_add(*offset, bytes, &plan->program->block_bytes))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "",
                    "the model's values do not fit in memory");
  return PPH_OK;
}

static pph_status place_value(planner *plan, pph_id id, pph_error *error) {
  pph_slot *slot = &plan->program->slots[id];
  const pph_value *value = pph_graph_value(&plan->program->graph, id);
  if (slot->root != id)
    return PPH_OK; /* shares its root's memory */
  if (value->data) {
    slot->place = PPH_PLACE_CONSTANT;
    return PPH_OK;
  }
  size_t bytes;
  PPH_TRY(value_bytes(plan, id, &bytes, error));
  slot->place = PPH_PLACE_BLOCK;
  return take(plan, bytes, &slot->offset, error);
}

/* Releases the memory of `id` when `step` was its last use. */
static pph_status retire(planner *plan, pph_id id, uint32_t step,
                         pph_error *error) {
  pph_id root = root_of(plan, id);
  pph_slot *slot = &plan->program->slots[root];
  if (plan->last_use[root] != step || slot->place != PPH_PLACE_BLOCK)
    return PPH_OK;
  plan->last_use[root] = UINT32_MAX - 1; /* once only */
  size_t bytes;
  PPH_TRY(value_bytes(plan, root, &bytes, error));
  return give_back(plan, slot->offset, bytes, error);
}

static void find_roots(planner *plan) {
  pph_program *program = plan->program;
  for (pph_id id = 0; id < program->graph.value_count; id++)
    program->slots[id].root = id;
  for (uint32_t i = 0; i < program->step_count; i++) {
    const pph_step *step = &program->steps[i];
    if (step->alias_input != UINT32_MAX)
      program->slots[step->node->outputs[0]].root =
          root_of(plan, step->node->inputs[step->alias_input]);
  }
}

static void find_last_uses(planner *plan) {
  pph_program *program = plan->program;
  for (uint32_t i = 0; i < program->step_count; i++) {
    const pph_node *node = program->steps[i].node;
    for (uint32_t k = 0; k < node->output_count; k++)
      if (node->outputs[k] != PPH_NO_VALUE)
        plan->last_use[root_of(plan, node->outputs[k])] = i;
    for (uint32_t k = 0; k < node->input_count; k++)
      if (node->inputs[k] != PPH_NO_VALUE)
        plan->last_use[root_of(plan, node->inputs[k])] = i;
  }
  for (uint32_t i = 0; i < program->graph.output_count; i++)
    plan->last_use[root_of(plan, program->graph.outputs[i])] = UINT32_MAX;
}

/* Constants have a place wherever they are read. */
static void place_constants(planner *plan) {
  pph_program *program = plan->program;
  for (pph_id id = 0; id < program->graph.value_count; id++)
    if (program->graph.values[id].data)
      program->slots[id].place = PPH_PLACE_CONSTANT;
}

static pph_status place_all(planner *plan, pph_error *error) {
  pph_program *program = plan->program;
  place_constants(plan);
  for (uint32_t i = 0; i < program->graph.input_count; i++)
    PPH_TRY(place_value(plan, program->graph.inputs[i], error));
  size_t workspace = 0;
  for (uint32_t i = 0; i < program->step_count; i++) {
    const pph_node *node = program->steps[i].node;
    if (program->steps[i].workspace > workspace)
      workspace = program->steps[i].workspace;
    for (uint32_t k = 0; k < node->output_count; k++)
      if (node->outputs[k] != PPH_NO_VALUE)
        PPH_TRY(place_value(plan, node->outputs[k], error));
    for (uint32_t k = 0; k < node->output_count; k++)
      if (node->outputs[k] != PPH_NO_VALUE)
        PPH_TRY(retire(plan, node->outputs[k], i, error));
    for (uint32_t k = 0; k < node->input_count; k++)
      if (node->inputs[k] != PPH_NO_VALUE)
        PPH_TRY(retire(plan, node->inputs[k], i, error));
  }
  program->workspace_offset = program->block_bytes;
  if (!pph_checked_add(program->block_bytes, workspace,
                       &program->block_bytes) ||
      !pph_checked_add(program->block_bytes, PPH_ALIGNMENT,
                       &program->block_bytes))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "",
                    "the model's values do not fit in memory");
  return PPH_OK;
}

pph_status pph_program_plan_memory(pph_program *program, pph_error *error) {
  size_t values = program->graph.value_count;
  planner plan = {.program = program};
  program->slots = pph_heap_allocate_zeroed(program->heap, values,
                                            sizeof(pph_slot));
  plan.last_use = pph_heap_allocate_zeroed(program->heap, values,
                                           sizeof *plan.last_use);
  pph_status status;
  if (!program->slots || !plan.last_use) {
    status = pph_fail_memory(error);
  } else {
    find_roots(&plan);
    find_last_uses(&plan);
    status = place_all(&plan, error);
  }
  pph_heap_release(program->heap, plan.gaps);
  pph_heap_release(program->heap, plan.last_use);
  return status;
}
