#include "op/stream_op.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "geometry/stream_axis.h"
#include "op/conv_desc.h"

enum { MAX_SIZES = 20 };

/* A tensor of some length: `lines` times length times `unit` floats. */
typedef struct stream_layout {
  size_t lines, unit;
} stream_layout;

/* An operator for so many new inputs, and the outputs it computes. */
typedef struct sized_op {
  int64_t count, outputs;
  pph_conv_op *op;
} sized_op;

struct pph_stream_op {
  pph_heap *heap;
  pph_stream_axis axis;
  stream_layout input, output;
  pph_conv_stream_options options;
  float *weights, *bias;
  sized_op sizes[MAX_SIZES]; /* rising */
  size_t size_count;
  sized_op end; /* no op when nothing is flushed */
  size_t workspace_bytes;
  void *workspace;
  float *history; /* the last inputs, length axis.history */
  float *window;  /* history and new inputs */
  float *scratch; /* outputs of which not all are wanted */
  int64_t skip;   /* outputs still to be skipped */
  bool begun;
};

/* Copies `count` positions of every line; lengths are those of the tensors. */
static void copy_lines(const stream_layout *layout, float *target,
                       int64_t target_length, const float *source,
                       int64_t source_length, int64_t count) {
  size_t bytes = (size_t)count * layout->unit * sizeof(float);
  for (size_t i = 0; i < layout->lines && bytes; i++)
    memcpy(target + i * (size_t)target_length * layout->unit,
           source + i * (size_t)source_length * layout->unit, bytes);
}

/* Creating */

static pph_status check_options(const pph_conv_stream_options *options,
                                int64_t step, pph_error *error) {
  const char *where = "pph_conv_stream_options";
  PPH_TRY(
      pph_check_range(where, "batch", options->batch, 1, INT64_MAX, error));
  PPH_TRY(pph_check_range(where, "longest", options->longest, 1, INT32_MAX,
                          error));
  return pph_check_multiple(where, "longest", options->longest, "the stride",
                            step, error);
}

static pph_status make_axis(const pph_conv_desc *desc, bool transposed,
                            pph_stream_axis *axis, pph_error *error) {
  pph_axis given = {.kernel = desc->kernel[0],
                    .stride = desc->stride[0],
                    .dilation = desc->dilation[0],
                    .pad_begin = desc->pad_begin[0],
                    .pad_end = desc->pad_end[0],
                    .output_padding = desc->output_padding[0]};
  pph_status status = pph_stream_axis_make(&given, transposed, axis, error);
  if (status != PPH_OK)
    pph_error_set_where(error, "pph_conv_desc");
  return status;
}

/* Few enough that weights packed for each take no room to speak of beside the
   largest layers, and a push never takes much longer than it needs to. */
static void list_sizes(pph_stream_op *stream) {
  int64_t longest = stream->options.longest, step = stream->axis.step;
  for (int64_t steps = 1; steps * step < longest; steps *= steps < 8 ? 2 : 4)
    stream->sizes[stream->size_count++].count = steps * step;
  stream->sizes[stream->size_count++].count = longest;
  for (size_t i = 0; i < stream->size_count; i++)
    stream->sizes[i].outputs =
        stream->sizes[i].count / step * stream->axis.outputs;
}

/* An operator over history and size->count inputs. */
static pph_status make_size(pph_stream_op *stream, const pph_conv_desc *desc,
                            const pph_axis *pads, bool transposed,
                            sized_op *size, pph_error *error) {
  pph_conv_desc own = *desc;
  own.pad_begin[0] = pads->pad_begin;
  own.pad_end[0] = pads->pad_end;
  own.output_padding[0] = pads->output_padding;
  own.weight_bytes /= stream->size_count + 1;
  pph_conv_weights weights = {transposed, true, stream->weights, stream->bias};
  int64_t length = stream->axis.history + size->count, output;
  size_t bytes;
  PPH_TRY(
      pph_conv_op_create(&own, &weights, stream->heap, &size->op, error));
  PPH_TRY(pph_conv_op_reshape(size->op, stream->options.batch, &length,
                              &output, &bytes, error));
  if (bytes > stream->workspace_bytes)
    stream->workspace_bytes = bytes;
  return PPH_OK;
}

static pph_status make_sizes(pph_stream_op *stream, const pph_conv_desc *desc,
                             bool transposed, pph_error *error) {
  const pph_stream_axis *axis = &stream->axis;
  for (size_t i = 0; i < stream->size_count; i++)
    PPH_TRY(make_size(stream, desc, &axis->piece, transposed,
                      &stream->sizes[i], error));
  stream->end.outputs = axis->flushed;
  if (!axis->flushed)
    return PPH_OK;
  return make_size(stream, desc, &axis->end, transposed, &stream->end, error);
}

/* Products fit: the longest operator's tensors do. */
static pph_status make_buffers(pph_stream_op *stream, pph_error *error) {
  const sized_op *last = &stream->sizes[stream->size_count - 1];
  size_t input = stream->input.lines * stream->input.unit;
  size_t output = stream->output.lines * stream->output.unit;
  size_t history = (size_t)stream->axis.history;
  int64_t outputs = pph_max_i64(last->outputs, stream->axis.flushed);
  stream->history =
      pph_heap_allocate_zeroed(stream->heap, input * history, sizeof(float));
  stream->window = pph_heap_allocate(
      stream->heap, input * (history + (size_t)last->count), sizeof(float));
  stream->scratch = pph_heap_allocate(stream->heap, output * (size_t)outputs,
                                      sizeof(float));
  stream->workspace =
      pph_heap_allocate(stream->heap, stream->workspace_bytes, 1);
  return stream->history && stream->window && stream->scratch &&
                 stream->workspace
             ? PPH_OK
             : pph_fail_memory(error);
}

static pph_status copy_weights(pph_stream_op *stream,
                               const pph_conv_desc *desc,
                               const pph_conv_weights *weights, size_t count,
                               pph_error *error) {
  size_t outs = (size_t)desc->out_channels;
  if (!weights->weights)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                    "weights must not be NULL");
  stream->weights = pph_heap_allocate(stream->heap, count, sizeof(float));
  if (weights->bias)
    stream->bias = pph_heap_allocate(stream->heap, outs, sizeof(float));
  if (!stream->weights || (weights->bias && !stream->bias))
    return pph_fail_memory(error);
  memcpy(stream->weights, weights->weights, count * sizeof(float));
  if (weights->bias)
    memcpy(stream->bias, weights->bias, outs * sizeof(float));
  return PPH_OK;
}

static pph_status fill_stream(pph_stream_op *stream, const pph_conv_desc *desc,
                              const pph_conv_weights *weights, size_t count,
                              pph_error *error) {
  PPH_TRY(make_axis(desc, weights->transposed, &stream->axis, error));
  PPH_TRY(check_options(&stream->options, stream->axis.step, error));
  size_t batch = (size_t)stream->options.batch;
  size_t ins = (size_t)desc->in_channels, outs = (size_t)desc->out_channels;
  stream->input = (stream_layout){batch, ins};
  stream->output = (stream_layout){batch, outs};
  if (desc->input_channels_first)
    stream->input = (stream_layout){batch * ins, 1};
  if (desc->output_channels_first)
    stream->output = (stream_layout){batch * outs, 1};
  list_sizes(stream);
  PPH_TRY(copy_weights(stream, desc, weights, count, error));
  PPH_TRY(make_sizes(stream, desc, weights->transposed, error));
  return make_buffers(stream, error);
}

pph_status pph_stream_op_create(const pph_conv_desc *desc,
                                const pph_conv_stream_options *options,
                                const pph_conv_weights *weights, pph_heap *heap,
                                pph_stream_op **stream, pph_error *error) {
  size_t count;
  *stream = NULL;
  PPH_TRY(pph_conv_desc_check(desc, weights->transposed, &count, error));
  pph_stream_op *made = pph_heap_allocate_zeroed(heap, 1, sizeof *made);
  if (!made)
    return pph_fail_memory(error);
  made->heap = heap;
  made->options = *options;
  pph_status status = fill_stream(made, desc, weights, count, error);
  if (status != PPH_OK) {
    pph_stream_op_destroy(made);
    return status;
  }
  made->skip = made->axis.skipped;
  *stream = made;
  return PPH_OK;
}

void pph_stream_op_destroy(pph_stream_op *stream) {
  if (!stream)
    return;
  for (size_t i = 0; i < stream->size_count; i++)
    pph_conv_op_destroy(stream->sizes[i].op);
  pph_conv_op_destroy(stream->end.op);
  pph_heap_release(stream->heap, stream->weights);
  pph_heap_release(stream->heap, stream->bias);
  pph_heap_release(stream->heap, stream->history);
  pph_heap_release(stream->heap, stream->window);
  pph_heap_release(stream->heap, stream->scratch);
  pph_heap_release(stream->heap, stream->workspace);
  pph_heap_release(stream->heap, stream);
}

/* Running */

/* Runs an operator of whose outputs the first `count` are complete, and writes
   those that are not to be skipped. */
static pph_status run_size(pph_stream_op *stream, const sized_op *size,
                           const float *input, int64_t count, float *output,
                           int64_t *written, pph_error *error) {
  int64_t skip = pph_min_i64(stream->skip, count), rest = count - skip;
  if (rest > 0 && !output)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_stream",
                    "output must not be NULL");
  bool all = rest == size->outputs;
  if (rest > 0)
    PPH_TRY(pph_conv_op_run(
        size->op,
        &(pph_conv_tensors){.input = input,
                            .output = all ? output : stream->scratch,
                            .workspace = stream->workspace,
                            .pool = stream->options.pool},
        error));
  if (!all)
    copy_lines(&stream->output, output, rest,
               stream->scratch + (size_t)skip * stream->output.unit,
               size->outputs, rest);
  stream->skip -= skip;
  *written = rest;
  return PPH_OK;
}

static const sized_op *find_size(const pph_stream_op *stream, int64_t count) {
  const sized_op *size = stream->sizes;
  while (size->count < count)
    size++;
  return size;
}

/* History, new inputs, zeros. */
static void fill_window(pph_stream_op *stream, const sized_op *size,
                        const float *input, int64_t count) {
  const stream_layout *layout = &stream->input;
  int64_t history = stream->axis.history, length = history + size->count;
  float *fresh = stream->window + (size_t)history * layout->unit;
  copy_lines(layout, stream->window, length, stream->history, history, history);
  copy_lines(layout, fresh, length, input, count, count);
  size_t zeros = (size_t)(size->count - count) * layout->unit;
  fresh += (size_t)count * layout->unit;
  for (size_t i = 0; i < layout->lines && zeros; i++)
    memset(fresh + i * (size_t)length * layout->unit, 0, zeros * sizeof(float));
}

pph_status pph_stream_op_push(pph_stream_op *stream, const float *input,
                              int64_t count, float *output, int64_t *written,
                              pph_error *error) {
  const pph_stream_axis *axis = &stream->axis;
  PPH_TRY(pph_check_range("pph_conv_stream", "count", count, 0,
                          stream->options.longest, error));
  PPH_TRY(pph_check_multiple("pph_conv_stream", "count", count, "the stride",
                             axis->step, error));
  if (count == 0)
    return PPH_OK;
  if (!input)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_stream",
                    "input must not be NULL");
  const sized_op *size = find_size(stream, count);
  fill_window(stream, size, input, count);
  PPH_TRY(run_size(stream, size, stream->window,
                   count / axis->step * axis->outputs, output, written, error));
  copy_lines(&stream->input, stream->history, axis->history,
             stream->window + (size_t)count * stream->input.unit,
             axis->history + size->count, axis->history);
  stream->begun = true;
  return PPH_OK;
}

pph_status pph_stream_op_flush(pph_stream_op *stream, float *output,
                               int64_t *written, pph_error *error) {
  if (stream->begun && stream->end.op)
    PPH_TRY(run_size(stream, &stream->end, stream->history,
                     stream->end.outputs, output, written, error));
  pph_stream_op_reset(stream);
  return PPH_OK;
}

void pph_stream_op_reset(pph_stream_op *stream) {
  size_t floats = stream->input.lines * stream->input.unit *
                  (size_t)stream->axis.history;
  memset(stream->history, 0, floats * sizeof(float));
  stream->skip = stream->axis.skipped;
  stream->begun = false;
}

pph_conv_stream_info pph_stream_op_explain(const pph_stream_op *stream) {
  const pph_stream_axis *axis = &stream->axis;
  return (pph_conv_stream_info){
      .step = axis->step,
      .outputs = axis->outputs,
      .skipped = axis->skipped,
      .flushed = axis->flushed,
      .longest =
          pph_conv_op_explain(stream->sizes[stream->size_count - 1].op)};
}
