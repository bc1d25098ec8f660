/* The files that a command reads, which it never writes over. */
#ifndef TOOLS_READ_FILES_H
#define TOOLS_READ_FILES_H

#include "options.h"

/* PPH_INVALID_ARGUMENT when writing `path` would replace a file that the
   command line names to be read or, with `model` not NULL, one that the first
   argument keeps constants in. A NULL path is no file. */
PPH_NODISCARD pph_status read_files_spare(const tool_options *options,
                                          const pph_model *model,
                                          const char *path, pph_error *error);

#endif
