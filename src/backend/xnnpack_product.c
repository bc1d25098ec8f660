/* MatMul and Gemm with a constant matrix on the right. */
#include <math.h>

#include "backend/xnnpack_kind.h"
#include "base/fail.h"

/* XNNPACK counts the bytes of packed weights in 32 bits. */
static bool legal_weights(const pph_xnn_product *product) {
  size_t row = pph_xnn_plus(pph_xnn_round_up(product->in, 32), 1);
  size_t rows = pph_xnn_round_up(product->out, 64);
  return pph_xnn_times(pph_xnn_times(row, rows), sizeof(float)) < INT32_MAX;
}

/* The shape of input 0 times a constant matrix in slot 1. */
static bool find_product(const pph_graph *graph, const pph_node *node,
                         bool in_major, pph_xnn_product *product) {
  pph_tensor matrix;
  const pph_value *left = pph_node_find_input(graph, node, 0);
  const pph_value *output = pph_xnn_output(graph, node);
  if (!pph_xnn_find_floats(graph, node, 1, &matrix) || matrix.shape.rank != 2 ||
      left->shape.rank < 1 ||
      (left->shape.rank > 2 && left->layout != PPH_LAYOUT_PLAIN) ||
      (output->shape.rank > 2 && output->layout != PPH_LAYOUT_PLAIN))
    return false;
  size_t count;
  size_t in = (size_t)matrix.shape.dims[in_major ? 0 : 1];
  size_t out = (size_t)matrix.shape.dims[in_major ? 1 : 0];
  if (in == 0 || out == 0 || !pph_shape_count(&left->shape, &count) ||
      left->shape.dims[left->shape.rank - 1] != (int64_t)in)
    return false;
  *product = (pph_xnn_product){.rows = count / in,
                               .in = in,
                               .out = out,
                               .in_major = in_major,
                               .min = -INFINITY,
                               .max = INFINITY};
  return legal_weights(product);
}

bool pph_xnn_supports_matmul(const pph_graph *graph, const pph_node *node) {
  pph_xnn_product product;
  return find_product(graph, node, true, &product);
}

/* C of Gemm must be a bias per column: absent, one number, [out] or [1,out]. */
static bool find_bias(const pph_graph *graph, const pph_node *node, size_t out,
                      size_t *count) {
  pph_tensor bias;
  *count = 0;
  if (!pph_node_find_input(graph, node, 2))
    return true;
  if (!pph_xnn_find_floats(graph, node, 2, &bias) ||
      pph_node_float(node, PPH_ATTR_BETA, 1) != 1 ||
      !pph_shape_count(&bias.shape, count))
    return false;
  int32_t rank = bias.shape.rank;
  return *count == 1 ||
         (*count == out && bias.shape.dims[rank - 1] == (int64_t)out);
}

static bool find_gemm(const pph_graph *graph, const pph_node *node,
                      pph_xnn_product *product, size_t *bias_count) {
  bool in_major = !pph_node_int(node, PPH_ATTR_TRANS_B, 0);
  return !pph_node_int(node, PPH_ATTR_TRANS_A, 0) &&
         pph_node_float(node, PPH_ATTR_ALPHA, 1) == 1 &&
         find_product(graph, node, in_major, product) &&
         find_bias(graph, node, product->out, bias_count);
}

bool pph_xnn_supports_gemm(const pph_graph *graph, const pph_node *node) {
  pph_xnn_product product;
  size_t bias_count;
  return find_gemm(graph, node, &product, &bias_count);
}

static pph_status expand_bias(pph_xnn_job *job, size_t out, size_t count,
                              float **bias, pph_error *error) {
  pph_tensor tensor;
  *bias = NULL;
  if (count == 0)
    return PPH_OK;
  pph_node_find_constant(job->graph, job->node, 2, &tensor);
  *bias = pph_heap_allocate(job->context->heap, out, sizeof **bias);
  if (!*bias)
    return pph_fail_memory(error);
  for (size_t i = 0; i < out; i++)
    (*bias)[i] = pph_xnn_float_at(tensor.data, count == 1 ? 0 : i);
  return PPH_OK;
}

static pph_status create(pph_xnn_job *job, pph_xnn_product *product,
                         size_t bias_count, pph_error *error) {
  pph_heap *heap = job->context->heap;
  pph_tensor matrix;
  float *kernel, *bias;
  pph_node_find_constant(job->graph, job->node, 1, &matrix);
  product->min = job->min;
  product->max = job->max;
  size_t count = product->in * product->out;
  PPH_TRY(pph_xnn_check_bytes(heap, "packed weights",
                              pph_xnn_times(count, sizeof(float)), error));
  job->step->algorithm = "xnnpack.fully_connected";
  PPH_TRY(expand_bias(job, product->out, bias_count, &bias, error));
  pph_status status =
      pph_xnn_copy_floats(heap, matrix.data, count, &kernel, error);
  if (status == PPH_OK)
    status =
        pph_xnn_create_product(product, kernel, bias, &job->state->op, error);
  pph_heap_release(heap, kernel);
  pph_heap_release(heap, bias);
  return status;
}

pph_status pph_xnn_prepare_matmul(pph_xnn_job *job, pph_error *error) {
  pph_xnn_product product;
  if (!find_product(job->graph, job->node, true, &product))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's product");
  return create(job, &product, 0, error);
}

pph_status pph_xnn_prepare_gemm(pph_xnn_job *job, pph_error *error) {
  pph_xnn_product product;
  size_t bias_count;
  if (!find_gemm(job->graph, job->node, &product, &bias_count))
    return pph_fail(error, PPH_UNSUPPORTED, NULL, "not XNNPACK's product");
  return create(job, &product, bias_count, error);
}
