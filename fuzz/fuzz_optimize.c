/* Any bytes as an ExecuTorch program, with constants beside it, to be rewritten:
   what comes out can be written, opens, and imports where it did before. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_common.h"
#include "optimize/optimize.h"
#include "pte/container_write.h"
#include "pte/import_plan.h"

enum { HEAD = 4, METHODS = 8 };

/* How a seed begins: when phases are made (auto, always, never), which filter
   convolutions take and how many pixels at once, all in one byte, then the
   program's length in three bytes, the least first. The rest is a .ptd. */
typedef struct input {
  pph_optimize_options options;
  pph_pte_source program, beside;
  bool external;
} input;

static bool split(const uint8_t *data, size_t size, input *in) {
  if (size < HEAD)
    return false;
  size_t length = data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16;
  data += HEAD;
  size -= HEAD;
  length = length < size ? length : size;
  *in = (input){.options = {.always = data[-HEAD] % 3 == 1,
                            .never = data[-HEAD] % 3 == 2,
                            .only_filter = data[-HEAD] / 3 % 10,
                            .only_pixels = data[-HEAD] / 30},
                .program = {"", {data, length}},
                .beside = {"weights.ptd", {data + length, size - length}},
                .external = length < size};
  return true;
}

/* Methods that import, the first as bit 0; `full` when one took too much. */
static unsigned import_all(const pph_pte *pte, bool *full) {
  unsigned good = 0;
  pph_limits limits = fuzz_limits();
  for (uint32_t i = 0;
       i < pte->program->execution_plan.count && i < METHODS; i++) {
    pph_graph graph;
    pph_heap heap;
    pph_heap_init(&heap, NULL, limits.heap_bytes);
    pph_graph_init(&graph, &heap, &limits);
    pph_status status = pph_pte_import(
        pte, &pte->program->execution_plan.at[i], &graph, NULL);
    *full |= status == PPH_OUT_OF_MEMORY || status == PPH_LIMIT_EXCEEDED;
    good |= (unsigned)(status == PPH_OK) << i;
    pph_graph_clear(&graph);
    if (atomic_load(&heap.used))
      abort(); /* a leak */
  }
  return good;
}

/* The program's file, and the one beside it; false when one cannot be. */
static bool write_files(pph_pte *pte, bool external, void **program,
                        size_t *length, void **beside, size_t *beside_length) {
  *program = *beside = NULL;
  if (pph_pte_write(pte, pte->heap, program, length, NULL) != PPH_OK)
    return false;
  return !external ||
         pph_pte_write_external(&pte->externals[0], pte->heap, beside,
                                beside_length, NULL) == PPH_OK;
}

static void check_again(const input *in, pph_heap *heap, unsigned before) {
  bool full = false;
  pph_pte *again;
  if (pph_pte_open(&in->program, &in->beside, in->external, heap, &again,
                   NULL) != PPH_OK)
    abort(); /* what was written is a program */
  unsigned after = import_all(again, &full);
  if (!full && (after & before) != before)
    abort(); /* and says no less */
  pph_pte_close(again);
}

static void rewrite(const input *in, pph_pte *pte) {
  bool full = false;
  unsigned before = import_all(pte, &full);
  pph_optimize_result result;
  void *program, *beside;
  size_t length = 0, beside_length = 0;
  if (pph_pte_optimize(pte, &in->options, &result, NULL) != PPH_OK)
    return;
  bool written = write_files(pte, in->external, &program, &length, &beside,
                             &beside_length);
  if (written && !result.changes &&
      (length != in->program.bytes.count ||
       memcmp(program, in->program.bytes.at, length) != 0))
    abort(); /* nothing changed is nothing written otherwise */
  if (written) {
    input made = *in;
    made.program.bytes = (pph_pte_bytes){program, length};
    made.beside.bytes = (pph_pte_bytes){beside, beside_length};
    check_again(&made, pte->heap, before);
  }
  pph_heap_release(pte->heap, program);
  pph_heap_release(pte->heap, beside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in;
  pph_heap heap;
  pph_pte *pte;
  if (!split(data, size, &in))
    return 0;
  pph_heap_init(&heap, NULL, fuzz_limits().heap_bytes);
  if (pph_pte_open(&in.program, &in.beside, in.external, &heap, &pte, NULL) ==
          PPH_OK &&
      pte->program)
    rewrite(&in, pte);
  pph_pte_close(pte);
  if (atomic_load(&heap.used))
    abort(); /* a leak */
  return 0;
}
