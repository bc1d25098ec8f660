#include "picture_tensor.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/fail.h"

static bool is_channels(int64_t dim) {
  return dim == 1 || dim == 3 || dim == 4;
}

/* Where rows, columns and channels lie in a tensor of one picture. */
typedef struct picture_axes {
  int32_t channel, row, column;
} picture_axes;

/* Of the last three axes; false when neither end can be channels. */
static bool find_axes(const pph_shape *shape, picture_axes *axes) {
  int32_t first = shape->rank - 3;
  if (first < 0)
    return false;
  if (is_channels(shape->dims[first])) {
    *axes = (picture_axes){first, first + 1, first + 2};
    return true;
  }
  *axes = (picture_axes){first + 2, first, first + 1};
  return is_channels(shape->dims[first + 2]);
}

static void find_strides(const pph_shape *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t i = shape->rank - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= shape->dims[i];
  }
}

/* Channel c of a pixel as the model wants it: luma for gray (BT.601), full
   alpha where the picture has none. */
static float read_pixel(const picture *image, const unsigned char *pixel,
                        int64_t c, int64_t channels) {
  if (c == 3)
    return image->channels == 4 ? pixel[3] : 255;
  if (image->channels == 1)
    return pixel[0];
  if (channels == 1)
    return 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2];
  return pixel[c];
}

static void fill(const picture_range *range, const picture *image,
                 const picture_axes *axes, pph_tensor *tensor) {
  int64_t strides[PPH_MAX_RANK];
  find_strides(&tensor->shape, strides);
  int64_t channels = tensor->shape.dims[axes->channel];
  float *data = tensor->data;
  for (uint32_t y = 0; y < image->height; y++)
    for (uint32_t x = 0; x < image->width; x++) {
      const unsigned char *pixel =
          image->pixels +
          ((size_t)y * image->width + x) * image->channels;
      for (int64_t c = 0; c < channels; c++)
        data[y * strides[axes->row] + x * strides[axes->column] +
             c * strides[axes->channel]] =
            (read_pixel(image, pixel, c, channels) * range->scale -
             range->mean[c]) /
            range->deviation[c];
    }
}

pph_status picture_to_tensor(const tool_options *options,
                             const pph_model *model, const picture *image,
                             pph_tensor *tensor, pph_error *error) {
  pph_value_info info = pph_model_input(model, 0);
  picture_axes axes;
  char found[128];
  if (pph_model_input_count(model) != 1)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "PICTURE",
                    "the model has %u inputs, a picture serves one; give "
                    "--input NAME=FILE.npy",
                    pph_model_input_count(model));
  if (info.type != PPH_F32 || info.shape.rank != 4 ||
      !find_axes(&info.shape, &axes))
    return pph_fail(error, PPH_INVALID_ARGUMENT, info.name,
                    "the input takes no picture: it is %s %s, must be f32 of "
                    "rank 4 with 1, 3 or 4 channels",
                    pph_dtype_name(info.type),
                    pph_shape_text(&info.shape, found, sizeof found));
  *tensor = (pph_tensor){PPH_F32, info.shape, NULL};
  if (tensor->shape.dims[0] < 0)
    tensor->shape.dims[0] = 1;
  tensor->shape.dims[axes.row] = image->height;
  tensor->shape.dims[axes.column] = image->width;
  tensor->data = calloc((size_t)image->width * image->height * 4,
                        sizeof(float));
  if (!tensor->data)
    return pph_fail_memory(error);
  fill(&options->range, image, &axes, tensor);
  return PPH_OK;
}

bool picture_fits(const pph_tensor *tensor) {
  picture_axes axes;
  bool type = tensor->type == PPH_F32 || tensor->type == PPH_U8;
  bool rank = tensor->shape.rank == 3 ||
              (tensor->shape.rank == 4 && tensor->shape.dims[0] == 1);
  return type && rank && find_axes(&tensor->shape, &axes) &&
         tensor->shape.dims[axes.row] > 0 &&
         tensor->shape.dims[axes.row] <= PICTURE_MAX_SIDE &&
         tensor->shape.dims[axes.column] > 0 &&
         tensor->shape.dims[axes.column] <= PICTURE_MAX_SIDE;
}

static unsigned char to_byte(float value) {
  if (!(value > 0))
    return 0; /* also for nan */
  return value >= 255 ? 255 : (unsigned char)lrintf(value);
}

pph_status picture_from_tensor(const picture_range *range,
                               const pph_tensor *tensor, picture *image,
                               pph_error *error) {
  picture_axes axes;
  int64_t strides[PPH_MAX_RANK];
  char found[128];
  *image = (picture){0};
  if (!picture_fits(tensor) || !find_axes(&tensor->shape, &axes))
    return pph_fail(error, PPH_INVALID_ARGUMENT, "output 0",
                    "is no picture: it is %s %s, must be f32 or u8 of one "
                    "picture with 1, 3 or 4 channels, [1,3,height,width]; "
                    "write it as .npy",
                    pph_dtype_name(tensor->type),
                    pph_shape_text(&tensor->shape, found, sizeof found));
  find_strides(&tensor->shape, strides);
  image->height = (uint32_t)tensor->shape.dims[axes.row];
  image->width = (uint32_t)tensor->shape.dims[axes.column];
  image->channels = (uint32_t)tensor->shape.dims[axes.channel];
  image->pixels =
      calloc((size_t)image->height * image->width, image->channels);
  if (!image->pixels)
    return pph_fail_memory(error);
  unsigned char *to = image->pixels;
  for (uint32_t y = 0; y < image->height; y++)
    for (uint32_t x = 0; x < image->width; x++)
      for (uint32_t c = 0; c < image->channels; c++) {
        int64_t at = y * strides[axes.row] + x * strides[axes.column] +
                     c * strides[axes.channel];
        *to++ = tensor->type == PPH_U8
                    ? ((const uint8_t *)tensor->data)[at]
                    : to_byte((((const float *)tensor->data)[at] *
                                   range->deviation[c] +
                               range->mean[c]) /
                              range->scale);
      }
  return PPH_OK;
}
