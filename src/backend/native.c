/* The native backend: our own code for convolutions, for moving data and for
   elementwise functions. */
#include <string.h>

#include "backend/native_conv.h"
#include "backend/native_rows.h"
#include "base/checked.h"
#include "base/fail.h"
#include "op/algo.h"

/* One of the three is in use: `conv` and `unary.apply` say which. */
typedef struct native_state {
  pph_native_conv *conv;
  pph_move move;
  pph_unary unary;
  size_t count; /* elements of a unary node */
} native_state;

static bool supports(const pph_graph *graph, const pph_node *node) {
  pph_unary unary;
  return pph_native_conv_supports(graph, node) ||
         pph_unary_find(graph, node, &unary) || pph_move_supports(graph, node);
}

static pph_status prepare_unary(pph_step *step, native_state *state,
                                pph_error *error) {
  const pph_value *out = pph_graph_value(step->graph, step->node->outputs[0]);
  if (!pph_shape_count(&out->shape, &state->count))
    return pph_node_fail(step->node, error, PPH_LIMIT_EXCEEDED,
                         "too many elements");
  step->algorithm = "native.elementwise";
  return PPH_OK;
}

static pph_status prepare_move(pph_backend_context *context, pph_step *step,
                               native_state *state, pph_error *error) {
  if (!pph_move_make(step->graph, step->node, context->heap, &state->move)) {
    pph_move_release(context->heap, &state->move);
    return pph_fail_memory(error); /* supports() said yes */
  }
  for (uint32_t i = 0; i < state->move.count; i++)
    pph_strided_copy_speed_up(&state->move.copies[i], context->cpu);
  step->algorithm = "native.copy";
  if (pph_move_is_alias(step->graph, step->node, &state->move)) {
    step->alias_input = state->move.sources[0];
    step->algorithm = "alias";
  }
  return PPH_OK;
}

static pph_status prepare(pph_backend_context *context, pph_step *step,
                          pph_error *error) {
  native_state *state =
      pph_heap_allocate_zeroed(context->heap, 1, sizeof *state);
  if (!state)
    return pph_fail_memory(error);
  pph_status status;
  if (pph_native_conv_supports(step->graph, step->node))
    status = pph_native_conv_prepare(context, step, &state->conv, error);
  else if (pph_unary_find(step->graph, step->node, &state->unary))
    status = prepare_unary(step, state, error);
  else
    status = prepare_move(context, step, state, error);
  if (status != PPH_OK) {
    pph_heap_release(context->heap, state);
    return status;
  }
  step->state = state;
  return PPH_OK;
}

/* Threads */

/* Copies [first, first + count) of a move, which have the same outermost axis
   of `rows`; a thread takes `tile` of them at a time. */
typedef struct copy_task {
  const pph_move *move;
  const pph_run_pointers *pointers;
  uint32_t first, count;
  size_t rows, tile;
  double bytes;
} copy_task;

static size_t count_rows(const pph_strided_copy *copy) {
  return copy->rank ? (size_t)copy->dims[0] : 1;
}

/* All copies of a few rows, then of the next: neighbours in the target (the
   inputs of a Concat) are written while they are in cache. One copy alone has
   no neighbours. */
static void copy_rows(void *argument, uint32_t worker, size_t block) {
  const double cached = 64 * 1024;
  const copy_task *task = argument;
  double wanted = cached / (task->bytes / (double)task->rows + 1);
  size_t begin = block * task->tile, end = begin + task->tile;
  size_t step = wanted < 1 ? 1 : (size_t)wanted;
  (void)worker;
  end = end < task->rows ? end : task->rows;
  step = task->count == 1 ? end - begin : step;
  for (size_t row = begin; row < end; row += step)
    for (uint32_t i = task->first; i < task->first + task->count; i++)
      pph_strided_copy_run(&task->move->copies[i],
                           task->pointers->inputs[task->move->sources[i]],
                           task->pointers->outputs[task->move->targets[i]],
                           (int64_t)row,
                           (int64_t)(end - row < step ? end : row + step));
}

/* Extends the task over the copies after `first` that have as many rows. */
static copy_task make_task(const pph_move *move,
                           const pph_run_pointers *pointers, uint32_t first) {
  copy_task task = {.move = move,
                    .pointers = pointers,
                    .first = first,
                    .rows = count_rows(&move->copies[first])};
  while (first + task.count < move->count &&
         count_rows(&move->copies[first + task.count]) == task.rows)
    task.bytes += pph_strided_copy_bytes(&move->copies[first + task.count++]);
  return task;
}

static void run_copies(pthreadpool_t pool, copy_task *task) {
  const double small = 64 * 1024; /* below this threads cost more */
  size_t threads =
      task->bytes < small || !pool ? 1 : pthreadpool_get_threads_count(pool);
  task->tile = pph_divide_up(task->rows, threads > 1 ? 4 * threads : 1);
  if (!task->rows)
    return;
  pph_algo_parallelize(pool, (uint32_t)threads,
                       pph_divide_up(task->rows, task->tile), copy_rows, task);
}

enum { UNARY_TILE = 4096 };

typedef struct unary_task {
  pph_unary unary;
  const float *source;
  float *target;
  size_t count;
} unary_task;

static void apply_tile(void *argument, uint32_t worker, size_t block) {
  const unary_task *task = argument;
  size_t begin = block * UNARY_TILE, end = begin + UNARY_TILE;
  (void)worker;
  end = end < task->count ? end : task->count;
  for (size_t i = begin; i < end; i++)
    task->target[i] =
        task->unary.apply(task->source[i], task->unary.alpha, task->unary.beta);
}

static void fill(const pph_move *move, void *target) {
  bool zero = true;
  for (size_t i = 0; i < move->fill_size; i++)
    zero &= move->fill_element[i] == 0;
  if (zero) {
    memset(target, 0, move->fill_count * move->fill_size);
    return;
  }
  char *bytes = target;
  for (size_t i = 0; i < move->fill_count; i++)
    memcpy(bytes + i * move->fill_size, move->fill_element, move->fill_size);
}

static pph_status run(pph_backend_context *context, const pph_step *step,
                      const pph_run_pointers *pointers, pph_error *error) {
  const native_state *state = step->state;
  if (state->conv)
    return pph_native_conv_run(context, state->conv, pointers, error);
  if (state->unary.apply) {
    unary_task task = {state->unary, pointers->inputs[0], pointers->outputs[0],
                       state->count};
    pph_algo_parallelize(context->pool, UINT32_MAX,
                         pph_divide_up(state->count, UNARY_TILE), apply_tile,
                         &task);
    return PPH_OK;
  }
  const pph_move *move = &state->move;
  if (move->fills)
    fill(move, pointers->outputs[0]);
  for (uint32_t i = 0; i < move->count;) {
    copy_task task = make_task(move, pointers, i);
    run_copies(context->pool, &task);
    i += task.count;
  }
  return PPH_OK;
}

static void release(pph_backend_context *context, pph_step *step) {
  native_state *state = step->state;
  if (state) {
    pph_native_conv_release(context->heap, state->conv);
    pph_move_release(context->heap, &state->move);
  }
  pph_heap_release(context->heap, state);
  step->state = NULL;
}

const pph_backend pph_backend_native = {
    "native", supports, pph_native_conv_prefers, prepare, run, release};
