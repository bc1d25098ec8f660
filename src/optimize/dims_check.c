#include "optimize/dims_check.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "optimize/nearest.h"

bool pph_payload_is_unary(uint32_t kind) {
  static const bool kinds[PPH_PAYLOAD_KIND_COUNT] = {
      [PPH_PAYLOAD_SIGMOID] = true,     [PPH_PAYLOAD_CLAMP] = true,
      [PPH_PAYLOAD_FLOOR] = true,       [PPH_PAYLOAD_CEILING] = true,
      [PPH_PAYLOAD_HARD_SWISH] = true,  [PPH_PAYLOAD_SQUARE_ROOT] = true,
      [PPH_PAYLOAD_LEAKY_RELU] = true,  [PPH_PAYLOAD_NEGATE] = true,
      [PPH_PAYLOAD_SQUARE] = true,      [PPH_PAYLOAD_ELU] = true,
      [PPH_PAYLOAD_ABS] = true,         [PPH_PAYLOAD_LOG] = true,
      [PPH_PAYLOAD_RECIPROCAL_ROOT] = true, [PPH_PAYLOAD_GELU] = true,
      [PPH_PAYLOAD_TANH] = true,        [PPH_PAYLOAD_EXP] = true,
      [PPH_PAYLOAD_SIN] = true,         [PPH_PAYLOAD_COS] = true};
  return kinds[kind];
}

bool pph_payload_is_concat(uint32_t kind) {
  return (kind >= PPH_PAYLOAD_CONCATENATE_2 &&
          kind <= PPH_PAYLOAD_CONCATENATE_4) ||
         kind == PPH_PAYLOAD_CONCATENATE_5;
}

/* perm has 0 to rank - 1, each once, and turns one's lengths into the other's.
   Both have the same rank. */
static bool transposes(const pph_payload_transpose *table,
                       const pph_payload_tensor *input,
                       const pph_payload_tensor *output) {
  uint32_t seen = 0, rank = input->num_dims;
  if (table->perm.count != rank)
    return false;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t axis = table->perm.at[i];
    if (axis >= rank || (seen >> axis & 1) ||
        output->dims.at[i] != input->dims.at[axis])
      return false;
    seen |= 1u << axis;
  }
  return true;
}

static bool divides(uint32_t part, uint32_t whole) {
  return part && whole && whole % part == 0;
}

/* A mark that is not ours must not lead outside. */
static bool is_nearest(const pph_payload_resize *table,
                       const pph_payload_tensor *input,
                       const pph_payload_tensor *output) {
  uint32_t axis = pph_nearest_axis(table);
  return axis + 1 < input->num_dims &&
         divides(input->dims.at[axis], table->new_height) &&
         divides(input->dims.at[axis + 1], table->new_width) &&
         output->dims.at[axis] == table->new_height &&
         output->dims.at[axis + 1] == table->new_width;
}

/* Exporters give what is quantized at run time other dimensions than it has:
   of such a result only the rank is known. */
static bool same_dims(const pph_payload_tensor *input,
                      const pph_payload_tensor *output) {
  return output->datatype == PPH_PAYLOAD_QD8 ||
         memcmp(input->dims.at, output->dims.at,
                output->num_dims * sizeof *output->dims.at) == 0;
}

static bool holds(const pph_payload_index *index,
                  const pph_payload_node *node) {
  const void *table = node->xnode_union.value;
  uint32_t kind = node->xnode_union.type;
  bool keeps = kind == PPH_PAYLOAD_CONVERT || pph_payload_is_unary(kind);
  bool nearest = pph_nearest_is(node);
  pph_payload_uses uses;
  pph_payload_find_uses(node, &uses);
  if (kind != PPH_PAYLOAD_TRANSPOSE && !keeps &&
      !pph_payload_is_concat(kind) && !nearest)
    return true;
  const pph_payload_tensor *output =
      pph_payload_find(index, uses.outputs[0])->tensor;
  const pph_payload_tensor *input =
      pph_payload_find(index, uses.inputs[0])->tensor;
  for (uint32_t i = 0; i < uses.input_count; i++)
    if (uses.inputs[i] != PPH_PAYLOAD_NONE &&
        pph_payload_find(index, uses.inputs[i])->tensor->num_dims !=
            output->num_dims)
      return false;
  if (kind == PPH_PAYLOAD_TRANSPOSE)
    return transposes(table, input, output);
  if (nearest)
    return is_nearest(table, input, output);
  if (keeps)
    return same_dims(input, output);
  return ((const pph_payload_concatenate *)table)->axis < output->num_dims;
}

pph_status pph_payload_check_dims(const pph_payload *payload,
                                   const pph_payload_index *index,
                                   pph_error *error) {
  char where[64];
  for (uint32_t i = 0; i < payload->graph->xnodes.count; i++) {
    const pph_payload_node *node = &payload->graph->xnodes.at[i];
    if (holds(index, node))
      continue;
    snprintf(where, sizeof where, "payload's node %u XNN%s", i,
             pph_payload_kind_name(node->xnode_union.type));
    return pph_fail(error, PPH_UNSUPPORTED, where,
                    "its values do not have the dimensions that it gives them");
  }
  return PPH_OK;
}
