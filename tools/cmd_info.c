/* polyphase info */
#include "planned_model.h"
#include "pte_file.h"
#include "pte_info.h"
#include "report.h"

int cmd_info(const tool_options *options) {
  pph_error error = {0};
  if (pte_file_is_container(options->arguments[0]) && !options->plans)
    return pte_info_print(options, &error) == PPH_OK ? EXIT_DONE
                                                     : tool_fail(&error);
  planned_model planned;
  pph_status status = planned_model_open(options, &planned, &error);
  if (status == PPH_OK)
    report_print_info(planned.model, planned.inputs.tensors, planned.session,
                      options->json);
  planned_model_close(&planned);
  return status == PPH_OK ? EXIT_DONE : tool_fail(&error);
}
