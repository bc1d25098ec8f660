/* Evaluating whole graphs with the reference evaluator, and small helpers that
   tests of passes need. */
#ifndef GRAPH_RUNNER_H
#define GRAPH_RUNNER_H

#include "pass/pass.h"
#include "test_support.h"

typedef struct graph_results {
  pph_heap *heap;
  pph_tensor *tensors; /* one per graph output */
  uint32_t count;
} graph_results;

/* Runs every node in order. Shapes must have been inferred. `inputs` in the
   graph's order. Release also after failure. */
PPH_NODISCARD pph_status graph_run(const pph_graph *graph,
                                   const pph_tensor *inputs,
                                   graph_results *results, pph_error *error);
void graph_results_release(graph_results *results);

/* Parses text into an initialised graph or fails the test. */
void graph_parse(pph_graph *graph, pph_heap *heap, const char *text);

/* Whole numbers from -3 to 3 in place of f32 constants that the text gives as
   77s. */
void graph_fill_weights(const pph_graph *graph, test_random *random);

/* Inputs of the graph filled with small integers (f32, i64, ...), blocks of
   `heap`; release with graph_inputs_release. */
pph_tensor *graph_inputs_make(const pph_graph *graph, pph_heap *heap,
                              test_random *random);
void graph_inputs_release(const pph_graph *graph, pph_heap *heap,
                          pph_tensor *inputs);

/* The largest difference relative to 1 + |expected| over all f32 outputs;
   infinity when shapes, types or (for other types) elements differ. */
double graph_results_distance(const graph_results *expected,
                              const graph_results *found);

/* A graph of text, its weights and inputs filled from `seed`, and what it
   computes. Close releases all; nothing of the heap may be left then. */
typedef struct graph_trial {
  pph_heap heap;
  pph_graph graph;
  pph_tensor *inputs;
  graph_results expected;
} graph_trial;
void graph_trial_open(graph_trial *trial, const char *text, uint64_t seed);
void graph_trial_close(graph_trial *trial);

/* Number of nodes of a kind. */
uint32_t graph_count(const pph_graph *graph, pph_node_kind kind);

#endif
