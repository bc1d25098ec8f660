/* polyphase/conv_stream.h */
#include "polyphase/conv_stream.h"

#include "base/fail.h"
#include "base/public_struct.h"
#include "op/conv_desc.h"
#include "op/stream_op.h"

struct pph_conv_stream {
  pph_heap heap;
  pph_stream_op *op;
};

void pph_conv_stream_options_init(pph_conv_stream_options *options) {
  *options =
      (pph_conv_stream_options){.struct_size = sizeof *options, .batch = 1};
}

/* Before what the desc says of axes that no stream has. */
static pph_status check_structs(const pph_conv_desc *desc,
                                const pph_conv_stream_options *options,
                                pph_error *error) {
  PPH_TRY(pph_check_struct_size("pph_conv_desc", desc->struct_size,
                                sizeof *desc, error));
  PPH_TRY(pph_check_struct_size("pph_conv_stream_options",
                                options->struct_size, sizeof *options, error));
  if (desc->residual)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                    "residual must be false for a stream");
  if (desc->axes == 1)
    return PPH_OK;
  return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                  "axes is %u, must be 1 for a stream", desc->axes);
}

static pph_status create(const pph_conv_desc *desc,
                         const pph_conv_stream_options *options,
                         const pph_conv_weights *weights,
                         pph_conv_stream **stream, pph_error *error) {
  if (stream)
    *stream = NULL;
  PPH_TRY_POINTER("create", desc, error);
  PPH_TRY_POINTER("create", options, error);
  PPH_TRY_POINTER("create", stream, error);
  pph_heap heap;
  PPH_TRY(check_structs(desc, options, error));
  PPH_TRY(pph_conv_desc_start(desc, weights->transposed, &heap, error));
  pph_conv_stream *made = pph_heap_allocate_zeroed(&heap, 1, sizeof *made);
  if (!made)
    return pph_error_at(error, "create", pph_fail_memory(error));
  made->heap = heap;
  pph_status status = pph_stream_op_create(desc, options, weights, &made->heap,
                                           &made->op, error);
  if (status != PPH_OK) {
    pph_conv_stream_destroy(made);
    return pph_error_at(error, "create", status);
  }
  *stream = made;
  return PPH_OK;
}

pph_status pph_conv_stream_create_transposed(
    const pph_conv_desc *desc, const pph_conv_stream_options *options,
    const float *weights, const float *bias, pph_conv_stream **stream,
    pph_error *error) {
  pph_conv_weights given = {
      .transposed = true, .weights = weights, .bias = bias};
  return create(desc, options, &given, stream, error);
}

pph_status pph_conv_stream_create(const pph_conv_desc *desc,
                                  const pph_conv_stream_options *options,
                                  const float *weights, const float *bias,
                                  pph_conv_stream **stream, pph_error *error) {
  pph_conv_weights given = {.weights = weights, .bias = bias};
  return create(desc, options, &given, stream, error);
}

void pph_conv_stream_destroy(pph_conv_stream *stream) {
  if (!stream)
    return;
  pph_stream_op_destroy(stream->op);
  pph_heap heap = stream->heap;
  pph_heap_release(&heap, stream);
}

pph_status pph_conv_stream_push(pph_conv_stream *stream, const float *input,
                                int64_t count, float *output, int64_t *written,
                                pph_error *error) {
  if (written)
    *written = 0;
  PPH_TRY_POINTER("push", stream, error);
  PPH_TRY_POINTER("push", written, error);
  return pph_stream_op_push(stream->op, input, count, output, written, error);
}

pph_status pph_conv_stream_flush(pph_conv_stream *stream, float *output,
                                 int64_t *written, pph_error *error) {
  if (written)
    *written = 0;
  PPH_TRY_POINTER("flush", stream, error);
  PPH_TRY_POINTER("flush", written, error);
  return pph_stream_op_flush(stream->op, output, written, error);
}

void pph_conv_stream_reset(pph_conv_stream *stream) {
  if (stream)
    pph_stream_op_reset(stream->op);
}

pph_conv_stream_info pph_conv_stream_explain(const pph_conv_stream *stream) {
  return stream ? pph_stream_op_explain(stream->op) : (pph_conv_stream_info){0};
}
