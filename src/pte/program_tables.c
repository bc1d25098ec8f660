#include "pte/program_tables.h"

#include "pte/flat_define.h"
#include "pte/program_tables.def"
