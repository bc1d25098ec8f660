#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>

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

pph_status pph_fail_memory(pph_error *error) {
  return pph_fail(error, PPH_OUT_OF_MEMORY, "",
                  "no memory left, or the limit on it is reached (heap_bytes "
                  "of pph_limits, --max-memory)");
}
