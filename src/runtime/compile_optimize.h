/* The last step of compile: its program as `polyphase optimize` leaves one. */
#ifndef PPH_RUNTIME_COMPILE_OPTIMIZE_H
#define PPH_RUNTIME_COMPILE_OPTIMIZE_H

#include "runtime/compile.h"

/* Rewrites the program in `files`, blocks of `heap`, as pph_pte_optimize does,
   which then finds nothing left to do; on failure it stays as it is. */
PPH_NODISCARD pph_status pph_compile_optimize(const pph_compile_options *how,
                                              pph_heap *heap,
                                              pph_pte_files *files,
                                              pph_error *error);

#endif
