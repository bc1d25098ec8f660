/* What the native operator does while it stores goes into its convolutions,
   where nothing else reads what they make:
     Conv(x) + r            Conv(x, ..., r), the sum before any activation
     PRelu(Conv(x), slopes) Conv(x) with one slope per channel
   The operator adds in the same order as the nodes did, so bits stay. Runs
   after biases and before other activations are fused. */
#include "base/fail.h"
#include "pass/match.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

typedef struct fuser {
  pph_rewrite rewrite;
  const pph_pass_options *options;
} fuser;

static bool is_f32(const pph_graph *graph, pph_id id) {
  return pph_graph_value(graph, id)->type == PPH_F32;
}

/* The convolution behind input `slot` of an elementwise node that keeps its
   shape, if it can take the node. */
static pph_node *find_conv(const fuser *f, const pph_node *node,
                           uint32_t slot) {
  const pph_graph *graph = f->rewrite.graph;
  pph_node *conv = pph_rewrite_find_private(&f->rewrite, node, slot);
  if (!conv || conv->activation != PPH_ACTIVATION_NONE ||
      (conv->kind != PPH_NODE_CONV && conv->kind != PPH_NODE_CONV_TRANSPOSE) ||
      (conv->kind == PPH_NODE_CONV_TRANSPOSE &&
       f->options->polyphase == PPH_POLYPHASE_ALWAYS) ||
      !pph_match_same(graph, node->inputs[slot], node->outputs[0]) ||
      !f->options->fuses_natively(graph, conv))
    return NULL;
  return conv;
}

/* The convolution moves to where the sum was, behind both operands. */
static pph_status become_conv(pph_rewrite *rewrite, pph_node *node,
                              pph_node *conv, pph_id residual,
                              pph_error *error) {
  pph_id ids[4] = {conv->inputs[0], conv->inputs[1],
                   conv->input_count > 2 ? conv->inputs[2] : PPH_NO_VALUE,
                   residual};
  node->kind = conv->kind;
  node->name = conv->name;
  node->index = conv->index;
  node->lowered = conv->lowered;
  PPH_TRY(pph_node_copy_attributes(rewrite->graph, node, conv, error));
  PPH_TRY(pph_rewrite_set_inputs(rewrite, node, ids, 4, error));
  pph_rewrite_remove(rewrite, conv);
  return PPH_OK;
}

/* Of two convolutions the later takes the other's result. */
static pph_status fuse_add(fuser *f, pph_node *node, pph_error *error) {
  const pph_graph *graph = f->rewrite.graph;
  pph_node *best = NULL;
  uint32_t from = 0;
  for (uint32_t slot = 0; slot < 2; slot++) {
    pph_node *conv = find_conv(f, node, slot);
    pph_id other = node->inputs[1 - slot];
    if (!conv || pph_node_adds_residual(conv) ||
        pph_graph_value(graph, other)->data ||
        !pph_match_same(graph, other, node->outputs[0]) ||
        (best && best->index > conv->index))
      continue;
    best = conv;
    from = slot;
  }
  return best ? become_conv(&f->rewrite, node, best, node->inputs[1 - from],
                            error)
              : PPH_OK;
}

static pph_status set_slopes(pph_graph *graph, pph_node *conv,
                             const float *slopes, size_t step, size_t count,
                             pph_error *error) {
  float *all = pph_heap_allocate(graph->heap, count, sizeof *all);
  if (!all)
    return pph_fail_memory(error);
  for (size_t c = 0; c < count; c++)
    all[c] = slopes[c * step];
  pph_attribute attribute = {.key = PPH_ATTR_ACTIVATION_SLOPES,
                             .count = (uint32_t)count,
                             .floats = all};
  pph_status status = pph_node_set_attribute(graph, conv, &attribute, error);
  pph_heap_release(graph->heap, all);
  return status;
}

static pph_status fuse_prelu(fuser *f, pph_node *node, pph_error *error) {
  pph_graph *graph = f->rewrite.graph;
  pph_node *conv = find_conv(f, node, 0);
  if (!conv)
    return PPH_OK;
  const pph_shape *shape = &pph_graph_value(graph, node->outputs[0])->shape;
  int64_t channels = shape->dims[1];
  size_t step;
  const float *slopes =
      pph_match_per_channel(graph, node, 1, shape->rank, channels, &step);
  if (!slopes || channels > INT32_MAX)
    return PPH_OK;
  PPH_TRY(set_slopes(graph, conv, slopes, step, (size_t)channels, error));
  conv->activation = PPH_ACTIVATION_PRELU;
  return pph_rewrite_take_over(&f->rewrite, node, conv, error);
}

static pph_status visit(fuser *f, pph_node *node, pph_error *error) {
  if (node->activation != PPH_ACTIVATION_NONE ||
      (node->kind != PPH_NODE_ADD && node->kind != PPH_NODE_PRELU) ||
      !is_f32(f->rewrite.graph, node->outputs[0]))
    return PPH_OK;
  return node->kind == PPH_NODE_ADD ? fuse_add(f, node, error)
                                    : fuse_prelu(f, node, error);
}

pph_status pph_pass_fuse_native(pph_graph *graph,
                                const pph_pass_options *options,
                                pph_error *error) {
  if (!options->fuses_natively)
    return PPH_OK;
  fuser f = {.options = options};
  PPH_TRY(pph_rewrite_begin(&f.rewrite, graph, error));
  pph_status status = PPH_OK;
  for (pph_node *node = graph->first, *next; node && status == PPH_OK;
       node = next) {
    next = node->next;
    status = visit(&f, node, error);
  }
  pph_rewrite_end(&f.rewrite);
  return status;
}
