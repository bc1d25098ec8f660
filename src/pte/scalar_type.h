/* ExecuTorch's numbers for element types. */
#ifndef PPH_PTE_SCALAR_TYPE_H
#define PPH_PTE_SCALAR_TYPE_H

#include <stdint.h>

#include "polyphase/tensor.h"

typedef struct pph_scalar_type {
  int8_t number;
  uint8_t bytes; /* of an element */
  const char *name;
  pph_dtype type; /* PPH_DTYPE_NONE: no such type here */
} pph_scalar_type;

/* NULL when no type has the number. */
const pph_scalar_type *pph_scalar_type_find(int8_t number);

/* Of the plain number types; NULL for the others. */
const pph_scalar_type *pph_scalar_type_of(pph_dtype type);

#endif
