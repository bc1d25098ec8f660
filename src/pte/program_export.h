/* From a graph to an ExecuTorch program of one XNNPACK delegate. */
#ifndef PPH_PTE_PROGRAM_EXPORT_H
#define PPH_PTE_PROGRAM_EXPORT_H

#include "graph/graph.h"
#include "pte/container.h"
#include "pte/xnn_payload.h"

/* Blocks of the graph's heap. */
typedef struct pph_pte_files {
  void *program;
  size_t program_bytes;
  void *constants; /* NULL unless asked for */
  size_t constant_bytes;
  uint32_t nodes, delegates; /* of the program */
} pph_pte_files;

typedef struct pph_pte_export_options {
  bool external; /* filters and biases go into a .ptd */
  /* The same model after the same passes, of other input sizes: lengths that
     differ are written as open, those of `graph` as their upper bounds. NULL:
     all are fixed. */
  pph_graph *other;
  bool any_lengths; /* several may be open: forms that state none, even if
                       others are faster */
} pph_pte_export_options;

/* One method, called as the graph's or "forward". `graph`: shapes known,
   layouts chosen, all f32. PPH_UNSUPPORTED names the nodes without a form. */
PPH_NODISCARD pph_status pph_pte_export(pph_graph *graph,
                                        const pph_pte_export_options *options,
                                        pph_pte_files *files,
                                        pph_error *error);
/* Reads what was written back, as pph_pte_open does: `files` must stay. */
PPH_NODISCARD pph_status pph_pte_files_open(const pph_pte_files *files,
                                            pph_heap *heap, pph_pte **pte,
                                            pph_error *error);
void pph_pte_files_clear(pph_pte_files *files, pph_heap *heap);

#endif
