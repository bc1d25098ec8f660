/* What the rows of the XNNPACK backend share. A row turns a node of one kind
   into XNNPACK operators; xnnpack.c lists the rows and runs the results. */
#ifndef PPH_BACKEND_XNNPACK_KIND_H
#define PPH_BACKEND_XNNPACK_KIND_H

#include "backend/backend.h"
#include "backend/xnnpack_api.h"
#include "base/checked.h"
#include "graph/shape.h"

/* A prepared node. */
typedef struct pph_xnn_state {
  pph_xnn_op op;     /* no handle: the node moves nothing */
  pph_xnn_op after;  /* the activation that op cannot fuse, in place on the
                        output; no handle: none */
  void *kept;        /* block of the heap that op reads, or NULL */
  uint32_t slots[2]; /* node inputs that are the operands; UINT32_MAX: none */
} pph_xnn_state;

/* A node being prepared. `supports` has said yes. */
typedef struct pph_xnn_job {
  pph_backend_context *context;
  pph_step *step;
  const pph_graph *graph;
  const pph_node *node;
  pph_xnn_state *state;
  float min, max; /* the output range to fuse; -+infinity for none */
} pph_xnn_job;

/* Rows see nodes whose input 0 and output are f32, not empty and of known
   shape, with a legal activation. prepare fills state->op (and kept), may
   change slots ({0, UINT32_MAX} before), and names the algorithm. */
typedef bool pph_xnn_supports(const pph_graph *graph, const pph_node *node);
typedef pph_status pph_xnn_prepare(pph_xnn_job *job, pph_error *error);

pph_xnn_supports pph_xnn_supports_conv, pph_xnn_supports_conv_transpose,
    pph_xnn_supports_max_pool, pph_xnn_supports_average_pool,
    pph_xnn_supports_global_average_pool, pph_xnn_supports_matmul,
    pph_xnn_supports_gemm, pph_xnn_supports_unary, pph_xnn_supports_binary,
    pph_xnn_supports_prelu, pph_xnn_supports_softmax, pph_xnn_supports_resize,
    pph_xnn_supports_depth_to_space, pph_xnn_supports_pad;
pph_xnn_prepare pph_xnn_prepare_conv, pph_xnn_prepare_conv_transpose,
    pph_xnn_prepare_max_pool, pph_xnn_prepare_average_pool,
    pph_xnn_prepare_global_average_pool, pph_xnn_prepare_matmul,
    pph_xnn_prepare_gemm, pph_xnn_prepare_unary, pph_xnn_prepare_binary,
    pph_xnn_prepare_prelu, pph_xnn_prepare_softmax, pph_xnn_prepare_resize,
    pph_xnn_prepare_depth_to_space, pph_xnn_prepare_pad;

/* The node's only output. */
static inline const pph_value *pph_xnn_output(const pph_graph *graph,
                                              const pph_node *node) {
  return pph_graph_value(graph, node->outputs[0]);
}

/* An f32 constant behind `slot`. */
bool pph_xnn_find_floats(const pph_graph *graph, const pph_node *node,
                         uint32_t slot, pph_tensor *tensor);

/* `slot` is omitted, or an f32 constant of `count` elements. */
bool pph_xnn_optional_floats(const pph_graph *graph, const pph_node *node,
                             uint32_t slot, size_t count);

/* Whether channels come last in memory: by its layout, or because the other
   order is the same one. Rank 3 and up. */
bool pph_xnn_channels_last(const pph_value *value);

/* Same rank, dimensions and order in memory. */
bool pph_xnn_same_memory(const pph_value *a, const pph_value *b);

/* min below max and neither NaN, as XNNPACK demands of an output range. */
bool pph_xnn_legal_range(float min, float max);

/* Element `index` of a constant, which may lie unaligned in its file. */
float pph_xnn_float_at(const void *data, size_t index);

/* An aligned copy of `count` floats in the heap, which the caller releases;
 *copy NULL when `data` is. */
PPH_NODISCARD pph_status pph_xnn_copy_floats(pph_heap *heap, const void *data,
                                             size_t count, float **copy,
                                             pph_error *error);

/* Arithmetic on sizes that sticks at SIZE_MAX. */
static inline size_t pph_xnn_times(size_t a, size_t b) {
  size_t result;
  return pph_checked_mul(a, b, &result) ? result : SIZE_MAX;
}
static inline size_t pph_xnn_plus(size_t a, size_t b) {
  size_t result;
  return pph_checked_add(a, b, &result) ? result : SIZE_MAX;
}
static inline size_t pph_xnn_round_up(size_t a, size_t step) {
  size_t result;
  return pph_checked_round_up(a, step, &result) ? result : SIZE_MAX;
}

/* PPH_LIMIT_EXCEEDED when XNNPACK would take more than the heap may hold, or
   more than it can count. */
PPH_NODISCARD pph_status pph_xnn_check_bytes(const pph_heap *heap,
                                             const char *what, size_t bytes,
                                             pph_error *error);

/* Shapes of a Conv, ConvTranspose or pooling node of one or two spatial axes
   (one lies along the width), without pads; false when a number is beyond what
   XNNPACK takes. `source` gets the logical window. */
bool pph_xnn_find_window(const pph_graph *graph, const pph_node *node,
                         pph_window *source, pph_xnn_window *window);

/* Pads of a window that looks forward (not of a deconvolution), as far as
   XNNPACK needs them to reach the output's size; false when it would not. */
bool pph_xnn_find_pads(const pph_window *source, pph_xnn_window *window);

/* Whether every window touches the input, and pads are below the kernel. */
bool pph_xnn_windows_touch_input(const pph_xnn_window *window);

/* Bytes of XNNPACK's pointers to input pixels for the operators that step
   through rows (depthwise, pooling). */
size_t pph_xnn_row_indirection(const pph_xnn_window *window);

#endif
