/* Import of what a program computes with single numbers: counters of loops,
   lengths of views. What is known is computed here, the rest by nodes on
   vectors of one integer. */
#include "base/checked.h"
#include "base/fail.h"
#include "pte/import_call.h"

bool pph_pte_find_number(const pph_pte_importer *import, int32_t value,
                         int64_t *number) {
  const pph_flat_choice *choice = &import->plan->values.at[value].val;
  if (import->ids[value] != PPH_NO_VALUE) {
    const pph_value *known =
        pph_graph_value(import->graph, import->ids[value]);
    size_t count;
    if (!known->data || !pph_shape_count(&known->shape, &count) || count != 1)
      return false;
    if (known->type == PPH_I64)
      *number = *(const int64_t *)known->data;
    if (known->type == PPH_BOOL)
      *number = *(const uint8_t *)known->data;
    return known->type == PPH_I64 || known->type == PPH_BOOL;
  }
  if (choice->type == PPH_PTE_INT)
    *number = ((const pph_pte_int *)choice->value)->int_val;
  if (choice->type == PPH_PTE_BOOL)
    *number = ((const pph_pte_bool *)choice->value)->bool_val != 0;
  return choice->type == PPH_PTE_INT || choice->type == PPH_PTE_BOOL;
}

pph_status pph_pte_arg_number(const pph_pte_call *call, uint32_t arg,
                              pph_id *id) {
  pph_pte_importer *import = call->import;
  int32_t value = call->args[arg];
  int64_t number;
  *id = import->ids[value];
  if (*id != PPH_NO_VALUE)
    return PPH_OK;
  if (!pph_pte_find_number(import, value, &number))
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "argument %u has type %u; only an integer is "
                             "supported",
                             arg, pph_pte_arg(call, arg)->type);
  return pph_graph_add_ints(import->graph, NULL, &number, 1, id,
                            import->error);
}

/* False where the result does not fit, or has none. */
static bool compute(pph_node_kind kind, int64_t a, int64_t b, int64_t *result) {
  switch ((int)kind) {
  case PPH_NODE_ADD:
    return pph_checked_add_i64(a, b, result);
  case PPH_NODE_SUB:
    return pph_checked_sub_i64(a, b, result);
  case PPH_NODE_MUL:
    return pph_checked_mul_i64(a, b, result);
  case PPH_NODE_DIV: /* down, as Python's // */
    if (b == 0 || (a == INT64_MIN && b == -1))
      return false;
    *result = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
    return true;
  case PPH_NODE_MOD: /* the divisor's sign */
    if (b == 0 || b == -1)
      return b != 0 && (*result = 0, true);
    *result = a % b;
    *result += *result != 0 && (*result < 0) != (b < 0) ? b : 0;
    return true;
  case PPH_NODE_MAX:
    return *result = pph_max_i64(a, b), true;
  case PPH_NODE_MIN:
    return *result = pph_min_i64(a, b), true;
  case PPH_NODE_EQUAL:
    return *result = a == b, true;
  case PPH_NODE_GREATER:
    return *result = a > b, true;
  case PPH_NODE_GREATER_OR_EQUAL:
    return *result = a >= b, true;
  case PPH_NODE_LESS:
    return *result = a < b, true;
  default: /* LESS_OR_EQUAL */
    return *result = a <= b, true;
  }
}

static bool is_comparison(pph_node_kind kind) {
  return kind == PPH_NODE_EQUAL || kind == PPH_NODE_GREATER ||
         kind == PPH_NODE_GREATER_OR_EQUAL || kind == PPH_NODE_LESS ||
         kind == PPH_NODE_LESS_OR_EQUAL;
}

pph_status pph_pte_add_number(const pph_pte_importer *import, bool is_bool,
                              int64_t number, pph_id *id) {
  uint8_t truth = number != 0;
  pph_tensor tensor = {is_bool ? PPH_BOOL : PPH_I64,
                       {1, {1}},
                       is_bool ? (void *)&truth : (void *)&number};
  return pph_graph_add_constant(import->graph, NULL, &tensor, id,
                                import->error);
}

/* Division by nodes goes towards 0; less the remainder it is exact. */
static pph_status add_floor_division(const pph_pte_call *call, pph_id *inputs) {
  pph_id parts[] = {inputs[0], PPH_NO_VALUE};
  pph_node *node;
  PPH_TRY(
      pph_pte_add_node(call, PPH_NODE_MOD, inputs, 2, &node, &parts[1]));
  return pph_pte_add_node(call, PPH_NODE_SUB, parts, 2, &node, &inputs[0]);
}

pph_status pph_pte_import_number(pph_pte_call *call, pph_node_kind kind) {
  int64_t a, b, result;
  pph_id inputs[2];
  pph_node *node;
  if (pph_pte_find_number(call->import, call->args[0], &a) &&
      pph_pte_find_number(call->import, call->args[1], &b)) {
    if (!compute(kind, a, b, &result))
      return pph_pte_call_fail(call, PPH_BAD_MODEL,
                               "%lld and %lld have no result in 64 bits",
                               (long long)a, (long long)b);
    return pph_pte_add_number(call->import, is_comparison(kind), result,
                              &call->import->ids[call->result]);
  }
  for (uint32_t i = 0; i < 2; i++)
    PPH_TRY(pph_pte_arg_number(call, i, &inputs[i]));
  if (kind == PPH_NODE_DIV)
    PPH_TRY(add_floor_division(call, inputs));
  return pph_pte_add_result(call, kind, inputs, 2, &node);
}

/* self, dim: of a tensor of fixed sizes it is known, and a loop can end */
pph_status pph_pte_import_size(pph_pte_call *call, pph_node_kind kind) {
  const pph_flat_choice *choice = pph_pte_arg(call, 0);
  const pph_pte_tensor *fixed = choice->value;
  pph_id inputs[2], tensor;
  int64_t axis;
  pph_node *node;
  PPH_TRY(pph_pte_arg_tensor(call, 0, &tensor));
  PPH_TRY(pph_pte_arg_int(call, 1, &axis));
  PPH_TRY(pph_pte_find_axis(call, pph_pte_arg_rank(call, 0), &axis));
  if (!fixed->shape_dynamism)
    return pph_pte_add_number(call->import, false, fixed->sizes.at[axis],
                              &call->import->ids[call->result]);
  PPH_TRY(
      pph_pte_add_node(call, PPH_NODE_SHAPE, &tensor, 1, &node, &inputs[0]));
  PPH_TRY(pph_graph_add_ints(call->import->graph, NULL, &axis, 1, &inputs[1],
                             call->import->error));
  return pph_pte_add_result(call, kind, inputs, 2, &node);
}
