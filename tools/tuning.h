/* --tune of run, check and bench: its bar, and what it says. */
#ifndef TOOLS_TUNING_H
#define TOOLS_TUNING_H

#include "options.h"
#include "progress.h"

/* For pph_session_options.tune_progress, whose context is a bar that has begun:
   shows "tuning" there, and begins it anew behind the last node. */
void tuning_show(void *bar, uint32_t done, uint32_t nodes);

/* One line to stderr about the session's plan, and why choices were not kept;
   nothing without --tune. */
void tuning_report(const tool_options *options, const pph_session *session);

#endif
