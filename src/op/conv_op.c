#include "op/conv_op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "op/conv_desc.h"

struct pph_conv_op {
  pph_heap *heap;
  pph_conv_spec spec; /* lengths are those of the last reshape */
  pph_conv_desc desc; /* what it points to is below */
  pph_limits limits;
  char algorithm[32];
  float *owned_weights, *owned_bias, *slopes;
  bool has_shape;
  pph_algo_plan plan;
  pph_algo_cost cost;
};

static pph_status copy_floats(pph_heap *heap, const float *source,
                              size_t count, float **copy, pph_error *error) {
  *copy = pph_heap_allocate(heap, count, sizeof(float));
  if (!*copy)
    return pph_fail_memory(error);
  memcpy(*copy, source, count * sizeof(float));
  return PPH_OK;
}

static pph_status set_weights(pph_conv_op *op, const pph_conv_weights *weights,
                              size_t count, pph_error *error) {
  pph_conv_spec *spec = &op->spec;
  spec->weights = weights->weights;
  spec->bias = weights->bias;
  if (weights->borrowed)
    return PPH_OK;
  PPH_TRY(copy_floats(op->heap, weights->weights, count, &op->owned_weights,
                      error));
  spec->weights = op->owned_weights;
  if (!weights->bias)
    return PPH_OK;
  PPH_TRY(copy_floats(op->heap, weights->bias,
                      (size_t)spec->problem.out_channels, &op->owned_bias,
                      error));
  spec->bias = op->owned_bias;
  return PPH_OK;
}

static pph_status set_activation(pph_conv_op *op, const pph_conv_desc *desc,
                                 pph_error *error) {
  pph_conv_spec *spec = &op->spec;
  bool clamps = desc->activation == PPH_ACTIVATION_CLAMP;
  spec->low = clamps ? desc->low : -INFINITY;
  spec->high = clamps ? desc->high : INFINITY;
  if (desc->activation != PPH_ACTIVATION_LEAKY_RELU &&
      desc->activation != PPH_ACTIVATION_PRELU)
    return PPH_OK;
  size_t channels = (size_t)desc->out_channels;
  op->slopes = pph_heap_allocate(op->heap, channels, sizeof(float));
  if (!op->slopes)
    return pph_fail_memory(error);
  for (size_t i = 0; i < channels; i++)
    op->slopes[i] = desc->activation == PPH_ACTIVATION_PRELU ? desc->slopes[i]
                                                             : desc->slope;
  spec->slopes = op->slopes;
  op->desc.slopes = op->slopes;
  return PPH_OK;
}

/* The caller's desc may be gone at the next reshape. A name that is cut names
   no algorithm either way. */
static void copy_desc(pph_conv_op *op, const pph_conv_desc *desc) {
  op->desc = *desc;
  if (desc->limits) {
    op->limits = *desc->limits;
    op->desc.limits = &op->limits;
  }
  if (desc->algorithm) {
    snprintf(op->algorithm, sizeof op->algorithm, "%s", desc->algorithm);
    op->desc.algorithm = op->algorithm;
  }
}

/* "filtered" names every row "filtered.*" as well. */
static bool is_named(const pph_algo *algo, const char *name) {
  size_t length = strlen(name);
  return strncmp(algo->name, name, length) == 0 &&
         (algo->name[length] == 0 || algo->name[length] == '.');
}

static pph_status check_algorithm(const pph_conv_desc *desc,
                                  pph_error *error) {
  size_t count, used = 0;
  const pph_algo *const *list = pph_algo_list(&count);
  char names[288] = "";
  for (size_t i = 0; i < count; i++) {
    const char *name = list[i]->name;
    if (!desc->algorithm || is_named(list[i], desc->algorithm))
      return PPH_OK;
    if (used < sizeof names)
      used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                               used ? ", " : "", name);
  }
  return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                  "algorithm is \"%.32s\", must be NULL or one of %s",
                  desc->algorithm, names);
}

pph_status pph_conv_op_create(const pph_conv_desc *desc,
                              const pph_conv_weights *weights, pph_heap *heap,
                              pph_conv_op **op, pph_error *error) {
  *op = NULL;
  size_t count;
  PPH_TRY(pph_conv_desc_check(desc, weights->transposed, &count, error));
  if (!weights->weights)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                    "weights must not be NULL");
  PPH_TRY(check_algorithm(desc, error));
  pph_conv_op *made = pph_heap_allocate_zeroed(heap, 1, sizeof *made);
  if (!made)
    return pph_fail_memory(error);
  made->heap = heap;
  copy_desc(made, desc);
  pph_conv_desc_fill(desc, weights->transposed, &made->spec);
  pph_status status = set_weights(made, weights, count, error);
  if (status == PPH_OK)
    status = set_activation(made, desc, error);
  if (status != PPH_OK) {
    pph_conv_op_destroy(made);
    return status;
  }
  *op = made;
  return PPH_OK;
}

static void drop_plan(pph_conv_op *op) {
  if (op->plan.algo && op->plan.algo->release)
    op->plan.algo->release(op->heap, &op->plan);
  op->plan = (pph_algo_plan){0};
  op->cost = (pph_algo_cost){0};
  op->has_shape = false;
}

void pph_conv_op_destroy(pph_conv_op *op) {
  if (!op)
    return;
  drop_plan(op);
  pph_heap_release(op->heap, op->owned_weights);
  pph_heap_release(op->heap, op->owned_bias);
  pph_heap_release(op->heap, op->slopes);
  pph_heap_release(op->heap, op);
}

/* What is compared: a larger E must be worth it, or results would be less
   accurate for nothing that a user could notice. */
static double weigh(const pph_algo *algo, const pph_algo_cost *cost) {
  return cost->us * (algo->error_bound > PPH_HIGH_BOUND ? 1.03 : 1);
}

typedef struct ranked {
  const pph_algo *algo;
  pph_algo_cost cost;
} ranked;

/* What may be taken, the best first; of equals the one that the list has first.
   `least`: of what is allowed, the fewest bytes of packed weights. */
static uint32_t rank(const pph_conv_op *op, ranked *all, size_t *least) {
  const pph_conv_desc *desc = &op->desc;
  size_t count;
  uint32_t used = 0;
  const pph_algo *const *list = pph_algo_list(&count);
  /* As if for one thread, whatever there are: algorithms round differently, and
     results must not depend on the number of threads. */
  pph_conv_spec spec = op->spec;
  spec.threads = 1;
  *least = SIZE_MAX;
  for (size_t i = 0; i < count && used < PPH_CONV_CHOICES; i++) {
    if ((desc->algorithm && !is_named(list[i], desc->algorithm)) ||
        !pph_algo_allowed(list[i], &spec))
      continue;
    ranked one = {list[i], list[i]->cost(list[i], &spec)};
    *least = one.cost.packed_bytes < *least ? one.cost.packed_bytes : *least;
    if (one.cost.packed_bytes > desc->weight_bytes)
      continue;
    uint32_t at = used++;
    for (; at > 0 && weigh(one.algo, &one.cost) <
                         weigh(all[at - 1].algo, &all[at - 1].cost);
         at--)
      all[at] = all[at - 1];
    all[at] = one;
  }
  return used;
}

/* PPH_OK when there is a choice. */
static pph_status require_choice(const pph_conv_op *op, uint32_t count,
                                 size_t least, pph_error *error) {
  const pph_conv_desc *desc = &op->desc;
  if (count)
    return PPH_OK;
  if (least < SIZE_MAX)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "pph_conv_desc",
                    "packed weights take %zu bytes, weight_bytes is %llu",
                    least, (unsigned long long)desc->weight_bytes);
  char text[256];
  return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                  "algorithm %.32s does not support %s at this accuracy",
                  desc->algorithm ? desc->algorithm : "list",
                  pph_problem_print(&op->spec.problem, text, sizeof text));
}

static bool same_shape(const pph_conv_op *op, int64_t batch,
                       const int64_t *input) {
  const pph_problem *problem = &op->spec.problem;
  uint32_t axes = op->desc.axes;
  bool same = op->has_shape && problem->batch == batch;
  for (uint32_t i = 0; i < axes && same; i++)
    same = problem->axes[PPH_PROBLEM_AXES - axes + i].input == input[i];
  return same;
}

static pph_status make_plan(pph_conv_op *op, int64_t batch,
                            const int64_t *input, pph_error *error) {
  drop_plan(op);
  PPH_TRY(pph_conv_desc_resolve(&op->desc, batch, input, &op->spec, error));
  ranked all[PPH_CONV_CHOICES];
  size_t least;
  uint32_t count = rank(op, all, &least);
  PPH_TRY(require_choice(op, count, least, error));
  pph_algo_plan plan = {.algo = all[0].algo};
  PPH_TRY(plan.algo->prepare(plan.algo, &op->spec, op->heap, &plan, error));
  op->plan = plan;
  op->cost = all[0].cost;
  op->has_shape = true;
  return PPH_OK;
}

pph_status pph_conv_op_reshape(pph_conv_op *op, int64_t batch,
                               const int64_t *input, int64_t *output,
                               size_t *workspace_bytes, pph_error *error) {
  uint32_t axes = op->desc.axes;
  int64_t lengths[PPH_PROBLEM_AXES]; /* `output` may be the same array */
  memcpy(lengths, input, axes * sizeof *lengths);
  *workspace_bytes = 0;
  memset(output, 0, axes * sizeof *output);
  if (!same_shape(op, batch, lengths))
    PPH_TRY(make_plan(op, batch, lengths, error));
  for (uint32_t i = 0; i < axes; i++)
    output[i] = op->spec.problem.axes[PPH_PROBLEM_AXES - axes + i].output;
  *workspace_bytes = op->plan.thread_bytes * op->spec.threads;
  return PPH_OK;
}

pph_status pph_conv_op_rank(pph_conv_op *op, int64_t batch,
                            const int64_t *input, pph_conv_choice *choices,
                            uint32_t *count, pph_error *error) {
  ranked all[PPH_CONV_CHOICES];
  size_t least;
  *count = 0;
  drop_plan(op);
  PPH_TRY(pph_conv_desc_resolve(&op->desc, batch, input, &op->spec, error));
  uint32_t used = rank(op, all, &least);
  PPH_TRY(require_choice(op, used, least, error));
  for (uint32_t i = 0; i < used; i++)
    choices[i] = (pph_conv_choice){all[i].algo->name, all[i].cost.us};
  *count = used;
  return PPH_OK;
}

const char *pph_conv_op_print(const pph_conv_op *op, char *text, size_t size) {
  return pph_problem_print(&op->spec.problem, text, size);
}

static pph_status check_tensors(const pph_conv_op *op,
                                const pph_conv_tensors *tensors,
                                pph_error *error) {
  const char *where = "pph_conv_tensors";
  if (!op->has_shape)
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "no shape is set: call reshape first");
  PPH_TRY_POINTER(where, tensors->input, error);
  PPH_TRY_POINTER(where, tensors->output, error);
  if (op->spec.residual)
    PPH_TRY_POINTER(where, tensors->residual, error);
  size_t bytes = op->plan.thread_bytes;
  if (bytes && (!tensors->workspace ||
                (uintptr_t)tensors->workspace % PPH_ALIGNMENT))
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "workspace must be %zu bytes, aligned to %d",
                    bytes * op->spec.threads, PPH_ALIGNMENT);
  return PPH_OK;
}

pph_status pph_conv_op_run(const pph_conv_op *op,
                           const pph_conv_tensors *tensors, pph_error *error) {
  PPH_TRY(check_tensors(op, tensors, error));
  op->plan.algo->run(&op->plan, &op->spec, tensors);
  return PPH_OK;
}

/* Input, weights and output, once each. */
static double count_bytes(const pph_problem *problem) {
  double input = (double)problem->batch * (double)problem->in_channels;
  double output = (double)problem->batch * (double)problem->out_channels;
  double weights = (double)problem->in_channels *
                   (double)problem->out_channels / (double)problem->group;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    input *= (double)problem->axes[i].input;
    output *= (double)problem->axes[i].output;
    weights *= (double)problem->axes[i].kernel;
  }
  return sizeof(float) * (input + output + weights);
}

pph_operator_info pph_conv_op_explain(const pph_conv_op *op) {
  if (!op->has_shape)
    return (pph_operator_info){0};
  return (pph_operator_info){
      .algorithm = op->plan.algo->name,
      .kernel = op->plan.kernel,
      .error_bound = op->plan.algo->error_bound,
      .useful_flops = pph_problem_flops(&op->spec.problem),
      .done_flops = op->cost.done_flops,
      .moved_bytes = count_bytes(&op->spec.problem),
      .estimated_us = op->cost.us,
      .packed_bytes = op->cost.packed_bytes,
      .workspace_bytes = op->plan.thread_bytes * op->spec.threads};
}
