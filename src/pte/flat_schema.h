/* Flatbuffer tables described by rows. A .def file lists the tables of a format
   once; from it come the C structs (flat_declare.h) and the rows that reading,
   building and comparing walk over (flat_define.h). No schema here refers to
   itself, so nesting is bounded by the schema, not by the file. */
#ifndef PPH_PTE_FLAT_SCHEMA_H
#define PPH_PTE_FLAT_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

typedef enum pph_flat_kind {
  PPH_FLAT_U8, /* also bool */
  PPH_FLAT_I8,
  PPH_FLAT_I16,
  PPH_FLAT_U16,
  PPH_FLAT_I32,
  PPH_FLAT_U32,
  PPH_FLAT_I64,
  PPH_FLAT_U64,
  PPH_FLAT_F32,
  PPH_FLAT_F64,
  PPH_FLAT_TEXT,  /* the last kinds are offsets to something else */
  PPH_FLAT_TABLE,
  PPH_FLAT_UNION
} pph_flat_kind;

/* What else is known of a field. */
enum {
  PPH_FLAT_VECTOR = 1,
  PPH_FLAT_REQUIRED = 2,
  PPH_FLAT_ALIGN_16 = 4, /* a vector's data, in the file */
  PPH_FLAT_ALIGN_32 = 8
};

typedef struct pph_flat_table pph_flat_table;
typedef const pph_flat_table *(*pph_flat_schema)(void);

/* Members of a union by type number; [0] is none. */
typedef struct pph_flat_members {
  const char *name;
  const pph_flat_schema *tables;
  uint32_t count;
} pph_flat_members;

typedef struct pph_flat_field {
  const char *name;
  uint16_t slot; /* a union's type; its value is at slot + 1 */
  uint16_t flags;
  pph_flat_kind kind;
  size_t offset;                        /* in the C struct */
  pph_flat_schema table;                /* of TABLE */
  const pph_flat_members *(*members)(void); /* of UNION */
} pph_flat_field;

struct pph_flat_table {
  const char *name;
  size_t size; /* of the C struct */
  const pph_flat_field *fields;
  uint32_t field_count; /* slots past the last row's are not known to us */
};

/* What fields are in C. Scalars are themselves and a table is a pointer, NULL
   when absent; these are the others. `at` NULL means absent, which differs
   from empty. Typed vectors have the layout of pph_flat_span. */
typedef struct pph_flat_span {
  const void *at;
  uint32_t count; /* elements; a text's bytes without the final 0 */
} pph_flat_span;

typedef struct pph_flat_text {
  const char *at;
  uint32_t count;
} pph_flat_text;

typedef struct pph_flat_choice {
  void *value; /* NULL for type 0 and for types unknown to us */
  uint8_t type;
} pph_flat_choice;

/* Bytes of a scalar, of an offset (4) otherwise. */
size_t pph_flat_kind_size(pph_flat_kind kind);

/* The choice's table; NULL for type 0 and types unknown to us. */
const pph_flat_table *pph_flat_member(const pph_flat_field *field,
                                      uint8_t type);

/* Bytes of one element of a vector in C. */
size_t pph_flat_element_size(const pph_flat_field *field);

#endif
