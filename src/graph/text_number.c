/* Numbers of the text form. */
#include "graph/text_number.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Signed and unsigned integers have their range in `low` and `high`. A float
   has the digits that always suffice in `digits` and the ones always kept in
   `kept`, between which the shortest form is looked for. */
typedef struct number_type {
  bool is_float;
  int64_t low;
  uint64_t high;
  int kept, digits;
  uint64_t nan, infinity, sign; /* bits */
} number_type;

static const number_type number_types[] = {
    [PPH_F32] = {true, 0, 0, 6, 9, 0x7fc00000, 0x7f800000, 0x80000000},
    [PPH_U8] = {.high = UINT8_MAX},
    [PPH_I8] = {.low = INT8_MIN, .high = INT8_MAX},
    [PPH_U16] = {.high = UINT16_MAX},
    [PPH_I16] = {.low = INT16_MIN, .high = INT16_MAX},
    [PPH_I32] = {.low = INT32_MIN, .high = INT32_MAX},
    [PPH_I64] = {.low = INT64_MIN, .high = INT64_MAX},
    [PPH_BOOL] = {.high = 1},
    [PPH_F16] = {true, 0, 0, 3, 5, 0x7e00, 0x7c00, 0x8000},
    [PPH_F64] = {true, 0, 0, 15, 17, 0x7ff8000000000000,
                 0x7ff0000000000000, 0x8000000000000000},
    [PPH_U32] = {.high = UINT32_MAX},
    [PPH_U64] = {.high = UINT64_MAX}};

static uint64_t load(pph_dtype type, const void *data, size_t index) {
  switch (pph_dtype_size(type)) {
  case 1:
    return ((const uint8_t *)data)[index];
  case 2:
    return ((const uint16_t *)data)[index];
  case 4:
    return ((const uint32_t *)data)[index];
  default:
    return ((const uint64_t *)data)[index];
  }
}

static void store(pph_dtype type, void *data, size_t index, uint64_t bits) {
  switch (pph_dtype_size(type)) {
  case 1:
    ((uint8_t *)data)[index] = (uint8_t)bits;
    break;
  case 2:
    ((uint16_t *)data)[index] = (uint16_t)bits;
    break;
  case 4:
    ((uint32_t *)data)[index] = (uint32_t)bits;
    break;
  default:
    ((uint64_t *)data)[index] = bits;
  }
}

static double half_to_double(uint64_t bits) {
  int exponent = (int)(bits >> 10 & 31);
  double mantissa = (double)(bits & 1023);
  double value = exponent ? ldexp(1024 + mantissa, exponent - 25)
                          : ldexp(mantissa, -24);
  return bits & 0x8000 ? -value : value;
}

/* Nearest, ties to even. `value` is finite. */
static uint64_t double_to_half(double value) {
  uint64_t sign = signbit(value) ? 0x8000 : 0;
  double size = fabs(value);
  if (size >= 65520)
    return sign | 0x7c00;
  if (size < 0x1p-14)
    return sign | (uint64_t)rint(size * 0x1p24);
  int exponent;
  double mantissa = frexp(size, &exponent);
  /* A mantissa that rounds up to 2048 carries into the exponent by itself. */
  uint64_t fraction = (uint64_t)rint(mantissa * 2048) - 1024;
  return sign | (((uint64_t)(exponent + 14) << 10) + fraction);
}

static double bits_to_double(pph_dtype type, uint64_t bits) {
  if (type == PPH_F16)
    return half_to_double(bits);
  if (type == PPH_F32) {
    uint32_t narrow = (uint32_t)bits;
    float value;
    memcpy(&value, &narrow, sizeof value);
    return (double)value;
  }
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Reads a decimal or hexadecimal number that is finite in the type. */
static bool read_finite(pph_dtype type, const char *word, uint64_t *bits) {
  const char *digit = word + (*word == '-' || *word == '+');
  if (!isdigit((unsigned char)*digit) && *digit != '.')
    return false;
  char *end;
  if (type == PPH_F32) {
    float value = strtof(word, &end);
    uint32_t narrow;
    memcpy(&narrow, &value, sizeof narrow);
    *bits = narrow;
  } else {
    double value = strtod(word, &end);
    memcpy(bits, &value, sizeof *bits);
    if (type == PPH_F16 && isfinite(value))
      *bits = double_to_half(value);
    else if (type == PPH_F16)
      *bits = 0x7c00;
  }
  uint64_t infinity = number_types[type].infinity;
  return end != word && !*end && (*bits & infinity) != infinity;
}

static bool read_unsigned(const char *word, uint64_t *value) {
  bool hex = word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
  if (!isxdigit((unsigned char)word[hex ? 2 : 0]))
    return false;
  char *end;
  errno = 0;
  unsigned long long read = strtoull(word, &end, hex ? 16 : 10);
  *value = read;
  return end != word && !*end && !errno;
}

static bool read_float(pph_dtype type, const char *word, uint64_t *bits) {
  const number_type *row = &number_types[type];
  bool minus = *word == '-';
  if (strcmp(word + minus, "inf") == 0)
    *bits = row->infinity | (minus ? row->sign : 0);
  else if (strcmp(word, "nan") == 0)
    *bits = row->nan;
  else if (strncmp(word, "nan:", 4) == 0)
    return read_unsigned(word + 4, bits) &&
           *bits <= (row->sign | (row->sign - 1)) &&
           (*bits & (row->sign - 1)) > row->infinity;
  else
    return read_finite(type, word, bits);
  return true;
}

static bool read_integer(pph_dtype type, const char *word, uint64_t *bits) {
  const number_type *row = &number_types[type];
  bool minus = *word == '-';
  uint64_t size;
  if (!read_unsigned(word + minus, &size))
    return false;
  /* -low as an unsigned number: right for INT64_MIN too. */
  uint64_t most = minus ? (uint64_t)0 - (uint64_t)row->low : row->high;
  *bits = minus ? (uint64_t)0 - size : size;
  return size <= most;
}

bool pph_text_parse_number(pph_dtype type, const char *word, void *data,
                           size_t index) {
  uint64_t bits;
  bool good = number_types[type].is_float ? read_float(type, word, &bits)
                                          : read_integer(type, word, &bits);
  if (good)
    store(type, data, index, bits);
  return good;
}

static void print_float(pph_dtype type, uint64_t bits, char *text) {
  const number_type *row = &number_types[type];
  const int size = PPH_TEXT_NUMBER_SIZE;
  uint64_t magnitude = bits & (row->sign - 1);
  if (bits == row->nan) {
    snprintf(text, (size_t)size, "nan");
  } else if (magnitude > row->infinity) {
    snprintf(text, (size_t)size, "nan:0x%llx", (unsigned long long)bits);
  } else if (magnitude == row->infinity) {
    snprintf(text, (size_t)size, bits & row->sign ? "-inf" : "inf");
  } else {
    double value = bits_to_double(type, bits);
    /* Subnormal numbers have fewer digits. */
    int kept = magnitude & row->infinity ? row->kept : 1;
    for (int digits = kept; digits <= row->digits; digits++) {
      uint64_t back;
      snprintf(text, (size_t)size, "%.*g", digits, value);
      if (read_finite(type, text, &back) && back == bits)
        break;
    }
  }
}

const char *pph_text_print_number(pph_dtype type, const void *data,
                                  size_t index, char *text) {
  const number_type *row = &number_types[type];
  uint64_t bits = load(type, data, index);
  if (row->is_float) {
    print_float(type, bits, text);
  } else if (row->low) {
    unsigned unused = 64 - 8 * (unsigned)pph_dtype_size(type);
    uint64_t sign = (uint64_t)1 << (63 - unused);
    long long value = (long long)((bits ^ sign) - sign);
    snprintf(text, PPH_TEXT_NUMBER_SIZE, "%lld", value);
  } else {
    snprintf(text, PPH_TEXT_NUMBER_SIZE, "%llu", (unsigned long long)bits);
  }
  return text;
}

pph_dtype pph_text_find_dtype(const char *name, size_t length) {
  for (int i = 0; i <= PPH_U64; i++) {
    pph_dtype type = (pph_dtype)i;
    const char *known = pph_dtype_name(type);
    if (pph_dtype_size(type) && strlen(known) == length &&
        memcmp(known, name, length) == 0)
      return type;
  }
  return PPH_DTYPE_NONE;
}

void *pph_text_enter_locale(void) {
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return plain ? (void *)uselocale(plain) : NULL;
}

void pph_text_leave_locale(void *previous) {
  if (!previous)
    return;
  locale_t plain = uselocale((locale_t)previous);
  if (plain != LC_GLOBAL_LOCALE)
    freelocale(plain);
}
