/* Which types the values of a node may have. */
#include <stdio.h>
#include <string.h>

#include "pte/xnn_import.h"

/* Types of input, filter, bias where there is one, and output that sums of
   products have a kernel for; floats besides. */
typedef struct sum_types {
  int16_t input, filter, bias, output;
  bool linear_only, no_depthwise;
} sum_types;
static const sum_types sums[] = {
    {PPH_PAYLOAD_Q8, PPH_PAYLOAD_Q8, PPH_PAYLOAD_Q32, PPH_PAYLOAD_Q8, false,
     false},
    {PPH_PAYLOAD_Q8, PPH_PAYLOAD_QC8, PPH_PAYLOAD_QC32, PPH_PAYLOAD_Q8, false,
     false},
    {PPH_PAYLOAD_QU8, PPH_PAYLOAD_QU8, PPH_PAYLOAD_Q32, PPH_PAYLOAD_QU8, false,
     false},
    {PPH_PAYLOAD_QD8, PPH_PAYLOAD_QC8, PPH_PAYLOAD_F32, PPH_PAYLOAD_F32, false,
     true},
    {PPH_PAYLOAD_QD8, PPH_PAYLOAD_QB4, PPH_PAYLOAD_F32, PPH_PAYLOAD_F32, true,
     true},
};

static void name_type(const pph_payload_slot *slot, char *text, size_t size) {
  size_t used = strlen(text);
  snprintf(text + used, size - used, "%s%s", used ? ", " : "",
           slot ? pph_payload_type_name(slot->tensor->datatype) : "none");
}

static bool all_floats(const pph_payload_step *step) {
  bool all = true;
  for (uint32_t i = 0; i < step->input_count; i++)
    all &= !step->inputs[i] || pph_payload_is_float(step->inputs[i]);
  for (uint32_t i = 0; i < step->output_count; i++)
    all &= pph_payload_is_float(step->outputs[i]);
  return all;
}

/* All inputs have the output's type of integers; `alike`: and its numbers. */
static bool all_static(const pph_payload_step *step, bool alike) {
  const pph_payload_slot *output = step->outputs[0];
  const pph_payload_per_tensor *b = output->quantization;
  bool all = step->output_count == 1 && pph_payload_is_static(output);
  for (uint32_t i = 0; i < step->input_count && all; i++) {
    const pph_payload_slot *input = step->inputs[i];
    const pph_payload_per_tensor *a = input ? input->quantization : NULL;
    all = input && input->tensor->datatype == output->tensor->datatype &&
          (!alike ||
           (memcmp(&a->scale, &b->scale, sizeof a->scale) == 0 &&
            a->zero_point == b->zero_point));
  }
  return all;
}

static bool can_convert(const pph_payload_step *step) {
  const pph_payload_slot *from = step->inputs[0], *to = step->outputs[0];
  if (pph_payload_is_float(from))
    return pph_payload_is_float(to) || pph_payload_is_static(to) ||
           to->tensor->datatype == PPH_PAYLOAD_QD8;
  return pph_payload_is_static(from) &&
         (pph_payload_is_float(to) ||
          to->tensor->datatype == from->tensor->datatype);
}

static bool has_kernel(const pph_payload_step *step) {
  uint32_t kind = step->node->xnode_union.type;
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    const sum_types *row = &sums[i];
    if (step->inputs[0]->tensor->datatype == row->input &&
        step->inputs[1]->tensor->datatype == row->filter &&
        (!step->inputs[2] ||
         step->inputs[2]->tensor->datatype == row->bias) &&
        step->outputs[0]->tensor->datatype == row->output &&
        (!row->linear_only || kind == PPH_PAYLOAD_FULLY_CONNECTED) &&
        (!row->no_depthwise || kind != PPH_PAYLOAD_DEPTHWISE))
      return true;
  }
  return false;
}

pph_status pph_payload_check_types(const pph_payload_step *step) {
  char types[128] = "";
  pph_payload_types rule =
      pph_payload_find_rule(step->node->xnode_union.type)->types;
  if (all_floats(step) ||
      (rule == PPH_PAYLOAD_MOVES && all_static(step, true)) ||
      (rule == PPH_PAYLOAD_COMPUTES && all_static(step, false)) ||
      (rule == PPH_PAYLOAD_CONVERTS && can_convert(step)) ||
      (rule == PPH_PAYLOAD_SUMS && has_kernel(step)))
    return PPH_OK;
  for (uint32_t i = 0; i < step->input_count; i++)
    name_type(step->inputs[i], types, sizeof types);
  name_type(step->outputs[0], types, sizeof types);
  return pph_payload_fail(step, PPH_UNSUPPORTED,
                          "there is no kernel for the types %s%s", types,
                          rule == PPH_PAYLOAD_MOVES &&
                                  all_static(step, false)
                              ? " with different scales"
                              : "");
}
