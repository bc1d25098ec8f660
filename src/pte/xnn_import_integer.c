/* Sums and products of quantized values with XNNPACK's integers: the same
   multipliers and roundings, so the same results. All products and sums here
   are integers below 2^24, which f32 has exactly. */
#include <math.h>

#include "base/fail.h"
#include "pte/xnn_import.h"

static float scale_of(const pph_payload_slot *slot) {
  return ((const pph_payload_per_tensor *)slot->quantization)->scale;
}

static bool is_integer(const pph_payload_step *step) {
  bool all = pph_payload_is_static(step->outputs[0]);
  for (uint32_t i = 0; i < step->input_count; i++)
    all &= pph_payload_is_static(step->inputs[i]);
  return all;
}

static pph_status pair(const pph_payload_step *step, pph_node_kind kind,
                       pph_id a, pph_id b, pph_id *id) {
  const pph_id ids[] = {a, b};
  return pph_payload_emit(step, kind, ids, 2, NULL, id);
}

/* Rounded by `kind` and clamped, it is the step's output. */
static pph_status finish(const pph_payload_step *step, pph_node_kind kind,
                         pph_id id) {
  float low, high;
  pph_payload_find_limits(step, &low, &high);
  PPH_TRY(pph_payload_emit(step, kind, &id, 1, NULL, &id));
  PPH_TRY(pph_payload_clip(step, low, high, &id));
  pph_payload_finish(step, 0, id);
  return PPH_OK;
}

/* a * factors[0] + b * factors[1] */
static pph_status weigh(const pph_payload_step *step, const pph_id *ids,
                        const float *factors, pph_id *id) {
  pph_id parts[2];
  for (int i = 0; i < 2; i++)
    PPH_TRY(pph_payload_emit_number(step, PPH_NODE_MUL, ids[i], factors[i],
                                    &parts[i]));
  return pair(step, PPH_NODE_ADD, parts[0], parts[1], id);
}

/* floor((a * m + b * n + half) / 2^shift) where the larger multiplier has 21
   bits: too many for f32, so their lower 10 are summed and shifted apart. */
static pph_status add_shifted(const pph_payload_step *step, const pph_id *ids,
                              const float *scales, int shift) {
  enum { LOWER = 1 << 10 };
  float upper[2], lower[2];
  pph_id low, high;
  for (int i = 0; i < 2; i++) {
    float multiplier = rintf(ldexpf(scales[i], shift));
    upper[i] = floorf(multiplier / LOWER);
    lower[i] = multiplier - upper[i] * LOWER;
  }
  PPH_TRY(weigh(step, ids, lower, &low));
  PPH_TRY(
      pph_payload_emit_number(step, PPH_NODE_MUL, low, 1.0f / LOWER, &low));
  PPH_TRY(pph_payload_emit(step, PPH_NODE_FLOOR, &low, 1, NULL, &low));
  PPH_TRY(weigh(step, ids, upper, &high));
  PPH_TRY(pair(step, PPH_NODE_ADD, high, low, &high));
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_ADD, high,
                                  ldexpf(1, shift - 11), &high));
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_MUL, high,
                                  ldexpf(1, 10 - shift), &high));
  return finish(step, PPH_NODE_FLOOR, high);
}

pph_status pph_payload_make_sum(const pph_payload_step *step) {
  float scales[2], largest;
  int exponent;
  pph_id ids[2];
  if (!is_integer(step))
    return pph_payload_make_plain(step);
  for (uint32_t i = 0; i < 2; i++)
    scales[i] = scale_of(step->inputs[i]) / scale_of(step->outputs[0]);
  largest = fmaxf(scales[0], scales[1]);
  /* XNNPACK takes no others. */
  if (!(scales[0] >= 0x1p-10f && scales[1] >= 0x1p-10f && largest < 256))
    return pph_payload_make_plain(step);
  for (uint32_t i = 0; i < 2; i++)
    PPH_TRY(pph_payload_input(step, i, &ids[i]));
  (void)frexpf(largest, &exponent); /* one above that of its bits */
  if (step->node->xnode_union.type == PPH_PAYLOAD_SUBTRACT)
    scales[1] = -scales[1];
  return add_shifted(step, ids, scales, 20 - (exponent - 1));
}

pph_status pph_payload_make_product(const pph_payload_step *step) {
  pph_id ids[2], id;
  if (!is_integer(step))
    return pph_payload_make_plain(step);
  float scale = scale_of(step->inputs[0]) * scale_of(step->inputs[1]) /
                scale_of(step->outputs[0]);
  for (uint32_t i = 0; i < 2; i++)
    PPH_TRY(pph_payload_input(step, i, &ids[i]));
  PPH_TRY(pair(step, PPH_NODE_MUL, ids[0], ids[1], &id));
  PPH_TRY(pph_payload_emit_number(step, PPH_NODE_MUL, id, scale, &id));
  return finish(step, PPH_NODE_ROUND, id);
}
