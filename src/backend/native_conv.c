#include "backend/native_conv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/shape.h"

struct pph_native_conv {
  pph_conv_op *op;
  bool adds; /* input 3 */
  char algorithm[48]; /* "native.gather", what was fused: "+add+prelu" */
};

/* A node as an operator's problem. */
typedef struct conv_node {
  pph_conv_desc desc;
  pph_conv_weights weights;
  int64_t batch, input[PPH_MAX_AXES], output[PPH_MAX_AXES];
} conv_node;

static bool is_conv(const pph_node *node) {
  return node->kind == PPH_NODE_CONV || node->kind == PPH_NODE_CONV_TRANSPOSE;
}

/* What is left of an output beyond its natural length is output padding, where
   the operator takes that much. */
static bool set_axis(const pph_window *window, uint32_t i, bool transposed,
                     pph_conv_desc *desc) {
  desc->kernel[i] = window->kernel[i];
  desc->stride[i] = window->stride[i];
  desc->dilation[i] = window->dilation[i];
  desc->pad_begin[i] = window->pad_begin[i];
  desc->pad_end[i] = window->pad_end[i];
  desc->output_padding[i] = transposed ? window->output_padding[i] : 0;
  int64_t most = window->stride[i] > window->dilation[i] ? window->stride[i]
                                                         : window->dilation[i];
  return window->pad_begin[i] >= 0 && window->pad_end[i] >= 0 &&
         window->pad_begin[i] <= INT32_MAX && window->pad_end[i] <= INT32_MAX &&
         window->input[i] >= 1 && window->output[i] >= 1 &&
         desc->output_padding[i] < most;
}

static bool set_activation(const pph_node *node, pph_conv_desc *desc) {
  const pph_attribute *slopes =
      pph_node_find_attribute(node, PPH_ATTR_ACTIVATION_SLOPES);
  desc->activation = node->activation;
  desc->low = pph_node_float(node, PPH_ATTR_ACTIVATION_MIN, -INFINITY);
  desc->high = pph_node_float(node, PPH_ATTR_ACTIVATION_MAX, INFINITY);
  desc->slope = pph_node_float(node, PPH_ATTR_ACTIVATION_ALPHA, 0.01f);
  if (node->activation == PPH_ACTIVATION_PRELU) {
    if (!slopes || slopes->count != desc->out_channels)
      return false;
    desc->slopes = slopes->floats;
  }
  return node->activation != PPH_ACTIVATION_CLAMP || desc->low <= desc->high;
}

/* What is added to the sums must lie in memory as they do. */
static bool set_residual(const pph_graph *graph, const pph_node *node,
                         pph_conv_desc *desc) {
  const pph_value *residual = pph_node_find_input(graph, node, 3);
  const pph_value *out = pph_graph_value(graph, node->outputs[0]);
  desc->residual = residual != NULL;
  return !residual ||
         (residual->type == PPH_F32 && residual->layout == out->layout &&
          residual->has_rank &&
          pph_shape_equal(&residual->shape, &out->shape));
}

static bool find_weights(const pph_graph *graph, const pph_node *node,
                         pph_conv_weights *weights) {
  pph_tensor weight, bias = {0};
  if (!pph_node_find_constant(graph, node, 1, &weight) ||
      weight.type != PPH_F32)
    return false;
  if (pph_node_find_input(graph, node, 2) &&
      (!pph_node_find_constant(graph, node, 2, &bias) || bias.type != PPH_F32))
    return false;
  *weights = (pph_conv_weights){
      .transposed = node->kind == PPH_NODE_CONV_TRANSPOSE,
      .borrowed = true,
      .weights = weight.data,
      .bias = bias.data};
  /* A file's bytes need not be aligned. */
  return (uintptr_t)weight.data % sizeof(float) == 0 &&
         (uintptr_t)bias.data % sizeof(float) == 0;
}

static bool find_conv(const pph_graph *graph, const pph_node *node,
                      conv_node *conv) {
  pph_window window;
  const pph_value *in, *out;
  if (!is_conv(node) || !find_weights(graph, node, &conv->weights))
    return false;
  in = pph_node_find_input(graph, node, 0);
  out = pph_graph_value(graph, node->outputs[0]);
  if (in->type != PPH_F32 || in->data || !in->has_rank || !out->has_rank ||
      pph_shape_find_window(graph, node, &window, NULL) != PPH_OK ||
      window.batch < 1 || window.in_channels < 1 || window.out_channels < 1)
    return false;
  pph_conv_desc_init(&conv->desc);
  conv->desc.axes = window.axes;
  conv->desc.group = window.group;
  conv->desc.in_channels = window.in_channels;
  conv->desc.out_channels = window.out_channels;
  conv->desc.input_channels_first = in->layout == PPH_LAYOUT_PLAIN;
  conv->desc.output_channels_first = out->layout == PPH_LAYOUT_PLAIN;
  conv->batch = window.batch;
  for (uint32_t i = 0; i < window.axes; i++) {
    conv->input[i] = window.input[i];
    conv->output[i] = window.output[i];
    if (!set_axis(&window, i, conv->weights.transposed, &conv->desc))
      return false;
  }
  return set_activation(node, &conv->desc) &&
         set_residual(graph, node, &conv->desc);
}

bool pph_native_conv_supports(const pph_graph *graph, const pph_node *node) {
  conv_node conv;
  return find_conv(graph, node, &conv);
}

/* A convolution of one tap and few channels reads an input for every few
   products, and a depthwise one of a small plane is mostly edges: there XNNPACK
   is faster. */
static bool is_shallow(const pph_conv_desc *desc, int64_t taps,
                       int64_t pixels) {
  enum { SHALLOW = 40, FEW_OUTPUTS = 4, FEW_TAPS = 9, FEW_PIXELS = 64 };
  if (desc->group == 1)
    return taps == 1 && desc->in_channels < SHALLOW &&
           desc->out_channels > FEW_OUTPUTS;
  return desc->group == desc->in_channels &&
         desc->group == desc->out_channels && taps <= FEW_TAPS &&
         pixels <= FEW_PIXELS;
}

bool pph_native_conv_prefers(const pph_graph *graph, const pph_node *node) {
  conv_node conv;
  if (!find_conv(graph, node, &conv))
    return false;
  int64_t taps = 1, pixels = 1;
  for (uint32_t i = 0; i < conv.desc.axes; i++) {
    taps *= conv.desc.kernel[i];
    pixels *= conv.output[i];
  }
  return conv.weights.transposed || !is_shallow(&conv.desc, taps, pixels);
}

static pph_status create_operator(const pph_backend_context *context,
                                  const pph_graph *graph, const pph_node *node,
                                  const char *algorithm, conv_node *conv,
                                  pph_conv_op **op, pph_error *error) {
  if (!find_conv(graph, node, conv))
    return pph_node_fail(node, error, PPH_UNSUPPORTED,
                         "is no native convolution"); /* supports() said yes */
  conv->desc.accuracy = pph_node_int(node, PPH_ATTR_EXACT_SUMS, 0)
                            ? PPH_ACCURACY_EXACT
                            : context->accuracy;
  conv->desc.cpu = context->cpu;
  conv->desc.algorithm = algorithm;
  if (context->pool)
    conv->desc.threads = (uint32_t)pthreadpool_get_threads_count(context->pool);
  return pph_conv_op_create(&conv->desc, &conv->weights, context->heap, op,
                            error);
}

/* What decides about the time beside the problem. */
static void describe(const conv_node *conv, const pph_conv_op *op, char *text,
                     size_t size) {
  static const char *const accuracies[] = {"normal", "high", "exact"};
  static const char *const orders[] = {"last", "first"};
  const pph_conv_desc *desc = &conv->desc;
  char problem[256];
  snprintf(text, size, "%s; %s to %s%s, activation %d; %s",
           accuracies[desc->accuracy], orders[desc->input_channels_first],
           orders[desc->output_channels_first],
           desc->residual ? ", add" : "", (int)desc->activation,
           pph_conv_op_print(op, problem, sizeof problem));
}

pph_status pph_native_conv_rank(const pph_backend_context *context,
                                const pph_graph *graph, const pph_node *node,
                                pph_native_ranking *ranking,
                                pph_error *error) {
  conv_node conv;
  pph_conv_op *op;
  PPH_TRY(create_operator(context, graph, node, NULL, &conv, &op, error));
  pph_status status = pph_conv_op_rank(op, conv.batch, conv.input,
                                       ranking->choices, &ranking->count,
                                       error);
  if (status == PPH_OK)
    describe(&conv, op, ranking->text, sizeof ranking->text);
  ranking->accuracy = conv.desc.accuracy;
  pph_conv_op_destroy(op);
  return status;
}

static pph_status make_operator(pph_backend_context *context, pph_step *step,
                                pph_native_conv *made, pph_error *error) {
  conv_node conv;
  PPH_TRY(create_operator(context, step->graph, step->node, step->wanted, &conv,
                          &made->op, error));
  int64_t output[PPH_MAX_AXES];
  PPH_TRY(pph_conv_op_reshape(made->op, conv.batch, conv.input, output,
                              &step->workspace, error));
  snprintf(made->algorithm, sizeof made->algorithm, "native.%s%s%s",
           pph_conv_op_explain(made->op).algorithm,
           conv.desc.residual ? "+add" : "",
           conv.desc.activation == PPH_ACTIVATION_PRELU ? "+prelu" : "");
  made->adds = conv.desc.residual;
  step->algorithm = made->algorithm;
  return PPH_OK;
}

pph_status pph_native_conv_prepare(pph_backend_context *context,
                                   pph_step *step, pph_native_conv **conv,
                                   pph_error *error) {
  *conv = NULL;
  pph_native_conv *made =
      pph_heap_allocate_zeroed(context->heap, 1, sizeof *made);
  if (!made)
    return pph_fail_memory(error);
  pph_status status = make_operator(context, step, made, error);
  if (status != PPH_OK) {
    pph_native_conv_release(context->heap, made);
    step->algorithm = "native";
    return status;
  }
  *conv = made;
  return PPH_OK;
}

pph_status pph_native_conv_run(pph_backend_context *context,
                               const pph_native_conv *conv,
                               const pph_run_pointers *pointers,
                               pph_error *error) {
  pph_conv_tensors tensors = {
      .input = pointers->inputs[0],
      .residual = conv->adds ? pointers->inputs[3] : NULL,
      .output = pointers->outputs[0],
      .workspace = pointers->workspace,
      .pool = context->pool};
  return pph_conv_op_run(conv->op, &tensors, error);
}

void pph_native_conv_release(pph_heap *heap, pph_native_conv *conv) {
  if (conv)
    pph_conv_op_destroy(conv->op);
  pph_heap_release(heap, conv);
}
