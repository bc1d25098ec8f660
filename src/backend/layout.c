/* How a value's logical axes lie in memory. */
#include "backend/backend.h"

void pph_layout_order(const pph_value *value, int32_t *logical_axis) {
  int32_t rank = value->shape.rank;
  for (int32_t i = 0; i < rank; i++)
    logical_axis[i] = i;
  if (value->layout != PPH_LAYOUT_CHANNELS_LAST || rank < 3)
    return;
  for (int32_t i = 1; i + 1 < rank; i++)
    logical_axis[i] = i + 1;
  logical_axis[rank - 1] = 1;
}

void pph_layout_physical(const pph_value *value, pph_shape *physical) {
  int32_t order[PPH_MAX_RANK];
  pph_layout_order(value, order);
  *physical = (pph_shape){.rank = value->shape.rank};
  for (int32_t i = 0; i < physical->rank; i++)
    physical->dims[i] = value->shape.dims[order[i]];
}
