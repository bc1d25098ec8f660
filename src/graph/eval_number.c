/* Elements of any type as double or int64_t. */
#include <math.h>
#include <string.h>

#include "graph/eval_rules.h"

bool pph_number_is_real(pph_dtype type) {
  return type == PPH_F32 || type == PPH_F64 || type == PPH_F16;
}

bool pph_number_is_integer(pph_dtype type) {
  return pph_dtype_size(type) > 0 && !pph_number_is_real(type);
}

static double half_to_real(uint16_t bits) {
  int exponent = bits >> 10 & 31;
  double fraction = bits & 1023;
  double value;
  if (exponent == 31)
    value = bits & 1023 ? NAN : INFINITY;
  else if (exponent == 0)
    value = ldexp(fraction, -24);
  else
    value = ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 ? -value : value;
}

/* Straight from double, so that nothing is rounded twice. */
static uint16_t real_to_half(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double size = fabs(value);
  if (isnan(value))
    return sign | 0x7e00;
  if (size >= 65520) /* halfway between the largest half and 2^16 */
    return sign | 0x7c00;
  if (size < 0x1p-14)
    return (uint16_t)(sign + (uint16_t)nearbyint(ldexp(size, 24)));
  int exponent;
  double fraction = frexp(size, &exponent); /* in [0.5, 1) */
  /* A fraction that rounds up to 2048 carries into the exponent. */
  int bits = (exponent + 13) * 1024 + (int)nearbyint(ldexp(fraction, 11));
  return (uint16_t)(sign + bits);
}

/* Truncates and saturates; NaN gives 0. Bounds are exact powers of two:
   low <= x < high. */
static int64_t truncate_real(double x, double low, double high,
                             int64_t highest) {
  if (isnan(x))
    return 0;
  if (x >= high)
    return highest;
  return x < low ? (int64_t)low : (int64_t)x;
}

static uint64_t truncate_unsigned(double x) {
  if (!(x > 0))
    return 0;
  return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

#define LOAD_ALL(type, result, convert)                                        \
  do {                                                                         \
    const type *from = (const type *)tensor->data + offset;                    \
    for (int64_t i = 0; i < count; i++)                                        \
      result[i] = convert(from[i * step]);                                     \
  } while (0)

#define STORE_ALL(type, source, convert)                                       \
  do {                                                                         \
    type *to = (type *)tensor->data + offset;                                  \
    for (int64_t i = 0; i < count; i++)                                        \
      to[i] = (type)convert(source[i]);                                        \
  } while (0)

#define NOT_ZERO(x) ((x) != 0)

void pph_number_load_reals(const pph_tensor *tensor, int64_t offset,
                           int64_t step, double *reals, int64_t count) {
  switch (tensor->type) {
  case PPH_F32:
    LOAD_ALL(float, reals, (double));
    break;
  case PPH_F64:
    LOAD_ALL(double, reals, (double));
    break;
  case PPH_F16:
    LOAD_ALL(uint16_t, reals, half_to_real);
    break;
  case PPH_U8:
    LOAD_ALL(uint8_t, reals, (double));
    break;
  case PPH_I8:
    LOAD_ALL(int8_t, reals, (double));
    break;
  case PPH_U16:
    LOAD_ALL(uint16_t, reals, (double));
    break;
  case PPH_I16:
    LOAD_ALL(int16_t, reals, (double));
    break;
  case PPH_U32:
    LOAD_ALL(uint32_t, reals, (double));
    break;
  case PPH_I32:
    LOAD_ALL(int32_t, reals, (double));
    break;
  case PPH_U64:
    LOAD_ALL(uint64_t, reals, (double));
    break;
  case PPH_I64:
    LOAD_ALL(int64_t, reals, (double));
    break;
  case PPH_BOOL:
    LOAD_ALL(uint8_t, reals, NOT_ZERO);
    break;
  case PPH_DTYPE_NONE:
    break;
  }
}

#define TO_U8(x) truncate_real(x, 0, 0x1p8, UINT8_MAX)
#define TO_I8(x) truncate_real(x, -0x1p7, 0x1p7, INT8_MAX)
#define TO_U16(x) truncate_real(x, 0, 0x1p16, UINT16_MAX)
#define TO_I16(x) truncate_real(x, -0x1p15, 0x1p15, INT16_MAX)
#define TO_U32(x) truncate_real(x, 0, 0x1p32, UINT32_MAX)
#define TO_I32(x) truncate_real(x, -0x1p31, 0x1p31, INT32_MAX)
#define TO_I64(x) truncate_real(x, -0x1p63, 0x1p63, INT64_MAX)

void pph_number_store_reals(const pph_tensor *tensor, int64_t offset,
                            const double *reals, int64_t count) {
  switch (tensor->type) {
  case PPH_F32:
    STORE_ALL(float, reals, (float));
    break;
  case PPH_F64:
    STORE_ALL(double, reals, (double));
    break;
  case PPH_F16:
    STORE_ALL(uint16_t, reals, real_to_half);
    break;
  case PPH_U8:
    STORE_ALL(uint8_t, reals, TO_U8);
    break;
  case PPH_I8:
    STORE_ALL(int8_t, reals, TO_I8);
    break;
  case PPH_U16:
    STORE_ALL(uint16_t, reals, TO_U16);
    break;
  case PPH_I16:
    STORE_ALL(int16_t, reals, TO_I16);
    break;
  case PPH_U32:
    STORE_ALL(uint32_t, reals, TO_U32);
    break;
  case PPH_I32:
    STORE_ALL(int32_t, reals, TO_I32);
    break;
  case PPH_U64:
    STORE_ALL(uint64_t, reals, truncate_unsigned);
    break;
  case PPH_I64:
    STORE_ALL(int64_t, reals, TO_I64);
    break;
  case PPH_BOOL:
    STORE_ALL(uint8_t, reals, NOT_ZERO);
    break;
  case PPH_DTYPE_NONE:
    break;
  }
}

void pph_number_load_integers(const pph_tensor *tensor, int64_t offset,
                              int64_t step, int64_t *integers, int64_t count) {
  switch (tensor->type) {
  case PPH_U8:
    LOAD_ALL(uint8_t, integers, (int64_t));
    break;
  case PPH_I8:
    LOAD_ALL(int8_t, integers, (int64_t));
    break;
  case PPH_U16:
    LOAD_ALL(uint16_t, integers, (int64_t));
    break;
  case PPH_I16:
    LOAD_ALL(int16_t, integers, (int64_t));
    break;
  case PPH_U32:
    LOAD_ALL(uint32_t, integers, (int64_t));
    break;
  case PPH_I32:
    LOAD_ALL(int32_t, integers, (int64_t));
    break;
  case PPH_U64:
    LOAD_ALL(uint64_t, integers, (int64_t));
    break;
  case PPH_I64:
    LOAD_ALL(int64_t, integers, (int64_t));
    break;
  case PPH_BOOL:
    LOAD_ALL(uint8_t, integers, NOT_ZERO);
    break;
  case PPH_F32:
  case PPH_F64:
  case PPH_F16:
  case PPH_DTYPE_NONE:
    memset(integers, 0, (size_t)count * 8);
    break;
  }
}

void pph_number_store_integers(const pph_tensor *tensor, int64_t offset,
                               const int64_t *integers, int64_t count) {
  switch (tensor->type) {
  case PPH_F32:
    STORE_ALL(float, integers, (float));
    break;
  case PPH_F64:
    STORE_ALL(double, integers, (double));
    break;
  case PPH_F16:
    STORE_ALL(uint16_t, integers, real_to_half);
    break;
  case PPH_U8:
  case PPH_I8:
    STORE_ALL(uint8_t, integers, (uint8_t));
    break;
  case PPH_U16:
  case PPH_I16:
    STORE_ALL(uint16_t, integers, (uint16_t));
    break;
  case PPH_U32:
  case PPH_I32:
    STORE_ALL(uint32_t, integers, (uint32_t));
    break;
  case PPH_U64:
  case PPH_I64:
    STORE_ALL(int64_t, integers, (int64_t));
    break;
  case PPH_BOOL:
    STORE_ALL(uint8_t, integers, NOT_ZERO);
    break;
  case PPH_DTYPE_NONE:
    break;
  }
}

double pph_number_real(const pph_tensor *tensor, int64_t index) {
  double real = (double)NAN;
  pph_number_load_reals(tensor, index, 1, &real, 1);
  return real;
}

int64_t pph_number_integer(const pph_tensor *tensor, int64_t index) {
  int64_t value = 0;
  pph_number_load_integers(tensor, index, 0, &value, 1);
  return value;
}
