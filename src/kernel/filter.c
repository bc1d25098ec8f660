#include "kernel/filter.h"

const pph_filter pph_filters[PPH_FILTER_COUNT] = {
#include "kernel/filter_weights.inc"
};
