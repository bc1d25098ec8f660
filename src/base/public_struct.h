/* Structs of the public API, as callers hand them over. */
#ifndef PPH_BASE_PUBLIC_STRUCT_H
#define PPH_BASE_PUBLIC_STRUCT_H

#include "polyphase/memory.h"
#include "polyphase/status.h"

/* Refuses a struct whose struct_size is not `legal`: no NAME_init has filled it
   in, or another version's. Until then nothing behind it may be read, for the
   struct may end there. */
PPH_NODISCARD pph_status pph_check_struct_size(const char *name, size_t found,
                                               size_t legal, pph_error *error);

/* Copies `given`, checked so, or what the caller has in its stead where it is
   NULL: `standard`, or (NULL as well) the defaults. */
PPH_NODISCARD pph_status pph_limits_take(const pph_limits *given,
                                         const pph_limits *standard,
                                         pph_limits *limits, pph_error *error);

#endif
