/* What XNNPACK computes in any order of dimensions. */
#include <string.h>

#include "base/fail.h"
#include "pte/xnn_import.h"

static pph_status finish(const pph_payload_step *step, pph_id id) {
  PPH_TRY(pph_payload_clamp(step, &id));
  pph_payload_finish(step, 0, id);
  return PPH_OK;
}

/* One node of `kind` that reads all inputs. */
static pph_status emit(const pph_payload_step *step, pph_node_kind kind,
                       pph_node **node, pph_id *output) {
  pph_id ids[PPH_PAYLOAD_MOST_INPUTS];
  for (uint32_t i = 0; i < step->input_count; i++)
    PPH_TRY(pph_payload_input(step, i, &ids[i]));
  return pph_payload_emit(step, kind, ids, step->input_count, node, output);
}

pph_status pph_payload_make_plain(const pph_payload_step *step) {
  pph_id output;
  PPH_TRY(emit(step,
               pph_payload_find_rule(step->node->xnode_union.type)->kind, NULL,
               &output));
  return finish(step, output);
}

static pph_status make_alpha(const pph_payload_step *step, pph_node_kind kind,
                             float alpha) {
  pph_node *node;
  pph_id output;
  PPH_TRY(emit(step, kind, &node, &output));
  PPH_TRY(pph_node_set_float(step->importer->graph, node, PPH_ATTR_ALPHA,
                             alpha, step->importer->error));
  return finish(step, output);
}

pph_status pph_payload_make_leaky(const pph_payload_step *step) {
  const pph_payload_leaky *fields = step->table;
  return make_alpha(step, PPH_NODE_LEAKY_RELU, fields->negative_slope);
}

pph_status pph_payload_make_elu(const pph_payload_step *step) {
  const pph_payload_elu *fields = step->table;
  return make_alpha(step, PPH_NODE_ELU, fields->alpha);
}

pph_status pph_payload_make_square(const pph_payload_step *step) {
  pph_id ids[2], output;
  PPH_TRY(pph_payload_input(step, 0, &ids[0]));
  ids[1] = ids[0];
  PPH_TRY(pph_payload_emit(step, PPH_NODE_MUL, ids, 2, NULL, &output));
  return finish(step, output);
}

pph_status pph_payload_make_reciprocal_root(const pph_payload_step *step) {
  pph_id root, output;
  PPH_TRY(emit(step, PPH_NODE_SQRT, NULL, &root));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_RECIPROCAL, &root, 1, NULL,
                           &output));
  return finish(step, output);
}

static pph_status with_number(const pph_payload_step *step, pph_node_kind kind,
                              pph_id left, float number, pph_id *output) {
  const pph_tensor scalar = {PPH_F32, {0}, &number};
  pph_id ids[2] = {left, 0};
  PPH_TRY(pph_graph_add_constant(step->importer->graph, NULL, &scalar, &ids[1],
                                 step->importer->error));
  return pph_payload_emit(step, kind, ids, 2, NULL, output);
}

/* x * (1 + erf(x / sqrt 2)) / 2 */
pph_status pph_payload_make_gelu(const pph_payload_step *step) {
  pph_id x, id, ids[2], output;
  PPH_TRY(pph_payload_input(step, 0, &x));
  PPH_TRY(with_number(step, PPH_NODE_MUL, x, 0.70710678f, &id));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_ERF, &id, 1, NULL, &ids[1]));
  PPH_TRY(with_number(step, PPH_NODE_ADD, ids[1], 1, &ids[1]));
  PPH_TRY(with_number(step, PPH_NODE_MUL, x, 0.5f, &ids[0]));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_MUL, ids, 2, NULL, &output));
  return finish(step, output);
}

pph_status pph_payload_make_softmax(const pph_payload_step *step) {
  pph_node *node;
  pph_id output;
  PPH_TRY(emit(step, PPH_NODE_SOFTMAX, &node, &output));
  PPH_TRY(pph_node_set_int(step->importer->graph, node, PPH_ATTR_AXIS, -1,
                           step->importer->error));
  return finish(step, output);
}

/* Among fp32 values it changes nothing. */
pph_status pph_payload_make_convert(const pph_payload_step *step) {
  pph_id output;
  PPH_TRY(emit(step, PPH_NODE_IDENTITY, NULL, &output));
  return finish(step, output);
}

/* A list of the node, which must have one number per dimension of the input
   where `rank` is not 0. */
static pph_status read_list(const pph_payload_step *step, const uint32_t *list,
                            uint32_t count, uint32_t rank, int64_t *ints) {
  if (!list || count > PPH_PAYLOAD_MOST_DIMS || (rank && count != rank))
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "a list has %u numbers, must have %u", count,
                            rank ? rank : PPH_PAYLOAD_MOST_DIMS);
  for (uint32_t i = 0; i < count; i++)
    ints[i] = list[i];
  return PPH_OK;
}

static uint32_t input_rank(const pph_payload_step *step) {
  return step->inputs[0]->tensor->dims.count;
}

pph_status pph_payload_make_transpose(const pph_payload_step *step) {
  const pph_payload_transpose *fields = step->table;
  int64_t perm[PPH_PAYLOAD_MOST_DIMS];
  pph_node *node;
  pph_id output;
  PPH_TRY(read_list(step, fields->perm.at, fields->perm.count,
                    input_rank(step), perm));
  PPH_TRY(emit(step, PPH_NODE_TRANSPOSE, &node, &output));
  PPH_TRY(pph_node_set_ints(step->importer->graph, node, PPH_ATTR_PERM, perm,
                            fields->perm.count, step->importer->error));
  return finish(step, output);
}

/* A node that reads its input and integers. */
static pph_status with_ints(const pph_payload_step *step, pph_node_kind kind,
                            const int64_t *const *lists, uint32_t lists_count,
                            const uint32_t *lengths) {
  pph_id ids[5], output;
  PPH_TRY(pph_payload_input(step, 0, &ids[0]));
  for (uint32_t i = 0; i < lists_count; i++)
    PPH_TRY(pph_graph_add_ints(step->importer->graph, NULL, lists[i],
                               lengths[i], &ids[1 + i],
                               step->importer->error));
  PPH_TRY(pph_payload_emit(step, kind, ids, 1 + lists_count, NULL, &output));
  return finish(step, output);
}

/* 0 in the payload is the dimension that follows from the others. */
pph_status pph_payload_make_reshape(const pph_payload_step *step) {
  const pph_payload_reshape *fields = step->table;
  int64_t dims[PPH_PAYLOAD_MOST_DIMS];
  const int64_t *list = dims;
  uint32_t count = fields->new_shape.count, inferred = 0;
  PPH_TRY(read_list(step, fields->new_shape.at, count, 0, dims));
  for (uint32_t i = 0; i < count; i++)
    if (dims[i] == 0) {
      dims[i] = -1;
      inferred++;
    }
  if (inferred > 1)
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "%u dimensions shall follow from the others, at "
                            "most one can",
                            inferred);
  return with_ints(step, PPH_NODE_RESHAPE, &list, 1, &count);
}

pph_status pph_payload_make_slice(const pph_payload_step *step) {
  const pph_payload_slice *fields = step->table;
  int64_t begins[PPH_PAYLOAD_MOST_DIMS], ends[PPH_PAYLOAD_MOST_DIMS];
  const int64_t *lists[] = {begins, ends};
  uint32_t rank = input_rank(step);
  const uint32_t lengths[] = {rank, rank};
  PPH_TRY(read_list(step, fields->offsets.at, fields->offsets.count, rank,
                    begins));
  PPH_TRY(read_list(step, fields->sizes.at, fields->sizes.count, rank, ends));
  for (uint32_t i = 0; i < rank; i++) {
    if (ends[i] == 0)
      return pph_payload_fail(step, PPH_UNSUPPORTED,
                              "a size of 0 is not supported");
    ends[i] += begins[i];
  }
  return with_ints(step, PPH_NODE_SLICE, lists, 2, lengths);
}

pph_status pph_payload_make_pad(const pph_payload_step *step) {
  const pph_payload_pad *fields = step->table;
  int64_t pads[2 * PPH_PAYLOAD_MOST_DIMS];
  uint32_t rank = input_rank(step);
  float number = fields->padding_value;
  const pph_tensor scalar = {PPH_F32, {0}, &number};
  pph_graph *graph = step->importer->graph;
  pph_id ids[3], output;
  PPH_TRY(read_list(step, fields->pre_paddings.at, fields->pre_paddings.count,
                    rank, pads));
  PPH_TRY(read_list(step, fields->post_paddings.at,
                    fields->post_paddings.count, rank, pads + rank));
  PPH_TRY(pph_payload_input(step, 0, &ids[0]));
  PPH_TRY(pph_graph_add_ints(graph, NULL, pads, 2 * (size_t)rank, &ids[1],
                             step->importer->error));
  PPH_TRY(pph_graph_add_constant(graph, NULL, &scalar, &ids[2],
                                 step->importer->error));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_PAD, ids, 3, NULL, &output));
  return finish(step, output);
}

pph_status pph_payload_make_concatenate(const pph_payload_step *step) {
  const pph_payload_concatenate *fields = step->table;
  pph_node *node;
  pph_id output;
  /* Newer writers count from the end, in two's complement. */
  int32_t axis = (int32_t)fields->axis;
  PPH_TRY(emit(step, PPH_NODE_CONCAT, &node, &output));
  PPH_TRY(pph_node_set_int(step->importer->graph, node, PPH_ATTR_AXIS, axis,
                           step->importer->error));
  return finish(step, output);
}

static pph_status swap_last(const pph_payload_step *step, pph_id id,
                            uint32_t rank, pph_id *swapped) {
  int64_t perm[PPH_PAYLOAD_MOST_DIMS];
  pph_node *node;
  if (rank < 2)
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "a matrix has %u dimensions, must have 2", rank);
  for (uint32_t i = 0; i < rank; i++)
    perm[i] = i;
  perm[rank - 1] = rank - 2;
  perm[rank - 2] = rank - 1;
  PPH_TRY(pph_payload_emit(step, PPH_NODE_TRANSPOSE, &id, 1, &node, swapped));
  return pph_node_set_ints(step->importer->graph, node, PPH_ATTR_PERM, perm,
                           rank, step->importer->error);
}

/* input * matrix of slot 1, whose last axes are swapped first if asked. */
static pph_status multiply(const pph_payload_step *step, bool swap,
                           pph_id *output) {
  pph_id ids[2];
  PPH_TRY(pph_payload_input(step, 0, &ids[0]));
  PPH_TRY(pph_payload_input(step, 1, &ids[1]));
  if (swap)
    PPH_TRY(swap_last(step, ids[1], step->inputs[1]->tensor->dims.count,
                      &ids[1]));
  return pph_payload_emit(step, PPH_NODE_MATMUL, ids, 2, NULL, output);
}

/* The filter is [out, in], or [in, out] with the flag. */
pph_status pph_payload_make_linear(const pph_payload_step *step) {
  const pph_payload_linear *fields = step->table;
  pph_id ids[2], output;
  if (step->inputs[1]->tensor->dims.count != 2)
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "its filter has %u dimensions, must have 2",
                            step->inputs[1]->tensor->dims.count);
  PPH_TRY(multiply(step, !fields->flags, &output));
  if (step->inputs[2]) {
    ids[0] = output;
    PPH_TRY(pph_payload_input(step, 2, &ids[1]));
    PPH_TRY(pph_payload_emit(step, PPH_NODE_ADD, ids, 2, NULL, &output));
  }
  return finish(step, output);
}

pph_status pph_payload_make_matmul(const pph_payload_step *step) {
  const pph_payload_binary *fields = step->table;
  pph_id output;
  PPH_TRY(multiply(step, fields->flags != 0, &output));
  return finish(step, output);
}
