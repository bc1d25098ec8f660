/* XNNPACK's API of 2022: create, then setup with shapes and pointers. */
#include <math.h>
#include <string.h>
#include <xnnpack.h>

#include "backend/xnnpack_api.h"

#if !PPH_XNNPACK_RESHAPE

typedef void (*function)(void);
typedef enum xnn_status (*setup_univector)(xnn_operator_t, size_t,
                                           const float *, float *,
                                           pthreadpool_t);
typedef enum xnn_status (*setup_window)(xnn_operator_t, size_t, size_t, size_t,
                                        const float *, float *, pthreadpool_t);
typedef enum xnn_status (*setup_elementwise)(xnn_operator_t, size_t,
                                             const size_t *, size_t,
                                             const size_t *, const float *,
                                             const float *, float *,
                                             pthreadpool_t);

static int set_univector(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  setup_univector call = (setup_univector)op->function;
  return (int)call(op->handle, op->batch, pointers->a, pointers->output,
                   op->pool);
}

static int set_window(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  setup_window call = (setup_window)op->function;
  return (int)call(op->handle, op->batch, op->input[0], op->input[1],
                   pointers->a, pointers->output, op->pool);
}

static int set_elementwise(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  setup_elementwise call = (setup_elementwise)op->function;
  return (int)call(op->handle, op->rank, op->a, op->rank, op->b, pointers->a,
                   pointers->b, pointers->output, op->pool);
}

static void keep_window(pph_xnn_op *op, const pph_xnn_window *window,
                        function call) {
  op->batch = window->batch;
  memcpy(op->input, window->input, sizeof op->input);
  memcpy(op->adjustment, window->adjustment, sizeof op->adjustment);
  op->function = call;
  op->setup = set_window;
}

pph_status pph_xnn_create_convolution(const pph_xnn_window *window,
                                      const float *kernel, const float *bias,
                                      pph_xnn_op *op, pph_error *error) {
  const pph_xnn_window *w = window;
  keep_window(op, w, (function)xnn_setup_convolution2d_nhwc_f32);
  enum xnn_status status = xnn_create_convolution2d_nhwc_f32(
      w->pad_begin[0], w->pad_end[1], w->pad_end[0], w->pad_begin[1],
      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->dilation[0],
      w->dilation[1], w->groups, w->group_in, w->group_out,
      w->groups * w->group_in, w->groups * w->group_out, kernel, bias, w->min,
      w->max, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a convolution", error);
}

static int set_deconvolution(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  return (int)xnn_setup_deconvolution2d_nhwc_f32(
      op->handle, op->batch, op->input[0], op->input[1], op->adjustment[0],
      op->adjustment[1], pointers->a, pointers->output, op->pool);
}

pph_status pph_xnn_create_deconvolution(const pph_xnn_window *window,
                                        const float *kernel, const float *bias,
                                        pph_xnn_op *op, pph_error *error) {
  const pph_xnn_window *w = window;
  keep_window(op, w, NULL);
  op->setup = set_deconvolution;
  enum xnn_status status = xnn_create_deconvolution2d_nhwc_f32(
      w->pad_begin[0], w->pad_end[1], w->pad_end[0], w->pad_begin[1],
      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->dilation[0],
      w->dilation[1], w->groups, w->group_in, w->group_out,
      w->groups * w->group_in, w->groups * w->group_out, kernel, bias, w->min,
      w->max, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a deconvolution", error);
}

pph_status pph_xnn_create_max_pooling(const pph_xnn_window *window,
                                      pph_xnn_op *op, pph_error *error) {
  const pph_xnn_window *w = window;
  keep_window(op, w, (function)xnn_setup_max_pooling2d_nhwc_f32);
  enum xnn_status status = xnn_create_max_pooling2d_nhwc_f32(
      w->pad_begin[0], w->pad_end[1], w->pad_end[0], w->pad_begin[1],
      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->dilation[0],
      w->dilation[1], w->group_in, w->group_in, w->group_in, w->min, w->max, 0,
      &op->handle);
  return pph_xnn_finish(op, (int)status, "a max pooling", error);
}

pph_status pph_xnn_create_average_pooling(const pph_xnn_window *window,
                                          pph_xnn_op *op, pph_error *error) {
  const pph_xnn_window *w = window;
  keep_window(op, w, (function)xnn_setup_average_pooling2d_nhwc_f32);
  enum xnn_status status = xnn_create_average_pooling2d_nhwc_f32(
      w->pad_begin[0], w->pad_end[1], w->pad_end[0], w->pad_begin[1],
      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->group_in,
      w->group_in, w->group_in, w->min, w->max, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "an average pooling", error);
}

static int set_mean(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  return (int)xnn_setup_global_average_pooling_nwc_f32(
      op->handle, op->batch, op->input[1], pointers->a, pointers->output,
      op->pool);
}

pph_status pph_xnn_create_mean(size_t batch, size_t width, size_t channels,
                               pph_xnn_op *op, pph_error *error) {
  op->batch = batch;
  op->input[1] = width;
  op->setup = set_mean;
  enum xnn_status status = xnn_create_global_average_pooling_nwc_f32(
      channels, channels, channels, -INFINITY, INFINITY, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a mean", error);
}

pph_status pph_xnn_create_product(const pph_xnn_product *product,
                                  const float *kernel, const float *bias,
                                  pph_xnn_op *op, pph_error *error) {
  op->batch = product->rows;
  op->function = (function)xnn_setup_fully_connected_nc_f32;
  op->setup = set_univector;
  enum xnn_status status = xnn_create_fully_connected_nc_f32(
      product->in, product->out, product->in, product->out, kernel, bias,
      product->min, product->max,
      product->in_major ? XNN_FLAG_TRANSPOSE_WEIGHTS : 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a matrix product", error);
}

static enum xnn_status create_clamp(float min, float max, xnn_operator_t *op) {
  return xnn_create_clamp_nc_f32(1, 1, 1, min, max, 0, op);
}
static enum xnn_status create_elu(float alpha, float unused,
                                  xnn_operator_t *op) {
  return xnn_create_elu_nc_f32(1, 1, 1, alpha, 0, op);
}
static enum xnn_status create_leaky_relu(float slope, float unused,
                                         xnn_operator_t *op) {
  return xnn_create_leaky_relu_nc_f32(1, 1, 1, slope, 0, op);
}

/* One has parameters, the other has not. */
static const struct {
  enum xnn_status (*create)(size_t, size_t, size_t, uint32_t, xnn_operator_t *);
  enum xnn_status (*create_with)(float, float, xnn_operator_t *);
  setup_univector setup;
} unaries[PPH_XNN_UNARY_COUNT] = {
    [PPH_XNN_ABS] = {xnn_create_abs_nc_f32, NULL, xnn_setup_abs_nc_f32},
    [PPH_XNN_CEILING] = {xnn_create_ceiling_nc_f32, NULL,
                         xnn_setup_ceiling_nc_f32},
    [PPH_XNN_CLAMP] = {NULL, create_clamp, xnn_setup_clamp_nc_f32},
    [PPH_XNN_ELU] = {NULL, create_elu, xnn_setup_elu_nc_f32},
    [PPH_XNN_FLOOR] = {xnn_create_floor_nc_f32, NULL, xnn_setup_floor_nc_f32},
    [PPH_XNN_HARD_SWISH] = {xnn_create_hardswish_nc_f32, NULL,
                            xnn_setup_hardswish_nc_f32},
    [PPH_XNN_LEAKY_RELU] = {NULL, create_leaky_relu,
                            xnn_setup_leaky_relu_nc_f32},
    [PPH_XNN_NEGATE] = {xnn_create_negate_nc_f32, NULL,
                        xnn_setup_negate_nc_f32},
    [PPH_XNN_ROUND] = {xnn_create_bankers_rounding_nc_f32, NULL,
                       xnn_setup_bankers_rounding_nc_f32},
    [PPH_XNN_SIGMOID] = {xnn_create_sigmoid_nc_f32, NULL,
                         xnn_setup_sigmoid_nc_f32},
    [PPH_XNN_SQUARE_ROOT] = {xnn_create_square_root_nc_f32, NULL,
                             xnn_setup_square_root_nc_f32},
};

pph_status pph_xnn_create_unary(pph_xnn_unary kind, size_t count,
                                const float parameters[2], pph_xnn_op *op,
                                pph_error *error) {
  op->batch = count; /* of one channel each: one contiguous vector */
  op->function = (function)unaries[kind].setup;
  op->setup = set_univector;
  enum xnn_status status = unaries[kind].create
                               ? unaries[kind].create(1, 1, 1, 0, &op->handle)
                               : unaries[kind].create_with(
                                     parameters[0], parameters[1], &op->handle);
  return pph_xnn_finish(op, (int)status, "a unary operator", error);
}

static enum xnn_status create_maximum(float min, float max, uint32_t flags,
                                      xnn_operator_t *op) {
  return xnn_create_maximum_nd_f32(flags, op);
}
static enum xnn_status create_minimum(float min, float max, uint32_t flags,
                                      xnn_operator_t *op) {
  return xnn_create_minimum_nd_f32(flags, op);
}

static const struct {
  enum xnn_status (*create)(float, float, uint32_t, xnn_operator_t *);
  setup_elementwise setup;
} binaries[PPH_XNN_BINARY_COUNT] = {
    [PPH_XNN_ADD] = {xnn_create_add_nd_f32, xnn_setup_add_nd_f32},
    [PPH_XNN_DIVIDE] = {xnn_create_divide_nd_f32, xnn_setup_divide_nd_f32},
    [PPH_XNN_MAXIMUM] = {create_maximum, xnn_setup_maximum_nd_f32},
    [PPH_XNN_MINIMUM] = {create_minimum, xnn_setup_minimum_nd_f32},
    [PPH_XNN_MULTIPLY] = {xnn_create_multiply_nd_f32,
                          xnn_setup_multiply_nd_f32},
    [PPH_XNN_SUBTRACT] = {xnn_create_subtract_nd_f32,
                          xnn_setup_subtract_nd_f32},
};

pph_status pph_xnn_create_binary(pph_xnn_binary kind,
                                 const pph_xnn_broadcast *shapes,
                                 pph_xnn_op *op, pph_error *error) {
  op->rank = shapes->rank;
  memcpy(op->a, shapes->a, sizeof op->a);
  memcpy(op->b, shapes->b, sizeof op->b);
  op->function = (function)binaries[kind].setup;
  op->setup = set_elementwise;
  enum xnn_status status =
      binaries[kind].create(shapes->min, shapes->max, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a binary operator", error);
}

pph_status pph_xnn_create_prelu(size_t batch, size_t channels,
                                const float *slopes, pph_xnn_op *op,
                                pph_error *error) {
  op->batch = batch;
  op->function = (function)xnn_setup_prelu_nc_f32;
  op->setup = set_univector;
  enum xnn_status status = xnn_create_prelu_nc_f32(channels, channels, channels,
                                                   slopes, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a prelu", error);
}

pph_status pph_xnn_create_softmax(size_t batch, size_t channels, pph_xnn_op *op,
                                  pph_error *error) {
  op->batch = batch;
  op->function = (function)xnn_setup_softmax_nc_f32;
  op->setup = set_univector;
  enum xnn_status status =
      xnn_create_softmax_nc_f32(channels, channels, channels, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a softmax", error);
}

static int set_resize(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  return (int)xnn_setup_resize_bilinear2d_nhwc_f32(
      op->handle, op->batch, op->input[0], op->input[1], op->output[0],
      op->output[1], pointers->a, pointers->output, op->pool);
}

pph_status pph_xnn_create_resize(const pph_xnn_image *image, pph_xnn_op *op,
                                 pph_error *error) {
  static const uint32_t flags[] = {
      [PPH_XNN_HALF_PIXEL] = 0,
      [PPH_XNN_ALIGN_CORNERS] = XNN_FLAG_ALIGN_CORNERS,
      [PPH_XNN_ASYMMETRIC] = XNN_FLAG_TENSORFLOW_LEGACY_MODE,
  };
  op->batch = image->batch;
  memcpy(op->input, image->input, sizeof op->input);
  memcpy(op->output, image->output, sizeof op->output);
  op->setup = set_resize;
  enum xnn_status status = xnn_create_resize_bilinear2d_nhwc_f32(
      image->channels, image->channels, image->channels, flags[image->corners],
      &op->handle);
  return pph_xnn_finish(op, (int)status, "a resize", error);
}

static int set_depth_to_space(pph_xnn_op *op,
                              const pph_xnn_pointers *pointers) {
  return (int)xnn_setup_depth_to_space_nhwc_x32(
      op->handle, op->batch, op->input[0], op->input[1], pointers->a,
      pointers->output, op->pool);
}

pph_status pph_xnn_create_depth_to_space(const pph_xnn_image *image,
                                         pph_xnn_op *op, pph_error *error) {
  op->batch = image->batch;
  memcpy(op->input, image->input, sizeof op->input);
  op->setup = set_depth_to_space;
  enum xnn_status status = xnn_create_depth_to_space_nhwc_x32(
      image->channels, image->channels * image->block * image->block,
      image->channels, image->block, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a depth to space", error);
}

static int set_pad(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  return (int)xnn_setup_constant_pad_nd_x32(op->handle, op->rank, op->a, op->b,
                                            op->c, pointers->a,
                                            pointers->output, op->pool);
}

pph_status pph_xnn_create_pad(const pph_xnn_pad *pad, pph_xnn_op *op,
                              pph_error *error) {
  op->rank = pad->rank;
  memcpy(op->a, pad->input, sizeof op->a);
  memcpy(op->b, pad->before, sizeof op->b);
  memcpy(op->c, pad->after, sizeof op->c);
  op->setup = set_pad;
  enum xnn_status status =
      xnn_create_constant_pad_nd_x32(&pad->value, 0, &op->handle);
  return pph_xnn_finish(op, (int)status, "a pad", error);
}

#endif
