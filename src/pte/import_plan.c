#include "pte/import_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "graph/shape.h"
#include "graph/verify.h"
#include "pte/import_call.h"

/* What is asked of the plan before any work: names of what is not imported. */
typedef struct refusal {
  char text[256];
  size_t used;
  uint32_t count;
} refusal;

static void refuse(refusal *r, const char *what) {
  if (!what[0])
    what = "an operator without a name";
  if (strstr(r->text, what) || r->used >= sizeof r->text)
    return;
  r->used += (size_t)snprintf(r->text + r->used, sizeof r->text - r->used,
                              "%s%s", r->count++ ? ", " : "", what);
}

static void refuse_instruction(const pph_pte_plan *plan,
                               const pph_flat_choice *step, refusal *r) {
  const pph_pte_kernel_call *kernel = step->value;
  const pph_pte_delegate_call *delegate = step->value;
  pph_flat_text id;
  char name[96];
  switch (step->type) {
  case PPH_PTE_KERNEL_CALL:
    pph_pte_operator_name(&plan->operators.at[kernel->op_index], name,
                          sizeof name);
    if (!pph_pte_operator_find(name))
      refuse(r, name);
    break;
  case PPH_PTE_DELEGATE_CALL:
    id = plan->delegates.at[delegate->delegate_index].id;
    snprintf(name, sizeof name, "delegate %.*s", pph_flat_text_cut(id, 60),
             id.at);
    if (!pph_flat_text_is(id, "XnnpackBackend"))
      refuse(r, name);
    break;
  case PPH_PTE_FREE_CALL:
  case PPH_PTE_MOVE_CALL:
  case PPH_PTE_JUMP_FALSE_CALL:
    break;
  default:
    refuse(r, "an instruction of a newer version");
  }
}

static bool is_constant(const pph_flat_choice *value) {
  if (value->type != PPH_PTE_TENSOR)
    return false;
  pph_pte_storage storage = pph_pte_tensor_storage(value->value);
  return storage == PPH_PTE_CONSTANT || storage == PPH_PTE_EXTERNAL;
}

static void refuse_value(const pph_flat_choice *value, refusal *r) {
  const pph_pte_tensor *tensor = value->value;
  if (value->type != PPH_PTE_TENSOR)
    return;
  const pph_scalar_type *type = pph_scalar_type_find(tensor->scalar_type);
  if (tensor->sizes.count > PPH_MAX_RANK)
    refuse(r, "tensors of more than 8 dimensions");
  if (!type->type)
    refuse(r, type->name);
  if ((is_constant(value) || pph_pte_tensor_storage(tensor) == PPH_PTE_STATE) &&
      pph_pte_is_permuted(tensor))
    refuse(r, "constants in another dim_order");
}

static pph_status refuse_plan(const pph_pte_importer *import) {
  const pph_pte_plan *plan = import->plan;
  refusal r = {.count = 0};
  for (uint32_t i = 0; i < plan->values.count; i++)
    refuse_value(&plan->values.at[i].val, &r);
  for (uint32_t i = 0; i < plan->chains.count; i++)
    for (uint32_t k = 0; k < plan->chains.at[i].instructions.count; k++)
      refuse_instruction(plan,
                         &plan->chains.at[i].instructions.at[k].instr_args, &r);
  if (!r.count)
    return PPH_OK;
  return pph_fail(import->error, PPH_UNSUPPORTED, "",
                  "the method \"%.*s\" needs what is not imported: %s",
                  pph_flat_text_cut(plan->name, 60), plan->name.at, r.text);
}

/* Dimensions that are upper bounds are not known. */
static void set_shape(const pph_pte_tensor *tensor, pph_dtype *type,
                      pph_shape *shape) {
  *type = pph_scalar_type_find(tensor->scalar_type)->type;
  shape->rank = (int32_t)tensor->sizes.count;
  for (uint32_t i = 0; i < tensor->sizes.count; i++)
    shape->dims[i] = tensor->shape_dynamism ? -1 : tensor->sizes.at[i];
}

static pph_status add_constant(pph_pte_importer *import, uint32_t number) {
  const pph_pte_tensor *source = import->plan->values.at[number].val.value;
  pph_pte_bytes bytes;
  pph_tensor tensor;
  char name[32];
  snprintf(name, sizeof name, "constant%u", number);
  if (!pph_pte_tensor_bytes(import->pte, source, &bytes)) {
    pph_flat_text key = source->extra_tensor_info->fully_qualified_name;
    return pph_fail(import->error, PPH_INVALID_ARGUMENT, name,
                    "no .ptd file of pph_model_options.constants has \"%.*s\" "
                    "with the program's type and sizes",
                    pph_flat_text_cut(key, 120), key.at);
  }
  set_shape(source, &tensor.type, &tensor.shape);
  for (uint32_t i = 0; i < source->sizes.count; i++)
    tensor.shape.dims[i] = source->sizes.at[i];
  tensor.data = (void *)(uintptr_t)bytes.at; /* copied, not written */
  return pph_graph_add_constant(import->graph, name, &tensor,
                                &import->ids[number], import->error);
}

static pph_status add_input(pph_pte_importer *import, const char *name,
                            int32_t number, pph_id *id) {
  const pph_flat_choice *choice = &import->plan->values.at[number].val;
  if (choice->type != PPH_PTE_TENSOR)
    return pph_fail(import->error, PPH_UNSUPPORTED, name,
                    "has type %u, only tensors are supported", choice->type);
  if (import->ids[number] != PPH_NO_VALUE)
    return pph_fail(import->error, PPH_BAD_MODEL, name,
                    "is a constant, or listed twice");
  PPH_TRY(pph_graph_add_value(import->graph, name, id, import->error));
  pph_value *value = pph_graph_value(import->graph, *id);
  value->has_rank = true;
  set_shape(choice->value, &value->type, &value->shape);
  import->ids[number] = *id;
  return PPH_OK;
}

/* Values in the order of a graph's inputs or outputs. */
typedef struct ends {
  const int32_t *numbers; /* the plan's, then the states' */
  uint32_t count, states;
  const char *name; /* "input" or "output" */
  pph_id *ids;
} ends;

static const char *name_end(const ends *list, uint32_t index, char *name,
                            size_t size) {
  uint32_t plain = list->count - list->states;
  if (index < plain)
    snprintf(name, size, "%s%u", list->name, index);
  else
    snprintf(name, size, "%s_state%u", list->name, index - plain);
  return name;
}

/* A value of its own for each output: an input, a constant or an output that
   is listed before is copied. */
static pph_status add_output(pph_pte_importer *import, const ends *list,
                             uint32_t index) {
  int32_t number = list->numbers[index];
  pph_graph *graph = import->graph;
  pph_id *id = &list->ids[index];
  char name[32];
  pph_node *node;
  name_end(list, index, name, sizeof name);
  PPH_TRY(pph_pte_find_id(import, number, id));
  if (*id == PPH_NO_VALUE ||
      import->plan->values.at[number].val.type != PPH_PTE_TENSOR)
    return pph_fail(import->error, PPH_UNSUPPORTED, name,
                    "is no tensor that the method computes");
  bool copies = !pph_graph_value(graph, *id)->producer;
  for (uint32_t i = 0; i < index; i++)
    copies |= list->ids[i] == *id;
  if (copies) {
    PPH_TRY(pph_graph_insert(graph, PPH_NODE_IDENTITY, NULL, id, 1, &node,
                             import->error));
    *id = node->outputs[0];
  }
  const char *copy = pph_arena_copy_text(&graph->arena, name, strlen(name));
  if (!copy)
    return pph_fail_memory(import->error);
  pph_value *value = pph_graph_value(graph, *id);
  value->name = copy;
  if (!value->has_rank) /* as declared, until it is inferred */
    set_shape(import->plan->values.at[number].val.value, &value->type,
              &value->shape);
  value->has_rank = true;
  return PPH_OK;
}

/* What the file has where sizes are dynamic. */
static pph_status add_bounds(pph_pte_importer *import, const ends *list) {
  pph_graph *graph = import->graph;
  pph_shape *bounds =
      pph_arena_allocate(&graph->arena, (size_t)list->count + 1,
                         sizeof *bounds);
  if (!bounds)
    return pph_fail_memory(import->error);
  for (uint32_t i = 0; i < list->count; i++) {
    const pph_pte_tensor *tensor =
        import->plan->values.at[list->numbers[i]].val.value;
    bounds[i] = (pph_shape){.rank = (int32_t)tensor->sizes.count};
    for (uint32_t k = 0; k < tensor->sizes.count; k++)
      bounds[i].dims[k] = tensor->sizes.at[k];
  }
  graph->bounds = bounds;
  return PPH_OK;
}

static pph_status add_inputs(pph_pte_importer *import, const ends *list) {
  char name[32];
  for (uint32_t i = 0; i < list->count; i++)
    PPH_TRY(add_input(import, name_end(list, i, name, sizeof name),
                      list->numbers[i], &list->ids[i]));
  PPH_TRY(add_bounds(import, list));
  return pph_graph_set_inputs(import->graph, list->ids, list->count,
                              import->error);
}

static pph_status add_outputs(pph_pte_importer *import, const ends *list) {
  for (uint32_t i = 0; i < list->count; i++)
    PPH_TRY(add_output(import, list, i));
  return pph_graph_set_outputs(import->graph, list->ids, list->count,
                               import->error);
}

static pph_status import_all(pph_pte_importer *import, const ends *inputs,
                             const ends *outputs) {
  const pph_pte_plan *plan = import->plan;
  for (uint32_t i = 0; i < plan->values.count; i++)
    if (is_constant(&plan->values.at[i].val))
      PPH_TRY(add_constant(import, i));
  PPH_TRY(add_inputs(import, inputs));
  for (uint32_t i = 0; i < plan->chains.count; i++)
    PPH_TRY(pph_pte_import_chain(import, &plan->chains.at[i]));
  PPH_TRY(add_outputs(import, outputs));
  PPH_TRY(pph_graph_verify(import->graph, import->error));
  for (pph_node *node = import->graph->first; node; node = node->next)
    PPH_TRY(pph_shape_check_node(import->graph, node, import->error));
  return PPH_OK;
}

static bool is_input(const pph_pte_plan *plan, uint32_t value) {
  for (uint32_t i = 0; i < plan->inputs.count; i++)
    if ((uint32_t)plan->inputs.at[i] == value)
      return true;
  return false;
}

/* First contents, copied, for a value that has some. */
static pph_status add_state(const pph_pte_importer *import, uint32_t value,
                            const void **contents) {
  const pph_pte_tensor *tensor = import->plan->values.at[value].val.value;
  pph_pte_bytes bytes;
  if (tensor->shape_dynamism)
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "value %u is state of dynamic size", value);
  if (pph_pte_tensor_storage(tensor) != PPH_PTE_STATE ||
      !pph_pte_tensor_bytes(import->pte, tensor, &bytes))
    return PPH_OK;
  void *copy = pph_arena_allocate(&import->graph->arena, bytes.count, 1);
  if (!copy)
    return pph_fail_memory(import->error);
  if (bytes.count)
    memcpy(copy, bytes.at, bytes.count);
  *contents = copy;
  return PPH_OK;
}

/* Behind the plan's own in both lists; what a caller gives is no state even if
   the method writes it. */
static pph_status add_states(pph_pte_importer *import, int32_t *inputs,
                             int32_t *outputs) {
  const pph_pte_plan *plan = import->plan;
  pph_graph *graph = import->graph;
  const void **states = pph_arena_allocate(
      &graph->arena, (size_t)plan->values.count + 1, sizeof *states);
  if (!states)
    return pph_fail_memory(import->error);
  graph->states = states;
  for (uint32_t i = 0; i < plan->values.count; i++) {
    if (!pph_pte_is_state(plan, i) || is_input(plan, i))
      continue;
    PPH_TRY(add_state(import, i, &states[graph->state_count]));
    inputs[plan->inputs.count + graph->state_count] = (int32_t)i;
    outputs[plan->outputs.count + graph->state_count++] = (int32_t)i;
  }
  return PPH_OK;
}

/* Room for the plan's numbers and for all values as states. */
static pph_status start_ends(const pph_pte_importer *import,
                             const int32_t *numbers, uint32_t count,
                             int32_t **all, ends *list) {
  size_t most = (size_t)count + import->plan->values.count + 1;
  *all = pph_arena_allocate(&import->graph->arena, most, sizeof **all);
  list->ids =
      pph_arena_allocate(&import->graph->arena, most, sizeof *list->ids);
  if (!*all || !list->ids)
    return pph_fail_memory(import->error);
  if (count)
    memcpy(*all, numbers, count * sizeof *numbers);
  list->numbers = *all;
  list->count = count;
  return PPH_OK;
}

pph_status pph_pte_import(const pph_pte *pte, const pph_pte_plan *plan,
                          pph_graph *graph, pph_error *error) {
  pph_pte_importer import = {
      .pte = pte, .plan = plan, .graph = graph, .error = error};
  ends inputs = {.name = "input"}, outputs = {.name = "output"};
  int32_t *in, *out;
  PPH_TRY(refuse_plan(&import));
  import.ids = pph_arena_allocate(&graph->arena, (size_t)plan->values.count + 1,
                                  sizeof *import.ids);
  if (!import.ids)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < plan->values.count; i++)
    import.ids[i] = PPH_NO_VALUE;
  PPH_TRY(
      start_ends(&import, plan->inputs.at, plan->inputs.count, &in, &inputs));
  PPH_TRY(start_ends(&import, plan->outputs.at, plan->outputs.count, &out,
                     &outputs));
  graph->method = pph_arena_copy_text(&graph->arena, plan->name.at,
                                      plan->name.count);
  if (!graph->method)
    return pph_fail_memory(error);
  PPH_TRY(add_states(&import, in, out));
  inputs.states = outputs.states = graph->state_count;
  inputs.count += graph->state_count;
  outputs.count += graph->state_count;
  return import_all(&import, &inputs, &outputs);
}
