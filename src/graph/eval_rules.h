/* What the files of the reference evaluator share: how a rule sees its node,
   numbers of any element type as double or int64_t, walks over strided tensors,
   and the one sum that convolutions and matrix products are made of. */
#ifndef PPH_GRAPH_EVAL_RULES_H
#define PPH_GRAPH_EVAL_RULES_H

#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval.h"
#include "graph/shape.h"

/* One call of pph_eval_node. */
typedef struct pph_eval {
  const pph_graph *graph;
  const pph_node *node;
  const pph_tensor *inputs;
  const pph_tensor *outputs;
  pph_error *error;
} pph_eval;

typedef pph_status pph_eval_rule(const pph_eval *eval);

/* Input `slot` is there. */
bool pph_eval_has(const pph_eval *eval, uint32_t slot);
/* The same, and it has elements: how optional vectors are left out. */
bool pph_eval_has_elements(const pph_eval *eval, uint32_t slot);
/* PPH_UNSUPPORTED naming kind and type. */
pph_status pph_eval_fail_type(const pph_eval *eval, pph_dtype type);
/* Elements; 0 where the shape is not countable. */
size_t pph_eval_count(const pph_tensor *tensor);
/* `axis` counted from the end if negative, then kept in [0, rank). */
int32_t pph_eval_axis(int64_t axis, int32_t rank);
/* Row-major strides in elements. */
void pph_eval_strides(const pph_shape *shape, int64_t *strides);
/* Dimensions [begin, end) multiplied. */
int64_t pph_eval_product(const pph_shape *shape, int32_t begin, int32_t end);

/* pph_shape_find_window with three axes always: those that the node has not, in
   front, have length 1 everywhere. */
pph_status pph_eval_find_window(const pph_eval *eval, pph_window *window);
/* Index `flat` of a box of `lengths` as three. */
void pph_eval_split_index(int64_t flat, const int64_t lengths[3],
                          int64_t index[3]);

/* Numbers (eval_number.c). Offsets and steps in elements. */
bool pph_number_is_real(pph_dtype type);    /* f16, f32, f64 */
bool pph_number_is_integer(pph_dtype type); /* all others, bool too */
/* Elements offset, offset + step, ... as doubles; any type. */
void pph_number_load_reals(const pph_tensor *tensor, int64_t offset,
                           int64_t step, double *reals, int64_t count);
/* Rounds to nearest even; into integers it truncates and saturates, NaN gives
   0; bool is "not 0". Elements offset, offset + 1, ... */
void pph_number_store_reals(const pph_tensor *tensor, int64_t offset,
                            const double *reals, int64_t count);
/* Integer types only; u64 keeps its bits. */
void pph_number_load_integers(const pph_tensor *tensor, int64_t offset,
                              int64_t step, int64_t *integers, int64_t count);
/* Wraps into narrower integers; any type. */
void pph_number_store_integers(const pph_tensor *tensor, int64_t offset,
                               const int64_t *integers, int64_t count);
/* Element `index`, of any type (NaN: of none). */
double pph_number_real(const pph_tensor *tensor, int64_t index);
/* Element `index` of an integer tensor. */
int64_t pph_number_integer(const pph_tensor *tensor, int64_t index);

/* Walks (eval_walk.c): the rows of up to four operands of the same dimensions,
   each with its own strides; 0 repeats. */
enum { PPH_WALK_RANK = 2 * PPH_MAX_RANK, PPH_WALK_OPERANDS = 4 };
typedef struct pph_walk {
  int32_t rank;
  uint32_t operands;
  int64_t dims[PPH_WALK_RANK];
  int64_t strides[PPH_WALK_OPERANDS][PPH_WALK_RANK];
  /* The current row: */
  int64_t length;
  int64_t offset[PPH_WALK_OPERANDS], step[PPH_WALK_OPERANDS];
  int64_t index[PPH_WALK_RANK];
  bool started;
} pph_walk;
/* Dimensions of `shape`; all strides and offsets 0. */
void pph_walk_init(pph_walk *walk, const pph_shape *shape, uint32_t operands);
/* Strides of a dense `shape` that broadcasts to the walk's. */
void pph_walk_broadcast(pph_walk *walk, uint32_t operand,
                        const pph_shape *shape);
/* Joins axes that lie together for all operands. Before the first next. */
void pph_walk_join(pph_walk *walk);
/* The next row into length, offset and step; false after the last. */
bool pph_walk_next(pph_walk *walk);
/* Copies operand 0's elements (from `source`) to operand 1's places. */
void pph_walk_copy(pph_walk *walk, size_t element_size, const void *source,
                   void *target);
/* target[i...] = source[tables[0][i], tables[1][j], ...]; where a table says
   -1 the element `fill`. One table per axis of `target`. */
void pph_walk_gather(const pph_tensor *source, const pph_tensor *target,
                     const int64_t *const *tables, const void *fill);

/* sums[x] += sum over t < count of factors[t * factor_step] * rows[t][x], for
   x < width; rows are `row_step` apart. */
typedef struct pph_product {
  const float *factors;
  int64_t factor_step;
  const double *rows;
  int64_t row_step;
  int64_t count, width;
} pph_product;
void pph_product_add(const pph_product *product, double *sums);

/* The rules, by file. */
pph_eval_rule pph_eval_unary, pph_eval_clip, pph_eval_cast, pph_eval_identity;
pph_eval_rule pph_eval_binary, pph_eval_compare, pph_eval_logic,
    pph_eval_extreme, pph_eval_pow, pph_eval_where;
pph_eval_rule pph_eval_concat, pph_eval_expand, pph_eval_gather, pph_eval_pad,
    pph_eval_scatter_nd, pph_eval_slice, pph_eval_split, pph_eval_tile,
    pph_eval_transpose, pph_eval_depth_to_space, pph_eval_space_to_depth;
pph_eval_rule pph_eval_constant_of_shape, pph_eval_range, pph_eval_shape,
    pph_eval_size;
pph_eval_rule pph_eval_conv, pph_eval_conv_transpose;
pph_eval_rule pph_eval_pool, pph_eval_global_pool, pph_eval_batch_normalization;
pph_eval_rule pph_eval_resize;
pph_eval_rule pph_eval_reduce, pph_eval_softmax;
pph_eval_rule pph_eval_cum_sum, pph_eval_top_k;
pph_eval_rule pph_eval_gemm, pph_eval_matmul, pph_eval_gru;

#endif
