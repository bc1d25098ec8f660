#include "pte/warnings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pte/xnn_check.h"

/* A .ptd that was not given, or one of another model. */
static void warn_missing(const pph_pte *pte, const pph_pte_plan *plan,
                         pph_pte_report report, void *context) {
  for (uint32_t i = 0; i < plan->values.count; i++) {
    const pph_pte_tensor *tensor = plan->values.at[i].val.value;
    pph_pte_bytes bytes;
    char text[256];
    if (plan->values.at[i].val.type != PPH_PTE_TENSOR ||
        pph_pte_tensor_storage(tensor) != PPH_PTE_EXTERNAL ||
        pph_pte_tensor_bytes(pte, tensor, &bytes))
      continue;
    pph_flat_text name = tensor->extra_tensor_info->fully_qualified_name;
    snprintf(text, sizeof text,
             "value %u needs the constant \"%.*s\" from a .ptd file", i,
             (int)(name.count < 128 ? name.count : 128), name.at);
    report(context, plan->name, text);
  }
}

/* One delegate's payload, and whom to tell. */
typedef struct payload_view {
  const pph_pte *pte;
  const pph_pte_plan *plan;
  uint32_t number; /* of the delegate */
  pph_payload payload;
  pph_payload_index index;
  pph_pte_report report;
  void *context;
} payload_view;

static void warn_two_readers(const payload_view *view) {
  for (uint32_t i = 0; i < view->index.count; i++) {
    const pph_payload_slot *slot = &view->index.slots[i];
    char text[256];
    if (!pph_payload_has_two_readers(slot))
      continue;
    snprintf(text, sizeof text,
             "delegate %u: the constant %u is packed by one node and read by "
             "another: runtimes up to 1.5.1 read it when it is freed; "
             "`polyphase optimize` cures the program",
             view->number, slot->tensor->id_out);
    view->report(view->context, view->plan->name, text);
  }
}

/* Whether all are whole numbers of 4 bits, as a float filter has them only when
   it was quantized and its scales got lost. */
static bool has_4_bits(const payload_view *view,
                       const pph_payload_slot *filter) {
  const pph_pte_external *external;
  pph_pte_bytes bytes;
  pph_error why;
  if (!filter->tensor->constant_buffer_idx ||
      filter->tensor->datatype != PPH_PAYLOAD_F32 ||
      pph_payload_find_constant(&view->index, filter, view->pte, &bytes,
                                &external, &why) != PPH_OK)
    return false;
  for (size_t i = 0; i < bytes.count / sizeof(float); i++) {
    float x;
    memcpy(&x, bytes.at + i * sizeof x, sizeof x);
    if (!(x >= -8 && x <= 15 && x == rintf(x)))
      return false;
  }
  return true;
}

static bool reads_argument(const payload_view *view, uint32_t arg) {
  for (uint32_t i = 0; i < view->index.count; i++) {
    const pph_payload_tensor *tensor = view->index.slots[i].tensor;
    if (tensor->flags && tensor->external_id == arg)
      return true;
  }
  return false;
}

/* Whether the call hands in floats, some for each row, that no node reads. */
static bool drops_scales(const payload_view *view,
                         const pph_pte_delegate_call *call, uint32_t rows) {
  for (uint32_t i = 0; i < call->args.count; i++) {
    const pph_flat_choice *value = &view->plan->values.at[call->args.at[i]].val;
    const pph_pte_tensor *tensor = value->value;
    if (value->type != PPH_PTE_TENSOR || reads_argument(view, i))
      continue;
    pph_pte_storage storage = pph_pte_tensor_storage(tensor);
    if ((storage == PPH_PTE_CONSTANT || storage == PPH_PTE_EXTERNAL) &&
        pph_scalar_type_find(tensor->scalar_type)->type == PPH_F32 &&
        tensor->sizes.count && (uint32_t)tensor->sizes.at[0] == rows)
      return true;
  }
  return false;
}

static bool has_lost_scales(const payload_view *view,
                            const pph_payload_slot *filter) {
  const pph_pte_plan *plan = view->plan;
  for (uint32_t i = 0; i < plan->chains.count; i++)
    for (uint32_t k = 0; k < plan->chains.at[i].instructions.count; k++) {
      const pph_flat_choice *step =
          &plan->chains.at[i].instructions.at[k].instr_args;
      const pph_pte_delegate_call *call = step->value;
      if (step->type == PPH_PTE_DELEGATE_CALL &&
          (uint32_t)call->delegate_index == view->number &&
          filter->tensor->dims.count &&
          drops_scales(view, call, filter->tensor->dims.at[0]))
        return has_4_bits(view, filter);
    }
  return false;
}

/* A linear of 4-bit weights whose input is not quantized has no kernel; where
   the exporter wrote one all the same, it left out the scales. */
static void warn_weight_only(const payload_view *view) {
  for (uint32_t i = 0; i < view->payload.graph->xnodes.count; i++) {
    const pph_payload_node *node = &view->payload.graph->xnodes.at[i];
    const pph_payload_linear *linear = node->xnode_union.value;
    const char *why = NULL;
    char text[256];
    if (node->xnode_union.type != PPH_PAYLOAD_FULLY_CONNECTED)
      continue;
    const pph_payload_slot *input =
        pph_payload_find(&view->index, linear->input1_id);
    const pph_payload_slot *filter =
        pph_payload_find(&view->index, linear->filter_id);
    int16_t type = filter->tensor->datatype;
    if (type == PPH_PAYLOAD_QB4 || type == PPH_PAYLOAD_QC4)
      why = input->tensor->datatype == PPH_PAYLOAD_QD8
                ? NULL
                : "no Convert quantizes its input, and there is no such kernel";
    else if (has_lost_scales(view, filter))
      why = "its scales are handed in, but no node reads them, so that results "
            "are wrong";
    if (!why)
      continue;
    snprintf(text, sizeof text,
             "delegate %u, node %u: a linear layer has 4-bit weights only: %s",
             view->number, i, why);
    view->report(view->context, view->plan->name, text);
  }
}

static void (*const payload_kinds[])(const payload_view *view) = {
    warn_two_readers, warn_weight_only};

/* A payload that is not understood has no warnings: `runs` tells why. */
static void warn_payloads(const pph_pte *pte, const pph_pte_plan *plan,
                          pph_pte_report report, void *context) {
  for (uint32_t i = 0; i < plan->delegates.count; i++) {
    const pph_pte_delegate *delegate = &plan->delegates.at[i];
    payload_view view = {.pte = pte,
                         .plan = plan,
                         .number = i,
                         .report = report,
                         .context = context};
    pph_arena arena;
    pph_error why = {0};
    pph_arena_init(&arena, pte->heap);
    if (pph_flat_text_is(delegate->id, "XnnpackBackend") &&
        pph_payload_read(pph_pte_delegate_payload(pte, delegate), &arena,
                         &view.payload, &why) == PPH_OK &&
        pph_payload_check(&view.payload, &arena, &view.index, &why) == PPH_OK)
      for (size_t k = 0; k < sizeof payload_kinds / sizeof *payload_kinds; k++)
        payload_kinds[k](&view);
    pph_arena_clear(&arena);
  }
}

static void (*const kinds[])(const pph_pte *pte, const pph_pte_plan *plan,
                             pph_pte_report report,
                             void *context) = {warn_missing, warn_payloads};

void pph_pte_warn(const pph_pte *pte, pph_pte_report report, void *context) {
  for (uint32_t i = 0; pte->program && i < pte->program->execution_plan.count;
       i++)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
      kinds[k](pte, &pte->program->execution_plan.at[i], report, context);
}
