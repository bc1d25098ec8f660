#include "optimize/optimize.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "optimize/delegate_edit.h"
#include "optimize/delegate_place.h"
#include "optimize/join_upsampling.h"

/* Layout again: what the steps before made may meet its opposite, too. */
static pph_status (*const steps[])(pph_delegate_edit *edit) = {
    pph_optimize_layout, pph_optimize_nearest, pph_optimize_phases,
    pph_optimize_widen,  pph_optimize_filter,  pph_optimize_layout,
    pph_optimize_repair};

typedef struct optimizer {
  pph_pte *pte;
  const pph_optimize_options *options;
  pph_optimize_result *result;
  pph_constant_store store;
  pph_error *error;
} optimizer;

static pph_status rewrite(optimizer *o, pph_delegate_edit *edit,
                          pph_pte_delegate *delegate) {
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    PPH_TRY(steps[i](edit));
  if (!edit->changes)
    return PPH_OK;
  o->result->changes += edit->changes;
  PPH_TRY(pph_delegate_edit_close(edit));
  return pph_delegate_write(o->pte, delegate, edit->payload, o->error);
}

/* Whether a value of a call may be smaller than the plan says. */
static bool is_dynamic(const pph_pte_plan *plan, uint32_t number) {
  for (uint32_t i = 0; i < plan->chains.count; i++)
    for (uint32_t k = 0; k < plan->chains.at[i].instructions.count; k++) {
      const pph_flat_choice *step =
          &plan->chains.at[i].instructions.at[k].instr_args;
      const pph_pte_delegate_call *call = step->value;
      if (step->type != PPH_PTE_DELEGATE_CALL ||
          (uint32_t)call->delegate_index != number)
        continue;
      for (uint32_t a = 0; a < call->args.count; a++) {
        const pph_flat_choice *value =
            &plan->values.at[call->args.at[a]].val;
        const pph_pte_tensor *tensor = value->value;
        if (value->type == PPH_PTE_TENSOR && tensor->shape_dynamism)
          return true;
      }
    }
  return false;
}

static void tell(const optimizer *o, const char *name, const pph_error *why) {
  char line[768];
  if (!o->options->report || !why->message[0])
    return;
  snprintf(line, sizeof line, "%s: left, %s: %s", name, why->where,
           why->message);
  o->options->report(o->options->context, line);
}

static pph_status optimize_delegate(optimizer *o, const pph_pte_plan *plan,
                                    uint32_t number) {
  pph_pte_delegate *delegate = &plan->delegates.at[number];
  pph_payload *payload;
  pph_payload_index *index;
  char name[160];
  pph_error why = {0};
  snprintf(name, sizeof name, "%.*s, delegate %u",
           pph_flat_text_cut(plan->name, 80), plan->name.at, number);
  PPH_TRY(pph_delegate_read(o->pte, delegate, &payload, &index, &why,
                            o->error));
  if (!payload) { /* what it reads is not known */
    o->store.keeps_all = true;
    tell(o, name, &why);
    return PPH_OK;
  }
  pph_delegate_edit edit = {.pte = o->pte,
                            .store = &o->store,
                            .options = o->options,
                            .name = name,
                            .is_dynamic = is_dynamic(plan, number)};
  PPH_TRY(pph_constant_store_note(&o->store, &o->store.before, payload->graph,
                                  o->error));
  PPH_TRY(pph_delegate_edit_open(&edit, payload, index, &o->pte->arena,
                                 o->error));
  PPH_TRY(rewrite(o, &edit, delegate));
  o->result->nodes += payload->graph->xnodes.count;
  return pph_constant_store_note(&o->store, &o->store.after, payload->graph,
                                 o->error);
}

static uint32_t count_calls(const pph_pte_plan *plan, uint32_t number) {
  uint32_t calls = 0;
  for (uint32_t i = 0; i < plan->chains.count; i++)
    for (uint32_t k = 0; k < plan->chains.at[i].instructions.count; k++) {
      const pph_flat_choice *step =
          &plan->chains.at[i].instructions.at[k].instr_args;
      const pph_pte_kernel_call *call = step->value;
      calls += step->type == PPH_PTE_KERNEL_CALL &&
               (uint32_t)call->op_index == number;
    }
  return calls;
}

/* Who sees no change should know of the work that no delegate does. */
static void tell_outside(const optimizer *o, const pph_pte_plan *plan) {
  static const char *const worth[] = {"aten::convolution", "aten::upsample_",
                                      "aten::pixel_shuffle"};
  for (uint32_t i = 0; o->options->report && i < plan->operators.count; i++) {
    pph_flat_text name = plan->operators.at[i].name;
    uint32_t calls = count_calls(plan, i);
    char line[320];
    bool found = false;
    for (size_t k = 0; k < sizeof worth / sizeof *worth; k++)
      found |= name.count >= strlen(worth[k]) &&
               memcmp(name.at, worth[k], strlen(worth[k])) == 0;
    if (!found || !calls)
      continue;
    snprintf(line, sizeof line,
             "%.*s: %u call%s of %.*s outside XNNPACK's delegates: left, only "
             "these are rewritten",
             pph_flat_text_cut(plan->name, 80), plan->name.at, calls,
             calls == 1 ? "" : "s", pph_flat_text_cut(name, 80), name.at);
    o->options->report(o->options->context, line);
  }
}

pph_status pph_pte_optimize(pph_pte *pte, const pph_optimize_options *options,
                            pph_optimize_result *result, pph_error *error) {
  optimizer o = {.pte = pte,
                 .options = options,
                 .result = result,
                 .store = {.pte = pte},
                 .error = error};
  *result = (pph_optimize_result){
      .external_changed =
          pph_arena_allocate(&pte->arena, (size_t)pte->external_count + 1, 1)};
  if (!result->external_changed)
    return pph_fail_memory(error);
  if (!pte->program)
    return pph_fail(error, PPH_UNSUPPORTED, "",
                    "it has constants only: there is no program to rewrite");
  for (uint32_t i = 0; i < pte->program->execution_plan.count; i++) {
    pph_pte_plan *plan = &pte->program->execution_plan.at[i];
    PPH_TRY(pph_join_upsampling(plan, &o.store, options, &result->changes,
                                error));
    for (uint32_t k = 0; k < plan->delegates.count; k++)
      PPH_TRY(optimize_delegate(&o, plan, k));
    tell_outside(&o, plan);
  }
  return result->changes ? pph_constant_store_finish(
                               &o.store, result->external_changed, error)
                         : PPH_OK;
}
