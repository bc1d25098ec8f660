#include "base/public_struct.h"

#include "base/fail.h"

pph_status pph_check_struct_size(const char *name, size_t found, size_t legal,
                                 pph_error *error) {
  if (found == legal)
    return PPH_OK;
  return pph_fail(error, PPH_INVALID_ARGUMENT, name,
                  "struct_size is %zu, must be %zu: call %s_init first", found,
                  legal, name);
}

pph_status pph_limits_take(const pph_limits *given, const pph_limits *standard,
                           pph_limits *limits, pph_error *error) {
  pph_limits_init(limits);
  if (given)
    PPH_TRY(pph_check_struct_size("pph_limits", given->struct_size,
                                  sizeof *given, error));
  else
    given = standard;
  if (given)
    *limits = *given;
  return PPH_OK;
}
