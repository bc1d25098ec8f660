#include "tuning.h"

#include <stdio.h>
#include <sys/stat.h>

#include "output_file.h"

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

/* Why is asked after the fact: what cannot be written is no error of a run. */
static void tell_unwritten(const char *path) {
  pph_error error = {0};
  struct stat facts;
  const char *why = "its place cannot be written";
  if (!path)
    why = "$XDG_CACHE_HOME or ~/.cache must be a folder to write to";
  else if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
    why = "is a folder, must be a file";
  else if (output_file_check(path, &error) != PPH_OK)
    why = error.message;
  else if (stat(path, &facts) == 0 && facts.st_size > 0)
    why = "holds something else than choices, and stays as it is";
  fprintf(stderr, "tune: the choices are not kept: %s%s%s\n",
          path ? path : "", path ? ": " : "", why);
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
    tell_unwritten(path);
}
