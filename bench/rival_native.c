/* Ours, through the public operators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "contest.h"
#include "measure.h"
#include "polyphase/conv.h"

typedef struct native {
  const pph_problem *problem;
  pph_conv_transpose *transposed; /* one of the two */
  pph_conv *ordinary;
  pph_thread_pool *pool;
  float *input;
  pph_conv_tensors tensors;
  size_t workspace_bytes;
} native;

static bool parse_accuracy(const char *text, pph_accuracy *accuracy) {
  static const char *const names[] = {"normal", "high", "exact"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) {
      *accuracy = (pph_accuracy)i;
      return true;
    }
  return false;
}

static bool describe_problem(const pph_problem *p, const bench_options *options,
                             pph_conv_desc *desc) {
  pph_conv_desc_init(desc);
  desc->type = PPH_F32;
  desc->axes = 2;
  desc->group = p->group;
  desc->in_channels = p->in_channels;
  desc->out_channels = p->out_channels;
  for (int i = 0; i < 2; i++) {
    const pph_axis *axis = &p->axes[PPH_HEIGHT + i];
    desc->kernel[i] = axis->kernel;
    desc->stride[i] = axis->stride;
    desc->dilation[i] = axis->dilation;
    desc->pad_begin[i] = axis->pad_begin;
    desc->pad_end[i] = axis->pad_end;
    desc->output_padding[i] = axis->output_padding;
  }
  desc->algorithm = options->algorithm;
  desc->threads = options->threads;
  return parse_accuracy(options->accuracy, &desc->accuracy) &&
         pph_cpu_parse(options->cpu, &desc->cpu);
}

static pph_status make_operator(native *it, const bench_case *one,
                                const pph_conv_desc *desc, pph_error *error) {
  int64_t input[2], output[2];
  for (int i = 0; i < 2; i++)
    input[i] = it->problem->axes[PPH_HEIGHT + i].input;
  pph_status status =
      it->problem->transposed
          ? pph_conv_transpose_create(desc, one->weights, one->bias,
                                      &it->transposed, error)
          : pph_conv_create(desc, one->weights, one->bias, &it->ordinary,
                            error);
  if (status != PPH_OK)
    return status;
  return it->transposed
             ? pph_conv_transpose_reshape(it->transposed, it->problem->batch,
                                          input, output, &it->workspace_bytes,
                                          error)
             : pph_conv_reshape(it->ordinary, it->problem->batch, input, output,
                                &it->workspace_bytes, error);
}

static void *allocate(size_t bytes) {
  size_t whole = (bytes + 63) / 64 * 64 + 64;
  void *block = aligned_alloc(64, whole);
  if (block)
    memset(block, 0, whole);
  return block;
}

static bool make_tensors(native *it, const bench_case *one) {
  size_t n = (size_t)one->problem.batch;
  size_t channels = (size_t)one->problem.in_channels;
  it->input = allocate(one->input_count * sizeof(float));
  it->tensors.input = it->input;
  it->tensors.output = allocate(one->output_count * sizeof(float));
  it->tensors.workspace = allocate(it->workspace_bytes);
  it->tensors.pool = it->pool;
  if (!it->input || !it->tensors.output || !it->tensors.workspace)
    return false;
  bench_transpose(one->input, it->input, n, channels,
                  one->input_count / n / channels);
  return true;
}

static void close_native(void *state) {
  native *it = state;
  pph_conv_transpose_destroy(it->transposed);
  pph_conv_destroy(it->ordinary);
  pph_thread_pool_destroy(it->pool);
  free(it->input);
  free(it->tensors.output);
  free(it->tensors.workspace);
  free(it);
}

static void *open_native(const bench_case *one, const bench_options *options,
                         char *message) {
  pph_error error = {.message = "unknown accuracy or processor level"};
  pph_conv_desc desc;
  native *it = calloc(1, sizeof *it);
  if (!it)
    return NULL;
  it->problem = &one->problem;
  if (describe_problem(it->problem, options, &desc) &&
      make_operator(it, one, &desc, &error) == PPH_OK &&
      (options->threads == 1 ||
       pph_thread_pool_create(options->threads, &it->pool, &error) == PPH_OK)) {
    if (make_tensors(it, one))
      return it;
    snprintf(error.message, sizeof error.message, "out of memory");
  }
  snprintf(message, BENCH_TEXT, "%s", error.message);
  close_native(it);
  return NULL;
}

static double run_native(void *state) {
  native *it = state;
  double start = measure_now();
  pph_status status =
      it->transposed
          ? pph_conv_transpose_run(it->transposed, &it->tensors, NULL)
          : pph_conv_run(it->ordinary, &it->tensors, NULL);
  double stop = measure_now();
  return status == PPH_OK ? stop - start : -1;
}

static void read_native(void *state, float *output) {
  native *it = state;
  const pph_problem *p = it->problem;
  bench_transpose(
      it->tensors.output, output, (size_t)p->batch,
      (size_t)(p->axes[PPH_HEIGHT].output * p->axes[PPH_WIDTH].output),
      (size_t)p->out_channels);
}

static void describe_native(void *state, char *text) {
  native *it = state;
  pph_operator_info info = it->transposed
                               ? pph_conv_transpose_explain(it->transposed)
                               : pph_conv_explain(it->ordinary);
  snprintf(text, BENCH_TEXT,
           "{\"algorithm\": \"%s\", \"kernel\": \"%s\", \"bound\": %g, "
           "\"done_flops\": %.0f, \"estimated_us\": %.3f, "
           "\"packed_bytes\": %zu, \"workspace_bytes\": %zu}",
           info.algorithm, info.kernel, info.error_bound, info.done_flops,
           info.estimated_us, info.packed_bytes, info.workspace_bytes);
}

const bench_rival bench_rival_native = {"native",        open_native,
                                        run_native,      read_native,
                                        describe_native, close_native};
