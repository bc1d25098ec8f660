/* Reporting failure: one call fills the pph_error and returns the status. */
#ifndef PPH_BASE_FAIL_H
#define PPH_BASE_FAIL_H

#include <stdint.h>

#include "polyphase/status.h"

/* Writes status, place and message to *error (which may be NULL) and returns
   `status`. `where` may be NULL or "" when the caller adds the place later.
   Texts that do not fit are cut. */
pph_status pph_fail(pph_error *error, pph_status status, const char *where,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Fills `where` if it is still empty; used by callers who know the place. */
void pph_error_set_where(pph_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Both give `status` back. What failed without a place gets one: the public
   function that was called. */
pph_status pph_error_at(pph_error *error, const char *where,
                        pph_status status);
/* The file that the place lies in is put before it, unless it is there. */
pph_status pph_error_in_file(pph_error *error, const char *path,
                             pph_status status);

/* Numbers that callers give, low <= value <= high (INT64_MAX: no bound) and
   multiples of `step`, which is what `of` says. */
PPH_NODISCARD pph_status pph_check_range(const char *where, const char *name,
                                         int64_t value, int64_t low,
                                         int64_t high, pph_error *error);
PPH_NODISCARD pph_status pph_check_multiple(const char *where,
                                            const char *name, int64_t value,
                                            const char *of, int64_t step,
                                            pph_error *error);

/* pph_fail for an allocation that gave nothing. */
pph_status pph_fail_memory(pph_error *error);

/* Fails, with the argument's name, where it is NULL. */
#define PPH_TRY_POINTER(where, argument, error)                                \
  PPH_TRY((argument) ? PPH_OK                                                  \
                     : pph_fail(error, PPH_INVALID_ARGUMENT, where,            \
                                #argument " must not be NULL"))

/* Returns the status of `expression` from the enclosing function unless it is
   PPH_OK. */
#define PPH_TRY(expression)                                                    \
  do {                                                                         \
    pph_status pph_try_status = (expression);                                  \
    if (pph_try_status != PPH_OK)                                              \
      return pph_try_status;                                                   \
  } while (0)

#endif
