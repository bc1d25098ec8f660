/* From a method of a program to a graph. */
#ifndef PPH_PTE_IMPORT_PLAN_H
#define PPH_PTE_IMPORT_PLAN_H

#include "graph/graph.h"
#include "pte/container.h"

/* Imports a method into an initialised, empty graph; what `pte` was read from
   must outlive the graph. Before any node is made, what cannot be imported is
   refused as PPH_UNSUPPORTED with its name: operators without a row in
   import_operators.c, delegates other than XNNPACK's. A tensor with dynamic
   sizes has unknown dimensions. */
PPH_NODISCARD pph_status pph_pte_import(const pph_pte *pte,
                                        const pph_pte_plan *plan,
                                        pph_graph *graph, pph_error *error);

#endif
