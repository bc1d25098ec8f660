/* What a pph_model and a pph_session are inside. */
#ifndef PPH_RUNTIME_LOADED_MODEL_H
#define PPH_RUNTIME_LOADED_MODEL_H

#include "polyphase/session.h"
#include "pte/container.h"
#include "runtime/program.h"

struct pph_model {
  pph_heap heap;
  pph_limits limits;
  void *bytes; /* the file; the graph may point into it */
  size_t length;
  pph_graph graph;
};

/* Reads a whole regular file into a heap block (`limits->file_bytes` at most);
   the caller releases it. */
PPH_NODISCARD pph_status pph_file_read(const char *path,
                                       const pph_limits *limits,
                                       pph_heap *heap, void **bytes,
                                       size_t *length, pph_error *error);

/* Fills model->graph from model->bytes by the importer that knows the format.
   `folder` as for pph_model_load_bytes; `options` may be NULL. */
PPH_NODISCARD pph_status
pph_loaded_model_import(pph_model *model, const char *folder,
                        const pph_model_options *options, pph_error *error);

/* A program has one graph per method. `name` NULL: "forward", else the only
   one. PPH_INVALID_ARGUMENT lists the names that there are. */
PPH_NODISCARD pph_status pph_loaded_model_find_method(
    const pph_pte *pte, const char *name, const pph_pte_plan **plan,
    pph_error *error);

struct pph_session {
  const pph_model *model;
  pph_heap heap;
  pph_backend_context context;
  pph_program_options options;
  pph_program **plans; /* most recently used first */
  uint32_t plan_count, plan_capacity;
  bool *is_shape_input; /* per model input: its values decide shapes */
  void *block; /* what all plans run in; as large as the largest needs */
  size_t block_bytes;
  pph_program *current;
  /* The graph's, state behind the caller's; state's data lies in `state`. */
  pph_tensor *inputs, *outputs;
  char *state;
};

/* Checks an input's type and shape against the model's declaration; its data
   is not looked at. (plan_cache.c) */
PPH_NODISCARD pph_status pph_input_check(const pph_value *declared,
                                         const pph_tensor *tensor,
                                         pph_error *error);

/* Checks inputs against the model's declarations and makes the plan for their
   shapes current. */
PPH_NODISCARD pph_status pph_session_find_plan(pph_session *session,
                                               const pph_tensor *inputs,
                                               pph_error *error);

/* Which inputs' values decide shapes; `is_shape_input` has input_count
   elements. (shape_inputs.c) */
PPH_NODISCARD pph_status pph_session_find_shape_inputs(const pph_graph *graph,
                                                       pph_heap *heap,
                                                       bool *is_shape_input,
                                                       pph_error *error);

/* State: allocates, with its first contents; puts those back; releases.
   (session_state.c) */
PPH_NODISCARD pph_status pph_session_open_state(pph_session *session,
                                                pph_error *error);
void pph_session_reset_state(pph_session *session);
void pph_session_close_state(pph_session *session);
/* All inputs of the graph, from those that the caller gives. */
const pph_tensor *pph_session_add_state(pph_session *session,
                                        const pph_tensor *inputs);
/* Takes what a run left in session->outputs for the next one. PPH_BAD_MODEL,
   and nothing taken, when a state would change type or shape. */
PPH_NODISCARD pph_status pph_session_keep_state(pph_session *session,
                                                pph_error *error);

/* Grows the block for the current plan. */
PPH_NODISCARD pph_status pph_session_reserve_block(pph_session *session,
                                                   pph_error *error);

#endif
