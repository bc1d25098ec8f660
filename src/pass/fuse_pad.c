/* Zero padding of spatial axes goes into the convolution (or average pooling
   that counts it) that reads it; cropping what a convolution gives goes into
   its pads too. Negative amounts of a Pad stay: they remove data. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"
#include "pass/match.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool only_space_grows(const int64_t *begin, const int64_t *end) {
  for (int32_t i = 0; i < PPH_MAX_RANK; i++)
    if (begin[i] < 0 || end[i] < 0 || (i < 2 && (begin[i] || end[i])))
      return false;
  return true;
}

static bool has_no_pads(const pph_window *window) {
  for (uint32_t i = 0; i < window->axes; i++)
    if (window->pad_begin[i] || window->pad_end[i])
      return false;
  return true;
}

/* A pooling that counts its padding does what a pooling of zeros does; its
   pads must be smaller than its kernel. */
static bool can_pool(const pph_node *node, const pph_window *window,
                     const int64_t *begin, const int64_t *end) {
  if (pph_node_int(node, PPH_ATTR_CEIL_MODE, 0) ||
      (!has_no_pads(window) &&
       !pph_node_int(node, PPH_ATTR_COUNT_INCLUDE_PAD, 0)))
    return false;
  for (uint32_t i = 0; i < window->axes; i++)
    if (window->pad_begin[i] + begin[2 + i] >= window->kernel[i] ||
        window->pad_end[i] + end[2 + i] >= window->kernel[i])
      return false;
  return true;
}

/* Writes pads as the window's plus what is added, and drops auto_pad. */
static pph_status set_pads(pph_graph *graph, pph_node *node,
                           const pph_window *window, const int64_t *begin,
                           const int64_t *end, pph_error *error) {
  int64_t pads[6];
  for (uint32_t i = 0; i < window->axes; i++) {
    pads[i] = window->pad_begin[i] + begin[2 + i];
    pads[window->axes + i] = window->pad_end[i] + end[2 + i];
  }
  pph_node_remove_attribute(node, PPH_ATTR_AUTO_PAD);
  return pph_node_set_ints(graph, node, PPH_ATTR_PADS, pads, 2 * window->axes,
                           error);
}

/* One Pad; *fused says whether another may follow. */
static pph_status fuse_before(pph_rewrite *rewrite, pph_node *node,
                              bool *fused, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  const pph_node *pad = pph_node_find_input(graph, node, 0)->producer;
  int64_t begin[PPH_MAX_RANK], end[PPH_MAX_RANK];
  pph_window window;
  *fused = false;
  if (!pad || pad->kind != PPH_NODE_PAD ||
      !pph_match_zero_pad(graph, pad, begin, end) ||
      !only_space_grows(begin, end))
    return PPH_OK;
  PPH_TRY(pph_shape_find_window(graph, node, &window, error));
  for (uint32_t i = 0; i < window.axes; i++)
    if (window.pad_begin[i] < 0 || window.pad_end[i] < 0)
      return PPH_OK;
  if (node->kind == PPH_NODE_AVERAGE_POOL) {
    if (!can_pool(node, &window, begin, end))
      return PPH_OK;
    PPH_TRY(pph_node_set_int(graph, node, PPH_ATTR_COUNT_INCLUDE_PAD, 1,
                             error));
  }
  PPH_TRY(set_pads(graph, node, &window, begin, end, error));
  pph_rewrite_set_input(rewrite, node, 0, pad->inputs[0]);
  *fused = true;
  return PPH_OK;
}

static pph_status fuse_all_before(pph_rewrite *rewrite, pph_node *node,
                                  pph_error *error) {
  bool fused = true;
  while (fused)
    PPH_TRY(fuse_before(rewrite, node, &fused, error));
  return PPH_OK;
}

/* A transposed convolution crops by its pads; an ordinary one of stride 1 can
   leave out padding, as far as it has some. */
static bool can_crop(const pph_node *conv, const pph_window *window,
                     int64_t *begin, int64_t *end) {
  bool transposed = conv->kind == PPH_NODE_CONV_TRANSPOSE;
  for (uint32_t i = 0; i < window->axes; i++) {
    if (window->pad_begin[i] < 0 || window->pad_end[i] < 0 ||
        window->output[i] <= begin[2 + i] + end[2 + i])
      return false;
    if (transposed)
      continue;
    if (window->stride[i] != 1 || window->pad_begin[i] < begin[2 + i] ||
        window->pad_end[i] < end[2 + i])
      return false;
    begin[2 + i] = -begin[2 + i];
    end[2 + i] = -end[2 + i];
  }
  return true;
}

/* The output padding that explicit pads go with stays; an output_shape was
   resolved into the pads. */
static pph_status fuse_after(pph_rewrite *rewrite, pph_node *node,
                             pph_error *error) {
  pph_graph *graph = rewrite->graph;
  pph_node *conv = pph_rewrite_find_private(rewrite, node, 0);
  int64_t begin[PPH_MAX_RANK], end[PPH_MAX_RANK];
  pph_window window;
  if (!conv ||
      (conv->kind != PPH_NODE_CONV_TRANSPOSE && conv->kind != PPH_NODE_CONV) ||
      !pph_match_crop(graph, node, begin, end) || begin[0] || end[0] ||
      begin[1] || end[1])
    return PPH_OK;
  PPH_TRY(pph_shape_find_window(graph, conv, &window, error));
  if (!can_crop(conv, &window, begin, end))
    return PPH_OK;
  PPH_TRY(set_pads(graph, conv, &window, begin, end, error));
  pph_node_remove_attribute(conv, PPH_ATTR_OUTPUT_SHAPE);
  return pph_rewrite_take_over(rewrite, node, conv, error);
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  if (node->kind == PPH_NODE_CONV || node->kind == PPH_NODE_AVERAGE_POOL)
    return fuse_all_before(rewrite, node, error);
  return node->kind == PPH_NODE_SLICE ? fuse_after(rewrite, node, error)
                                      : PPH_OK;
}

pph_status pph_pass_fuse_pad(pph_graph *graph, const pph_pass_options *options,
                             pph_error *error) {
  (void)options;
  return pph_rewrite_walk(graph, visit, error);
}
