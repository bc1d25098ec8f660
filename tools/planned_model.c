#include "planned_model.h"

#include "base/fail.h"

pph_status planned_model_open(const tool_options *options,
                              planned_model *planned, pph_error *error) {
  *planned = (planned_model){.model = NULL};
  PPH_TRY(
      tool_load_model(options, options->arguments[0], &planned->model, error));
  PPH_TRY(model_inputs_load(options, planned->model, &planned->inputs, error));
  PPH_TRY(model_inputs_fill(options, planned->model, &planned->inputs, error));
  PPH_TRY(pph_session_create(planned->model, &options->session,
                             &planned->session, error));
  return pph_session_prepare(planned->session, planned->inputs.tensors,
                             planned->inputs.count, error);
}

void planned_model_close(planned_model *planned) {
  pph_session_destroy(planned->session);
  model_inputs_clear(&planned->inputs);
  pph_model_destroy(planned->model);
  *planned = (planned_model){.model = NULL};
}
