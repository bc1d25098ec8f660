/* Quantized values as integers in f32: conversions and the end of sums. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "pte/xnn_import.h"

static float find_scale(const pph_payload_slot *slot) {
  return ((const pph_payload_per_tensor *)slot->quantization)->scale;
}

float pph_payload_round(const pph_payload_slot *slot, float number) {
  return rintf(number / find_scale(slot));
}

void pph_payload_find_limits(const pph_payload_step *step, float *low,
                             float *high) {
  const pph_payload_slot *slot = step->outputs[0];
  const pph_payload_per_tensor *whole = slot->quantization;
  const pph_payload_min_max *range = step->node->output_min_max;
  int32_t least = slot->tensor->datatype == PPH_PAYLOAD_Q8 ? -128 : 0;
  *low = (float)(least - whole->zero_point);
  *high = (float)(least + 255 - whole->zero_point);
  if (!range)
    return;
  *low = fminf(fmaxf(*low, pph_payload_round(slot, range->output_min)), *high);
  *high = fmaxf(fminf(*high, pph_payload_round(slot, range->output_max)), *low);
}

/* No change of floats. */
static pph_status dequantize(const pph_payload_step *step,
                             const pph_payload_slot *slot, pph_id *id) {
  return pph_payload_is_static(slot)
             ? pph_payload_emit_number(step, PPH_NODE_MUL, *id,
                                       find_scale(slot), id)
             : PPH_OK;
}

/* Rounds and clamps what is already counted in output 0's scale. */
static pph_status round_off(const pph_payload_step *step, pph_id *id) {
  float low, high;
  pph_payload_find_limits(step, &low, &high);
  PPH_TRY(pph_payload_emit(step, PPH_NODE_ROUND, id, 1, NULL, id));
  return pph_payload_clip(step, low, high, id);
}

/* The same where the output is floats; output_min_max is applied. */
static pph_status quantize(const pph_payload_step *step, pph_id *id) {
  const pph_payload_slot *slot = step->outputs[0];
  if (!pph_payload_is_static(slot))
    return pph_payload_clamp(step, id);
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_MUL, *id,
                                  1 / find_scale(slot), id));
  return round_off(step, id);
}

/* `*id` and a constant per channel, in place; `data` is in the arena. */
static pph_status with_channels(const pph_payload_step *step,
                                pph_node_kind kind, const float *data,
                                uint32_t count, uint32_t trailing,
                                pph_id *id) {
  pph_shape shape = {.rank = 1 + (int32_t)trailing, .dims = {count}};
  pph_id ids[2] = {*id, 0};
  for (uint32_t i = 0; i < trailing; i++)
    shape.dims[1 + i] = 1;
  PPH_TRY(pph_payload_add_floats(step, data, &shape, NULL, &ids[1]));
  return pph_payload_emit(step, kind, ids, 2, NULL, id);
}

/* What a sum counts in, in what the output counts in. */
static pph_status finish_static(const pph_payload_step *step,
                                uint32_t trailing, pph_id *id) {
  const float *scales;
  uint32_t count;
  float input = find_scale(step->inputs[0]);
  float output = find_scale(step->outputs[0]);
  PPH_TRY(pph_payload_scales(step, 1, &scales, &count));
  float *factors = pph_payload_allocate(step, count);
  if (!factors)
    return pph_fail_memory(step->importer->error);
  for (uint32_t i = 0; i < count; i++)
    factors[i] = input * scales[i] / output;
  PPH_TRY(
      with_channels(step, PPH_NODE_MUL, factors, count, trailing, id));
  return round_off(step, id);
}

/* The scales of the input's rows, those of the channels, then the bias. */
static pph_status finish_dynamic(const pph_payload_step *step,
                                 uint32_t trailing, pph_id *id) {
  const pph_payload_importer *importer = step->importer;
  const float *scales;
  uint32_t count;
  pph_id rows =
      importer->scales[step->inputs[0] - importer->index->slots];
  pph_id ids[2] = {*id, rows};
  PPH_TRY(pph_payload_emit(step, PPH_NODE_MUL, ids, 2, NULL, id));
  if (step->inputs[1]->tensor->datatype == PPH_PAYLOAD_QC8) {
    PPH_TRY(pph_payload_scales(step, 1, &scales, &count));
    PPH_TRY(with_channels(step, PPH_NODE_MUL, scales, count, trailing, id));
  }
  if (step->inputs[2]) {
    size_t channels = pph_payload_count(step->inputs[2]);
    float *bias = pph_payload_allocate(step, channels);
    if (!bias)
      return pph_fail_memory(importer->error);
    PPH_TRY(pph_payload_numbers(step, 2, bias, NULL));
    PPH_TRY(with_channels(step, PPH_NODE_ADD, bias, (uint32_t)channels,
                          trailing, id));
  }
  return pph_payload_clamp(step, id);
}

static pph_payload_types find_types(const pph_payload_step *step) {
  return pph_payload_find_rule(step->node->xnode_union.type)->types;
}

pph_status pph_payload_take(const pph_payload_step *step, uint32_t slot,
                            pph_id *id) {
  PPH_TRY(pph_payload_input(step, slot, id));
  return find_types(step) == PPH_PAYLOAD_COMPUTES
             ? dequantize(step, step->inputs[slot], id)
             : PPH_OK;
}

pph_status pph_payload_settle(const pph_payload_step *step, uint32_t trailing,
                              pph_id *id) {
  pph_payload_types types = find_types(step);
  if (types == PPH_PAYLOAD_COMPUTES)
    return quantize(step, id);
  if (types != PPH_PAYLOAD_SUMS || pph_payload_is_float(step->inputs[0]))
    return pph_payload_clamp(step, id);
  return pph_payload_is_static(step->inputs[0])
             ? finish_static(step, trailing, id)
             : finish_dynamic(step, trailing, id);
}

/* Quantizing in the run: each row gets the scale and the zero point that put
   its least and its greatest number, and 0, among -128 to 127. */

static pph_status pair(const pph_payload_step *step, pph_node_kind kind,
                       pph_id a, pph_id b, pph_id *id) {
  const pph_id ids[2] = {a, b};
  return pph_payload_emit(step, kind, ids, 2, NULL, id);
}

/* The least or greatest of each row, or 0 beyond it. */
static pph_status find_extreme(const pph_payload_step *step, bool greatest,
                               pph_id x, const int64_t *axes, uint32_t count,
                               pph_id *id) {
  pph_graph *graph = step->importer->graph;
  pph_id ids[2] = {x, 0};
  pph_node *node;
  PPH_TRY(pph_graph_add_ints(graph, NULL, axes, count, &ids[1],
                             step->importer->error));
  PPH_TRY(pph_payload_emit(step,
                           greatest ? PPH_NODE_REDUCE_MAX
                                    : PPH_NODE_REDUCE_MIN,
                           ids, 2, &node, id));
  PPH_TRY(pph_node_set_int(graph, node, PPH_ATTR_KEEPDIMS, 1,
                           step->importer->error));
  return pph_payload_emit_number(
      step, greatest ? PPH_NODE_MAX : PPH_NODE_MIN, *id, 0, id);
}

/* 255 over the range; 1 where that is empty. */
static pph_status find_inverse(const pph_payload_step *step, pph_id low,
                               pph_id high, pph_id *id) {
  pph_id range, empty, one, ids[3];
  PPH_TRY(pair(step, PPH_NODE_SUB, high, low, &range));
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_EQUAL, range, 0, &empty));
  /* 0 * range + 255 is 255 of the right shape. */
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_MUL, range, 0, &one));
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_ADD, one, 255, &ids[0]));
  PPH_TRY(pair(step, PPH_NODE_DIV, ids[0], range, &ids[2]));
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_ADD, one, 1, &ids[1]));
  ids[0] = empty;
  return pph_payload_emit(step, PPH_NODE_WHERE, ids, 3, NULL, id);
}

/* From the end of the range that leaves the smaller error. */
static pph_status find_zero(const pph_payload_step *step, pph_id low,
                            pph_id high, pph_id inverse, pph_id *id) {
  pph_id ends[2], ids[3], error;
  PPH_TRY(pair(step, PPH_NODE_MUL, low, inverse, &ends[0]));
  PPH_TRY(pair(step, PPH_NODE_MUL, high, inverse, &ends[1]));
  for (int i = 0; i < 2; i++) {
    pph_id negative;
    PPH_TRY(pph_payload_emit(step, PPH_NODE_NEG, &ends[i], 1, NULL,
                             &negative));
    PPH_TRY(pph_payload_emit_number(step, PPH_NODE_ADD, negative,
                                    i ? 127 : -128, &ids[1 + i]));
    PPH_TRY(pph_payload_emit_number(step, PPH_NODE_ADD, ends[i],
                                    i ? 127 : -128, &ends[i]));
  }
  PPH_TRY(pair(step, PPH_NODE_ADD, ends[0], ends[1], &error));
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_GREATER, error, 0, &ids[0]));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_WHERE, ids, 3, NULL, id));
  PPH_TRY(pph_payload_clip(step, -128, 127, id));
  return pph_payload_emit(step, PPH_NODE_ROUND, id, 1, NULL, id);
}

/* round(x * inverse), kept in [-128 - zero, 127 - zero]. */
static pph_status round_rows(const pph_payload_step *step, pph_id x,
                             pph_id inverse, pph_id zero, pph_id *id) {
  pph_id negative, limit;
  PPH_TRY(pair(step, PPH_NODE_MUL, x, inverse, id));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_ROUND, id, 1, NULL, id));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_NEG, &zero, 1, NULL, &negative));
  PPH_TRY(
      pph_payload_emit_number(step, PPH_NODE_ADD, negative, -128, &limit));
  PPH_TRY(pair(step, PPH_NODE_MAX, *id, limit, id));
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_ADD, negative, 127, &limit));
  return pair(step, PPH_NODE_MIN, *id, limit, id);
}

static pph_status quantize_rows(const pph_payload_step *step, pph_id x) {
  pph_payload_importer *importer = step->importer;
  const pph_payload_dynamic *rows = step->outputs[0]->quantization;
  uint32_t rank = step->inputs[0]->tensor->dims.count;
  uint32_t count = (uint32_t)rows->num_nonbatch_dims;
  int64_t axes[PPH_PAYLOAD_MOST_DIMS];
  pph_id low, high, inverse, zero, output;
  if (count > rank)
    return pph_payload_fail(step, PPH_BAD_MODEL,
                            "rows of %u dimensions, its input has %u", count,
                            rank);
  for (uint32_t i = 0; i < count; i++)
    axes[i] = rank - count + i;
  PPH_TRY(find_extreme(step, false, x, axes, count, &low));
  PPH_TRY(find_extreme(step, true, x, axes, count, &high));
  PPH_TRY(find_inverse(step, low, high, &inverse));
  PPH_TRY(find_zero(step, low, high, inverse, &zero));
  PPH_TRY(round_rows(step, x, inverse, zero, &output));
  PPH_TRY(pph_payload_emit(
      step, PPH_NODE_RECIPROCAL, &inverse, 1, NULL,
      &importer->scales[step->outputs[0] - importer->index->slots]));
  pph_payload_finish(step, 0, output);
  return PPH_OK;
}

static pph_status cast(const pph_payload_step *step, pph_dtype type,
                       pph_id *id) {
  pph_node *node;
  PPH_TRY(pph_payload_emit(step, PPH_NODE_CAST, id, 1, &node, id));
  return pph_node_set_int(step->importer->graph, node, PPH_ATTR_TO, type,
                          step->importer->error);
}

pph_status pph_payload_make_convert(const pph_payload_step *step) {
  int16_t type = step->outputs[0]->tensor->datatype;
  pph_id id;
  PPH_TRY(pph_payload_input(step, 0, &id));
  if (type == PPH_PAYLOAD_QD8)
    return quantize_rows(step, id);
  PPH_TRY(dequantize(step, step->inputs[0], &id));
  if (type == PPH_PAYLOAD_F16) {
    PPH_TRY(cast(step, PPH_F16, &id));
    PPH_TRY(cast(step, PPH_F32, &id));
  }
  PPH_TRY(quantize(step, &id));
  pph_payload_finish(step, 0, id);
  return PPH_OK;
}
