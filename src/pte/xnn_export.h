/* What the parts of the payload's export share. Values of the graph become
   values of the payload in the layout that they have; channels last is
   [N,H,W,C], and [N,1,L,C] for one spatial axis. Everything made lives in the
   arena. */
#ifndef PPH_PTE_XNN_EXPORT_H
#define PPH_PTE_XNN_EXPORT_H

#include "base/sha256.h"
#include "graph/layout.h"
#include "graph/shape.h"
#include "pte/program_export.h"

enum { PPH_PAYLOAD_MOST_DIMS_OUT = 6, PPH_PAYLOAD_REFUSED_TEXT = 360 };

typedef struct pph_payload_dims {
  uint32_t count;
  uint32_t at[PPH_PAYLOAD_MOST_DIMS_OUT];
} pph_payload_dims;

/* Which forms nodes take. */
typedef enum pph_payload_lengths {
  PPH_PAYLOAD_FIXED, /* the fastest */
  PPH_PAYLOAD_OPEN,  /* such as can have one open length */
  PPH_PAYLOAD_ANY    /* such as state no lengths, even if others are faster */
} pph_payload_lengths;

/* f32 elements that the file gets. */
typedef struct pph_payload_constant {
  uint32_t value;         /* its number in the payload */
  const void *source;     /* of an operand: the graph's data, in `layout` */
  pph_layout layout;
  const float *data;
  size_t bytes;
  char key[PPH_SHA256_TEXT]; /* of named ones */
} pph_payload_constant;

typedef struct pph_payload_constants {
  pph_payload_constant *at;
  uint32_t count, capacity;
} pph_payload_constants;

typedef struct pph_payload_export {
  const pph_graph *graph;
  const pph_node *node; /* the one that is being exported */
  pph_arena *arena;
  pph_error *error;
  uint32_t *ids; /* per value of the graph: its number, PPH_PAYLOAD_NONE */
  pph_payload_node *nodes;
  const pph_node **makers; /* per node: the graph's, of which it comes */
  uint32_t node_count, node_capacity, maker_capacity;
  pph_payload_value *values;
  uint32_t value_count, value_capacity;
  const pph_payload_value *like; /* new ones have its type; NULL: f32 */
  pph_payload_lengths lengths;
  pph_payload_constants named;    /* packed ones, found by key */
  pph_payload_constants operands; /* others: the program hands them in */
  char refused[PPH_PAYLOAD_REFUSED_TEXT];
  uint32_t refused_count;
} pph_payload_export;

/* Exports one node; what has no form calls pph_payload_refuse. */
typedef pph_status pph_payload_exporter(pph_payload_export *x);

pph_payload_exporter pph_payload_export_conv, pph_payload_export_pool,
    pph_payload_export_global_pool, pph_payload_export_resize,
    pph_payload_export_depth_to_space, pph_payload_export_space_to_depth,
    pph_payload_export_unary, pph_payload_export_reciprocal,
    pph_payload_export_softplus, pph_payload_export_hard_sigmoid,
    pph_payload_export_clip, pph_payload_export_prelu,
    pph_payload_export_binary, pph_payload_export_power,
    pph_payload_export_softmax, pph_payload_export_product,
    pph_payload_export_reduce, pph_payload_export_alias,
    pph_payload_export_transpose, pph_payload_export_reshape,
    pph_payload_export_concat, pph_payload_export_split,
    pph_payload_export_slice, pph_payload_export_gather,
    pph_payload_export_scatter, pph_payload_export_pad,
    pph_payload_export_expand, pph_payload_export_tile,
    pph_payload_export_gru;

/* Values and nodes of the whole graph; node by node by a table of kinds. The
   arena keeps everything; constants may still point into the graph. */
PPH_NODISCARD pph_status pph_payload_export_graph(pph_payload_export *x,
                                                  const pph_graph *graph,
                                                  pph_payload_lengths lengths,
                                                  pph_arena *arena,
                                                  pph_error *error);

/* Notes why the node has no form and gives PPH_UNSUPPORTED; other nodes are
   still tried, so that the error tells of all. */
PPH_NODISCARD pph_status pph_payload_refuse(pph_payload_export *x,
                                            const char *why);
/* PPH_UNSUPPORTED with all that was noted, if anything was: nodes that have
   no form `where`. */
PPH_NODISCARD pph_status pph_payload_fail_refused(pph_payload_export *x,
                                                  const char *where);

/* Lengths that `other`, the same graph's export at other sizes, has otherwise
   become the runtime's to find (xnn_export_open.c); the others are upper
   bounds as they are. PPH_UNSUPPORTED names the nodes that cannot do so. */
PPH_NODISCARD pph_status pph_payload_open_lengths(
    pph_payload_export *x, const pph_payload_export *other);

/* Whether the Concat is left to the DepthToSpace that reads it. */
bool pph_payload_joins_phases(const pph_graph *graph, const pph_node *node);

/* Nodes and values (xnn_export_put.c). All results are new values. */
PPH_NODISCARD pph_status pph_payload_put_value(pph_payload_export *x,
                                               const pph_payload_dims *dims,
                                               uint32_t *id);
/* The table is copied; `range` NULL: no clamp. */
PPH_NODISCARD pph_status pph_payload_put_node(pph_payload_export *x,
                                              pph_payload_kind kind,
                                              const void *table, size_t size,
                                              const pph_payload_min_max *range);
PPH_NODISCARD pph_status pph_payload_put_unary(pph_payload_export *x,
                                               pph_payload_kind kind,
                                               const pph_payload_min_max *range,
                                               uint32_t *id);
/* `id` gets the result; nothing is made when the dimensions are these. */
PPH_NODISCARD pph_status pph_payload_put_reshape(pph_payload_export *x,
                                                 const pph_payload_dims *dims,
                                                 uint32_t *id);
PPH_NODISCARD pph_status pph_payload_put_transpose(pph_payload_export *x,
                                                   const uint32_t *perm,
                                                   uint32_t *id);
PPH_NODISCARD pph_status pph_payload_put_slice(pph_payload_export *x,
                                               const pph_payload_dims *offsets,
                                               const pph_payload_dims *sizes,
                                               uint32_t *id);
/* More elements before and behind, all `number`. */
PPH_NODISCARD pph_status pph_payload_put_pad(pph_payload_export *x,
                                             const pph_payload_dims *begin,
                                             const pph_payload_dims *end,
                                             float number, uint32_t *id);
/* Any number of values, one too; `ids` is overwritten. */
PPH_NODISCARD pph_status pph_payload_put_concat(pph_payload_export *x,
                                                uint32_t *ids, uint32_t count,
                                                uint32_t axis, uint32_t *id);
/* The same value `times` over along an axis. */
PPH_NODISCARD pph_status pph_payload_put_repeat(pph_payload_export *x,
                                                uint32_t times, uint32_t axis,
                                                uint32_t *id);
/* Values [N,H,W,n*C], whose channels one after the other are phases
   [by][bx][C], as pixels [N,H*by,W*bx,C]; `ids` is overwritten. */
PPH_NODISCARD pph_status pph_payload_put_interleaved(pph_payload_export *x,
                                                     uint32_t *ids,
                                                     uint32_t count,
                                                     const uint32_t *block,
                                                     uint32_t *id);
/* What a transposed convolution that keeps channels apart does with
   [N,H,W,n*C]: a pixel becomes a block of copies of itself (n = 1), of its
   channels' blocks [by][bx][C], or of [C][by][bx]; or (n = 1) it is added to
   two blocks each way, less with distance, as linear interpolation weighs it.
   Then `begin` and `end` are cut off. */
typedef struct pph_payload_spread {
  enum {
    PPH_PAYLOAD_SPREAD_COPIES,
    PPH_PAYLOAD_SPREAD_BLOCKS,
    PPH_PAYLOAD_SPREAD_CHANNELS,
    PPH_PAYLOAD_SPREAD_LINEAR
  } order;
  uint32_t block[2], begin[2], end[2];
} pph_payload_spread;
PPH_NODISCARD pph_status pph_payload_put_spread(
    pph_payload_export *x, const pph_payload_spread *spread, uint32_t *id);
/* The same as a table without input and output; `channels` are the output's. */
PPH_NODISCARD pph_status pph_payload_describe_spread(
    pph_payload_export *x, const pph_payload_spread *spread, uint32_t channels,
    pph_payload_conv *conv);
/* a becomes a (kind) b, broadcast. */
PPH_NODISCARD pph_status pph_payload_put_binary(
    pph_payload_export *x, pph_payload_kind kind, uint32_t b,
    const pph_payload_min_max *range, uint32_t *a);
/* A constant that the program hands in. */
PPH_NODISCARD pph_status pph_payload_put_operand(
    pph_payload_export *x, const pph_payload_constant *constant,
    const pph_payload_dims *dims, uint32_t *id);
/* One number. */
PPH_NODISCARD pph_status pph_payload_put_scalar(pph_payload_export *x,
                                                float number, uint32_t *id);
/* A filter, bias or slope; `data` lives as long as the arena. */
PPH_NODISCARD pph_status pph_payload_put_packed(pph_payload_export *x,
                                                const float *data,
                                                const pph_payload_dims *dims,
                                                uint32_t *id);
pph_payload_dims pph_payload_dims_of(const pph_payload_export *x, uint32_t id);

/* Between graph and payload (xnn_export_value.c). */
bool pph_payload_dims_make(const pph_shape *shape, pph_layout layout,
                           pph_payload_dims *dims);
/* That of the node's output, but channels last where pixels are cut off along
   what may be an open length. */
pph_layout pph_payload_crop_layout(const pph_payload_export *x);
/* Where the graph's axis lies. */
uint32_t pph_payload_axis(int32_t rank, pph_layout layout, int32_t axis);
/* Moves axes: output axis i is input axis perm[i] (NULL: the same). */
PPH_NODISCARD pph_status pph_payload_permute(pph_payload_export *x,
                                             const pph_shape *shape,
                                             pph_layout from,
                                             const int64_t *perm,
                                             pph_layout to, uint32_t *id);
/* Input `slot` with leading axes of length 1 up to `rank`, in that layout. */
PPH_NODISCARD pph_status pph_payload_read_input(pph_payload_export *x,
                                                uint32_t slot, int32_t rank,
                                                pph_layout layout,
                                                uint32_t *id);
/* The node's output `index` is `id`, which has that layout; first goes what
   the node's activation asks for beyond a clamp. */
PPH_NODISCARD pph_status pph_payload_write_output(pph_payload_export *x,
                                                  uint32_t index,
                                                  pph_layout layout,
                                                  uint32_t id);
/* The clamp fused into the node; NULL when there is none. */
const pph_payload_min_max *pph_payload_find_range(pph_payload_export *x,
                                                  pph_payload_min_max *range);
static inline const pph_value *pph_payload_input_value(
    const pph_payload_export *x, uint32_t slot) {
  return pph_node_find_input(x->graph, x->node, slot);
}
static inline const pph_value *pph_payload_output_value(
    const pph_payload_export *x) {
  return pph_graph_value(x->graph, x->node->outputs[0]);
}
/* An f32 constant behind `slot`, aligned; NULL if it is none. `count` gets its
   elements. */
const float *pph_payload_find_floats(const pph_payload_export *x,
                                     uint32_t slot, size_t *count);
/* Axes as input `slot` or attribute, ascending and not negative; all axes when
   there are none. */
bool pph_payload_find_axes(const pph_payload_export *x, uint32_t slot,
                           int32_t rank, int64_t *axes, size_t *count);

#endif
