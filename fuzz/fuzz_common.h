/* What the fuzz targets share. */
#ifndef FUZZ_COMMON_H
#define FUZZ_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "polyphase/memory.h"

/* Tight limits, so that a run is short and an allocation beyond them shows. */
pph_limits fuzz_limits(void);

/* libFuzzer's entry; every target defines it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
