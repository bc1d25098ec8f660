#include "pte/xnn_tables.h"

#include "pte/flat_define.h"
#include "pte/xnn_tables.def"
