/* Transposed convolution as an operator, for callers without a graph. */
#ifndef POLYPHASE_CONV_TRANSPOSE_H
#define POLYPHASE_CONV_TRANSPOSE_H

#include "polyphase/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PPH_MAX_AXES = 3 };

/* A transposed convolution (pph_conv_transpose_create) or an ordinary one
   (pph_conv_create in conv.h). Fill in by pph_conv_desc_init, then change
   fields. Arrays are per spatial axis, in the tensors' order (depth, height,
   width for three axes; width alone for one). */
typedef struct pph_conv_desc {
  size_t struct_size;
  pph_dtype type;      /* PPH_F32 */
  uint32_t axes;       /* spatial axes, 1 to 3 */
  int64_t group;       /* default 1 */
  int64_t in_channels; /* of all groups together, as out_channels */
  int64_t out_channels;
  int64_t kernel[PPH_MAX_AXES];
  int64_t stride[PPH_MAX_AXES];    /* default 1 */
  int64_t dilation[PPH_MAX_AXES];  /* default 1 */
  int64_t pad_begin[PPH_MAX_AXES]; /* default 0; at least 0 */
  int64_t pad_end[PPH_MAX_AXES];
  int64_t output_padding[PPH_MAX_AXES]; /* transposed only; default 0, below
                                           max(stride, dilation) */
  /* Memory order: false (the default) is channels last, [N, spatial..., C];
     true is [N, C, spatial...]. */
  bool input_channels_first, output_channels_first;
  bool residual; /* run adds a tensor like the output before the activation */
  pph_activation activation;
  float low, high;     /* for CLAMP; defaults -infinity, infinity */
  float slope;         /* for LEAKY_RELU; default 0.01 */
  const float *slopes; /* for PRELU: out_channels of them; copied by create */
  pph_accuracy accuracy;
  pph_cpu cpu;
  uint32_t threads;       /* run may use; default 1, at most 256. No more are
                             used than create may use processors */
  const char *algorithm;  /* NULL: the cheapest; else that one or an error */
  uint64_t weight_bytes;  /* most bytes of packed weights; default 1 GiB. A
                             faster algorithm that needs more is not taken */
  const pph_allocator *allocator; /* NULL: the C library's; must outlive */
  const pph_limits *limits;       /* NULL: the defaults; read at create */
} pph_conv_desc;

void pph_conv_desc_init(pph_conv_desc *desc);

/* An operator. After reshape any number of threads may run it at once, each
   with its own workspace. */
typedef struct pph_conv_transpose pph_conv_transpose;

/* `weights`: [in_channels, out_channels / group, kernel...], ONNX's order,
   finite (others spread as the algorithm has it); `bias`: out_channels values
   or NULL. Both are copied. *op belongs to the caller; NULL on failure.
   Errors: PPH_INVALID_ARGUMENT (message names the field), PPH_UNSUPPORTED
   (type), PPH_LIMIT_EXCEEDED, PPH_OUT_OF_MEMORY. */
PPH_NODISCARD pph_status pph_conv_transpose_create(const pph_conv_desc *desc,
                                                   const float *weights,
                                                   const float *bias,
                                                   pph_conv_transpose **op,
                                                   pph_error *error);
/* NULL is allowed. */
void pph_conv_transpose_destroy(pph_conv_transpose *op);

/* Sets the input's shape: `batch` at least 1 and `input` the lengths of the
   spatial axes, at least 1 each. Chooses the algorithm and packs the weights
   for it; the same shape again costs nothing. Writes the lengths of the
   output's axes, (input-1)*stride + output_padding + (kernel-1)*dilation + 1 -
   pad_begin - pad_end, and the bytes of workspace that a run needs, a multiple
   of 64. Must not overlap a run. Errors: PPH_INVALID_ARGUMENT (an output length
   below 1, an algorithm that does not support the problem),
   PPH_LIMIT_EXCEEDED, PPH_OUT_OF_MEMORY; a failed reshape leaves no shape
   set. `input` and `output` may be one array. */
PPH_NODISCARD pph_status pph_conv_transpose_reshape(pph_conv_transpose *op,
                                                    int64_t batch,
                                                    const int64_t *input,
                                                    int64_t *output,
                                                    size_t *workspace_bytes,
                                                    pph_error *error);

/* The tensors of one run, all the caller's, dense, in the desc's memory order.
   They must not overlap; `input` and `residual` are not written. */
typedef struct pph_conv_tensors {
  const float *input;
  const float *residual; /* like output; NULL unless desc.residual */
  float *output;
  void *workspace;       /* workspace_bytes, 64-byte aligned; NULL if 0 */
  pph_thread_pool *pool; /* NULL: the caller's thread. At most desc.threads of
                            its threads are used */
} pph_conv_tensors;

/* Runs once; allocates nothing. Results do not depend on the number of threads.
   Errors: PPH_INVALID_ARGUMENT (no shape set, a pointer missing, a workspace
   that is not aligned). */
PPH_NODISCARD pph_status pph_conv_transpose_run(const pph_conv_transpose *op,
                                                const pph_conv_tensors *tensors,
                                                pph_error *error);

/* Zeros before the first reshape. */
pph_operator_info pph_conv_transpose_explain(const pph_conv_transpose *op);

#ifdef __cplusplus
}
#endif

#endif
