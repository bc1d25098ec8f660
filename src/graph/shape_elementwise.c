/* Shape rules of elementwise kinds. */
#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape_rules.h"

pph_status pph_rule_unary(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  if (x->type == PPH_BOOL)
    return pph_rule_bad(at, "input 0 has type bool, must be a number");
  return pph_rule_same(at);
}

pph_status pph_rule_not(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0);
  if (x->type != PPH_BOOL)
    return pph_rule_bad(at, "input 0 has type %s, must be bool",
                        pph_dtype_name(x->type));
  return pph_rule_same(at);
}

pph_status pph_rule_cast(const pph_shape_at *at) {
  int64_t to = pph_node_int(at->node, PPH_ATTR_TO, 0);
  if (to < 0 || to > PPH_U64 || !pph_dtype_size((pph_dtype)to))
    return pph_node_fail(at->node, at->error, PPH_UNSUPPORTED,
                         "to is %lld, which is no known type", (long long)to);
  return pph_rule_set_output(at, 0, (pph_dtype)to,
                             &pph_rule_input(at, 0)->shape);
}

pph_status pph_rule_clip(const pph_shape_at *at) {
  PPH_TRY(pph_rule_same_types(at, 0, at->node->input_count));
  for (uint32_t i = 1; i < at->node->input_count; i++) {
    const pph_value *bound = pph_rule_input(at, i);
    if (bound && (bound->shape.rank > 1 ||
                  (bound->shape.rank == 1 && bound->shape.dims[0] != 1)))
      return pph_rule_bad(at, "input %u has rank %d, must be a scalar", i,
                          bound->shape.rank);
  }
  return pph_rule_unary(at);
}

/* The broadcast shape of inputs [first, count). */
static pph_status broadcast_all(const pph_shape_at *at, pph_shape *shape) {
  *shape = pph_rule_input(at, 0)->shape;
  for (uint32_t i = 1; i < at->node->input_count; i++) {
    const pph_value *next = pph_rule_input(at, i);
    char a[96], b[96];
    if (!next)
      return pph_rule_bad(at, "input %u is missing", i);
    if (!pph_shape_broadcast(shape, &next->shape, shape))
      return pph_rule_bad(at, "shapes %s and %s of inputs do not broadcast",
                          pph_shape_text(shape, a, sizeof a),
                          pph_shape_text(&next->shape, b, sizeof b));
  }
  return PPH_OK;
}

pph_status pph_rule_arithmetic(const pph_shape_at *at) {
  pph_shape shape;
  PPH_TRY(pph_rule_same_types(at, 0, at->node->input_count));
  if (pph_rule_input(at, 0)->type == PPH_BOOL)
    return pph_rule_bad(at, "inputs have type bool, must be numbers");
  PPH_TRY(broadcast_all(at, &shape));
  return pph_rule_set_output(at, 0, pph_rule_input(at, 0)->type, &shape);
}

pph_status pph_rule_compare(const pph_shape_at *at) {
  pph_shape shape;
  PPH_TRY(pph_rule_same_types(at, 0, at->node->input_count));
  PPH_TRY(broadcast_all(at, &shape));
  return pph_rule_set_output(at, 0, PPH_BOOL, &shape);
}

pph_status pph_rule_logic(const pph_shape_at *at) {
  if (pph_rule_input(at, 0)->type != PPH_BOOL)
    return pph_rule_bad(at, "input 0 has type %s, must be bool",
                        pph_dtype_name(pph_rule_input(at, 0)->type));
  return pph_rule_compare(at);
}

pph_status pph_rule_pow(const pph_shape_at *at) {
  pph_shape shape;
  PPH_TRY(broadcast_all(at, &shape));
  return pph_rule_set_output(at, 0, pph_rule_input(at, 0)->type, &shape);
}

/* The slope broadcasts to x, not the other way round. */
pph_status pph_rule_prelu(const pph_shape_at *at) {
  const pph_value *x = pph_rule_input(at, 0), *slope = pph_rule_input(at, 1);
  pph_shape shape;
  char a[96], b[96];
  PPH_TRY(pph_rule_same_types(at, 0, 2));
  if (!pph_shape_broadcast(&x->shape, &slope->shape, &shape) ||
      !pph_shape_equal(&shape, &x->shape))
    return pph_rule_bad(at, "the slope's shape %s does not broadcast to %s",
                        pph_shape_text(&slope->shape, a, sizeof a),
                        pph_shape_text(&x->shape, b, sizeof b));
  return pph_rule_same(at);
}

pph_status pph_rule_where(const pph_shape_at *at) {
  pph_shape shape;
  if (pph_rule_input(at, 0)->type != PPH_BOOL)
    return pph_rule_bad(at, "input 0 has type %s, must be bool",
                        pph_dtype_name(pph_rule_input(at, 0)->type));
  PPH_TRY(pph_rule_same_types(at, 1, 2));
  PPH_TRY(broadcast_all(at, &shape));
  return pph_rule_set_output(at, 0, pph_rule_input(at, 1)->type, &shape);
}
