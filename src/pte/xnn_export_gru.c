/* GRU: its steps one after the other, as no node of the delegate repeats. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/xnn_export.h"

enum { MOST_STEPS = 512, GATES = 3 };
static const pph_layout PLAIN = PPH_LAYOUT_PLAIN;

/* One direction. Gates lie as update, reset, hidden. */
typedef struct gru {
  uint32_t length, batch, hidden;
  bool reset_after; /* the reset gate multiplies the product, not the state */
  uint32_t gates;   /* all steps: [length,batch,3*hidden] */
  uint32_t from_state, from_state_bias; /* of the gates that read the state */
  uint32_t from_reset; /* of the hidden gate, when it reads reset * state */
} gru;

/* A matrix and a bias (NONE: without) times the last axis. */
static pph_status put_linear(pph_payload_export *x, uint32_t filter,
                             uint32_t bias, uint32_t *id) {
  pph_payload_dims dims = pph_payload_dims_of(x, *id);
  pph_payload_linear table = {
      .input1_id = *id, .filter_id = filter, .bias_id = bias};
  dims.at[dims.count - 1] = pph_payload_dims_of(x, filter).at[0];
  PPH_TRY(pph_payload_put_value(x, &dims, id));
  table.output_id = *id;
  return pph_payload_put_node(x, PPH_PAYLOAD_FULLY_CONNECTED, &table,
                              sizeof table, NULL);
}

/* `count` gates from gate `first` on, of the last axis. */
static pph_status put_gates(pph_payload_export *x, const gru *g,
                            uint32_t first, uint32_t count, uint32_t *id) {
  pph_payload_dims sizes = pph_payload_dims_of(x, *id);
  pph_payload_dims offsets = {.count = sizes.count};
  offsets.at[sizes.count - 1] = first * g->hidden;
  sizes.at[sizes.count - 1] = count * g->hidden;
  return pph_payload_put_slice(x, &offsets, &sizes, id);
}

/* The hidden gate before tanh, from `given` (of the input) and the state. */
static pph_status put_candidate(pph_payload_export *x, const gru *g,
                                uint32_t reset, uint32_t product,
                                uint32_t state, uint32_t given, uint32_t *id) {
  if (g->reset_after) {
    *id = product;
    PPH_TRY(put_gates(x, g, 2, 1, id));
    PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_MULTIPLY, reset, NULL, id));
  } else {
    *id = state;
    PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_MULTIPLY, reset, NULL, id));
    PPH_TRY(put_linear(x, g->from_reset, PPH_PAYLOAD_NONE, id));
  }
  return pph_payload_put_binary(x, PPH_PAYLOAD_ADD, given, NULL, id);
}

/* The state after one more step: new + update * (old - new). */
static pph_status put_step(pph_payload_export *x, const gru *g, uint32_t at,
                           uint32_t *state) {
  const pph_payload_dims offsets = {3, {at, 0, 0}};
  const pph_payload_dims sizes = {3, {1, g->batch, GATES * g->hidden}};
  uint32_t given = g->gates, product = *state, gates, update, reset, new_state;
  PPH_TRY(pph_payload_put_slice(x, &offsets, &sizes, &given));
  PPH_TRY(put_linear(x, g->from_state, g->from_state_bias, &product));
  gates = product;
  reset = given;
  PPH_TRY(put_gates(x, g, 0, 2, &gates));
  PPH_TRY(put_gates(x, g, 0, 2, &reset));
  PPH_TRY(put_gates(x, g, 2, 1, &given));
  PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_ADD, reset, NULL, &gates));
  PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_SIGMOID, NULL, &gates));
  update = reset = gates;
  PPH_TRY(put_gates(x, g, 0, 1, &update));
  PPH_TRY(put_gates(x, g, 1, 1, &reset));
  PPH_TRY(put_candidate(x, g, reset, product, *state, given, &new_state));
  PPH_TRY(pph_payload_put_unary(x, PPH_PAYLOAD_TANH, NULL, &new_state));
  PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_SUBTRACT, new_state, NULL,
                                 state));
  PPH_TRY(pph_payload_put_binary(x, PPH_PAYLOAD_MULTIPLY, update, NULL, state));
  return pph_payload_put_binary(x, PPH_PAYLOAD_ADD, new_state, NULL, state);
}

/* Rows of `direction` of input `slot`, from gate `first` on. */
static pph_status put_matrix(pph_payload_export *x, uint32_t slot,
                             uint32_t direction, uint32_t first,
                             uint32_t gates, uint32_t *id) {
  size_t count;
  const pph_shape *shape = &pph_payload_input_value(x, slot)->shape;
  const float *from = pph_payload_find_floats(x, slot, &count);
  if (!from)
    return pph_payload_refuse(x, "weights that are no f32 constants");
  uint32_t hidden = (uint32_t)(shape->dims[1] / GATES);
  uint32_t columns = (uint32_t)shape->dims[2];
  const pph_payload_dims dims = {2, {gates * hidden, columns}};
  return pph_payload_put_packed(
      x, from + ((size_t)direction * GATES + first) * hidden * columns, &dims,
      id);
}

/* Of the input's gates and of the state's: what is only added counts with the
   input's, except where the reset gate multiplies it. */
static pph_status put_biases(pph_payload_export *x, const gru *g,
                             uint32_t direction, uint32_t *input,
                             uint32_t *state) {
  size_t count, hidden = g->hidden, gates = GATES * hidden;
  const pph_payload_dims dims = {1, {(uint32_t)gates}};
  const float *from = pph_payload_find_floats(x, 3, &count);
  float *to = pph_arena_allocate(x->arena, 2 * gates, sizeof *to);
  *input = *state = PPH_PAYLOAD_NONE;
  if (!pph_payload_input_value(x, 3))
    return PPH_OK;
  if (!from)
    return pph_payload_refuse(x, "biases that are no f32 constants");
  if (!to)
    return pph_fail_memory(x->error);
  from += direction * 2 * gates;
  for (size_t i = 0; i < gates; i++) {
    bool stays = g->reset_after && i >= 2 * hidden;
    to[i] = from[i] + (stays ? 0 : from[gates + i]);
    to[gates + i] = stays ? from[gates + i] : 0;
  }
  PPH_TRY(pph_payload_put_packed(x, to, &dims, input));
  return g->reset_after ? pph_payload_put_packed(x, to + gates, &dims, state)
                        : PPH_OK;
}

/* The state before the first step, [1,batch,hidden]. */
static pph_status put_start(pph_payload_export *x, const gru *g,
                            uint32_t direction, uint32_t *state) {
  const pph_payload_dims offsets = {3, {direction, 0, 0}};
  const pph_payload_dims sizes = {3, {1, g->batch, g->hidden}};
  size_t count = (size_t)g->batch * g->hidden;
  pph_payload_constant zeros = {.key = "", .bytes = count * sizeof(float)};
  if (pph_payload_input_value(x, 5)) {
    PPH_TRY(pph_payload_read_input(x, 5, 3, PLAIN, state));
    return pph_payload_put_slice(x, &offsets, &sizes, state);
  }
  float *made = pph_arena_allocate(x->arena, count, sizeof *made);
  if (!made)
    return pph_fail_memory(x->error);
  zeros.data = memset(made, 0, zeros.bytes);
  return pph_payload_put_operand(x, &zeros, &sizes, state);
}

static pph_status prepare(pph_payload_export *x, gru *g, uint32_t direction) {
  uint32_t filter, bias;
  PPH_TRY(put_biases(x, g, direction, &bias, &g->from_state_bias));
  PPH_TRY(put_matrix(x, 1, direction, 0, GATES, &filter));
  PPH_TRY(put_matrix(x, 2, direction, 0, g->reset_after ? GATES : 2,
                     &g->from_state));
  if (!g->reset_after)
    PPH_TRY(put_matrix(x, 2, direction, 2, 1, &g->from_reset));
  PPH_TRY(pph_payload_read_input(x, 0, 3, PLAIN, &g->gates));
  return put_linear(x, filter, bias, &g->gates);
}

/* `all` gets [length,batch,hidden], `last` [1,batch,hidden]. */
static pph_status put_direction(pph_payload_export *x, gru *g,
                                uint32_t direction, bool reverse,
                                uint32_t *all, uint32_t *last) {
  uint32_t *states = pph_arena_allocate(x->arena, g->length, sizeof *states);
  if (!states)
    return pph_fail_memory(x->error);
  PPH_TRY(prepare(x, g, direction));
  PPH_TRY(put_start(x, g, direction, last));
  for (uint32_t i = 0; i < g->length; i++) {
    uint32_t at = reverse ? g->length - 1 - i : i;
    PPH_TRY(put_step(x, g, at, last));
    states[at] = *last;
  }
  return pph_payload_put_concat(x, states, g->length, 0, all);
}

static pph_status write_output(pph_payload_export *x, uint32_t index,
                               uint32_t *ids, uint32_t count, uint32_t axis) {
  pph_payload_dims dims;
  uint32_t id;
  if (index >= x->node->output_count ||
      x->node->outputs[index] == PPH_NO_VALUE)
    return PPH_OK;
  const pph_value *out = pph_graph_value(x->graph, x->node->outputs[index]);
  if (!pph_payload_dims_make(&out->shape, PLAIN, &dims))
    return pph_payload_refuse(x, "an empty result");
  PPH_TRY(pph_payload_put_concat(x, ids, count, axis, &id));
  PPH_TRY(pph_payload_put_reshape(x, &dims, &id));
  return pph_payload_write_output(x, index, PLAIN, id);
}

pph_status pph_payload_export_gru(pph_payload_export *x) {
  const pph_shape *in = &pph_payload_input_value(x, 0)->shape;
  const pph_shape *r = &pph_payload_input_value(x, 2)->shape;
  const char *way = pph_node_text(x->node, PPH_ATTR_DIRECTION, "forward");
  uint32_t directions = (uint32_t)r->dims[0], all[2], last[2];
  if (pph_payload_input_value(x, 4))
    return pph_payload_refuse(x, "lengths of sequences");
  if (in->dims[0] < 1 || in->dims[0] > MOST_STEPS || in->dims[1] < 1 ||
      in->dims[1] > INT32_MAX || r->dims[2] > INT32_MAX / GATES)
    return pph_payload_refuse(x, "a sequence of none or more than 512 steps");
  gru g = {.length = (uint32_t)in->dims[0],
           .batch = (uint32_t)in->dims[1],
           .hidden = (uint32_t)r->dims[2],
           .reset_after =
               pph_node_int(x->node, PPH_ATTR_LINEAR_BEFORE_RESET, 0) != 0};
  for (uint32_t i = 0; i < directions; i++)
    PPH_TRY(put_direction(x, &g, i, i == 1 || strcmp(way, "reverse") == 0,
                          &all[i], &last[i]));
  /* [length,directions,batch,hidden] has the directions side by side. */
  for (uint32_t i = 0; i < directions; i++) {
    const pph_payload_dims dims = {4, {g.length, 1, g.batch, g.hidden}};
    PPH_TRY(pph_payload_put_reshape(x, &dims, &all[i]));
  }
  PPH_TRY(write_output(x, 0, all, directions, 1));
  return write_output(x, 1, last, directions, 0);
}
