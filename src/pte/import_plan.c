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

/* A text's length for "%.*s", at most `most`. */
static int cut(pph_flat_text text, uint32_t most) {
  return (int)(text.count < most ? text.count : most);
}

static void name_operator(const pph_pte_operator *operator, char *name,
                          size_t size) {
  bool has_overload = operator->overload.count > 0;
  snprintf(name, size, "%.*s%s%.*s", cut(operator->name, 60),
           operator->name.at, has_overload ? "." : "",
           cut(operator->overload, 30),
           has_overload ? operator->overload.at : "");
}

static void refuse_instruction(const pph_pte_plan *plan,
                               const pph_flat_choice *step, refusal *r) {
  const pph_pte_kernel_call *kernel = step->value;
  const pph_pte_delegate_call *delegate = step->value;
  char name[96];
  switch (step->type) {
  case PPH_PTE_KERNEL_CALL:
    name_operator(&plan->operators.at[kernel->op_index], name, sizeof name);
    if (!pph_pte_operator_find(name))
      refuse(r, name);
    break;
  case PPH_PTE_DELEGATE_CALL:
    snprintf(name, sizeof name, "delegate %.*s",
             cut(plan->delegates.at[delegate->delegate_index].id, 60),
             plan->delegates.at[delegate->delegate_index].id.at);
    if (!pph_flat_text_is(plan->delegates.at[delegate->delegate_index].id,
                          "XnnpackBackend"))
      refuse(r, name);
    break;
  case PPH_PTE_FREE_CALL:
    break;
  case PPH_PTE_MOVE_CALL:
  case PPH_PTE_JUMP_FALSE_CALL:
    refuse(r, "control flow");
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
  if (is_constant(value) && pph_pte_is_permuted(tensor))
    refuse(r, "constants in another dim_order");
  if (pph_pte_tensor_storage(tensor) == PPH_PTE_STATE)
    refuse(r, "state");
}

static pph_status refuse_plan(const pph_pte_importer *import) {
  const pph_pte_plan *plan = import->plan;
  refusal r = {.count = 0};
  for (uint32_t i = 0; i < plan->values.count; i++)
    refuse_value(&plan->values.at[i].val, &r);
  for (uint32_t i = 0; i < plan->chains.count; i++)
    for (uint32_t k = 0; k < plan->chains.at[i].instructions.count; k++)
      refuse_instruction(
          plan, &plan->chains.at[i].instructions.at[k].instr_args, &r);
  if (!r.count)
    return PPH_OK;
  return pph_fail(import->error, PPH_UNSUPPORTED, "",
                  "the method \"%.*s\" needs what is not imported: %s",
                  cut(plan->name, 60), plan->name.at, r.text);
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
                    "no .ptd file has \"%.*s\" with the program's type and "
                    "sizes",
                    cut(key, 120), key.at);
  }
  set_shape(source, &tensor.type, &tensor.shape);
  for (uint32_t i = 0; i < source->sizes.count; i++)
    tensor.shape.dims[i] = source->sizes.at[i];
  tensor.data = (void *)(uintptr_t)bytes.at; /* copied, not written */
  return pph_graph_add_constant(import->graph, name, &tensor,
                                &import->ids[number], import->error);
}

static pph_status add_input(pph_pte_importer *import, uint32_t index,
                            pph_id *id) {
  int32_t number = import->plan->inputs.at[index];
  const pph_flat_choice *choice = &import->plan->values.at[number].val;
  char name[32];
  snprintf(name, sizeof name, "input%u", index);
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

static pph_status import_kernel(pph_pte_importer *import,
                                const pph_pte_kernel_call *kernel) {
  pph_pte_call call = {.import = import, .args = kernel->args.at};
  name_operator(&import->plan->operators.at[kernel->op_index], call.name,
                sizeof call.name);
  const pph_pte_operator_row *row = pph_pte_operator_find(call.name);
  call.arg_count = row->arg_count;
  if (kernel->args.count <= row->arg_count)
    return pph_pte_call_fail(&call, PPH_BAD_MODEL,
                             "has %u arguments, needs %u and a result",
                             kernel->args.count, row->arg_count);
  call.result = kernel->args.at[row->arg_count];
  return row->import(&call, row->kind);
}

static pph_status import_instructions(pph_pte_importer *import) {
  const pph_pte_plan *plan = import->plan;
  for (uint32_t i = 0; i < plan->chains.count; i++)
    for (uint32_t k = 0; k < plan->chains.at[i].instructions.count; k++) {
      const pph_flat_choice *step =
          &plan->chains.at[i].instructions.at[k].instr_args;
      if (step->type == PPH_PTE_KERNEL_CALL)
        PPH_TRY(import_kernel(import, step->value));
      if (step->type == PPH_PTE_DELEGATE_CALL)
        PPH_TRY(pph_pte_import_delegate(import, step->value));
    }
  return PPH_OK;
}

/* A value of its own for each output: an input, a constant or an output that
   is listed before is copied. */
static pph_status add_output(pph_pte_importer *import, uint32_t index,
                             const pph_id *before, pph_id *id) {
  int32_t number = import->plan->outputs.at[index];
  pph_graph *graph = import->graph;
  char name[32];
  pph_node *node;
  snprintf(name, sizeof name, "output%u", index);
  *id = import->ids[number];
  if (*id == PPH_NO_VALUE ||
      import->plan->values.at[number].val.type != PPH_PTE_TENSOR)
    return pph_fail(import->error, PPH_UNSUPPORTED, name,
                    "is no tensor that the method computes");
  bool copies = !pph_graph_value(graph, *id)->producer;
  for (uint32_t i = 0; i < index; i++)
    copies |= before[i] == *id;
  if (copies) {
    PPH_TRY(pph_graph_insert(graph, PPH_NODE_IDENTITY, NULL, id, 1, &node,
                             import->error));
    *id = node->outputs[0];
  }
  const char *copy = pph_arena_copy_text(&graph->arena, name, strlen(name));
  if (!copy)
    return pph_fail_memory(import->error);
  pph_graph_value(graph, *id)->name = copy;
  return PPH_OK;
}

static pph_status import_all(pph_pte_importer *import, pph_id *list) {
  const pph_pte_plan *plan = import->plan;
  for (uint32_t i = 0; i < plan->values.count; i++)
    if (is_constant(&plan->values.at[i].val))
      PPH_TRY(add_constant(import, i));
  for (uint32_t i = 0; i < plan->inputs.count; i++)
    PPH_TRY(add_input(import, i, &list[i]));
  PPH_TRY(pph_graph_set_inputs(import->graph, list, plan->inputs.count,
                               import->error));
  PPH_TRY(import_instructions(import));
  for (uint32_t i = 0; i < plan->outputs.count; i++)
    PPH_TRY(add_output(import, i, list, &list[i]));
  PPH_TRY(pph_graph_set_outputs(import->graph, list, plan->outputs.count,
                                import->error));
  PPH_TRY(pph_graph_verify(import->graph, import->error));
  for (pph_node *node = import->graph->first; node; node = node->next)
    PPH_TRY(pph_shape_check_node(import->graph, node, import->error));
  return PPH_OK;
}

pph_status pph_pte_import(const pph_pte *pte, const pph_pte_plan *plan,
                          pph_graph *graph, pph_error *error) {
  uint32_t most = plan->inputs.count > plan->outputs.count
                      ? plan->inputs.count
                      : plan->outputs.count;
  pph_pte_importer import = {
      .pte = pte, .plan = plan, .graph = graph, .error = error};
  PPH_TRY(refuse_plan(&import));
  pph_id *list = pph_arena_allocate(&graph->arena, (size_t)most + 1,
                                    sizeof *list);
  import.ids = pph_arena_allocate(&graph->arena,
                                  (size_t)plan->values.count + 1,
                                  sizeof *import.ids);
  if (!list || !import.ids)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < plan->values.count; i++)
    import.ids[i] = PPH_NO_VALUE;
  return import_all(&import, list);
}
