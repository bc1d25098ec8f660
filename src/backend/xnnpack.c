/* The XNNPACK backend: THE table of what it runs, and the life of a step. Every
   step has an XNNPACK operator of its own. */
#include <math.h>
#include <string.h>

#include "backend/xnnpack_kind.h"
#include "base/fail.h"

/* `clamps`: prepare fuses the output range. */
static const struct row {
  pph_node_kind kind;
  bool clamps;
  pph_xnn_supports *supports;
  pph_xnn_prepare *prepare;
} rows[] = {
    {PPH_NODE_CONV, true, pph_xnn_supports_conv, pph_xnn_prepare_conv},
    {PPH_NODE_CONV_TRANSPOSE, true, pph_xnn_supports_conv_transpose,
     pph_xnn_prepare_conv_transpose},
    {PPH_NODE_MATMUL, true, pph_xnn_supports_matmul, pph_xnn_prepare_matmul},
    {PPH_NODE_GEMM, true, pph_xnn_supports_gemm, pph_xnn_prepare_gemm},
    {PPH_NODE_MAX_POOL, true, pph_xnn_supports_max_pool,
     pph_xnn_prepare_max_pool},
    {PPH_NODE_AVERAGE_POOL, true, pph_xnn_supports_average_pool,
     pph_xnn_prepare_average_pool},
    {PPH_NODE_GLOBAL_AVERAGE_POOL, false, pph_xnn_supports_global_average_pool,
     pph_xnn_prepare_global_average_pool},
    {PPH_NODE_RESIZE, false, pph_xnn_supports_resize, pph_xnn_prepare_resize},
    {PPH_NODE_DEPTH_TO_SPACE, false, pph_xnn_supports_depth_to_space,
     pph_xnn_prepare_depth_to_space},
    {PPH_NODE_PAD, false, pph_xnn_supports_pad, pph_xnn_prepare_pad},
    {PPH_NODE_SOFTMAX, false, pph_xnn_supports_softmax,
     pph_xnn_prepare_softmax},
    {PPH_NODE_PRELU, false, pph_xnn_supports_prelu, pph_xnn_prepare_prelu},
#define BINARY(kind, clamps)                                                   \
  { kind, clamps, pph_xnn_supports_binary, pph_xnn_prepare_binary }
    BINARY(PPH_NODE_ADD, PPH_XNN_BINARY_CLAMPS),
    BINARY(PPH_NODE_DIV, PPH_XNN_BINARY_CLAMPS),
    BINARY(PPH_NODE_MUL, PPH_XNN_BINARY_CLAMPS),
    BINARY(PPH_NODE_SUB, PPH_XNN_BINARY_CLAMPS),
    BINARY(PPH_NODE_MAX, false),
    BINARY(PPH_NODE_MIN, false),
#undef BINARY
#define UNARY(kind)                                                            \
  { kind, false, pph_xnn_supports_unary, pph_xnn_prepare_unary }
    UNARY(PPH_NODE_ABS),
    UNARY(PPH_NODE_CEIL),
    UNARY(PPH_NODE_CLIP),
    UNARY(PPH_NODE_ELU),
    UNARY(PPH_NODE_FLOOR),
    UNARY(PPH_NODE_HARD_SWISH),
    UNARY(PPH_NODE_LEAKY_RELU),
    UNARY(PPH_NODE_NEG),
    UNARY(PPH_NODE_RELU),
    UNARY(PPH_NODE_ROUND),
    UNARY(PPH_NODE_SIGMOID),
    UNARY(PPH_NODE_SQRT),
#undef UNARY
};

static const struct row *find_row(pph_node_kind kind) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].kind == kind)
      return &rows[i];
  return NULL;
}

static void find_range(const pph_node *node, float *min, float *max) {
  *min = pph_node_float(node, PPH_ATTR_ACTIVATION_MIN, -INFINITY);
  *max = pph_node_float(node, PPH_ATTR_ACTIVATION_MAX, INFINITY);
}

static bool legal_activation(const pph_node *node) {
  float min, max;
  switch (node->activation) {
  case PPH_ACTIVATION_PRELU: /* the native operator's */
    return false;
  case PPH_ACTIVATION_NONE:
    return true;
  case PPH_ACTIVATION_CLAMP:
    find_range(node, &min, &max);
    return pph_xnn_legal_range(min, max);
  case PPH_ACTIVATION_LEAKY_RELU:
    return isfinite(pph_node_float(node, PPH_ATTR_ACTIVATION_ALPHA, 0.01f));
  }
  return false;
}

/* f32, of a known shape, not empty. A constant's data is plain, so it must not
   claim to lie otherwise. */
static bool legal_value(const pph_value *value) {
  size_t bytes;
  return value && value->type == PPH_F32 && value->has_rank &&
         pph_shape_bytes(&value->shape, value->type, &bytes) && bytes > 0 &&
         (!value->data || value->layout == PPH_LAYOUT_PLAIN);
}

static bool supports(const pph_graph *graph, const pph_node *node) {
  const struct row *row = find_row(node->kind);
  return row && node->output_count == 1 &&
         legal_value(pph_node_find_input(graph, node, 0)) &&
         legal_value(pph_xnn_output(graph, node)) && legal_activation(node) &&
         row->supports(graph, node) && pph_xnn_start(NULL) == PPH_OK;
}

/* The activation that the row does not fuse. */
static pph_status prepare_after(pph_xnn_job *job, bool fused,
                                pph_error *error) {
  const pph_node *node = job->node;
  size_t count;
  float parameters[2];
  if (node->activation == PPH_ACTIVATION_NONE || fused)
    return PPH_OK;
  if (!pph_shape_count(&pph_xnn_output(job->graph, node)->shape, &count))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, NULL, "the output is too large");
  if (node->activation == PPH_ACTIVATION_CLAMP) {
    find_range(node, &parameters[0], &parameters[1]);
    return pph_xnn_create_unary(PPH_XNN_CLAMP, count, parameters,
                                &job->state->after, error);
  }
  parameters[0] = pph_node_float(node, PPH_ATTR_ACTIVATION_ALPHA, 0.01f);
  parameters[1] = 0;
  return pph_xnn_create_unary(PPH_XNN_LEAKY_RELU, count, parameters,
                              &job->state->after, error);
}

static pph_status prepare_state(pph_backend_context *context, pph_step *step,
                                pph_error *error) {
  const struct row *row = find_row(step->node->kind);
  pph_xnn_job job = {context,     step,      step->graph, step->node,
                     step->state, -INFINITY, INFINITY};
  job.state->slots[1] = UINT32_MAX;
  job.state->op.pool = job.state->after.pool = context->pool;
  bool fused = row->clamps && step->node->activation == PPH_ACTIVATION_CLAMP;
  if (fused)
    find_range(step->node, &job.min, &job.max);
  PPH_TRY(row->prepare(&job, error));
  step->workspace = job.state->op.workspace;
  return prepare_after(&job, fused, error);
}

static void release(pph_backend_context *context, pph_step *step) {
  pph_xnn_state *state = step->state;
  if (!state)
    return;
  pph_xnn_delete(&state->op);
  pph_xnn_delete(&state->after);
  pph_heap_release(context->heap, state->kept);
  pph_heap_release(context->heap, state);
  step->state = NULL;
}

static pph_status prepare(pph_backend_context *context, pph_step *step,
                          pph_error *error) {
  step->alias_input = UINT32_MAX;
  step->workspace = 0;
  step->state = NULL;
  PPH_TRY(pph_xnn_start(error));
  if (!supports(step->graph, step->node))
    return pph_node_fail(step->node, error, PPH_UNSUPPORTED,
                         "XNNPACK does not run this node");
  step->state =
      pph_heap_allocate_zeroed(context->heap, 1, sizeof(pph_xnn_state));
  if (!step->state)
    return pph_fail_memory(error);
  pph_status status = prepare_state(context, step, error);
  if (status != PPH_OK) {
    char place[192];
    pph_error_set_where(error, "%s",
                        pph_node_place(step->node, place, sizeof place));
    release(context, step);
  }
  return status;
}

static pph_status run(pph_backend_context *context, const pph_step *step,
                      const pph_run_pointers *pointers, pph_error *error) {
  pph_xnn_state *state = step->state;
  uint32_t second = state->slots[1];
  pph_xnn_pointers main = {
      pointers->inputs[state->slots[0]],
      second == UINT32_MAX ? NULL : pointers->inputs[second],
      pointers->outputs[0], state->op.workspace ? pointers->workspace : NULL};
  PPH_TRY(pph_xnn_run(&state->op, &main, error));
  if (!state->after.handle)
    return PPH_OK;
  pph_xnn_pointers after = {main.output, NULL, main.output, NULL};
  return pph_xnn_run(&state->after, &after, error);
}

const pph_backend pph_backend_xnnpack = {
    "xnnpack", supports, NULL, prepare, run, release};
