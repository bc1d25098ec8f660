/* A 2-D convolution of something that was 1-D before a Reshape gave it a height
   (or width) of 1 becomes a 1-D convolution, and the Reshape goes behind it,
   where it usually meets its inverse. Exact. */
#include <string.h>

#include "base/fail.h"
#include "graph/shape.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* The unit axis (0 height, 1 width) that the Reshape in front adds to the
   convolution's input, or -1. */
static int find_unit(const pph_graph *graph, const pph_node *node,
                     const pph_window *window) {
  const pph_value *in = pph_node_find_input(graph, node, 0);
  const pph_node *reshape = in->producer;
  if (!reshape || reshape->kind != PPH_NODE_RESHAPE)
    return -1;
  const pph_value *source = pph_node_find_input(graph, reshape, 0);
  if (source->shape.rank != 3 || source->shape.dims[0] != in->shape.dims[0] ||
      source->shape.dims[1] != in->shape.dims[1])
    return -1;
  for (int i = 0; i < 2; i++)
    if (in->shape.dims[2 + i] == 1 && window->kernel[i] == 1 &&
        window->output[i] == 1 && window->pad_begin[i] == 0 &&
        window->pad_end[i] == 0 &&
        in->shape.dims[3 - i] == source->shape.dims[2])
      return i;
  return -1;
}

/* The weight without the unit axis; the elements are shared. */
static pph_status narrow_weight(pph_graph *graph, pph_id weight, int unit,
                                pph_id *narrow, pph_error *error) {
  const char *name =
      pph_graph_make_name(graph, pph_graph_value(graph, weight)->name);
  if (!name)
    return pph_fail_memory(error);
  PPH_TRY(pph_graph_add_value(graph, name, narrow, error));
  const pph_value *from = pph_graph_value(graph, weight);
  pph_value *to = pph_graph_value(graph, *narrow);
  to->type = from->type;
  to->has_rank = true;
  to->data = from->data;
  to->origin = from->origin;
  to->shape = from->shape;
  to->shape.rank = 3;
  to->shape.dims[2] = from->shape.dims[3 - unit];
  to->shape.dims[3] = 0;
  return PPH_OK;
}

static pph_status set_attributes(pph_graph *graph, pph_node *conv,
                                 const pph_window *window, int axis,
                                 pph_error *error) {
  const int64_t pads[2] = {window->pad_begin[axis], window->pad_end[axis]};
  const struct {
    pph_attribute_key key;
    const int64_t *ints;
    uint32_t count;
  } rows[] = {{PPH_ATTR_KERNEL_SHAPE, &window->kernel[axis], 1},
              {PPH_ATTR_STRIDES, &window->stride[axis], 1},
              {PPH_ATTR_DILATIONS, &window->dilation[axis], 1},
              {PPH_ATTR_PADS, pads, 2},
              {PPH_ATTR_OUTPUT_PADDING, &window->output_padding[axis], 1}};
  size_t count = sizeof rows / sizeof *rows;
  if (conv->kind != PPH_NODE_CONV_TRANSPOSE)
    count--;
  for (size_t i = 0; i < count; i++)
    PPH_TRY(pph_node_set_ints(graph, conv, rows[i].key, rows[i].ints,
                              rows[i].count, error));
  return pph_node_set_int(graph, conv, PPH_ATTR_GROUP, window->group, error);
}

static pph_status make_conv(pph_rewrite *rewrite, pph_node *node,
                            const pph_window *window, int unit, pph_node **conv,
                            pph_error *error) {
  pph_graph *graph = rewrite->graph;
  const pph_node *reshape = pph_node_find_input(graph, node, 0)->producer;
  pph_id ids[3] = {reshape->inputs[0], PPH_NO_VALUE,
                   node->input_count > 2 ? node->inputs[2] : PPH_NO_VALUE};
  PPH_TRY(narrow_weight(graph, node->inputs[1], unit, &ids[1], error));
  uint32_t count = ids[2] == PPH_NO_VALUE ? 2 : 3;
  PPH_TRY(
      pph_rewrite_insert(rewrite, node->kind, node, ids, count, conv, error));
  PPH_TRY(set_attributes(graph, *conv, window, 1 - unit, error));
  return pph_shape_infer_node(graph, *conv, error);
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  pph_graph *graph = rewrite->graph;
  pph_tensor weight;
  pph_window window;
  if ((node->kind != PPH_NODE_CONV && node->kind != PPH_NODE_CONV_TRANSPOSE) ||
      node->activation != PPH_ACTIVATION_NONE || pph_node_adds_residual(node) ||
      pph_node_find_input(graph, node, 0)->shape.rank != 4 ||
      !pph_node_find_constant(graph, node, 1, &weight))
    return PPH_OK;
  PPH_TRY(pph_shape_find_window(graph, node, &window, error));
  int unit = find_unit(graph, node, &window);
  /* Explicit pads must not be negative. */
  if (unit < 0 || window.pad_begin[1 - unit] < 0 ||
      window.pad_end[1 - unit] < 0 || window.output[1 - unit] < 1)
    return PPH_OK;
  pph_node *conv;
  PPH_TRY(make_conv(rewrite, node, &window, unit, &conv, error));
  return pph_rewrite_become_reshape(rewrite, node, conv->outputs[0], error);
}

pph_status pph_pass_drop_unit_height(pph_graph *graph,
                                     const pph_pass_options *options,
                                     pph_error *error) {
  (void)options;
  return pph_rewrite_walk(graph, visit, error);
}
