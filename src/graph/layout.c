#include "graph/layout.h"

void pph_layout_axes(pph_layout layout, int32_t rank, int32_t *logical_axis) {
  for (int32_t i = 0; i < rank; i++)
    logical_axis[i] = i;
  if (layout != PPH_LAYOUT_CHANNELS_LAST || rank < 3)
    return;
  for (int32_t i = 1; i + 1 < rank; i++)
    logical_axis[i] = i + 1;
  logical_axis[rank - 1] = 1;
}

void pph_layout_order(const pph_value *value, int32_t *logical_axis) {
  pph_layout_axes(value->layout, value->shape.rank, logical_axis);
}

void pph_layout_physical(const pph_value *value, pph_shape *physical) {
  int32_t order[PPH_MAX_RANK];
  pph_layout_order(value, order);
  *physical = (pph_shape){.rank = value->shape.rank};
  for (int32_t i = 0; i < physical->rank; i++)
    physical->dims[i] = value->shape.dims[order[i]];
}
