/* Copying between two strided views of the same dimensions: transposes, layout
   changes, slices, concatenations, expansions and interleaves are all this. */
#ifndef PPH_KERNEL_STRIDED_COPY_H
#define PPH_KERNEL_STRIDED_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "kernel/transpose.h"

enum { PPH_COPY_MAX_RANK = 16 };

/* Dimensions outermost first; strides in elements, of either sign; a source
   stride of 0 repeats. Offsets of the first element, in elements. */
typedef struct pph_strided_copy {
  int32_t rank;
  size_t element_size;
  int64_t dims[PPH_COPY_MAX_RANK];
  int64_t source_strides[PPH_COPY_MAX_RANK];
  int64_t target_strides[PPH_COPY_MAX_RANK];
  int64_t source_offset, target_offset;
  pph_transpose_kernel transpose; /* NULL: element by element */
} pph_strided_copy;

/* Sorts axes by target stride, drops those of length 1 and joins neighbours
   that lie together in both views. Same elements, fewer loops. */
void pph_strided_copy_simplify(pph_strided_copy *copy);

/* Lets a transpose of 32-bit elements use that processor's vectors. */
void pph_strided_copy_speed_up(pph_strided_copy *copy, pph_cpu cpu);

/* Copies rows [begin, end) of the outermost axis (0 and 1 for rank 0). Source
   and target must not overlap. Any thread; different rows in different threads
   touch different target elements. */
void pph_strided_copy_run(const pph_strided_copy *copy, const void *source,
                          void *target, int64_t begin, int64_t end);

/* Bytes that the whole copy writes. */
double pph_strided_copy_bytes(const pph_strided_copy *copy);

#endif
