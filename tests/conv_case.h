/* A convolution, transposed or not, through the public operators, and its
   definition. */
#ifndef PPH_TESTS_CONV_CASE_H
#define PPH_TESTS_CONV_CASE_H

#include "polyphase/polyphase.h"
#include "test_support.h"

/* Either kind of operator. */
typedef struct any_op {
  pph_conv_transpose *up;
  pph_conv *plain;
} any_op;

/* A problem and its data. */
typedef struct conv_case {
  bool up;
  pph_conv_desc desc;
  int64_t batch, input[3], output[3];
  size_t inputs, outputs, weight_count;
  float *x, *w, *b, *r, *slopes;
} conv_case;

/* The calls of either kind. */
pph_status conv_case_make(bool up, const pph_conv_desc *desc,
                          const float *weights, const float *bias, any_op *op,
                          pph_error *error);
pph_status conv_case_reshape(const any_op *op, int64_t batch,
                             const int64_t *input, int64_t *output,
                             size_t *bytes, pph_error *error);
pph_status conv_case_run(const any_op *op, const pph_conv_tensors *tensors,
                         pph_error *error);
pph_operator_info conv_case_explain(const any_op *op);
void conv_case_destroy(any_op *op);
/* Sets lengths and draws the data; the weights are the same for all shapes. */
void conv_case_fill(conv_case *c, uint64_t seed);
void conv_case_drop(conv_case *c);
/* 7 x 9 pixels: kernel 4, stride 2, pad 1 up; kernel 3, pad 1 otherwise. */
conv_case conv_case_plain(bool up, int64_t ins, int64_t outs);
void *conv_case_workspace(size_t bytes);
/* Runs a reshaped operator. */
void conv_case_run_with(const any_op *op, const conv_case *c, size_t bytes,
                        pph_thread_pool *pool, float *output);
/* create, reshape, run, destroy; the result is the caller's. */
float *conv_case_compute(const conv_case *c, pph_thread_pool *pool);
bool conv_case_same(const float *a, const float *b, size_t count);
/* Fails unless `result` is the definition's, a loop that scatters. */
void conv_case_check(const conv_case *c, const float *result);

#endif
