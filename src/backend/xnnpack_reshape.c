/* XNNPACK's newer API: create, reshape with the shapes, setup with pointers. */
#include <math.h>
#include <xnnpack.h>

#include "backend/xnnpack_api.h"

#if PPH_XNNPACK_RESHAPE

typedef void (*function)(void);
typedef enum xnn_status (*setup_plain)(xnn_operator_t, const float *, float *);
typedef enum xnn_status (*setup_untyped)(xnn_operator_t, const void *, void *);
typedef enum xnn_status (*setup_worked)(xnn_operator_t, void *, const void *,
                                        void *);

static int set_plain(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  setup_plain call = (setup_plain)op->function;
  return (int)call(op->handle, pointers->a, pointers->output);
}

static int set_untyped(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  setup_untyped call = (setup_untyped)op->function;
  return (int)call(op->handle, pointers->a, pointers->output);
}

static int set_worked(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  setup_worked call = (setup_worked)op->function;
  return (int)call(op->handle, pointers->workspace, pointers->a,
                   pointers->output);
}

/* Ends a create: reshapes unless it failed. */
#define RESHAPE(op, status, what, error, reshape)                              \
  do {                                                                         \
    int made = (int)(status);                                                  \
    if (made == (int)xnn_status_success)                                       \
      made = (int)(reshape);                                                   \
    return pph_xnn_finish(op, made, what, error);                              \
  } while (0)

static int set_convolution(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  return (int)xnn_setup_convolution2d_nhwc_f32(op->handle, pointers->workspace,
                                               pointers->a, pointers->output);
}

pph_status pph_xnn_create_convolution(const pph_xnn_window *window,
                                      const float *kernel, const float *bias,
                                      pph_xnn_op *op, pph_error *error) {
  const pph_xnn_window *w = window;
  size_t height, width;
  op->setup = set_convolution;
  enum xnn_status status = xnn_create_convolution2d_nhwc_f32(
      w->pad_begin[0], w->pad_end[1], w->pad_end[0], w->pad_begin[1],
      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->dilation[0],
      w->dilation[1], w->groups, w->group_in, w->group_out,
      w->groups * w->group_in, w->groups * w->group_out, kernel, bias, w->min,
      w->max, 0, NULL, &op->handle);
  RESHAPE(op, status, "a convolution", error,
          xnn_reshape_convolution2d_nhwc_f32(op->handle, w->batch, w->input[0],
                                             w->input[1], &op->workspace,
                                             &height, &width, op->pool));
}

pph_status pph_xnn_create_deconvolution(const pph_xnn_window *window,
                                        const float *kernel, const float *bias,
                                        pph_xnn_op *op, pph_error *error) {
  const pph_xnn_window *w = window;
  size_t height, width;
  op->function = (function)xnn_setup_deconvolution2d_nhwc_f32;
  op->setup = set_plain;
  enum xnn_status status = xnn_create_deconvolution2d_nhwc_f32(
      w->pad_begin[0], w->pad_end[1], w->pad_end[0], w->pad_begin[1],
      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->dilation[0],
      w->dilation[1], w->groups, w->group_in, w->group_out,
      w->groups * w->group_in, w->groups * w->group_out, kernel, bias, w->min,
      w->max, 0, NULL, &op->handle);
  RESHAPE(op, status, "a deconvolution", error,
          xnn_reshape_deconvolution2d_nhwc_f32(
              op->handle, w->batch, w->input[0], w->input[1], w->adjustment[0],
              w->adjustment[1], &height, &width, op->pool));
}

pph_status pph_xnn_create_max_pooling(const pph_xnn_window *window,
                                      pph_xnn_op *op, pph_error *error) {
  const pph_xnn_window *w = window;
  size_t height, width;
  op->function = (function)xnn_setup_max_pooling2d_nhwc_f32;
  op->setup = set_plain;
  enum xnn_status status = xnn_create_max_pooling2d_nhwc_f32(
      w->pad_begin[0], w->pad_end[1], w->pad_end[0], w->pad_begin[1],
      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->dilation[0],
      w->dilation[1], w->min, w->max, 0, &op->handle);
  RESHAPE(op, status, "a max pooling", error,
          xnn_reshape_max_pooling2d_nhwc_f32(
              op->handle, w->batch, w->input[0], w->input[1], w->group_in,
              w->group_in, w->group_in, &height, &width, op->pool));
}

pph_status pph_xnn_create_average_pooling(const pph_xnn_window *window,
                                          pph_xnn_op *op, pph_error *error) {
  const pph_xnn_window *w = window;
  size_t height, width;
  op->function = (function)xnn_setup_average_pooling2d_nhwc_f32;
  op->setup = set_plain;
  enum xnn_status status = xnn_create_average_pooling2d_nhwc_f32(
      w->pad_begin[0], w->pad_end[1], w->pad_end[0], w->pad_begin[1],
      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->min, w->max, 0,
      &op->handle);
  RESHAPE(op, status, "an average pooling", error,
          xnn_reshape_average_pooling2d_nhwc_f32(
              op->handle, w->batch, w->input[0], w->input[1], w->group_in,
              w->group_in, w->group_in, &height, &width, op->pool));
}

pph_status pph_xnn_create_mean(size_t batch, size_t width, size_t channels,
                               pph_xnn_op *op, pph_error *error) {
  const int64_t axis = 1;
  const size_t dims[3] = {batch, width, channels};
  op->function = (function)xnn_setup_reduce_nd;
  op->setup = set_worked;
  enum xnn_status status = xnn_create_reduce_nd(
      xnn_reduce_mean, xnn_datatype_fp32, NULL, NULL, 0, &op->handle);
  RESHAPE(op, status, "a mean", error,
          xnn_reshape_reduce_nd(op->handle, 1, &axis, 3, dims, &op->workspace,
                                op->pool));
}

pph_status pph_xnn_create_product(const pph_xnn_product *product,
                                  const float *kernel, const float *bias,
                                  pph_xnn_op *op, pph_error *error) {
  op->function = (function)xnn_setup_fully_connected_nc_f32;
  op->setup = set_plain;
  enum xnn_status status = xnn_create_fully_connected_nc_f32(
      product->in, product->out, product->in, product->out, kernel, bias,
      product->min, product->max,
      product->in_major ? XNN_FLAG_TRANSPOSE_WEIGHTS : 0, NULL, &op->handle);
  RESHAPE(
      op, status, "a matrix product", error,
      xnn_reshape_fully_connected_nc_f32(op->handle, product->rows, op->pool));
}

static const enum xnn_unary_operator unaries[PPH_XNN_UNARY_COUNT] = {
    [PPH_XNN_ABS] = xnn_unary_abs,
    [PPH_XNN_CEILING] = xnn_unary_ceiling,
    [PPH_XNN_CLAMP] = xnn_unary_clamp,
    [PPH_XNN_ELU] = xnn_unary_elu,
    [PPH_XNN_FLOOR] = xnn_unary_floor,
    [PPH_XNN_HARD_SWISH] = xnn_unary_hardswish,
    [PPH_XNN_LEAKY_RELU] = xnn_unary_leaky_relu,
    [PPH_XNN_NEGATE] = xnn_unary_negate,
    [PPH_XNN_ROUND] = xnn_unary_bankers_rounding,
    [PPH_XNN_SIGMOID] = xnn_unary_sigmoid,
    [PPH_XNN_SQUARE_ROOT] = xnn_unary_square_root,
};

pph_status pph_xnn_create_unary(pph_xnn_unary kind, size_t count,
                                const float parameters[2], pph_xnn_op *op,
                                pph_error *error) {
  union xnn_unary_params values = {0};
  if (kind == PPH_XNN_CLAMP) {
    values.clamp.min = parameters[0];
    values.clamp.max = parameters[1];
  } else if (kind == PPH_XNN_ELU) {
    values.elu.alpha = parameters[0];
  } else if (kind == PPH_XNN_LEAKY_RELU) {
    values.leaky_relu.negative_slope = parameters[0];
  }
  op->function = (function)xnn_setup_unary_elementwise_nc;
  op->setup = set_untyped;
  enum xnn_status status = xnn_create_unary_elementwise_nc(
      unaries[kind], xnn_datatype_fp32, xnn_datatype_fp32, &values, NULL, NULL,
      NULL, 0, &op->handle);
  RESHAPE(
      op, status, "a unary operator", error,
      xnn_reshape_unary_elementwise_nc(op->handle, count, 1, 1, 1, op->pool));
}

static const enum xnn_binary_operator binaries[PPH_XNN_BINARY_COUNT] = {
    [PPH_XNN_ADD] = xnn_binary_add,
    [PPH_XNN_DIVIDE] = xnn_binary_divide,
    [PPH_XNN_MAXIMUM] = xnn_binary_maximum,
    [PPH_XNN_MINIMUM] = xnn_binary_minimum,
    [PPH_XNN_MULTIPLY] = xnn_binary_multiply,
    [PPH_XNN_SUBTRACT] = xnn_binary_subtract,
};

static int set_binary(pph_xnn_op *op, const pph_xnn_pointers *pointers) {
  const void *b = op->constant ? op->constant : pointers->b;
  return (int)xnn_setup_binary_elementwise_nd(op->handle, pointers->a, b,
                                              pointers->output);
}

static pph_status create_binary(enum xnn_binary_operator kind,
                                const pph_xnn_broadcast *shapes, pph_xnn_op *op,
                                pph_error *error) {
  op->setup = set_binary;
  enum xnn_status status = xnn_create_binary_elementwise_nd(
      kind, xnn_datatype_fp32, NULL, NULL, NULL, 0, &op->handle);
  RESHAPE(op, status, "a binary operator", error,
          xnn_reshape_binary_elementwise_nd(op->handle, shapes->rank, shapes->a,
                                            shapes->rank, shapes->b, op->pool));
}

pph_status pph_xnn_create_binary(pph_xnn_binary kind,
                                 const pph_xnn_broadcast *shapes,
                                 pph_xnn_op *op, pph_error *error) {
  return create_binary(binaries[kind], shapes, op, error);
}

pph_status pph_xnn_create_prelu(size_t batch, size_t channels,
                                const float *slopes, pph_xnn_op *op,
                                pph_error *error) {
  const pph_xnn_broadcast shapes = {
      .rank = 2, .a = {batch, channels}, .b = {1, channels}};
  op->constant = slopes;
  return create_binary(xnn_binary_prelu, &shapes, op, error);
}

pph_status pph_xnn_create_softmax(size_t batch, size_t channels, pph_xnn_op *op,
                                  pph_error *error) {
  op->function = (function)xnn_setup_softmax_nc_f32;
  op->setup = set_plain;
  RESHAPE(op, xnn_create_softmax_nc_f32(0, &op->handle), "a softmax", error,
          xnn_reshape_softmax_nc_f32(op->handle, channels, channels, channels,
                                     batch, op->pool));
}

pph_status pph_xnn_create_resize(const pph_xnn_image *image, pph_xnn_op *op,
                                 pph_error *error) {
  static const uint32_t flags[] = {
      [PPH_XNN_HALF_PIXEL] = 0,
      [PPH_XNN_ALIGN_CORNERS] = XNN_FLAG_ALIGN_CORNERS,
      [PPH_XNN_ASYMMETRIC] = XNN_FLAG_TENSORFLOW_LEGACY_MODE,
  };
  size_t channels = image->channels;
  op->function = (function)xnn_setup_resize_bilinear2d_nhwc;
  op->setup = set_worked;
  enum xnn_status status = xnn_create_resize_bilinear2d_nhwc(
      xnn_datatype_fp32, image->output[0], image->output[1],
      flags[image->corners], &op->handle);
  RESHAPE(op, status, "a resize", error,
          xnn_reshape_resize_bilinear2d_nhwc(
              op->handle, image->batch, image->input[0], image->input[1],
              channels, channels, channels, &op->workspace, op->pool));
}

pph_status pph_xnn_create_depth_to_space(const pph_xnn_image *image,
                                         pph_xnn_op *op, pph_error *error) {
  size_t height, width, channels;
  op->function = (function)xnn_setup_depth_to_space_nhwc_x32;
  op->setup = set_untyped;
  enum xnn_status status =
      xnn_create_depth_to_space_nhwc_x32(image->block, 0, &op->handle);
  RESHAPE(op, status, "a depth to space", error,
          xnn_reshape_depth_to_space_nhwc_x32(
              op->handle, image->batch, image->input[0], image->input[1],
              image->channels * image->block * image->block, &height, &width,
              &channels, op->pool));
}

pph_status pph_xnn_create_pad(const pph_xnn_pad *pad, pph_xnn_op *op,
                              pph_error *error) {
  op->function = (function)xnn_setup_constant_pad_nd_x32;
  op->setup = set_untyped;
  enum xnn_status status =
      xnn_create_constant_pad_nd_x32(&pad->value, 0, &op->handle);
  RESHAPE(op, status, "a pad", error,
          xnn_reshape_constant_pad_nd_x32(op->handle, pad->rank, pad->input,
                                          pad->before, pad->after, op->pool));
}

#endif
