#include "tuning.h"

#include <stdio.h>

void tuning_show(void *bar, uint32_t done, uint32_t nodes) {
  progress *shown = bar;
  const char *label = shown->label;
  shown->label = "tuning";
  shown->total = nodes;
  progress_update(shown, done);
  shown->label = label;
  if (done < nodes)
    return;
  progress_end(shown);
  progress_begin(shown, label, 0);
}

void tuning_report(const tool_options *options, const pph_session *session) {
  pph_plan_info plan = pph_session_plan(session);
  const char *path = options->session.tune_file;
  if (!options->session.tune)
    return;
  if (options->session.engine == PPH_ENGINE_REFERENCE ||
      options->session.engine == PPH_ENGINE_XNNPACK) {
    fprintf(stderr, "tune: nothing to choose: this --engine has one way to run "
                    "each node\n");
    return;
  }
  fprintf(stderr,
          "tune: %u convolution%s measured, %u equal to them, %u remembered\n",
          plan.measured, plan.measured == 1 ? "" : "s", plan.equal,
          plan.remembered);
  if (plan.unwritten)
    fprintf(stderr, "tune: %s cannot be written: the choices are not kept\n",
            path ? path : "the usual file");
}
