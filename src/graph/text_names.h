/* A table from names to values: a crit-bit tree, so that a look-up takes time
   proportional to the name whatever names a file chooses; a hash table could
   be driven into quadratic time. */
#ifndef PPH_GRAPH_TEXT_NAMES_H
#define PPH_GRAPH_TEXT_NAMES_H

#include "graph/graph.h"

typedef struct pph_text_branch {
  uint32_t byte;     /* where the two sides differ */
  uint8_t mask;      /* all bits but the one that tells them apart */
  uint64_t child[2]; /* see pph_text_names.root */
} pph_text_branch;

/* Memory is from graph->heap; the names are the graph's values'. */
typedef struct pph_text_names {
  const pph_graph *graph;
  pph_text_branch *branches;
  uint32_t count, capacity;
  bool any;
  uint64_t root; /* 2 * value id, or 2 * branch + 1 */
} pph_text_names;

void pph_text_names_init(pph_text_names *names, const pph_graph *graph);
void pph_text_names_clear(pph_text_names *names);

/* The value of that name, or PPH_NO_VALUE. */
pph_id pph_text_names_find(const pph_text_names *names, const char *name,
                           size_t length);

/* Adds value `id` under its name; *existing is the value that has the name
   already, and then nothing is added, else PPH_NO_VALUE. */
PPH_NODISCARD pph_status pph_text_names_add(pph_text_names *names, pph_id id,
                                            pph_id *existing,
                                            pph_error *error);

#endif
