/* The operator behind conv_transpose.h and conv.h: one life cycle for ordinary
   and transposed convolutions. */
#ifndef PPH_OP_CONV_OP_H
#define PPH_OP_CONV_OP_H

#include "op/algo.h"

typedef struct pph_conv_op pph_conv_op;

/* The weights an operator is made from. */
typedef struct pph_conv_weights {
  bool transposed;
  bool borrowed; /* weights and bias stay valid as long as the operator: they
                    are not copied */
  const float *weights, *bias;
} pph_conv_weights;

/* As pph_conv_transpose_create; memory comes from `heap`, which must outlive
   the operator (desc->allocator is not looked at). */
PPH_NODISCARD pph_status pph_conv_op_create(const pph_conv_desc *desc,
                                            const pph_conv_weights *weights,
                                            pph_heap *heap, pph_conv_op **op,
                                            pph_error *error);
void pph_conv_op_destroy(pph_conv_op *op);

/* As pph_conv_transpose_reshape, _run and _explain. */
PPH_NODISCARD pph_status pph_conv_op_reshape(pph_conv_op *op, int64_t batch,
                                             const int64_t *input,
                                             int64_t *output,
                                             size_t *workspace_bytes,
                                             pph_error *error);
PPH_NODISCARD pph_status pph_conv_op_run(const pph_conv_op *op,
                                         const pph_conv_tensors *tensors,
                                         pph_error *error);
pph_operator_info pph_conv_op_explain(const pph_conv_op *op);

/* An algorithm and what it is expected to take. */
typedef struct pph_conv_choice {
  const char *algorithm; /* static */
  double us;             /* one thread */
} pph_conv_choice;

enum { PPH_CONV_CHOICES = 16 };

/* The algorithms that may compute this shape: first the one that reshape takes,
   the others as they are expected to be slower. The operator has no shape
   afterwards. Errors as of reshape. */
PPH_NODISCARD pph_status pph_conv_op_rank(pph_conv_op *op, int64_t batch,
                                          const int64_t *input,
                                          pph_conv_choice *choices,
                                          uint32_t *count, pph_error *error);

/* The problem of the last reshape or rank, as pph_problem_print has it. */
const char *pph_conv_op_print(const pph_conv_op *op, char *text, size_t size);

#endif
