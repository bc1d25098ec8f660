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

/* Whether both lie at one place of planned memory and are as long. */
static bool is_same_memory(const pph_pte_tensor *a, const pph_pte_tensor *b) {
  const pph_pte_allocation *x = a->allocation_info, *y = b->allocation_info;
  return x && y && x->memory_id == y->memory_id &&
         x->memory_offset_low == y->memory_offset_low &&
         x->memory_offset_high == y->memory_offset_high &&
         pph_pte_tensor_size(a) == pph_pte_tensor_size(b) &&
         a->scalar_type == b->scalar_type;
}

/* What was written last in the tensor's memory: values get their ids in the
   order of instructions. */
static pph_id find_shared(const pph_pte_importer *import,
                          const pph_pte_tensor *tensor) {
  pph_id found = PPH_NO_VALUE;
  for (uint32_t i = 0; i < import->plan->values.count; i++) {
    const pph_flat_choice *other = &import->plan->values.at[i].val;
    pph_id id = import->ids[i];
    if (id != PPH_NO_VALUE && other->type == PPH_PTE_TENSOR &&
        (found == PPH_NO_VALUE || id > found) &&
        is_same_memory(other->value, tensor) &&
        !pph_pte_is_permuted(other->value))
      found = id;
  }
  return found;
}

pph_status pph_pte_find_id(pph_pte_importer *import, int32_t value,
                           pph_id *id) {
  const pph_flat_choice *choice = &import->plan->values.at[value].val;
  const pph_pte_tensor *tensor = choice->value;
  int64_t shape[PPH_MAX_RANK];
  pph_id ids[2];
  pph_node *node;
  *id = import->ids[value];
  if (*id != PPH_NO_VALUE || choice->type != PPH_PTE_TENSOR ||
      tensor->shape_dynamism || pph_pte_is_permuted(tensor))
    return PPH_OK;
  ids[0] = find_shared(import, tensor);
  if (ids[0] == PPH_NO_VALUE)
    return PPH_OK;
  for (uint32_t i = 0; i < tensor->sizes.count; i++)
    shape[i] = tensor->sizes.at[i];
  PPH_TRY(pph_graph_add_ints(import->graph, NULL, shape, tensor->sizes.count,
                             &ids[1], import->error));
  PPH_TRY(pph_graph_insert(import->graph, PPH_NODE_RESHAPE, NULL, ids, 2,
                           &node, import->error));
  *id = import->ids[value] = node->outputs[0];
  return PPH_OK;
}

pph_status pph_pte_arg_tensor(const pph_pte_call *call, uint32_t arg,
                              pph_id *id) {
  *id = PPH_NO_VALUE;
  if (pph_pte_arg(call, arg)->type != PPH_PTE_TENSOR)
    return fail_type(call, arg, "a tensor");
  PPH_TRY(pph_pte_find_id(call->import, call->args[arg], id));
  if (*id == PPH_NO_VALUE)
    return pph_pte_call_fail(call, PPH_BAD_MODEL,
                             "argument %u, value %d, is read before anything "
                             "writes it",
                             arg, call->args[arg]);
  return PPH_OK;
}

static pph_status read_int(const pph_pte_call *call, uint32_t arg,
                           int32_t value, int64_t *result) {
  if (pph_pte_find_number(call->import, value, result))
    return PPH_OK;
  return pph_pte_call_fail(call, PPH_UNSUPPORTED,
                           "argument %u is computed in the run; only a fixed "
                           "number is supported",
                           arg);
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
  int64_t number;
  PPH_TRY(read_int(call, arg, call->args[arg], &number));
  *value = number != 0;
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
