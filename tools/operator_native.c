#include "operator_native.h"

#include <string.h>

#include "base/fail.h"
#include "measure.h"
#include "op/conv_desc.h"

static void describe(const tool_options *options, const pph_problem *problem,
                     pph_conv_desc *desc) {
  pph_conv_desc_init(desc);
  desc->axes = (uint32_t)pph_problem_count_axes(problem);
  desc->group = problem->group;
  desc->in_channels = problem->in_channels;
  desc->out_channels = problem->out_channels;
  const pph_axis *axis = problem->axes + PPH_PROBLEM_AXES - desc->axes;
  for (uint32_t i = 0; i < desc->axes; i++, axis++) {
    desc->kernel[i] = axis->kernel;
    desc->stride[i] = axis->stride;
    desc->dilation[i] = axis->dilation;
    desc->pad_begin[i] = axis->pad_begin;
    desc->pad_end[i] = axis->pad_end;
    desc->output_padding[i] = axis->output_padding;
  }
  desc->accuracy = options->session.accuracy;
  desc->cpu = options->session.cpu;
  desc->threads = options->session.threads;
  desc->limits = &options->limits;
}

static void input_lengths(const pph_problem *problem, int64_t *lengths) {
  int count = pph_problem_count_axes(problem);
  for (int i = 0; i < count; i++)
    lengths[i] = problem->axes[PPH_PROBLEM_AXES - count + i].input;
}

/* `count` matrices of rows x columns, each transposed. */
static void transpose(const float *from, float *to, size_t count, size_t rows,
                      size_t columns) {
  for (size_t n = 0; n < count; n++, from += rows * columns)
    for (size_t j = 0; j < columns; j++)
      for (size_t i = 0; i < rows; i++)
        *to++ = from[i * columns + j];
}

static size_t count_pixels(const pph_problem *problem, bool output) {
  size_t pixels = 1;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    pixels *= (size_t)(output ? problem->axes[i].output
                              : problem->axes[i].input);
  return pixels;
}

pph_status operator_native_init(const tool_options *options,
                                const pph_problem *problem,
                                const pph_conv_weights *weights,
                                const float *input, pph_thread_pool *pool,
                                pph_heap *heap, operator_native *native,
                                pph_error *error) {
  *native = (operator_native){
      .heap = heap, .weights = *weights, .tensors.pool = pool};
  describe(options, problem, &native->desc);
  size_t unused;
  int64_t lengths[PPH_MAX_AXES];
  PPH_TRY(pph_conv_desc_check(&native->desc, weights->transposed, &unused,
                              error));
  pph_conv_desc_fill(&native->desc, weights->transposed, &native->spec);
  input_lengths(problem, lengths);
  PPH_TRY(pph_conv_desc_resolve(&native->desc, problem->batch, lengths,
                                &native->spec, error));
  /* resolve has bounded both sizes */
  size_t batch = (size_t)problem->batch;
  size_t channels = (size_t)problem->in_channels;
  size_t pixels = count_pixels(problem, false);
  native->input =
      pph_heap_allocate(heap, batch * channels * pixels, sizeof(float));
  native->output = pph_heap_allocate(
      heap, batch * (size_t)problem->out_channels * count_pixels(problem, true),
      sizeof(float));
  if (!native->input || !native->output)
    return pph_fail_memory(error);
  transpose(input, native->input, batch, channels, pixels);
  native->tensors.input = native->input;
  native->tensors.output = native->output;
  return PPH_OK;
}

bool operator_native_allows(const operator_native *native,
                            const pph_algo *algo) {
  return strcmp(algo->name, "reference") != 0 &&
         pph_algo_allowed(algo, &native->spec) &&
         algo->cost(algo, &native->spec).packed_bytes <=
             native->desc.weight_bytes;
}

static pph_status grow_workspace(operator_native *native, size_t bytes,
                                 pph_error *error) {
  if (bytes <= native->workspace_bytes)
    return PPH_OK;
  pph_heap_release(native->heap, native->workspace);
  native->workspace_bytes = 0;
  native->workspace = pph_heap_allocate(native->heap, bytes, 1);
  native->tensors.workspace = native->workspace;
  if (!native->workspace)
    return pph_fail_memory(error);
  native->workspace_bytes = bytes;
  return PPH_OK;
}

pph_status operator_native_make(operator_native *native, const char *algorithm,
                                pph_conv_op **op, pph_error *error) {
  pph_conv_desc desc = native->desc;
  desc.algorithm = algorithm;
  PPH_TRY(pph_conv_op_create(&desc, &native->weights, native->heap, op, error));
  int64_t input[PPH_MAX_AXES], output[PPH_MAX_AXES];
  size_t bytes;
  input_lengths(&native->spec.problem, input);
  pph_status status = pph_conv_op_reshape(
      *op, native->spec.problem.batch, input, output, &bytes, error);
  if (status == PPH_OK)
    status = grow_workspace(native, bytes, error);
  if (status != PPH_OK) {
    pph_conv_op_destroy(*op);
    *op = NULL;
  }
  return status;
}

pph_status operator_native_run(operator_native *native, const pph_conv_op *op,
                               double *microseconds, pph_error *error) {
  double start = measure_now();
  pph_status status = pph_conv_op_run(op, &native->tensors, error);
  *microseconds = measure_now() - start;
  return status;
}

void operator_native_read(const operator_native *native, float *output) {
  const pph_problem *problem = &native->spec.problem;
  transpose(native->output, output, (size_t)problem->batch,
            count_pixels(problem, true), (size_t)problem->out_channels);
}

void operator_native_clear(operator_native *native) {
  if (!native->heap)
    return;
  pph_heap_release(native->heap, native->input);
  pph_heap_release(native->heap, native->output);
  pph_heap_release(native->heap, native->workspace);
}
