#include "pte/xnn_export.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

enum { INPUT = 1, OUTPUT = 2, MOST_DIMS = PPH_PAYLOAD_MOST_DIMS_OUT };

static pph_payload_exporter *const rows[PPH_NODE_KIND_COUNT] = {
#define ROW(kind, function)                                                    \
  [PPH_NODE_##kind] = pph_payload_export_##function
    ROW(ABS, unary),
    ROW(CEIL, unary),
    ROW(COS, unary),
    ROW(ELU, unary),
    ROW(EXP, unary),
    ROW(FLOOR, unary),
    ROW(HARD_SWISH, unary),
    ROW(LEAKY_RELU, unary),
    ROW(LOG, unary),
    ROW(NEG, unary),
    ROW(SIGMOID, unary),
    ROW(SIN, unary),
    ROW(SQRT, unary),
    ROW(TANH, unary),
    ROW(CLIP, clip),
    ROW(RELU, clip),
    ROW(HARD_SIGMOID, hard_sigmoid),
    ROW(RECIPROCAL, reciprocal),
    ROW(SOFTPLUS, softplus),
    ROW(IDENTITY, alias),
    ROW(RELAYOUT, alias),
    ROW(ADD, binary),
    ROW(DIV, binary),
    ROW(MAX, binary),
    ROW(MIN, binary),
    ROW(MUL, binary),
    ROW(SUB, binary),
    ROW(POW, power),
    ROW(PRELU, prelu),
    ROW(CONV, conv),
    ROW(CONV_TRANSPOSE, conv),
    ROW(AVERAGE_POOL, pool),
    ROW(MAX_POOL, pool),
    ROW(GLOBAL_AVERAGE_POOL, global_pool),
    ROW(GLOBAL_MAX_POOL, global_pool),
    ROW(RESIZE, resize),
    ROW(DEPTH_TO_SPACE, depth_to_space),
    ROW(SPACE_TO_DEPTH, space_to_depth),
    ROW(CONCAT, concat),
    ROW(EXPAND, expand),
    ROW(GATHER, gather),
    ROW(FLATTEN, reshape),
    ROW(RESHAPE, reshape),
    ROW(SQUEEZE, reshape),
    ROW(UNSQUEEZE, reshape),
    ROW(PAD, pad),
    ROW(SCATTER_ND, scatter),
    ROW(SLICE, slice),
    ROW(SPLIT, split),
    ROW(TILE, tile),
    ROW(TRANSPOSE, transpose),
    ROW(GEMM, product),
    ROW(GRU, gru),
    ROW(MATMUL, product),
    ROW(REDUCE_MAX, reduce),
    ROW(REDUCE_MEAN, reduce),
    ROW(REDUCE_SUM, reduce),
    ROW(SOFTMAX, softmax),
#undef ROW
};

pph_status pph_payload_refuse(pph_payload_export *x, const char *why) {
  size_t used = strlen(x->refused);
  char place[120];
  if (used + 1 < sizeof x->refused)
    snprintf(x->refused + used, sizeof x->refused - used, "%s%s: %s",
             x->refused_count ? "; " : "",
             x->node ? pph_node_place(x->node, place, sizeof place) : "model",
             why);
  x->refused_count++;
  return PPH_UNSUPPORTED;
}

pph_status pph_payload_fail_refused(pph_payload_export *x, const char *where) {
  x->node = NULL;
  if (!x->refused_count)
    return PPH_OK;
  return pph_fail(x->error, PPH_UNSUPPORTED, "", "%u node%s no form %s: %s",
                  x->refused_count, x->refused_count == 1 ? " has" : "s have",
                  where, x->refused);
}

/* Phases count where they are joined: their Concat is never written itself. */
static bool reads_missing(const pph_payload_export *x, const pph_node *node) {
  for (uint32_t i = 0; i < node->input_count; i++) {
    const pph_value *value = pph_node_find_input(x->graph, node, i);
    if (!value || value->data || x->ids[node->inputs[i]] != PPH_PAYLOAD_NONE)
      continue;
    const pph_node *joint = node == x->node ? value->producer : NULL;
    if (!joint || !pph_payload_joins_phases(x->graph, joint) ||
        reads_missing(x, joint))
      return true;
  }
  return false;
}

static pph_status check_types(pph_payload_export *x) {
  pph_payload_dims dims;
  for (uint32_t i = 0; i < x->node->output_count; i++) {
    if (x->node->outputs[i] == PPH_NO_VALUE)
      continue;
    const pph_value *value =
        pph_graph_value(x->graph, x->node->outputs[i]);
    if (value->type != PPH_F32)
      return pph_payload_refuse(x, "a type other than f32");
    if (!pph_payload_dims_make(&value->shape, value->layout, &dims))
      return pph_payload_refuse(x, "an empty result, or above 6 dimensions");
  }
  return PPH_OK;
}

static pph_status export_node(pph_payload_export *x) {
  if (!rows[x->node->kind])
    return pph_payload_refuse(x, "no such operator");
  if (reads_missing(x, x->node) || pph_payload_joins_phases(x->graph, x->node))
    return PPH_OK;
  PPH_TRY(check_types(x));
  return rows[x->node->kind](x);
}

/* What was refused is noted; other failures end the export. */
static pph_status export_nodes(pph_payload_export *x) {
  for (const pph_node *node = x->graph->first; node; node = node->next) {
    uint32_t before = x->refused_count;
    x->node = node;
    pph_status status = export_node(x);
    if (status != PPH_OK && x->refused_count == before)
      return status;
  }
  return pph_payload_fail_refused(x, "in XNNPACK's delegate");
}

static pph_payload_tensor *find_tensor(const pph_payload_export *x,
                                       uint32_t id) {
  return x->values[id].xvalue_union.value;
}

static void set_external(const pph_payload_export *x, uint32_t id,
                         uint32_t number, uint32_t flag) {
  find_tensor(x, id)->external_id = number;
  find_tensor(x, id)->flags = flag;
}

static pph_status add_inputs(pph_payload_export *x) {
  const pph_graph *graph = x->graph;
  pph_payload_dims dims;
  for (uint32_t i = 0; i < graph->input_count; i++) {
    const pph_value *value = pph_graph_value(graph, graph->inputs[i]);
    if (value->type != PPH_F32 ||
        !pph_payload_dims_make(&value->shape, PPH_LAYOUT_PLAIN, &dims))
      return pph_fail(x->error, PPH_UNSUPPORTED, value->name,
                      "an input of a delegate is f32, not empty, and has at "
                      "most %d dimensions",
                      MOST_DIMS);
    uint32_t *id = &x->ids[graph->inputs[i]];
    PPH_TRY(pph_payload_put_value(x, &dims, id));
    set_external(x, *id, i, INPUT);
  }
  return PPH_OK;
}

/* An output that is an input, a constant or another output is a copy. */
static pph_status add_output(pph_payload_export *x, uint32_t index,
                             uint32_t number) {
  static const uint32_t perm[] = {0, 1, 2, 3, 4, 5};
  pph_id value_id = x->graph->outputs[index];
  const pph_value *value = pph_graph_value(x->graph, value_id);
  uint32_t id = x->ids[value_id];
  if (value->type != PPH_F32 || value->data)
    return pph_fail(x->error, PPH_UNSUPPORTED, value->name,
                    "an output that is no f32 value of a node");
  if (find_tensor(x, id)->flags)
    PPH_TRY(pph_payload_put_transpose(x, perm, &id));
  set_external(x, id, number, OUTPUT);
  return PPH_OK;
}

static pph_status number_externals(pph_payload_export *x) {
  uint32_t next = x->graph->input_count;
  for (uint32_t i = 0; i < x->operands.count; i++)
    set_external(x, x->operands.at[i].value, next++, INPUT);
  for (uint32_t i = 0; i < x->graph->output_count; i++)
    PPH_TRY(add_output(x, i, next++));
  return PPH_OK;
}

pph_status pph_payload_export_graph(pph_payload_export *x,
                                    const pph_graph *graph,
                                    pph_payload_lengths lengths,
                                    pph_arena *arena, pph_error *error) {
  *x = (pph_payload_export){.graph = graph,
                            .arena = arena,
                            .error = error,
                            .lengths = lengths};
  x->ids = pph_arena_allocate(arena, (size_t)graph->value_count + 1,
                              sizeof *x->ids);
  if (!x->ids)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < graph->value_count; i++)
    x->ids[i] = PPH_PAYLOAD_NONE;
  PPH_TRY(add_inputs(x));
  PPH_TRY(export_nodes(x));
  return number_externals(x);
}
