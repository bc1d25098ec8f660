#include "pte/warnings.h"

#include <stdio.h>

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

static void (*const kinds[])(const pph_pte *pte, const pph_pte_plan *plan,
                             pph_pte_report report,
                             void *context) = {warn_missing};

void pph_pte_warn(const pph_pte *pte, pph_pte_report report, void *context) {
  for (uint32_t i = 0; pte->program && i < pte->program->execution_plan.count;
       i++)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
      kinds[k](pte, &pte->program->execution_plan.at[i], report, context);
}
