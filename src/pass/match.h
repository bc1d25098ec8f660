/* Small questions that patterns ask about nodes. */
#ifndef PPH_PASS_MATCH_H
#define PPH_PASS_MATCH_H

#include "graph/graph.h"

/* Input `slot` is an f32 constant of one element. */
bool pph_match_scalar(const pph_graph *graph, const pph_node *node,
                      uint32_t slot, float *scalar);

/* A two-input node with an f32 scalar constant on either side that does not
   change the other's shape: *other is the slot of the variable side. */
bool pph_match_with_scalar(const pph_graph *graph, const pph_node *node,
                           uint32_t *other, float *scalar);

/* Input `slot` is an f32 constant that broadcasts over [N, channels, ...] of
   `rank` dimensions with one number per channel, or one for all: element
   c * *step is channel c's. NULL if not. */
const float *pph_match_per_channel(const pph_graph *graph,
                                   const pph_node *node, uint32_t slot,
                                   int32_t rank, int64_t channels,
                                   size_t *step);

/* A value without elements (or of unknown shape). */
bool pph_match_empty(const pph_value *value);

/* Same type, known and equal shapes. */
bool pph_match_same(const pph_graph *graph, pph_id a, pph_id b);

/* A ReduceMean and its kin: axes as input 1 or attribute, all constant;
   normalised, in ascending order without repeats checked. */
bool pph_match_axes(const pph_graph *graph, const pph_node *node, int32_t rank,
                    int64_t *axes, size_t *count);

/* Amounts of a Pad in mode constant whose value is 0, per axis of the input. */
bool pph_match_zero_pad(const pph_graph *graph, const pph_node *node,
                        int64_t *begin, int64_t *end);

/* A Slice with constant bounds and steps of 1: how much it cuts from each axis
   of its input, at the begin and at the end. */
bool pph_match_crop(const pph_graph *graph, const pph_node *node,
                    int64_t *begin, int64_t *end);

/* The permutation of a Transpose, default filled in. */
void pph_match_perm(const pph_graph *graph, const pph_node *node,
                    int64_t *perm);

/* The order of the axes longer than 1 stays: the bytes stay too. */
bool pph_match_perm_moves_ones(const pph_shape *shape, const int64_t *perm);

#endif
