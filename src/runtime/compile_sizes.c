#include "runtime/compile_sizes.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/loaded_model.h"

typedef struct place {
  uint32_t input;
  int32_t axis;
} place;

static bool is_open(const pph_length_range *range) {
  return range->least < range->most;
}

static const char *find_name(const pph_size_plan *plan, place at) {
  const pph_graph *graph = plan->graph;
  return pph_graph_value(graph, graph->inputs[at.input])->dim_names[at.axis];
}

static const pph_length_range *find_range(const pph_size_plan *plan,
                                          place at) {
  return &plan->inputs[at.input].dims[at.axis];
}

/* The next place, in order; false after the last. */
static bool step(const pph_size_plan *plan, place *at) {
  for (at->axis++; at->input < plan->graph->input_count;
       at->input++, at->axis = 0)
    if (at->axis < plan->inputs[at->input].rank)
      return true;
  return false;
}

static place before_first(void) { return (place){0, -1}; }

/* Dimensions of one name have one length. */
static bool same_length(const pph_size_plan *plan, place a, place b) {
  const char *name = find_name(plan, a), *other = find_name(plan, b);
  return (a.input == b.input && a.axis == b.axis) ||
         (name && other && name[0] && strcmp(name, other) == 0);
}

static pph_status check_range(const pph_size_plan *plan, place at,
                              pph_error *error) {
  const pph_length_range *range = find_range(plan, at);
  const pph_graph *graph = plan->graph;
  const char *input = pph_graph_value(graph, graph->inputs[at.input])->name;
  if (range->least > range->most || range->step < 1 ||
      (is_open(range) &&
       (range->least < 1 || range->most > INT32_MAX ||
        range->step > range->most - range->least)))
    return pph_fail(error, PPH_INVALID_ARGUMENT, input,
                    "dimension %d has the lengths %lld..%lld:%lld; from 1 on, "
                    "the first must be below the second, and the step at most "
                    "their distance",
                    (int)at.axis, (long long)range->least,
                    (long long)range->most, (long long)range->step);
  for (place b = before_first(); step(plan, &b);) {
    const pph_length_range *other = find_range(plan, b);
    if (!same_length(plan, at, b) || (other->least == range->least &&
                                      other->most == range->most &&
                                      other->step == range->step))
      continue;
    return pph_fail(error, PPH_INVALID_ARGUMENT, input,
                    "dimension %d is \"%.60s\", which has other lengths in "
                    "input \"%.60s\"",
                    (int)at.axis, find_name(plan, at),
                    pph_graph_value(graph, graph->inputs[b.input])->name);
  }
  return PPH_OK;
}

/* Lengths, of a range, by the place in the lists below. */
typedef int64_t choose(const pph_length_range *range);

static int64_t most(const pph_length_range *r) { return r->most; }
static int64_t twice(const pph_length_range *r) { return 2 * r->most; }
static int64_t half(const pph_length_range *r) { return r->most / 2; }
static int64_t below(const pph_length_range *r) { return r->most - r->step; }
static int64_t above(const pph_length_range *r) { return r->most + r->step; }
static int64_t least(const pph_length_range *r) {
  return r->most - (r->most - r->least) / r->step * r->step;
}
static int64_t second(const pph_length_range *r) { return least(r) + r->step; }
static int64_t middle(const pph_length_range *r) {
  return r->most - (r->most - r->least) / r->step / 2 * r->step;
}

/* All dimensions, or those that have one length with `alone`. */
static void set_shapes(const pph_size_plan *plan, choose *how,
                       const place *alone) {
  for (place at = before_first(); step(plan, &at);) {
    const pph_length_range *range = find_range(plan, at);
    bool changes = is_open(range) && (!alone || same_length(plan, at, *alone));
    pph_shape *shape = &plan->shapes[at.input];
    shape->dims[at.axis] = changes ? how(range) : range->most;
  }
}

void pph_size_plan_find_most(const pph_size_plan *plan) {
  set_shapes(plan, most, NULL);
}

bool pph_size_plan_find_other(const pph_size_plan *plan, uint32_t index) {
  static choose *const ways[] = {twice, below, above, half};
  if (index >= sizeof ways / sizeof *ways)
    return false;
  set_shapes(plan, ways[index], NULL);
  return true;
}

bool pph_size_plan_find_within(const pph_size_plan *plan, uint32_t index) {
  static choose *const ways[] = {least, middle, below, second};
  const uint32_t count = sizeof ways / sizeof *ways;
  uint32_t alone = index / count;
  place at = before_first();
  choose *how = ways[index % count];
  if (!alone) {
    set_shapes(plan, how, NULL);
    return true;
  }
  while (alone && step(plan, &at))
    alone -= is_open(find_range(plan, at));
  if (alone)
    return false;
  set_shapes(plan, how, &at);
  return true;
}

pph_status pph_size_plan_init(pph_size_plan *plan, const pph_graph *graph,
                              const pph_shape_range *inputs, pph_heap *heap,
                              pph_error *error) {
  *plan = (pph_size_plan){.graph = graph, .inputs = inputs};
  for (place at = before_first(); step(plan, &at);) {
    PPH_TRY(check_range(plan, at, error));
    plan->open_count += is_open(find_range(plan, at));
  }
  plan->shapes = pph_heap_allocate_zeroed(heap, graph->input_count,
                                          sizeof *plan->shapes);
  if (!plan->shapes)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < graph->input_count; i++)
    plan->shapes[i].rank = inputs[i].rank;
  /* Where the model says a length, there can be no other. */
  set_shapes(plan, least, NULL);
  pph_status status = PPH_OK;
  for (uint32_t i = 0; status == PPH_OK && i < graph->input_count; i++) {
    const pph_value *value = pph_graph_value(graph, graph->inputs[i]);
    const pph_tensor tensor = {value->type, plan->shapes[i], NULL};
    status = pph_input_check(value, &tensor, error);
  }
  if (status != PPH_OK)
    pph_size_plan_clear(plan, heap);
  return status;
}

void pph_size_plan_clear(pph_size_plan *plan, pph_heap *heap) {
  pph_heap_release(heap, plan->shapes);
  plan->shapes = NULL;
}

void pph_size_plan_print(const pph_size_plan *plan, char *text, size_t size) {
  char shape[128];
  size_t at = 0;
  *text = 0;
  for (uint32_t i = 0; i < plan->graph->input_count && at < size; i++) {
    bool open = false;
    for (int32_t k = 0; k < plan->inputs[i].rank; k++)
      open |= is_open(&plan->inputs[i].dims[k]);
    if (open)
      at += (size_t)snprintf(
          text + at, size - at, "%s%.60s %s", at ? ", " : "",
          pph_graph_value(plan->graph, plan->graph->inputs[i])->name,
          pph_shape_text(&plan->shapes[i], shape, sizeof shape));
  }
}
