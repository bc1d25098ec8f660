/* XNNPACK's operator API behind one face. That of 2022 has create, then setup
   with shapes and pointers; newer ones have create, reshape with shapes, then
   setup with pointers. xnnpack_setup.c and xnnpack_reshape.c implement what
   differs, xnnpack_api.c the rest; nothing else includes xnnpack.h.

   XNNPACK does not check its products: callers bound every size first
   (pph_xnn_check_bytes). Counts, channels and dimensions are at least 1. */
#ifndef PPH_BACKEND_XNNPACK_API_H
#define PPH_BACKEND_XNNPACK_API_H

#include <pthreadpool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "polyphase/status.h"

#ifndef PPH_XNNPACK_RESHAPE
#define PPH_XNNPACK_RESHAPE 0
#endif

/* The new binary operators have no output range. */
enum { PPH_XNN_BINARY_CLAMPS = !PPH_XNNPACK_RESHAPE };

/* The new depthwise convolution has no favourite kernel sizes. */
enum { PPH_XNN_ANY_DEPTHWISE = PPH_XNNPACK_RESHAPE };

enum { PPH_XNN_MAX_RANK = 6 };

struct xnn_operator;
struct pph_xnn_op;

typedef struct pph_xnn_pointers {
  const void *a, *b; /* b for binary operators only */
  void *output, *workspace;
} pph_xnn_pointers;

/* A window that slides over two axes: [0] is height, [1] is width. */
typedef struct pph_xnn_window {
  size_t batch, input[2], output[2];
  uint32_t kernel[2], stride[2], dilation[2], pad_begin[2], pad_end[2];
  uint32_t adjustment[2];     /* deconvolution: output padding, below stride */
  uint32_t groups;            /* pooling: 1 */
  size_t group_in, group_out; /* channels per group; pooling: all in group_in */
  float min, max;             /* output range, -+infinity for none */
} pph_xnn_window;

/* rows x in times in x out. */
typedef struct pph_xnn_product {
  size_t rows, in, out;
  bool in_major; /* kernel is [in][out], else [out][in] */
  float min, max;
} pph_xnn_product;

typedef enum pph_xnn_unary {
  PPH_XNN_ABS,
  PPH_XNN_CEILING,
  PPH_XNN_CLAMP, /* min first, max second */
  PPH_XNN_ELU,   /* alpha first */
  PPH_XNN_FLOOR,
  PPH_XNN_HARD_SWISH,
  PPH_XNN_LEAKY_RELU, /* slope first */
  PPH_XNN_NEGATE,
  PPH_XNN_ROUND,
  PPH_XNN_SIGMOID,
  PPH_XNN_SQUARE_ROOT,
  PPH_XNN_UNARY_COUNT
} pph_xnn_unary;

typedef enum pph_xnn_binary {
  PPH_XNN_ADD,
  PPH_XNN_DIVIDE,
  PPH_XNN_MAXIMUM,
  PPH_XNN_MINIMUM,
  PPH_XNN_MULTIPLY,
  PPH_XNN_SUBTRACT,
  PPH_XNN_BINARY_COUNT
} pph_xnn_binary;

/* Two operands of the same rank (at most PPH_XNN_MAX_RANK), NumPy's rules. */
typedef struct pph_xnn_broadcast {
  size_t rank, a[PPH_XNN_MAX_RANK], b[PPH_XNN_MAX_RANK];
  float min, max; /* maximum and minimum ignore them */
} pph_xnn_broadcast;

typedef struct pph_xnn_pad {
  size_t rank, input[PPH_XNN_MAX_RANK], before[PPH_XNN_MAX_RANK],
      after[PPH_XNN_MAX_RANK];
  float value;
} pph_xnn_pad;

typedef enum pph_xnn_corners {
  PPH_XNN_HALF_PIXEL,
  PPH_XNN_ALIGN_CORNERS,
  PPH_XNN_ASYMMETRIC
} pph_xnn_corners;

/* Images of channels last. block is depth to space's, corners is resize's. */
typedef struct pph_xnn_image {
  size_t batch, input[2], output[2], channels; /* channels of the output */
  uint32_t block;
  pph_xnn_corners corners;
} pph_xnn_image;

/* One operator with fixed shapes. The caller sets `pool` (NULL: one thread)
   before create and zeroes the rest. */
typedef struct pph_xnn_op {
  pthreadpool_t pool;
  struct xnn_operator *handle; /* NULL: none */
  size_t workspace;            /* bytes that setup wants, 64-byte aligned */
  const void *constant;        /* b of prelu, kept alive by the caller */
  int (*setup)(struct pph_xnn_op *op, const pph_xnn_pointers *pointers);
  void (*function)(void); /* the setup of XNNPACK's that `setup` calls */
  pph_xnn_pointers last;  /* of the last setup */
  size_t batch, input[2], output[2], rank;
  size_t a[PPH_XNN_MAX_RANK], b[PPH_XNN_MAX_RANK], c[PPH_XNN_MAX_RANK];
  uint32_t adjustment[2];
} pph_xnn_op;

/* Starts XNNPACK once per process; PPH_UNSUPPORTED where it does not run.
   Any thread. */
PPH_NODISCARD pph_status pph_xnn_start(pph_error *error);

/* Each creates the operator and gives it its shapes, so that a later setup
   allocates nothing. Kernels, biases (NULL: none) and slopes are read before
   create returns, slopes until delete. On failure nothing is left behind.
   PPH_OUT_OF_MEMORY, PPH_UNSUPPORTED. */
typedef pph_status pph_xnn_create_weighted(const pph_xnn_window *window,
                                           const float *kernel,
                                           const float *bias, pph_xnn_op *op,
                                           pph_error *error);
/* kernel [groups][group_out][height][width][group_in] for both */
PPH_NODISCARD pph_xnn_create_weighted pph_xnn_create_convolution;
PPH_NODISCARD pph_xnn_create_weighted pph_xnn_create_deconvolution;

typedef pph_status pph_xnn_create_pooling(const pph_xnn_window *window,
                                          pph_xnn_op *op, pph_error *error);
PPH_NODISCARD pph_xnn_create_pooling pph_xnn_create_max_pooling;
/* Divides by the elements inside the input. */
PPH_NODISCARD pph_xnn_create_pooling pph_xnn_create_average_pooling;

/* Mean over `width` positions of `channels` each. */
PPH_NODISCARD pph_status pph_xnn_create_mean(size_t batch, size_t width,
                                             size_t channels, pph_xnn_op *op,
                                             pph_error *error);
PPH_NODISCARD pph_status pph_xnn_create_product(const pph_xnn_product *product,
                                                const float *kernel,
                                                const float *bias,
                                                pph_xnn_op *op,
                                                pph_error *error);
PPH_NODISCARD pph_status pph_xnn_create_unary(pph_xnn_unary kind, size_t count,
                                              const float parameters[2],
                                              pph_xnn_op *op, pph_error *error);
PPH_NODISCARD pph_status pph_xnn_create_binary(pph_xnn_binary kind,
                                               const pph_xnn_broadcast *shapes,
                                               pph_xnn_op *op,
                                               pph_error *error);
PPH_NODISCARD pph_status pph_xnn_create_prelu(size_t batch, size_t channels,
                                              const float *slopes,
                                              pph_xnn_op *op, pph_error *error);
PPH_NODISCARD pph_status pph_xnn_create_softmax(size_t batch, size_t channels,
                                                pph_xnn_op *op,
                                                pph_error *error);
PPH_NODISCARD pph_status pph_xnn_create_resize(const pph_xnn_image *image,
                                               pph_xnn_op *op,
                                               pph_error *error);
PPH_NODISCARD pph_status pph_xnn_create_depth_to_space(
    const pph_xnn_image *image, pph_xnn_op *op, pph_error *error);
PPH_NODISCARD pph_status pph_xnn_create_pad(const pph_xnn_pad *pad,
                                            pph_xnn_op *op, pph_error *error);

/* Takes the pointers if they are new, then runs on op->pool. */
PPH_NODISCARD pph_status pph_xnn_run(pph_xnn_op *op,
                                     const pph_xnn_pointers *pointers,
                                     pph_error *error);

/* An operator that create did not fill is allowed. */
void pph_xnn_delete(pph_xnn_op *op);

/* For the implementations: turns XNNPACK's status into ours. After a failed
   `status` the operator is deleted. */
PPH_NODISCARD pph_status pph_xnn_finish(pph_xnn_op *op, int status,
                                        const char *what, pph_error *error);

#endif
