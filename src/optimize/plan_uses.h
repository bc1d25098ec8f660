/* Who uses a value of a method, and where it lies. */
#ifndef PPH_OPTIMIZE_PLAN_USES_H
#define PPH_OPTIMIZE_PLAN_USES_H

#include "pte/container.h"

/* In how many places of instructions, lists, inputs and outputs it stands. */
uint32_t pph_plan_count_uses(const pph_pte_plan *plan, uint32_t value);

/* NULL when the value is no tensor. */
pph_pte_tensor *pph_plan_find_tensor(const pph_pte_plan *plan, uint32_t value);

/* Gives the value memory of its own, behind all that is planned, if it lies
   where one of `others` does. False when it cannot be moved. */
PPH_NODISCARD pph_status pph_plan_part(pph_pte_plan *plan, uint32_t value,
                                       const int32_t *others, uint32_t count,
                                       pph_arena *arena, pph_error *error);

/* Whether pph_plan_part can move it, or need not. */
bool pph_plan_can_part(const pph_pte_plan *plan, uint32_t value,
                       const int32_t *others, uint32_t count);

#endif
