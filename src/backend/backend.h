/* Backends turn nodes into steps. Here graph and kernels meet. A backend is a
   row in backend_list.c; the runtime asks rows in the engine's order which one
   takes a node. */
#ifndef PPH_BACKEND_BACKEND_H
#define PPH_BACKEND_BACKEND_H

#include <pthreadpool.h>

#include "graph/layout.h"
#include "polyphase/operator.h"

/* What steps of one session share. */
typedef struct pph_backend_context {
  pph_heap *heap;
  pthreadpool_t pool; /* NULL: one thread */
  pph_accuracy accuracy;
  pph_cpu cpu;
  /* As in pph_session_options; the runtime calls it, backends do not. */
  void (*progress)(void *context, uint32_t done, uint32_t steps);
  void *progress_context;
} pph_backend_context;

/* A prepared node. `state` belongs to the backend. */
typedef struct pph_step {
  const struct pph_backend *backend;
  const pph_graph *graph;
  const pph_node *node;
  const char *wanted;    /* an algorithm that prepare is to take, where the
                            backend has several; NULL: as it likes */
  const char *algorithm; /* static or arena: "xnnpack.convolution", ... */
  void *state;
  /* Results of an input aliasing: output 0 is the same memory as this input
     slot; UINT32_MAX if not. The runtime then shares the block and calls no
     run. Decided in prepare. */
  uint32_t alias_input;
  size_t workspace; /* bytes of scratch wanted in run, 64-byte aligned */
} pph_step;

/* Pointers of one run. For each node input (NULL when omitted; constants point
   to their data) and output. Memory lies in the value's layout. Every block,
   inputs and constants included, is readable 16 bytes past its end. */
typedef struct pph_run_pointers {
  const void *const *inputs;
  void *const *outputs;
  void *workspace;
} pph_run_pointers;

typedef struct pph_backend {
  const char *name; /* "native", "xnnpack", "reference" */
  /* Whether the backend runs this node with the layouts its values have. */
  bool (*supports)(const pph_graph *graph, const pph_node *node);
  /* Whether it expects to run a node that it supports faster than the others:
     what the auto engine asks first. NULL: never. */
  bool (*prefers)(const pph_graph *graph, const pph_node *node);
  /* Packs constants, fills step->state/algorithm/alias_input/workspace. On
     failure nothing is left behind. */
  pph_status (*prepare)(pph_backend_context *context, pph_step *step,
                        pph_error *error);
  /* Runs once; no allocation. */
  pph_status (*run)(pph_backend_context *context, const pph_step *step,
                    const pph_run_pointers *pointers, pph_error *error);
  /* Frees step->state. */
  void (*release)(pph_backend_context *context, pph_step *step);
} pph_backend;

/* Rows; `find` by name, NULL if unknown. */
extern const pph_backend pph_backend_native;
extern const pph_backend pph_backend_xnnpack;
extern const pph_backend pph_backend_reference;
const pph_backend *const *pph_backend_list(size_t *count);
const pph_backend *pph_backend_find(const char *name);

#endif
