/* Reductions over any axes, and Softmax. */
#include <math.h>

#include "graph/eval_rules.h"

enum { PIECE = 256 };

typedef struct reduce_job {
  const pph_tensor *input, *output;
  pph_node_kind kind;
  int64_t results, per_result; /* elements that meet in one result */
  double *reals;               /* one of these two, a sum per result */
  int64_t *integers;
  pph_walk walk; /* operand 0 the input, 1 the sums */
} reduce_job;

static void find_reduced(const pph_eval *eval, bool *reduced) {
  int32_t rank = eval->inputs[0].shape.rank;
  int64_t count =
      pph_eval_has(eval, 1) ? (int64_t)pph_eval_count(&eval->inputs[1]) : 0;
  for (int32_t i = 0; i < rank; i++)
    reduced[i] = count == 0;
  for (int64_t i = 0; i < count && rank > 0; i++)
    reduced[pph_eval_axis(pph_number_integer(&eval->inputs[1], i), rank)] =
        true;
}

static void plan_reduce(const pph_eval *eval, reduce_job *job) {
  const pph_shape *shape = &eval->inputs[0].shape;
  bool reduced[PPH_MAX_RANK] = {false};
  *job = (reduce_job){.input = &eval->inputs[0],
                      .output = &eval->outputs[0],
                      .kind = eval->node->kind,
                      .per_result = 1};
  find_reduced(eval, reduced);
  pph_walk_init(&job->walk, shape, 2);
  pph_eval_strides(shape, job->walk.strides[0]);
  int64_t stride = 1;
  bool empty =
      pph_eval_count(job->output) == 0 || pph_eval_count(job->input) == 0;
  for (int32_t i = shape->rank - 1; i >= 0 && !empty; i--) {
    job->walk.strides[1][i] = reduced[i] ? 0 : stride;
    *(reduced[i] ? &job->per_result : &stride) *= shape->dims[i];
  }
  if (empty)
    job->per_result = 0;
  job->results = (int64_t)pph_eval_count(job->output);
  pph_walk_join(&job->walk);
}

static double join_reals(pph_node_kind kind, double a, double b) {
  if (kind == PPH_NODE_REDUCE_MAX)
    return isnan(a) || a > b ? a : b;
  if (kind == PPH_NODE_REDUCE_MIN)
    return isnan(a) || a < b ? a : b;
  return a + b;
}

static int64_t join_integers(pph_node_kind kind, int64_t a, int64_t b) {
  if (kind == PPH_NODE_REDUCE_MAX)
    return pph_max_i64(a, b);
  if (kind == PPH_NODE_REDUCE_MIN)
    return pph_min_i64(a, b);
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void reduce_reals(reduce_job *job) {
  pph_walk *walk = &job->walk;
  double first = job->kind == PPH_NODE_REDUCE_MAX   ? -INFINITY
                 : job->kind == PPH_NODE_REDUCE_MIN ? INFINITY
                                                    : 0;
  for (int64_t i = 0; i < job->results; i++)
    job->reals[i] = first;
  while (pph_walk_next(walk)) {
    double x[PIECE];
    for (int64_t at = 0; at < walk->length; at += PIECE) {
      int64_t n = pph_min_i64(PIECE, walk->length - at);
      double *sum = job->reals + walk->offset[1] + at * walk->step[1];
      pph_number_load_reals(job->input, walk->offset[0] + at * walk->step[0],
                            walk->step[0], x, n);
      for (int64_t i = 0; i < n; i++, sum += walk->step[1])
        *sum = join_reals(job->kind, *sum, x[i]);
    }
  }
  if (job->kind == PPH_NODE_REDUCE_MEAN)
    for (int64_t i = 0; i < job->results; i++)
      job->reals[i] /= (double)job->per_result;
  pph_number_store_reals(job->output, 0, job->reals, job->results);
}

static void reduce_integers(reduce_job *job) {
  pph_walk *walk = &job->walk;
  int64_t first = job->kind == PPH_NODE_REDUCE_MAX   ? INT64_MIN
                  : job->kind == PPH_NODE_REDUCE_MIN ? INT64_MAX
                                                     : 0;
  for (int64_t i = 0; i < job->results; i++)
    job->integers[i] = first;
  while (pph_walk_next(walk)) {
    int64_t *sum = job->integers + walk->offset[1];
    for (int64_t i = 0; i < walk->length; i++, sum += walk->step[1]) {
      int64_t x =
          pph_number_integer(job->input, walk->offset[0] + i * walk->step[0]);
      *sum = join_integers(job->kind, *sum, x);
    }
  }
  if (job->kind == PPH_NODE_REDUCE_MEAN && job->per_result > 0)
    for (int64_t i = 0; i < job->results; i++)
      job->integers[i] /= job->per_result;
  pph_number_store_integers(job->output, 0, job->integers, job->results);
}

pph_status pph_eval_reduce(const pph_eval *eval) {
  pph_dtype type = eval->inputs[0].type;
  bool real = pph_number_is_real(type);
  if (!real && (!pph_number_is_integer(type) || type == PPH_U64))
    return pph_eval_fail_type(eval, type);
  reduce_job job;
  plan_reduce(eval, &job);
  void *sums =
      pph_heap_allocate(eval->graph->heap, (size_t)job.results, sizeof(double));
  if (!sums)
    return pph_fail_memory(eval->error);
  job.reals = sums;
  job.integers = sums;
  if (real)
    reduce_reals(&job);
  else
    reduce_integers(&job);
  pph_heap_release(eval->graph->heap, sums);
  return PPH_OK;
}

static void soften(double *line, int64_t count) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < count; i++)
    most = line[i] > most ? line[i] : most;
  for (int64_t i = 0; i < count; i++) {
    line[i] = exp(line[i] - most);
    sum += line[i];
  }
  for (int64_t i = 0; i < count; i++)
    line[i] /= sum;
}

pph_status pph_eval_softmax(const pph_eval *eval) {
  const pph_tensor *input = &eval->inputs[0], *output = &eval->outputs[0];
  const pph_shape *shape = &input->shape;
  if (!pph_number_is_real(input->type))
    return pph_eval_fail_type(eval, input->type);
  if (pph_eval_count(output) == 0)
    return PPH_OK;
  int32_t axis =
      pph_eval_axis(pph_node_int(eval->node, PPH_ATTR_AXIS, -1), shape->rank);
  int64_t count = shape->dims[axis];
  int64_t outer = pph_eval_product(shape, 0, axis);
  int64_t inner = pph_eval_product(shape, axis + 1, shape->rank);
  double *line =
      pph_heap_allocate(eval->graph->heap, (size_t)count, sizeof *line);
  if (!line)
    return pph_fail_memory(eval->error);
  for (int64_t i = 0; i < outer * inner; i++) {
    int64_t at = i / inner * count * inner + i % inner;
    pph_number_load_reals(input, at, inner, line, count);
    soften(line, count);
    if (inner == 1)
      pph_number_store_reals(output, at, line, count);
    else
      for (int64_t k = 0; k < count; k++)
        pph_number_store_reals(output, at + k * inner, line + k, 1);
  }
  pph_heap_release(eval->graph->heap, line);
  return PPH_OK;
}
