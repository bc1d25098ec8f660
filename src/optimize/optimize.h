/* Programs of others made faster: the payloads of their XNNPACK delegates are
   rewritten, everything else is left as it is. Inputs, outputs, state and
   memory plan of a method stay the same. */
#ifndef PPH_OPTIMIZE_OPTIMIZE_H
#define PPH_OPTIMIZE_OPTIMIZE_H

#include "polyphase/operator.h"
#include "pte/container.h"

typedef struct pph_optimize_options {
  bool always, never; /* phases, whatever the cost rule expects */
  pph_accuracy accuracy; /* of convolutions: minimal filtering, or not */
  /* For tests and measurements, whatever the cost rules expect; 0: as these do.
     The only filter, by its place in filter_form.c from 1 on, and how many
     pixels a convolution makes at once (step_widen.c). */
  uint32_t only_filter, only_pixels;
  /* Takes one line for each thing that was changed or left alone. */
  void (*report)(void *context, const char *line);
  void *context;
} pph_optimize_options;

typedef struct pph_optimize_result {
  uint32_t changes;
  uint32_t nodes; /* of the delegates that are understood */
  bool *external_changed; /* one per .ptd, in the program's arena */
} pph_optimize_result;

/* Changes the tables, segments and constants of an opened program, which
   pph_pte_write then writes. PPH_UNSUPPORTED for a .ptd alone. A payload that
   is not understood is left alone and reported. */
PPH_NODISCARD pph_status pph_pte_optimize(pph_pte *pte,
                                          const pph_optimize_options *options,
                                          pph_optimize_result *result,
                                          pph_error *error);

#endif
