#include "geometry/stream_axis.h"

#include "base/checked.h"
#include "base/fail.h"

/* Covered positions [0, s) of a new input, less those behind the end's pad,
   are complete as soon as it is there. Positions count from the first that a
   kernel covers, before the pad at the begin is cut. */
static void make_transposed(const pph_axis *axis, int64_t extent,
                            pph_stream_axis *stream) {
  int64_t stride = axis->stride;
  int64_t tail = extent - stride + axis->output_padding - axis->pad_end;
  int64_t held = pph_max_i64(0, -tail); /* they may turn out to be padding */
  stream->step = 1;
  stream->outputs = stride;
  stream->flushed = tail + held;
  stream->skipped = axis->pad_begin + held;
  /* Back to the first input that reaches position -held of a new piece, and to
     the one that the position lies at. */
  stream->history = pph_max_i64((extent - 1 + held) / stride,
                                pph_ceil_div(held, stride));
  if (stream->flushed > 0) /* an operator has at least one input */
    stream->history = pph_max_i64(1, stream->history);
  stream->piece.pad_begin = stream->history * stride - held;
  int64_t rest = extent - stride + held;
  stream->piece.pad_end = pph_max_i64(0, rest);
  stream->piece.output_padding = pph_max_i64(0, -rest);
  stream->end.pad_begin = stream->piece.pad_begin;
}

/* A window is complete with its last input; with a stride the last windows of
   a piece may end before the piece does. */
static pph_status make_ordinary(const pph_axis *axis, int64_t extent,
                                pph_stream_axis *stream, pph_error *error) {
  bool begin = axis->pad_begin >= extent;
  if (begin || axis->pad_end >= extent)
    return pph_fail(error, PPH_UNSUPPORTED, "",
                    "%s is %lld, must be below (kernel-1)*dilation+1",
                    begin ? "pad_begin" : "pad_end",
                    (long long)(begin ? axis->pad_begin : axis->pad_end));
  int64_t stride = axis->stride;
  int64_t early = pph_floor_div(axis->pad_begin - extent, stride) + 1;
  stream->step = stride;
  stream->outputs = 1;
  stream->skipped = -early;
  stream->history = axis->pad_begin - early * stride;
  stream->flushed =
      pph_floor_div(stream->history + axis->pad_end - extent, stride) + 1;
  stream->piece.pad_begin = stream->piece.pad_end = 0;
  stream->end.pad_begin = 0;
  return PPH_OK;
}

pph_status pph_stream_axis_make(const pph_axis *axis, bool transposed,
                                pph_stream_axis *stream, pph_error *error) {
  const int64_t most = INT32_MAX;
  int64_t extent, all;
  *stream = (pph_stream_axis){.piece = *axis, .end = *axis};
  if (!pph_checked_mul_i64(axis->kernel - 1, axis->dilation, &extent) ||
      !pph_checked_add_i64(extent, 1, &extent) ||
      !pph_checked_add_i64(extent, axis->pad_begin, &all) ||
      !pph_checked_add_i64(all, axis->pad_end, &all) ||
      !pph_checked_add_i64(all, axis->stride, &all) || all > most)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "",
                    "kernel, dilation and pads reach too far");
  if (!transposed)
    return make_ordinary(axis, extent, stream, error);
  make_transposed(axis, extent, stream);
  return PPH_OK;
}
