/* What this processor can do, and what the caller lets us use of it. */
#ifndef PPH_BASE_CPU_H
#define PPH_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "polyphase/operator.h"

/* Whether this processor runs that level's instructions (BEST and SCALAR:
   always). */
bool pph_cpu_has(pph_cpu cpu);

/* The level to use when the caller asks for `wanted`: that one, or the best
   below it that the processor has; never BEST. */
pph_cpu pph_cpu_choose(pph_cpu wanted);

/* Passes of one of the level's vectors through an arithmetic unit: 2 for
   AVX-512 where the units are 256 bits wide (AMD's Zen 4), else 1. */
uint32_t pph_cpu_passes(pph_cpu cpu);

/* "scalar", "avx2", "avx512", "neon"; "best". */
const char *pph_cpu_name(pph_cpu cpu);

/* False for an unknown text. */
bool pph_cpu_parse(const char *text, pph_cpu *cpu);

/* What the maker calls the processor, with the number that tells models apart
   (CPUID's signature or MIDR), cut to the room. */
void pph_cpu_describe(char *text, size_t size);

/* Bytes of one core's level-2 cache and of the last-level cache; guesses of
   1 MiB and 32 MiB where the processor does not tell. */
size_t pph_cpu_cache2(void);
size_t pph_cpu_cache_last(void);

enum { PPH_MAX_THREADS = 256 };

/* How many threads to run when a caller asks for `wanted` (0: for as many as
   are of use): at most one for each processor that this thread may use. More of
   them would wait for one another at the end of every operator. */
uint32_t pph_cpu_threads(uint32_t wanted);

#endif
