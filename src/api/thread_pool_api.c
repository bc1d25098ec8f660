/* The thread pool of polyphase/operator.h */
#include <pthreadpool.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "polyphase/operator.h"

pph_status pph_thread_pool_create(uint32_t threads, pph_thread_pool **pool,
                                  pph_error *error) {
  if (!pool || threads > PPH_MAX_THREADS)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_thread_pool_create",
                    "threads is %u, must be 0 to %d, and pool not NULL",
                    threads, PPH_MAX_THREADS);
  threads = pph_cpu_threads(threads);
  *pool = pthreadpool_create(threads);
  if (!*pool)
    return pph_fail(error, PPH_OUT_OF_MEMORY, "",
                    "the %u threads could not be started", threads);
  return PPH_OK;
}

void pph_thread_pool_destroy(pph_thread_pool *pool) {
  if (pool)
    pthreadpool_destroy(pool);
}
