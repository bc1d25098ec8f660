/* Moves Transpose nodes behind elementwise nodes, slices, pads and
   concatenations, so that they meet their inverses (simplify joins them) and
   the nodes between meet the convolution before them. A Transpose with several
   readers sinks only if all of them let it through. Exact. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"
#include "pass/match.h"
#include "pass/pass.h"
#include "pass/rewrite.h"
#include "pass/simplify_move.h"

typedef struct sinker {
  pph_rewrite rewrite;
  uint32_t *willing; /* per value: how many of its uses let a Transpose pass */
  uint32_t count;
} sinker;

static bool is_willing(const pph_node *node) {
  static const pph_node_kind moves[] = {PPH_NODE_SLICE, PPH_NODE_PAD,
                                        PPH_NODE_CONCAT, PPH_NODE_TRANSPOSE};
  pph_node_class node_class = pph_node_kind_find_info(node->kind)->node_class;
  if (node_class == PPH_CLASS_UNARY || node_class == PPH_CLASS_BINARY)
    return true;
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
    if (moves[i] == node->kind)
      return true;
  return false;
}

/* Whether all inputs have the result's shape (as opposed to parameters). */
static bool reads_alike(const pph_node *node) {
  return pph_node_kind_find_info(node->kind)->node_class ==
             PPH_CLASS_BINARY ||
         node->kind == PPH_NODE_CONCAT;
}

static const pph_node *find_transpose(const pph_graph *graph, pph_id id) {
  const pph_node *producer =
      id == PPH_NO_VALUE ? NULL : pph_graph_value(graph, id)->producer;
  return producer && producer->kind == PPH_NODE_TRANSPOSE ? producer : NULL;
}

/* A Reshape that only moves axes of length 1 the way `perm` does. */
static const pph_node *find_reshape(const pph_graph *graph, pph_id id,
                                    const int64_t *perm) {
  const pph_value *out = pph_graph_value(graph, id);
  const pph_node *node = out->producer;
  if (!node || node->kind != PPH_NODE_RESHAPE)
    return NULL;
  const pph_value *in = pph_node_find_input(graph, node, 0);
  if (in->shape.rank != out->shape.rank ||
      !pph_match_perm_moves_ones(&in->shape, perm))
    return NULL;
  for (int32_t i = 0; i < in->shape.rank; i++)
    if (out->shape.dims[i] != in->shape.dims[perm[i]])
      return NULL;
  return node;
}

static bool may_leave(const sinker *s, pph_id id) {
  return id < s->count && !pph_rewrite_is_output(&s->rewrite, id) &&
         s->willing[id] == pph_graph_value(s->rewrite.graph, id)->uses;
}

/* The first Transpose among the inputs that matter. */
static bool find_first(const pph_graph *graph, const pph_node *node,
                       uint32_t slots, int64_t *perm) {
  for (uint32_t i = 0; i < slots; i++) {
    const pph_node *transpose = find_transpose(graph, node->inputs[i]);
    if (transpose) {
      pph_match_perm(graph, transpose, perm);
      return pph_node_find_input(graph, node, i)->shape.rank ==
             pph_graph_value(graph, node->outputs[0])->shape.rank;
    }
  }
  return false;
}

/* Whether input `id` can be had as it was before a Transpose by `perm`. */
static bool can_undo(const sinker *s, const pph_node *node, pph_id id,
                     const int64_t *perm, int32_t rank) {
  const pph_graph *graph = s->rewrite.graph;
  const pph_value *value = pph_graph_value(graph, id);
  int64_t own[PPH_MAX_RANK];
  if (value->data)
    return value->shape.rank <= rank && node->kind != PPH_NODE_CONCAT;
  if (value->shape.rank != rank)
    return false;
  const pph_node *transpose = find_transpose(graph, id);
  if (!transpose)
    return find_reshape(graph, id, perm) != NULL;
  pph_match_perm(graph, transpose, own);
  return may_leave(s, id) &&
         memcmp(own, perm, (size_t)rank * sizeof *perm) == 0;
}

/* All inputs that matter come from Transposes with one permutation, or are
   constants that can be permuted; at least one Transpose. */
static bool find_perm(const sinker *s, const pph_node *node, int64_t *perm) {
  const pph_graph *graph = s->rewrite.graph;
  int32_t rank = pph_graph_value(graph, node->outputs[0])->shape.rank;
  uint32_t slots = reads_alike(node) ? node->input_count : 1;
  if (!find_first(graph, node, slots, perm))
    return false;
  for (uint32_t i = 0; i < slots; i++)
    if (node->inputs[i] != PPH_NO_VALUE &&
        !can_undo(s, node, node->inputs[i], perm, rank))
      return false;
  return true;
}

/* A constant operand as it has to be in front of the Transpose: axis perm[i]
   there is axis i here. */
static pph_status permute_constant(sinker *s, pph_node *before, pph_id id,
                                   const int64_t *perm, int32_t rank,
                                   pph_id *permuted, pph_error *error) {
  pph_graph *graph = s->rewrite.graph;
  const pph_value *value = pph_graph_value(graph, id);
  size_t elements;
  *permuted = id;
  if (!pph_shape_count(&value->shape, &elements) || elements <= 1)
    return PPH_OK;
  pph_shape full = {.rank = rank};
  int64_t inverse[PPH_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) {
    int32_t at = i - (rank - value->shape.rank);
    full.dims[i] = at < 0 ? 1 : value->shape.dims[at];
    inverse[perm[i]] = i;
  }
  /* Same elements, more axes of 1: the data is shared. */
  pph_id widened;
  PPH_TRY(pph_graph_add_value(graph, NULL, &widened, error));
  value = pph_graph_value(graph, id);
  pph_value *wide = pph_graph_value(graph, widened);
  wide->type = value->type;
  wide->has_rank = true;
  wide->data = value->data;
  wide->origin = value->origin;
  wide->shape = full;
  if (pph_match_perm_moves_ones(&full, inverse)) {
    for (int32_t i = 0; i < rank; i++)
      wide->shape.dims[i] = full.dims[inverse[i]];
    *permuted = widened;
    return PPH_OK;
  }
  pph_node *node;
  PPH_TRY(pph_rewrite_insert(&s->rewrite, PPH_NODE_TRANSPOSE, before,
                             &widened, 1, &node, error));
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_PERM, inverse,
                            (uint32_t)rank, error));
  *permuted = node->outputs[0];
  return pph_shape_infer_node(graph, node, error);
}

/* Parameters that name axes. False, and nothing changed, if one is not
   constant. A Slice or Pad gets a list of all axes. */
static pph_status permute_slice(sinker *s, pph_node *node,
                                const int64_t *perm, int32_t rank,
                                bool *done, pph_error *error) {
  pph_graph *graph = s->rewrite.graph;
  int64_t begin[PPH_MAX_RANK], end[PPH_MAX_RANK], axes[PPH_MAX_RANK];
  *done = pph_match_crop(graph, node, begin, end);
  if (!*done)
    return PPH_OK;
  const pph_shape shape = pph_graph_value(graph, node->outputs[0])->shape;
  for (int32_t i = 0; i < rank; i++) {
    end[i] = begin[i] + shape.dims[i];
    axes[i] = perm[i];
  }
  pph_id ids[4] = {node->inputs[0]};
  size_t count = (size_t)rank;
  PPH_TRY(pph_graph_add_ints(graph, NULL, begin, count, &ids[1], error));
  PPH_TRY(pph_graph_add_ints(graph, NULL, end, count, &ids[2], error));
  PPH_TRY(pph_graph_add_ints(graph, NULL, axes, count, &ids[3], error));
  return pph_rewrite_set_inputs(&s->rewrite, node, ids, 4, error);
}

static pph_status permute_pad(sinker *s, pph_node *node, const int64_t *perm,
                              int32_t rank, bool *done, pph_error *error) {
  pph_graph *graph = s->rewrite.graph;
  int64_t pads[2 * PPH_MAX_RANK], axes[PPH_MAX_RANK];
  size_t count, named;
  *done = false;
  if (!pph_node_read_ints(graph, node, 1, pads, 2 * PPH_MAX_RANK, &count))
    return PPH_OK;
  named = count / 2;
  for (size_t i = 0; i < PPH_MAX_RANK; i++)
    axes[i] = (int64_t)i;
  if (pph_node_find_input(graph, node, 3) &&
      !pph_node_read_ints(graph, node, 3, axes, PPH_MAX_RANK, &named))
    return PPH_OK;
  if (named * 2 != count || named > (size_t)rank)
    return PPH_OK;
  for (size_t i = 0; i < named; i++)
    axes[i] = perm[axes[i] < 0 ? axes[i] + rank : axes[i]];
  pph_id ids[4] = {node->inputs[0], node->inputs[1],
                   node->input_count > 2 ? node->inputs[2] : PPH_NO_VALUE};
  PPH_TRY(pph_graph_add_ints(graph, NULL, axes, named, &ids[3], error));
  *done = true;
  return pph_rewrite_set_inputs(&s->rewrite, node, ids, 4, error);
}

static pph_status permute_parameters(sinker *s, pph_node *node,
                                     const int64_t *perm, int32_t rank,
                                     bool *done, pph_error *error) {
  *done = true;
  if (node->kind == PPH_NODE_SLICE)
    return permute_slice(s, node, perm, rank, done, error);
  if (node->kind == PPH_NODE_PAD)
    return permute_pad(s, node, perm, rank, done, error);
  if (node->kind != PPH_NODE_CONCAT)
    return PPH_OK;
  int64_t axis = pph_node_int(node, PPH_ATTR_AXIS, 0);
  axis += axis < 0 ? rank : 0;
  return pph_node_set_int(s->rewrite.graph, node, PPH_ATTR_AXIS, perm[axis],
                          error);
}

static pph_status permute_inputs(sinker *s, pph_node *node,
                                 const int64_t *perm, int32_t rank,
                                 pph_error *error) {
  pph_graph *graph = s->rewrite.graph;
  uint32_t slots = reads_alike(node) ? node->input_count : 1;
  for (uint32_t i = 0; i < slots; i++) {
    if (node->inputs[i] == PPH_NO_VALUE)
      continue;
    const pph_node *transpose = find_transpose(graph, node->inputs[i]);
    if (!transpose)
      transpose = find_reshape(graph, node->inputs[i], perm);
    pph_id id;
    if (transpose)
      id = transpose->inputs[0];
    else
      PPH_TRY(permute_constant(s, node, node->inputs[i], perm, rank, &id,
                               error));
    if (id == node->inputs[i])
      continue;
    /* The node still lets a Transpose pass, now of the other value. */
    s->willing[node->inputs[i]]--;
    if (id < s->count)
      s->willing[id]++;
    pph_rewrite_set_input(&s->rewrite, node, i, id);
  }
  return PPH_OK;
}

/* The node gets a fresh output in the old order, and a Transpose behind it
   makes the value that its readers know. */
static pph_status add_transpose(sinker *s, pph_node *node,
                                const int64_t *perm, int32_t rank,
                                pph_error *error) {
  pph_graph *graph = s->rewrite.graph;
  pph_id output = node->outputs[0], inner;
  PPH_TRY(pph_graph_add_value(graph, NULL, &inner, error));
  PPH_TRY(pph_node_set_outputs(graph, node, &inner, 1, error));
  PPH_TRY(pph_shape_infer_node(graph, node, error));
  pph_node *transpose;
  PPH_TRY(pph_graph_add_node(graph, PPH_NODE_TRANSPOSE, node->name,
                             node->next, &transpose, error));
  transpose->index = node->index;
  PPH_TRY(pph_node_set_inputs(graph, transpose, &inner, 1, error));
  PPH_TRY(pph_node_set_outputs(graph, transpose, &output, 1, error));
  pph_graph_value(graph, inner)->uses = 1;
  return pph_node_set_ints(graph, transpose, PPH_ATTR_PERM, perm,
                           (uint32_t)rank, error);
}

/* Two that meet become one or none at once, or the second would sink in front
   of the first. */
static pph_status meet(sinker *s, pph_node *node, pph_error *error) {
  pph_id before = node->inputs[0];
  if (!find_transpose(s->rewrite.graph, before))
    return PPH_OK;
  pph_id output = node->outputs[0];
  PPH_TRY(pph_simplify_transpose(&s->rewrite, node, error));
  /* Its readers now read another value, or it does. */
  pph_id after = pph_rewrite_find(&s->rewrite, output);
  bool gone = after != output;
  uint32_t moved = gone ? s->willing[output] : is_willing(node);
  if (!gone)
    after = node->inputs[0];
  s->willing[before]--;
  if (after < s->count)
    s->willing[after] += moved;
  return PPH_OK;
}

static pph_status visit(sinker *s, pph_node *node, pph_error *error) {
  int64_t perm[PPH_MAX_RANK];
  if (node->kind == PPH_NODE_TRANSPOSE)
    return meet(s, node, error);
  if (!is_willing(node) || !find_perm(s, node, perm))
    return PPH_OK;
  int32_t rank =
      pph_graph_value(s->rewrite.graph, node->outputs[0])->shape.rank;
  bool done;
  PPH_TRY(permute_parameters(s, node, perm, rank, &done, error));
  if (!done)
    return PPH_OK;
  PPH_TRY(permute_inputs(s, node, perm, rank, error));
  return add_transpose(s, node, perm, rank, error);
}

static void count_willing(sinker *s) {
  for (const pph_node *node = s->rewrite.graph->first; node;
       node = node->next) {
    if (!is_willing(node))
      continue;
    uint32_t slots = reads_alike(node) ? node->input_count : 1;
    for (uint32_t i = 0; i < slots; i++)
      if (node->inputs[i] != PPH_NO_VALUE)
        s->willing[node->inputs[i]]++;
  }
}

static pph_status walk(sinker *s, pph_error *error) {
  pph_graph *graph = s->rewrite.graph;
  s->count = s->rewrite.count;
  s->willing =
      pph_heap_allocate_zeroed(graph->heap, s->count, sizeof *s->willing);
  if (!s->willing)
    return pph_fail_memory(error);
  count_willing(s);
  pph_status status = PPH_OK;
  for (pph_node *node = graph->first, *next; node && status == PPH_OK;
       node = next) {
    next = node->next;
    pph_rewrite_visit(&s->rewrite, node);
    status = visit(s, node, error);
  }
  pph_heap_release(graph->heap, s->willing);
  return status;
}

pph_status pph_pass_sink_transpose(pph_graph *graph,
                                   const pph_pass_options *options,
                                   pph_error *error) {
  (void)options;
  sinker s = {0};
  PPH_TRY(pph_rewrite_begin(&s.rewrite, graph, error));
  pph_status status = walk(&s, error);
  pph_rewrite_end(&s.rewrite);
  return status;
}
