#include "optimize/filter_form.h"

#include <string.h>

/* Points as scripts/find_filter_points.py ranks them; where sums are written
   out, those that need no factors. */
static const pph_filter_form forms[] = {
    {2, 2, true, 2, 0, {0, 1}},
    {3, 2, true, 1, 1, {0, 1, -1}},
    {2, 3, true, 1, 1, {0, 1, -1}},
    {4, 2, false, 0, 2, {0.375, -0.375, 1.25, -1.25}},
    {5, 2, false, 1, 2, {0, 0.75, -0.75, 1.375, -1.375}},
    {3, 3, false, 0, 2, {0.375, -0.375, 1.25, -1.25}},
    {4, 3, false, 1, 2, {0, 0.75, -0.75, 1.375, -1.375}},
    {4, 4, false, 0, 3, {0.375, -0.375, 0.875, -0.875, 1.75, -1.75}},
    {4, 5, false, 1, 3, {0, 0.5, -0.5, 1, -1, 2, -2}},
};

const pph_filter_form *pph_filter_forms(uint32_t *count) {
  *count = sizeof forms / sizeof *forms;
  return forms;
}

/* Coefficients of the product of (z - p) over the finite points but `skip`. */
static void multiply_out(const pph_filter_form *form, uint32_t skip,
                         double *product) {
  uint32_t finite = pph_filter_form_count(form) - 1, degree = 0;
  product[0] = 1;
  for (uint32_t k = 0; k < finite; k++) {
    if (k == skip)
      continue;
    product[++degree] = 0;
    for (uint32_t i = degree; i > 0; i--)
      product[i] = product[i - 1] - form->points[k] * product[i];
    product[0] *= -form->points[k];
  }
}

static double value_at(const double *product, uint32_t count, double z) {
  double sum = 0;
  while (count--)
    sum = sum * z + product[count];
  return sum;
}

void pph_filter_form_make(const pph_filter_form *form,
                          pph_filter_matrices *matrices) {
  uint32_t last = pph_filter_form_count(form) - 1;
  memset(matrices, 0, sizeof *matrices);
  for (uint32_t j = 0; j < last; j++) {
    double power = 1, *row = matrices->input[j];
    multiply_out(form, j, row);
    double scale = value_at(row, last, form->points[j]);
    for (uint32_t i = 0; i < form->outputs || i < form->taps; i++) {
      if (i < form->outputs)
        matrices->output[i][j] = power;
      if (i < form->taps)
        matrices->weight[j][i] = power / scale;
      power *= form->points[j];
    }
  }
  multiply_out(form, last, matrices->input[last]);
  matrices->weight[last][form->taps - 1] = 1;
  matrices->output[form->outputs - 1][last] = 1;
}
