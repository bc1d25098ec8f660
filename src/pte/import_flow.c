/* Import of instructions in their order. A graph has no jumps: where a
   condition is known only in the run, both branches are imported and each value
   that differs between them is chosen. */
#include <string.h>

#include "base/fail.h"
#include "pte/import_call.h"

enum { MOST_BRANCHES = 32 }; /* one inside another */

/* Instructions [begin, end) of a chain. */
typedef struct region {
  const pph_pte_chain *chain;
  uint32_t begin, end, depth;
} region;

static pph_status import_region(pph_pte_importer *import, region part);

static pph_status import_kernel(pph_pte_importer *import,
                                const pph_pte_kernel_call *kernel) {
  pph_pte_call call = {.import = import, .args = kernel->args.at};
  pph_pte_operator_name(&import->plan->operators.at[kernel->op_index],
                        call.name, sizeof call.name);
  const pph_pte_operator_row *row = pph_pte_operator_find(call.name);
  call.arg_count = row->arg_count;
  if (kernel->args.count <= row->arg_count)
    return pph_pte_call_fail(&call, PPH_BAD_MODEL,
                             "has %u arguments, needs %u and a result",
                             kernel->args.count, row->arg_count);
  call.result = kernel->args.at[row->arg_count];
  return row->import(&call, row->kind);
}

/* A fixed number becomes a constant, so that the target has an id. */
static pph_status import_move(pph_pte_importer *import,
                              const pph_pte_move_call *move) {
  const pph_flat_choice *from = &import->plan->values.at[move->move_from].val;
  pph_id *to = &import->ids[move->move_to];
  *to = import->ids[move->move_from];
  if (*to != PPH_NO_VALUE || from->type != PPH_PTE_INT)
    return PPH_OK;
  return pph_graph_add_ints(import->graph, NULL,
                            &((const pph_pte_int *)from->value)->int_val, 1, to,
                            import->error);
}

static const pph_flat_choice *instruction(const region *part, uint32_t at) {
  return &part->chain->instructions.at[at].instr_args;
}

/* Whether the jump is decided by a Bool that nothing computes. */
static bool is_fixed(const pph_pte_importer *import,
                     const pph_pte_jump_false_call *jump, bool *value) {
  const pph_flat_choice *choice =
      &import->plan->values.at[jump->cond_value_index].val;
  if (choice->type != PPH_PTE_BOOL ||
      import->ids[jump->cond_value_index] != PPH_NO_VALUE)
    return false;
  *value = ((const pph_pte_bool *)choice->value)->bool_val != 0;
  return true;
}

/* The branches of the jump at `at`: up to its target, and from there up to that
   of the jump in front of it, if that is taken always. */
static pph_status find_branches(const pph_pte_importer *import,
                                const region *part, uint32_t at,
                                region *branches) {
  const pph_pte_jump_false_call *jump = instruction(part, at)->value;
  uint32_t target = (uint32_t)jump->destination_instruction;
  bool value;
  if (target <= at || target > part->end || part->depth == MOST_BRANCHES)
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "instruction %u jumps to %u: only branches that end "
                    "forward, at most %d one inside another, are supported",
                    at, target, MOST_BRANCHES);
  branches[0] = (region){part->chain, at + 1, target, part->depth + 1};
  branches[1] = (region){part->chain, target, target, part->depth + 1};
  if (target == at + 1 ||
      instruction(part, target - 1)->type != PPH_PTE_JUMP_FALSE_CALL)
    return PPH_OK;
  jump = instruction(part, target - 1)->value;
  if (!is_fixed(import, jump, &value) || value ||
      (uint32_t)jump->destination_instruction < target ||
      (uint32_t)jump->destination_instruction > part->end)
    return PPH_OK;
  branches[0].end = target - 1;
  branches[1].end = (uint32_t)jump->destination_instruction;
  return PPH_OK;
}

/* What one branch made, or the other. A value that only one of them has is
   nobody's afterwards. */
static pph_status choose(pph_pte_importer *import, pph_id condition,
                         const pph_id *taken) {
  pph_node *node;
  for (uint32_t i = 0; i < import->plan->values.count; i++) {
    pph_id inputs[] = {condition, taken[i], import->ids[i]};
    if (taken[i] == import->ids[i])
      continue;
    import->ids[i] = PPH_NO_VALUE;
    if (inputs[1] == PPH_NO_VALUE || inputs[2] == PPH_NO_VALUE)
      continue;
    PPH_TRY(pph_graph_insert(import->graph, PPH_NODE_WHERE, NULL, inputs, 3,
                             &node, import->error));
    import->ids[i] = node->outputs[0];
  }
  return PPH_OK;
}

static pph_status import_branches(pph_pte_importer *import,
                                  const region *branches, pph_id condition) {
  size_t count = import->plan->values.count;
  pph_heap *heap = import->graph->heap;
  pph_id *before = pph_heap_allocate(heap, 2 * count, sizeof *before);
  if (!before)
    return pph_fail_memory(import->error);
  pph_id *taken = before + count;
  memcpy(before, import->ids, count * sizeof *before);
  pph_status status = import_region(import, branches[0]);
  memcpy(taken, import->ids, count * sizeof *taken);
  memcpy(import->ids, before, count * sizeof *before);
  if (status == PPH_OK)
    status = import_region(import, branches[1]);
  if (status == PPH_OK)
    status = choose(import, condition, taken);
  pph_heap_release(heap, before);
  return status;
}

/* *at becomes the instruction to go on with. */
static pph_status import_jump(pph_pte_importer *import, const region *part,
                              uint32_t *at) {
  const pph_pte_jump_false_call *jump = instruction(part, *at)->value;
  pph_id condition = import->ids[jump->cond_value_index];
  region branches[2];
  bool value;
  PPH_TRY(find_branches(import, part, *at, branches));
  if (is_fixed(import, jump, &value)) {
    *at = value ? *at + 1 : (uint32_t)jump->destination_instruction;
    return PPH_OK;
  }
  if (condition == PPH_NO_VALUE)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "instruction %u jumps by value %d, which nothing wrote",
                    *at, jump->cond_value_index);
  *at = branches[1].end;
  return import_branches(import, branches, condition);
}

static pph_status import_region(pph_pte_importer *import, region part) {
  uint32_t at = part.begin;
  while (at < part.end) {
    const pph_flat_choice *step = instruction(&part, at);
    if (step->type == PPH_PTE_JUMP_FALSE_CALL) {
      PPH_TRY(import_jump(import, &part, &at));
      continue;
    }
    if (step->type == PPH_PTE_KERNEL_CALL)
      PPH_TRY(import_kernel(import, step->value));
    if (step->type == PPH_PTE_DELEGATE_CALL)
      PPH_TRY(pph_pte_import_delegate(import, step->value));
    if (step->type == PPH_PTE_MOVE_CALL)
      PPH_TRY(import_move(import, step->value));
    at++;
  }
  return PPH_OK;
}

pph_status pph_pte_import_chain(pph_pte_importer *import,
                                const pph_pte_chain *chain) {
  region whole = {chain, 0, chain->instructions.count, 0};
  return import_region(import, whole);
}
