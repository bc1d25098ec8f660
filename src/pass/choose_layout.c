/* Decides how each activation lies in memory, and inserts Relayout nodes where
   a producer and a reader disagree. Logical shapes stay as they are.

   Every node gets one layout for the values that it reads and makes. Some have
   no choice: convolutions and their kin want channels last, products of
   matrices and reshapes want row-major. The others follow: first their inputs
   in one forward walk, then, in a few sweeps, whatever moves fewer elements.
   The types of wish are below; which kind has which is a table row. */
#include "base/checked.h"
#include "base/fail.h"
#include "pass/match.h"
#include "pass/pass.h"

typedef enum wish {
  WISH_PLAIN,
  WISH_SPATIAL, /* channels last for rank 3 and 4 */
  WISH_FOLLOW,  /* all full-rank operands alike */
  WISH_FREE     /* moves: reads any layout, the label is the output's */
} wish;

enum { SWEEPS = 8 };

typedef struct chooser {
  pph_graph *graph;
  double *readers[2]; /* per value: how many readers want that layout */
  pph_id *relaid;     /* per value: its copy in the other layout */
  uint32_t count;     /* values at the start; length of all of these */
} chooser;

static bool can_be_channels_last(const pph_value *value) {
  return value->has_rank && (value->shape.rank == 3 || value->shape.rank == 4);
}

/* Both layouts are the same bytes. */
static bool is_layout_free(const pph_value *value) {
  if (!can_be_channels_last(value))
    return true;
  int64_t spatial = 1;
  for (int32_t i = 2; i < value->shape.rank; i++)
    spatial = value->shape.dims[i] == 1 ? spatial : 0;
  return value->shape.dims[1] <= 1 || spatial == 1;
}

static double find_size(const pph_value *value) {
  size_t elements = 0;
  if (is_layout_free(value) || !pph_shape_count(&value->shape, &elements))
    return 0;
  return (double)elements + 1;
}

/* A Resize of channels is not what channels last is for. */
static bool keeps_channels(const pph_value *in, const pph_value *out) {
  return in->shape.dims[1] == out->shape.dims[1];
}

/* Only axes of length 1 come or go: a copy that any layout can do. */
static bool only_moves_ones(const pph_value *in, const pph_value *out) {
  int32_t i = 0, j = 0;
  for (;; i++, j++) {
    while (i < in->shape.rank && in->shape.dims[i] == 1)
      i++;
    while (j < out->shape.rank && out->shape.dims[j] == 1)
      j++;
    if (i >= in->shape.rank || j >= out->shape.rank)
      return i >= in->shape.rank && j >= out->shape.rank;
    if (in->shape.dims[i] != out->shape.dims[j])
      return false;
  }
}

static wish find_move_wish(const pph_node *node, const pph_value *in,
                           const pph_value *out) {
  switch ((int)node->kind) {
  case PPH_NODE_TRANSPOSE:
  case PPH_NODE_RELAYOUT:
  case PPH_NODE_CONCAT:
  case PPH_NODE_SLICE:
  case PPH_NODE_PAD:
  case PPH_NODE_SPLIT:
  case PPH_NODE_EXPAND:
    return WISH_FREE;
  case PPH_NODE_RESHAPE:
  case PPH_NODE_FLATTEN:
  case PPH_NODE_SQUEEZE:
  case PPH_NODE_UNSQUEEZE:
    return only_moves_ones(in, out) ? WISH_FREE : WISH_PLAIN;
  default:
    return WISH_PLAIN;
  }
}

/* Softmax over channels, or over anything that one step apart strides make
   no slower, follows; over the last axis it wants that axis to stay last. */
static wish find_softmax_wish(const pph_node *node, const pph_value *out) {
  int64_t axis = pph_node_int(node, PPH_ATTR_AXIS, -1);
  axis += axis < 0 ? out->shape.rank : 0;
  return axis == 1 ? WISH_FOLLOW : WISH_PLAIN;
}

static wish find_wish(const pph_graph *graph, const pph_node *node) {
  const pph_value *in = pph_node_find_input(graph, node, 0);
  const pph_value *out = pph_node_find_result(graph, node);
  if (!in || !out)
    return WISH_PLAIN;
  switch (pph_node_kind_find_info(node->kind)->node_class) {
  case PPH_CLASS_UNARY:
  case PPH_CLASS_BINARY:
    return WISH_FOLLOW;
  case PPH_CLASS_SPATIAL:
    return can_be_channels_last(in) && can_be_channels_last(out) &&
                   (node->kind != PPH_NODE_RESIZE || keeps_channels(in, out))
               ? WISH_SPATIAL
               : WISH_PLAIN;
  case PPH_CLASS_MOVE:
    return find_move_wish(node, in, out);
  case PPH_CLASS_SHAPE:
  case PPH_CLASS_OTHER:
    break;
  }
  return node->kind == PPH_NODE_SOFTMAX ? find_softmax_wish(node, out)
                                        : WISH_PLAIN;
}

/* Whether the node's layout binds this input. Low-rank operands, shapes and
   other parameters, and small constants never force anything. */
static bool binds(const pph_graph *graph, const pph_node *node, wish how,
                  uint32_t slot) {
  const pph_value *value = pph_node_find_input(graph, node, slot);
  if (!value || !can_be_channels_last(value) || how == WISH_FREE)
    return false;
  if (how == WISH_SPATIAL) /* a convolution's fourth is added to its sums */
    return slot == 0 || slot == 3;
  if (how == WISH_PLAIN)
    return !value->data;
  pph_node_class node_class = pph_node_kind_find_info(node->kind)->node_class;
  if (node_class != PPH_CLASS_BINARY)
    return slot == 0;
  const pph_value *out = pph_graph_value(graph, node->outputs[0]);
  return value->shape.rank == out->shape.rank &&
         !(value->data && is_layout_free(value));
}

static pph_layout layout_of(const chooser *c, pph_id id) {
  return pph_graph_value(c->graph, id)->layout;
}

static pph_layout find_label(const chooser *c, const pph_node *node) {
  const pph_value *out = pph_node_find_result(c->graph, node);
  return out ? out->layout : PPH_LAYOUT_PLAIN;
}

static void set_label(chooser *c, const pph_node *node, pph_layout label) {
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i] == PPH_NO_VALUE)
      continue;
    pph_value *value = pph_graph_value(c->graph, node->outputs[i]);
    value->layout = can_be_channels_last(value) ? label : PPH_LAYOUT_PLAIN;
  }
}

/* The layout that the node wants for its bound inputs. */
static pph_layout find_demand(const chooser *c, const pph_node *node,
                              wish how) {
  if (how == WISH_SPATIAL)
    return PPH_LAYOUT_CHANNELS_LAST;
  return how == WISH_PLAIN ? PPH_LAYOUT_PLAIN : find_label(c, node);
}

/* The i-th axis in memory, outermost first. */
static int32_t axis_at(int32_t rank, pph_layout layout, int32_t i) {
  if (layout == PPH_LAYOUT_PLAIN || rank < 3 || i == 0)
    return i;
  return i == rank - 1 ? 1 : i + 1;
}

/* Which axis of the input becomes which of the output: a Transpose says it, a
   Reshape that only moves ones keeps the others in order, the rest keep all. */
static void map_axes(const pph_graph *graph, const pph_node *node,
                     int64_t *from) {
  const pph_shape *in = &pph_node_find_input(graph, node, 0)->shape;
  const pph_shape *out = &pph_graph_value(graph, node->outputs[0])->shape;
  if (node->kind == PPH_NODE_TRANSPOSE) {
    pph_match_perm(graph, node, from);
    return;
  }
  bool reshapes = !(node->kind == PPH_NODE_SLICE ||
                    node->kind == PPH_NODE_PAD ||
                    node->kind == PPH_NODE_CONCAT ||
                    node->kind == PPH_NODE_SPLIT ||
                    node->kind == PPH_NODE_EXPAND ||
                    node->kind == PPH_NODE_RELAYOUT);
  int32_t k = 0;
  for (int32_t i = 0; i < out->rank; i++) {
    from[i] = i;
    if (!reshapes)
      continue;
    from[i] = -1;
    if (out->dims[i] == 1)
      continue;
    while (k < in->rank && in->dims[k] == 1)
      k++;
    from[i] = k < in->rank ? k++ : -1;
  }
}

/* The input of slot 0 lies in memory as the output with that label would. */
static bool keeps_order(const chooser *c, const pph_node *node,
                        pph_layout label) {
  const pph_value *in = pph_node_find_input(c->graph, node, 0);
  const pph_value *out = pph_graph_value(c->graph, node->outputs[0]);
  int64_t from[PPH_MAX_RANK];
  int32_t place[PPH_MAX_RANK], previous = -1;
  map_axes(c->graph, node, from);
  for (int32_t i = 0; i < in->shape.rank; i++)
    place[axis_at(in->shape.rank, in->layout, i)] = i;
  for (int32_t i = 0; i < out->shape.rank; i++) {
    int64_t axis = from[axis_at(out->shape.rank, label, i)];
    if (axis < 0 || axis >= in->shape.rank || in->shape.dims[axis] == 1)
      continue;
    if (place[axis] < previous)
      return false;
    previous = place[axis];
  }
  return true;
}

static pph_layout follow_inputs(const chooser *c, const pph_node *node,
                                wish how) {
  if (how == WISH_FREE)
    return !keeps_order(c, node, PPH_LAYOUT_PLAIN) &&
                   keeps_order(c, node, PPH_LAYOUT_CHANNELS_LAST)
               ? PPH_LAYOUT_CHANNELS_LAST
               : PPH_LAYOUT_PLAIN;
  for (uint32_t i = 0; i < node->input_count; i++)
    if (binds(c->graph, node, how, i) &&
        layout_of(c, node->inputs[i]) == PPH_LAYOUT_CHANNELS_LAST)
      return PPH_LAYOUT_CHANNELS_LAST;
  return PPH_LAYOUT_PLAIN;
}

static void walk_forward(chooser *c) {
  for (const pph_node *node = c->graph->first; node; node = node->next) {
    wish how = find_wish(c->graph, node);
    if (how == WISH_SPATIAL)
      set_label(c, node, PPH_LAYOUT_CHANNELS_LAST);
    else if (how == WISH_PLAIN)
      set_label(c, node, PPH_LAYOUT_PLAIN);
    else
      set_label(c, node, follow_inputs(c, node, how));
  }
}

static void add_reads(chooser *c, const pph_node *node, double amount) {
  wish how = find_wish(c->graph, node);
  pph_layout demand = find_demand(c, node, how);
  for (uint32_t i = 0; i < node->input_count; i++)
    if (binds(c->graph, node, how, i))
      c->readers[demand][node->inputs[i]] += amount;
}

static void count_reads(chooser *c) {
  for (const pph_node *node = c->graph->first; node; node = node->next)
    add_reads(c, node, 1);
  for (uint32_t i = 0; i < c->graph->output_count; i++)
    c->readers[PPH_LAYOUT_PLAIN][c->graph->outputs[i]] += 1;
}

/* A node that moves anyway does so from one layout to another in one copy,
   but in smaller steps, which costs half as much as a copy more. */
static double find_move_cost(const chooser *c, const pph_node *node,
                             pph_layout label) {
  double size = find_size(pph_graph_value(c->graph, node->outputs[0]));
  if (node->kind == PPH_NODE_TRANSPOSE)
    return keeps_order(c, node, label) ? 0 : size;
  if (node->kind != PPH_NODE_CONCAT)
    return keeps_order(c, node, label) ? 0 : size / 2;
  double cost = 0;
  for (uint32_t i = 0; i < node->input_count; i++)
    if (layout_of(c, node->inputs[i]) != label)
      cost += find_size(pph_graph_value(c->graph, node->inputs[i])) / 2;
  return cost;
}

/* Elements moved between the node's inputs and it, and between it and its
   readers, if it had that label. Its own reads are not counted in readers. */
static double find_cost(const chooser *c, const pph_node *node, wish how,
                        pph_layout label) {
  double cost = 0;
  pph_layout other = label == PPH_LAYOUT_PLAIN ? PPH_LAYOUT_CHANNELS_LAST
                                               : PPH_LAYOUT_PLAIN;
  for (uint32_t i = 0; i < node->input_count; i++) {
    if (!binds(c->graph, node, how, i))
      continue;
    pph_id id = node->inputs[i];
    if (layout_of(c, id) != label && c->readers[label][id] == 0)
      cost += find_size(pph_graph_value(c->graph, id));
  }
  for (uint32_t i = 0; i < node->output_count; i++) {
    pph_id id = node->outputs[i];
    if (id != PPH_NO_VALUE && c->readers[other][id] > 0)
      cost += find_size(pph_graph_value(c->graph, id));
  }
  return how == WISH_FREE ? cost + find_move_cost(c, node, label) : cost;
}

/* Gives one node the cheaper label; true when that changes it. */
static bool improve(chooser *c, const pph_node *node) {
  wish how = find_wish(c->graph, node);
  const pph_value *out = pph_node_find_result(c->graph, node);
  if ((how != WISH_FOLLOW && how != WISH_FREE) || !can_be_channels_last(out))
    return false;
  pph_layout now = find_label(c, node);
  pph_layout other = now == PPH_LAYOUT_PLAIN ? PPH_LAYOUT_CHANNELS_LAST
                                             : PPH_LAYOUT_PLAIN;
  add_reads(c, node, -1);
  bool better = find_cost(c, node, how, other) < find_cost(c, node, how, now);
  if (better)
    set_label(c, node, other);
  add_reads(c, node, 1);
  return better;
}

static void sweep(chooser *c) {
  bool changed = true;
  for (int i = 0; i < SWEEPS && changed; i++) {
    changed = false;
    for (const pph_node *node = c->graph->last; node; node = node->previous)
      changed |= improve(c, node);
    for (const pph_node *node = c->graph->first; node; node = node->next)
      changed |= improve(c, node);
  }
}

/* Insertion of Relayout nodes */

static pph_status make_relaid(chooser *c, pph_id id, pph_layout layout,
                              pph_node *before, pph_error *error) {
  pph_node *node;
  PPH_TRY(pph_graph_insert(c->graph, PPH_NODE_RELAYOUT, before, &id, 1, &node,
                           error));
  const pph_value *from = pph_graph_value(c->graph, id);
  pph_value *to = pph_graph_value(c->graph, node->outputs[0]);
  to->type = from->type;
  to->has_rank = true;
  to->shape = from->shape;
  to->layout = layout;
  c->relaid[id] = node->outputs[0];
  return PPH_OK;
}

/* A graph output made in the other layout: the producer gets a new value, and
   a Relayout right behind it makes the output, which plain readers share. */
static pph_status relay_output(chooser *c, pph_id output, pph_error *error) {
  pph_node *producer = pph_graph_value(c->graph, output)->producer;
  pph_id inner;
  PPH_TRY(pph_graph_add_value(c->graph, NULL, &inner, error));
  pph_value *value = pph_graph_value(c->graph, output);
  pph_value *made = pph_graph_value(c->graph, inner);
  made->type = value->type;
  made->has_rank = true;
  made->shape = value->shape;
  made->layout = PPH_LAYOUT_CHANNELS_LAST;
  made->producer = producer;
  value->layout = PPH_LAYOUT_PLAIN;
  for (uint32_t i = 0; i < producer->output_count; i++)
    if (producer->outputs[i] == output)
      producer->outputs[i] = inner;
  pph_node *node;
  PPH_TRY(pph_graph_add_node(c->graph, PPH_NODE_RELAYOUT, producer->name,
                             producer->next, &node, error));
  node->index = producer->index;
  PPH_TRY(pph_node_set_inputs(c->graph, node, &inner, 1, error));
  PPH_TRY(pph_node_set_outputs(c->graph, node, &output, 1, error));
  c->relaid[output] = inner; /* for readers that want channels last */
  return PPH_OK;
}

static pph_status relay_input(chooser *c, pph_node *node, uint32_t slot,
                              pph_layout demand, pph_error *error) {
  pph_id id = node->inputs[slot];
  if (pph_graph_value(c->graph, id)->layout == demand)
    return PPH_OK;
  if (c->relaid[id] == PPH_NO_VALUE)
    PPH_TRY(make_relaid(c, id, demand, node, error));
  node->inputs[slot] = c->relaid[id];
  return PPH_OK;
}

static pph_status relay_node(chooser *c, pph_node *node, pph_error *error) {
  wish how = find_wish(c->graph, node);
  pph_layout demand = find_demand(c, node, how);
  for (uint32_t i = 0; i < node->input_count; i++)
    if (binds(c->graph, node, how, i))
      PPH_TRY(relay_input(c, node, i, demand, error));
  return PPH_OK;
}

static pph_status insert_relayouts(chooser *c, pph_error *error) {
  pph_graph *graph = c->graph;
  for (uint32_t i = 0; i < c->count; i++)
    c->relaid[i] = PPH_NO_VALUE;
  for (uint32_t i = 0; i < graph->output_count; i++)
    if (layout_of(c, graph->outputs[i]) != PPH_LAYOUT_PLAIN)
      PPH_TRY(relay_output(c, graph->outputs[i], error));
  for (pph_node *node = graph->first; node; node = node->next)
    PPH_TRY(relay_node(c, node, error));
  return PPH_OK;
}

static bool allocate(chooser *c) {
  pph_heap *heap = c->graph->heap;
  c->count = c->graph->value_count;
  c->readers[0] = pph_heap_allocate_zeroed(heap, c->count, sizeof(double));
  c->readers[1] = pph_heap_allocate_zeroed(heap, c->count, sizeof(double));
  c->relaid = pph_heap_allocate(heap, c->count, sizeof *c->relaid);
  return c->readers[0] && c->readers[1] && c->relaid;
}

static void release(chooser *c) {
  pph_heap *heap = c->graph->heap;
  pph_heap_release(heap, c->readers[0]);
  pph_heap_release(heap, c->readers[1]);
  pph_heap_release(heap, c->relaid);
}

pph_status pph_pass_choose_layout(pph_graph *graph,
                                  const pph_pass_options *options,
                                  pph_error *error) {
  if (!options->choose_layout)
    return PPH_OK;
  chooser c = {.graph = graph};
  pph_status status = PPH_OK;
  if (allocate(&c)) {
    walk_forward(&c);
    count_reads(&c);
    sweep(&c);
    status = insert_relayouts(&c, error);
  } else {
    status = pph_fail_memory(error);
  }
  release(&c);
  return status;
}
