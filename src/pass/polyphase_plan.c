#include "pass/polyphase_plan.h"

#include "base/checked.h"
#include "base/fail.h"

static const pph_axis trivial_axis = {
    .input = 1, .kernel = 1, .stride = 1, .dilation = 1, .output = 1};

static bool run_is_bias(const pph_axis_plan *plan, const pph_phase_run *run) {
  int64_t begin = pph_max_i64(0, -run->pad_begin);
  int64_t end = pph_max_i64(0, -run->pad_end);
  return run->taps == 0 || begin + end >= plan->axis.input;
}

static pph_phase_run start_run(const pph_phase *phase) {
  return (pph_phase_run){.first = phase->index,
                         .count = 1,
                         .taps = phase->taps,
                         .tap_step = phase->tap_step,
                         .pad_begin = phase->pad_begin,
                         .pad_end = phase->pad_end};
}

static bool same_window(const pph_phase_run *run, const pph_phase *phase) {
  return (run->taps == 0 && phase->taps == 0) ||
         (run->taps == phase->taps && run->tap_step == phase->tap_step &&
          run->pad_begin == phase->pad_begin &&
          run->pad_end == phase->pad_end);
}

/* Fills in plan->runs. */
static void group(pph_axis_plan *plan, bool group_phases) {
  plan->run_count = 0;
  for (int64_t i = 0; i < plan->frame.stride; i++) {
    pph_phase phase;
    pph_phase_make(&plan->axis, &plan->frame, i, &phase);
    pph_phase_run *last =
        plan->run_count ? &plan->runs[plan->run_count - 1] : NULL;
    if (last && group_phases && same_window(last, &phase))
      last->count++;
    else
      plan->runs[plan->run_count++] = start_run(&phase);
  }
}

/* Without sharing, one frame is as good as the other, and the tight one needs
   no trim at the begin. */
static bool set_option(pph_axis_plan *plan, unsigned option,
                       bool group_phases) {
  static const pph_frame_kind frames[] = {PPH_FRAME_TIGHT, PPH_FRAME_ALIGNED};
  if (!group_phases && option > 0)
    return false;
  pph_phase_frame_make(&plan->axis, frames[option], &plan->frame);
  group(plan, group_phases);
  return true;
}

enum { OPTIONS = 2 };

/* Tries each pair of options, one per axis; keeps the cheapest. */
static void choose(pph_polyphase_plan *plan, pph_polyphase_cost *find_cost) {
  unsigned best[2] = {0, 0};
  double least = -1;
  for (unsigned y = 0; y < OPTIONS; y++) {
    if (!set_option(&plan->axes[0], y, plan->group_phases))
      continue;
    for (unsigned x = 0; x < OPTIONS; x++) {
      if (!set_option(&plan->axes[1], x, plan->group_phases))
        continue;
      double cost = find_cost(plan);
      if (least < 0 || cost < least * 0.999) {
        least = cost;
        best[0] = y;
        best[1] = x;
      }
    }
  }
  for (unsigned i = 0; i < 2; i++)
    set_option(&plan->axes[i], best[i], plan->group_phases);
  plan->microseconds = least;
}

pph_status pph_polyphase_plan_make(pph_polyphase_plan *plan, pph_heap *heap,
                                   const pph_window *window,
                                   pph_polyphase_cost *cost,
                                   pph_error *error) {
  *plan = (pph_polyphase_plan){
      .heap = heap, .window = *window, .group_phases = window->group == 1};
  plan->axes[0].axis = trivial_axis;
  for (uint32_t i = 0; i < window->axes; i++)
    plan->axes[i + 2 - window->axes].axis = pph_window_axis(window, i);
  for (unsigned i = 0; i < 2; i++) {
    pph_axis_plan *axis = &plan->axes[i];
    axis->runs = pph_heap_allocate_zeroed(heap, (size_t)axis->axis.stride,
                                          sizeof *axis->runs);
    if (!axis->runs) {
      pph_polyphase_plan_clear(plan);
      return pph_fail_memory(error);
    }
  }
  choose(plan, cost);
  return PPH_OK;
}

void pph_polyphase_plan_clear(pph_polyphase_plan *plan) {
  for (unsigned i = 0; i < 2; i++) {
    pph_heap_release(plan->heap, plan->axes[i].runs);
    plan->axes[i].runs = NULL;
  }
}

/* With several runs in x, each phase in y needs convolutions of its own. */
static uint32_t count_rows(const pph_polyphase_plan *plan) {
  return plan->axes[1].run_count == 1 ? plan->axes[0].run_count
                                      : (uint32_t)plan->axes[0].frame.stride;
}

uint32_t pph_polyphase_plan_count(const pph_polyphase_plan *plan) {
  return count_rows(plan) * plan->axes[1].run_count;
}

static const pph_phase_run *find_run(const pph_axis_plan *axis,
                                     int64_t phase) {
  uint32_t low = 0, high = axis->run_count - 1;
  while (low < high) {
    uint32_t middle = (low + high + 1) / 2;
    if (axis->runs[middle].first <= phase)
      low = middle;
    else
      high = middle - 1;
  }
  return &axis->runs[low];
}

bool pph_polyphase_plan_next(const pph_polyphase_plan *plan, uint32_t *position,
                             pph_phase_block *block) {
  const pph_axis_plan *y = &plan->axes[0], *x = &plan->axes[1];
  if (*position >= pph_polyphase_plan_count(plan))
    return false;
  uint32_t row = *position / x->run_count;
  const pph_phase_run *across = &x->runs[*position % x->run_count];
  ++*position;
  bool whole = x->run_count == 1;
  const pph_phase_run *down = whole ? &y->runs[row] : find_run(y, row);
  *block = (pph_phase_block){
      .first = {whole ? down->first : (int64_t)row, across->first},
      .count = {whole ? down->count : 1, across->count},
      .run = {down, across}};
  return true;
}

pph_tap_map pph_phase_map_taps(const pph_axis_plan *plan,
                               const pph_phase_run *run, int64_t index) {
  pph_phase phase;
  pph_phase_make(&plan->axis, &plan->frame, index, &phase);
  return (pph_tap_map){
      .skip = (run->pad_begin - phase.pad_begin) / run->tap_step,
      .taps = phase.taps,
      .last = phase.kernel_last,
      .step = phase.kernel_step};
}

bool pph_phase_block_is_bias(const pph_polyphase_plan *plan,
                             const pph_phase_block *block) {
  return run_is_bias(&plan->axes[0], block->run[0]) ||
         run_is_bias(&plan->axes[1], block->run[1]);
}
