/* A model with a session whose plan is made: what info tells of. */
#ifndef TOOLS_PLANNED_MODEL_H
#define TOOLS_PLANNED_MODEL_H

#include "model_inputs.h"

typedef struct planned_model {
  pph_model *model;
  model_inputs inputs; /* what the plan is made for */
  pph_session *session;
} planned_model;

/* Loads the first argument, and plans for the options' inputs and shapes. Close
   also after failure. */
PPH_NODISCARD pph_status planned_model_open(const tool_options *options,
                                            planned_model *planned,
                                            pph_error *error);
void planned_model_close(planned_model *planned);

#endif
