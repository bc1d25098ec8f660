/* TensorProto to tensor. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "onnx/external_data.h"
#include "onnx/import.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "raw_data is little-endian and used as it is");

/* Blocks of at least COPY_BYTES have slack behind them (the unpacker's
   allocator sees to it) and are used in place. */
enum { COPY_BYTES = 1024, SLACK = 64 };

pph_dtype pph_import_dtype(int64_t number) {
  if (number < 0 || number > PPH_U64 || !pph_dtype_size((pph_dtype)number))
    return PPH_DTYPE_NONE;
  return (pph_dtype)number;
}

static pph_status read_dims(const pph_import *import,
                            const pph_onnx_tensor *source, pph_shape *shape) {
  if (source->n_dims > PPH_MAX_RANK)
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "the tensor has %zu dimensions, at most %d are supported",
                    source->n_dims, PPH_MAX_RANK);
  shape->rank = (int32_t)source->n_dims;
  for (size_t i = 0; i < source->n_dims; i++) {
    if (source->dims[i] < 0)
      return pph_fail(import->error, PPH_BAD_MODEL, "",
                      "dims[%zu] is %" PRId64 ", must be at least 0", i,
                      source->dims[i]);
    shape->dims[i] = source->dims[i];
  }
  return PPH_OK;
}

static pph_status check_size(const pph_import *import, const pph_tensor *tensor,
                             size_t *count, size_t *bytes) {
  char text[128];
  if (!pph_shape_count(&tensor->shape, count) ||
      !pph_shape_bytes(&tensor->shape, tensor->type, bytes))
    return pph_fail(import->error, PPH_LIMIT_EXCEEDED, "",
                    "dims %s are more elements than can be counted",
                    pph_shape_text(&tensor->shape, text, sizeof text));
  if (*bytes > import->graph->tensor_limit || *bytes > SIZE_MAX - SLACK)
    return pph_fail(import->error, PPH_LIMIT_EXCEEDED, "",
                    "dims %s of %s are %zu bytes, the limit is %" PRIu64,
                    pph_shape_text(&tensor->shape, text, sizeof text),
                    pph_dtype_name(tensor->type), *bytes,
                    import->graph->tensor_limit);
  if (!pph_shape_fits(&tensor->shape, tensor->type,
                      import->graph->tensor_limit))
    return pph_fail(import->error, PPH_LIMIT_EXCEEDED, "",
                    "dims %s of %s are more than the limit of %" PRIu64
                    " bytes but for the 0",
                    pph_shape_text(&tensor->shape, text, sizeof text),
                    pph_dtype_name(tensor->type),
                    import->graph->tensor_limit);
  return PPH_OK;
}

static pph_status allocate(const pph_import *import, size_t bytes,
                           void **data) {
  *data = pph_arena_allocate(&import->graph->arena, bytes + SLACK, 1);
  return *data ? PPH_OK : pph_fail_memory(import->error);
}

/* The field that an element type's values lie in when they are not raw. */
typedef struct typed_field {
  void *data;
  size_t count, width;
} typed_field;

static typed_field find_typed(const pph_onnx_tensor *source, pph_dtype type) {
  if (type == PPH_F32)
    return (typed_field){source->float_data, source->n_float_data, 4};
  if (type == PPH_F64)
    return (typed_field){source->double_data, source->n_double_data, 8};
  if (type == PPH_I64)
    return (typed_field){source->int64_data, source->n_int64_data, 8};
  if (type == PPH_U64 || type == PPH_U32)
    return (typed_field){source->uint64_data, source->n_uint64_data, 8};
  return (typed_field){source->int32_data, source->n_int32_data, 4};
}

static pph_status fail_length(const pph_import *import, const char *field,
                              size_t found, size_t expected, const char *unit) {
  return pph_fail(import->error, PPH_BAD_MODEL, "",
                  "%s has %zu %s, dims need %zu", field, found, unit, expected);
}

/* `count` elements of `size` bytes out of wider ones: the low bytes. */
static void narrow(char *to, const char *from, size_t count, size_t size,
                   size_t width) {
  for (size_t i = 0; i < count; i++)
    memcpy(to + i * size, from + i * width, size);
}

static pph_status read_typed(const pph_import *import,
                             const pph_onnx_tensor *source, size_t count,
                             pph_tensor *tensor) {
  typed_field field = find_typed(source, tensor->type);
  size_t size = pph_dtype_size(tensor->type);
  if (field.count != count)
    return fail_length(import, "its data", field.count, count, "elements");
  if (field.width == size && count * size >= COPY_BYTES) {
    tensor->data = field.data;
    return PPH_OK;
  }
  PPH_TRY(allocate(import, count * size, &tensor->data));
  narrow(tensor->data, field.data, count, size, field.width);
  return PPH_OK;
}

static pph_status read_raw(const pph_import *import,
                           const pph_onnx_tensor *source, size_t bytes,
                           pph_tensor *tensor) {
  if (source->raw_data.len != bytes)
    return fail_length(import, "raw_data", source->raw_data.len, bytes,
                       "bytes");
  if (bytes >= COPY_BYTES) {
    tensor->data = source->raw_data.data;
    return PPH_OK;
  }
  PPH_TRY(allocate(import, bytes, &tensor->data));
  if (bytes)
    memcpy(tensor->data, source->raw_data.data, bytes);
  return PPH_OK;
}

static pph_status parse_number(const pph_import *import, const char *key,
                               const char *text, uint64_t *number) {
  char *end;
  errno = 0;
  *number = text ? strtoull(text, &end, 10) : 0;
  if (!text || *text < '0' || *text > '9' || *end || errno ||
      *number > INT64_MAX)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "external data: %s is \"%.40s\", must be a number", key,
                    text ? text : "");
  return PPH_OK;
}

static pph_status read_external(const pph_import *import,
                                const pph_onnx_tensor *source, size_t bytes,
                                pph_tensor *tensor, const char **external) {
  pph_external_place place = {0};
  uint64_t length = bytes;
  for (size_t i = 0; i < source->n_external_data; i++) {
    const char *key = source->external_data[i]->key;
    const char *value = source->external_data[i]->value;
    if (key && strcmp(key, "location") == 0)
      place.location = value;
    else if (key && strcmp(key, "offset") == 0)
      PPH_TRY(parse_number(import, key, value, &place.offset));
    else if (key && strcmp(key, "length") == 0)
      PPH_TRY(parse_number(import, key, value, &length));
  }
  if (length != bytes)
    return fail_length(import, "external data", length, bytes, "bytes");
  PPH_TRY(allocate(import, bytes, &tensor->data));
  PPH_TRY(pph_external_read(import->folder, &place, tensor->data, bytes,
                            import->error));
  *external = place.location;
  return PPH_OK;
}

static bool has_typed(const pph_onnx_tensor *source) {
  return source->n_float_data || source->n_double_data ||
         source->n_int32_data || source->n_int64_data ||
         source->n_uint64_data || source->n_string_data;
}

static pph_status check_kind(const pph_import *import,
                             const pph_onnx_tensor *source) {
  if (!pph_import_dtype(source->data_type))
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "element type %" PRId32 " is not supported",
                    source->data_type);
  if (source->has_segment)
    return pph_fail(import->error, PPH_UNSUPPORTED, "",
                    "tensors in segments are not supported");
  if ((source->raw_data.len > 0) + has_typed(source) +
          (source->data_location == 1) >
      1)
    return pph_fail(import->error, PPH_BAD_MODEL, "",
                    "the tensor has its data twice");
  return PPH_OK;
}

pph_status pph_import_tensor(pph_import *import, pph_onnx_tensor *source,
                             pph_tensor *tensor, const char **external) {
  size_t count, bytes;
  *tensor = (pph_tensor){0};
  *external = NULL;
  PPH_TRY(check_kind(import, source));
  tensor->type = pph_import_dtype(source->data_type);
  PPH_TRY(read_dims(import, source, &tensor->shape));
  PPH_TRY(check_size(import, tensor, &count, &bytes));
  if (source->data_location == 1)
    PPH_TRY(read_external(import, source, bytes, tensor, external));
  else if (source->raw_data.len)
    PPH_TRY(read_raw(import, source, bytes, tensor));
  else
    PPH_TRY(read_typed(import, source, count, tensor));
  if (tensor->type == PPH_BOOL)
    for (size_t i = 0; i < count; i++)
      ((uint8_t *)tensor->data)[i] = ((uint8_t *)tensor->data)[i] != 0;
  return PPH_OK;
}

pph_status pph_import_add_constant(pph_import *import, const char *name,
                                   pph_onnx_tensor *source, pph_id *id) {
  pph_tensor tensor;
  const char *external;
  PPH_TRY(pph_import_tensor(import, source, &tensor, &external));
  PPH_TRY(pph_graph_add_value(import->graph, name, id, import->error));
  pph_value *value = pph_graph_value(import->graph, *id);
  value->type = tensor.type;
  value->has_rank = true;
  value->shape = tensor.shape;
  value->data = tensor.data;
  value->origin.external = external;
  return PPH_OK;
}
