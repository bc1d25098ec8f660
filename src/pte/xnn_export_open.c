/* Lengths that stay open: the same graph is exported at two combinations of
   sizes, and what differs between both is for the runtime to find. XNNPACK
   follows lengths through its nodes by itself; only those that state lengths
   are written anew here. */
#include <string.h>

#include "base/fail.h"
#include "pte/flat_build.h"
#include "pte/xnn_export.h"

enum { TO_THE_END = INT32_MAX };
static const char OPEN[] = "for open lengths";

/* The payload whose lengths are upper bounds, and the one of other sizes. */
typedef struct pair {
  pph_payload_export *x;
  const pph_payload_export *other;
} pair;

static pph_status refuse_structure(const pair *p) {
  return pph_payload_refuse(p->x, "lengths decide what is computed");
}

static bool is_open(const pair *p, uint32_t id, uint32_t axis) {
  return pph_payload_dims_of(p->x, id).at[axis] !=
         pph_payload_dims_of(p->other, id).at[axis];
}

static uint32_t count_open(const pair *p, uint32_t id) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < pph_payload_dims_of(p->x, id).count; i++)
    count += is_open(p, id, i);
  return count;
}

/* Whether both have the same elements wherever a constant is. */
static bool same_constants(const pph_payload_constants *a,
                           const pph_payload_constants *b) {
  if (a->count != b->count)
    return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->at[i].value != b->at[i].value || a->at[i].bytes != b->at[i].bytes ||
        memcmp(a->at[i].data, b->at[i].data, a->at[i].bytes) != 0)
      return false;
  return true;
}

static bool same_ranks(const pair *p) {
  if (p->x->value_count != p->other->value_count)
    return false;
  for (uint32_t i = 0; i < p->x->value_count; i++)
    if (pph_payload_dims_of(p->x, i).count !=
        pph_payload_dims_of(p->other, i).count)
      return false;
  return true;
}

/* The places of axes other than fixed ones, which move nothing. */
static uint32_t list_moved(const pair *p, uint32_t id, uint32_t *axes,
                           bool ones) {
  pph_payload_dims dims = pph_payload_dims_of(p->x, id);
  uint32_t count = 0;
  for (uint32_t i = 0; i < dims.count; i++)
    if ((dims.at[i] == 1 && !is_open(p, id, i)) == ones)
      axes[count++] = i;
  return count;
}

/* A reshape that only moves axes of length 1 is a transpose, which asks for no
   length. */
static pph_status write_transpose(const pair *p, pph_payload_node *node) {
  const pph_payload_reshape *from = node->xnode_union.value;
  uint32_t in[2][PPH_PAYLOAD_MOST_DIMS_OUT], out[2][PPH_PAYLOAD_MOST_DIMS_OUT];
  pph_payload_dims now = pph_payload_dims_of(p->x, from->input_id);
  pph_payload_dims last = pph_payload_dims_of(p->x, from->output_id);
  uint32_t *perm = pph_arena_allocate(p->x->arena, last.count, sizeof *perm);
  pph_payload_transpose *made = pph_arena_allocate(p->x->arena, 1,
                                                   sizeof *made);
  if (!perm || !made)
    return pph_fail_memory(p->x->error);
  bool fits = now.count == last.count;
  for (int ones = 0; fits && ones < 2; ones++) {
    uint32_t count = list_moved(p, from->input_id, in[ones], ones);
    fits = count == list_moved(p, from->output_id, out[ones], ones);
    for (uint32_t i = 0; fits && i < count; i++) {
      perm[out[ones][i]] = in[ones][i];
      fits = now.at[in[ones][i]] == last.at[out[ones][i]];
    }
  }
  if (!fits)
    return pph_payload_refuse(p->x, "two open lengths in one reshape, where "
                                    "XNNPACK finds one");
  *made = (pph_payload_transpose){.num_dims = last.count,
                                  .perm = {perm, last.count},
                                  .input_id = from->input_id,
                                  .output_id = from->output_id};
  node->xnode_union.value = made;
  node->xnode_union.type = PPH_PAYLOAD_TRANSPOSE;
  return PPH_OK;
}

static pph_status open_reshape(const pair *p, pph_payload_node *node) {
  pph_payload_reshape *table = node->xnode_union.value;
  uint32_t *lengths;
  switch (count_open(p, table->output_id)) {
  case 0:
    return PPH_OK;
  case 1:
    break;
  default:
    return write_transpose(p, node);
  }
  lengths = pph_arena_allocate(p->x->arena, table->num_dims, sizeof *lengths);
  if (!lengths)
    return pph_fail_memory(p->x->error);
  for (uint32_t i = 0; i < table->num_dims; i++)
    lengths[i] = is_open(p, table->output_id, i) ? 0 : table->new_shape.at[i];
  table->new_shape.at = lengths;
  return PPH_OK;
}

/* What is cut off behind, along an axis. */
static uint32_t find_rest(const pph_payload_export *x,
                          const pph_payload_slice *slice, uint32_t axis) {
  return pph_payload_dims_of(x, slice->input_id).at[axis] -
         slice->offsets.at[axis] -
         pph_payload_dims_of(x, slice->output_id).at[axis];
}

/* A slice of pixels that ends so many before its input does: only padding
   counts from the end, and only that of a transposed convolution cuts off. */
static pph_status write_crop(const pair *p, pph_payload_node *node) {
  const pph_payload_slice *from = node->xnode_union.value;
  pph_payload_spread crop = {.order = PPH_PAYLOAD_SPREAD_COPIES,
                             .block = {1, 1}};
  uint32_t channels = pph_payload_dims_of(p->x, from->output_id).at[3];
  pph_payload_conv *made = pph_arena_allocate(p->x->arena, 1, sizeof *made);
  if (!made)
    return pph_fail_memory(p->x->error);
  for (uint32_t i = 0; i < from->num_dims; i++) {
    bool crops = from->offsets.at[i] || find_rest(p->x, from, i);
    if (from->num_dims != 4 || (crops && (i == 0 || i == 3)) ||
        is_open(p, from->input_id, 3))
      return pph_payload_refuse(p->x, "a slice of open length that ends "
                                      "before its input does");
    if (crops) {
      crop.begin[i - 1] = from->offsets.at[i];
      crop.end[i - 1] = find_rest(p->x, from, i);
    }
  }
  PPH_TRY(pph_payload_describe_spread(p->x, &crop, channels, made));
  made->input1_id = from->input_id;
  made->output_id = from->output_id;
  node->xnode_union.value = made;
  node->xnode_union.type = PPH_PAYLOAD_CONV_TRANSPOSE;
  return PPH_OK;
}

/* A slice up to the end may say any length from there. */
static pph_status open_slice(const pair *p, pph_payload_node *node,
                             const pph_payload_node *other) {
  pph_payload_slice *table = node->xnode_union.value;
  const pph_payload_slice *its = other->xnode_union.value;
  bool ends_before = false;
  uint32_t *sizes = pph_arena_allocate(p->x->arena, table->num_dims,
                                       sizeof *sizes);
  if (!sizes)
    return pph_fail_memory(p->x->error);
  for (uint32_t i = 0; i < table->num_dims; i++) {
    uint32_t rest = find_rest(p->x, table, i);
    bool open = is_open(p, table->output_id, i);
    if (table->offsets.at[i] != its->offsets.at[i] ||
        (open && rest != find_rest(p->other, its, i)))
      return refuse_structure(p);
    sizes[i] = open ? TO_THE_END - table->offsets.at[i] : table->sizes.at[i];
    ends_before |= open && rest;
  }
  if (ends_before)
    return write_crop(p, node);
  table->sizes.at = sizes;
  return PPH_OK;
}

static pph_status open_node(const pair *p, pph_payload_node *node,
                            const pph_payload_node *other) {
  const pph_flat_table *table =
      pph_payload_find_table(node->xnode_union.type);
  pph_payload_uses uses, its;
  pph_payload_find_uses(node, &uses);
  pph_payload_find_uses(other, &its);
  if (node->xnode_union.type != other->xnode_union.type ||
      memcmp(&uses, &its, sizeof uses) != 0)
    return refuse_structure(p);
  switch (node->xnode_union.type) {
  case PPH_PAYLOAD_RESHAPE:
    return open_reshape(p, node);
  case PPH_PAYLOAD_SLICE:
    return open_slice(p, node, other);
  case PPH_PAYLOAD_RESIZE:
    return count_open(p, uses.outputs[0])
               ? pph_payload_refuse(p->x, "interpolation to open lengths")
               : PPH_OK;
  default:
    return pph_flat_equal(table, node->xnode_union.value,
                          other->xnode_union.value)
               ? PPH_OK
               : refuse_structure(p);
  }
}

pph_status pph_payload_open_lengths(pph_payload_export *x,
                                    const pph_payload_export *other) {
  const pair p = {x, other};
  uint32_t nodes = x->node_count < other->node_count ? x->node_count
                                                     : other->node_count;
  for (uint32_t i = 0; i < nodes && !x->refused_count; i++) {
    x->node = x->makers[i];
    if (x->nodes[i].xnode_union.type != other->nodes[i].xnode_union.type)
      (void)refuse_structure(&p);
  }
  PPH_TRY(pph_payload_fail_refused(x, OPEN));
  if (x->node_count != other->node_count || !same_ranks(&p) ||
      !same_constants(&x->operands, &other->operands) ||
      !same_constants(&x->named, &other->named))
    return pph_fail(x->error, PPH_UNSUPPORTED, "",
                    "lengths decide what is computed, so they cannot be open");
  for (uint32_t i = 0; i < x->node_count; i++) {
    uint32_t before = x->refused_count;
    x->node = x->makers[i];
    pph_status status = open_node(&p, &x->nodes[i], &other->nodes[i]);
    if (status != PPH_OK && x->refused_count == before)
      return status;
  }
  return pph_payload_fail_refused(x, OPEN);
}
