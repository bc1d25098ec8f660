/* What both XNNPACK APIs share. */
#include <pthread.h>
#include <xnnpack.h>

#include "backend/xnnpack_api.h"
#include "base/fail.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum xnn_status start_status;

static void start(void) { start_status = xnn_initialize(NULL); }

pph_status pph_xnn_start(pph_error *error) {
  pthread_once(&once, start);
  if (start_status == xnn_status_success)
    return PPH_OK;
  if (start_status == xnn_status_out_of_memory)
    return pph_fail_memory(error);
  return pph_fail(error, PPH_UNSUPPORTED, NULL,
                  "XNNPACK does not run on this processor");
}

static const char *name_status(int status) {
  static const char *const names[] = {
      [xnn_status_success] = "success",
      [xnn_status_uninitialized] = "uninitialized",
      [xnn_status_invalid_parameter] = "invalid parameter",
      [xnn_status_invalid_state] = "invalid state",
      [xnn_status_unsupported_parameter] = "unsupported parameter",
      [xnn_status_unsupported_hardware] = "unsupported hardware",
  };
  size_t count = sizeof names / sizeof names[0];
  return status >= 0 && (size_t)status < count ? names[status] : "failure";
}

static pph_status translate(int status, const char *what, pph_error *error) {
  if (status == xnn_status_success)
    return PPH_OK;
  if (status == xnn_status_out_of_memory)
    return pph_fail_memory(error);
  return pph_fail(error, PPH_UNSUPPORTED, NULL, "XNNPACK refused %s: %s", what,
                  name_status(status));
}

pph_status pph_xnn_finish(pph_xnn_op *op, int status, const char *what,
                          pph_error *error) {
#if !PPH_XNNPACK_RESHAPE
  /* Setup allocates what depends on shapes, so it is done once ahead of the
     runs. XNNPACK keeps addresses relative to these and tells its zero buffer
     from them by its address; no block lies a quarter up the address space. */
  if (status == xnn_status_success) {
    uintptr_t nowhere = (uintptr_t)1 << (sizeof(uintptr_t) * 8 - 2);
    op->last = (pph_xnn_pointers){(const void *)nowhere, (const void *)nowhere,
                                  (void *)nowhere, NULL};
    status = op->setup(op, &op->last);
  }
#endif
  if (status != xnn_status_success)
    pph_xnn_delete(op);
  return translate(status, what, error);
}

pph_status pph_xnn_run(pph_xnn_op *op, const pph_xnn_pointers *pointers,
                       pph_error *error) {
  if (op->last.a != pointers->a || op->last.b != pointers->b ||
      op->last.output != pointers->output ||
      op->last.workspace != pointers->workspace) {
    op->last = (pph_xnn_pointers){0}; /* should setup fail */
    PPH_TRY(translate(op->setup(op, pointers), "the pointers", error));
    op->last = *pointers;
  }
  return translate(xnn_run_operator(op->handle, op->pool), "to run", error);
}

void pph_xnn_delete(pph_xnn_op *op) {
  if (op->handle)
    xnn_delete_operator(op->handle);
  op->handle = NULL;
}
