/* What the checks of a container share. */
#ifndef PPH_PTE_CHECK_PATH_H
#define PPH_PTE_CHECK_PATH_H

#include "pte/container_check.h"
#include "pte/flat_path.h"

typedef struct checker {
  const pph_pte *pte;
  pph_flat_path path;
  pph_error *error;
} checker;

/* PPH_BAD_MODEL at the path. */
pph_status pph_check_fail(checker *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* `what` must lie in [0, count). */
PPH_NODISCARD pph_status pph_check_index(checker *c, const char *what,
                                         int64_t found, uint64_t count);

/* A tensor's type, sizes and order; *bytes of its elements. */
PPH_NODISCARD pph_status pph_check_layout(checker *c, int8_t scalar_type,
                                          const int32_t *sizes, uint32_t count,
                                          const uint8_t *order,
                                          uint32_t order_count, size_t *bytes);

PPH_NODISCARD pph_status pph_check_tensor(checker *c,
                                          const pph_pte_plan *plan,
                                          const pph_pte_tensor *tensor);
PPH_NODISCARD pph_status pph_check_plan(checker *c, const pph_pte_plan *plan);

#endif
