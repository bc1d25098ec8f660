/* --steps of run and check: a model with state, fed a stream. */
#ifndef TOOLS_RUN_STEPS_H
#define TOOLS_RUN_STEPS_H

#include "model_inputs.h"

/* What the --input files give, in their order. */
typedef struct step_inputs {
  pph_tensor files[MAX_PAIRS]; /* data by malloc */
  uint32_t inputs[MAX_PAIRS];  /* which input each is for */
  uint32_t file_count;
  model_inputs made; /* where there is no file: zeros to begin with, or random
                        values */
  uint32_t *feeds;   /* per input: the output whose last value it takes, or
                        STEP_NO_FEED; malloc */
  int64_t steps;
  uint32_t sound_rate; /* of the last sound; 0: none */
} step_inputs;

#define STEP_NO_FEED UINT32_MAX

/* Reads the files and counts the steps: an input has one per file, or as many
   as the first dimension of a file that has one dimension more than the input
   says. Inputs have equally many steps, or one that serves all; what --feed
   names has at most one, and zeros without a file. `fill`: others without a
   file get one step as model_inputs_fill says, else PPH_INVALID_ARGUMENT. Tells
   on stderr of an input that --feed seems to be for. Clear also after
   failure. */
PPH_NODISCARD pph_status step_inputs_load(const tool_options *options,
                                          const pph_model *model, bool fill,
                                          step_inputs *all, pph_error *error);
void step_inputs_clear(step_inputs *all);

/* Runs all steps, when what is fed has the type and shape of the input that
   takes it, else PPH_INVALID_ARGUMENT before the first one; each of `outputs`
   gets the steps as its first dimension, and data by malloc, which the caller
   frees also after failure. */
PPH_NODISCARD pph_status step_inputs_run(const step_inputs *all,
                                         const pph_model *model,
                                         pph_session *session,
                                         pph_tensor *outputs,
                                         pph_error *error);

#endif
