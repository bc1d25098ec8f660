/* Nearest upsampling by whole factors, which XNNPACK has no node for: while a
   payload is rewritten it is a resize with a mark, and then it is written in
   nodes that there are. */
#ifndef PPH_OPTIMIZE_NEAREST_H
#define PPH_OPTIMIZE_NEAREST_H

#include <stdbool.h>

#include "pte/xnn_tables.h"

enum { PPH_NEAREST_MARK = 1u << 30 };

/* Where the rows are; columns are the axis behind. */
static inline uint32_t pph_nearest_axis(const pph_payload_resize *table) {
  return table->flags & ~(uint32_t)PPH_NEAREST_MARK;
}
static inline uint32_t pph_nearest_flags(uint32_t axis) {
  return PPH_NEAREST_MARK | axis;
}
static inline bool pph_nearest_is(const pph_payload_node *node) {
  const pph_payload_resize *table = node->xnode_union.value;
  return node->xnode_union.type == PPH_PAYLOAD_RESIZE &&
         table->flags & PPH_NEAREST_MARK;
}

#endif
