#include "optimize/plan_uses.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

static uint32_t count_in(const int32_t *list, uint32_t count, uint32_t value) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++)
    found += list[i] >= 0 && (uint32_t)list[i] == value;
  return found;
}

static uint32_t count_step(const pph_flat_choice *step, uint32_t value) {
  const pph_pte_kernel_call *kernel = step->value;
  const pph_pte_delegate_call *delegate = step->value;
  const pph_pte_move_call *move = step->value;
  const pph_pte_jump_false_call *jump = step->value;
  const pph_pte_free_call *release = step->value;
  int32_t at[2] = {-1, -1};
  switch (step->type) {
  case PPH_PTE_KERNEL_CALL:
    return count_in(kernel->args.at, kernel->args.count, value);
  case PPH_PTE_DELEGATE_CALL:
    return count_in(delegate->args.at, delegate->args.count, value);
  case PPH_PTE_MOVE_CALL:
    at[0] = move->move_from;
    at[1] = move->move_to;
    break;
  case PPH_PTE_JUMP_FALSE_CALL:
    at[0] = jump->cond_value_index;
    break;
  case PPH_PTE_FREE_CALL:
    at[0] = release->value_index;
    break;
  default:
    break;
  }
  return count_in(at, 2, value);
}

uint32_t pph_plan_count_uses(const pph_pte_plan *plan, uint32_t value) {
  uint32_t count = count_in(plan->inputs.at, plan->inputs.count, value) +
                   count_in(plan->outputs.at, plan->outputs.count, value);
  for (uint32_t i = 0; i < plan->values.count; i++) {
    const pph_flat_choice *choice = &plan->values.at[i].val;
    const pph_pte_tensor_list *list = choice->value; /* both kinds alike */
    if (choice->type == PPH_PTE_TENSOR_LIST ||
        choice->type == PPH_PTE_OPTIONAL_TENSOR_LIST)
      count += count_in(list->items.at, list->items.count, value);
  }
  for (uint32_t i = 0; i < plan->chains.count; i++)
    for (uint32_t k = 0; k < plan->chains.at[i].instructions.count; k++)
      count += count_step(
          &plan->chains.at[i].instructions.at[k].instr_args, value);
  return count;
}

pph_pte_tensor *pph_plan_find_tensor(const pph_pte_plan *plan,
                                     uint32_t value) {
  return plan->values.at[value].val.type == PPH_PTE_TENSOR
             ? plan->values.at[value].val.value
             : NULL;
}

static uint64_t offset_of(const pph_pte_allocation *place) {
  return (uint64_t)place->memory_offset_high << 32 | place->memory_offset_low;
}

static bool overlaps(const pph_pte_tensor *a, const pph_pte_tensor *b) {
  if (!a || !b || !a->allocation_info || !b->allocation_info ||
      a->allocation_info->memory_id != b->allocation_info->memory_id)
    return false;
  uint64_t p = offset_of(a->allocation_info);
  uint64_t q = offset_of(b->allocation_info);
  return p < q + pph_pte_tensor_size(b) && q < p + pph_pte_tensor_size(a);
}

static bool must_part(const pph_pte_plan *plan, uint32_t value,
                      const int32_t *others, uint32_t count) {
  const pph_pte_tensor *tensor = pph_plan_find_tensor(plan, value);
  for (uint32_t i = 0; i < count; i++)
    if (overlaps(tensor, pph_plan_find_tensor(plan, (uint32_t)others[i])))
      return true;
  return false;
}

bool pph_plan_can_part(const pph_pte_plan *plan, uint32_t value,
                       const int32_t *others, uint32_t count) {
  return !must_part(plan, value, others, count) ||
         (pph_pte_tensor_storage(pph_plan_find_tensor(plan, value)) ==
              PPH_PTE_PLANNED &&
          !pph_pte_is_state(plan, value));
}

pph_status pph_plan_part(pph_pte_plan *plan, uint32_t value,
                         const int32_t *others, uint32_t count,
                         pph_arena *arena, pph_error *error) {
  enum { STEP = 16 };
  pph_pte_tensor *tensor = pph_plan_find_tensor(plan, value);
  uint32_t buffers = plan->non_const_buffer_sizes.count;
  if (!must_part(plan, value, others, count))
    return PPH_OK;
  uint32_t id = tensor->allocation_info->memory_id;
  int64_t *sizes = pph_arena_allocate(arena, (size_t)buffers + 1,
                                      sizeof *sizes);
  pph_pte_allocation *place = pph_arena_allocate(arena, 1, sizeof *place);
  size_t begin, end;
  if (!sizes || !place)
    return pph_fail_memory(error);
  memcpy(sizes, plan->non_const_buffer_sizes.at, buffers * sizeof *sizes);
  if (!pph_checked_round_up((size_t)sizes[id], STEP, &begin) ||
      !pph_checked_add(begin, pph_pte_tensor_size(tensor), &end) ||
      end > INT64_MAX)
    return pph_fail_memory(error);
  sizes[id] = (int64_t)end;
  *place = (pph_pte_allocation){.memory_id = id,
                                .memory_offset_low = (uint32_t)begin,
                                .memory_offset_high =
                                    (uint32_t)((uint64_t)begin >> 32)};
  tensor->allocation_info = place;
  plan->non_const_buffer_sizes.at = sizes;
  return PPH_OK;
}
