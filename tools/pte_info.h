/* polyphase info for containers of ExecuTorch. */
#ifndef TOOLS_PTE_INFO_H
#define TOOLS_PTE_INFO_H

#include "options.h"
#include "pte/container.h"

/* Opens the file and prints what is in it; of its methods that of --method. */
pph_status pte_info_print(const tool_options *options, pph_error *error);

#endif
