/* Transposes, reshapes and conversions that cancel. Those that do not meet
   their opposite are moved behind nodes that do not care how values lie, until
   they meet. The result is taken if less is transposed than before. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "optimize/delegate_edit.h"
#include "optimize/nearest.h"
#include "optimize/dims_check.h"

typedef struct layout {
  pph_delegate_edit *edit;
  uint32_t *instead; /* per old value: what is read in its place */
} layout;

static bool is_binary(uint32_t kind) {
  return kind == PPH_PAYLOAD_ADD || kind == PPH_PAYLOAD_SUBTRACT ||
         kind == PPH_PAYLOAD_MULTIPLY || kind == PPH_PAYLOAD_DIV ||
         kind == PPH_PAYLOAD_MINIMUM || kind == PPH_PAYLOAD_MAXIMUM;
}

/* The new node that makes `id`; NULL when nothing does. */
static const pph_payload_node *find_maker(const layout *l, uint32_t id) {
  for (uint32_t i = l->edit->x.node_count; i--;) {
    pph_payload_uses uses;
    pph_payload_find_uses(&l->edit->x.nodes[i], &uses);
    for (uint32_t k = 0; k < uses.output_count; k++)
      if (uses.outputs[k] == id)
        return &l->edit->x.nodes[i];
  }
  return NULL;
}

/* Transpose or reshape that makes `id`. */
static const pph_payload_node *find_move(const layout *l, uint32_t id) {
  const pph_payload_node *node = find_maker(l, id);
  return node && (node->xnode_union.type == PPH_PAYLOAD_TRANSPOSE ||
                  node->xnode_union.type == PPH_PAYLOAD_RESHAPE)
             ? node
             : NULL;
}

static uint32_t input_of(const pph_payload_node *node) {
  pph_payload_uses uses;
  pph_payload_find_uses(node, &uses);
  return uses.inputs[0];
}

static bool same_dims(const layout *l, uint32_t a, uint32_t b) {
  pph_payload_dims p = pph_payload_dims_of(&l->edit->x, a);
  pph_payload_dims q = pph_payload_dims_of(&l->edit->x, b);
  return p.count == q.count &&
         memcmp(p.at, q.at, p.count * sizeof *p.at) == 0;
}

static bool same_move(const layout *l, const pph_payload_node *a,
                      const pph_payload_node *b) {
  if (!a || !b || a->xnode_union.type != b->xnode_union.type ||
      !same_dims(l, input_of(a), input_of(b)))
    return false;
  if (a->xnode_union.type == PPH_PAYLOAD_RESHAPE) {
    const pph_payload_reshape *p = a->xnode_union.value;
    const pph_payload_reshape *q = b->xnode_union.value;
    return same_dims(l, p->output_id, q->output_id);
  }
  const pph_payload_transpose *p = a->xnode_union.value;
  const pph_payload_transpose *q = b->xnode_union.value;
  return p->perm.count == q->perm.count &&
         memcmp(p->perm.at, q->perm.at,
                p->perm.count * sizeof *p->perm.at) == 0;
}

/* The node with other inputs, making `output`. */
static pph_status put(layout *l, const pph_payload_node *node,
                      const uint32_t *inputs, uint32_t output) {
  pph_payload_uses uses;
  PPH_TRY(pph_delegate_edit_keep(l->edit, node));
  pph_payload_node *made = &l->edit->x.nodes[l->edit->x.node_count - 1];
  pph_payload_find_uses(made, &uses);
  memcpy(uses.inputs, inputs, uses.input_count * sizeof *inputs);
  uses.outputs[0] = output;
  pph_payload_set_uses(made, &uses);
  return PPH_OK;
}

static bool is_internal(const layout *l, uint32_t id) {
  return !pph_edit_tensor(l->edit, id)->flags;
}

/* The node before the move, the move behind it. */
static pph_status sink(layout *l, const pph_payload_node *node,
                       const pph_payload_node *move, const uint32_t *inputs,
                       const pph_payload_dims *dims) {
  pph_payload_export *x = &l->edit->x;
  const pph_payload_node kept = *move; /* the list may be moved */
  pph_payload_uses uses;
  uint32_t fresh;
  pph_payload_find_uses(node, &uses);
  x->like = &x->values[uses.outputs[0]];
  PPH_TRY(pph_payload_put_value(x, dims, &fresh));
  PPH_TRY(put(l, node, inputs, fresh));
  return put(l, &kept, &fresh, uses.outputs[0]);
}

/* A transpose of few values, and nearest upsampling behind it. */
static pph_status turn_before(layout *l, const pph_payload_node *node,
                              const pph_payload_node *nearest, bool *done) {
  const pph_payload_transpose *move = node->xnode_union.value;
  pph_payload_resize table =
      *(const pph_payload_resize *)nearest->xnode_union.value;
  pph_payload_export *x = &l->edit->x;
  uint32_t axis = 0, turned = table.input_id;
  while (axis < 3 && move->perm.at[axis] != pph_nearest_axis(&table))
    axis++;
  if (move->perm.count != 4 || axis == 3 ||
      move->perm.at[axis + 1] != pph_nearest_axis(&table) + 1)
    return PPH_OK;
  *done = true;
  x->like = &x->values[move->output_id];
  PPH_TRY(pph_payload_put_transpose(x, move->perm.at, &turned));
  table.flags = pph_nearest_flags(axis);
  const pph_payload_node made = {
      .xnode_union = {.value = &table, .type = PPH_PAYLOAD_RESIZE},
      .debug_handle = node->debug_handle};
  return put(l, &made, &turned, move->output_id);
}

static pph_status visit_transpose(layout *l, const pph_payload_node *node,
                                  uint32_t input) {
  const pph_payload_transpose *old = node->xnode_union.value;
  const pph_payload_node *before = find_maker(l, input);
  pph_payload_transpose table = *old;
  uint32_t count = old->perm.count;
  uint32_t *perm = pph_arena_allocate(l->edit->x.arena, count, sizeof *perm);
  bool identity = true;
  if (!perm)
    return pph_fail_memory(l->edit->x.error);
  if (before && pph_nearest_is(before)) {
    bool done = false;
    PPH_TRY(turn_before(l, node, before, &done));
    if (done)
      return PPH_OK;
  }
  if (before && before->xnode_union.type == PPH_PAYLOAD_TRANSPOSE) {
    const pph_payload_transpose *first = before->xnode_union.value;
    for (uint32_t i = 0; i < count; i++)
      perm[i] = first->perm.at[old->perm.at[i]];
    table.perm.at = perm;
    input = first->input_id;
  }
  for (uint32_t i = 0; i < count; i++)
    identity &= table.perm.at[i] == i;
  if (identity && is_internal(l, old->output_id)) {
    l->instead[old->output_id] = input;
    return PPH_OK;
  }
  table.input_id = input;
  for (uint32_t i = 0; i < l->edit->x.node_count; i++) {
    const pph_payload_transpose *other = l->edit->x.nodes[i].xnode_union.value;
    if (l->edit->x.nodes[i].xnode_union.type != PPH_PAYLOAD_TRANSPOSE ||
        other->input_id != input || !is_internal(l, old->output_id) ||
        memcmp(other->perm.at, table.perm.at, count * sizeof *perm) != 0)
      continue;
    l->instead[old->output_id] = other->output_id;
    return PPH_OK;
  }
  const pph_payload_node made = {
      .xnode_union = {.value = &table, .type = PPH_PAYLOAD_TRANSPOSE},
      .debug_handle = node->debug_handle};
  return put(l, &made, &input, old->output_id);
}

static pph_status visit_reshape(layout *l, const pph_payload_node *node,
                                uint32_t input) {
  const pph_payload_reshape *old = node->xnode_union.value;
  const pph_payload_node *before = find_maker(l, input);
  if (before && before->xnode_union.type == PPH_PAYLOAD_RESHAPE)
    input = input_of(before);
  if (same_dims(l, input, old->output_id) && is_internal(l, old->output_id)) {
    l->instead[old->output_id] = input;
    return PPH_OK;
  }
  return put(l, node, &input, old->output_id);
}

static bool same_quantization(const layout *l, uint32_t a, uint32_t b) {
  const pph_payload_value *p = &l->edit->x.values[a];
  const pph_payload_value *q = &l->edit->x.values[b];
  if (p->xvalue_union.type != 2 || q->xvalue_union.type != 2 ||
      pph_edit_tensor(l->edit, a)->datatype !=
          pph_edit_tensor(l->edit, b)->datatype)
    return false;
  const pph_payload_quantized *s = p->xvalue_union.value;
  const pph_payload_quantized *t = q->xvalue_union.value;
  const pph_payload_per_tensor *u = s->quant_params.value;
  const pph_payload_per_tensor *v = t->quant_params.value;
  return s->quant_params.type == PPH_PAYLOAD_PER_TENSOR &&
         t->quant_params.type == PPH_PAYLOAD_PER_TENSOR &&
         memcmp(&u->scale, &v->scale, sizeof u->scale) == 0 &&
         u->zero_point == v->zero_point;
}

static bool is_f32(const layout *l, uint32_t id) {
  return pph_edit_tensor(l->edit, id)->datatype == PPH_PAYLOAD_F32;
}

/* Integers that were made numbers and become the same integers. */
static pph_status visit_convert(layout *l, const pph_payload_node *node,
                                uint32_t input) {
  const pph_payload_unary *table = node->xnode_union.value;
  const pph_payload_node *before = find_maker(l, input);
  const pph_payload_node *move = find_move(l, input);
  bool dynamic = pph_edit_tensor(l->edit, table->output_id)->datatype ==
                 PPH_PAYLOAD_QD8;
  if (before && before->xnode_union.type == PPH_PAYLOAD_CONVERT &&
      is_internal(l, table->output_id) && is_f32(l, input) &&
      same_quantization(l, input_of(before), table->output_id)) {
    l->instead[table->output_id] = input_of(before);
    return PPH_OK;
  }
  /* Not so that more bytes are moved. */
  if (!move || dynamic || !is_f32(l, input))
    return put(l, node, &input, table->output_id);
  uint32_t from = input_of(move);
  pph_payload_dims dims = pph_payload_dims_of(&l->edit->x, from);
  return sink(l, node, move, &from, &dims);
}

static pph_status visit_unary(layout *l, const pph_payload_node *node,
                              uint32_t input) {
  const pph_payload_node *move = find_move(l, input);
  pph_payload_uses uses;
  pph_payload_find_uses(node, &uses);
  if (!move)
    return put(l, node, &input, uses.outputs[0]);
  uint32_t from = input_of(move);
  pph_payload_dims dims = pph_payload_dims_of(&l->edit->x, from);
  return sink(l, node, move, &from, &dims);
}

static size_t count_elements(const layout *l, uint32_t id) {
  pph_payload_dims dims = pph_payload_dims_of(&l->edit->x, id);
  size_t count = 1;
  for (uint32_t i = 0; i < dims.count; i++)
    count *= dims.at[i];
  return count;
}

/* A small operand as it must lie before the transpose. */
static pph_status turn_operand(layout *l, const pph_payload_transpose *move,
                               uint32_t *id) {
  pph_payload_export *x = &l->edit->x;
  pph_payload_dims dims = pph_payload_dims_of(x, *id), full = {0}, turned;
  uint32_t rank = move->perm.count, back[PPH_PAYLOAD_MOST_DIMS_OUT], last = 0;
  bool in_order = true;
  full.count = turned.count = rank;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t lead = rank - dims.count;
    full.at[i] = i < lead ? 1 : dims.at[i - lead];
    back[move->perm.at[i]] = i;
  }
  for (uint32_t i = 0; i < rank; i++) {
    turned.at[i] = full.at[back[i]];
    if (turned.at[i] == 1)
      continue;
    in_order &= back[i] >= last;
    last = back[i];
  }
  x->like = &x->values[*id];
  if (in_order)
    return pph_payload_put_reshape(x, &turned, id);
  PPH_TRY(pph_payload_put_reshape(x, &full, id));
  return pph_payload_put_transpose(x, back, id);
}

/* Whether the other operand can follow the move: one element, or few of them
   behind a transpose. */
static bool can_follow(const layout *l, const pph_payload_node *move,
                       uint32_t moved, uint32_t other) {
  size_t count = count_elements(l, other);
  pph_payload_dims dims = pph_payload_dims_of(&l->edit->x, other);
  return count == 1 ||
         (move->xnode_union.type == PPH_PAYLOAD_TRANSPOSE &&
          !l->edit->is_dynamic &&
          dims.count <= pph_payload_dims_of(&l->edit->x, moved).count &&
          count <= count_elements(l, moved) / 2);
}

static pph_status visit_binary(layout *l, const pph_payload_node *node,
                               uint32_t *inputs) {
  const pph_payload_binary *table = node->xnode_union.value;
  const pph_payload_node *moves[2] = {find_move(l, inputs[0]),
                                      find_move(l, inputs[1])};
  for (int i = 0; i < 2; i++) {
    const pph_payload_node *move = moves[i];
    if (!move || !same_dims(l, inputs[i], table->output_id))
      continue;
    uint32_t from[2];
    const pph_payload_node kept = *move;
    from[i] = input_of(move);
    if (same_move(l, moves[0], moves[1])) {
      from[1 - i] = input_of(moves[1 - i]);
    } else if (can_follow(l, move, inputs[i], inputs[1 - i])) {
      from[1 - i] = inputs[1 - i];
      if (count_elements(l, from[1 - i]) > 1)
        PPH_TRY(turn_operand(l, kept.xnode_union.value, &from[1 - i]));
    } else {
      continue;
    }
    pph_payload_dims dims = pph_payload_dims_of(&l->edit->x, from[i]);
    return sink(l, node, &kept, from, &dims);
  }
  return put(l, node, inputs, table->output_id);
}

/* All inputs turned alike: joined along the axis before that. */
static pph_status visit_concat(layout *l, const pph_payload_node *node,
                               uint32_t *inputs, uint32_t count) {
  pph_payload_concatenate table =
      *(const pph_payload_concatenate *)node->xnode_union.value;
  const pph_payload_node *first = find_move(l, inputs[0]);
  uint32_t from[PPH_PAYLOAD_MOST_INPUTS];
  pph_payload_node turned = *node;
  if (!first || first->xnode_union.type != PPH_PAYLOAD_TRANSPOSE)
    return put(l, node, inputs, table.output_id);
  const pph_payload_transpose *move = first->xnode_union.value;
  pph_payload_dims dims = pph_payload_dims_of(&l->edit->x, move->input_id);
  uint32_t axis = move->perm.at[table.axis];
  dims.at[axis] = 0;
  for (uint32_t i = 0; i < count; i++) {
    const pph_payload_node *other = find_move(l, inputs[i]);
    const pph_payload_transpose *its =
        other ? other->xnode_union.value : NULL;
    if (!other || other->xnode_union.type != PPH_PAYLOAD_TRANSPOSE ||
        its->perm.count != move->perm.count ||
        memcmp(its->perm.at, move->perm.at,
               move->perm.count * sizeof *move->perm.at) != 0)
      return put(l, node, inputs, table.output_id);
    from[i] = its->input_id;
    dims.at[axis] += pph_payload_dims_of(&l->edit->x, from[i]).at[axis];
  }
  table.axis = axis;
  turned.xnode_union.value = &table;
  return sink(l, &turned, first, from, &dims);
}

/* Nearest upsampling of integers instead of their numbers. */
static pph_status visit_nearest(layout *l, const pph_payload_node *node,
                                uint32_t input) {
  const pph_payload_resize *table = node->xnode_union.value;
  const pph_payload_node *before = find_maker(l, input);
  if (!before || before->xnode_union.type != PPH_PAYLOAD_CONVERT ||
      !is_f32(l, input) ||
      pph_edit_tensor(l->edit, input_of(before))->datatype != PPH_PAYLOAD_Q8)
    return put(l, node, &input, table->output_id);
  const pph_payload_node kept = *before;
  pph_payload_dims dims = pph_payload_dims_of(&l->edit->x, table->output_id);
  uint32_t from = input_of(before), fresh;
  l->edit->x.like = &l->edit->x.values[from];
  PPH_TRY(pph_payload_put_value(&l->edit->x, &dims, &fresh));
  PPH_TRY(put(l, node, &from, fresh));
  return put(l, &kept, &fresh, table->output_id);
}

static pph_status visit(layout *l, const pph_payload_node *node) {
  pph_payload_uses uses;
  uint32_t kind = node->xnode_union.type;
  pph_payload_find_uses(node, &uses);
  for (uint32_t i = 0; i < uses.input_count; i++)
    if (uses.inputs[i] != PPH_PAYLOAD_NONE)
      uses.inputs[i] = l->instead[uses.inputs[i]];
  if (kind == PPH_PAYLOAD_TRANSPOSE)
    return visit_transpose(l, node, uses.inputs[0]);
  if (kind == PPH_PAYLOAD_RESHAPE)
    return visit_reshape(l, node, uses.inputs[0]);
  if (kind == PPH_PAYLOAD_CONVERT)
    return visit_convert(l, node, uses.inputs[0]);
  if (pph_payload_is_unary(kind))
    return visit_unary(l, node, uses.inputs[0]);
  if (is_binary(kind))
    return visit_binary(l, node, uses.inputs);
  if (pph_payload_is_concat(kind))
    return visit_concat(l, node, uses.inputs, uses.input_count);
  if (pph_nearest_is(node))
    return visit_nearest(l, node, uses.inputs[0]);
  PPH_TRY(pph_delegate_edit_keep(l->edit, node));
  pph_payload_set_uses(&l->edit->x.nodes[l->edit->x.node_count - 1], &uses);
  return PPH_OK;
}

/* What nothing reads goes, from the end on. */
static pph_status drop_dead(pph_delegate_edit *edit) {
  pph_payload_export *x = &edit->x;
  bool *read = pph_arena_allocate(x->arena, (size_t)x->value_count + 1, 1);
  uint32_t kept = x->node_count;
  if (!read)
    return pph_fail_memory(x->error);
  if (!x->node_count)
    return PPH_OK;
  for (uint32_t i = x->node_count; i--;) {
    pph_payload_uses uses;
    bool needed = false;
    pph_payload_find_uses(&x->nodes[i], &uses);
    for (uint32_t k = 0; k < uses.output_count; k++)
      needed |= read[uses.outputs[k]] ||
                pph_edit_tensor(edit, uses.outputs[k])->flags;
    if (!needed)
      continue;
    for (uint32_t k = 0; k < uses.input_count; k++)
      if (uses.inputs[k] != PPH_PAYLOAD_NONE)
        read[uses.inputs[k]] = true;
    x->nodes[--kept] = x->nodes[i];
  }
  x->nodes += kept;
  x->node_count -= kept;
  x->node_capacity = x->node_count;
  return PPH_OK;
}

/* Bytes that transposes and conversions write, and how many reshapes there
   are. */
static size_t count_moved(const pph_delegate_edit *edit) {
  size_t total = 0;
  for (uint32_t i = 0; i < edit->x.node_count; i++) {
    pph_payload_uses uses;
    size_t bytes = 0;
    uint32_t kind = edit->x.nodes[i].xnode_union.type;
    pph_payload_find_uses(&edit->x.nodes[i], &uses);
    if (kind == PPH_PAYLOAD_TRANSPOSE || kind == PPH_PAYLOAD_CONVERT)
      if (!pph_payload_count_bytes(pph_edit_tensor(edit, uses.outputs[0]),
                                   &bytes))
        return SIZE_MAX;
    total += bytes + (kind == PPH_PAYLOAD_RESHAPE);
  }
  return total;
}

static uint32_t count_transposes(const pph_delegate_edit *edit) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < edit->x.node_count; i++)
    count += edit->x.nodes[i].xnode_union.type == PPH_PAYLOAD_TRANSPOSE;
  return count;
}

static pph_status sink_all(pph_delegate_edit *edit) {
  layout l = {.edit = edit};
  const pph_payload_node *nodes = edit->x.nodes;
  uint32_t count = edit->x.node_count, values = edit->x.value_count;
  l.instead = pph_arena_allocate(edit->x.arena, (size_t)values + 1,
                                 sizeof *l.instead);
  if (!l.instead)
    return pph_fail_memory(edit->x.error);
  for (uint32_t i = 0; i < values; i++)
    l.instead[i] = i;
  edit->x.nodes = NULL;
  edit->x.node_count = edit->x.node_capacity = 0;
  for (uint32_t i = 0; i < count; i++)
    PPH_TRY(visit(&l, &nodes[i]));
  return drop_dead(edit);
}

pph_status pph_optimize_layout(pph_delegate_edit *edit) {
  enum { ROUNDS = 8 };
  const pph_payload_export before = edit->x;
  size_t moved = count_moved(edit), now = moved, last;
  uint32_t transposes = count_transposes(edit);
  char text[96];
  int rounds = 0;
  do {
    last = now;
    PPH_TRY(sink_all(edit));
    now = count_moved(edit);
  } while (now != last && ++rounds < ROUNDS);
  if (now >= moved) {
    pph_payload_value *values = edit->x.values;
    uint32_t count = edit->x.value_count, capacity = edit->x.value_capacity;
    edit->x = before;
    edit->x.values = values;
    edit->x.value_count = count;
    edit->x.value_capacity = capacity;
    return PPH_OK;
  }
  uint32_t left = count_transposes(edit);
  if (left == transposes)
    snprintf(text, sizeof text, "layout changes move less data");
  else
    snprintf(text, sizeof text, "%u transposes become %u", transposes, left);
  pph_delegate_edit_tell(edit, text);
  edit->changes++;
  return PPH_OK;
}
