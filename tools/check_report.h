/* What check prints: a table for people, JSON for programs. */
#ifndef TOOLS_CHECK_REPORT_H
#define TOOLS_CHECK_REPORT_H

#include <stdbool.h>

#include "polyphase/polyphase.h"

/* One output of two models. */
typedef struct check_row {
  const char *name;
  bool same_shape; /* and type */
  pph_dtype types[2]; /* of a, b */
  pph_shape shapes[2];
  size_t elements, different, worst_at;
  double worst;     /* largest |a-b| */
  double low, high; /* least and greatest b; nan without any */
  double tolerance; /* at the largest |b| */
} check_row;

/* One report at a time: begin, rows, end. Rows are kept until end, which also
   says of which of them agreement proves nothing: nothing was compared, or
   zeros would agree as well. */
void check_report_begin(bool json);
void check_report_add(const check_row *row, bool json);
void check_report_end(bool same, bool json);

#endif
