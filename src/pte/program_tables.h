/* The flatbuffer tables of .pte, .ptd and .bpte as C structs. */
#ifndef PPH_PTE_PROGRAM_TABLES_H
#define PPH_PTE_PROGRAM_TABLES_H

#include "pte/flat_schema.h"

#include "pte/flat_declare.h"
#include "pte/program_tables.def"

#endif
