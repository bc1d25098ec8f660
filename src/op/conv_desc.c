#include "op/conv_desc.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/public_struct.h"

void pph_conv_desc_init(pph_conv_desc *desc) {
  *desc = (pph_conv_desc){.struct_size = sizeof *desc,
                          .type = PPH_F32,
                          .axes = 2,
                          .group = 1,
                          .low = -INFINITY,
                          .high = INFINITY,
                          .slope = 0.01f,
                          .threads = 1,
                          .weight_bytes = (uint64_t)1 << 30};
  for (int i = 0; i < PPH_MAX_AXES; i++)
    desc->stride[i] = desc->dilation[i] = 1;
}

/* Of a checked desc. */
static pph_limits limits_of(const pph_conv_desc *desc) {
  pph_limits limits;
  pph_limits_init(&limits);
  return desc->limits ? *desc->limits : limits;
}

static pph_status check_range(const char *name, int64_t value, int64_t low,
                              int64_t high, pph_error *error) {
  return pph_check_range("pph_conv_desc", name, value, low, high, error);
}

static pph_status check_channels(const pph_conv_desc *desc, pph_error *error) {
  PPH_TRY(check_range("group", desc->group, 1, INT32_MAX, error));
  PPH_TRY(check_range("in_channels", desc->in_channels, 1, INT32_MAX, error));
  PPH_TRY(check_range("out_channels", desc->out_channels, 1, INT32_MAX, error));
  PPH_TRY(pph_check_multiple("pph_conv_desc", "in_channels", desc->in_channels,
                             "group", desc->group, error));
  return pph_check_multiple("pph_conv_desc", "out_channels",
                            desc->out_channels, "group", desc->group, error);
}

static pph_status check_options(const pph_conv_desc *desc, pph_error *error) {
  char type[40];
  if (desc->type != PPH_F32)
    return pph_fail(error, PPH_UNSUPPORTED, "pph_conv_desc",
                    "type is %s, must be f32",
                    pph_dtype_text(desc->type, type, sizeof type));
  PPH_TRY(check_range("activation", desc->activation, 0, PPH_ACTIVATION_PRELU,
                      error));
  PPH_TRY(check_range("accuracy", desc->accuracy, 0, PPH_ACCURACY_EXACT,
                      error));
  PPH_TRY(check_range("cpu", desc->cpu, 0, PPH_CPU_NEON, error));
  PPH_TRY(check_range("threads", desc->threads, 1, PPH_MAX_THREADS, error));
  if (desc->activation == PPH_ACTIVATION_CLAMP && !(desc->low <= desc->high))
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                    "low is %g, must be at most high, %g", (double)desc->low,
                    (double)desc->high);
  if (desc->activation == PPH_ACTIVATION_LEAKY_RELU && isnan(desc->slope))
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                    "slope is NaN, must be a number");
  if (desc->activation == PPH_ACTIVATION_PRELU && !desc->slopes)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_conv_desc",
                    "slopes must not be NULL for PRELU");
  return PPH_OK;
}

/* check_range for an element of an array of the desc. */
static pph_status check_element(const char *name, uint32_t i,
                                const int64_t *values, int64_t low,
                                int64_t high, pph_error *error) {
  char element[32];
  snprintf(element, sizeof element, "%s[%u]", name, i);
  return check_range(element, values[i], low, high, error);
}

static pph_status check_axis(const pph_conv_desc *desc, uint32_t i,
                             bool transposed, pph_error *error) {
  const int64_t most_size = INT32_MAX;
  PPH_TRY(check_element("kernel", i, desc->kernel, 1, most_size, error));
  PPH_TRY(check_element("stride", i, desc->stride, 1, most_size, error));
  PPH_TRY(check_element("dilation", i, desc->dilation, 1, most_size, error));
  PPH_TRY(check_element("pad_begin", i, desc->pad_begin, 0, most_size, error));
  PPH_TRY(check_element("pad_end", i, desc->pad_end, 0, most_size, error));
  int64_t most = pph_max_i64(desc->stride[i], desc->dilation[i]) - 1;
  return check_element("output_padding", i, desc->output_padding, 0,
                       transposed ? most : 0, error);
}

pph_status pph_conv_desc_check(const pph_conv_desc *desc, bool transposed,
                               size_t *weight_count, pph_error *error) {
  PPH_TRY(pph_check_struct_size("pph_conv_desc", desc->struct_size,
                                sizeof *desc, error));
  pph_limits limits;
  PPH_TRY(pph_limits_take(desc->limits, NULL, &limits, error));
  PPH_TRY(check_range("axes", desc->axes, 1, PPH_MAX_AXES, error));
  PPH_TRY(check_channels(desc, error));
  PPH_TRY(check_options(desc, error));
  pph_shape shape = {2 + (int32_t)desc->axes,
                     {desc->in_channels, desc->out_channels / desc->group}};
  for (uint32_t i = 0; i < desc->axes; i++) {
    PPH_TRY(check_axis(desc, i, transposed, error));
    shape.dims[2 + i] = desc->kernel[i];
  }
  uint64_t bound = limits.tensor_bytes;
  if (!pph_shape_count(&shape, weight_count) ||
      !pph_shape_fits(&shape, PPH_F32, bound))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "pph_conv_desc",
                    "the weights take more than %llu bytes",
                    (unsigned long long)bound);
  return PPH_OK;
}

pph_status pph_conv_desc_start(const pph_conv_desc *desc, bool transposed,
                               pph_heap *heap, pph_error *error) {
  size_t count;
  PPH_TRY(pph_conv_desc_check(desc, transposed, &count, error));
  pph_heap_init(heap, desc->allocator, limits_of(desc).heap_bytes);
  return PPH_OK;
}

void pph_conv_desc_fill(const pph_conv_desc *desc, bool transposed,
                        pph_conv_spec *spec) {
  *spec = (pph_conv_spec){
      .problem = {.transposed = transposed,
                  .type = PPH_F32,
                  .batch = 1,
                  .group = desc->group,
                  .in_channels = desc->in_channels,
                  .out_channels = desc->out_channels},
      .input_channels_first = desc->input_channels_first,
      .output_channels_first = desc->output_channels_first,
      .residual = desc->residual,
      .accuracy = desc->accuracy,
      .cpu = pph_cpu_choose(desc->cpu),
      .threads = pph_cpu_threads(desc->threads)};
}

static pph_status resolve_axis(const pph_conv_desc *desc, uint32_t i,
                               int64_t input, bool transposed, pph_axis *axis,
                               pph_error *error) {
  static const char *const places[] = {"input[0]", "input[1]", "input[2]"};
  *axis = (pph_axis){.input = input,
                     .kernel = desc->kernel[i],
                     .stride = desc->stride[i],
                     .dilation = desc->dilation[i],
                     .pad_begin = desc->pad_begin[i],
                     .pad_end = desc->pad_end[i],
                     .output_padding = desc->output_padding[i]};
  return pph_axis_resolve_argument(axis, transposed, places[i], error);
}

static pph_status check_size(const pph_conv_desc *desc,
                             const pph_problem *problem, pph_error *error) {
  uint64_t bound = limits_of(desc).tensor_bytes;
  const pph_axis *axes = problem->axes;
  pph_shape input = {5,
                     {problem->batch, problem->in_channels, axes[0].input,
                      axes[1].input, axes[2].input}};
  pph_shape output = {5,
                      {problem->batch, problem->out_channels, axes[0].output,
                       axes[1].output, axes[2].output}};
  if (pph_shape_fits(&input, PPH_F32, bound) &&
      pph_shape_fits(&output, PPH_F32, bound))
    return PPH_OK;
  return pph_fail(error, PPH_LIMIT_EXCEEDED, "input",
                  "input or output takes more than %llu bytes",
                  (unsigned long long)bound);
}

pph_status pph_conv_desc_resolve(const pph_conv_desc *desc, int64_t batch,
                                 const int64_t *input, pph_conv_spec *spec,
                                 pph_error *error) {
  pph_problem *problem = &spec->problem;
  if (batch < 1)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "batch",
                    "is %lld, must be at least 1", (long long)batch);
  problem->batch = batch;
  uint32_t skipped = PPH_PROBLEM_AXES - desc->axes;
  for (uint32_t i = 0; i < skipped; i++)
    problem->axes[i] = (pph_axis){
        .input = 1, .kernel = 1, .stride = 1, .dilation = 1, .output = 1};
  for (uint32_t i = 0; i < desc->axes; i++)
    PPH_TRY(resolve_axis(desc, i, input[i], problem->transposed,
                         &problem->axes[skipped + i], error));
  return check_size(desc, problem, error);
}
