/* ScatterND. */
#include <math.h>
#include <string.h>

#include "graph/eval_rules.h"

typedef enum reduction {
  REDUCE_NONE,
  REDUCE_ADD,
  REDUCE_MUL,
  REDUCE_MAX,
  REDUCE_MIN,
  REDUCTION_COUNT
} reduction;

static reduction find_reduction(const pph_node *node) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  const char *text = pph_node_text(node, PPH_ATTR_REDUCTION, "none");
  for (int i = 0; i < REDUCTION_COUNT; i++)
    if (strcmp(text, names[i]) == 0)
      return (reduction)i;
  return REDUCTION_COUNT;
}

static double combine_reals(reduction how, double a, double b) {
  const double results[] = {b, a + b, a * b, isnan(a) || a > b ? a : b,
                            isnan(a) || a < b ? a : b};
  return results[how];
}

static int64_t combine_integers(reduction how, int64_t a, int64_t b) {
  const int64_t results[] = {b, (int64_t)((uint64_t)a + (uint64_t)b),
                             (int64_t)((uint64_t)a * (uint64_t)b),
                             pph_max_i64(a, b), pph_min_i64(a, b)};
  return results[how];
}

/* Elements [at, at + count) of the output with those of the updates. */
static void combine(const pph_eval *eval, reduction how, int64_t at,
                    int64_t from, int64_t count) {
  const pph_tensor *output = &eval->outputs[0], *updates = &eval->inputs[2];
  size_t size = pph_dtype_size(output->type);
  if (how == REDUCE_NONE) {
    memcpy((char *)output->data + (size_t)at * size,
           (const char *)updates->data + (size_t)from * size,
           (size_t)count * size);
    return;
  }
  bool real = pph_number_is_real(output->type);
  for (int64_t i = 0; i < count; i++) {
    double a, b;
    int64_t m, n;
    if (real) {
      pph_number_load_reals(output, at + i, 0, &a, 1);
      pph_number_load_reals(updates, from + i, 0, &b, 1);
      a = combine_reals(how, a, b);
      pph_number_store_reals(output, at + i, &a, 1);
    } else {
      pph_number_load_integers(output, at + i, 0, &m, 1);
      pph_number_load_integers(updates, from + i, 0, &n, 1);
      m = combine_integers(how, m, n);
      pph_number_store_integers(output, at + i, &m, 1);
    }
  }
}

/* Offset of the block that index tuple `tuple` names. */
static pph_status find_block(const pph_eval *eval, int64_t tuple, int64_t depth,
                             int64_t *offset) {
  const pph_shape *shape = &eval->inputs[0].shape;
  int64_t strides[PPH_MAX_RANK];
  pph_eval_strides(shape, strides);
  *offset = 0;
  for (int32_t i = 0; i < depth; i++) {
    int64_t at = tuple * depth + i, dim = shape->dims[i];
    int64_t index = pph_number_integer(&eval->inputs[1], at);
    if (index < -dim || index >= dim)
      return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                           "indices[%lld] is %lld, must be in [%lld,%lld]",
                           (long long)at, (long long)index, (long long)-dim,
                           (long long)dim - 1);
    *offset += (index < 0 ? index + dim : index) * strides[i];
  }
  return PPH_OK;
}

pph_status pph_eval_scatter_nd(const pph_eval *eval) {
  const pph_shape *indices = &eval->inputs[1].shape;
  const pph_shape *shape = &eval->inputs[0].shape;
  reduction how = find_reduction(eval->node);
  if (how == REDUCTION_COUNT)
    return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                         "reduction is unknown, must be none, add, mul, max "
                         "or min");
  if (how != REDUCE_NONE && eval->inputs[0].type == PPH_U64)
    return pph_eval_fail_type(eval, PPH_U64);
  PPH_TRY(pph_eval_identity(eval));
  int64_t depth = indices->dims[indices->rank - 1];
  int64_t tuples = pph_eval_product(indices, 0, indices->rank - 1);
  int64_t block = pph_eval_product(shape, (int32_t)depth, shape->rank);
  int64_t total;
  if (!pph_checked_mul_i64(tuples, block, &total) ||
      (size_t)total != pph_eval_count(&eval->inputs[2]))
    return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                         "updates do not fit the indices");
  for (int64_t i = 0; i < tuples && total > 0; i++) {
    int64_t offset;
    PPH_TRY(find_block(eval, i, depth, &offset));
    combine(eval, how, offset, i * block, block);
  }
  return PPH_OK;
}
