/* Kinds that go through each line of one axis: sums so far, and the greatest or
   least elements in their order. */
#include <math.h>

#include "graph/eval_rules.h"

/* The lines of a tensor along an axis. */
typedef struct lines {
  int64_t count, length, inner; /* elements of a line are `inner` apart */
} lines;

static lines find_lines(const pph_shape *shape, int64_t axis) {
  int32_t at = pph_eval_axis(axis, shape->rank);
  int64_t inner = pph_eval_product(shape, at + 1, shape->rank);
  return (lines){pph_eval_product(shape, 0, at) * inner, shape->dims[at],
                 inner};
}

/* Where line i begins in a tensor with `length` elements a line. */
static int64_t line_start(const lines *all, int64_t i, int64_t length) {
  return i / all->inner * length * all->inner + i % all->inner;
}

/* Sums along one line. */
static void add_line(const pph_eval *eval, int64_t start, const lines *all) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  bool real = pph_number_is_real(input->type);
  bool exclusive = pph_node_int(eval->node, PPH_ATTR_EXCLUSIVE, 0) != 0;
  bool reverse = pph_node_int(eval->node, PPH_ATTR_REVERSE, 0) != 0;
  double real_sum = 0;
  int64_t sum = 0;
  for (int64_t k = 0; k < all->length; k++) {
    int64_t at = start + (reverse ? all->length - 1 - k : k) * all->inner;
    double real_before = real_sum;
    int64_t before = sum;
    if (real) {
      real_sum += pph_number_real(input, at);
      pph_number_store_reals(output, at, exclusive ? &real_before : &real_sum,
                             1);
    } else {
      sum = (int64_t)((uint64_t)sum + (uint64_t)pph_number_integer(input, at));
      pph_number_store_integers(output, at, exclusive ? &before : &sum, 1);
    }
  }
}

pph_status pph_eval_cum_sum(const pph_eval *eval) {
  const pph_shape *shape = &eval->inputs[0].shape;
  int64_t axis = pph_number_integer(&eval->inputs[1], 0);
  if (axis < -shape->rank || axis >= shape->rank)
    return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                         "axis is %lld of %d dimensions", (long long)axis,
                         shape->rank);
  if (pph_eval_count(&eval->outputs[0]) == 0)
    return PPH_OK;
  lines all = find_lines(shape, axis);
  for (int64_t i = 0; i < all.count; i++)
    add_line(eval, line_start(&all, i, all.length), &all);
  return PPH_OK;
}

/* A line to be sorted; one of the two has its elements. */
typedef struct sorting {
  double *reals;
  int64_t *integers;
  int64_t *order, *spare; /* places in the line */
  int64_t length;
  bool largest;
} sorting;

static bool comes_before(const sorting *line, int64_t a, int64_t b) {
  if (line->integers)
    return line->largest ? line->integers[a] > line->integers[b]
                         : line->integers[a] < line->integers[b];
  double x = line->reals[line->largest ? b : a];
  double y = line->reals[line->largest ? a : b];
  return x < y || (isnan(y) && !isnan(x));
}

/* Merges [begin, middle) and [middle, end) of `order` into `spare`. */
static void merge(const sorting *line, int64_t begin, int64_t middle,
                  int64_t end) {
  int64_t left = begin, right = middle;
  for (int64_t i = begin; i < end; i++) {
    bool takes_right =
        left == middle ||
        (right < end &&
         comes_before(line, line->order[right], line->order[left]));
    line->spare[i] = line->order[takes_right ? right++ : left++];
  }
}

static void sort(sorting *line) {
  int64_t length = line->length;
  for (int64_t i = 0; i < length; i++)
    line->order[i] = i;
  for (int64_t run = 1; run < length; run *= 2) {
    for (int64_t i = 0; i < length; i += 2 * run)
      merge(line, i, pph_min_i64(i + run, length),
            pph_min_i64(i + 2 * run, length));
    int64_t *other = line->order;
    line->order = line->spare;
    line->spare = other;
  }
}

static void store_line(const pph_eval *eval, const sorting *line,
                       int64_t start, int64_t inner, int64_t count) {
  for (int64_t k = 0; k < count; k++) {
    int64_t from = line->order[k], to = start + k * inner;
    if (eval->outputs[0].data && line->integers)
      pph_number_store_integers(&eval->outputs[0], to, &line->integers[from],
                                1);
    else if (eval->outputs[0].data)
      pph_number_store_reals(&eval->outputs[0], to, &line->reals[from], 1);
    if (eval->outputs[1].data)
      pph_number_store_integers(&eval->outputs[1], to, &from, 1);
  }
}

static void sort_lines(const pph_eval *eval, const lines *all, int64_t kept,
                       sorting *line) {
  const pph_tensor *input = &eval->inputs[0];
  for (int64_t i = 0; i < all->count; i++) {
    int64_t start = line_start(all, i, all->length);
    if (line->integers)
      pph_number_load_integers(input, start, all->inner, line->integers,
                               all->length);
    else
      pph_number_load_reals(input, start, all->inner, line->reals,
                            all->length);
    sort(line);
    store_line(eval, line, line_start(all, i, kept), all->inner, kept);
  }
}

pph_status pph_eval_top_k(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0];
  int64_t axis = pph_node_int(eval->node, PPH_ATTR_AXIS, -1);
  pph_heap *heap = eval->graph->heap;
  if (pph_eval_count(input) == 0)
    return PPH_OK;
  lines all = find_lines(&input->shape, axis);
  int64_t kept = pph_number_integer(&eval->inputs[1], 0);
  int64_t *places =
      pph_heap_allocate(heap, (size_t)all.length, 2 * sizeof *places);
  void *elements =
      pph_heap_allocate(heap, (size_t)all.length, sizeof(double));
  sorting line = {.order = places,
                  .spare = places ? places + all.length : NULL,
                  .length = all.length,
                  .largest =
                      pph_node_int(eval->node, PPH_ATTR_LARGEST, 1) != 0};
  if (pph_number_is_real(input->type))
    line.reals = elements;
  else
    line.integers = elements;
  if (places && elements)
    sort_lines(eval, &all, kept, &line);
  pph_heap_release(heap, places);
  pph_heap_release(heap, elements);
  return places && elements ? PPH_OK : pph_fail_memory(eval->error);
}
