/* polyphase info for containers of ExecuTorch. */
#ifndef TOOLS_PTE_INFO_H
#define TOOLS_PTE_INFO_H

#include "options.h"
#include "pte/container.h"

/* Whether the file is one, by its first bytes. */
bool pte_info_is_container(const char *path);

/* Opens the file and prints what is in it. */
pph_status pte_info_print(const tool_options *options, pph_error *error);

#endif
