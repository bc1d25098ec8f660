/* A program: a graph specialised to input shapes, lowered to steps, with every
   value's place in one block of memory. */
#ifndef PPH_RUNTIME_PROGRAM_H
#define PPH_RUNTIME_PROGRAM_H

#include "backend/backend.h"
#include "pass/pass.h"
#include "polyphase/session.h"

/* Where a value is during a run. */
typedef enum pph_place {
  PPH_PLACE_NOWHERE,  /* not used */
  PPH_PLACE_CONSTANT, /* its own data */
  PPH_PLACE_BLOCK     /* at `offset` of the session's block */
} pph_place;

typedef struct pph_slot {
  pph_place place;
  size_t offset;
  pph_id root; /* the value whose memory this one shares (itself if none) */
} pph_slot;

typedef struct pph_program {
  pph_heap *heap;
  pph_graph graph;
  const void **shape_values; /* per graph input: the values it was made for,
                                where shapes depend on them, else NULL */
  pph_step *steps;
  uint32_t step_count;
  double *microseconds; /* per step, of the last run */
  pph_slot *slots;      /* per value */
  size_t block_bytes;
  size_t workspace_offset;
  uint32_t transposes;
  uint32_t measured, equal, remembered, unwritten; /* as in pph_plan_info */
  /* Pointers of all steps, one array each step's slice; valid for `block`. */
  const void **inputs;
  void **outputs;
  uint32_t *first_input, *first_output; /* per step, into the arrays */
  void *block; /* what the pointers were made for; NULL: none yet */
} pph_program;

typedef struct pph_program_options {
  pph_engine engine;
  /* Per graph input: its values become constants of the program, because
     shapes depend on them. NULL: none. */
  const bool *is_shape_input;
  struct pph_tuner *tuner; /* NULL: costs alone decide */
  pph_pass_options passes;
} pph_program_options;

/* Copies `model`, gives its inputs the shapes of `inputs`, runs the passes,
   lowers and plans. On failure nothing is left. `model` must outlive the
   program. */
PPH_NODISCARD pph_status pph_program_create(
    const pph_graph *model, const pph_tensor *inputs,
    const pph_program_options *options, pph_backend_context *context,
    pph_program **program, pph_error *error);
void pph_program_destroy(pph_program *program, pph_backend_context *context);

/* Steps from nodes: asks the engine's backends in order. (lower.c) */
PPH_NODISCARD pph_status pph_program_lower(pph_program *program,
                                           const pph_program_options *options,
                                           pph_backend_context *context,
                                           pph_error *error);

/* Places values in the block by their lifetimes. (memplan.c) */
PPH_NODISCARD pph_status pph_program_plan_memory(pph_program *program,
                                                 pph_error *error);

/* Runs all steps in `block` (program->block_bytes, 64-byte aligned) after
   copying the inputs in. `outputs` get pointers into the block or to constants.
   No allocation by us. (execute.c) */
PPH_NODISCARD pph_status pph_program_run(pph_program *program,
                                         pph_backend_context *context,
                                         const pph_tensor *inputs, void *block,
                                         pph_tensor *outputs,
                                         pph_error *error);

/* Microseconds of a monotonic clock. (execute.c) */
double pph_program_now(void);

/* 2 * multiply-adds of a convolution-like node, else 0. */
double pph_program_flops(const pph_graph *graph, const pph_node *node);

#endif
