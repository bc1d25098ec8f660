/* Pad. */
#include <string.h>

#include "graph/eval_rules.h"

/* Where output element i of an axis comes from; -1: the fill value. `kept` is
   what negative pads leave of the axis: [first, first + kept). */
typedef struct pad_axis {
  int64_t dim, begin, end;
} pad_axis;

static int64_t pad_source(const pad_axis *axis, const char *mode, int64_t i) {
  int64_t first = pph_max_i64(0, -axis->begin);
  int64_t kept = axis->dim - first - pph_max_i64(0, -axis->end);
  int64_t at = i - axis->begin - first; /* in [0, kept) when inside */
  if (at >= 0 && at < kept)
    return first + at;
  if (strcmp(mode, "constant") == 0)
    return -1;
  if (kept < 1) { /* all of it was cut off: the nearest that there was */
    first = pph_max_i64(0, pph_min_i64(first, axis->dim - 1));
    kept = 1;
  }
  if (strcmp(mode, "edge") == 0)
    return first + (at < 0 ? 0 : kept - 1);
  if (strcmp(mode, "wrap") == 0)
    return first + pph_floor_mod(at, kept);
  int64_t period = pph_max_i64(1, 2 * (kept - 1));
  at = pph_floor_mod(at, period);
  return first + (at < kept ? at : period - at);
}

/* One table of sources per output axis, in one block that *block owns. */
static pph_status make_tables(const pph_eval *eval, const pad_axis *axes,
                              int64_t **block, const int64_t **tables) {
  const pph_shape *shape = &eval->outputs[0].shape;
  const char *mode = pph_node_text(eval->node, PPH_ATTR_MODE, "constant");
  size_t total = 0;
  for (int32_t i = 0; i < shape->rank; i++)
    total += (size_t)shape->dims[i];
  *block = pph_heap_allocate(eval->graph->heap, total, sizeof **block);
  if (!*block)
    return pph_fail_memory(eval->error);
  int64_t *table = *block;
  for (int32_t i = 0; i < shape->rank; i++) {
    tables[i] = table;
    for (int64_t k = 0; k < shape->dims[i]; k++)
      *table++ = pad_source(&axes[i], mode, k);
  }
  return PPH_OK;
}

pph_status pph_eval_pad(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  static const uint64_t zero = 0;
  const void *fill = &zero;
  if (pph_eval_count(output) == 0)
    return PPH_OK;
  if (pph_eval_has_elements(eval, 2)) {
    if (eval->inputs[2].type != input->type)
      return pph_eval_fail_type(eval, eval->inputs[2].type);
    fill = eval->inputs[2].data;
  }
  pad_axis axes[PPH_MAX_RANK];
  for (int32_t i = 0; i < input->shape.rank; i++)
    axes[i] = (pad_axis){input->shape.dims[i], 0, 0};
  int64_t count = (int64_t)pph_eval_count(&eval->inputs[1]) / 2;
  for (int64_t i = 0; i < count; i++) {
    int64_t axis =
        pph_eval_has(eval, 3) ? pph_number_integer(&eval->inputs[3], i) : i;
    int32_t k = pph_eval_axis(axis, input->shape.rank);
    axes[k].begin = pph_number_integer(&eval->inputs[1], i);
    axes[k].end = pph_number_integer(&eval->inputs[1], i + count);
  }
  int64_t *block;
  const int64_t *tables[PPH_MAX_RANK];
  PPH_TRY(make_tables(eval, axes, &block, tables));
  pph_walk_gather(input, output, tables, fill);
  pph_heap_release(eval->graph->heap, block);
  return PPH_OK;
}
