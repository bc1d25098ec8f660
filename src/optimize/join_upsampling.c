#include "optimize/join_upsampling.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/growing.h"
#include "optimize/delegate_place.h"
#include "optimize/join_payloads.h"
#include "optimize/nearest.h"
#include "optimize/plan_uses.h"
#include "pte/container_check.h"

typedef struct joiner {
  pph_pte_plan *plan;
  pph_pte_chain *chain;
  pph_constant_store *store;
  const pph_optimize_options *options;
  pph_error *error;
} joiner;

static const pph_flat_choice *step_at(const joiner *j, uint32_t i) {
  return i < j->chain->instructions.count
             ? &j->chain->instructions.at[i].instr_args
             : NULL;
}

static bool is_image(const pph_pte_tensor *tensor) {
  enum { FLOAT = 6 };
  return tensor && tensor->scalar_type == FLOAT && !tensor->shape_dynamism &&
         tensor->sizes.count == 4 && !pph_pte_is_permuted(tensor) &&
         tensor->sizes.at[0] > 0 && tensor->sizes.at[1] > 0 &&
         tensor->sizes.at[2] > 0 && tensor->sizes.at[3] > 0;
}

/* Whole factors, told as sizes or as exactly these scales. */
static bool has_whole_factors(const joiner *j, const int32_t *args) {
  const pph_pte_tensor *from =
      pph_plan_find_tensor(j->plan, (uint32_t)args[0]);
  const pph_pte_tensor *to = pph_plan_find_tensor(j->plan, (uint32_t)args[3]);
  const pph_flat_choice *scales = &j->plan->values.at[args[2]].val;
  const pph_pte_double_list *list = scales->value;
  if (!is_image(from) || !is_image(to) ||
      from->sizes.at[0] != to->sizes.at[0] ||
      from->sizes.at[1] != to->sizes.at[1])
    return false;
  for (int i = 0; i < 2; i++) {
    int32_t a = from->sizes.at[2 + i], b = to->sizes.at[2 + i];
    if (b % a)
      return false;
    if (scales->type == PPH_PTE_DOUBLE_LIST &&
        (list->items.count != 2 || list->items.at[i] != (double)(b / a)))
      return false;
  }
  return scales->type == PPH_PTE_DOUBLE_LIST || scales->type == PPH_PTE_NULL;
}

/* The arguments [self, sizes, scales, out, out] of such an upsampling. */
static const int32_t *find_nearest(const joiner *j, uint32_t i) {
  const pph_flat_choice *step = step_at(j, i);
  const pph_pte_kernel_call *call = step->value;
  if (step->type != PPH_PTE_KERNEL_CALL || call->args.count != 5)
    return NULL;
  const pph_pte_operator *name = &j->plan->operators.at[call->op_index];
  return pph_flat_text_is(name->name, "aten::upsample_nearest2d") &&
                 pph_flat_text_is(name->overload, "vec_out") &&
                 has_whole_factors(j, call->args.at)
             ? call->args.at
             : NULL;
}

/* The call of an XNNPACK delegate that is called nowhere else. */
static pph_pte_delegate_call *find_call(const joiner *j, uint32_t i) {
  const pph_flat_choice *step = step_at(j, i);
  if (!step || step->type != PPH_PTE_DELEGATE_CALL)
    return NULL;
  pph_pte_delegate_call *call = step->value;
  uint32_t calls = 0;
  for (uint32_t k = 0; k < j->chain->instructions.count; k++) {
    const pph_pte_delegate_call *other = step_at(j, k)->value;
    calls += step_at(j, k)->type == PPH_PTE_DELEGATE_CALL &&
             other->delegate_index == call->delegate_index;
  }
  return calls == 1 && pph_delegate_is_xnnpack(
                           &j->plan->delegates.at[call->delegate_index])
             ? call
             : NULL;
}

/* A payload with ids that are places; *edit is open. payload NULL when it is
   not understood. */
static pph_status open_call(const joiner *j, const pph_pte_delegate_call *call,
                            pph_delegate_edit *edit,
                            pph_called_payload *called) {
  pph_payload_index *index;
  pph_error why = {0};
  pph_pte *pte = j->store->pte;
  *called = (pph_called_payload){.args = call->args.at,
                                 .arg_count = call->args.count};
  *edit = (pph_delegate_edit){.pte = pte,
                              .store = j->store,
                              .options = j->options};
  PPH_TRY(pph_delegate_read(pte, &j->plan->delegates.at[call->delegate_index],
                            &called->payload, &index, &why, j->error));
  if (!called->payload)
    return PPH_OK;
  PPH_TRY(pph_constant_store_note(j->store, &j->store->before,
                                  called->payload->graph, j->error));
  return pph_delegate_edit_open(edit, called->payload, index, &pte->arena,
                                j->error);
}

static bool has_sizes(const pph_payload_tensor *tensor,
                      const pph_pte_tensor *outside) {
  if (tensor->num_dims != outside->sizes.count)
    return false;
  for (uint32_t i = 0; i < tensor->num_dims; i++)
    if (tensor->dims.at[i] != (uint32_t)outside->sizes.at[i])
      return false;
  return true;
}

/* The payload's input with argument `v`, the image that upsampling makes. */
static uint32_t find_input(const joiner *j, const pph_delegate_edit *edit,
                           const pph_called_payload *called, int32_t v) {
  const pph_pte_tensor *image = pph_plan_find_tensor(j->plan, (uint32_t)v);
  uint32_t found = PPH_PAYLOAD_NONE;
  for (uint32_t i = 0; i < edit->x.value_count; i++) {
    const pph_payload_tensor *tensor = pph_edit_tensor(edit, i);
    if (tensor->flags && tensor->external_id >= called->arg_count)
      return PPH_PAYLOAD_NONE;
    if (tensor->flags == PPH_PAYLOAD_INPUT && has_sizes(tensor, image) &&
        called->args[tensor->external_id] == v)
      found = i;
  }
  return found;
}

/* The upsampling becomes the first node; its input takes the result's place
   among the arguments. */
static pph_status take_in(const joiner *j, pph_delegate_edit *edit,
                          pph_called_payload *called, uint32_t input,
                          const int32_t *nearest) {
  const pph_pte_tensor *from =
      pph_plan_find_tensor(j->plan, (uint32_t)nearest[0]);
  pph_payload_tensor *old = pph_edit_tensor(edit, input);
  const pph_payload_node *nodes = edit->x.nodes;
  uint32_t count = edit->x.node_count;
  pph_payload_dims dims = {.count = 4};
  pph_payload_resize table = {.new_height = old->dims.at[2],
                              .new_width = old->dims.at[3],
                              .output_id = input,
                              .flags = pph_nearest_flags(2)};
  for (int i = 0; i < 4; i++)
    dims.at[i] = (uint32_t)from->sizes.at[i];
  edit->x.like = &edit->x.values[input];
  PPH_TRY(pph_payload_put_value(&edit->x, &dims, &table.input_id));
  pph_payload_tensor *fresh = pph_edit_tensor(edit, table.input_id);
  int32_t *args = pph_arena_allocate(edit->x.arena, called->arg_count,
                                     sizeof *args);
  if (!args)
    return pph_fail_memory(j->error);
  memcpy(args, called->args, called->arg_count * sizeof *args);
  args[old->external_id] = nearest[0];
  called->args = args;
  fresh->flags = old->flags;
  fresh->external_id = old->external_id;
  old->flags = 0;
  old->external_id = PPH_PAYLOAD_NONE;
  edit->x.nodes = NULL;
  edit->x.node_count = edit->x.node_capacity = 0;
  PPH_TRY(pph_payload_put_node(&edit->x, PPH_PAYLOAD_RESIZE, &table,
                               sizeof table, NULL));
  for (uint32_t i = 0; i < count; i++)
    PPH_TRY(pph_delegate_edit_keep(edit, &nodes[i]));
  return PPH_OK;
}

/* Whether the memory of `others` is kept from the payload's outputs, or can
   be. */
static bool can_part(const joiner *j, const pph_called_payload *called,
                     const int32_t *others, uint32_t count) {
  for (uint32_t i = 0; i < called->payload->graph->xvalues.count; i++) {
    const pph_payload_tensor *tensor = pph_payload_tensor_of(
        &called->payload->graph->xvalues.at[i]);
    uint32_t v;
    if (tensor->flags != PPH_PAYLOAD_OUTPUT)
      continue;
    v = (uint32_t)called->args[tensor->external_id];
    for (uint32_t k = 0; k < count; k++)
      if ((uint32_t)others[k] != v &&
          !pph_plan_can_part(j->plan, v, &others[k], 1))
        return false;
  }
  return true;
}

static pph_status part(const joiner *j, const pph_called_payload *called) {
  for (uint32_t i = 0; i < called->payload->graph->xvalues.count; i++) {
    const pph_payload_tensor *tensor = pph_payload_tensor_of(
        &called->payload->graph->xvalues.at[i]);
    if (tensor->flags != PPH_PAYLOAD_OUTPUT)
      continue;
    for (uint32_t k = 0; k < called->arg_count; k++)
      if (k != tensor->external_id)
        PPH_TRY(pph_plan_part(j->plan,
                              (uint32_t)called->args[tensor->external_id],
                              &called->args[k], 1, &j->store->pte->arena,
                              j->error));
  }
  return PPH_OK;
}

static void drop_instruction(const joiner *j, uint32_t i) {
  pph_pte_instruction *at = j->chain->instructions.at;
  j->chain->instructions.count--;
  memmove(at + i, at + i + 1,
          (j->chain->instructions.count - i) * sizeof *at);
}

/* Also its payload. */
static pph_status drop_delegate(const joiner *j, uint32_t number) {
  pph_constant_store *store = j->store;
  pph_pte_delegate *at = j->plan->delegates.at;
  const pph_pte_data_reference *place = at[number].processed;
  if (place->location == PPH_PTE_IN_SEGMENT) {
    PPH_TRY(pph_grow(&store->pte->arena, &store->left, store->left_count,
                     &store->left_capacity, sizeof *store->left, j->error));
    store->left[store->left_count++] = place->index;
  }
  j->plan->delegates.count--;
  memmove(at + number, at + number + 1,
          (j->plan->delegates.count - number) * sizeof *at);
  for (uint32_t k = 0; k < j->chain->instructions.count; k++) {
    pph_pte_delegate_call *call = step_at(j, k)->value;
    if (step_at(j, k)->type == PPH_PTE_DELEGATE_CALL &&
        (uint32_t)call->delegate_index > number)
      call->delegate_index--;
  }
  return PPH_OK;
}

/* Which values of the method are used outside the two calls. */
static pph_status find_wanted(const joiner *j, const pph_called_payload *first,
                              const pph_called_payload *second,
                              bool **wanted) {
  *wanted = pph_arena_allocate(&j->store->pte->arena,
                               (size_t)j->plan->values.count + 1, 1);
  if (!*wanted)
    return pph_fail_memory(j->error);
  for (uint32_t v = 0; v < j->plan->values.count; v++) {
    uint32_t inside = 0;
    for (uint32_t i = 0; i < first->arg_count; i++)
      inside += (uint32_t)first->args[i] == v;
    for (uint32_t i = 0; i < second->arg_count; i++)
      inside += (uint32_t)second->args[i] == v;
    (*wanted)[v] = pph_plan_count_uses(j->plan, v) > inside;
  }
  return PPH_OK;
}

/* The call before, where it can be joined; then it is gone. */
static pph_status join_before(const joiner *j, uint32_t at,
                              pph_pte_delegate_call *call,
                              pph_called_payload *called) {
  pph_pte_delegate_call *before = at ? find_call(j, at - 1) : NULL;
  pph_called_payload first, joined;
  pph_delegate_edit edit;
  bool *wanted;
  if (!before)
    return PPH_OK;
  PPH_TRY(open_call(j, before, &edit, &first));
  if (!first.payload || !pph_can_join_payloads(&first, called) ||
      !can_part(j, called, first.args, first.arg_count))
    return PPH_OK;
  const pph_called_payload second = *called;
  PPH_TRY(find_wanted(j, &first, &second, &wanted));
  PPH_TRY(pph_join_payloads(&first, &second, wanted, &joined,
                            &j->store->pte->arena, j->error));
  uint32_t number = (uint32_t)before->delegate_index;
  *called = joined;
  call->args.at = joined.args;
  call->args.count = joined.arg_count;
  drop_instruction(j, at - 1);
  return drop_delegate(j, number);
}

static void tell(const joiner *j, const char *what) {
  char line[256];
  if (!j->options->report)
    return;
  snprintf(line, sizeof line, "%.*s, %s",
           pph_flat_text_cut(j->plan->name, 80), j->plan->name.at, what);
  j->options->report(j->options->context, line);
}

/* The upsampling at instruction i, if its result goes to the delegate behind
   it and nowhere else. */
static pph_status join_at(const joiner *j, uint32_t i, uint32_t *changes) {
  const int32_t *nearest = find_nearest(j, i);
  pph_pte_delegate_call *call = nearest ? find_call(j, i + 1) : NULL;
  pph_called_payload called;
  pph_delegate_edit edit;
  if (!call || pph_plan_count_uses(j->plan, (uint32_t)nearest[3]) != 3)
    return PPH_OK;
  PPH_TRY(open_call(j, call, &edit, &called));
  uint32_t input = called.payload
                       ? find_input(j, &edit, &called, nearest[3])
                       : PPH_PAYLOAD_NONE;
  if (input == PPH_PAYLOAD_NONE)
    return PPH_OK;
  PPH_TRY(take_in(j, &edit, &called, input, nearest));
  PPH_TRY(pph_delegate_edit_close(&edit));
  if (!can_part(j, &called, called.args, called.arg_count))
    return PPH_OK;
  call->args.at = called.args;
  drop_instruction(j, i);
  PPH_TRY(join_before(j, i, call, &called));
  PPH_TRY(part(j, &called));
  ++*changes;
  tell(j, "aten::upsample_nearest2d moves into the delegate behind it");
  return pph_delegate_write(j->store->pte,
                            &j->plan->delegates.at[call->delegate_index],
                            called.payload, j->error);
}

static bool has_jumps(const pph_pte_chain *chain) {
  for (uint32_t i = 0; i < chain->instructions.count; i++)
    if (chain->instructions.at[i].instr_args.type == PPH_PTE_JUMP_FALSE_CALL)
      return true;
  return chain->stacktrace.count > 0;
}

pph_status pph_join_upsampling(pph_pte_plan *plan, pph_constant_store *store,
                               const pph_optimize_options *options,
                               uint32_t *changes, pph_error *error) {
  if (plan->chains.count != 1 || has_jumps(&plan->chains.at[0]))
    return PPH_OK;
  const joiner j = {plan, &plan->chains.at[0], store, options, error};
  /* From the end on: what is behind has been joined. */
  for (uint32_t i = j.chain->instructions.count; i--;)
    if (i < j.chain->instructions.count)
      PPH_TRY(join_at(&j, i, changes));
  return PPH_OK;
}
