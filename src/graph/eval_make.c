/* Kinds whose results come from shapes and scalars. */
#include <string.h>

#include "graph/eval_rules.h"

pph_status pph_eval_constant_of_shape(const pph_eval *eval) {
  const pph_tensor *output = &eval->outputs[0];
  size_t count = pph_eval_count(output), size = pph_dtype_size(output->type);
  static const uint64_t zero = 0;
  const void *fill = &zero;
  if (pph_eval_has(eval, 1)) {
    if (!pph_eval_has_elements(eval, 1))
      return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                           "value is empty, must have one element");
    fill = eval->inputs[1].data;
  }
  for (size_t i = 0; i < count; i++)
    memcpy((char *)output->data + i * size, fill, size);
  return PPH_OK;
}

pph_status pph_eval_range(const pph_eval *eval) {
  const pph_tensor *output = &eval->outputs[0];
  int64_t count = (int64_t)pph_eval_count(output);
  if (pph_number_is_real(output->type)) {
    double start, delta;
    pph_number_load_reals(&eval->inputs[0], 0, 0, &start, 1);
    pph_number_load_reals(&eval->inputs[2], 0, 0, &delta, 1);
    for (int64_t i = 0; i < count; i++) {
      double x = start + (double)i * delta;
      pph_number_store_reals(output, i, &x, 1);
    }
    return PPH_OK;
  }
  uint64_t start = (uint64_t)pph_number_integer(&eval->inputs[0], 0);
  uint64_t delta = (uint64_t)pph_number_integer(&eval->inputs[2], 0);
  for (int64_t i = 0; i < count; i++) {
    int64_t x = (int64_t)(start + (uint64_t)i * delta);
    pph_number_store_integers(output, i, &x, 1);
  }
  return PPH_OK;
}

pph_status pph_eval_shape(const pph_eval *eval) {
  const pph_shape *shape = &eval->inputs[0].shape;
  pph_number_store_integers(&eval->outputs[0], 0, shape->dims, shape->rank);
  return PPH_OK;
}

pph_status pph_eval_size(const pph_eval *eval) {
  int64_t count = (int64_t)pph_eval_count(&eval->inputs[0]);
  pph_number_store_integers(&eval->outputs[0], 0, &count, 1);
  return PPH_OK;
}
