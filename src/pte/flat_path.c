#include "pte/flat_path.h"

#include <inttypes.h>
#include <stdio.h>

const char *pph_flat_path_text(const pph_flat_path *path, char *text,
                               size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < path->depth && used < size; i++) {
    const pph_flat_step *s = &path->steps[i];
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "." : "",
                             s->name);
    if (s->index >= 0 && used < size)
      used += (size_t)snprintf(text + used, size - used, "[%" PRId64 "]",
                               s->index);
  }
  return text;
}
