/* polyphase/conv_transpose.h and polyphase/conv.h */
#include "polyphase/conv.h"

#include "base/fail.h"
#include "op/conv_desc.h"
#include "op/conv_op.h"

/* Both kinds are the same inside; two names keep a caller from mixing them. */
struct pph_conv_transpose {
  pph_heap heap;
  pph_conv_op *op;
};
struct pph_conv {
  pph_conv_transpose inner;
};

static pph_status create(const pph_conv_desc *desc,
                         const pph_conv_weights *weights,
                         pph_conv_transpose **op, pph_error *error) {
  if (op)
    *op = NULL;
  PPH_TRY_POINTER("create", desc, error);
  PPH_TRY_POINTER("create", op, error);
  pph_heap heap;
  PPH_TRY(pph_conv_desc_start(desc, weights->transposed, &heap, error));
  pph_conv_transpose *made = pph_heap_allocate_zeroed(&heap, 1, sizeof *made);
  if (!made)
    return pph_error_at(error, "create", pph_fail_memory(error));
  made->heap = heap;
  pph_status status =
      pph_conv_op_create(desc, weights, &made->heap, &made->op, error);
  if (status != PPH_OK) {
    pph_conv_transpose_destroy(made);
    return pph_error_at(error, "create", status);
  }
  *op = made;
  return PPH_OK;
}

pph_status pph_conv_transpose_create(const pph_conv_desc *desc,
                                     const float *weights, const float *bias,
                                     pph_conv_transpose **op,
                                     pph_error *error) {
  pph_conv_weights given = {
      .transposed = true, .weights = weights, .bias = bias};
  return create(desc, &given, op, error);
}

void pph_conv_transpose_destroy(pph_conv_transpose *op) {
  if (!op)
    return;
  pph_conv_op_destroy(op->op);
  pph_heap heap = op->heap;
  pph_heap_release(&heap, op);
}

pph_status pph_conv_transpose_reshape(pph_conv_transpose *op, int64_t batch,
                                      const int64_t *input, int64_t *output,
                                      size_t *workspace_bytes,
                                      pph_error *error) {
  PPH_TRY_POINTER("reshape", op, error);
  PPH_TRY_POINTER("reshape", input, error);
  PPH_TRY_POINTER("reshape", output, error);
  PPH_TRY_POINTER("reshape", workspace_bytes, error);
  return pph_error_at(error, "reshape",
                      pph_conv_op_reshape(op->op, batch, input, output,
                                          workspace_bytes, error));
}

pph_status pph_conv_transpose_run(const pph_conv_transpose *op,
                                  const pph_conv_tensors *tensors,
                                  pph_error *error) {
  PPH_TRY_POINTER("run", op, error);
  PPH_TRY_POINTER("run", tensors, error);
  return pph_error_at(error, "run", pph_conv_op_run(op->op, tensors, error));
}

pph_operator_info pph_conv_transpose_explain(const pph_conv_transpose *op) {
  return op ? pph_conv_op_explain(op->op) : (pph_operator_info){0};
}

pph_status pph_conv_create(const pph_conv_desc *desc, const float *weights,
                           const float *bias, pph_conv **op,
                           pph_error *error) {
  pph_conv_weights given = {.weights = weights, .bias = bias};
  pph_conv_transpose *made = NULL;
  if (op)
    *op = NULL;
  PPH_TRY_POINTER("create", op, error);
  pph_status status = create(desc, &given, &made, error);
  *op = (pph_conv *)made;
  return status;
}

void pph_conv_destroy(pph_conv *op) {
  pph_conv_transpose_destroy(op ? &op->inner : NULL);
}

pph_status pph_conv_reshape(pph_conv *op, int64_t batch, const int64_t *input,
                            int64_t *output, size_t *workspace_bytes,
                            pph_error *error) {
  return pph_conv_transpose_reshape(op ? &op->inner : NULL, batch, input,
                                    output, workspace_bytes, error);
}

pph_status pph_conv_run(const pph_conv *op, const pph_conv_tensors *tensors,
                        pph_error *error) {
  return pph_conv_transpose_run(op ? &op->inner : NULL, tensors, error);
}

pph_operator_info pph_conv_explain(const pph_conv *op) {
  return pph_conv_transpose_explain(op ? &op->inner : NULL);
}
