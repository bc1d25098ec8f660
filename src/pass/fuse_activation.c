/* Activations that only bound or bend their input go into the node that makes
   it, if nothing else reads it. All f32. */
#include <math.h>

#include "base/fail.h"
#include "pass/match.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* What an activation node does; NaN bounds do not match. */
typedef struct bend {
  pph_activation kind;
  float low, high, alpha;
} bend;

static bool read_bound(const pph_graph *graph, const pph_node *node,
                       uint32_t slot, float fallback, float *bound) {
  *bound = fallback;
  return !pph_node_find_input(graph, node, slot) ||
         (pph_match_scalar(graph, node, slot, bound) && !isnan(*bound));
}

static bool match_clip(const pph_graph *graph, const pph_node *node,
                       bend *result) {
  result->kind = PPH_ACTIVATION_CLAMP;
  return read_bound(graph, node, 1, -INFINITY, &result->low) &&
         read_bound(graph, node, 2, INFINITY, &result->high) &&
         result->low < result->high;
}

static bool match(const pph_graph *graph, const pph_node *node,
                  bend *result) {
  const pph_value *out = pph_node_find_result(graph, node);
  *result = (bend){.low = 0, .high = INFINITY};
  if (node->activation != PPH_ACTIVATION_NONE || !out || out->type != PPH_F32)
    return false;
  switch ((int)node->kind) {
  case PPH_NODE_RELU:
    result->kind = PPH_ACTIVATION_CLAMP;
    return true;
  case PPH_NODE_CLIP:
    return match_clip(graph, node, result);
  case PPH_NODE_LEAKY_RELU:
    result->kind = PPH_ACTIVATION_LEAKY_RELU;
    result->alpha = pph_node_float(node, PPH_ATTR_ALPHA, 0.01f);
    return isfinite(result->alpha);
  default:
    return false;
  }
}

/* Kinds that take an activation: their kernels store through one anyway. A
   slope only where a convolution's kernel can apply it. */
static bool takes(const pph_node *node, pph_activation kind) {
  if (node->kind == PPH_NODE_CONV || node->kind == PPH_NODE_CONV_TRANSPOSE)
    return true;
  static const pph_node_kind clamped[] = {
      PPH_NODE_ADD,  PPH_NODE_SUB,    PPH_NODE_MUL,         PPH_NODE_DIV,
      PPH_NODE_GEMM, PPH_NODE_MATMUL, PPH_NODE_AVERAGE_POOL};
  for (size_t i = 0; i < sizeof clamped / sizeof *clamped; i++)
    if (clamped[i] == node->kind)
      return kind == PPH_ACTIVATION_CLAMP;
  return false;
}

/* After one clamp, another; false when no range is left, which kernels do not
   take. */
static bool compose(const pph_node *producer, bend *next) {
  float low = pph_node_float(producer, PPH_ATTR_ACTIVATION_MIN, -INFINITY);
  float high = pph_node_float(producer, PPH_ATTR_ACTIVATION_MAX, INFINITY);
  low = fminf(fmaxf(low, next->low), next->high);
  high = fminf(fmaxf(high, next->low), next->high);
  next->low = low;
  next->high = high;
  return low < high;
}

static pph_status write_bend(pph_graph *graph, pph_node *node,
                             const bend *what, pph_error *error) {
  node->activation = what->kind;
  if (what->kind == PPH_ACTIVATION_LEAKY_RELU)
    return pph_node_set_float(graph, node, PPH_ATTR_ACTIVATION_ALPHA,
                              what->alpha, error);
  PPH_TRY(pph_node_set_float(graph, node, PPH_ATTR_ACTIVATION_MIN, what->low,
                             error));
  return pph_node_set_float(graph, node, PPH_ATTR_ACTIVATION_MAX, what->high,
                            error);
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  bend what;
  if (!match(rewrite->graph, node, &what))
    return PPH_OK;
  pph_node *producer = pph_rewrite_find_private(rewrite, node, 0);
  if (!producer || !takes(producer, what.kind))
    return PPH_OK;
  if (producer->activation != PPH_ACTIVATION_NONE) {
    if (producer->activation != PPH_ACTIVATION_CLAMP ||
        what.kind != PPH_ACTIVATION_CLAMP || !compose(producer, &what))
      return PPH_OK;
  }
  PPH_TRY(write_bend(rewrite->graph, producer, &what, error));
  return pph_rewrite_take_over(rewrite, node, producer, error);
}

pph_status pph_pass_fuse_activation(pph_graph *graph,
                                    const pph_pass_options *options,
                                    pph_error *error) {
  (void)options;
  return pph_rewrite_walk(graph, visit, error);
}
