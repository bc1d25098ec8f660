/* bench --op: the native algorithms of one problem. They share channels-last
   tensors and a workspace, so one runs at a time. */
#ifndef TOOLS_OPERATOR_NATIVE_H
#define TOOLS_OPERATOR_NATIVE_H

#include "op/conv_op.h"
#include "options.h"

typedef struct operator_native {
  pph_heap *heap;
  pph_conv_desc desc;
  pph_conv_weights weights;
  pph_conv_spec spec; /* what the list of algorithms is asked about */
  pph_conv_tensors tensors;
  float *input, *output; /* channels last */
  void *workspace;
  size_t workspace_bytes;
} operator_native;

/* `input` is channels first; `weights` must outlive *native. To be cleared
   after a failure too. */
PPH_NODISCARD pph_status operator_native_init(const tool_options *options,
                                              const pph_problem *problem,
                                              const pph_conv_weights *weights,
                                              const float *input,
                                              pph_thread_pool *pool,
                                              pph_heap *heap,
                                              operator_native *native,
                                              pph_error *error);

/* Whether the operator could take that algorithm, which is a fast one. */
bool operator_native_allows(const operator_native *native,
                            const pph_algo *algo);

/* An operator ready to run, to be destroyed by pph_conv_op_destroy; `algorithm`
   NULL leaves the choice to its cost model. */
PPH_NODISCARD pph_status operator_native_make(operator_native *native,
                                              const char *algorithm,
                                              pph_conv_op **op,
                                              pph_error *error);

/* Runs once and writes how long it took. */
PPH_NODISCARD pph_status operator_native_run(operator_native *native,
                                             const pph_conv_op *op,
                                             double *microseconds,
                                             pph_error *error);

/* The last run's output, channels first. */
void operator_native_read(const operator_native *native, float *output);

void operator_native_clear(operator_native *native);

#endif
