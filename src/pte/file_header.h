/* The extended header behind a flatbuffer's identifier, and where it keeps its
   numbers. The first 8 bytes of the file are the flatbuffer's root and
   identifier; the flatbuffer ends at the sum of two numbers. */
#ifndef PPH_PTE_FILE_HEADER_H
#define PPH_PTE_FILE_HEADER_H

#include <stdint.h>

enum {
  PPH_HEADER_AT = 8,
  PPH_HEADER_STEP = 16 /* the header is padded to a multiple */
};

typedef struct pph_header_form {
  char identifier[5]; /* of the flatbuffer */
  char magic[5];
  uint32_t least, length; /* bytes without which it is none; as written */
  uint32_t flat_offset, flat_size, base, data_bytes; /* 0: no such number */
} pph_header_form;

/* NULL for files that never have one. */
const pph_header_form *pph_header_form_find(const char *identifier);

#endif
