#include "pte/scalar_type.h"

#include <stddef.h>

/* Plain types come before quantized ones that have the same pph_dtype. */
static const pph_scalar_type types[] = {
    {0, 1, "byte", PPH_U8},
    {1, 1, "char", PPH_I8},
    {2, 2, "short", PPH_I16},
    {3, 4, "int", PPH_I32},
    {4, 8, "long", PPH_I64},
    {5, 2, "half", PPH_F16},
    {6, 4, "float", PPH_F32},
    {7, 8, "double", PPH_F64},
    {11, 1, "bool", PPH_BOOL},
    {12, 1, "qint8", PPH_I8},
    {13, 1, "quint8", PPH_U8},
    {14, 4, "qint32", PPH_I32},
    {15, 2, "bfloat16", PPH_DTYPE_NONE},
    {16, 1, "quint4x2", PPH_DTYPE_NONE},
    {17, 1, "quint2x4", PPH_DTYPE_NONE},
    {22, 2, "bits16", PPH_DTYPE_NONE},
    {23, 1, "float8_e5m2", PPH_DTYPE_NONE},
    {24, 1, "float8_e4m3fn", PPH_DTYPE_NONE},
    {25, 1, "float8_e5m2fnuz", PPH_DTYPE_NONE},
    {26, 1, "float8_e4m3fnuz", PPH_DTYPE_NONE},
    {27, 2, "uint16", PPH_U16},
    {28, 4, "uint32", PPH_U32},
    {29, 8, "uint64", PPH_U64},
};
enum { TYPES = sizeof types / sizeof *types };

const pph_scalar_type *pph_scalar_type_find(int8_t number) {
  for (int i = 0; i < TYPES; i++)
    if (types[i].number == number)
      return &types[i];
  return NULL;
}

const pph_scalar_type *pph_scalar_type_of(pph_dtype type) {
  for (int i = 0; i < TYPES && type; i++)
    if (types[i].type == type)
      return &types[i];
  return NULL;
}
