#include "runtime/input_shapes.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

static bool is_open(const pph_value *value) {
  return !value->has_rank || !pph_shape_known(&value->shape);
}

pph_status pph_blame_inputs(const pph_graph *model,
                            const pph_shape *(*shape)(const void *context,
                                                      uint32_t input),
                            const void *context, pph_status status,
                            pph_error *error) {
  pph_error found;
  char names[224] = "", text[128];
  size_t at = 0;
  if (status != PPH_BAD_MODEL && status != PPH_LIMIT_EXCEEDED)
    return status;
  uint32_t count = 0;
  for (uint32_t i = 0; i < model->input_count; i++) {
    const pph_value *value = pph_graph_value(model, model->inputs[i]);
    if (!is_open(value))
      continue;
    if (at < sizeof names)
      at += (size_t)snprintf(
          names + at, sizeof names - at, "%s\"%.60s\" of shape %s",
          count ? ", " : "", value->name,
          pph_shape_text(shape(context, i), text, sizeof text));
    count++;
  }
  if (!count)
    return status;
  if (status == PPH_BAD_MODEL)
    status = PPH_INVALID_ARGUMENT;
  if (!error)
    return status;
  found = *error;
  return pph_fail(error, status, found.where, "input%s %s do%s not fit: %s",
                  count > 1 ? "s" : "", names, count > 1 ? "" : "es",
                  found.message);
}
