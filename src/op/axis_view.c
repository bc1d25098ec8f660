#include "op/axis_view.h"

#include "base/checked.h"

void pph_axis_view_make(const pph_axis *axis, bool transposed,
                        pph_frame_kind kind, pph_axis_view *view) {
  *view = (pph_axis_view){.axis = *axis, .transposed = transposed};
  if (transposed) {
    pph_phase_frame_make(axis, kind, &view->frame);
    view->input_step = 1;
    view->output_step = axis->stride;
    view->length = view->frame.length;
    view->trim = view->frame.trim_begin;
  } else {
    view->input_step = axis->stride;
    view->output_step = 1;
    view->length = axis->output;
  }
}

static pph_phase_run describe(const pph_axis_view *view, int64_t index) {
  const pph_axis *axis = &view->axis;
  if (!view->transposed)
    return (pph_phase_run){0, 1, axis->kernel, axis->dilation,
                           axis->pad_begin};
  pph_phase phase;
  pph_phase_make(axis, &view->frame, index, &phase);
  return (pph_phase_run){index, 1, phase.taps, phase.tap_step,
                         phase.pad_begin};
}

pph_phase_run pph_axis_view_run(const pph_axis_view *view, int64_t first,
                                int64_t most) {
  pph_phase_run run = describe(view, first);
  while (run.count < most && first + run.count < view->output_step) {
    pph_phase_run next = describe(view, first + run.count);
    if (next.taps != run.taps || next.tap_step != run.tap_step ||
        next.pad_begin != run.pad_begin)
      break;
    run.count++;
  }
  return run;
}

int64_t pph_axis_view_count_runs(const pph_axis_view *view, int64_t most) {
  int64_t count = 0;
  for (int64_t first = 0; first < view->output_step; count++)
    first += pph_axis_view_run(view, first, most).count;
  return count;
}

int64_t pph_axis_view_tap(const pph_axis_view *view, int64_t phase,
                          int64_t u) {
  if (!view->transposed)
    return u;
  pph_phase table;
  pph_phase_make(&view->axis, &view->frame, phase, &table);
  return table.kernel_last - u * table.kernel_step;
}

void pph_axis_view_range(const pph_axis_view *view, int64_t phase,
                         int64_t *begin, int64_t *end) {
  /* 0 <= output_step*q + phase - trim < output */
  int64_t step = view->output_step;
  *begin = pph_max_i64(0, pph_ceil_div(view->trim - phase, step));
  *end = pph_min_i64(view->length, pph_ceil_div(view->axis.output + view->trim -
                                                    phase, step));
  if (*end < *begin)
    *end = *begin;
}
