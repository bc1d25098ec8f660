/* The rows that algo_list.c lists, each defined in its algo_NAME.c. */
#ifndef PPH_OP_ALGO_ROWS_H
#define PPH_OP_ALGO_ROWS_H

#include "op/algo.h"

extern const pph_algo pph_algo_narrow;
extern const pph_algo pph_algo_depthwise;
extern const pph_algo pph_algo_grouped;
extern const pph_algo pph_algo_scatter;
extern const pph_algo pph_algo_gather;
extern const pph_algo pph_algo_reference;
extern const pph_algo pph_algo_filtered_w2;
extern const pph_algo pph_algo_filtered_w3;
extern const pph_algo pph_algo_filtered_w4;
extern const pph_algo pph_algo_filtered_w5;
extern const pph_algo pph_algo_filtered_w7;
extern const pph_algo pph_algo_filtered_c2;
extern const pph_algo pph_algo_filtered_c3;
extern const pph_algo pph_algo_filtered_c4;
extern const pph_algo pph_algo_filtered_z2;
extern const pph_algo pph_algo_filtered_z4;
extern const pph_algo pph_algo_filtered_l8;

#endif
