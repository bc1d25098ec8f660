/* Kinds that move whole elements of any type. */
#include <string.h>

#include "graph/eval_rules.h"

/* A walk over `dims` from a dense tensor's elements to another's. */
static pph_walk walk_between(const pph_shape *dims, const pph_shape *source,
                             const pph_shape *target) {
  pph_walk walk;
  pph_walk_init(&walk, dims, 2);
  pph_eval_strides(source, walk.strides[0]);
  pph_eval_strides(target, walk.strides[1]);
  return walk;
}

static void copy_tensors(pph_walk *walk, const pph_tensor *source,
                         const pph_tensor *target) {
  pph_walk_copy(walk, pph_dtype_size(target->type), source->data, target->data);
}

static int32_t node_axis(const pph_eval *eval) {
  return pph_eval_axis(pph_node_int(eval->node, PPH_ATTR_AXIS, 0),
                       eval->inputs[0].shape.rank);
}

pph_status pph_eval_concat(const pph_eval *eval) {
  const pph_tensor *output = &eval->outputs[0];
  int32_t axis = node_axis(eval);
  int64_t at = 0;
  for (uint32_t i = 0; i < eval->node->input_count; i++) {
    const pph_tensor *input = &eval->inputs[i];
    pph_walk walk = walk_between(&input->shape, &input->shape, &output->shape);
    walk.offset[1] = at * walk.strides[1][axis];
    copy_tensors(&walk, input, output);
    at += input->shape.dims[axis];
  }
  return PPH_OK;
}

pph_status pph_eval_split(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0];
  int32_t axis = node_axis(eval);
  int64_t at = 0;
  for (uint32_t i = 0; i < eval->node->output_count; i++) {
    const pph_tensor *output = &eval->outputs[i];
    if (eval->node->outputs[i] == PPH_NO_VALUE)
      return pph_node_fail(eval->node, eval->error, PPH_UNSUPPORTED,
                           "output %u is missing", i);
    pph_walk walk = walk_between(&output->shape, &input->shape, &output->shape);
    walk.offset[0] = at * walk.strides[0][axis];
    copy_tensors(&walk, input, output);
    at += output->shape.dims[axis];
  }
  return PPH_OK;
}

pph_status pph_eval_expand(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  pph_walk walk;
  pph_walk_init(&walk, &output->shape, 2);
  pph_walk_broadcast(&walk, 0, &input->shape);
  pph_eval_strides(&output->shape, walk.strides[1]);
  copy_tensors(&walk, input, output);
  return PPH_OK;
}

pph_status pph_eval_tile(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  int64_t from[PPH_MAX_RANK], to[PPH_MAX_RANK];
  if (pph_eval_count(output) == 0)
    return PPH_OK;
  pph_eval_strides(&input->shape, from);
  pph_eval_strides(&output->shape, to);
  /* Every axis becomes two: which copy, and where in it. */
  pph_walk walk = {.rank = 2 * input->shape.rank, .operands = 2};
  for (int32_t i = 0; i < input->shape.rank; i++) {
    int64_t length = input->shape.dims[i];
    walk.dims[2 * i] = output->shape.dims[i] / length;
    walk.dims[2 * i + 1] = length;
    walk.strides[0][2 * i + 1] = from[i];
    walk.strides[1][2 * i] = length * to[i];
    walk.strides[1][2 * i + 1] = to[i];
  }
  copy_tensors(&walk, input, output);
  return PPH_OK;
}

pph_status pph_eval_transpose(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  uint32_t count;
  const int64_t *perm = pph_node_ints(eval->node, PPH_ATTR_PERM, &count);
  int32_t rank = input->shape.rank;
  int64_t strides[PPH_MAX_RANK];
  pph_walk walk = walk_between(&output->shape, &input->shape, &output->shape);
  pph_eval_strides(&input->shape, strides);
  for (int32_t i = 0; i < rank; i++)
    walk.strides[0][i] = strides[perm ? perm[i] : rank - 1 - i];
  copy_tensors(&walk, input, output);
  return PPH_OK;
}

/* Where a slice with `step` begins, clamped as ONNX does. */
static int64_t slice_start(int64_t start, int64_t step, int64_t dim) {
  if (start < 0)
    start += dim;
  int64_t last = step < 0 ? dim - 1 : dim;
  return pph_max_i64(0, pph_min_i64(start, last));
}

pph_status pph_eval_slice(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  if (pph_eval_count(output) == 0)
    return PPH_OK;
  pph_walk walk = walk_between(&output->shape, &input->shape, &output->shape);
  int64_t count = (int64_t)pph_eval_count(&eval->inputs[1]);
  for (int64_t i = 0; i < count; i++) {
    int64_t axis =
        pph_eval_has(eval, 3) ? pph_number_integer(&eval->inputs[3], i) : i;
    int64_t step =
        pph_eval_has(eval, 4) ? pph_number_integer(&eval->inputs[4], i) : 1;
    int32_t k = pph_eval_axis(axis, input->shape.rank);
    int64_t start = slice_start(pph_number_integer(&eval->inputs[1], i), step,
                                input->shape.dims[k]);
    walk.offset[0] += start * walk.strides[0][k];
    /* Of one element the step does not matter, and it may be huge. */
    walk.strides[0][k] *= output->shape.dims[k] > 1 ? step : 0;
  }
  copy_tensors(&walk, input, output);
  return PPH_OK;
}

/* Index `k` of a list into an axis of `dim` elements, made non-negative. */
static pph_status read_index(const pph_eval *eval, int64_t k, int64_t dim,
                             int64_t *index) {
  *index = pph_number_integer(&eval->inputs[1], k);
  if (*index < -dim || *index >= dim)
    return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                         "indices[%lld] is %lld, must be in [%lld,%lld]",
                         (long long)k, (long long)*index, (long long)-dim,
                         (long long)dim - 1);
  if (*index < 0)
    *index += dim;
  return PPH_OK;
}

pph_status pph_eval_gather(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0];
  const pph_shape *shape = &input->shape;
  int32_t axis = node_axis(eval);
  int64_t dim = shape->dims[axis];
  int64_t outer = pph_eval_product(shape, 0, axis);
  int64_t block = pph_eval_product(shape, axis + 1, shape->rank) *
                  (int64_t)pph_dtype_size(input->type);
  int64_t count = (int64_t)pph_eval_count(&eval->inputs[1]);
  const char *from = input->data;
  char *to = eval->outputs[0].data;
  bool empty = pph_eval_count(&eval->outputs[0]) == 0;
  for (int64_t k = 0; k < count; k++) {
    int64_t index;
    PPH_TRY(read_index(eval, k, dim, &index));
    for (int64_t i = 0; i < outer && !empty; i++)
      memcpy(to + (i * count + k) * block, from + (i * dim + index) * block,
             (size_t)block);
  }
  return PPH_OK;
}

/* The interleaved axes of a block: `deep` has [N,C*blocks,spatial...], `wide`
   [N,C,spatial*block...]. One walk serves both directions. */
static pph_walk walk_blocks(const pph_node *node, const pph_shape *deep,
                            const pph_shape *wide) {
  uint32_t count;
  const int64_t *block = pph_node_ints(node, PPH_ATTR_BLOCKSIZE, &count);
  bool columns_first =
      strcmp(pph_node_text(node, PPH_ATTR_MODE, "DCR"), "CRD") == 0;
  int64_t deep_strides[PPH_MAX_RANK], wide_strides[PPH_MAX_RANK];
  pph_eval_strides(deep, deep_strides);
  pph_eval_strides(wide, wide_strides);
  int64_t channels = wide->dims[1], phases = 1;
  for (uint32_t i = 0; i < count; i++)
    phases *= block[i];
  pph_walk walk = {.rank = 2 + 2 * (int32_t)count, .operands = 2};
  walk.dims[0] = wide->dims[0];
  walk.dims[1] = channels;
  walk.strides[0][0] = deep_strides[0];
  walk.strides[1][0] = wide_strides[0];
  walk.strides[0][1] = deep_strides[1] * (columns_first ? phases : 1);
  walk.strides[1][1] = wide_strides[1];
  int64_t phase = deep_strides[1] * (columns_first ? 1 : channels);
  for (int32_t i = (int32_t)count - 1; i >= 0; i--) {
    int32_t at = 2 + 2 * i;
    walk.dims[at] = deep->dims[2 + i];
    walk.strides[0][at] = deep_strides[2 + i];
    walk.strides[1][at] = wide_strides[2 + i] * block[i];
    walk.dims[at + 1] = block[i];
    walk.strides[0][at + 1] = phase;
    walk.strides[1][at + 1] = wide_strides[2 + i];
    phase *= block[i];
  }
  return walk;
}

pph_status pph_eval_depth_to_space(const pph_eval *eval) {
  const pph_tensor *deep = &eval->inputs[0], *wide = &eval->outputs[0];
  if (pph_eval_count(wide) == 0)
    return PPH_OK;
  pph_walk walk = walk_blocks(eval->node, &deep->shape, &wide->shape);
  copy_tensors(&walk, deep, wide);
  return PPH_OK;
}

pph_status pph_eval_space_to_depth(const pph_eval *eval) {
  const pph_tensor *wide = &eval->inputs[0], *deep = &eval->outputs[0];
  if (pph_eval_count(wide) == 0)
    return PPH_OK;
  pph_walk walk = walk_blocks(eval->node, &deep->shape, &wide->shape);
  for (int32_t i = 0; i < walk.rank; i++) {
    int64_t stride = walk.strides[0][i];
    walk.strides[0][i] = walk.strides[1][i];
    walk.strides[1][i] = stride;
  }
  copy_tensors(&walk, wide, deep);
  return PPH_OK;
}
