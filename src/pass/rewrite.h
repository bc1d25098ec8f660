/* Changing a graph while walking it once. A pass that replaces values calls
   visit on each node in order, so that the node sees the replacements made
   before it; every change is O(1), and use counts stay right. */
#ifndef PPH_PASS_REWRITE_H
#define PPH_PASS_REWRITE_H

#include "graph/graph.h"

typedef struct pph_rewrite {
  pph_graph *graph;
  pph_id *forward;      /* value -> what replaces it (itself if nothing) */
  unsigned char *fixed; /* 1: a graph input, 2: a graph output */
  uint32_t count;       /* length of both; values beyond map to themselves */
  uint32_t changes;     /* how many changes were made */
} pph_rewrite;

/* Counts uses and takes memory from the graph's heap; pair with end, also after
   a failure in between. */
PPH_NODISCARD pph_status pph_rewrite_begin(pph_rewrite *rewrite,
                                           pph_graph *graph,
                                           pph_error *error);

/* Graph outputs follow their replacements; memory goes back. */
void pph_rewrite_end(pph_rewrite *rewrite);

/* The node's inputs become what replaces them. */
void pph_rewrite_visit(pph_rewrite *rewrite, pph_node *node);

/* begin, visit and `change` for each node in order, end. `change` may remove
   its node and nodes before it, and insert nodes, which are not visited if they
   stand before the node. */
typedef pph_status (*pph_rewrite_rule)(pph_rewrite *rewrite, pph_node *node,
                                       pph_error *error);
PPH_NODISCARD pph_status pph_rewrite_walk(pph_graph *graph,
                                          pph_rewrite_rule change,
                                          pph_error *error);

/* What stands for `id` by now. */
pph_id pph_rewrite_find(const pph_rewrite *rewrite, pph_id id);

bool pph_rewrite_is_output(const pph_rewrite *rewrite, pph_id id);

/* Whether replace may be called: a graph output keeps its name, so it can only
   become a value that a node produces and that is no graph output yet. */
bool pph_rewrite_can_replace(const pph_rewrite *rewrite, pph_id from,
                             pph_id to);

/* From now on `to` stands for `from`, which has the same type and shape. False,
   and nothing changed, when can_replace is false or there is no memory. */
bool pph_rewrite_replace(pph_rewrite *rewrite, pph_id from, pph_id to);

/* Removes a node and its reads. */
void pph_rewrite_remove(pph_rewrite *rewrite, pph_node *node);

/* Replaces the only output of `node` by `to` and removes the node; false when
   that is not possible. */
bool pph_rewrite_bypass(pph_rewrite *rewrite, pph_node *node, pph_id to);

/* Removes `node`, and `from` (which stands before it) produces the node's first
   output instead of its own. */
PPH_NODISCARD pph_status pph_rewrite_take_over(pph_rewrite *rewrite,
                                               pph_node *node, pph_node *from,
                                               pph_error *error);

/* Replaces one input of a node, keeping the counts. */
void pph_rewrite_set_input(pph_rewrite *rewrite, pph_node *node, uint32_t slot,
                           pph_id id);
PPH_NODISCARD pph_status pph_rewrite_set_inputs(pph_rewrite *rewrite,
                                                pph_node *node,
                                                const pph_id *ids,
                                                uint32_t count,
                                                pph_error *error);

/* Makes `node` a Reshape of `source` with a constant target: the shape of its
   output, which must not be empty. */
PPH_NODISCARD pph_status pph_rewrite_become_reshape(pph_rewrite *rewrite,
                                                    pph_node *node,
                                                    pph_id source,
                                                    pph_error *error);

/* pph_graph_insert with counts. Set attributes, then call infer. */
PPH_NODISCARD pph_status pph_rewrite_insert(pph_rewrite *rewrite,
                                            pph_node_kind kind,
                                            pph_node *before,
                                            const pph_id *inputs,
                                            uint32_t count, pph_node **node,
                                            pph_error *error);

/* The node that produces input `slot`, if that value is read nowhere else and
   is no graph output; else NULL. */
pph_node *pph_rewrite_find_private(const pph_rewrite *rewrite,
                                   const pph_node *node, uint32_t slot);

#endif
