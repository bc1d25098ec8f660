/* Any bytes as an ExecuTorch container: what opens is looked at and imported,
   and what is written of it is the same file. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_common.h"
#include "pte/container_write.h"
#include "pte/import_plan.h"
#include "pte/warnings.h"

static volatile unsigned sum; /* keeps the reads */

static void touch(pph_pte_bytes bytes) {
  for (size_t i = 0; i < bytes.count; i++)
    sum += bytes.at[i];
}

static void ignore(void *context, pph_flat_text method, const char *text) {
  touch((pph_pte_bytes){(const uint8_t *)method.at, method.count});
}

static void look(const pph_pte *pte, const pph_pte_plan *plan) {
  pph_pte_bytes bytes;
  for (uint32_t i = 0; i < plan->delegates.count; i++)
    touch(pph_pte_delegate_payload(pte, &plan->delegates.at[i]));
  for (uint32_t i = 0; i < plan->values.count && i < 64; i++) {
    sum += pph_pte_is_state(plan, i);
    if (plan->values.at[i].val.type == PPH_PTE_TENSOR &&
        pph_pte_tensor_bytes(pte, plan->values.at[i].val.value, &bytes))
      touch(bytes);
  }
}

static void import(const pph_pte *pte, const pph_pte_plan *plan) {
  pph_limits limits = fuzz_limits();
  pph_graph graph;
  pph_graph_init(&graph, pte->heap, &limits);
  if (pph_pte_import(pte, plan, &graph, NULL) == PPH_OK)
    sum += graph.node_count;
  pph_graph_clear(&graph);
}

static void write_again(pph_pte *pte, const uint8_t *data, size_t size) {
  void *bytes;
  size_t length;
  if (pph_pte_write(pte, pte->heap, &bytes, &length, NULL) != PPH_OK)
    return;
  if (length != size || memcmp(bytes, data, size) != 0)
    abort();
  pph_heap_release(pte->heap, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pph_heap heap;
  pph_error error;
  pph_pte *pte;
  pph_pte_source source = {"", {data, size}};
  pph_heap_init(&heap, NULL, fuzz_limits().heap_bytes);
  if (pph_pte_open(&source, NULL, 0, &heap, &pte, &error) == PPH_OK) {
    const pph_pte_program *program = pte->program;
    for (uint32_t i = 0; program && i < program->execution_plan.count && i < 8;
         i++) {
      look(pte, &program->execution_plan.at[i]);
      import(pte, &program->execution_plan.at[i]);
    }
    pph_pte_warn(pte, ignore, NULL);
    write_again(pte, data, size);
  }
  pph_pte_close(pte);
  if (atomic_load(&heap.used))
    abort(); /* a leak */
  return 0;
}
