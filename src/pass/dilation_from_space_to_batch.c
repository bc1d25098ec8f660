/* TensorFlow computes a dilated convolution as an ordinary one over a batch of
   every d-th element: reshape and transpose, convolve, transpose and reshape
   back. Whatever chain of Reshape and Transpose spells it: if index l of a
   spatial axis comes in as batch l mod d and position l div d, and goes out the
   same way, the convolution between has dilation d over the whole axis.
   Runs after simplify, which leaves only Reshape and Transpose of such chains.
   Exact. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"
#include "pass/axis_map.h"
#include "pass/match.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

enum { MAX_CHAIN = 16, BATCH_AXIS = 100 };

/* The chain that was recognised. Roles: 0 batch, 1 channels, 2.. space. */
typedef struct chain {
  pph_node *conv;
  pph_id source;              /* before the chain in */
  int32_t roles;              /* the convolution's rank */
  int32_t axis[PPH_MAX_RANK]; /* of the source, per role; -1: length 1 */
  int64_t block[PPH_MAX_RANK]; /* per role, 1 where there is none */
  int32_t order[PPH_MAX_RANK]; /* roles inside the batch axis, outer first */
  int32_t parts;
  pph_node *out[MAX_CHAIN]; /* the chain behind the convolution */
  int outs;
  int32_t result[PPH_MAX_RANK]; /* axis of the result, per role; -1 */
} chain;

/* Channels and space: at most one atom each, and with its block (which
   read_batch looks for) the whole axis of the source. */
static bool read_roles(const pph_shape *source, chain *c,
                       const pph_axis_map *map) {
  for (int32_t role = 0; role < c->roles; role++) {
    c->axis[role] = -1;
    c->block[role] = 1;
  }
  for (uint32_t i = 0; i < map->count; i++) {
    const pph_axis_atom *atom = &map->atoms[i];
    if (atom->place == 0)
      continue;
    if (c->axis[atom->place] >= 0 ||
        atom->length * atom->stride != source->dims[atom->axis])
      return false;
    c->axis[atom->place] = atom->axis;
    c->block[atom->place] = atom->stride;
  }
  return c->block[1] == 1;
}

/* The batch axis: the block of each space axis, and the true batch. */
static bool read_batch(const pph_shape *source, chain *c,
                       const pph_axis_map *map) {
  int64_t found[PPH_MAX_RANK] = {0};
  c->parts = 0;
  for (uint32_t i = 0; i < map->count; i++) {
    const pph_axis_atom *atom = &map->atoms[i];
    if (atom->place != 0)
      continue;
    int32_t role = 2;
    while (role < c->roles && c->axis[role] != atom->axis)
      role++;
    if (role == c->roles) {
      if (c->axis[0] >= 0 || atom->length != source->dims[atom->axis])
        return false;
      role = 0;
      c->axis[0] = atom->axis;
    } else if (atom->stride != 1 || atom->length != c->block[role]) {
      return false;
    }
    if (found[role] || c->parts == PPH_MAX_RANK)
      return false;
    found[role] = 1;
    c->order[c->parts++] = role;
  }
  bool any = false;
  for (int32_t role = 2; role < c->roles; role++) {
    any |= c->block[role] > 1;
    if ((c->block[role] > 1) != (found[role] == 1))
      return false;
  }
  return any;
}

/* The convolution's output, its batch axis taken apart. */
static bool start_output(const pph_graph *graph, const chain *c,
                         pph_axis_map *map) {
  const pph_shape *shape = &pph_graph_value(graph, c->conv->outputs[0])->shape;
  const pph_shape *source = &pph_graph_value(graph, c->source)->shape;
  *map = (pph_axis_map){.rank = shape->rank};
  for (int32_t i = 0; i < c->parts; i++) {
    int32_t role = c->order[i];
    int64_t length = role ? c->block[role] : source->dims[c->axis[0]];
    if (!pph_axis_map_append(
            map, (pph_axis_atom){BATCH_AXIS + role, 0, 1, length}))
      return false;
  }
  for (int32_t i = 1; i < shape->rank; i++)
    if (!pph_axis_map_append(map,
                             (pph_axis_atom){i, i, 1, shape->dims[i]}))
      return false;
  return true;
}

/* Each role in one axis of its own, space as (position, block). */
static bool is_undone(chain *c, const pph_axis_map *map) {
  bool taken[PPH_MAX_RANK] = {false};
  for (int32_t role = 0; role < c->roles; role++)
    c->result[role] = -1;
  for (uint32_t i = 0; i < map->count; i++) {
    const pph_axis_atom *atom = &map->atoms[i];
    int32_t role = atom->axis % BATCH_AXIS;
    if (atom->axis == BATCH_AXIS)
      role = 0;
    if (role >= 2 && c->block[role] > 1) {
      const pph_axis_atom *next = atom + 1;
      bool alone = atom->axis != role; /* the position is missing: length 1 */
      if (!alone && (i + 1 == map->count || next->place != atom->place ||
                     next->axis != BATCH_AXIS + role))
        return false;
      i += !alone;
    }
    if (taken[atom->place] || c->result[role] >= 0)
      return false;
    taken[atom->place] = true;
    c->result[role] = atom->place;
  }
  return true;
}

/* No axis of the convolution's output is split: splits have outer parts. */
static bool is_whole(const pph_axis_map *map) {
  for (uint32_t i = 0; i < map->count; i++)
    if (map->atoms[i].stride != 1)
      return false;
  return true;
}

/* Follows the only reader while it reshapes or transposes. */
static bool map_output(const pph_rewrite *rewrite, chain *c) {
  const pph_graph *graph = rewrite->graph;
  pph_axis_map map;
  if (!start_output(graph, c, &map))
    return false;
  pph_node *at = c->conv;
  for (int i = 0; i < MAX_CHAIN; i++) {
    pph_id id = at->outputs[0];
    const pph_value *value = pph_graph_value(graph, id);
    if (value->uses != 1 || pph_rewrite_is_output(rewrite, id) ||
        !value->user || value->user->inputs[0] != id ||
        !pph_axis_map_follow(&map, graph, value->user))
      return false;
    at = value->user;
    c->out[c->outs++] = at;
    if (!is_whole(&map))
      return false;
    if (is_undone(c, &map))
      return true;
  }
  return false;
}

static bool match_conv(const pph_graph *graph, const pph_node *node,
                       const pph_window *window) {
  size_t count;
  for (uint32_t i = 0; i < window->axes; i++)
    if (window->stride[i] != 1)
      return false;
  return window->axes <= 2 &&
         pph_shape_count(&pph_graph_value(graph, node->outputs[0])->shape,
                         &count) &&
         count > 0 && window->batch > 1;
}

/* Emits `source` with its axes in the order `from` (all of them), then as
   `shape`, leaving out what changes nothing. */
static pph_status move(pph_rewrite *rewrite, pph_node *before, pph_id source,
                       const int64_t *perm, const pph_shape *shape,
                       pph_id *output, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  pph_shape from = pph_graph_value(graph, source)->shape;
  pph_node *node;
  if (!pph_match_perm_moves_ones(&from, perm)) {
    PPH_TRY(pph_rewrite_insert(rewrite, PPH_NODE_TRANSPOSE, before, &source, 1,
                               &node, error));
    PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_PERM, perm,
                              (uint32_t)from.rank, error));
    PPH_TRY(pph_shape_infer_node(graph, node, error));
    source = node->outputs[0];
  }
  *output = source;
  if (pph_shape_equal(&pph_graph_value(graph, source)->shape, shape))
    return PPH_OK;
  pph_id ids[2] = {source};
  PPH_TRY(pph_graph_add_ints(graph, NULL, shape->dims, (size_t)shape->rank,
                             &ids[1], error));
  PPH_TRY(pph_rewrite_insert(rewrite, PPH_NODE_RESHAPE, before, ids, 2, &node,
                             error));
  *output = node->outputs[0];
  return pph_shape_infer_node(graph, node, error);
}

/* Source axes by role, the ones without a role (length 1) first. */
static pph_status build_input(pph_rewrite *rewrite, chain *c,
                              pph_error *error) {
  const pph_graph *graph = rewrite->graph;
  const pph_shape source = pph_graph_value(graph, c->source)->shape;
  int64_t perm[PPH_MAX_RANK];
  bool used[PPH_MAX_RANK] = {false};
  int32_t at = 0;
  pph_shape shape = {.rank = c->roles};
  for (int32_t role = 0; role < c->roles; role++) {
    shape.dims[role] = c->axis[role] < 0 ? 1 : source.dims[c->axis[role]];
    if (c->axis[role] >= 0)
      used[c->axis[role]] = true;
  }
  for (int32_t i = 0; i < source.rank; i++)
    if (!used[i])
      perm[at++] = i;
  for (int32_t role = 0; role < c->roles; role++)
    if (c->axis[role] >= 0)
      perm[at++] = c->axis[role];
  pph_id moved;
  PPH_TRY(move(rewrite, c->conv, c->source, perm, &shape, &moved, error));
  pph_rewrite_set_input(rewrite, c->conv, 0, moved);
  return PPH_OK;
}

static pph_status widen_conv(pph_rewrite *rewrite, chain *c,
                             const pph_window *window, pph_error *error) {
  pph_graph *graph = rewrite->graph;
  int64_t dilations[3], pads[6];
  for (uint32_t i = 0; i < window->axes; i++) {
    int64_t block = c->block[2 + i];
    if (!pph_checked_mul_i64(window->dilation[i], block, &dilations[i]) ||
        !pph_checked_mul_i64(window->pad_begin[i], block, &pads[i]) ||
        !pph_checked_mul_i64(window->pad_end[i], block,
                             &pads[window->axes + i]))
      return pph_node_fail(c->conv, error, PPH_LIMIT_EXCEEDED,
                           "its dilation overflows");
  }
  pph_node_remove_attribute(c->conv, PPH_ATTR_AUTO_PAD);
  PPH_TRY(pph_node_set_ints(graph, c->conv, PPH_ATTR_DILATIONS, dilations,
                            window->axes, error));
  PPH_TRY(pph_node_set_ints(graph, c->conv, PPH_ATTR_PADS, pads,
                            2 * window->axes, error));
  return pph_shape_infer_node(graph, c->conv, error);
}

/* The roles in the order of the result's axes. */
static pph_status build_output(pph_rewrite *rewrite, const chain *c,
                               pph_id *output, pph_error *error) {
  pph_node *last = c->out[c->outs - 1];
  const pph_shape shape =
      pph_graph_value(rewrite->graph, last->outputs[0])->shape;
  int64_t perm[PPH_MAX_RANK];
  int32_t at = 0;
  for (int32_t role = 0; role < c->roles; role++)
    if (c->result[role] < 0)
      perm[at++] = role;
  for (int32_t place = 0; place < shape.rank; place++)
    for (int32_t role = 0; role < c->roles; role++)
      if (c->result[role] == place)
        perm[at++] = role;
  return move(rewrite, last, c->conv->outputs[0], perm, &shape, output,
              error);
}

static pph_status rebuild(pph_rewrite *rewrite, chain *c,
                          const pph_window *window, pph_error *error) {
  PPH_TRY(build_input(rewrite, c, error));
  PPH_TRY(widen_conv(rewrite, c, window, error));
  pph_id output;
  PPH_TRY(build_output(rewrite, c, &output, error));
  pph_node *made = pph_graph_value(rewrite->graph, output)->producer;
  PPH_TRY(pph_rewrite_take_over(rewrite, c->out[c->outs - 1], made, error));
  /* The old chain would not fit the new shape, dead as it is. */
  for (int i = 0; i + 1 < c->outs; i++)
    pph_rewrite_remove(rewrite, c->out[i]);
  return PPH_OK;
}

static pph_status visit(pph_rewrite *rewrite, pph_node *node,
                        pph_error *error) {
  const pph_graph *graph = rewrite->graph;
  pph_window window;
  pph_axis_map map;
  chain c = {.conv = node};
  if (node->kind != PPH_NODE_CONV ||
      !pph_node_find_input(graph, node, 0)->producer)
    return PPH_OK;
  PPH_TRY(pph_shape_find_window(graph, node, &window, error));
  c.roles = (int32_t)window.axes + 2;
  if (!match_conv(graph, node, &window) ||
      !pph_axis_map_trace(&map, graph, node->inputs[0], &c.source))
    return PPH_OK;
  const pph_shape *source = &pph_graph_value(graph, c.source)->shape;
  if (!read_roles(source, &c, &map) || !read_batch(source, &c, &map) ||
      !map_output(rewrite, &c))
    return PPH_OK;
  return rebuild(rewrite, &c, &window, error);
}

pph_status pph_pass_dilation_from_space_to_batch(
    pph_graph *graph, const pph_pass_options *options, pph_error *error) {
  (void)options;
  pph_rewrite rewrite;
  PPH_TRY(pph_rewrite_begin(&rewrite, graph, error));
  pph_status status = PPH_OK;
  /* Nodes behind a convolution may go, so the next one is looked up late. */
  for (pph_node *node = graph->first; node && status == PPH_OK;
       node = node->next)
    status = visit(&rewrite, node, error);
  pph_rewrite_end(&rewrite);
  return status;
}
