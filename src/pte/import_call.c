#include "pte/import_call.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/fail.h"

pph_status pph_pte_call_fail(const pph_pte_call *call, pph_status status,
                             const char *format, ...) {
  char message[256];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  return pph_fail(call->import->error, status, call->name, "%s", message);
}

const pph_flat_choice *pph_pte_arg(const pph_pte_call *call, uint32_t arg) {
  return &call->import->plan->values.at[call->args[arg]].val;
}

static pph_status fail_type(const pph_pte_call *call, uint32_t arg,
                            const char *legal) {
  return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                           "argument %u has type %u; only %s is supported",
                           arg, pph_pte_arg(call, arg)->type, legal);
}

bool pph_pte_arg_is_null(const pph_pte_call *call, uint32_t arg) {
  return pph_pte_arg(call, arg)->type == PPH_PTE_NULL;
}

pph_status pph_pte_arg_tensor(const pph_pte_call *call, uint32_t arg,
                              pph_id *id) {
  *id = call->import->ids[call->args[arg]];
  if (pph_pte_arg(call, arg)->type != PPH_PTE_TENSOR)
    return fail_type(call, arg, "a tensor");
  if (*id == PPH_NO_VALUE)
    return pph_pte_call_fail(call, PPH_BAD_MODEL,
                             "argument %u, value %d, is read before anything "
                             "writes it",
                             arg, call->args[arg]);
  return PPH_OK;
}

/* A number that the program computes has an id. */
static pph_status read_int(const pph_pte_call *call, uint32_t arg,
                           int64_t value, int64_t *result) {
  const pph_flat_choice *choice = &call->import->plan->values.at[value].val;
  if (call->import->ids[value] != PPH_NO_VALUE)
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "argument %u is computed; only a fixed number is "
                             "supported",
                             arg);
  *result = ((const pph_pte_int *)choice->value)->int_val;
  return PPH_OK;
}

pph_status pph_pte_arg_int(const pph_pte_call *call, uint32_t arg,
                           int64_t *value) {
  *value = 0;
  if (pph_pte_arg(call, arg)->type != PPH_PTE_INT)
    return fail_type(call, arg, "an integer");
  return read_int(call, arg, call->args[arg], value);
}

pph_status pph_pte_arg_bool(const pph_pte_call *call, uint32_t arg,
                            bool *value) {
  *value = false;
  if (pph_pte_arg(call, arg)->type != PPH_PTE_BOOL)
    return fail_type(call, arg, "a bool");
  *value = ((const pph_pte_bool *)pph_pte_arg(call, arg)->value)->bool_val != 0;
  return PPH_OK;
}

pph_status pph_pte_arg_float(const pph_pte_call *call, uint32_t arg,
                             float *value) {
  const pph_flat_choice *choice = pph_pte_arg(call, arg);
  int64_t number;
  *value = 0;
  if (choice->type == PPH_PTE_DOUBLE) {
    *value = (float)((const pph_pte_double *)choice->value)->double_val;
    return PPH_OK;
  }
  PPH_TRY(pph_pte_arg_int(call, arg, &number));
  *value = (float)number;
  return PPH_OK;
}

pph_status pph_pte_arg_ints(const pph_pte_call *call, uint32_t arg,
                            int64_t *ints, uint32_t *count) {
  const pph_pte_int_list *list = pph_pte_arg(call, arg)->value;
  *count = 0;
  if (pph_pte_arg(call, arg)->type != PPH_PTE_INT_LIST)
    return fail_type(call, arg, "a list of integers");
  if (list->items.count > PPH_PTE_MOST_INTS)
    return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                             "argument %u has %u items, at most %d are "
                             "supported",
                             arg, list->items.count, PPH_PTE_MOST_INTS);
  for (uint32_t i = 0; i < list->items.count; i++)
    PPH_TRY(read_int(call, arg, list->items.at[i], &ints[i]));
  *count = list->items.count;
  return PPH_OK;
}

uint32_t pph_pte_arg_rank(const pph_pte_call *call, uint32_t arg) {
  const pph_flat_choice *choice = pph_pte_arg(call, arg);
  return choice->type == PPH_PTE_TENSOR
             ? ((const pph_pte_tensor *)choice->value)->sizes.count
             : 0;
}

pph_status pph_pte_find_axis(const pph_pte_call *call, uint32_t rank,
                             int64_t *axis) {
  int64_t found = *axis;
  if (found < -(int64_t)rank || found >= (int64_t)rank)
    return pph_pte_call_fail(call, PPH_BAD_MODEL,
                             "dimension %d of a tensor of %u", (int)found,
                             rank);
  *axis = found < 0 ? found + rank : found;
  return PPH_OK;
}

pph_status pph_pte_add_node(const pph_pte_call *call, pph_node_kind kind,
                            const pph_id *inputs, uint32_t count,
                            pph_node **node, pph_id *id) {
  PPH_TRY(pph_graph_insert(call->import->graph, kind, NULL, inputs, count,
                           node, call->import->error));
  *id = (*node)->outputs[0];
  return PPH_OK;
}

pph_status pph_pte_add_result(const pph_pte_call *call, pph_node_kind kind,
                              const pph_id *inputs, uint32_t count,
                              pph_node **node) {
  return pph_pte_add_node(call, kind, inputs, count, node,
                          &call->import->ids[call->result]);
}

pph_status pph_pte_add_float(const pph_pte_call *call, float number,
                             pph_id *id) {
  pph_tensor tensor = {.type = PPH_F32, .data = &number};
  return pph_graph_add_constant(call->import->graph, NULL, &tensor, id,
                                call->import->error);
}
