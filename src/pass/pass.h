/* Passes: each takes a graph to an equal graph. The list and its order are
   pipeline.c's, and nowhere else. */
#ifndef PPH_PASS_PASS_H
#define PPH_PASS_PASS_H

#include <stdio.h>

#include "graph/graph.h"

/* When conv_transpose_to_polyphase rewrites a node. */
typedef enum pph_polyphase_mode {
  PPH_POLYPHASE_AUTO,  /* where the cost rule expects a gain */
  PPH_POLYPHASE_ALWAYS, /* wherever it is exact; for tests and export */
  PPH_POLYPHASE_NEVER
} pph_polyphase_mode;

typedef struct pph_pass_options {
  bool optimize; /* false: only what a specialised graph needs to run */
  pph_polyphase_mode polyphase;
  /* Whether the native operator can run a convolution: with an Add or PRelu
     behind it, it had better, as it does these while it stores; AUTO also
     leaves it the phases of transposed convolutions. NULL: there is none. */
  bool (*fuses_natively)(const pph_graph *graph, const pph_node *node);
  bool folds_upsampling; /* weights may be summed: accuracy `normal` */
  bool choose_layout; /* false for export: layouts stay plain */
  const char *dump;   /* pass name, "all", or NULL */
  FILE *dump_file;    /* where dumps go */
} pph_pass_options;

void pph_pass_options_init(pph_pass_options *options);

typedef struct pph_pass {
  const char *name;        /* the file's stem */
  const char *description; /* one line */
  bool exact;    /* results are the same bits on integer data */
  bool required; /* runs when options.optimize is false too */
  pph_status (*run)(pph_graph *graph, const pph_pass_options *options,
                    pph_error *error);
} pph_pass;

/* The list, in order; *count gets its length. */
const pph_pass *pph_pass_list(size_t *count);

/* Runs all passes on a graph whose input shapes are known. Afterwards every
   value that is used has a type and a known shape. In debug builds verifies
   after every pass. */
PPH_NODISCARD pph_status pph_pipeline_run(pph_graph *graph,
                                          const pph_pass_options *options,
                                          pph_error *error);

/* Runs one pass by name (tests); PPH_INVALID_ARGUMENT if unknown. */
PPH_NODISCARD pph_status pph_pass_run(pph_graph *graph, const char *name,
                                      const pph_pass_options *options,
                                      pph_error *error);

/* The passes, one file each. Preconditions are in the files. */
pph_status pph_pass_infer_shapes(pph_graph *, const pph_pass_options *,
                                 pph_error *);
pph_status pph_pass_fold_constants(pph_graph *, const pph_pass_options *,
                                   pph_error *);
pph_status pph_pass_simplify(pph_graph *, const pph_pass_options *,
                             pph_error *);
pph_status pph_pass_recognize_activation(pph_graph *,
                                         const pph_pass_options *,
                                         pph_error *);
pph_status pph_pass_gather_to_slice(pph_graph *, const pph_pass_options *,
                                    pph_error *);
pph_status pph_pass_sink_transpose(pph_graph *, const pph_pass_options *,
                                   pph_error *);
pph_status pph_pass_drop_unit_height(pph_graph *, const pph_pass_options *,
                                     pph_error *);
pph_status pph_pass_dilation_from_space_to_batch(pph_graph *,
                                                 const pph_pass_options *,
                                                 pph_error *);
pph_status pph_pass_fold_batch_normalization(pph_graph *,
                                             const pph_pass_options *,
                                             pph_error *);
pph_status pph_pass_fuse_pad(pph_graph *, const pph_pass_options *,
                             pph_error *);
pph_status pph_pass_fold_nearest(pph_graph *, const pph_pass_options *,
                                 pph_error *);
pph_status pph_pass_fuse_bias(pph_graph *, const pph_pass_options *,
                              pph_error *);
pph_status pph_pass_fuse_native(pph_graph *, const pph_pass_options *,
                                pph_error *);
pph_status pph_pass_fuse_activation(pph_graph *, const pph_pass_options *,
                                    pph_error *);
pph_status pph_pass_conv_transpose_to_polyphase(pph_graph *,
                                                const pph_pass_options *,
                                                pph_error *);
pph_status pph_pass_merge_duplicates(pph_graph *, const pph_pass_options *,
                                     pph_error *);
pph_status pph_pass_choose_layout(pph_graph *, const pph_pass_options *,
                                  pph_error *);
pph_status pph_pass_drop_dead_nodes(pph_graph *, const pph_pass_options *,
                                    pph_error *);

#endif
