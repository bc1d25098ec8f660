/* DepthToSpace and SpaceToDepth: ONNX has them for square blocks in 2-D, all
   others become Reshape, Transpose, Reshape. */
#include <string.h>

#include "base/fail.h"
#include "onnx/export.h"

/* The three steps for k spatial axes; middle has 2 + 2k dimensions. */
typedef struct block_steps {
  int64_t middle[PPH_MAX_RANK], perm[PPH_MAX_RANK], final[PPH_MAX_RANK];
} block_steps;

/* x / divisor, unknown (-1) if x is; false when it is no whole number. */
static bool divide(int64_t x, int64_t divisor, int64_t *result) {
  if (x < 0) {
    *result = -1;
    return true;
  }
  *result = divisor > 0 ? x / divisor : 0;
  return divisor > 0 && x % divisor == 0;
}

static bool multiply(int64_t x, int64_t factor, int64_t *result) {
  if (x >= 0)
    return !__builtin_mul_overflow(x, factor, result);
  *result = -1;
  return true;
}

static bool find_area(const int64_t *block, uint32_t axes, int64_t *area) {
  *area = 1;
  for (uint32_t i = 0; i < axes; i++)
    if (block[i] < 1 || __builtin_mul_overflow(*area, block[i], area))
      return false;
  return true;
}

/* Depth to space: where the blocks and the channels lie in the middle, and
   which dimensions end up where. */
static bool plan_spread(const pph_shape *in, const int64_t *block,
                        bool channels_first, block_steps *steps) {
  uint32_t axes = (uint32_t)in->rank - 2;
  uint32_t channels = channels_first ? 1 : axes + 1;
  uint32_t blocks = channels_first ? 2 : 1;
  int64_t area;
  if (!find_area(block, axes, &area) ||
      !divide(in->dims[1], area, &steps->middle[channels]))
    return false;
  steps->final[1] = steps->middle[channels];
  steps->perm[1] = channels;
  for (uint32_t i = 0; i < axes; i++) {
    steps->middle[blocks + i] = block[i];
    steps->middle[2 + axes + i] = in->dims[2 + i];
    steps->perm[2 + 2 * i] = 2 + axes + i;
    steps->perm[3 + 2 * i] = blocks + i;
    if (!multiply(in->dims[2 + i], block[i], &steps->final[2 + i]))
      return false;
  }
  return true;
}

/* Space to depth, blocks before channels. */
static bool plan_gather(const pph_shape *in, const int64_t *block,
                        block_steps *steps) {
  uint32_t axes = (uint32_t)in->rank - 2;
  int64_t area;
  if (!find_area(block, axes, &area) ||
      !multiply(in->dims[1], area, &steps->final[1]))
    return false;
  steps->middle[1] = in->dims[1];
  steps->perm[1 + axes] = 1;
  for (uint32_t i = 0; i < axes; i++) {
    if (!divide(in->dims[2 + i], block[i], &steps->middle[2 + 2 * i]))
      return false;
    steps->middle[3 + 2 * i] = block[i];
    steps->perm[1 + i] = 3 + 2 * i;
    steps->perm[2 + axes + i] = 2 + 2 * i;
    steps->final[2 + i] = steps->middle[2 + 2 * i];
  }
  return true;
}

/* Reshape can leave one dimension open, beside the batch, and takes a 0 for
   something else. */
static bool can_reshape(const int64_t *dims, uint32_t count) {
  uint32_t open = 0;
  for (uint32_t i = 1; i < count; i++) {
    open += dims[i] < 0;
    if (dims[i] == 0)
      return false;
  }
  return open <= 1;
}

static pph_status add_reshape(pph_export *export, const pph_node *node,
                              const char *from, const char *to,
                              const int64_t *dims, uint32_t count) {
  const char *inputs[2] = {from};
  PPH_TRY(pph_export_add_ints(export, dims, count, &inputs[1]));
  return pph_export_add_node(export, node, "Reshape",
                             (pph_export_names){inputs, 2},
                             (pph_export_names){&to, 1});
}

static pph_status add_steps(pph_export *export, const pph_node *node,
                            const char *from, const char *to,
                            const block_steps *steps) {
  const pph_value *in = pph_node_find_input(export->graph, node, 0);
  uint32_t rank = (uint32_t)in->shape.rank, middle = 2 * rank - 2;
  const char *wide = pph_export_make_name(export, to);
  const char *moved = pph_export_make_name(export, to);
  void *perm;
  PPH_TRY(pph_export_allocate(export, middle, sizeof(int64_t), &perm));
  memcpy(perm, steps->perm, middle * sizeof(int64_t));
  if (!wide || !moved)
    return pph_fail_memory(export->error);
  PPH_TRY(add_reshape(export, node, from, wide, steps->middle, middle));
  PPH_TRY(pph_export_add_unary(export, node, "Transpose", wide, moved));
  pph_attribute attribute = {.count = middle, .ints = perm};
  PPH_TRY(
      pph_export_set_attribute(export, "perm", PPH_ATTRIBUTE_INTS, &attribute));
  return add_reshape(export, node, moved, to, steps->final, rank);
}

static pph_status add_general(pph_export *export, const pph_node *node,
                              const char *from, const char *to) {
  const pph_value *in = pph_node_find_input(export->graph, node, 0);
  uint32_t count;
  const int64_t *block = pph_node_ints(node, PPH_ATTR_BLOCKSIZE, &count);
  if (!in || !in->has_rank || in->shape.rank < 3 || in->shape.rank > 5 ||
      count + 2 != (uint32_t)in->shape.rank)
    return pph_node_fail(node, export->error, PPH_UNSUPPORTED,
                         "ONNX has no such block, and the input's rank is not "
                         "known to write it otherwise");
  block_steps steps = {0};
  /* A 0 in Reshape's shape copies the dimension: the batch may be unknown. */
  bool fits =
      node->kind == PPH_NODE_SPACE_TO_DEPTH
          ? plan_gather(&in->shape, block, &steps)
          : plan_spread(
                &in->shape, block,
                strcmp(pph_node_text(node, PPH_ATTR_MODE, "DCR"), "CRD") == 0,
                &steps);
  if (!fits)
    return pph_node_fail(node, export->error, PPH_BAD_MODEL,
                         "blocksize does not divide the input");
  if (!can_reshape(steps.middle, 2 * count + 2) ||
      !can_reshape(steps.final, count + 2))
    return pph_node_fail(node, export->error, PPH_UNSUPPORTED,
                         "ONNX has no such block, and too many dimensions are "
                         "not known (or 0) to write it otherwise");
  return add_steps(export, node, from, to, &steps);
}

pph_status pph_export_block(pph_export *export, const pph_node *node,
                            const char *from, const char *to) {
  uint32_t count;
  const int64_t *block = pph_node_ints(node, PPH_ATTR_BLOCKSIZE, &count);
  if (count != 2 || block[0] != block[1])
    return add_general(export, node, from, to);
  const pph_attribute *mode = pph_node_find_attribute(node, PPH_ATTR_MODE);
  PPH_TRY(pph_export_add_unary(
      export, node, pph_node_kind_find_info(node->kind)->name, from, to));
  PPH_TRY(pph_export_set_int(export, "blocksize", block[0]));
  if (!mode || node->kind == PPH_NODE_SPACE_TO_DEPTH)
    return PPH_OK;
  return pph_export_set_attribute(export, "mode", PPH_ATTRIBUTE_TEXT, mode);
}
