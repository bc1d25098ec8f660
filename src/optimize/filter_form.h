/* Minimal filters F(m, r), which take n = m + r - 1 products for m outputs of r
   taps: which there are, and their matrices. With points p_j, row j of B holds
   the coefficients of the product of (z - p_k) over the other points, of G the
   powers of p_j over that product at p_j, and column j of A the powers of p_j;
   a last point is infinity. y = A ((G w) * (B x)), * element by element. */
#ifndef PPH_OPTIMIZE_FILTER_FORM_H
#define PPH_OPTIMIZE_FILTER_FORM_H

#include <stdbool.h>
#include <stdint.h>

enum { PPH_FORM_MOST_OUTPUTS = 5, PPH_FORM_MOST_TAPS = 5,
       PPH_FORM_MOST_POINTS = 8 };

typedef struct pph_filter_form {
  uint32_t outputs, taps;
  bool is_high; /* as accurate as direct sums; the others are for `normal` */
  uint32_t singles, pairs; /* finite points: 0 and 1, then p and -p */
  double points[PPH_FORM_MOST_POINTS - 1];
} pph_filter_form;

const pph_filter_form *pph_filter_forms(uint32_t *count);

static inline uint32_t pph_filter_form_count(const pph_filter_form *form) {
  return form->outputs + form->taps - 1;
}

typedef struct pph_filter_matrices {
  double input[PPH_FORM_MOST_POINTS][PPH_FORM_MOST_POINTS];  /* B */
  double weight[PPH_FORM_MOST_POINTS][PPH_FORM_MOST_TAPS];   /* G */
  double output[PPH_FORM_MOST_OUTPUTS][PPH_FORM_MOST_POINTS]; /* A */
} pph_filter_matrices;

void pph_filter_form_make(const pph_filter_form *form,
                          pph_filter_matrices *matrices);

#endif
