/* Tensors as they go into and come out of a model. */
#ifndef POLYPHASE_TENSOR_H
#define POLYPHASE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types; the numbers are ONNX's TensorProto.DataType. */
typedef enum pph_dtype {
  PPH_DTYPE_NONE = 0,
  PPH_F32 = 1,
  PPH_U8 = 2,
  PPH_I8 = 3,
  PPH_U16 = 4,
  PPH_I16 = 5,
  PPH_I32 = 6,
  PPH_I64 = 7,
  PPH_BOOL = 9, /* one byte, 0 or 1 */
  PPH_F16 = 10,
  PPH_F64 = 11,
  PPH_U32 = 12,
  PPH_U64 = 13
} pph_dtype;

enum { PPH_MAX_RANK = 8 };

/* Row-major dimensions, outermost first. rank 0 is a scalar. In a model that
   was not specialised yet a dimension may be -1: not known. */
typedef struct pph_shape {
  int32_t rank;
  int64_t dims[PPH_MAX_RANK];
} pph_shape;

/* A dense row-major tensor. `data` belongs to whoever the function that takes
   or gives the tensor says. A tensor passed as an input is never written. */
typedef struct pph_tensor {
  pph_dtype type;
  pph_shape shape;
  void *data;
} pph_tensor;

/* Bytes of one element, 0 for an unknown type. */
size_t pph_dtype_size(pph_dtype type);

/* "f32", "i64", ...; "none" for an unknown type. */
const char *pph_dtype_name(pph_dtype type);

#ifdef __cplusplus
}
#endif

#endif
