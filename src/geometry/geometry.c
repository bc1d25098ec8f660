#include "geometry/geometry.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

/* See the bounds in the header. The natural length (before any pad) may pass
   an output's bound a little, because pads take from it. */
enum { LENGTH_BITS = 40, FACTOR_BITS = 31, NATURAL_BITS = 42 };

static const int64_t length_bound = (int64_t)1 << LENGTH_BITS;
static const int64_t factor_bound = (int64_t)1 << FACTOR_BITS;
static const int64_t natural_bound = (int64_t)1 << NATURAL_BITS;

bool pph_auto_pad_parse(const char *text, pph_auto_pad *result) {
  static const struct {
    const char *text;
    pph_auto_pad value;
  } names[] = {{"", PPH_AUTO_PAD_NOTSET},
               {"NOTSET", PPH_AUTO_PAD_NOTSET},
               {"SAME_UPPER", PPH_AUTO_PAD_SAME_UPPER},
               {"SAME_LOWER", PPH_AUTO_PAD_SAME_LOWER},
               {"VALID", PPH_AUTO_PAD_VALID}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(text, names[i].text) == 0) {
      *result = names[i].value;
      return true;
    }
  *result = PPH_AUTO_PAD_NOTSET;
  return false;
}

/* `value` in [low, bound). Too small breaks ONNX's rules; too large is legal
   there, but beyond what we take. */
static pph_status check(const char *name, int64_t value, int64_t low,
                        int64_t bound, pph_error *error) {
  if (value < low)
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "%s is %lld, must be at least %lld", name, (long long)value,
                    (long long)low);
  if (value >= bound)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "",
                    "%s is %lld, must be below %lld", name, (long long)value,
                    (long long)bound);
  return PPH_OK;
}

/* What all axes have. Afterwards no product of two of the factors, and no sum
   of lengths, can overflow. *extent is what one window covers. */
static pph_status check_axis(const pph_axis *axis, int64_t *extent,
                             pph_error *error) {
  PPH_TRY(check("input length", axis->input, 0, length_bound, error));
  PPH_TRY(check("kernel length", axis->kernel, 1, factor_bound, error));
  PPH_TRY(check("stride", axis->stride, 1, factor_bound, error));
  PPH_TRY(check("dilation", axis->dilation, 1, factor_bound, error));
  int64_t reach = (axis->kernel - 1) * axis->dilation;
  PPH_TRY(
      check("(kernel length - 1) * dilation", reach, 0, length_bound, error));
  *extent = reach + 1;
  return PPH_OK;
}

static pph_status check_pads(const pph_axis *axis, pph_error *error) {
  PPH_TRY(check("begin pad", axis->pad_begin, 0, length_bound, error));
  return check("end pad", axis->pad_end, 0, length_bound, error);
}

/* Splits a total of at least 0; the odd one goes to the end for SAME_UPPER. */
static void split_pads(pph_axis *axis, int64_t total, pph_auto_pad auto_pad) {
  int64_t half = total / 2;
  bool upper = auto_pad == PPH_AUTO_PAD_SAME_UPPER;
  axis->pad_begin = upper ? half : total - half;
  axis->pad_end = upper ? total - half : half;
}

/* Pads that give exactly `output` of the `natural` length. Where the output is
   the longer one, all of the missing part is at the end. */
static void fit_output(pph_axis *axis, int64_t natural, int64_t output,
                       pph_auto_pad auto_pad) {
  int64_t total = natural - output;
  axis->output = output;
  if (total >= 0) {
    split_pads(axis, total, auto_pad);
    return;
  }
  axis->pad_begin = 0;
  axis->pad_end = total;
}

static bool is_same(pph_auto_pad auto_pad) {
  return auto_pad == PPH_AUTO_PAD_SAME_UPPER ||
         auto_pad == PPH_AUTO_PAD_SAME_LOWER;
}

static pph_status check_output_padding(const pph_axis *axis, pph_error *error) {
  int64_t bound = pph_max_i64(axis->stride, axis->dilation);
  if (axis->output_padding >= 0 && axis->output_padding < bound)
    return PPH_OK;
  return pph_fail(error, PPH_BAD_MODEL, "",
                  "output_padding is %lld, must be at least 0 and below the "
                  "larger of stride %lld and dilation %lld",
                  (long long)axis->output_padding, (long long)axis->stride,
                  (long long)axis->dilation);
}

/* The output's length before pads. For an empty input it may be negative. */
static pph_status find_natural(const pph_axis *axis, int64_t extent,
                               int64_t *natural, pph_error *error) {
  int64_t steps;
  if (!pph_checked_mul_i64(axis->input - 1, axis->stride, &steps) ||
      steps >= natural_bound)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "",
                    "input length %lld times stride %lld must be below %lld",
                    (long long)axis->input, (long long)axis->stride,
                    (long long)natural_bound);
  *natural = steps + axis->output_padding + extent;
  return PPH_OK;
}

/* The explicit pads give the output. */
static pph_status apply_pads(pph_axis *axis, int64_t natural,
                             pph_error *error) {
  int64_t output = natural - axis->pad_begin - axis->pad_end;
  if (axis->input == 0)
    output = pph_max_i64(output, 0);
  axis->output = output;
  return check("output length", output, 0, length_bound, error);
}

pph_status pph_axis_resolve_transposed(pph_axis *axis, pph_auto_pad auto_pad,
                                       int64_t output_shape, pph_error *error) {
  int64_t extent = 0, natural = 0;
  axis->output = 0;
  PPH_TRY(check_axis(axis, &extent, error));
  PPH_TRY(check_output_padding(axis, error));
  PPH_TRY(find_natural(axis, extent, &natural, error));
  if (output_shape != -1) {
    PPH_TRY(check("output_shape", output_shape, 0, length_bound, error));
    fit_output(axis, natural, output_shape, auto_pad);
    return PPH_OK;
  }
  if (is_same(auto_pad)) {
    /* Below the natural bound, so the product cannot overflow. */
    int64_t output = axis->input * axis->stride;
    PPH_TRY(check("output length", output, 0, length_bound, error));
    fit_output(axis, natural, output, auto_pad);
    return PPH_OK;
  }
  if (auto_pad == PPH_AUTO_PAD_VALID)
    axis->pad_begin = axis->pad_end = 0;
  PPH_TRY(check_pads(axis, error));
  return apply_pads(axis, natural, error);
}

/* How many windows fit, the pads being set. */
static pph_status count_windows(pph_axis *axis, int64_t extent, bool ceil_mode,
                                pph_error *error) {
  int64_t padded = axis->input + axis->pad_begin + axis->pad_end;
  if (padded < extent && axis->input == 0)
    return PPH_OK;
  if (padded < extent)
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "kernel length with dilation is %lld, must be at most the "
                    "padded input's %lld",
                    (long long)extent, (long long)padded);
  int64_t rest = padded - extent, stride = axis->stride;
  axis->output = 1 + (ceil_mode ? pph_ceil_div(rest, stride) : rest / stride);
  /* A window of ceil_mode's that holds nothing of the input. */
  if (ceil_mode && axis->output > 1 &&
      (axis->output - 1) * stride >= axis->input + axis->pad_begin)
    axis->output--;
  return check("output length", axis->output, 0, length_bound, error);
}

pph_status pph_axis_resolve_conv(pph_axis *axis, pph_auto_pad auto_pad,
                                 bool ceil_mode, pph_error *error) {
  int64_t extent = 0;
  axis->output = 0;
  axis->output_padding = 0;
  PPH_TRY(check_axis(axis, &extent, error));
  if (is_same(auto_pad)) {
    axis->output = pph_ceil_div(axis->input, axis->stride);
    int64_t covered = (axis->output - 1) * axis->stride + extent;
    split_pads(axis, pph_max_i64(covered - axis->input, 0), auto_pad);
    return PPH_OK;
  }
  if (auto_pad == PPH_AUTO_PAD_VALID)
    axis->pad_begin = axis->pad_end = 0;
  PPH_TRY(check_pads(axis, error));
  return count_windows(axis, extent, ceil_mode, error);
}

pph_status pph_axis_resolve_argument(pph_axis *axis, bool transposed,
                                     const char *where, pph_error *error) {
  if (axis->input < 1)
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "input length is %lld, must be at least 1",
                    (long long)axis->input);
  pph_error inner = {0};
  pph_status status =
      transposed
          ? pph_axis_resolve_transposed(axis, PPH_AUTO_PAD_NOTSET, -1, &inner)
          : pph_axis_resolve_conv(axis, PPH_AUTO_PAD_NOTSET, false, &inner);
  /* A length that pads make negative is refused there as well, in words for
     models, where 0 is legal. */
  if (axis->output < 0 || (status == PPH_OK && axis->output == 0))
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "output length is %lld, must be at least 1",
                    (long long)axis->output);
  if (status != PPH_OK)
    return pph_fail(error,
                    status == PPH_BAD_MODEL ? PPH_INVALID_ARGUMENT : status,
                    where, "%s", inner.message);
  return PPH_OK;
}
