/* Where memory comes from, and how much of it may be taken. */
#ifndef POLYPHASE_MEMORY_H
#define POLYPHASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An allocator of the caller's. `allocate` returns a block of `size` bytes
   whose address is a multiple of `alignment` (a power of two), or NULL;
   `release` takes what `allocate` gave, never NULL. Both must be callable from
   any thread. */
typedef struct pph_allocator {
  void *context;
  void *(*allocate)(void *context, size_t alignment, size_t size);
  void (*release)(void *context, void *block);
} pph_allocator;

/* Bounds on what a model or operator may ask for. Fill in by pph_limits_init,
   then change fields: here as wherever a struct has a struct_size, another one
   than init wrote is PPH_INVALID_ARGUMENT. What is beyond a bound gives
   PPH_LIMIT_EXCEEDED, or PPH_OUT_OF_MEMORY for heap_bytes, whose end cannot be
   told from the machine's. */
typedef struct pph_limits {
  size_t struct_size;
  uint64_t file_bytes;   /* largest file read at once; default 4 GiB */
  uint64_t tensor_bytes; /* largest single tensor; default 4 GiB */
  uint64_t heap_bytes;   /* all memory of a model, session or operator, 0: no
                            bound; default 16 GiB */
  uint32_t nodes;        /* nodes of a graph; default 1,000,000 */
  uint32_t nesting;      /* depth of nested messages; default 64 */
} pph_limits;

/* Fills in the defaults. */
void pph_limits_init(pph_limits *limits);

#ifdef __cplusplus
}
#endif

#endif
