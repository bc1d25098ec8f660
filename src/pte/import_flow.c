/* Import of instructions in their order. A graph has no jumps: those whose
   condition is known are followed, so that loops are written out; where it is
   known only in the run, both branches are imported and each value that differs
   between them is chosen. */
#include <string.h>

#include "base/fail.h"
#include "pte/import_call.h"

enum {
  MOST_BRANCHES = 32,  /* one inside another */
  MOST_STEPS = 1 << 20 /* instructions, loops written out */
};

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
  call.all_count = kernel->args.count;
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
  int64_t number;
  if (*to != PPH_NO_VALUE ||
      !pph_pte_find_number(import, move->move_from, &number))
    return PPH_OK;
  return pph_pte_add_number(import, from->type == PPH_PTE_BOOL, number, to);
}

static const pph_flat_choice *instruction(const region *part, uint32_t at) {
  return &part->chain->instructions.at[at].instr_args;
}

/* Whether the jump is decided by what is known now. */
static bool is_fixed(const pph_pte_importer *import,
                     const pph_pte_jump_false_call *jump, bool *value) {
  int64_t number = 0;
  bool fixed = pph_pte_find_number(import, jump->cond_value_index, &number);
  *value = number != 0;
  return fixed;
}

/* An instruction costs more in a method of many values, which it may have to
   go through. */
static pph_status count_step(pph_pte_importer *import, uint64_t cost) {
  import->steps += 1 + cost / 64;
  if (import->steps <= MOST_STEPS)
    return PPH_OK;
  return pph_fail(import->error, PPH_LIMIT_EXCEEDED, "",
                  "its loops take more than %d instructions", MOST_STEPS);
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
                    "instruction %u jumps to %u by what is known only in the "
                    "run: only branches that end forward, at most %d one "
                    "inside another, are supported",
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
  uint32_t target = (uint32_t)jump->destination_instruction;
  if (is_fixed(import, jump, &value) && value) {
    ++*at;
    return PPH_OK;
  }
  if (is_fixed(import, jump, &value) && target >= part->begin &&
      target <= part->end) {
    *at = target;
    return PPH_OK;
  }
  PPH_TRY(find_branches(import, part, *at, branches));
  if (condition == PPH_NO_VALUE)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "instruction %u jumps by value %d, which nothing wrote",
                    *at, jump->cond_value_index);
  *at = branches[1].end;
  return import_branches(import, branches, condition);
}

/* A delegate's whole payload is read. */
static uint64_t find_cost(const pph_pte_importer *import,
                          const pph_flat_choice *step) {
  uint64_t cost = import->plan->values.count;
  if (step->type == PPH_PTE_DELEGATE_CALL) {
    const pph_pte_delegate_call *call = step->value;
    cost += pph_pte_delegate_payload(
                import->pte, &import->plan->delegates.at[call->delegate_index])
                .count /
            64;
  }
  return cost;
}

static pph_status import_region(pph_pte_importer *import, region part) {
  uint32_t at = part.begin;
  while (at < part.end) {
    const pph_flat_choice *step = instruction(&part, at);
    PPH_TRY(count_step(import, find_cost(import, step)));
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
