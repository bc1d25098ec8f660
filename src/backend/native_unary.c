/* Elementwise functions that XNNPACK's f32 operators lack. */
#include <math.h>

#include "backend/native_rows.h"

static float apply_tanh(float x, float alpha, float beta) { return tanhf(x); }
static float apply_exp(float x, float alpha, float beta) { return expf(x); }
static float apply_log(float x, float alpha, float beta) { return logf(x); }
static float apply_erf(float x, float alpha, float beta) { return erff(x); }
static float apply_sin(float x, float alpha, float beta) { return sinf(x); }
static float apply_cos(float x, float alpha, float beta) { return cosf(x); }
static float apply_sqrt(float x, float alpha, float beta) { return sqrtf(x); }
static float apply_reciprocal(float x, float alpha, float beta) {
  return 1.0f / x;
}
static float apply_softplus(float x, float alpha, float beta) {
  return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
}
static float apply_hard_sigmoid(float x, float alpha, float beta) {
  float y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}

static const struct {
  pph_node_kind kind;
  float (*apply)(float x, float alpha, float beta);
  float alpha, beta; /* ONNX's defaults */
} rows[] = {
    {PPH_NODE_TANH, apply_tanh, 0, 0},
    {PPH_NODE_EXP, apply_exp, 0, 0},
    {PPH_NODE_LOG, apply_log, 0, 0},
    {PPH_NODE_ERF, apply_erf, 0, 0},
    {PPH_NODE_SIN, apply_sin, 0, 0},
    {PPH_NODE_COS, apply_cos, 0, 0},
    {PPH_NODE_SQRT, apply_sqrt, 0, 0},
    {PPH_NODE_RECIPROCAL, apply_reciprocal, 0, 0},
    {PPH_NODE_SOFTPLUS, apply_softplus, 0, 0},
    {PPH_NODE_HARD_SIGMOID, apply_hard_sigmoid, 0.2f, 0.5f},
};

bool pph_unary_find(const pph_graph *graph, const pph_node *node,
                    pph_unary *unary) {
  const pph_value *in = pph_node_find_input(graph, node, 0);
  const pph_value *out = pph_graph_value(graph, node->outputs[0]);
  if (node->activation != PPH_ACTIVATION_NONE || in->type != PPH_F32 ||
      in->layout != out->layout)
    return false;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].kind == node->kind) {
      unary->apply = rows[i].apply;
      unary->alpha = pph_node_float(node, PPH_ATTR_ALPHA, rows[i].alpha);
      unary->beta = pph_node_float(node, PPH_ATTR_BETA, rows[i].beta);
      return true;
    }
  return false;
}
