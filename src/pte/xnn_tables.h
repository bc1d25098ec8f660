/* The flatbuffer tables of an XNNPACK payload as C structs. */
#ifndef PPH_PTE_XNN_TABLES_H
#define PPH_PTE_XNN_TABLES_H

#include "pte/flat_schema.h"

/* What a node's field means: flags of its row, beside flat_schema.h's. */
enum {
  PPH_PAYLOAD_READ = 1 << 8,     /* the id of a value the node reads */
  PPH_PAYLOAD_PACKED = 1 << 9,   /* the same, and XNNPACK keeps its own copy */
  PPH_PAYLOAD_WRITTEN = 1 << 10, /* the id of a value the node makes */
  PPH_PAYLOAD_OPTIONAL = 1 << 11 /* may be PPH_PAYLOAD_NONE */
};
#define PPH_PAYLOAD_NONE UINT32_MAX

/* The kinds of node in the order of their numbers, from 1 on: name, the text
   behind "XNN", table, and how many of the table's inputs count. */
#define PPH_PAYLOAD_KINDS(X)                                                   \
  X(ADD, "Add", pph_payload_binary, 2)                                         \
  X(FULLY_CONNECTED, "FullyConnected", pph_payload_linear, 3)                  \
  X(SOFTMAX, "Softmax", pph_payload_unary, 1)                                  \
  X(SIGMOID, "Sigmoid", pph_payload_unary, 1)                                  \
  X(TRANSPOSE, "StaticTranspose", pph_payload_transpose, 1)                    \
  X(CLAMP, "Clamp", pph_payload_unary, 1)                                      \
  X(CONV, "Conv2d", pph_payload_conv, 3)                                       \
  X(DIV, "Div", pph_payload_binary, 2)                                         \
  X(RESIZE, "StaticResizeBilinear2D", pph_payload_resize, 1)                   \
  X(PAD, "StaticConstantPad", pph_payload_pad, 1)                              \
  X(AVERAGE_POOL, "AvgPooling2d", pph_payload_pool, 1)                         \
  X(MINIMUM, "Minimum", pph_payload_binary, 2)                                 \
  X(DEPTHWISE, "DepthwiseConv2d", pph_payload_conv, 3)                         \
  X(MAX_POOL, "MaxPooling2d", pph_payload_pool, 1)                             \
  X(MULTIPLY, "Multiply", pph_payload_binary, 2)                               \
  X(SUBTRACT, "Subtract", pph_payload_binary, 2)                               \
  X(FLOOR, "Floor", pph_payload_unary, 1)                                      \
  X(CONVERT, "Convert", pph_payload_unary, 1)                                  \
  X(GLOBAL_AVERAGE, "GlobalAvgPooling2d", pph_payload_unary, 1)                \
  X(RESHAPE, "StaticReshape", pph_payload_reshape, 1)                          \
  X(ARGMAX_POOL, "ArgMaxPooling2d", pph_payload_argmax, 1)                     \
  X(SQUARE_ROOT, "SquareRoot", pph_payload_unary, 1)                           \
  X(CEILING, "Ceiling", pph_payload_unary, 1)                                  \
  X(HARD_SWISH, "Hardswish", pph_payload_unary, 1)                             \
  X(LEAKY_RELU, "LeakyReLU", pph_payload_leaky, 1)                             \
  X(MAXIMUM, "Maximum", pph_payload_binary, 2)                                 \
  X(NEGATE, "Negate", pph_payload_unary, 1)                                    \
  X(SQUARE, "Square", pph_payload_unary, 1)                                    \
  X(ELU, "ELU", pph_payload_elu, 1)                                            \
  X(ABS, "Abs", pph_payload_unary, 1)                                          \
  X(PRELU, "PReLU", pph_payload_binary, 2)                                     \
  X(CONCATENATE_2, "Concatenate2", pph_payload_concatenate, 2)                 \
  X(CONCATENATE_3, "Concatenate3", pph_payload_concatenate, 3)                 \
  X(CONCATENATE_4, "Concatenate4", pph_payload_concatenate, 4)                 \
  X(SLICE, "StaticSlice", pph_payload_slice, 1)                                \
  X(ATTENTION, "ScaledDotProductAttention", pph_payload_attention, 5)          \
  X(BATCH_MATMUL, "BatchMatrixMultiply", pph_payload_binary, 2)                \
  X(CONCATENATE_5, "Concatenate5", pph_payload_concatenate, 5)                 \
  X(CONV_TRANSPOSE, "ConvTranspose2d", pph_payload_conv, 3)                    \
  X(RECIPROCAL_ROOT, "ReciprocalSquareRoot", pph_payload_unary, 1)             \
  X(LOG, "Log", pph_payload_unary, 1)                                          \
  X(GELU, "Gelu", pph_payload_unary, 1)                                        \
  X(TANH, "Tanh", pph_payload_unary, 1)                                        \
  X(EXP, "Exp", pph_payload_unary, 1)                                          \
  X(SIN, "Sin", pph_payload_unary, 1)                                          \
  X(COPY, "Copy", pph_payload_unary, 1)                                        \
  X(COS, "Cos", pph_payload_unary, 1)

typedef enum pph_payload_kind {
  PPH_PAYLOAD_NO_KIND = 0,
#define PPH_PAYLOAD_ENTER(name, text, table, inputs) PPH_PAYLOAD_##name,
  PPH_PAYLOAD_KINDS(PPH_PAYLOAD_ENTER)
#undef PPH_PAYLOAD_ENTER
  PPH_PAYLOAD_KIND_COUNT
} pph_payload_kind;

/* Element types, as the file counts them. */
typedef enum pph_payload_type {
  PPH_PAYLOAD_F32 = 1,
  PPH_PAYLOAD_F16,
  PPH_PAYLOAD_Q8,  /* qint8 */
  PPH_PAYLOAD_QU8, /* quint8 */
  PPH_PAYLOAD_Q32,
  PPH_PAYLOAD_QC8, /* a scale per channel */
  PPH_PAYLOAD_QC32,
  PPH_PAYLOAD_QC4,
  PPH_PAYLOAD_QD8, /* quantized at run time, a scale per row */
  PPH_PAYLOAD_QB4, /* a scale per group of inputs */
  PPH_PAYLOAD_QP8,
  PPH_PAYLOAD_I32,
  PPH_PAYLOAD_PF32,
  PPH_PAYLOAD_BF16,
  PPH_PAYLOAD_TYPE_COUNT
} pph_payload_type;

/* Members of XNNQuantParams. */
typedef enum pph_payload_quantization {
  PPH_PAYLOAD_PER_CHANNEL = 1,
  PPH_PAYLOAD_PER_TENSOR,
  PPH_PAYLOAD_DYNAMIC,
  PPH_PAYLOAD_PER_GROUP
} pph_payload_quantization;

#include "pte/flat_declare.h"
#include "pte/xnn_tables.def"

#endif
