#include "base/fail.h"
#include "pte/check_path.h"

static pph_status check_numbers(checker *c, const char *name,
                                const int32_t *numbers, uint32_t count,
                                uint32_t values) {
  pph_flat_path_push(&c->path, name);
  for (uint32_t i = 0; i < count; i++) {
    pph_flat_path_index(&c->path, i);
    PPH_TRY(pph_check_index(c, "the value's number", numbers[i], values));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

/* The value must be there and have that type. */
static pph_status check_value_type(checker *c, const pph_pte_plan *plan,
                                   const char *what, int64_t number,
                                   uint8_t type) {
  PPH_TRY(pph_check_index(c, what, number, plan->values.count));
  uint8_t found = plan->values.at[number].val.type;
  if (found != type)
    return pph_check_fail(c, "%s is value %d, which has type %u; legal is %u",
                          what, (int)number, found, type);
  return PPH_OK;
}

static pph_status check_int_list(checker *c, const pph_pte_plan *plan,
                                 const pph_pte_int_list *list) {
  pph_flat_path_push(&c->path, "items");
  for (uint32_t i = 0; i < list->items.count; i++) {
    pph_flat_path_index(&c->path, i);
    PPH_TRY(check_value_type(c, plan, "the item", list->items.at[i],
                             PPH_PTE_INT));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

/* A list of optional tensors has -1, or a Null, for one that is not there. */
static pph_status check_tensor_list(checker *c, const pph_pte_plan *plan,
                                    const int32_t *items, uint32_t count,
                                    bool optional) {
  pph_flat_path_push(&c->path, "items");
  for (uint32_t i = 0; i < count; i++) {
    pph_flat_path_index(&c->path, i);
    if (optional && items[i] == -1)
      continue;
    PPH_TRY(pph_check_index(c, "the item", items[i], plan->values.count));
    if (!optional || plan->values.at[items[i]].val.type != PPH_PTE_NULL)
      PPH_TRY(check_value_type(c, plan, "the item", items[i],
                               PPH_PTE_TENSOR));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

static pph_status check_value(checker *c, const pph_pte_plan *plan,
                              const pph_flat_choice *choice) {
  const pph_pte_tensor_list *list = choice->value;
  const pph_pte_optional_tensor_list *optional = choice->value;
  if (!choice->type)
    return pph_check_fail(c, "has no type");
  if (!choice->value) /* a type of the future */
    return PPH_OK;
  switch (choice->type) {
  case PPH_PTE_TENSOR:
    return pph_check_tensor(c, plan, choice->value);
  case PPH_PTE_INT_LIST:
    return check_int_list(c, plan, choice->value);
  case PPH_PTE_TENSOR_LIST:
    return check_tensor_list(c, plan, list->items.at, list->items.count,
                             false);
  case PPH_PTE_OPTIONAL_TENSOR_LIST:
    return check_tensor_list(c, plan, optional->items.at,
                             optional->items.count, true);
  default:
    return PPH_OK;
  }
}

static pph_status check_values(checker *c, const pph_pte_plan *plan) {
  pph_flat_path_push(&c->path, "values");
  for (uint32_t i = 0; i < plan->values.count; i++) {
    pph_flat_path_index(&c->path, i);
    PPH_TRY(check_value(c, plan, &plan->values.at[i].val));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

static pph_status check_delegates(checker *c, const pph_pte_plan *plan) {
  const pph_pte_program *program = c->pte->program;
  pph_flat_path_push(&c->path, "delegates");
  for (uint32_t i = 0; i < plan->delegates.count; i++) {
    const pph_pte_data_reference *from = plan->delegates.at[i].processed;
    pph_flat_path_index(&c->path, i);
    PPH_TRY(pph_check_index(c, "processed.location", from->location, 2));
    PPH_TRY(pph_check_index(c, "processed.index", from->index,
                            from->location == PPH_PTE_IN_SEGMENT
                                ? program->segments.count
                                : program->backend_delegate_data.count));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

static pph_status check_call(checker *c, const pph_pte_plan *plan,
                             const char *what, int32_t number, uint32_t count,
                             const int32_t *args, uint32_t arg_count) {
  PPH_TRY(pph_check_index(c, what, number, count));
  return check_numbers(c, "args", args, arg_count, plan->values.count);
}

static pph_status check_jump(checker *c, const pph_pte_plan *plan,
                             const pph_pte_jump_false_call *jump,
                             uint32_t instructions) {
  const char *what = "cond_value_index";
  int32_t number = jump->cond_value_index;
  PPH_TRY(pph_check_index(c, what, number, plan->values.count));
  if (plan->values.at[number].val.type != PPH_PTE_TENSOR)
    PPH_TRY(check_value_type(c, plan, what, number, PPH_PTE_BOOL));
  /* One past the last ends the chain. */
  return pph_check_index(c, "destination_instruction",
                         jump->destination_instruction,
                         (uint64_t)instructions + 1);
}

static pph_status check_instruction(checker *c, const pph_pte_plan *plan,
                                    const pph_flat_choice *choice,
                                    uint32_t instructions) {
  const pph_pte_kernel_call *kernel = choice->value;
  const pph_pte_delegate_call *delegate = choice->value;
  const pph_pte_move_call *move = choice->value;
  const pph_pte_free_call *release = choice->value;
  if (!choice->type)
    return pph_check_fail(c, "has no type");
  if (!choice->value) /* a type of the future */
    return PPH_OK;
  switch (choice->type) {
  case PPH_PTE_KERNEL_CALL:
    return check_call(c, plan, "op_index", kernel->op_index,
                      plan->operators.count, kernel->args.at,
                      kernel->args.count);
  case PPH_PTE_DELEGATE_CALL:
    return check_call(c, plan, "delegate_index", delegate->delegate_index,
                      plan->delegates.count, delegate->args.at,
                      delegate->args.count);
  case PPH_PTE_MOVE_CALL:
    PPH_TRY(pph_check_index(c, "move_from", move->move_from,
                            plan->values.count));
    return pph_check_index(c, "move_to", move->move_to, plan->values.count);
  case PPH_PTE_JUMP_FALSE_CALL:
    return check_jump(c, plan, choice->value, instructions);
  case PPH_PTE_FREE_CALL:
    return check_value_type(c, plan, "value_index", release->value_index,
                            PPH_PTE_TENSOR);
  default:
    return PPH_OK;
  }
}

static pph_status check_chain(checker *c, const pph_pte_plan *plan,
                              const pph_pte_chain *chain) {
  PPH_TRY(check_numbers(c, "inputs", chain->inputs.at, chain->inputs.count,
                        plan->values.count));
  PPH_TRY(check_numbers(c, "outputs", chain->outputs.at, chain->outputs.count,
                        plan->values.count));
  pph_flat_path_push(&c->path, "instructions");
  for (uint32_t i = 0; i < chain->instructions.count; i++) {
    pph_flat_path_index(&c->path, i);
    PPH_TRY(check_instruction(c, plan, &chain->instructions.at[i].instr_args,
                              chain->instructions.count));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

static pph_status check_chains(checker *c, const pph_pte_plan *plan) {
  pph_flat_path_push(&c->path, "chains");
  if (!plan->chains.count)
    return pph_check_fail(c, "is empty; a method has at least one chain");
  for (uint32_t i = 0; i < plan->chains.count; i++) {
    pph_flat_path_index(&c->path, i);
    PPH_TRY(check_chain(c, plan, &plan->chains.at[i]));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

pph_status pph_check_plan(checker *c, const pph_pte_plan *plan) {
  uint32_t values = plan->values.count;
  pph_flat_path_push(&c->path, "non_const_buffer_sizes");
  for (uint32_t i = 0; i < plan->non_const_buffer_sizes.count; i++) {
    pph_flat_path_index(&c->path, i);
    PPH_TRY(pph_check_index(c, "the size", plan->non_const_buffer_sizes.at[i],
                            (uint64_t)INT64_MAX + 1));
  }
  pph_flat_path_pop(&c->path);
  PPH_TRY(check_values(c, plan));
  PPH_TRY(check_numbers(c, "inputs", plan->inputs.at, plan->inputs.count,
                        values));
  PPH_TRY(check_numbers(c, "outputs", plan->outputs.at, plan->outputs.count,
                        values));
  PPH_TRY(check_delegates(c, plan));
  return check_chains(c, plan);
}
