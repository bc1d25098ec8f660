/* Elementwise nodes, products, reductions and Softmax. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/xnn_export.h"

static const pph_layout PLAIN = PPH_LAYOUT_PLAIN;

static const struct {
  pph_node_kind from;
  pph_payload_kind to;
} plain_kinds[] = {
    {PPH_NODE_ABS, PPH_PAYLOAD_ABS},
    {PPH_NODE_CEIL, PPH_PAYLOAD_CEILING},
    {PPH_NODE_COS, PPH_PAYLOAD_COS},
    {PPH_NODE_EXP, PPH_PAYLOAD_EXP},
    {PPH_NODE_FLOOR, PPH_PAYLOAD_FLOOR},
    {PPH_NODE_HARD_SWISH, PPH_PAYLOAD_HARD_SWISH},
    {PPH_NODE_LOG, PPH_PAYLOAD_LOG},
    {PPH_NODE_NEG, PPH_PAYLOAD_NEGATE},
    {PPH_NODE_SIGMOID, PPH_PAYLOAD_SIGMOID},
    {PPH_NODE_SIN, PPH_PAYLOAD_SIN},
    {PPH_NODE_SQRT, PPH_PAYLOAD_SQUARE_ROOT},
    {PPH_NODE_TANH, PPH_PAYLOAD_TANH},
    {PPH_NODE_ADD, PPH_PAYLOAD_ADD},
    {PPH_NODE_DIV, PPH_PAYLOAD_DIV},
    {PPH_NODE_MAX, PPH_PAYLOAD_MAXIMUM},
    {PPH_NODE_MIN, PPH_PAYLOAD_MINIMUM},
    {PPH_NODE_MUL, PPH_PAYLOAD_MULTIPLY},
    {PPH_NODE_SUB, PPH_PAYLOAD_SUBTRACT},
};

static pph_payload_kind find_kind(const pph_node *node) {
  for (size_t i = 0; i < sizeof plain_kinds / sizeof *plain_kinds; i++)
    if (plain_kinds[i].from == node->kind)
      return plain_kinds[i].to;
  return PPH_PAYLOAD_NO_KIND;
}

/* The operand as the output lies. */
static pph_status read_operand(pph_payload_export *x, uint32_t slot,
                               uint32_t *id) {
  const pph_value *out = pph_payload_output_value(x);
  const pph_value *in = pph_payload_input_value(x, slot);
  bool one_number = in && in->data && in->shape.rank == 0;
  return pph_payload_read_input(x, slot, one_number ? 0 : out->shape.rank,
                                out->layout, id);
}

static pph_status write_as_is(pph_payload_export *x, uint32_t id) {
  return pph_payload_write_output(x, 0, pph_payload_output_value(x)->layout,
                                  id);
}

/* id becomes id (kind) number, or number (kind) id. */
static pph_status put_number(pph_payload_export *x, pph_payload_kind kind,
                             float number, bool number_first,
                             const pph_payload_min_max *range, uint32_t *id) {
  uint32_t scalar, other = *id;
  PPH_TRY(pph_payload_put_scalar(x, number, &scalar));
  *id = number_first ? scalar : other;
  return pph_payload_put_binary(x, kind, number_first ? other : scalar, range,
                                id);
}

/* Elu and LeakyRelu have the same table in another order. */
static pph_status put_bent(pph_payload_export *x, uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, *id);
  pph_payload_leaky leaky = {
      .negative_slope = pph_node_float(x->node, PPH_ATTR_ALPHA, 0.01f),
      .input_id = *id};
  pph_payload_elu elu = {.alpha = pph_node_float(x->node, PPH_ATTR_ALPHA, 1),
                         .input_id = *id};
  bool is_elu = x->node->kind == PPH_NODE_ELU;
  if (is_elu && !(elu.alpha > 0 && isnormal(elu.alpha)))
    return pph_payload_refuse(x, "an alpha that is not above 0");
  if (!is_elu && !isfinite(leaky.negative_slope))
    return pph_payload_refuse(x, "a slope that is not finite");
  PPH_TRY(pph_payload_put_value(x, &dims, id));
  leaky.output_id = elu.output_id = *id;
  return is_elu ? pph_payload_put_node(x, PPH_PAYLOAD_ELU, &elu, sizeof elu,
                                       NULL)
                : pph_payload_put_node(x, PPH_PAYLOAD_LEAKY_RELU, &leaky,
                                       sizeof leaky, NULL);
}

pph_status pph_payload_export_unary(pph_payload_export *x) {
  pph_payload_kind kind = find_kind(x->node);
  uint32_t id;
  PPH_TRY(read_operand(x, 0, &id));
  if (kind == PPH_PAYLOAD_NO_KIND)
    PPH_TRY(put_bent(x, &id));
  else
    PPH_TRY(pph_payload_put_unary(x, kind, NULL, &id));
  return write_as_is(x, id);
}

pph_status pph_payload_export_clip(pph_payload_export *x) {
  pph_payload_min_max range = {0, INFINITY};
  float *bounds[] = {&range.output_min, &range.output_max};
  uint32_t id;
  if (x->node->kind == PPH_NODE_CLIP)
    range.output_min = -INFINITY;
  for (uint32_t i = 0; i < 2; i++) {
    size_t count;
    if (!pph_payload_input_value(x, i + 1))
      continue;
    const float *bound = pph_payload_find_floats(x, i + 1, &count);
    if (!bound || count != 1)
      return pph_payload_refuse(x, "bounds that are no constants");
    *bounds[i] = *bound;
  }
  if (!(range.output_min < range.output_max))
    return pph_payload_refuse(x, "an empty range");
  PPH_TRY(read_operand(x, 0, &id));
  PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_CLAMP, &range, &id));
  return write_as_is(x, id);
}

pph_status pph_payload_export_reciprocal(pph_payload_export *x) {
  uint32_t id;
  PPH_TRY(read_operand(x, 0, &id));
  PPH_TRY(put_number(x, PPH_PAYLOAD_DIV, 1, true, NULL, &id));
  return write_as_is(x, id);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which does not overflow. */
pph_status pph_payload_export_softplus(pph_payload_export *x) {
  static const pph_payload_kind steps[] = {
      PPH_PAYLOAD_ABS, PPH_PAYLOAD_NEGATE, PPH_PAYLOAD_EXP};
  const pph_payload_min_max positive = {0, INFINITY};
  uint32_t id, positive_part;
  PPH_TRY(read_operand(x, 0, &id));
  positive_part = id;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    PPH_TRY(pph_payload_put_unary(x, steps[i], NULL, &id));
  PPH_TRY(put_number(x, PPH_PAYLOAD_ADD, 1, false, NULL, &id));
  PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_LOG, NULL, &id));
  PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_CLAMP, &positive,
                                &positive_part));
  PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_ADD, positive_part, NULL,
                                 &id));
  return write_as_is(x, id);
}

pph_status pph_payload_export_hard_sigmoid(pph_payload_export *x) {
  const pph_payload_min_max unit = {0, 1};
  uint32_t id;
  PPH_TRY(read_operand(x, 0, &id));
  PPH_TRY(put_number(x, PPH_PAYLOAD_MULTIPLY,
                     pph_node_float(x->node, PPH_ATTR_ALPHA, 0.2f), false,
                     NULL, &id));
  PPH_TRY(put_number(x, PPH_PAYLOAD_ADD,
                     pph_node_float(x->node, PPH_ATTR_BETA, 0.5f), false,
                     &unit, &id));
  return write_as_is(x, id);
}

pph_status pph_payload_export_binary(pph_payload_export *x) {
  pph_payload_kind kind = find_kind(x->node);
  pph_payload_min_max range;
  uint32_t id, other;
  PPH_TRY(read_operand(x, 0, &id));
  for (uint32_t i = 1; i < x->node->input_count; i++) {
    PPH_TRY(read_operand(x, i, &other));
    PPH_TRY(pph_payload_put_binary(x, kind, other,
                                   pph_payload_find_range(x, &range), &id));
  }
  return write_as_is(x, id);
}

/* id becomes its power of a whole exponent of at least 1, by squaring. */
static pph_status put_whole_power(pph_payload_export *x, uint32_t exponent,
                                  uint32_t *id) {
  uint32_t square = *id;
  bool started = false;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) {
      if (started)
        PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_MULTIPLY, square, NULL,
                                       id));
      else
        *id = square;
      started = true;
    }
    if (exponent > 1)
      PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_SQUARE, NULL, &square));
  }
  return PPH_OK;
}

/* Exponents that are a whole number of halves: products of squares, a root. */
static pph_status put_half_power(pph_payload_export *x, float exponent,
                                 uint32_t *id) {
  uint32_t whole = (uint32_t)fabsf(exponent), root = *id;
  if (fabsf(exponent) > (float)whole) {
    PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_SQUARE_ROOT, NULL, &root));
    PPH_TRY(put_whole_power(x, whole, id));
    if (whole)
      PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_MULTIPLY, root, NULL, id));
    else
      *id = root;
  } else {
    PPH_TRY(put_whole_power(x, whole, id));
  }
  return exponent < 0 ? put_number(x, PPH_PAYLOAD_DIV, 1, true, NULL, id)
                      : PPH_OK;
}

/* Other exponents by way of the logarithm; of a negative number there is no
   such power, and neither has it a logarithm. */
static pph_status put_any_power(pph_payload_export *x, const float *exponents,
                                size_t count, uint32_t *id) {
  uint32_t factors;
  for (size_t i = 0; i < count; i++)
    if (!isfinite(exponents[i]) || exponents[i] == floorf(exponents[i]))
      return pph_payload_refuse(x, "whole exponents beyond 32, 0, or several");
  PPH_TRY(read_operand(x, 1, &factors));
  PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_LOG, NULL, id));
  PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_MULTIPLY, factors, NULL, id));
  return pph_payload_put_unary(x, PPH_PAYLOAD_EXP, NULL, id);
}

pph_status pph_payload_export_power(pph_payload_export *x) {
  const float most = 32;
  size_t count;
  uint32_t id;
  const float *exponents = pph_payload_find_floats(x, 1, &count);
  if (!exponents || !count)
    return pph_payload_refuse(x, "exponents that vary");
  PPH_TRY(read_operand(x, 0, &id));
  if (count == 1 && *exponents != 0 && fabsf(*exponents) <= most &&
      2 * *exponents == floorf(2 * *exponents))
    PPH_TRY(put_half_power(x, *exponents, &id));
  else
    PPH_TRY(put_any_power(x, exponents, count, &id));
  return write_as_is(x, id);
}

/* A slope for all or one per channel. */
pph_status pph_payload_export_prelu(pph_payload_export *x) {
  const pph_value *out = pph_payload_output_value(x);
  const pph_value *slope = pph_payload_input_value(x, 1);
  int32_t rank = out->shape.rank;
  uint32_t id;
  size_t count;
  const float *from = pph_payload_find_floats(x, 1, &count);
  if (!from || rank < 3 || rank > 4)
    return pph_payload_refuse(x, "slopes that are no constants");
  size_t channels = (size_t)out->shape.dims[1];
  bool per_channel = count == channels && slope->shape.rank >= rank - 1 &&
                     slope->shape.dims[slope->shape.rank - rank + 1] ==
                         out->shape.dims[1];
  float *to = pph_arena_allocate(x->arena, channels, sizeof *to);
  if (!to)
    return pph_fail_memory(x->error);
  if (count != 1 && !per_channel)
    return pph_payload_refuse(x, "slopes other than one per channel");
  for (size_t i = 0; i < channels; i++)
    to[i] = from[count == 1 ? 0 : i];
  const pph_payload_dims dims = {1, {(uint32_t)channels}};
  pph_payload_binary table = {.input2_id = 0};
  PPH_TRY(pph_payload_read_input(x, 0, rank, PPH_LAYOUT_CHANNELS_LAST, &id));
  pph_payload_dims result = pph_payload_dims_of(x, id);
  table.input1_id = id;
  PPH_TRY(pph_payload_put_packed(x, to, &dims, &table.input2_id));
  PPH_TRY(pph_payload_put_value(x, &result, &table.output_id));
  PPH_TRY(pph_payload_put_node(x, PPH_PAYLOAD_PRELU, &table, sizeof table,
                               NULL));
  return pph_payload_write_output(x, 0, PPH_LAYOUT_CHANNELS_LAST,
                                  table.output_id);
}

/* Over the last axis in memory; another one goes there and back. */
pph_status pph_payload_export_softmax(pph_payload_export *x) {
  const pph_value *out = pph_payload_output_value(x);
  int64_t axis = pph_node_int(x->node, PPH_ATTR_AXIS, -1);
  uint32_t id, perm[PPH_MAX_RANK];
  int32_t rank = out->shape.rank;
  axis += axis < 0 ? rank : 0;
  PPH_TRY(pph_payload_read_input(x, 0, rank, out->layout, &id));
  uint32_t count = pph_payload_dims_of(x, id).count;
  uint32_t place = pph_payload_axis(rank, out->layout, (int32_t)axis);
  bool moves = place + 1 < count;
  for (uint32_t i = 0; i < count; i++)
    perm[i] = i;
  perm[place] = count - 1; /* swaps, so it is its own inverse */
  perm[count - 1] = place;
  if (moves)
    PPH_TRY(pph_payload_put_transpose(x, perm, &id));
  PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_SOFTMAX, NULL, &id));
  if (moves)
    PPH_TRY(pph_payload_put_transpose(x, perm, &id));
  return write_as_is(x, id);
}

/* [out][in] of a constant matrix, times `scale`. */
static pph_status put_matrix(pph_payload_export *x, bool is_out_major,
                             float scale, pph_payload_dims *dims,
                             uint32_t *id) {
  size_t count;
  const pph_value *value = pph_payload_input_value(x, 1);
  const float *from = pph_payload_find_floats(x, 1, &count);
  if (!from || value->shape.rank != 2 ||
      !pph_payload_dims_make(&value->shape, PLAIN, dims))
    return pph_payload_refuse(x, "a matrix that is no f32 constant");
  size_t rows = dims->at[0], columns = dims->at[1];
  float *to = pph_arena_allocate(x->arena, count, sizeof *to);
  if (!to)
    return pph_fail_memory(x->error);
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < columns; k++)
      to[is_out_major ? i * columns + k : k * rows + i] =
          scale * from[i * columns + k];
  if (!is_out_major)
    *dims = (pph_payload_dims){2, {(uint32_t)columns, (uint32_t)rows}};
  return pph_payload_put_packed(x, to, dims, id);
}

/* One number per column of a Gemm's result. */
static pph_status put_column_bias(pph_payload_export *x, uint32_t columns,
                                  uint32_t *id) {
  const pph_payload_dims dims = {1, {columns}};
  const pph_value *value = pph_payload_input_value(x, 2);
  float scale = pph_node_float(x->node, PPH_ATTR_BETA, 1);
  size_t count;
  if (!value)
    return PPH_OK;
  const float *from = pph_payload_find_floats(x, 2, &count);
  if (!from || (count != 1 && (count != columns ||
                               value->shape.dims[value->shape.rank - 1] !=
                                   (int64_t)columns)))
    return pph_payload_refuse(x, "a bias other than one number per column");
  float *to = pph_arena_allocate(x->arena, columns, sizeof *to);
  if (!to)
    return pph_fail_memory(x->error);
  for (uint32_t i = 0; i < columns; i++)
    to[i] = scale * from[count == 1 ? 0 : i];
  return pph_payload_put_packed(x, to, &dims, id);
}

static pph_status multiply_by_constant(pph_payload_export *x) {
  const pph_value *left = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  bool gemm = x->node->kind == PPH_NODE_GEMM;
  pph_payload_linear table = {.bias_id = PPH_PAYLOAD_NONE};
  pph_payload_min_max range;
  pph_payload_dims matrix, dims, last;
  uint32_t id;
  if (gemm && pph_node_int(x->node, PPH_ATTR_TRANS_A, 0))
    return pph_payload_refuse(x, "a left side that is transposed");
  PPH_TRY(put_matrix(x, gemm && pph_node_int(x->node, PPH_ATTR_TRANS_B, 0),
                     gemm ? pph_node_float(x->node, PPH_ATTR_ALPHA, 1) : 1,
                     &matrix, &table.filter_id));
  if (gemm)
    PPH_TRY(put_column_bias(x, matrix.at[0], &table.bias_id));
  int32_t rank = left->shape.rank < 2 ? 2 : left->shape.rank;
  PPH_TRY(pph_payload_read_input(x, 0, rank, PLAIN, &id));
  dims = pph_payload_dims_of(x, id);
  dims.at[dims.count - 1] = matrix.at[0];
  table.input1_id = id;
  PPH_TRY(pph_payload_put_value(x, &dims, &id));
  table.output_id = id;
  PPH_TRY(pph_payload_put_node(x, PPH_PAYLOAD_FULLY_CONNECTED, &table,
                               sizeof table,
                               pph_payload_find_range(x, &range)));
  if (!pph_payload_dims_make(&out->shape, PLAIN, &last))
    return pph_payload_refuse(x, "more than 6 dimensions");
  PPH_TRY(pph_payload_put_reshape(x, &last, &id));
  return pph_payload_write_output(x, 0, PLAIN, id);
}

pph_status pph_payload_export_product(pph_payload_export *x) {
  const pph_value *left = pph_payload_input_value(x, 0);
  const pph_value *right = pph_payload_input_value(x, 1);
  pph_payload_binary table = {.input1_id = 0};
  pph_payload_dims dims, last;
  uint32_t id;
  if (right->data && right->shape.rank == 2)
    return multiply_by_constant(x);
  int32_t rank = left->shape.rank < 3 ? 3 : left->shape.rank;
  if (x->node->kind != PPH_NODE_MATMUL ||
      left->shape.rank != right->shape.rank || left->shape.rank < 2 ||
      x->node->activation != PPH_ACTIVATION_NONE)
    return pph_payload_refuse(x, "a product of this kind");
  for (int32_t i = 0; i < left->shape.rank - 2; i++)
    if (left->shape.dims[i] != right->shape.dims[i])
      return pph_payload_refuse(x, "a product that broadcasts");
  PPH_TRY(pph_payload_read_input(x, 0, rank, PLAIN, &table.input1_id));
  PPH_TRY(pph_payload_read_input(x, 1, rank, PLAIN, &table.input2_id));
  dims = pph_payload_dims_of(x, table.input1_id);
  dims.at[dims.count - 1] =
      pph_payload_dims_of(x, table.input2_id).at[dims.count - 1];
  PPH_TRY(pph_payload_put_value(x, &dims, &id));
  table.output_id = id;
  PPH_TRY(pph_payload_put_node(x, PPH_PAYLOAD_BATCH_MATMUL, &table,
                               sizeof table, NULL));
  if (!pph_payload_dims_make(&pph_payload_output_value(x)->shape, PLAIN,
                             &last))
    return pph_payload_refuse(x, "more than 6 dimensions");
  PPH_TRY(pph_payload_put_reshape(x, &last, &id));
  return pph_payload_write_output(x, 0, PLAIN, id);
}

/* Neighbouring axes as the width of [outer,1,axes,inner]: there is no other
   reduction than pooling. */
static pph_status reduce(pph_payload_export *x, const pph_payload_dims *blocks,
                         uint32_t *id) {
  enum { KEEP_DIMS = 0x40 };
  bool is_max = x->node->kind == PPH_NODE_REDUCE_MAX;
  pph_payload_dims dims = *blocks;
  uint32_t length = blocks->at[2];
  PPH_TRY(pph_payload_put_reshape(x, blocks, id));
  if (is_max && length == 1)
    return PPH_OK;
  pph_payload_unary mean = {.input_id = *id, .flags = KEEP_DIMS};
  pph_payload_pool pool = {.pooling_height = 1, .pooling_width = length,
                           .stride_height = 1, .stride_width = 1,
                           .dilation_height = 1, .dilation_width = 1,
                           .input_id = *id};
  dims.at[2] = 1;
  PPH_TRY(pph_payload_put_value(x, &dims, id));
  mean.output_id = pool.output_id = *id;
  if (is_max)
    return pph_payload_put_node(x, PPH_PAYLOAD_MAX_POOL, &pool, sizeof pool,
                                NULL);
  PPH_TRY(pph_payload_put_node(x, PPH_PAYLOAD_GLOBAL_AVERAGE, &mean,
                               sizeof mean, NULL));
  return x->node->kind == PPH_NODE_REDUCE_SUM
             ? put_number(x, PPH_PAYLOAD_MULTIPLY, (float)length, false, NULL,
                          id)
             : PPH_OK;
}

pph_status pph_payload_export_reduce(pph_payload_export *x) {
  const pph_value *in = pph_payload_input_value(x, 0);
  const pph_value *out = pph_payload_output_value(x);
  int64_t axes[PPH_MAX_RANK];
  size_t count;
  uint64_t blocks[3] = {1, 1, 1};
  uint32_t id;
  pph_payload_dims last;
  if (!pph_payload_find_axes(x, 1, in->shape.rank, axes, &count) || !count)
    return pph_payload_refuse(x, "axes that are no constants");
  for (size_t i = 1; i < count; i++)
    if (axes[i] != axes[i - 1] + 1)
      return pph_payload_refuse(x, "axes that are no neighbours");
  for (int32_t i = 0; i < in->shape.rank; i++)
    blocks[(i >= axes[0]) + (i > axes[count - 1])] *=
        (uint64_t)in->shape.dims[i];
  if (blocks[0] > INT32_MAX || blocks[1] > INT32_MAX || blocks[2] > INT32_MAX)
    return pph_payload_refuse(x, "too many elements");
  const pph_payload_dims dims = {
      4, {(uint32_t)blocks[0], 1, (uint32_t)blocks[1], (uint32_t)blocks[2]}};
  PPH_TRY(pph_payload_read_input(x, 0, in->shape.rank, PLAIN, &id));
  PPH_TRY(reduce(x, &dims, &id));
  if (!pph_payload_dims_make(&out->shape, PLAIN, &last))
    return pph_payload_refuse(x, "an empty result");
  PPH_TRY(pph_payload_put_reshape(x, &last, &id));
  return pph_payload_write_output(x, 0, PLAIN, id);
}
