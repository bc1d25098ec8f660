/* Resize, DepthToSpace and Pad. */
#include <math.h>
#include <string.h>

#include "backend/xnnpack_kind.h"
#include "base/fail.h"

/* Positions are computed in f32: beyond this an asymmetric one could round up
   to the input's length, outside the input. */
enum { MAX_RESIZE = 1 << 20 };

/* [N,C,W] or [N,C,H,W] of channels last, sizes and channels of the output. */
static bool find_image(const pph_graph *graph, const pph_node *node,
                       pph_xnn_image *image) {
  const pph_value *input = pph_node_find_input(graph, node, 0);
  const pph_value *output = pph_xnn_output(graph, node);
  int32_t rank = input->shape.rank;
  if (rank < 3 || rank > 4 || output->shape.rank != rank ||
      !pph_xnn_channels_last(input) || !pph_xnn_channels_last(output))
    return false;
  *image = (pph_xnn_image){.batch = (size_t)input->shape.dims[0],
                           .input = {1, 1},
                           .output = {1, 1},
                           .channels = (size_t)output->shape.dims[1]};
  for (int32_t i = 2; i < rank; i++) {
    image->input[i + 2 - rank] = (size_t)input->shape.dims[i];
    image->output[i + 2 - rank] = (size_t)output->shape.dims[i];
  }
  return true;
}

static bool is_text(const pph_node *node, pph_attribute_key key,
                    const char *fallback, const char *wanted) {
  return strcmp(pph_node_text(node, key, fallback), wanted) == 0;
}

/* XNNPACK divides lengths where ONNX divides by the scale that it is given:
   the same when scale * input is the output, up to rounding. */
static bool scales_are_ratios(const pph_graph *graph, const pph_node *node) {
  pph_tensor scales;
  size_t count;
  uint32_t axis_count;
  if (!pph_node_find_input(graph, node, 2))
    return true;
  if (!pph_xnn_find_floats(graph, node, 2, &scales) ||
      !pph_shape_count(&scales.shape, &count))
    return false;
  const pph_shape *input = &pph_node_find_input(graph, node, 0)->shape;
  const pph_shape *output = &pph_xnn_output(graph, node)->shape;
  const int64_t *axes = pph_node_ints(node, PPH_ATTR_AXES, &axis_count);
  for (size_t i = 0; i < count; i++) {
    int64_t axis = axes && i < axis_count ? axes[i] : (int64_t)i;
    axis += axis < 0 ? input->rank : 0;
    if (axis < 0 || axis >= input->rank)
      return false;
    double exact = (double)output->dims[axis];
    double scaled =
        (double)pph_xnn_float_at(scales.data, i) * (double)input->dims[axis];
    if (!(fabs(scaled - exact) <= exact * 0x1p-22))
      return false;
  }
  return true;
}

static bool find_corners(const pph_graph *graph, const pph_node *node,
                         pph_xnn_image *image) {
  static const struct {
    const char *mode;
    pph_xnn_corners corners;
  } modes[] = {{"half_pixel", PPH_XNN_HALF_PIXEL},
               {"pytorch_half_pixel", PPH_XNN_HALF_PIXEL},
               {"align_corners", PPH_XNN_ALIGN_CORNERS},
               {"asymmetric", PPH_XNN_ASYMMETRIC}};
  const pph_attribute_key key = PPH_ATTR_COORDINATE_TRANSFORMATION_MODE;
  size_t row = 0;
  while (row < 4 && !is_text(node, key, "half_pixel", modes[row].mode))
    row++;
  if (row == 4)
    return false;
  image->corners = modes[row].corners;
  for (int i = 0; i < 2; i++) /* there pytorch's takes position 0 */
    if (row == 1 && image->output[i] == 1 && image->input[i] > 1)
      return false;
  return scales_are_ratios(graph, node);
}

static bool find_resize(const pph_graph *graph, const pph_node *node,
                        pph_xnn_image *image) {
  if (!is_text(node, PPH_ATTR_MODE, "nearest", "linear") ||
      !is_text(node, PPH_ATTR_KEEP_ASPECT_RATIO_POLICY, "stretch", "stretch") ||
      pph_node_int(node, PPH_ATTR_ANTIALIAS, 0) ||
      pph_node_int(node, PPH_ATTR_EXCLUDE_OUTSIDE, 0) ||
      !find_image(graph, node, image) || !find_corners(graph, node, image))
    return false;
  const pph_shape *input = &pph_node_find_input(graph, node, 0)->shape;
  for (int i = 0; i < 2; i++)
    if (image->input[i] > MAX_RESIZE || image->output[i] > MAX_RESIZE)
      return false;
  return input->dims[0] == pph_xnn_output(graph, node)->shape.dims[0] &&
         input->dims[1] == (int64_t)image->channels;
}

bool pph_xnn_supports_resize(const pph_graph *graph, const pph_node *node) {
  pph_xnn_image image;
  return find_resize(graph, node, &image);
}

pph_status pph_xnn_prepare_resize(pph_xnn_job *job, pph_error *error) {
  pph_xnn_image image;
  if (!find_resize(job->graph, job->node, &image))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's resize");
  size_t pixels = pph_xnn_times(image.output[0], image.output[1]);
  size_t bytes = pph_xnn_times(pixels, 4 * sizeof(void *) + 2 * sizeof(float));
  PPH_TRY(pph_xnn_check_bytes(job->context->heap, "indirection buffer", bytes,
                              error));
  job->step->algorithm = "xnnpack.resize_bilinear";
  return pph_xnn_create_resize(&image, &job->state->op, error);
}

/* Square blocks of images; the others move as well without XNNPACK. */
static bool find_depth_to_space(const pph_graph *graph, const pph_node *node,
                                pph_xnn_image *image) {
  uint32_t count;
  const int64_t *block = pph_node_ints(node, PPH_ATTR_BLOCKSIZE, &count);
  if (!block || count != 2 || block[0] != block[1] || block[0] < 2 ||
      block[0] > UINT16_MAX || !is_text(node, PPH_ATTR_MODE, "DCR", "DCR") ||
      pph_node_find_input(graph, node, 0)->shape.rank != 4 ||
      !find_image(graph, node, image))
    return false;
  image->block = (uint32_t)block[0];
  return true;
}

bool pph_xnn_supports_depth_to_space(const pph_graph *graph,
                                     const pph_node *node) {
  pph_xnn_image image;
  return find_depth_to_space(graph, node, &image);
}

pph_status pph_xnn_prepare_depth_to_space(pph_xnn_job *job, pph_error *error) {
  pph_xnn_image image;
  if (!find_depth_to_space(job->graph, job->node, &image))
    return pph_fail(error, PPH_UNSUPPORTED, NULL,
                    "not XNNPACK's depth to space");
  job->step->algorithm = "xnnpack.depth_to_space";
  return pph_xnn_create_depth_to_space(&image, &job->state->op, error);
}

/* Pads per logical axis, by the constant inputs pads and axes. */
static bool read_pads(const pph_graph *graph, const pph_node *node,
                      int32_t rank, int64_t before[PPH_MAX_RANK],
                      int64_t after[PPH_MAX_RANK]) {
  int64_t pads[2 * PPH_MAX_RANK], axes[PPH_MAX_RANK];
  size_t pad_count, axis_count = (size_t)rank;
  for (int32_t i = 0; i < rank; i++)
    before[i] = after[i] = 0, axes[i] = i;
  if (!pph_node_read_ints(graph, node, 1, pads, 2 * PPH_MAX_RANK, &pad_count) ||
      (pph_node_find_input(graph, node, 3) &&
       !pph_node_read_ints(graph, node, 3, axes, PPH_MAX_RANK, &axis_count)) ||
      pad_count != 2 * axis_count)
    return false;
  for (size_t i = 0; i < axis_count; i++) {
    int64_t axis = axes[i] + (axes[i] < 0 ? rank : 0);
    if (axis < 0 || axis >= rank || pads[i] < 0 || pads[axis_count + i] < 0)
      return false;
    before[axis] = pads[i];
    after[axis] = pads[axis_count + i];
  }
  return true;
}

static bool find_pad(const pph_graph *graph, const pph_node *node,
                     pph_xnn_pad *pad) {
  const pph_value *input = pph_node_find_input(graph, node, 0);
  const pph_value *output = pph_xnn_output(graph, node);
  int64_t before[PPH_MAX_RANK], after[PPH_MAX_RANK];
  int32_t rank = input->shape.rank, order[PPH_MAX_RANK];
  pph_tensor value;
  if (rank < 1 || rank > PPH_XNN_MAX_RANK || output->shape.rank != rank ||
      (rank > 2 && input->layout != output->layout) ||
      !is_text(node, PPH_ATTR_MODE, "constant", "constant") ||
      !pph_xnn_optional_floats(graph, node, 2, 1) ||
      !read_pads(graph, node, rank, before, after))
    return false;
  *pad = (pph_xnn_pad){.rank = (size_t)rank};
  if (pph_xnn_find_floats(graph, node, 2, &value))
    pad->value = pph_xnn_float_at(value.data, 0);
  pph_layout_order(input, order);
  for (int32_t i = 0; i < rank; i++) {
    int32_t axis = order[i];
    if (before[axis] + input->shape.dims[axis] + after[axis] !=
        output->shape.dims[axis])
      return false;
    pad->input[i] = (size_t)input->shape.dims[axis];
    pad->before[i] = (size_t)before[axis];
    pad->after[i] = (size_t)after[axis];
  }
  return true;
}

bool pph_xnn_supports_pad(const pph_graph *graph, const pph_node *node) {
  pph_xnn_pad pad;
  return find_pad(graph, node, &pad);
}

pph_status pph_xnn_prepare_pad(pph_xnn_job *job, pph_error *error) {
  pph_xnn_pad pad;
  if (!find_pad(job->graph, job->node, &pad))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's pad");
  job->step->algorithm = "xnnpack.constant_pad";
  return pph_xnn_create_pad(&pad, &job->state->op, error);
}
