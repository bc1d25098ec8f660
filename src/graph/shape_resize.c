/* Resize. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape_rules.h"

static bool is_one_of(const char *text, const char *const *legal) {
  for (; *legal; legal++)
    if (strcmp(text, *legal) == 0)
      return true;
  return false;
}

static const struct {
  pph_attribute_key key;
  const char *fallback;
  const char *legal[8];
} choices[] = {
    {PPH_ATTR_MODE, "nearest", {"nearest", "linear", "cubic", NULL}},
    {PPH_ATTR_COORDINATE_TRANSFORMATION_MODE,
     "half_pixel",
     {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
      "align_corners", "asymmetric", "tf_crop_and_resize", NULL}},
    {PPH_ATTR_NEAREST_MODE,
     "round_prefer_floor",
     {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL}},
    {PPH_ATTR_KEEP_ASPECT_RATIO_POLICY,
     "stretch",
     {"stretch", "not_larger", "not_smaller", NULL}},
};

pph_status pph_rule_check_resize(const pph_graph *graph, const pph_node *node,
                                 pph_error *error) {
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
    const char *text =
        pph_node_text(node, choices[i].key, choices[i].fallback);
    if (!is_one_of(text, choices[i].legal))
      return pph_node_fail(node, error, PPH_BAD_MODEL,
                           "%s is \"%.40s\", which is not one of ONNX's",
                           pph_attribute_key_name(choices[i].key), text);
  }
  return PPH_OK;
}

/* The axes that scales and sizes speak of. */
static pph_status find_axes(const pph_shape_at *at, int32_t rank,
                            int64_t *axes, size_t *count) {
  uint32_t given;
  const int64_t *named = pph_node_ints(at->node, PPH_ATTR_AXES, &given);
  if (!named) {
    for (int32_t i = 0; i < rank; i++)
      axes[i] = i;
    *count = (size_t)rank;
    return PPH_OK;
  }
  if ((int32_t)given > rank)
    return pph_rule_bad(at, "axes has %u entries, at most %d", given, rank);
  bool seen[PPH_MAX_RANK] = {false};
  for (uint32_t i = 0; i < given; i++) {
    PPH_TRY(pph_rule_axis(at, named[i], rank, &axes[i]));
    if (seen[axes[i]])
      return pph_rule_bad(at, "axis %lld is named twice", (long long)axes[i]);
    seen[axes[i]] = true;
  }
  *count = given;
  return PPH_OK;
}

/* An input that is absent or has no elements counts as not given. */
static bool is_given(const pph_shape_at *at, uint32_t slot) {
  const pph_value *value = pph_rule_input(at, slot);
  size_t count;
  return value && pph_shape_count(&value->shape, &count) && count > 0;
}

static pph_status scale_shape(const pph_shape_at *at, const int64_t *axes,
                              size_t count, pph_shape *shape) {
  pph_tensor scales;
  size_t given;
  if (!pph_node_find_constant(at->graph, at->node, 2, &scales))
    return pph_node_fail(at->node, at->error, PPH_UNSUPPORTED,
                         "the shape depends on scales, which are not known "
                         "before the run");
  if (scales.type != PPH_F32 || scales.shape.rank != 1 ||
      !pph_shape_count(&scales.shape, &given) || given != count)
    return pph_rule_bad(at, "scales must be %zu f32 values", count);
  for (size_t i = 0; i < count; i++) {
    float scale = ((const float *)scales.data)[i];
    if (!(scale > 0) || isinf(scale))
      return pph_rule_bad(at, "scales[%zu] is %g, must be above 0", i,
                          (double)scale);
    /* The floor of the f32 product, as ONNX Runtime. */
    float length = floorf((float)shape->dims[axes[i]] * scale);
    if (!(length < 1e12f))
      return pph_rule_bad(at, "scales[%zu] is %g, which is too large", i,
                          (double)scale);
    shape->dims[axes[i]] = (int64_t)length;
  }
  return PPH_OK;
}

/* keep_aspect_ratio_policy: one scale for all axes, the least (not_larger) or
   the greatest, and sizes rounded. */
static pph_status keep_aspect(const pph_shape_at *at, const pph_shape *x,
                              const int64_t *axes, size_t count,
                              int64_t *sizes) {
  const char *policy = pph_node_text(
      at->node, PPH_ATTR_KEEP_ASPECT_RATIO_POLICY, "stretch");
  if (strcmp(policy, "stretch") == 0)
    return PPH_OK;
  bool largest = strcmp(policy, "not_smaller") == 0;
  float scale = 0;
  for (size_t i = 0; i < count; i++) {
    float one = (float)sizes[i] / (float)x->dims[axes[i]];
    if (i == 0 || (largest ? one > scale : one < scale))
      scale = one;
  }
  for (size_t i = 0; i < count; i++) {
    float length = roundf(scale * (float)x->dims[axes[i]]);
    if (!(length < 1e12f))
      return pph_rule_bad(at, "axis %lld becomes %g by "
                              "keep_aspect_ratio_policy, which is too large",
                          (long long)axes[i], (double)length);
    sizes[i] = (int64_t)length;
  }
  return PPH_OK;
}

static pph_status size_shape(const pph_shape_at *at, const int64_t *axes,
                             size_t count, pph_shape *shape) {
  int64_t sizes[PPH_MAX_RANK];
  size_t given;
  PPH_TRY(pph_rule_ints(at, 3, sizes, PPH_MAX_RANK, &given));
  if (given != count)
    return pph_rule_bad(at, "sizes has %zu entries, must have %zu", given,
                        count);
  for (size_t i = 0; i < count; i++) {
    if (sizes[i] < 1 || sizes[i] > (int64_t)1 << 40)
      return pph_rule_bad(at, "sizes[%zu] is %lld, must be at least 1", i,
                          (long long)sizes[i]);
    if (shape->dims[axes[i]] == 0)
      return pph_rule_bad(at, "axis %lld is empty", (long long)axes[i]);
  }
  PPH_TRY(keep_aspect(at, shape, axes, count, sizes));
  for (size_t i = 0; i < count; i++)
    shape->dims[axes[i]] = sizes[i];
  return PPH_OK;
}

pph_status pph_rule_resize(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  int64_t axes[PPH_MAX_RANK];
  size_t count = 0;
  pph_shape shape = x->shape;
  PPH_TRY(pph_rule_check_resize(at->graph, at->node, at->error));
  PPH_TRY(pph_rule_rank(at, 0, 1, PPH_MAX_RANK));
  PPH_TRY(find_axes(at, shape.rank, axes, &count));
  bool by_scale = is_given(at, 2), by_size = is_given(at, 3);
  if (by_scale == by_size)
    return pph_rule_bad(at, "%s scales and sizes are given, must be one",
                        by_scale ? "both" : "neither");
  if (by_scale)
    PPH_TRY(scale_shape(at, axes, count, &shape));
  else
    PPH_TRY(size_shape(at, axes, count, &shape));
  return pph_rule_set_output(at, 0, x->type, &shape);
}
