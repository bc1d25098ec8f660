/* Transposed convolutions become phases. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "geometry/problem.h"
#include "optimize/phase_nodes.h"

static void describe(const pph_window *window, char *text, size_t size) {
  pph_problem problem = {.transposed = true,
                         .type = PPH_F32,
                         .batch = window->batch,
                         .group = window->group,
                         .in_channels = window->in_channels,
                         .out_channels = window->out_channels,
                         .axes[PPH_DEPTH] = {.input = 1, .kernel = 1,
                                             .stride = 1, .dilation = 1,
                                             .output = 1}};
  for (uint32_t i = 0; i < 2; i++)
    problem.axes[PPH_HEIGHT + i] = pph_window_axis(window, i);
  pph_problem_print(&problem, text, size);
}

/* Whether to rewrite, and what that means or why not. */
static bool weigh(const pph_delegate_edit *edit,
                  const pph_polyphase_plan *plan, char *text, size_t size) {
  double ratio;
  int64_t phases = plan->window.stride[0] * plan->window.stride[1];
  uint32_t count = pph_polyphase_plan_count(plan);
  bool gains =
      pph_polyphase_plan_gains(plan, &ratio) || edit->options->always;
  if (edit->options->never) {
    snprintf(text, size, "left, as asked for");
    return false;
  }
  if (count > PPH_POLYPHASE_MAX_CONVS) {
    snprintf(text, size, "left, it would take more than 256 convolutions");
    return false;
  }
  if (!gains)
    snprintf(text, size,
             "left, as phases it would take %.2f times as long", ratio);
  else
    snprintf(text, size, "%" PRId64 " phase%s in %u convolution%s, %s", phases,
             phases == 1 ? "" : "s", count, count == 1 ? "" : "s",
             edit->options->always ? "as asked for" : "expected to be faster");
  return gains;
}

/* The transpose to channels first that alone reads the result. */
static const pph_payload_transpose *find_transpose(
    const pph_delegate_edit *edit, const pph_payload_conv *conv) {
  static const uint32_t first[] = {0, 3, 1, 2};
  const pph_payload_node *user =
      pph_delegate_edit_find_user(edit, conv->output_id);
  if (!user || user->xnode_union.type != PPH_PAYLOAD_TRANSPOSE)
    return NULL;
  const pph_payload_transpose *transpose = user->xnode_union.value;
  return transpose->perm.count == 4 &&
                 memcmp(transpose->perm.at, first, sizeof first) == 0
             ? transpose
             : NULL;
}

static pph_status put_nodes(pph_delegate_edit *edit,
                            const pph_payload_node *node,
                            pph_phase_source *source) {
  const pph_payload_transpose *transpose =
      edit->is_dynamic ? NULL : find_transpose(edit, source->conv);
  source->columns_first = transpose && pph_phase_has_columns(source->plan);
  if (!source->columns_first)
    return pph_phase_put_nodes(edit, source, node->output_min_max);
  PPH_TRY(pph_delegate_edit_absorb(edit, transpose->output_id));
  return pph_phase_put_nodes_first(edit, source, node->output_min_max,
                                   transpose->output_id);
}

static pph_status lower(pph_delegate_edit *edit, const pph_payload_node *node,
                        const pph_window *window, const char *details,
                        bool *taken) {
  const pph_payload_conv *conv = node->xnode_union.value;
  pph_polyphase_plan plan;
  char text[160];
  PPH_TRY(pph_polyphase_plan_make(&plan, edit->store->pte->heap, window,
                                  pph_polyphase_plan_cost, edit->x.error));
  const char *obstacle = pph_phase_find_form_obstacle(edit, conv, &plan);
  pph_status status = PPH_OK;
  if (obstacle) {
    snprintf(text, sizeof text, "left, %s", obstacle);
  } else if (weigh(edit, &plan, text, sizeof text)) {
    pph_phase_source source = {
        .conv = conv,
        .plan = &plan,
        .depthwise = conv->group_input_channels == 1 && conv->groups > 1};
    status = put_nodes(edit, node, &source);
    *taken = true;
    edit->changes++;
  }
  pph_polyphase_plan_clear(&plan);
  if (status == PPH_OK)
    pph_delegate_edit_report(edit, node, details, text);
  return status;
}

static pph_status visit(pph_delegate_edit *edit, const pph_payload_node *node,
                        bool *taken) {
  const pph_payload_conv *conv = node->xnode_union.value;
  pph_window window;
  char details[256], text[160];
  if (node->xnode_union.type != PPH_PAYLOAD_CONV_TRANSPOSE)
    return PPH_OK;
  const char *obstacle = pph_phase_open_window(edit, conv, &window);
  if (!obstacle)
    describe(&window, details, sizeof details);
  else
    details[0] = 0;
  if (!obstacle)
    obstacle = pph_phase_find_obstacle(edit, conv);
  if (!obstacle)
    return lower(edit, node, &window, details, taken);
  snprintf(text, sizeof text, "left, %s", obstacle);
  pph_delegate_edit_report(edit, node, details, text);
  return PPH_OK;
}

pph_status pph_optimize_phases(pph_delegate_edit *edit) {
  return pph_delegate_edit_walk(edit, visit);
}
