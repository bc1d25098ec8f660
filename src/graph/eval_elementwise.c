/* Elementwise kinds. Real types are computed in double and rounded once,
   integers in wrapping 64 bits, both in pieces of a row. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/eval_rules.h"

enum { PIECE = 256 };

/* Kinds of one input. */

typedef struct unary_row {
  pph_node_kind kind;
  double (*real)(double x, double alpha, double beta);
  int64_t (*integer)(int64_t x); /* NULL: no such loop */
  double alpha, beta;            /* defaults of the attributes */
} unary_row;

static uint64_t wrap(int64_t x) { return (uint64_t)x; }

#define REAL(name, expression)                                                 \
  static double name(double x, double alpha, double beta) {                    \
    (void)alpha, (void)beta;                                                   \
    return expression;                                                         \
  }
REAL(real_abs, fabs(x))
REAL(real_ceil, ceil(x))
REAL(real_cos, cos(x))
REAL(real_elu, x < 0 ? alpha * expm1(x) : x)
REAL(real_erf, erf(x))
REAL(real_exp, exp(x))
REAL(real_floor, floor(x))
REAL(real_leaky_relu, x < 0 ? alpha * x : x)
REAL(real_log, log(x))
REAL(real_neg, -x)
REAL(real_reciprocal, 1 / x)
REAL(real_relu, x < 0 ? 0 : x)
REAL(real_round, nearbyint(x)) /* the default mode: half to even */
REAL(real_sigmoid, 1 / (1 + exp(-x)))
REAL(real_sign, isnan(x) ? x : (double)((x > 0) - (x < 0)))
REAL(real_sin, sin(x))
REAL(real_softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
REAL(real_sqrt, sqrt(x))
REAL(real_tanh, tanh(x))

static double real_hard_sigmoid(double x, double alpha, double beta) {
  double y = alpha * x + beta;
  y = y < 0 ? 0 : y;
  return y > 1 ? 1 : y;
}

static double real_hard_swish(double x, double alpha, double beta) {
  return x * real_hard_sigmoid(x, alpha, beta);
}

static int64_t integer_neg(int64_t x) { return (int64_t)(0 - wrap(x)); }
static int64_t integer_abs(int64_t x) { return x < 0 ? integer_neg(x) : x; }
static int64_t integer_sign(int64_t x) { return (x > 0) - (x < 0); }
static int64_t integer_relu(int64_t x) { return x < 0 ? 0 : x; }
static int64_t integer_same(int64_t x) { return x; }
static int64_t integer_not(int64_t x) { return !x; }

static const unary_row unary_rows[] = {
    {PPH_NODE_ABS, real_abs, integer_abs, 0, 0},
    {PPH_NODE_CEIL, real_ceil, integer_same, 0, 0},
    {PPH_NODE_COS, real_cos, NULL, 0, 0},
    {PPH_NODE_ELU, real_elu, NULL, 1, 0},
    {PPH_NODE_ERF, real_erf, NULL, 0, 0},
    {PPH_NODE_EXP, real_exp, NULL, 0, 0},
    {PPH_NODE_FLOOR, real_floor, integer_same, 0, 0},
    {PPH_NODE_HARD_SIGMOID, real_hard_sigmoid, NULL, 0.2f, 0.5f},
    {PPH_NODE_HARD_SWISH, real_hard_swish, NULL, 1.0 / 6, 0.5},
    {PPH_NODE_LEAKY_RELU, real_leaky_relu, NULL, 0.01f, 0},
    {PPH_NODE_LOG, real_log, NULL, 0, 0},
    {PPH_NODE_NEG, real_neg, integer_neg, 0, 0},
    {PPH_NODE_NOT, NULL, integer_not, 0, 0},
    {PPH_NODE_RECIPROCAL, real_reciprocal, NULL, 0, 0},
    {PPH_NODE_RELU, real_relu, integer_relu, 0, 0},
    {PPH_NODE_ROUND, real_round, integer_same, 0, 0},
    {PPH_NODE_SIGMOID, real_sigmoid, NULL, 0, 0},
    {PPH_NODE_SIGN, real_sign, integer_sign, 0, 0},
    {PPH_NODE_SIN, real_sin, NULL, 0, 0},
    {PPH_NODE_SOFTPLUS, real_softplus, NULL, 0, 0},
    {PPH_NODE_SQRT, real_sqrt, NULL, 0, 0},
    {PPH_NODE_TANH, real_tanh, NULL, 0, 0},
};

static const unary_row *find_unary(pph_node_kind kind) {
  const unary_row *row = unary_rows;
  while (row->kind != kind)
    row++;
  return row;
}

/* The attribute, or a default that need not be a float. */
static double read_parameter(const pph_node *node, pph_attribute_key key,
                             double fallback) {
  return pph_node_find_attribute(node, key) ? pph_node_float(node, key, 0)
                                            : fallback;
}

static void run_unary_real(const pph_eval *eval, const unary_row *row) {
  double alpha = row->alpha, beta = row->beta;
  if (row->kind != PPH_NODE_HARD_SWISH) { /* its numbers are fixed */
    alpha = read_parameter(eval->node, PPH_ATTR_ALPHA, alpha);
    beta = read_parameter(eval->node, PPH_ATTR_BETA, beta);
  }
  int64_t count = (int64_t)pph_eval_count(&eval->outputs[0]);
  double x[PIECE];
  for (int64_t at = 0; at < count; at += PIECE) {
    int64_t n = pph_min_i64(PIECE, count - at);
    pph_number_load_reals(&eval->inputs[0], at, 1, x, n);
    for (int64_t i = 0; i < n; i++)
      x[i] = row->real(x[i], alpha, beta);
    pph_number_store_reals(&eval->outputs[0], at, x, n);
  }
}

static void run_unary_integer(const pph_eval *eval, const unary_row *row) {
  int64_t count = (int64_t)pph_eval_count(&eval->outputs[0]);
  int64_t x[PIECE];
  for (int64_t at = 0; at < count; at += PIECE) {
    int64_t n = pph_min_i64(PIECE, count - at);
    pph_number_load_integers(&eval->inputs[0], at, 1, x, n);
    for (int64_t i = 0; i < n; i++)
      x[i] = row->integer(x[i]);
    pph_number_store_integers(&eval->outputs[0], at, x, n);
  }
}

pph_status pph_eval_unary(const pph_eval *eval) {
  const unary_row *row = find_unary(eval->node->kind);
  pph_dtype type = eval->inputs[0].type;
  if (pph_number_is_real(type) && row->real)
    run_unary_real(eval, row);
  else if (pph_number_is_integer(type) && row->integer)
    run_unary_integer(eval, row);
  else
    return pph_eval_fail_type(eval, type);
  return PPH_OK;
}

static void clip_reals(const pph_eval *eval, double low, double high) {
  int64_t count = (int64_t)pph_eval_count(&eval->outputs[0]);
  double x[PIECE];
  for (int64_t at = 0; at < count; at += PIECE) {
    int64_t n = pph_min_i64(PIECE, count - at);
    pph_number_load_reals(&eval->inputs[0], at, 1, x, n);
    for (int64_t i = 0; i < n; i++) {
      x[i] = x[i] < low ? low : x[i];
      x[i] = x[i] > high ? high : x[i];
    }
    pph_number_store_reals(&eval->outputs[0], at, x, n);
  }
}

static void clip_integers(const pph_eval *eval, int64_t low, int64_t high) {
  int64_t count = (int64_t)pph_eval_count(&eval->outputs[0]);
  int64_t x[PIECE];
  for (int64_t at = 0; at < count; at += PIECE) {
    int64_t n = pph_min_i64(PIECE, count - at);
    pph_number_load_integers(&eval->inputs[0], at, 1, x, n);
    for (int64_t i = 0; i < n; i++)
      x[i] = pph_min_i64(pph_max_i64(x[i], low), high);
    pph_number_store_integers(&eval->outputs[0], at, x, n);
  }
}

pph_status pph_eval_clip(const pph_eval *eval) {
  pph_dtype type = eval->inputs[0].type;
  bool has_low = pph_eval_has_elements(eval, 1);
  bool has_high = pph_eval_has_elements(eval, 2);
  if (pph_number_is_real(type)) {
    double low = -INFINITY, high = INFINITY;
    if (has_low)
      pph_number_load_reals(&eval->inputs[1], 0, 0, &low, 1);
    if (has_high)
      pph_number_load_reals(&eval->inputs[2], 0, 0, &high, 1);
    clip_reals(eval, low, high);
  } else if (pph_number_is_integer(type) && type != PPH_U64) {
    clip_integers(
        eval, has_low ? pph_number_integer(&eval->inputs[1], 0) : INT64_MIN,
        has_high ? pph_number_integer(&eval->inputs[2], 0) : INT64_MAX);
  } else {
    return pph_eval_fail_type(eval, type);
  }
  return PPH_OK;
}

static void cast_reals(const pph_eval *eval) {
  int64_t count = (int64_t)pph_eval_count(&eval->outputs[0]);
  double x[PIECE];
  for (int64_t at = 0; at < count; at += PIECE) {
    int64_t n = pph_min_i64(PIECE, count - at);
    pph_number_load_reals(&eval->inputs[0], at, 1, x, n);
    pph_number_store_reals(&eval->outputs[0], at, x, n);
  }
}

static void cast_integers(const pph_eval *eval) {
  int64_t count = (int64_t)pph_eval_count(&eval->outputs[0]);
  int64_t x[PIECE];
  for (int64_t at = 0; at < count; at += PIECE) {
    int64_t n = pph_min_i64(PIECE, count - at);
    pph_number_load_integers(&eval->inputs[0], at, 1, x, n);
    pph_number_store_integers(&eval->outputs[0], at, x, n);
  }
}

/* Integers stay integers on the way, but for u64 into reals, where int64_t
   would lose the upper half. */
pph_status pph_eval_cast(const pph_eval *eval) {
  pph_dtype from = eval->inputs[0].type, to = eval->outputs[0].type;
  if (pph_dtype_size(from) == 0)
    return pph_eval_fail_type(eval, from);
  if (pph_dtype_size(to) == 0)
    return pph_eval_fail_type(eval, to);
  if (pph_number_is_real(from) || (from == PPH_U64 && pph_number_is_real(to)))
    cast_reals(eval);
  else
    cast_integers(eval);
  return PPH_OK;
}

pph_status pph_eval_identity(const pph_eval *eval) {
  size_t count = pph_eval_count(&eval->outputs[0]);
  if (count > 0)
    memcpy(eval->outputs[0].data, eval->inputs[0].data,
           count * pph_dtype_size(eval->outputs[0].type));
  return PPH_OK;
}
