/* The thread pool of polyphase/operator.h */
#include <pthreadpool.h>

#include "base/cpu.h"
#include "base/fail.h"
#include "polyphase/operator.h"

pph_status pph_thread_pool_create(uint32_t threads, pph_thread_pool **pool,
                                  pph_error *error) {
  const char *where = "pph_thread_pool_create";
  PPH_TRY_POINTER(where, pool, error);
  *pool = NULL;
  PPH_TRY(
      pph_check_range(where, "threads", threads, 0, PPH_MAX_THREADS, error));
  threads = pph_cpu_threads(threads);
  *pool = pthreadpool_create(threads);
  if (!*pool)
    return pph_fail(error, PPH_OUT_OF_MEMORY, where,
                    "the %u threads could not be started", threads);
  return PPH_OK;
}

void pph_thread_pool_destroy(pph_thread_pool *pool) {
  if (pool)
    pthreadpool_destroy(pool);
}
