#include "optimize/optimize.h"

#include <stdio.h>

#include "base/fail.h"
#include "optimize/delegate_edit.h"
#include "optimize/growing.h"
#include "pte/container_check.h"

static pph_status (*const steps[])(pph_delegate_edit *edit) = {
    pph_optimize_layout, pph_optimize_phases, pph_optimize_repair};

typedef struct optimizer {
  pph_pte *pte;
  const pph_optimize_options *options;
  pph_optimize_result *result;
  pph_constant_store store;
  pph_error *error;
} optimizer;

static bool is_xnnpack(const pph_pte_delegate *delegate) {
  return pph_flat_text_is(delegate->id, "XnnpackBackend");
}

/* How many delegates have their payload there. */
static uint32_t count_users(const pph_pte_program *program,
                            const pph_pte_data_reference *place) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->execution_plan.count; i++) {
    const pph_pte_plan *plan = &program->execution_plan.at[i];
    for (uint32_t k = 0; k < plan->delegates.count; k++) {
      const pph_pte_data_reference *other = plan->delegates.at[k].processed;
      count += other->location == place->location &&
               other->index == place->index;
    }
  }
  return count;
}

static pph_status replace_inline(optimizer *o, pph_pte_delegate *delegate,
                                 pph_pte_bytes bytes) {
  pph_pte_program *program = o->pte->program;
  uint32_t count = program->backend_delegate_data.count, capacity = count;
  if (count_users(program, delegate->processed) > 1) {
    PPH_TRY(pph_grow(&o->pte->arena, &program->backend_delegate_data.at, count,
                     &capacity, sizeof *program->backend_delegate_data.at,
                     o->error));
    delegate->processed->index = count;
    program->backend_delegate_data.count++;
  }
  program->backend_delegate_data.at[delegate->processed->index].data.at =
      bytes.at;
  program->backend_delegate_data.at[delegate->processed->index].data.count =
      (uint32_t)bytes.count;
  return PPH_OK;
}

static pph_status replace_segment(optimizer *o, pph_pte_delegate *delegate,
                                  pph_pte_bytes bytes) {
  pph_pte_program *program = o->pte->program;
  pph_pte_image *image = &o->pte->image;
  uint32_t count = image->segment_count, capacity = count, rows = count;
  if (count_users(program, delegate->processed) > 1) {
    PPH_TRY(pph_grow(&o->pte->arena, &image->segments, count, &capacity,
                     sizeof *image->segments, o->error));
    PPH_TRY(pph_grow(&o->pte->arena, &program->segments.at, count, &rows,
                     sizeof *program->segments.at, o->error));
    delegate->processed->index = count;
    program->segments.count = image->segment_count = count + 1;
  }
  image->segments[delegate->processed->index] = bytes;
  return PPH_OK;
}

/* The bytes stay as long as the program. */
static pph_status write_payload(optimizer *o, pph_delegate_edit *edit,
                                pph_pte_bytes *bytes) {
  void *made;
  PPH_TRY(pph_delegate_edit_close(edit));
  PPH_TRY(pph_payload_write(edit->payload, o->pte->heap, &made, &bytes->count,
                            o->error));
  uint8_t *kept = pph_arena_allocate(&o->pte->arena, bytes->count, 1);
  if (kept)
    memcpy(kept, made, bytes->count);
  pph_heap_release(o->pte->heap, made);
  bytes->at = kept;
  return kept ? PPH_OK : pph_fail_memory(o->error);
}

static pph_status rewrite(optimizer *o, pph_delegate_edit *edit,
                          pph_pte_delegate *delegate) {
  pph_pte_bytes bytes;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    PPH_TRY(steps[i](edit));
  if (!edit->changes)
    return PPH_OK;
  PPH_TRY(write_payload(o, edit, &bytes));
  o->result->changes += edit->changes;
  o->result->program_changed = true;
  return delegate->processed->location == PPH_PTE_INLINE
             ? replace_inline(o, delegate, bytes)
             : replace_segment(o, delegate, bytes);
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
  if (!o->options->report)
    return;
  snprintf(line, sizeof line, "%s: left, %s: %s", name, why->where,
           why->message);
  o->options->report(o->options->context, line);
}

/* A payload that cannot be read is left, and what it reads is not known. */
static pph_status open(optimizer *o, const pph_pte_delegate *delegate,
                       const char *name, pph_payload *payload,
                       pph_payload_index *index, bool *opened) {
  pph_error why = {0};
  pph_arena *arena = &o->pte->arena;
  pph_pte_bytes bytes = pph_pte_delegate_payload(o->pte, delegate);
  *opened = false;
  pph_status status = pph_payload_read(bytes, arena, payload, &why);
  if (status == PPH_OK)
    status = pph_flat_refuse_unknown(&payload->unknown, &why);
  if (status == PPH_OK)
    status = pph_payload_check(payload, arena, index, &why);
  if (status == PPH_OK && payload->bare)
    status = pph_fail(&why, PPH_UNSUPPORTED, "payload",
                      "its constants are in tables, as in old files");
  *opened = status == PPH_OK;
  if (status == PPH_OUT_OF_MEMORY || status == PPH_LIMIT_EXCEEDED)
    return pph_fail(o->error, status, why.where, "%s", why.message);
  if (!*opened) {
    o->store.keeps_all = true;
    tell(o, name, &why);
  }
  return PPH_OK;
}

static pph_status optimize_delegate(optimizer *o, const pph_pte_plan *plan,
                                    uint32_t number) {
  pph_pte_delegate *delegate = &plan->delegates.at[number];
  pph_payload payload;
  pph_payload_index index;
  char name[160];
  bool opened;
  snprintf(name, sizeof name, "%.*s, delegate %u",
           pph_flat_text_cut(plan->name, 80), plan->name.at, number);
  if (!is_xnnpack(delegate)) {
    o->store.keeps_all = true;
    return PPH_OK;
  }
  PPH_TRY(open(o, delegate, name, &payload, &index, &opened));
  if (!opened)
    return PPH_OK;
  pph_delegate_edit edit = {.pte = o->pte,
                            .store = &o->store,
                            .options = o->options,
                            .name = name,
                            .is_dynamic = is_dynamic(plan, number)};
  PPH_TRY(pph_constant_store_note(&o->store, &o->store.before, payload.graph,
                                  o->error));
  PPH_TRY(pph_delegate_edit_open(&edit, &payload, &index, &o->pte->arena,
                                 o->error));
  PPH_TRY(rewrite(o, &edit, delegate));
  return pph_constant_store_note(&o->store, &o->store.after, payload.graph,
                                 o->error);
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
    const pph_pte_plan *plan = &pte->program->execution_plan.at[i];
    for (uint32_t k = 0; k < plan->delegates.count; k++)
      PPH_TRY(optimize_delegate(&o, plan, k));
  }
  return result->changes ? pph_constant_store_finish(
                               &o.store, result->external_changed, error)
                         : PPH_OK;
}
