#include "base/fail.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *pph_status_name(pph_status status) {
  switch (status) {
  case PPH_OK:
    return "ok";
  case PPH_INVALID_ARGUMENT:
    return "invalid argument";
  case PPH_BAD_MODEL:
    return "bad model";
  case PPH_UNSUPPORTED:
    return "unsupported";
  case PPH_LIMIT_EXCEEDED:
    return "limit exceeded";
  case PPH_OUT_OF_MEMORY:
    return "out of memory";
  case PPH_IO_FAILED:
    return "input or output failed";
  }
  return "unknown status";
}

/* A model's names may hold anything; a terminal must not be driven by them. */
static void clean_text(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
      *text = '?';
}

pph_status pph_fail(pph_error *error, pph_status status, const char *where,
                    const char *format, ...) {
  if (!error)
    return status;
  error->status = status;
  snprintf(error->where, sizeof error->where, "%s", where ? where : "");
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  clean_text(error->where);
  clean_text(error->message);
  return status;
}

void pph_error_set_where(pph_error *error, const char *format, ...) {
  if (!error || error->where[0])
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->where, sizeof error->where, format, arguments);
  va_end(arguments);
  clean_text(error->where);
}

pph_status pph_error_at(pph_error *error, const char *where,
                        pph_status status) {
  if (status != PPH_OK)
    pph_error_set_where(error, "%s", where);
  return status;
}

/* The end of a path that is too long says more than its beginning. */
pph_status pph_error_in_file(pph_error *error, const char *path,
                             pph_status status) {
  char inside[sizeof error->where];
  size_t length = strlen(path);
  if (status == PPH_OK || !error || strstr(error->where, path))
    return status;
  snprintf(inside, sizeof inside, "%s", error->where);
  error->where[0] = 0;
  size_t room = sizeof inside - strlen(inside) - sizeof "...: ";
  bool fits = length <= room;
  if (!fits)
    path += length - room;
  pph_error_set_where(error, "%s%s%s%s", fits ? "" : "...", path,
                      inside[0] ? ": " : "", inside);
  return status;
}

pph_status pph_fail_memory(pph_error *error) {
  return pph_fail(error, PPH_OUT_OF_MEMORY, "",
                  "no memory left, or the limit on it is reached "
                  "(pph_limits.heap_bytes)");
}

pph_status pph_check_range(const char *where, const char *name, int64_t value,
                           int64_t low, int64_t high, pph_error *error) {
  if (value >= low && value <= high)
    return PPH_OK;
  if (low == high)
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "%s is %lld, must be %lld", name, (long long)value,
                    (long long)low);
  if (high == INT64_MAX)
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "%s is %lld, must be at least %lld", name,
                    (long long)value, (long long)low);
  return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                  "%s is %lld, must be %lld to %lld", name, (long long)value,
                  (long long)low, (long long)high);
}

pph_status pph_check_multiple(const char *where, const char *name,
                              int64_t value, const char *of, int64_t step,
                              pph_error *error) {
  if (value % step == 0)
    return PPH_OK;
  return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                  "%s is %lld, must be a multiple of %s, %lld", name,
                  (long long)value, of, (long long)step);
}
