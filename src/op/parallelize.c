#include <pthreadpool.h>
#include <stdatomic.h>

#include "op/algo.h"

/* Workers draw blocks from one counter, so a worker's number, unlike a
   thread's, is known to the block. */
typedef struct shared_work {
  atomic_size_t next;
  size_t blocks;
  void (*body)(void *context, uint32_t worker, size_t block);
  void *context;
} shared_work;

static void draw_blocks(void *argument, size_t worker) {
  shared_work *work = argument;
  size_t block;
  while ((block = atomic_fetch_add(&work->next, 1)) < work->blocks)
    work->body(work->context, (uint32_t)worker, block);
}

void pph_algo_parallelize(pph_thread_pool *pool, uint32_t threads,
                          size_t blocks,
                          void (*body)(void *context, uint32_t worker,
                                       size_t block),
                          void *context) {
  size_t workers = pool ? pthreadpool_get_threads_count(pool) : 1;
  workers = workers < threads ? workers : threads;
  workers = workers < blocks ? workers : blocks;
  shared_work work;
  work.blocks = blocks;
  work.body = body;
  work.context = context;
  /* The pool orders what is written before and after the run, but unseen by a
     thread sanitizer. Through the counter it is seen: stored last, loaded
     first. */
  atomic_store(&work.next, 0);
  /* Trained weights hold numbers so small that their sums are denormal, which
     processors add a hundred times slower: they count as 0, as in XNNPACK. */
  pthreadpool_parallelize_1d(pool, draw_blocks, &work,
                             workers > 1 ? workers : 1,
                             PTHREADPOOL_FLAG_DISABLE_DENORMALS);
  (void)atomic_load(&work.next);
}
