/* Elementwise kinds of several inputs, with broadcasting. */
#include <math.h>
#include <string.h>

#include "graph/eval_rules.h"

enum { PIECE = 256 };

/* A function of two numbers. */
typedef double real_function(double a, double b);
typedef int64_t integer_function(int64_t a, int64_t b);

/* What one pass over two broadcast operands does. */
typedef struct pair_job {
  const pph_tensor *a, *b, *y;
  real_function *real; /* one of these two */
  integer_function *integer;
} pair_job;

static void run_real_row(const pair_job *job, const pph_walk *walk) {
  double a[PIECE], b[PIECE];
  for (int64_t at = 0; at < walk->length; at += PIECE) {
    int64_t n = pph_min_i64(PIECE, walk->length - at);
    pph_number_load_reals(job->a, walk->offset[0] + at * walk->step[0],
                          walk->step[0], a, n);
    pph_number_load_reals(job->b, walk->offset[1] + at * walk->step[1],
                          walk->step[1], b, n);
    for (int64_t i = 0; i < n; i++)
      a[i] = job->real(a[i], b[i]);
    pph_number_store_reals(job->y, walk->offset[2] + at, a, n);
  }
}

static void run_integer_row(const pair_job *job, const pph_walk *walk) {
  int64_t a[PIECE], b[PIECE];
  for (int64_t at = 0; at < walk->length; at += PIECE) {
    int64_t n = pph_min_i64(PIECE, walk->length - at);
    pph_number_load_integers(job->a, walk->offset[0] + at * walk->step[0],
                             walk->step[0], a, n);
    pph_number_load_integers(job->b, walk->offset[1] + at * walk->step[1],
                             walk->step[1], b, n);
    for (int64_t i = 0; i < n; i++)
      a[i] = job->integer(a[i], b[i]);
    pph_number_store_integers(job->y, walk->offset[2] + at, a, n);
  }
}

static void run_pairs(const pair_job *job) {
  pph_walk walk;
  pph_walk_init(&walk, &job->y->shape, 3);
  pph_walk_broadcast(&walk, 0, &job->a->shape);
  pph_walk_broadcast(&walk, 1, &job->b->shape);
  pph_eval_strides(&job->y->shape, walk.strides[2]);
  pph_walk_join(&walk);
  while (pph_walk_next(&walk)) {
    if (job->real)
      run_real_row(job, &walk);
    else
      run_integer_row(job, &walk);
  }
}

static double real_add(double a, double b) { return a + b; }
static double real_sub(double a, double b) { return a - b; }
static double real_mul(double a, double b) { return a * b; }
static double real_div(double a, double b) { return a / b; }
static double real_prelu(double a, double b) { return a < 0 ? a * b : a; }
static double real_mod(double a, double b) {
  double m = fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
static double real_max(double a, double b) {
  return isnan(a) || a > b ? a : b; /* NaN wins */
}
static double real_min(double a, double b) { return isnan(a) || a < b ? a : b; }

/* Wrapping without undefined behaviour. Divisors are not 0: checked before. */
static int64_t integer_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t integer_sub(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a - (uint64_t)b);
}
static int64_t integer_mul(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}
static int64_t integer_div(int64_t a, int64_t b) {
  return b == -1 ? integer_sub(0, a) : a / b;
}
static int64_t integer_remainder(int64_t a, int64_t b) {
  return b == -1 ? 0 : a % b;
}
static int64_t integer_mod(int64_t a, int64_t b) {
  int64_t m = integer_remainder(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
static int64_t integer_prelu(int64_t a, int64_t b) {
  return a < 0 ? integer_mul(a, b) : a;
}
static int64_t integer_max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t integer_min(int64_t a, int64_t b) { return a < b ? a : b; }

static double real_equal(double a, double b) { return a == b; }
static double real_greater(double a, double b) { return a > b; }
static double real_greater_equal(double a, double b) { return a >= b; }
static double real_less(double a, double b) { return a < b; }
static double real_less_equal(double a, double b) { return a <= b; }
static int64_t integer_equal(int64_t a, int64_t b) { return a == b; }
static int64_t integer_greater(int64_t a, int64_t b) { return a > b; }
static int64_t integer_greater_equal(int64_t a, int64_t b) { return a >= b; }
static int64_t integer_less(int64_t a, int64_t b) { return a < b; }
static int64_t integer_less_equal(int64_t a, int64_t b) { return a <= b; }
static int64_t integer_and(int64_t a, int64_t b) { return a && b; }
static int64_t integer_or(int64_t a, int64_t b) { return a || b; }

typedef struct pair_row {
  pph_node_kind kind;
  real_function *real;
  integer_function *integer;
} pair_row;

static const pair_row pair_rows[] = {
    {PPH_NODE_ADD, real_add, integer_add},
    {PPH_NODE_AND, NULL, integer_and},
    {PPH_NODE_DIV, real_div, integer_div},
    {PPH_NODE_EQUAL, real_equal, integer_equal},
    {PPH_NODE_GREATER, real_greater, integer_greater},
    {PPH_NODE_GREATER_OR_EQUAL, real_greater_equal, integer_greater_equal},
    {PPH_NODE_LESS, real_less, integer_less},
    {PPH_NODE_LESS_OR_EQUAL, real_less_equal, integer_less_equal},
    {PPH_NODE_MAX, real_max, integer_max},
    {PPH_NODE_MIN, real_min, integer_min},
    {PPH_NODE_MOD, real_mod, integer_mod},
    {PPH_NODE_MUL, real_mul, integer_mul},
    {PPH_NODE_OR, NULL, integer_or},
    {PPH_NODE_PRELU, real_prelu, integer_prelu},
    {PPH_NODE_SUB, real_sub, integer_sub},
};

static pair_row find_pair(pph_node_kind kind) {
  const pair_row *row = pair_rows;
  while (row->kind != kind)
    row++;
  return *row;
}

/* u64 has the bits of int64_t, but not its order. */
static bool needs_order(pph_node_kind kind) {
  return kind != PPH_NODE_ADD && kind != PPH_NODE_SUB && kind != PPH_NODE_MUL &&
         kind != PPH_NODE_EQUAL;
}

/* The row's function for the job's element type. */
static pph_status run_row(const pph_eval *eval, const pair_row *row,
                          pair_job *job) {
  pph_dtype type = job->a->type;
  bool real = pph_number_is_real(type) && row->real;
  bool integer = pph_number_is_integer(type) && row->integer &&
                 (type != PPH_U64 || !needs_order(row->kind));
  if ((!real && !integer) || job->b->type != type)
    return pph_eval_fail_type(eval, type);
  job->real = real ? row->real : NULL;
  job->integer = real ? NULL : row->integer;
  run_pairs(job);
  return PPH_OK;
}

static pph_status check_divisors(const pph_eval *eval) {
  const pph_tensor *divisor = &eval->inputs[1];
  size_t count = pph_eval_count(divisor);
  if (pph_eval_count(&eval->outputs[0]) == 0 ||
      !pph_number_is_integer(divisor->type))
    return PPH_OK;
  for (size_t i = 0; i < count; i++)
    if (pph_number_integer(divisor, (int64_t)i) == 0)
      return pph_node_fail(eval->node, eval->error, PPH_BAD_MODEL,
                           "divisor %zu is 0, integers must not be divided "
                           "by 0",
                           i);
  return PPH_OK;
}

static pair_job inputs_job(const pph_eval *eval) {
  return (pair_job){
      .a = &eval->inputs[0], .b = &eval->inputs[1], .y = &eval->outputs[0]};
}

pph_status pph_eval_binary(const pph_eval *eval) {
  pair_row row = find_pair(eval->node->kind);
  if (row.kind == PPH_NODE_DIV || row.kind == PPH_NODE_MOD)
    PPH_TRY(check_divisors(eval));
  if (row.kind == PPH_NODE_MOD &&
      pph_node_int(eval->node, PPH_ATTR_FMOD, 0) != 0) {
    row.real = fmod;
    row.integer = integer_remainder;
  }
  pair_job job = inputs_job(eval);
  /* PRelu's result has its first input's shape: the slope alone broadcasts. */
  return run_row(eval, &row, &job);
}

/* Results go through the domain of the inputs into a bool. */
pph_status pph_eval_compare(const pph_eval *eval) {
  pair_row row = find_pair(eval->node->kind);
  pair_job job = inputs_job(eval);
  return run_row(eval, &row, &job);
}

pph_status pph_eval_logic(const pph_eval *eval) {
  if (eval->inputs[0].type != PPH_BOOL)
    return pph_eval_fail_type(eval, eval->inputs[0].type);
  return pph_eval_compare(eval);
}

/* Copies `source` to all places that it broadcasts to. */
static void spread(const pph_tensor *source, const pph_tensor *target) {
  pph_walk walk;
  pph_walk_init(&walk, &target->shape, 2);
  pph_walk_broadcast(&walk, 0, &source->shape);
  pph_eval_strides(&target->shape, walk.strides[1]);
  pph_walk_copy(&walk, pph_dtype_size(target->type), source->data,
                target->data);
}

/* Folds the inputs into the output one by one. */
pph_status pph_eval_extreme(const pph_eval *eval) {
  pair_row row = find_pair(eval->node->kind);
  const pph_tensor *output = &eval->outputs[0];
  if (!pph_number_is_real(output->type) &&
      (!pph_number_is_integer(output->type) || output->type == PPH_U64))
    return pph_eval_fail_type(eval, output->type);
  spread(&eval->inputs[0], output);
  for (uint32_t i = 1; i < eval->node->input_count; i++) {
    pair_job job = {.a = output, .b = &eval->inputs[i], .y = output};
    PPH_TRY(run_row(eval, &row, &job));
  }
  return PPH_OK;
}

/* By squaring, wrapping; a negative exponent gives the truncated fraction. */
static int64_t integer_pow(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == -1)
      return exponent % 2 == 0 ? 1 : -1;
    return base == 1;
  }
  uint64_t result = 1, factor = (uint64_t)base;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1)
      result *= factor;
    factor *= factor;
  }
  return (int64_t)result;
}

/* Base and exponent may differ in type; the result has the base's. */
pph_status pph_eval_pow(const pph_eval *eval) {
  pair_job job = inputs_job(eval);
  if (pph_dtype_size(job.a->type) == 0 || job.a->type == PPH_BOOL)
    return pph_eval_fail_type(eval, job.a->type);
  if (pph_dtype_size(job.b->type) == 0 || job.b->type == PPH_BOOL)
    return pph_eval_fail_type(eval, job.b->type);
  bool integer =
      pph_number_is_integer(job.a->type) && pph_number_is_integer(job.b->type);
  job.real = integer ? NULL : pow;
  job.integer = integer ? integer_pow : NULL;
  run_pairs(&job);
  return PPH_OK;
}

static void choose_row(const pph_eval *eval, const pph_walk *walk,
                       size_t size) {
  const uint8_t *condition = eval->inputs[0].data;
  const char *from[2] = {eval->inputs[2].data, eval->inputs[1].data};
  char *to = (char *)eval->outputs[0].data + walk->offset[3] * (int64_t)size;
  for (int64_t i = 0; i < walk->length; i++) {
    int choice = condition[walk->offset[0] + i * walk->step[0]] != 0;
    uint32_t k = choice ? 1 : 2;
    int64_t at = walk->offset[k] + i * walk->step[k];
    memcpy(to + i * (int64_t)size, from[choice] + at * (int64_t)size, size);
  }
}

pph_status pph_eval_where(const pph_eval *eval) {
  const pph_tensor *output = &eval->outputs[0];
  if (eval->inputs[0].type != PPH_BOOL)
    return pph_eval_fail_type(eval, eval->inputs[0].type);
  pph_walk walk;
  pph_walk_init(&walk, &output->shape, 4);
  for (uint32_t k = 0; k < 3; k++)
    pph_walk_broadcast(&walk, k, &eval->inputs[k].shape);
  pph_eval_strides(&output->shape, walk.strides[3]);
  pph_walk_join(&walk);
  while (pph_walk_next(&walk))
    choose_row(eval, &walk, pph_dtype_size(output->type));
  return PPH_OK;
}
