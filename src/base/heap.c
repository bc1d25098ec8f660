#include "base/heap.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/checked.h"

/* In front of every block; its size keeps the block aligned. */
typedef struct block_header {
  size_t bytes; /* of the whole allocation, header included */
} block_header;

/* Where weights come from memory, looking up a page's address costs as much as
   reading some of its lines: large blocks ask for large pages, in all but their
   rest, so that they take no more memory. */
enum { LARGE_PAGE = 2 << 20, LARGE_BLOCK = 2 * LARGE_PAGE };

static void *allocate_default(void *context, size_t alignment, size_t size) {
  (void)context;
  void *block = NULL;
  bool large = size >= LARGE_BLOCK && alignment < LARGE_PAGE;
  if (posix_memalign(&block, large ? LARGE_PAGE : alignment, size) != 0)
    return NULL;
#ifdef MADV_HUGEPAGE
  if (large) /* a wish: nothing depends on it */
    (void)madvise(block, size / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#endif
  return block;
}

static void release_default(void *context, void *block) {
  (void)context;
  free(block);
}

void pph_heap_init(pph_heap *heap, const pph_allocator *allocator,
                   uint64_t limit) {
  static const pph_allocator standard = {NULL, allocate_default,
                                         release_default};
  heap->allocator = allocator ? *allocator : standard;
  heap->limit = limit && limit < SIZE_MAX ? (size_t)limit : SIZE_MAX;
  atomic_init(&heap->used, 0);
  atomic_init(&heap->peak, 0);
}

static bool reserve(pph_heap *heap, size_t bytes) {
  size_t used = atomic_load(&heap->used);
  do {
    if (bytes > heap->limit || used > heap->limit - bytes)
      return false;
  } while (!atomic_compare_exchange_weak(&heap->used, &used, used + bytes));
  size_t now = used + bytes;
  size_t peak = atomic_load(&heap->peak);
  while (now > peak && !atomic_compare_exchange_weak(&heap->peak, &peak, now))
    continue;
  return true;
}

void *pph_heap_allocate(pph_heap *heap, size_t count, size_t size) {
  size_t bytes;
  if (!pph_checked_mul(count, size, &bytes) ||
      !pph_checked_add(bytes, PPH_ALIGNMENT, &bytes) ||
      !pph_checked_round_up(bytes, PPH_ALIGNMENT, &bytes))
    return NULL;
  if (!reserve(heap, bytes))
    return NULL;
  char *block = heap->allocator.allocate(heap->allocator.context,
                                         PPH_ALIGNMENT, bytes);
  if (!block) {
    atomic_fetch_sub(&heap->used, bytes);
    return NULL;
  }
  ((block_header *)(void *)block)->bytes = bytes;
  return block + PPH_ALIGNMENT;
}

void *pph_heap_allocate_zeroed(pph_heap *heap, size_t count, size_t size) {
  void *block = pph_heap_allocate(heap, count, size);
  if (block)
    memset(block, 0, count * size);
  return block;
}

void *pph_heap_grow(pph_heap *heap, void *block, size_t old_bytes,
                    size_t count, size_t size) {
  void *grown = pph_heap_allocate(heap, count, size);
  if (grown && block) {
    memcpy(grown, block, old_bytes);
    pph_heap_release(heap, block);
  }
  return grown;
}

void pph_heap_release(pph_heap *heap, void *block) {
  if (!block)
    return;
  char *start = (char *)block - PPH_ALIGNMENT;
  atomic_fetch_sub(&heap->used, ((block_header *)(void *)start)->bytes);
  heap->allocator.release(heap->allocator.context, start);
}

enum { CHUNK_BYTES = 1 << 16, LARGE_BYTES = 1 << 13 };

struct pph_arena_chunk {
  struct pph_arena_chunk *next;
  size_t used, capacity;
};

void pph_arena_init(pph_arena *arena, pph_heap *heap) {
  arena->heap = heap;
  arena->chunks = NULL;
}

static struct pph_arena_chunk *add_chunk(pph_arena *arena, size_t bytes) {
  size_t total;
  if (!pph_checked_add(bytes, PPH_ALIGNMENT, &total))
    return NULL;
  struct pph_arena_chunk *chunk =
      pph_heap_allocate_zeroed(arena->heap, total, 1);
  if (!chunk)
    return NULL;
  chunk->capacity = bytes;
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  return chunk;
}

void *pph_arena_allocate(pph_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (!pph_checked_mul(count, size, &bytes) ||
      !pph_checked_round_up(bytes, 16, &bytes))
    return NULL;
  struct pph_arena_chunk *chunk = arena->chunks;
  if (bytes >= LARGE_BYTES) {
    /* A chunk of its own, linked second, so that the open one stays first. */
    struct pph_arena_chunk *large = add_chunk(arena, bytes);
    if (!large)
      return NULL;
    if (chunk) {
      arena->chunks = chunk;
      large->next = chunk->next;
      chunk->next = large;
    }
    large->used = bytes;
    return (char *)large + PPH_ALIGNMENT;
  }
  size_t align = bytes >= 256 ? PPH_ALIGNMENT : 16;
  size_t at = chunk ? (chunk->used + align - 1) & ~(align - 1) : 0;
  if (!chunk || at > chunk->capacity || bytes > chunk->capacity - at) {
    chunk = add_chunk(arena, CHUNK_BYTES);
    if (!chunk)
      return NULL;
    at = 0;
  }
  chunk->used = at + bytes;
  return (char *)chunk + PPH_ALIGNMENT + at;
}

char *pph_arena_copy_text(pph_arena *arena, const char *text, size_t length) {
  if (length == SIZE_MAX)
    return NULL;
  char *copy = pph_arena_allocate(arena, length + 1, 1);
  if (copy)
    memcpy(copy, text, length);
  return copy;
}

void pph_arena_clear(pph_arena *arena) {
  while (arena->chunks) {
    struct pph_arena_chunk *chunk = arena->chunks;
    arena->chunks = chunk->next;
    pph_heap_release(arena->heap, chunk);
  }
}
