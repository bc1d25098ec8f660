/* Inside the command check. */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include "check_report.h"
#include "options.h"

/* Compares every element of `a` with that of `b` by the options' tolerances. */
void check_compare(const tool_options *options, const pph_tensor *a,
                   const pph_tensor *b, check_row *result);

/* Runs every test case of the first argument and compares the outputs with
   those that the file has. The cases of a method run in their order, in one
   session. */
PPH_NODISCARD pph_status check_bundle(const tool_options *options, bool *same,
                                      pph_error *error);

#endif
