/* Blocks of memory under a cap, and the arena that graphs live in. All memory
   of the library comes through here. */
#ifndef PPH_BASE_HEAP_H
#define PPH_BASE_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "polyphase/memory.h"

enum { PPH_ALIGNMENT = 64 };

/* Counts what is taken from an allocator and refuses beyond `limit`. Callable
   from several threads. Must outlive its blocks. */
typedef struct pph_heap {
  pph_allocator allocator;
  size_t limit;
  atomic_size_t used;
  atomic_size_t peak;
} pph_heap;

/* `allocator` NULL takes the C library's; limit 0 means no limit. */
void pph_heap_init(pph_heap *heap, const pph_allocator *allocator,
                   uint64_t limit);

/* count * size bytes, not cleared, aligned to PPH_ALIGNMENT. NULL when the
   product overflows, the limit is reached or the allocator has none. A product
   of 0 gives a valid pointer. */
void *pph_heap_allocate(pph_heap *heap, size_t count, size_t size);

/* As pph_heap_allocate, filled with zeros. */
void *pph_heap_allocate_zeroed(pph_heap *heap, size_t count, size_t size);

/* Grows a block to count * size bytes, keeping the first `old_bytes`. NULL on
   failure, and then `block` is still valid. `block` may be NULL. */
void *pph_heap_grow(pph_heap *heap, void *block, size_t old_bytes,
                    size_t count, size_t size);

/* Gives a block back; NULL is allowed. */
void pph_heap_release(pph_heap *heap, void *block);

/* An arena: many small blocks, one release. */
typedef struct pph_arena {
  pph_heap *heap;
  struct pph_arena_chunk *chunks;
} pph_arena;

void pph_arena_init(pph_arena *arena, pph_heap *heap);

/* count * size zeroed bytes, aligned to 16 (to 64 from 256 bytes on). NULL as
   pph_heap_allocate. */
void *pph_arena_allocate(pph_arena *arena, size_t count, size_t size);

/* A copy of `length` bytes of text plus a final 0; NULL when out of memory. */
char *pph_arena_copy_text(pph_arena *arena, const char *text, size_t length);

/* Releases everything; the arena may be used again. */
void pph_arena_clear(pph_arena *arena);

#endif
