/* Import of portable quantizing and dequantizing. */
#include "base/fail.h"
#include "pte/import_call.h"

/* What both have behind their input: a scale and a zero point each, for the
   whole (Double and Int) or for the channels of an axis (tensors). */
typedef struct parameters {
  pph_id scale, zero; /* f32 */
  int64_t least, greatest;
} parameters;

static pph_status cast(const pph_pte_call *call, pph_dtype type, pph_id *id) {
  pph_node *node;
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_CAST, id, 1, &node, id));
  return pph_node_set_int(call->import->graph, node, PPH_ATTR_TO, type,
                          call->import->error);
}

static pph_status pair(const pph_pte_call *call, pph_node_kind kind, pph_id a,
                       pph_id b, pph_id *id) {
  pph_id ids[] = {a, b};
  pph_node *node;
  return pph_pte_add_node(call, kind, ids, 2, &node, id);
}

/* A vector of the channels as f32 before the dimensions behind theirs. */
static pph_status read_channels(const pph_pte_call *call, uint32_t arg,
                                uint32_t trailing, pph_id *id) {
  static const int64_t shape[PPH_MAX_RANK] = {-1, 1, 1, 1, 1, 1, 1, 1};
  pph_id ints;
  PPH_TRY(pph_pte_arg_tensor(call, arg, id));
  PPH_TRY(cast(call, PPH_F32, id));
  PPH_TRY(pph_graph_add_ints(call->import->graph, NULL, shape, trailing + 1,
                             &ints, call->import->error));
  return pair(call, PPH_NODE_RESHAPE, *id, ints, id);
}

/* self, scale, zero point[, axis], least, greatest, type */
static pph_status read_parameters(const pph_pte_call *call, bool per_channel,
                                  parameters *p) {
  uint32_t rank = pph_pte_arg_rank(call, 0);
  int64_t axis;
  float number;
  if (per_channel) {
    PPH_TRY(pph_pte_arg_int(call, 3, &axis));
    PPH_TRY(pph_pte_find_axis(call, rank, &axis));
    uint32_t trailing = rank - 1 - (uint32_t)axis;
    PPH_TRY(read_channels(call, 1, trailing, &p->scale));
    if (pph_pte_arg_is_null(call, 2))
      PPH_TRY(pph_pte_add_float(call, 0, &p->zero));
    else
      PPH_TRY(read_channels(call, 2, trailing, &p->zero));
  } else {
    PPH_TRY(pph_pte_arg_float(call, 1, &number));
    PPH_TRY(pph_pte_add_float(call, number, &p->scale));
    PPH_TRY(pph_pte_arg_float(call, 2, &number));
    PPH_TRY(pph_pte_add_float(call, number, &p->zero));
  }
  PPH_TRY(pph_pte_arg_int(call, 3 + per_channel, &p->least));
  return pph_pte_arg_int(call, 4 + per_channel, &p->greatest);
}

/* Newer programs have one more argument, a type for the result, which is the
   result's anyway. */
static pph_status find_result(pph_pte_call *call, pph_dtype *type) {
  call->result = call->args[call->all_count - 1];
  const pph_flat_choice *to =
      &call->import->plan->values.at[call->result].val;
  if (to->type != PPH_PTE_TENSOR)
    return pph_pte_call_fail(call, PPH_BAD_MODEL, "has no tensor as result");
  const pph_pte_tensor *tensor = to->value;
  *type = pph_scalar_type_find(tensor->scalar_type)->type;
  return PPH_OK;
}

/* round(x * (1 / scale)) + zero point, between least and greatest */
pph_status pph_pte_import_quantize(pph_pte_call *call, pph_node_kind kind) {
  parameters p;
  pph_id x, clip[3];
  pph_dtype type;
  pph_node *node;
  PPH_TRY(find_result(call, &type));
  PPH_TRY(pph_pte_arg_tensor(call, 0, &x));
  PPH_TRY(read_parameters(call, kind == PPH_NODE_MUL, &p));
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_RECIPROCAL, &p.scale, 1, &node,
                           &p.scale));
  PPH_TRY(pair(call, PPH_NODE_MUL, x, p.scale, &x));
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_ROUND, &x, 1, &node, &x));
  PPH_TRY(pair(call, PPH_NODE_ADD, x, p.zero, &clip[0]));
  PPH_TRY(pph_pte_add_float(call, (float)p.least, &clip[1]));
  PPH_TRY(pph_pte_add_float(call, (float)p.greatest, &clip[2]));
  PPH_TRY(pph_pte_add_node(call, PPH_NODE_CLIP, clip, 3, &node, &x));
  PPH_TRY(cast(call, type, &x));
  call->import->ids[call->result] = x;
  return PPH_OK;
}

/* (x - zero point) * scale */
pph_status pph_pte_import_dequantize(pph_pte_call *call, pph_node_kind kind) {
  parameters p;
  pph_id x;
  pph_dtype type;
  PPH_TRY(find_result(call, &type));
  PPH_TRY(pph_pte_arg_tensor(call, 0, &x));
  PPH_TRY(read_parameters(call, kind == PPH_NODE_MUL, &p));
  PPH_TRY(cast(call, PPH_F32, &x));
  PPH_TRY(pair(call, PPH_NODE_SUB, x, p.zero, &x));
  PPH_TRY(pair(call, PPH_NODE_MUL, x, p.scale, &x));
  if (type != PPH_F32)
    PPH_TRY(cast(call, type, &x));
  call->import->ids[call->result] = x;
  return PPH_OK;
}
