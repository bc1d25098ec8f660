#include "graph/eval.h"

#include "graph/eval_rules.h"

static pph_eval_rule *const rules[PPH_NODE_KIND_COUNT] = {
    [PPH_NODE_ABS] = pph_eval_unary,
    [PPH_NODE_CAST] = pph_eval_cast,
    [PPH_NODE_CEIL] = pph_eval_unary,
    [PPH_NODE_CLIP] = pph_eval_clip,
    [PPH_NODE_COS] = pph_eval_unary,
    [PPH_NODE_ELU] = pph_eval_unary,
    [PPH_NODE_ERF] = pph_eval_unary,
    [PPH_NODE_EXP] = pph_eval_unary,
    [PPH_NODE_FLOOR] = pph_eval_unary,
    [PPH_NODE_HARD_SIGMOID] = pph_eval_unary,
    [PPH_NODE_HARD_SWISH] = pph_eval_unary,
    [PPH_NODE_IDENTITY] = pph_eval_identity,
    [PPH_NODE_LEAKY_RELU] = pph_eval_unary,
    [PPH_NODE_LOG] = pph_eval_unary,
    [PPH_NODE_NEG] = pph_eval_unary,
    [PPH_NODE_NOT] = pph_eval_unary,
    [PPH_NODE_RECIPROCAL] = pph_eval_unary,
    [PPH_NODE_RELU] = pph_eval_unary,
    [PPH_NODE_ROUND] = pph_eval_unary,
    [PPH_NODE_SIGMOID] = pph_eval_unary,
    [PPH_NODE_SIGN] = pph_eval_unary,
    [PPH_NODE_SIN] = pph_eval_unary,
    [PPH_NODE_SOFTPLUS] = pph_eval_unary,
    [PPH_NODE_SQRT] = pph_eval_unary,
    [PPH_NODE_TANH] = pph_eval_unary,
    [PPH_NODE_ADD] = pph_eval_binary,
    [PPH_NODE_AND] = pph_eval_logic,
    [PPH_NODE_DIV] = pph_eval_binary,
    [PPH_NODE_EQUAL] = pph_eval_compare,
    [PPH_NODE_GREATER] = pph_eval_compare,
    [PPH_NODE_GREATER_OR_EQUAL] = pph_eval_compare,
    [PPH_NODE_LESS] = pph_eval_compare,
    [PPH_NODE_LESS_OR_EQUAL] = pph_eval_compare,
    [PPH_NODE_MAX] = pph_eval_extreme,
    [PPH_NODE_MIN] = pph_eval_extreme,
    [PPH_NODE_MOD] = pph_eval_binary,
    [PPH_NODE_MUL] = pph_eval_binary,
    [PPH_NODE_OR] = pph_eval_logic,
    [PPH_NODE_POW] = pph_eval_pow,
    [PPH_NODE_PRELU] = pph_eval_binary,
    [PPH_NODE_SUB] = pph_eval_binary,
    [PPH_NODE_WHERE] = pph_eval_where,
    [PPH_NODE_AVERAGE_POOL] = pph_eval_pool,
    [PPH_NODE_BATCH_NORMALIZATION] = pph_eval_batch_normalization,
    [PPH_NODE_CONV] = pph_eval_conv,
    [PPH_NODE_CONV_TRANSPOSE] = pph_eval_conv_transpose,
    [PPH_NODE_DEPTH_TO_SPACE] = pph_eval_depth_to_space,
    [PPH_NODE_GLOBAL_AVERAGE_POOL] = pph_eval_global_pool,
    [PPH_NODE_GLOBAL_MAX_POOL] = pph_eval_global_pool,
    [PPH_NODE_MAX_POOL] = pph_eval_pool,
    [PPH_NODE_RESIZE] = pph_eval_resize,
    [PPH_NODE_SPACE_TO_DEPTH] = pph_eval_space_to_depth,
    [PPH_NODE_CONCAT] = pph_eval_concat,
    [PPH_NODE_EXPAND] = pph_eval_expand,
    [PPH_NODE_FLATTEN] = pph_eval_identity,
    [PPH_NODE_GATHER] = pph_eval_gather,
    [PPH_NODE_PAD] = pph_eval_pad,
    [PPH_NODE_RESHAPE] = pph_eval_identity,
    [PPH_NODE_SCATTER_ND] = pph_eval_scatter_nd,
    [PPH_NODE_SLICE] = pph_eval_slice,
    [PPH_NODE_SPLIT] = pph_eval_split,
    [PPH_NODE_SQUEEZE] = pph_eval_identity,
    [PPH_NODE_TILE] = pph_eval_tile,
    [PPH_NODE_TRANSPOSE] = pph_eval_transpose,
    [PPH_NODE_UNSQUEEZE] = pph_eval_identity,
    [PPH_NODE_RELAYOUT] = pph_eval_identity,
    [PPH_NODE_CONSTANT_OF_SHAPE] = pph_eval_constant_of_shape,
    [PPH_NODE_RANGE] = pph_eval_range,
    [PPH_NODE_SHAPE] = pph_eval_shape,
    [PPH_NODE_SIZE] = pph_eval_size,
    [PPH_NODE_GEMM] = pph_eval_gemm,
    [PPH_NODE_GRU] = pph_eval_gru,
    [PPH_NODE_MATMUL] = pph_eval_matmul,
    [PPH_NODE_REDUCE_MAX] = pph_eval_reduce,
    [PPH_NODE_REDUCE_MEAN] = pph_eval_reduce,
    [PPH_NODE_REDUCE_MIN] = pph_eval_reduce,
    [PPH_NODE_REDUCE_SUM] = pph_eval_reduce,
    [PPH_NODE_SOFTMAX] = pph_eval_softmax,
    [PPH_NODE_CUM_SUM] = pph_eval_cum_sum,
    [PPH_NODE_TOP_K] = pph_eval_top_k,
};

bool pph_eval_has(const pph_eval *eval, uint32_t slot) {
  return slot < eval->node->input_count &&
         eval->node->inputs[slot] != PPH_NO_VALUE;
}

bool pph_eval_has_elements(const pph_eval *eval, uint32_t slot) {
  return pph_eval_has(eval, slot) && pph_eval_count(&eval->inputs[slot]) > 0;
}

pph_status pph_eval_fail_type(const pph_eval *eval, pph_dtype type) {
  return pph_node_fail(eval->node, eval->error, PPH_UNSUPPORTED,
                       "%s is not implemented for element type %s",
                       pph_node_kind_find_info(eval->node->kind)->name,
                       pph_dtype_name(type));
}

size_t pph_eval_count(const pph_tensor *tensor) {
  size_t count;
  return pph_shape_count(&tensor->shape, &count) ? count : 0;
}

int32_t pph_eval_axis(int64_t axis, int32_t rank) {
  if (axis < 0 && axis >= -(int64_t)rank)
    axis += rank;
  return (int32_t)pph_max_i64(0, pph_min_i64(axis, rank - 1));
}

void pph_eval_strides(const pph_shape *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t i = shape->rank - 1; i >= 0; i--) {
    strides[i] = stride;
    /* An empty tensor's other dimensions may overflow; nobody walks it. */
    if (!pph_checked_mul_i64(stride, shape->dims[i], &stride))
      stride = 0;
  }
}

int64_t pph_eval_product(const pph_shape *shape, int32_t begin, int32_t end) {
  int64_t product = 1;
  for (int32_t i = begin; i < end; i++)
    if (!pph_checked_mul_i64(product, shape->dims[i], &product))
      return 0; /* only for an empty tensor */
  return product;
}

static void align_axes(pph_window *window) {
  int64_t *fields[] = {window->input,  window->output,   window->kernel,
                       window->stride, window->dilation, window->pad_begin,
                       window->pad_end};
  static const int64_t missing[] = {1, 1, 1, 1, 1, 0, 0};
  uint32_t shift = 3 - window->axes;
  for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
    for (uint32_t i = 3; i-- > 0;)
      fields[f][i] = i < shift ? missing[f] : fields[f][i - shift];
  window->axes = 3;
}

pph_status pph_eval_find_window(const pph_eval *eval, pph_window *window) {
  PPH_TRY(pph_shape_find_window(eval->graph, eval->node, window, eval->error));
  align_axes(window);
  return PPH_OK;
}

void pph_eval_split_index(int64_t flat, const int64_t lengths[3],
                          int64_t index[3]) {
  for (int i = 2; i >= 0; i--) {
    index[i] = flat % lengths[i];
    flat /= lengths[i];
  }
}

/* y < 0 ? slope * y : y, a slope per channel (axis 1). */
static pph_status apply_slopes(const pph_eval *eval) {
  const pph_tensor *output = &eval->outputs[0];
  const pph_attribute *slopes =
      pph_node_find_attribute(eval->node, PPH_ATTR_ACTIVATION_SLOPES);
  if (!slopes || output->shape.rank < 2 ||
      slopes->count != output->shape.dims[1])
    return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                         "activation_slopes are not one per channel");
  float *y = output->data;
  size_t count = pph_eval_count(output);
  size_t inner =
      (size_t)pph_eval_product(&output->shape, 2, output->shape.rank);
  for (size_t i = 0; i < count; i++)
    if (y[i] < 0)
      y[i] *= slopes->floats[i / inner % slopes->count];
  return PPH_OK;
}

static float activate(const pph_node *node, float x, float low, float high) {
  if (node->activation == PPH_ACTIVATION_LEAKY_RELU)
    return x < 0 ? low * x : x;
  x = x < low ? low : x;
  return x > high ? high : x;
}

static pph_status apply_activation(const pph_eval *eval) {
  const pph_node *node = eval->node;
  const pph_tensor *output = &eval->outputs[0];
  if (node->activation == PPH_ACTIVATION_NONE ||
      node->outputs[0] == PPH_NO_VALUE)
    return PPH_OK;
  if (output->type != PPH_F32)
    return pph_eval_fail_type(eval, output->type);
  if (node->activation == PPH_ACTIVATION_PRELU)
    return apply_slopes(eval);
  bool clamp = node->activation == PPH_ACTIVATION_CLAMP;
  float low =
      clamp ? pph_node_float(node, PPH_ATTR_ACTIVATION_MIN, -__builtin_inff())
            : pph_node_float(node, PPH_ATTR_ACTIVATION_ALPHA, 0.01f);
  float high = pph_node_float(node, PPH_ATTR_ACTIVATION_MAX, __builtin_inff());
  float *y = output->data;
  size_t count = pph_eval_count(output);
  for (size_t i = 0; i < count; i++)
    y[i] = activate(node, y[i], low, high);
  return PPH_OK;
}

pph_status pph_eval_node(const pph_graph *graph, const pph_node *node,
                         const pph_tensor *inputs, const pph_tensor *outputs,
                         pph_error *error) {
  pph_eval eval = {graph, node, inputs, outputs, error};
  if (!pph_eval_supports(node->kind))
    return pph_node_fail(node, error, PPH_UNSUPPORTED,
                         "the reference evaluator has no such kind");
  PPH_TRY(rules[node->kind](&eval));
  return apply_activation(&eval);
}

bool pph_eval_supports(pph_node_kind kind) {
  return (unsigned)kind < PPH_NODE_KIND_COUNT && rules[kind];
}
