/* THE list of algorithms. */
#include "op/algo_rows.h"

static const pph_algo *const list[] = {
    &pph_algo_narrow,      &pph_algo_depthwise,   &pph_algo_grouped,
    &pph_algo_scatter,     &pph_algo_gather,      &pph_algo_filtered_w2,
    &pph_algo_filtered_w3, &pph_algo_filtered_w4, &pph_algo_filtered_w5,
    &pph_algo_filtered_w7, &pph_algo_filtered_c2, &pph_algo_filtered_c3,
    &pph_algo_filtered_c4, &pph_algo_filtered_z2, &pph_algo_filtered_z4,
    &pph_algo_filtered_l8, &pph_algo_reference,
};

const pph_algo *const *pph_algo_list(size_t *count) {
  *count = sizeof list / sizeof *list;
  return list;
}

bool pph_algo_allowed(const pph_algo *algo, const pph_conv_spec *spec) {
  double bound = spec->accuracy == PPH_ACCURACY_NORMAL ? PPH_NORMAL_BOUND
                                                       : PPH_HIGH_BOUND;
  return (algo->direct || spec->accuracy != PPH_ACCURACY_EXACT) &&
         algo->error_bound <= bound && algo->supports(algo, spec);
}
