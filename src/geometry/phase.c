#include "base/checked.h"
#include "geometry/geometry.h"

/* g = gcd(a, b) and the inverse of a/g modulo b/g, for a and b below 2^31. */
typedef struct common {
  int64_t divisor, inverse;
} common;

static common find_common(int64_t a, int64_t b) {
  /* Euclid's rows (r, x) with r = a * x modulo b. */
  int64_t r0 = b, x0 = 0, r1 = a, x1 = 1;
  while (r1) {
    int64_t quotient = r0 / r1;
    int64_t r2 = r0 - quotient * r1, x2 = x0 - quotient * x1;
    r0 = r1, x0 = x1;
    r1 = r2, x1 = x2;
  }
  return (common){r0, pph_floor_mod(x0, b / r0)};
}

void pph_phase_frame_make(const pph_axis *axis, pph_frame_kind kind,
                          pph_phase_frame *frame) {
  int64_t stride = axis->stride;
  frame->stride = stride;
  frame->trim_begin =
      kind == PPH_FRAME_ALIGNED ? pph_floor_mod(axis->pad_begin, stride) : 0;
  int64_t covered = frame->trim_begin + axis->output;
  frame->length = pph_ceil_div(covered, stride);
  frame->trim_end = frame->length * stride - covered;
}

/* A window that lies outside the input altogether reads only zeros. Without it
   every crop leaves an element, and callers have no empty slices to fear. */
static bool reads_input(const pph_phase *phase, int64_t input) {
  return input > 0 && -phase->pad_begin < input && -phase->pad_end < input;
}

void pph_phase_make(const pph_axis *axis, const pph_phase_frame *frame,
                    int64_t index, pph_phase *phase) {
  int64_t stride = axis->stride;
  common c = find_common(axis->dilation, stride);
  *phase = (pph_phase){.index = index,
                       .kernel_step = stride / c.divisor,
                       .tap_step = axis->dilation / c.divisor};
  /* Output q of the phase meets input i and tap k where
     stride*i + dilation*k = stride*q + place. */
  int64_t place = index + axis->pad_begin - frame->trim_begin;
  if (pph_floor_mod(place, c.divisor) != 0)
    return;
  int64_t first = pph_floor_mod(place / c.divisor, phase->kernel_step) *
                  c.inverse % phase->kernel_step;
  if (first >= axis->kernel)
    return;
  int64_t more = (axis->kernel - 1 - first) / phase->kernel_step;
  /* Exact: `first` solves the equation above. */
  int64_t ahead = (place - axis->dilation * first) / stride;
  phase->taps = more + 1;
  phase->kernel_last = first + more * phase->kernel_step;
  phase->pad_begin = more * phase->tap_step - ahead;
  phase->pad_end = frame->length - axis->input + ahead;
  if (!reads_input(phase, axis->input)) {
    phase->taps = phase->kernel_last = 0;
    phase->pad_begin = phase->pad_end = 0;
  }
}

bool pph_phase_same_window(const pph_phase *a, const pph_phase *b) {
  return a->taps == b->taps && a->tap_step == b->tap_step &&
         a->pad_begin == b->pad_begin && a->pad_end == b->pad_end;
}
