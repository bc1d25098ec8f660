/* Unary and binary operators, PRelu and Softmax. */
#include <math.h>
#include <string.h>

#include "backend/xnnpack_kind.h"
#include "base/fail.h"

/* A unary kind and where its parameters come from. */
typedef bool find_parameters(const pph_graph *graph, const pph_node *node,
                             float parameters[2]);

static bool find_none(const pph_graph *graph, const pph_node *node,
                      float parameters[2]) {
  return true;
}

static bool find_positive(const pph_graph *graph, const pph_node *node,
                          float parameters[2]) {
  parameters[0] = 0;
  parameters[1] = INFINITY;
  return true;
}

static bool find_alpha(const pph_graph *graph, const pph_node *node,
                       float parameters[2]) {
  parameters[0] = pph_node_float(node, PPH_ATTR_ALPHA, 1);
  return parameters[0] > 0 && isnormal(parameters[0]);
}

static bool find_slope(const pph_graph *graph, const pph_node *node,
                       float parameters[2]) {
  parameters[0] = pph_node_float(node, PPH_ATTR_ALPHA, 0.01f);
  return isfinite(parameters[0]);
}

/* Bounds that are omitted or constant. */
static bool find_bounds(const pph_graph *graph, const pph_node *node,
                        float parameters[2]) {
  parameters[0] = -INFINITY;
  parameters[1] = INFINITY;
  for (uint32_t i = 0; i < 2; i++) {
    pph_tensor bound;
    if (!pph_node_find_input(graph, node, i + 1))
      continue;
    if (!pph_xnn_optional_floats(graph, node, i + 1, 1) ||
        !pph_xnn_find_floats(graph, node, i + 1, &bound))
      return false;
    parameters[i] = pph_xnn_float_at(bound.data, 0);
  }
  return pph_xnn_legal_range(parameters[0], parameters[1]);
}

static const struct {
  pph_node_kind kind;
  pph_xnn_unary unary;
  find_parameters *find;
  const char *algorithm;
} unaries[] = {
    {PPH_NODE_ABS, PPH_XNN_ABS, find_none, "xnnpack.abs"},
    {PPH_NODE_CEIL, PPH_XNN_CEILING, find_none, "xnnpack.ceiling"},
    {PPH_NODE_CLIP, PPH_XNN_CLAMP, find_bounds, "xnnpack.clamp"},
    {PPH_NODE_ELU, PPH_XNN_ELU, find_alpha, "xnnpack.elu"},
    {PPH_NODE_FLOOR, PPH_XNN_FLOOR, find_none, "xnnpack.floor"},
    {PPH_NODE_HARD_SWISH, PPH_XNN_HARD_SWISH, find_none, "xnnpack.hardswish"},
    {PPH_NODE_LEAKY_RELU, PPH_XNN_LEAKY_RELU, find_slope, "xnnpack.leaky_relu"},
    {PPH_NODE_NEG, PPH_XNN_NEGATE, find_none, "xnnpack.negate"},
    {PPH_NODE_RELU, PPH_XNN_CLAMP, find_positive, "xnnpack.clamp"},
    {PPH_NODE_ROUND, PPH_XNN_ROUND, find_none, "xnnpack.bankers_rounding"},
    {PPH_NODE_SIGMOID, PPH_XNN_SIGMOID, find_none, "xnnpack.sigmoid"},
    {PPH_NODE_SQRT, PPH_XNN_SQUARE_ROOT, find_none, "xnnpack.square_root"},
};

/* Index into unaries; their number if there is none. */
static size_t find_unary(pph_node_kind kind) {
  size_t i = 0;
  while (i < sizeof unaries / sizeof unaries[0] && unaries[i].kind != kind)
    i++;
  return i;
}

bool pph_xnn_supports_unary(const pph_graph *graph, const pph_node *node) {
  float parameters[2];
  size_t row = find_unary(node->kind);
  return row < sizeof unaries / sizeof unaries[0] &&
         pph_xnn_same_memory(pph_node_find_input(graph, node, 0),
                             pph_xnn_output(graph, node)) &&
         unaries[row].find(graph, node, parameters);
}

pph_status pph_xnn_prepare_unary(pph_xnn_job *job, pph_error *error) {
  float parameters[2] = {0};
  size_t row = find_unary(job->node->kind), count;
  if (!unaries[row].find(job->graph, job->node, parameters) ||
      !pph_shape_count(&pph_xnn_output(job->graph, job->node)->shape, &count))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's operator");
  job->step->algorithm = unaries[row].algorithm;
  return pph_xnn_create_unary(unaries[row].unary, count, parameters,
                              &job->state->op, error);
}

static const struct {
  pph_node_kind kind;
  pph_xnn_binary binary;
  bool clamps;
  const char *algorithm;
} binaries[] = {
    {PPH_NODE_ADD, PPH_XNN_ADD, true, "xnnpack.add"},
    {PPH_NODE_DIV, PPH_XNN_DIVIDE, true, "xnnpack.divide"},
    {PPH_NODE_MAX, PPH_XNN_MAXIMUM, false, "xnnpack.maximum"},
    {PPH_NODE_MIN, PPH_XNN_MINIMUM, false, "xnnpack.minimum"},
    {PPH_NODE_MUL, PPH_XNN_MULTIPLY, true, "xnnpack.multiply"},
    {PPH_NODE_SUB, PPH_XNN_SUBTRACT, true, "xnnpack.subtract"},
};

/* Axes in memory order. A constant's data is plain whatever its layout. */
static void find_order(const pph_value *value, int32_t *order) {
  pph_value plain = *value;
  if (value->data)
    plain.layout = PPH_LAYOUT_PLAIN;
  pph_layout_order(&plain, order);
}

/* The operand's dimensions in the order of `output`'s memory, 1 where it
   repeats. False when its own memory has another order: the axes along which
   it is longer than 1 must follow each other as they do in the output. */
static bool fit_operand(const pph_value *operand, const pph_value *output,
                        size_t dims[PPH_MAX_RANK]) {
  int32_t own[PPH_MAX_RANK], order[PPH_MAX_RANK];
  int32_t missing = output->shape.rank - operand->shape.rank, next = 0;
  if (missing < 0)
    return false;
  find_order(operand, own);
  pph_layout_order(output, order);
  for (int32_t i = 0; i < output->shape.rank; i++) {
    int32_t axis = order[i] - missing;
    int64_t dim = axis < 0 ? 1 : operand->shape.dims[axis];
    if (dim != 1 && dim != output->shape.dims[order[i]])
      return false;
    dims[i] = (size_t)dim;
    if (dim == 1)
      continue;
    while (next < operand->shape.rank && operand->shape.dims[own[next]] == 1)
      next++;
    if (next == operand->shape.rank || own[next++] != axis)
      return false;
  }
  return true;
}

/* Joins neighbouring axes that repeat alike and drops those of length 1. */
static bool compress(const size_t *a, const size_t *b, int32_t rank,
                     pph_xnn_broadcast *shapes) {
  int previous = -1; /* which operands repeat along the last axis kept */
  shapes->rank = 0;
  for (int32_t i = 0; i < rank; i++) {
    int repeats = (a[i] == 1 ? 1 : 0) + (b[i] == 1 ? 2 : 0);
    if (repeats == 3)
      continue;
    if (repeats != previous) {
      if (shapes->rank == PPH_XNN_MAX_RANK)
        return false;
      shapes->a[shapes->rank] = shapes->b[shapes->rank] = 1;
      shapes->rank++;
    }
    shapes->a[shapes->rank - 1] *= a[i];
    shapes->b[shapes->rank - 1] *= b[i];
    previous = repeats;
  }
  if (shapes->rank == 0) {
    shapes->a[0] = shapes->b[0] = 1;
    shapes->rank = 1;
  }
  return true;
}

static bool find_broadcast(const pph_graph *graph, const pph_node *node,
                           pph_xnn_broadcast *shapes) {
  size_t dims[2][PPH_MAX_RANK];
  const pph_value *output = pph_xnn_output(graph, node);
  *shapes = (pph_xnn_broadcast){.min = -INFINITY, .max = INFINITY};
  if (node->input_count != 2)
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    const pph_value *operand = pph_node_find_input(graph, node, i);
    if (!operand || operand->type != PPH_F32 ||
        !pph_shape_known(&operand->shape) ||
        !fit_operand(operand, output, dims[i]))
      return false;
  }
  return compress(dims[0], dims[1], output->shape.rank, shapes);
}

bool pph_xnn_supports_binary(const pph_graph *graph, const pph_node *node) {
  pph_xnn_broadcast shapes;
  return find_broadcast(graph, node, &shapes);
}

pph_status pph_xnn_prepare_binary(pph_xnn_job *job, pph_error *error) {
  pph_xnn_broadcast shapes;
  size_t row = 0;
  while (binaries[row].kind != job->node->kind)
    row++;
  if (!find_broadcast(job->graph, job->node, &shapes))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's operator");
  if (binaries[row].clamps) {
    shapes.min = job->min;
    shapes.max = job->max;
  }
  job->state->slots[1] = 1;
  job->step->algorithm = binaries[row].algorithm;
  return pph_xnn_create_binary(binaries[row].binary, &shapes, &job->state->op,
                               error);
}

/* Length of the value's last axis in memory. */
static size_t find_channels(const pph_value *value) {
  int32_t order[PPH_MAX_RANK];
  if (value->shape.rank == 0)
    return 1;
  pph_layout_order(value, order);
  return (size_t)value->shape.dims[order[value->shape.rank - 1]];
}

/* One constant slope, or one for each position of the last axis in memory. */
static bool find_slopes(const pph_graph *graph, const pph_node *node,
                        pph_tensor *slopes, size_t *count) {
  const pph_value *input = pph_node_find_input(graph, node, 0);
  size_t dims[PPH_MAX_RANK];
  if (!pph_xnn_same_memory(input, pph_xnn_output(graph, node)) ||
      !pph_xnn_find_floats(graph, node, 1, slopes) ||
      !fit_operand(pph_node_find_input(graph, node, 1), input, dims) ||
      !pph_shape_count(&slopes->shape, count))
    return false;
  return *count == 1 ||
         (*count == find_channels(input) && dims[input->shape.rank - 1] > 1);
}

bool pph_xnn_supports_prelu(const pph_graph *graph, const pph_node *node) {
  pph_tensor slopes;
  size_t count;
  return find_slopes(graph, node, &slopes, &count);
}

pph_status pph_xnn_prepare_prelu(pph_xnn_job *job, pph_error *error) {
  pph_tensor slopes;
  size_t count, total;
  const pph_value *input = pph_node_find_input(job->graph, job->node, 0);
  if (!find_slopes(job->graph, job->node, &slopes, &count) ||
      !pph_shape_count(&input->shape, &total))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's prelu");
  size_t channels = find_channels(input);
  float *kept = pph_heap_allocate(job->context->heap, channels, sizeof *kept);
  if (!kept)
    return pph_fail_memory(error);
  job->state->kept = kept;
  for (size_t i = 0; i < channels; i++)
    kept[i] = pph_xnn_float_at(slopes.data, count == 1 ? 0 : i);
  job->step->algorithm = "xnnpack.prelu";
  return pph_xnn_create_prelu(total / channels, channels, kept, &job->state->op,
                              error);
}

bool pph_xnn_supports_softmax(const pph_graph *graph, const pph_node *node) {
  const pph_value *input = pph_node_find_input(graph, node, 0);
  int32_t rank = input->shape.rank, order[PPH_MAX_RANK];
  if (rank < 1 || !pph_xnn_same_memory(input, pph_xnn_output(graph, node)))
    return false;
  int64_t axis = pph_node_int(node, PPH_ATTR_AXIS, -1);
  pph_layout_order(input, order);
  return (axis < 0 ? axis + rank : axis) == order[rank - 1];
}

pph_status pph_xnn_prepare_softmax(pph_xnn_job *job, pph_error *error) {
  const pph_value *input = pph_node_find_input(job->graph, job->node, 0);
  size_t channels = find_channels(input), total;
  if (!pph_shape_count(&input->shape, &total))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's softmax");
  job->step->algorithm = "xnnpack.softmax";
  return pph_xnn_create_softmax(total / channels, channels, &job->state->op,
                                error);
}
