/* THE list of backends. */
#include <string.h>

#include "backend/backend.h"

static const pph_backend *const list[] = {
    &pph_backend_xnnpack, &pph_backend_native, &pph_backend_reference};

const pph_backend *const *pph_backend_list(size_t *count) {
  *count = sizeof list / sizeof *list;
  return list;
}

const pph_backend *pph_backend_find(const char *name) {
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (strcmp(list[i]->name, name) == 0)
      return list[i];
  return NULL;
}
