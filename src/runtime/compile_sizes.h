/* The combinations of sizes that compile looks at. */
#ifndef PPH_RUNTIME_COMPILE_SIZES_H
#define PPH_RUNTIME_COMPILE_SIZES_H

#include "runtime/compile.h"

typedef struct pph_size_plan {
  const pph_graph *graph;        /* of the model */
  const pph_shape_range *inputs; /* one per input */
  uint32_t open_count;           /* dimensions of more than one length */
  pph_shape *shapes; /* one per input: the combination that was last found */
} pph_size_plan;

/* PPH_INVALID_ARGUMENT: a range that is empty, does not fit the model, or
   differs from that of another dimension of the same name. Clear it after
   success. */
PPH_NODISCARD pph_status pph_size_plan_init(pph_size_plan *plan,
                                            const pph_graph *graph,
                                            const pph_shape_range *inputs,
                                            pph_heap *heap, pph_error *error);
void pph_size_plan_clear(pph_size_plan *plan, pph_heap *heap);

/* All at their upper bounds. */
void pph_size_plan_find_most(const pph_size_plan *plan);

/* The index-th combination in which every open dimension has another length;
   maybe beyond the ranges, since only which lengths change is asked. False
   when there are no more. */
bool pph_size_plan_find_other(const pph_size_plan *plan, uint32_t index);

/* The index-th combination within the ranges: all dimensions changed, then
   each alone. False when there are no more. */
bool pph_size_plan_find_within(const pph_size_plan *plan, uint32_t index);

/* 'x [1,3,64,65], ...' of the inputs that have open dimensions. */
void pph_size_plan_print(const pph_size_plan *plan, char *text, size_t size);

#endif
