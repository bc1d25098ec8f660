/* polyphase info */
#include "model_inputs.h"
#include "pte_file.h"
#include "pte_info.h"
#include "report.h"

static pph_status plan_and_print(const tool_options *options,
                                 const pph_model *model, model_inputs *inputs,
                                 pph_session **session, pph_error *error) {
  pph_status status = model_inputs_load(options, model, inputs, error);
  if (status == PPH_OK)
    status = model_inputs_fill(options, model, inputs, error);
  if (status == PPH_OK)
    status = pph_session_create(model, &options->session, session, error);
  if (status == PPH_OK)
    status = pph_session_prepare(*session, inputs->tensors, inputs->count,
                                 error);
  if (status == PPH_OK)
    report_print_info(model, inputs->tensors, *session, options->json);
  return status;
}

int cmd_info(const tool_options *options) {
  pph_error error = {0};
  if (pte_file_is_container(options->arguments[0]) && !options->plans)
    return pte_info_print(options, &error) == PPH_OK ? EXIT_DONE
                                                     : tool_fail(&error);
  pph_model *model;
  if (tool_load_model(options, options->arguments[0], &model, &error) != PPH_OK)
    return tool_fail(&error);
  model_inputs inputs = {0};
  pph_session *session = NULL;
  pph_status status =
      plan_and_print(options, model, &inputs, &session, &error);
  pph_session_destroy(session);
  model_inputs_clear(&inputs);
  pph_model_destroy(model);
  return status == PPH_OK ? EXIT_DONE : tool_fail(&error);
}
