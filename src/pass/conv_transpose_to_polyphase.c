/* Transposed convolutions become stride-1 convolutions, one or several phases
   each, whose results DepthToSpace interleaves. Precondition: shapes are
   inferred; weight and bias are f32 constants. What the phases are is
   geometry's to say, which share a convolution polyphase_plan's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"
#include "pass/pass.h"
#include "pass/polyphase_build.h"

static const char *find_shape_obstacle(const pph_window *window) {
  int64_t phases = 1;
  if (window->axes > 2)
    return "3-D stays";
  if (window->batch == 0)
    return "its output is empty";
  for (uint32_t i = 0; i < window->axes; i++) {
    if (window->output[i] < 1 || window->input[i] < 1)
      return "its input or output is empty";
    if (window->stride[i] > PPH_POLYPHASE_MAX_PHASES)
      return "it has more than 4096 phases";
    phases *= window->stride[i];
  }
  if (phases > PPH_POLYPHASE_MAX_PHASES)
    return "it has more than 4096 phases";
  if (window->group > 1 && phases > PPH_POLYPHASE_MAX_CONVS)
    return "its groups have more than 256 phases";
  return NULL;
}

/* Why the node cannot be rewritten, whatever the gain; NULL if it can. */
static const char *find_obstacle(const pph_graph *graph,
                                 const pph_node *node) {
  pph_tensor weight, bias;
  if (!pph_node_find_constant(graph, node, 1, &weight))
    return "its weight is not a constant";
  if (pph_node_find_input(graph, node, 2) &&
      !pph_node_find_constant(graph, node, 2, &bias))
    return "its bias is not a constant";
  if (weight.type != PPH_F32 ||
      pph_node_find_input(graph, node, 0)->type != PPH_F32)
    return "its elements are not f32";
  if (pph_node_adds_residual(node) || node->activation == PPH_ACTIVATION_PRELU)
    return "only the native operator does what is fused into it";
  return NULL;
}

static int64_t count_phases(const pph_window *window) {
  int64_t phases = 1;
  for (uint32_t i = 0; i < window->axes; i++)
    phases *= window->stride[i];
  return phases;
}

static void describe(const pph_window *window, char *text, size_t size) {
  int64_t phases = count_phases(window);
  char groups[40] = "dense";
  if (window->group > 1)
    snprintf(groups, sizeof groups, "%" PRId64 " groups", window->group);
  if (window->group > 1 && window->group == window->in_channels &&
      window->in_channels == window->out_channels)
    snprintf(groups, sizeof groups, "depthwise");
  if (phases == 1)
    snprintf(text, size, "convolution, %s", groups);
  else
    snprintf(text, size, "polyphase, %s, %" PRId64 " phases", groups, phases);
}

static const char stride_one[] = "with stride 1 it is an ordinary convolution";

/* Whether to rewrite, and why (or why not) in `reason`. */
static bool weigh(const pph_polyphase_plan *plan, pph_polyphase_mode mode,
                  char *reason, size_t size) {
  if (mode == PPH_POLYPHASE_ALWAYS) {
    snprintf(reason, size, "always lowered");
    return true;
  }
  double ratio;
  bool gains = pph_polyphase_plan_gains(plan, &ratio);
  if (count_phases(&plan->window) == 1) {
    snprintf(reason, size, "%s", stride_one);
    return true;
  }
  if (pph_polyphase_plan_count(plan) > PPH_POLYPHASE_MAX_CONVS) {
    snprintf(reason, size, "it would take more than 256 convolutions");
    return false;
  }
  if (ratio > 0) /* a ratio, since the model's time is that of one machine */
    snprintf(reason, size,
             "the cost model expects %.2f of the time of XNNPACK's "
             "deconvolution",
             ratio);
  else
    snprintf(reason, size, "XNNPACK has no such deconvolution");
  return gains;
}

static pph_status lower_planned(pph_rewrite *rewrite, pph_node *node,
                                const pph_polyphase_plan *plan,
                                pph_error *error) {
  char lowered[96];
  describe(&plan->window, lowered, sizeof lowered);
  const char *text =
      pph_arena_copy_text(&rewrite->graph->arena, lowered, strlen(lowered));
  if (!text)
    return pph_fail_memory(error);
  return pph_polyphase_build(rewrite, node, plan, text, error);
}

/* Whether the native operator takes the problem: no crops. */
static bool is_operators(const pph_window *window) {
  for (uint32_t i = 0; i < window->axes; i++)
    if (window->pad_begin[i] < 0 || window->pad_end[i] < 0 ||
        window->input[i] < 1 || window->output[i] < 1 ||
        window->stride[i] > PPH_POLYPHASE_MAX_PHASES)
      return false;
  return window->batch > 0;
}

/* Nothing to rewrite: the operator computes phases and interleaves them as it
   stores. */
static pph_status leave_to_operator(pph_graph *graph, pph_node *node,
                                    const pph_window *window,
                                    pph_error *error) {
  char lowered[96];
  describe(window, lowered, sizeof lowered);
  return pph_graph_add_note(graph, node, lowered,
                            count_phases(window) == 1
                                ? stride_one
                                : "the native operator interleaves as it "
                                  "stores",
                            error);
}

static pph_status lower_conv_transpose(pph_rewrite *rewrite, pph_node *node,
                                       const pph_pass_options *options,
                                       pph_error *error) {
  pph_polyphase_mode mode = options->polyphase;
  pph_graph *graph = rewrite->graph;
  const char *obstacle = find_obstacle(graph, node);
  pph_window window;
  if (!obstacle) {
    PPH_TRY(pph_shape_find_window(graph, node, &window, error));
    if (mode == PPH_POLYPHASE_AUTO && options->fuses_natively &&
        is_operators(&window))
      return leave_to_operator(graph, node, &window, error);
    obstacle = find_shape_obstacle(&window);
  }
  if (obstacle)
    return pph_graph_add_note(graph, node, NULL, obstacle, error);
  pph_polyphase_plan plan;
  PPH_TRY(pph_polyphase_plan_make(&plan, graph->heap, &window,
                                  pph_polyphase_plan_cost, error));
  char lowered[96], reason[128];
  describe(&window, lowered, sizeof lowered);
  bool gain = weigh(&plan, mode, reason, sizeof reason);
  pph_status status =
      pph_graph_add_note(graph, node, gain ? lowered : NULL, reason, error);
  if (status == PPH_OK && gain)
    status = lower_planned(rewrite, node, &plan, error);
  pph_polyphase_plan_clear(&plan);
  return status;
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        const pph_pass_options *options, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  pph_polyphase_mode mode =
      options->optimize ? options->polyphase : PPH_POLYPHASE_NEVER;
  static const char only_transposed[] =
      "only transposed convolutions have phases";
  if (node->kind == PPH_NODE_RESIZE)
    return pph_graph_add_note(graph, node, NULL, only_transposed, error);
  if (node->kind == PPH_NODE_DEPTH_TO_SPACE)
    return pph_graph_add_note(graph, node, NULL, only_transposed, error);
  if (node->kind != PPH_NODE_CONV_TRANSPOSE)
    return PPH_OK;
  if (mode == PPH_POLYPHASE_NEVER)
    return pph_graph_add_note(graph, node, NULL, "lowering is turned off",
                              error);
  return lower_conv_transpose(rewrite, node, options, error);
}

pph_status pph_pass_conv_transpose_to_polyphase(pph_graph *graph,
                                                const pph_pass_options *options,
                                                pph_error *error) {
  pph_rewrite rewrite;
  PPH_TRY(pph_rewrite_begin(&rewrite, graph, error));
  pph_status status = PPH_OK;
  /* New nodes go before the one visited, so they are not visited. */
  for (pph_node *node = graph->first, *next; node && status == PPH_OK;
       node = next) {
    next = node->next;
    status = visit(&rewrite, node, options, error);
  }
  pph_rewrite_end(&rewrite);
  return status;
}
