#include "guarded.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test_support.h"

enum { FILL = 0xff }; /* floats of it are not numbers */

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Pages for `bytes`, at least one, with one more on either side; the one after
   is a guard. Returns the first of them, or NULL. */
static char *map_pages(size_t bytes, size_t *inner) {
  size_t page = page_size();
  *inner = (bytes + page - 1) / page * page;
  *inner = *inner ? *inner : page;
  char *map = mmap(NULL, *inner + 2 * page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    return NULL;
  if (mprotect(map + page + *inner, page, PROT_NONE) == 0)
    return map + page;
  munmap(map, *inner + 2 * page);
  return NULL;
}

guarded guarded_make(size_t count, guarded_edge edge) {
  guarded memory = {.count = count};
  size_t bytes = count * sizeof(float), page = page_size();
  memory.pages = map_pages(bytes, &memory.bytes);
  assert_non_null(memory.pages);
  assert_int_equal(mprotect(memory.pages - page, page, PROT_NONE), 0);
  memset(memory.pages, FILL, memory.bytes);
  size_t before = edge == GUARDED_END ? memory.bytes - bytes : 0;
  memory.data = (float *)(void *)(memory.pages + before);
  return memory;
}

bool guarded_intact(const guarded *memory) {
  const char *begin = (const char *)memory->data;
  const char *end = (const char *)(memory->data + memory->count);
  const char *all = memory->pages + memory->bytes;
  for (const char *at = memory->pages; at < all; at++)
    if ((at < begin || at >= end) && *at != (char)FILL)
      return false;
  return true;
}

void guarded_drop(guarded *memory) {
  size_t page = page_size();
  if (memory->pages)
    munmap(memory->pages - page, memory->bytes + 2 * page);
  *memory = (guarded){0};
}

/* The page before a block's pages holds their size. A heap's blocks are never
   empty. */
static void *allocate(void *context, size_t alignment, size_t size) {
  size_t inner, used = (size + alignment - 1) / alignment * alignment;
  char *pages = map_pages(used, &inner);
  if (!pages)
    return NULL;
  *(size_t *)(void *)(pages - page_size()) = inner;
  return pages + (inner - used);
}

static void release(void *context, void *block) {
  size_t page = page_size();
  char *at = block;
  char *header = at - (uintptr_t)at % page - page;
  munmap(header, *(size_t *)(void *)header + 2 * page);
}

pph_allocator guarded_allocator(void) {
  return (pph_allocator){NULL, allocate, release};
}
