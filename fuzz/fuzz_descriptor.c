/* Bytes to a convolution as conv_transpose.h, conv.h and conv_stream.h take it,
   sane or not. What is taken must run, and agree with the reference algorithm:
   exactly at EXACT, on small integers, else within the bound of E. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_common.h"
#include "op/algo.h"
#include "op/conv_op.h"
#include "polyphase/polyphase.h"

enum { THREADS = 3, MOST_FLOPS = 1 << 22 };

typedef struct byte_source {
  const uint8_t *data;
  size_t size;
} byte_source;

/* 0 to most; zeros when there are no more bytes. */
static int64_t take(byte_source *from, int64_t most) {
  if (!from->size)
    return 0;
  from->size--;
  return *from->data++ % (most + 1);
}

static int64_t take_any(byte_source *from) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++)
    value = value << 8 | (uint64_t)take(from, 255);
  return (int64_t)value;
}

/* Everything about one convolution. */
typedef struct problem {
  bool transposed;
  pph_conv_desc desc;
  pph_limits limits;
  int64_t batch, input[PPH_MAX_AXES], output[PPH_MAX_AXES];
  size_t inputs, outputs, weight_count;
  float *x, *w, *bias, *residual, *slopes;
} problem;

static void take_axis(byte_source *from, problem *p, int i) {
  pph_conv_desc *d = &p->desc;
  d->kernel[i] = 1 + take(from, d->axes == 1 ? 15 : 6);
  d->stride[i] = 1 + take(from, 5);
  d->dilation[i] = 1 + take(from, 3);
  d->pad_begin[i] = take(from, 12);
  d->pad_end[i] = take(from, 12);
  if (p->transposed)
    d->output_padding[i] = take(from, 3);
  p->input[i] = 1 + take(from, d->axes == 1 ? 60 : 12);
}

static void take_channels(byte_source *from, pph_conv_desc *d) {
  static const int64_t groups[] = {1, 1, 1, 2, 3, 16, 33};
  d->group = groups[take(from, 6)];
  d->in_channels = d->group * (1 + take(from, d->group == 1 ? 70 : 8));
  d->out_channels = d->group * (1 + take(from, d->group == 1 ? 70 : 8));
  if (take(from, 3) == 0)
    d->out_channels = d->in_channels = d->group;
}

static void take_options(byte_source *from, pph_conv_desc *d) {
  size_t count, index = (size_t)take(from, 40);
  const pph_algo *const *list = pph_algo_list(&count);
  if (index < count)
    d->algorithm = list[index]->name;
  int64_t flags = take(from, 255);
  d->input_channels_first = flags & 1;
  d->output_channels_first = flags & 2;
  d->residual = flags & 4;
  d->activation = (pph_activation)(flags >> 3 & 3);
  d->accuracy = (pph_accuracy)(flags >> 5 & 3);
  if (d->accuracy > PPH_ACCURACY_EXACT)
    d->accuracy = PPH_ACCURACY_EXACT;
  d->cpu = (pph_cpu)take(from, PPH_CPU_NEON);
  d->threads = 1 + (uint32_t)take(from, THREADS - 1);
  d->low = (float)take(from, 9) - 7;
  d->high = d->low + (float)take(from, 20);
  d->slope = (float)take(from, 4) - 2;
}

/* Sets one field to anything at all. */
static void spoil(byte_source *from, problem *p) {
  pph_conv_desc *d = &p->desc;
  int64_t field = take(from, 15), value = take_any(from);
  int64_t *const fields[] = {
      &d->group,         &d->in_channels,  &d->out_channels,
      &d->kernel[0],     &d->stride[0],    &d->dilation[0],
      &d->pad_begin[0],  &d->pad_end[0],   &d->output_padding[0],
      &p->batch,         &p->input[0],     &p->input[1]};
  if ((size_t)field < sizeof fields / sizeof *fields)
    *fields[field] = value;
  else if (field == 12)
    d->weight_bytes = (uint64_t)value;
  else if (field == 13)
    p->limits.heap_bytes = (uint64_t)value % 100000 + 1;
  else if (field == 14)
    d->threads = (uint32_t)value;
  else
    d->axes = (uint32_t)value;
}

static void take_problem(byte_source *from, problem *p) {
  pph_conv_desc *d = &p->desc;
  p->transposed = take(from, 3) > 0;
  pph_conv_desc_init(d);
  p->limits = fuzz_limits();
  d->limits = &p->limits;
  d->axes = 1 + (uint32_t)take(from, 2);
  p->batch = 1 + take(from, 2);
  take_channels(from, d);
  for (uint32_t i = 0; i < d->axes; i++)
    take_axis(from, p, (int)i);
  take_options(from, d);
  if (take(from, 7) == 7)
    spoil(from, p);
}

/* Data */

static float *make_values(size_t count, uint32_t state, int64_t size) {
  float *values = malloc(count * sizeof *values + 1);
  for (size_t i = 0; values && i < count; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)((int64_t)(state >> 8) % (2 * size + 1) - size);
  }
  return values;
}

static void make_weights(problem *p, uint32_t state) {
  size_t outs = (size_t)p->desc.out_channels;
  p->w = make_values(p->weight_count, state, 2);
  p->bias = state & 1 << 20 ? make_values(outs, state, 9) : NULL;
  p->slopes = make_values(outs, state, 2);
  p->desc.slopes = p->slopes;
}

static void make_tensors(problem *p, uint32_t state) {
  p->x = make_values(p->inputs, state, 3);
  p->residual = make_values(p->outputs, state, 9);
}

static void drop(problem *p) {
  float *all[] = {p->x, p->w, p->bias, p->residual, p->slopes};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    free(all[i]);
}

/* The number of weights; false when no operator may have that many. */
static bool count_weights(problem *p) {
  const pph_conv_desc *d = &p->desc;
  double count = (double)d->in_channels * (double)d->out_channels;
  if (d->group < 1 || d->axes < 1 || d->axes > PPH_MAX_AXES ||
      d->in_channels < 1 || d->out_channels < 1)
    return false;
  count /= (double)d->group;
  for (uint32_t i = 0; i < d->axes; i++)
    count *= (double)d->kernel[i];
  p->weight_count = (size_t)(count >= 1 && count < 1 << 20 ? count : 0);
  return p->weight_count > 0 && d->out_channels < 1 << 20;
}

static bool count_tensors(problem *p) {
  double inputs = (double)p->batch * (double)p->desc.in_channels;
  double outputs = (double)p->batch * (double)p->desc.out_channels;
  double places = 1;
  for (uint32_t i = 0; i < p->desc.axes; i++) {
    inputs *= (double)p->input[i];
    outputs *= (double)p->output[i];
    places *= (double)(p->transposed ? p->input[i] : p->output[i]);
  }
  p->inputs = (size_t)inputs;
  p->outputs = (size_t)outputs;
  return (double)p->batch * places * (double)p->weight_count +
             inputs + outputs <
         MOST_FLOPS;
}

/* Running */

static void fail(const problem *p, const char *what, size_t i, float got,
                 float right) {
  const pph_conv_desc *d = &p->desc;
  fprintf(stderr, "%s, %s, %s: element %zu is %.9g, not %.9g\n", what,
          d->algorithm ? d->algorithm : "any", p->transposed ? "up" : "plain",
          i, (double)got, (double)right);
  for (uint32_t k = 0; k < d->axes; k++)
    fprintf(stderr, "i%d k%d s%d d%d p%d,%d op%d\n", (int)p->input[k],
            (int)d->kernel[k], (int)d->stride[k], (int)d->dilation[k],
            (int)d->pad_begin[k], (int)d->pad_end[k],
            (int)d->output_padding[k]);
  fprintf(stderr, "n%d g%d ci%d co%d\n", (int)p->batch, (int)d->group,
          (int)d->in_channels, (int)d->out_channels);
  abort();
}

static pph_conv_op *create(const problem *p, const pph_conv_desc *desc,
                           pph_heap *heap) {
  pph_conv_weights weights = {.transposed = p->transposed,
                              .weights = p->w,
                              .bias = p->bias};
  pph_conv_op *op;
  pph_error error;
  pph_status status = pph_conv_op_create(desc, &weights, heap, &op, &error);
  if ((status == PPH_OK) != (op != NULL))
    abort();
  return op;
}

/* Runs a shaped operator; the output is the caller's. */
static float *run(const problem *p, const pph_conv_op *op, size_t workspace) {
  static pph_thread_pool *pool;
  if (!pool && pph_thread_pool_create(THREADS, &pool, NULL) != PPH_OK)
    abort();
  float *output = malloc(p->outputs * sizeof *output + 1);
  void *room = aligned_alloc(64, workspace + 64);
  if (!output || !room)
    abort();
  memset(output, 0xff, p->outputs * sizeof *output);
  pph_conv_tensors tensors = {.input = p->x,
                              .residual = p->desc.residual ? p->residual : NULL,
                              .output = output,
                              .workspace = room,
                              .pool = pool};
  if (pph_conv_op_run(op, &tensors, NULL) != PPH_OK)
    abort();
  free(room);
  return output;
}

/* By the reference algorithm, at a level whose multiply-adds are fused or not:
   on integers that makes no difference. */
static float *run_reference(const problem *p, pph_activation activation) {
  pph_conv_desc desc = p->desc;
  pph_heap heap;
  int64_t output[PPH_MAX_AXES];
  size_t bytes;
  pph_heap_init(&heap, NULL, 0);
  desc.algorithm = "reference";
  desc.activation = activation;
  desc.limits = NULL;
  pph_conv_op *op = create(p, &desc, &heap);
  if (!op || pph_conv_op_reshape(op, p->batch, p->input, output, &bytes,
                                 NULL) != PPH_OK)
    abort();
  float *result = run(p, op, bytes);
  pph_conv_op_destroy(op);
  return result;
}

static void make_positive(float *values, size_t count) {
  for (size_t i = 0; values && i < count; i++)
    values[i] = fabsf(values[i]);
}

/* The sums of the sizes of all terms. Spoils the data. */
static float *run_sizes(problem *p) {
  make_positive(p->x, p->inputs);
  make_positive(p->w, p->weight_count);
  make_positive(p->bias, (size_t)p->desc.out_channels);
  make_positive(p->residual, p->outputs);
  return run_reference(p, PPH_ACTIVATION_NONE);
}

static void compare(problem *p, const float *result, const float *right,
                    double bound) {
  for (size_t i = 0; i < p->outputs && bound == 0; i++)
    if (result[i] != right[i])
      fail(p, "exact", i, result[i], right[i]);
  if (bound == 0)
    return;
  float *sizes = run_sizes(p); /* slopes are at most 2 */
  for (size_t i = 0; i < p->outputs; i++)
    if (!(fabs((double)result[i] - (double)right[i]) <=
          2 * bound * (double)sizes[i] / (1 << 23)))
      fail(p, "E", i, result[i], right[i]);
  free(sizes);
}

/* All of a signal in pieces of `from`'s lengths, which must join to `right`. */
static void run_stream(const problem *p, byte_source *from, const float *right) {
  pph_conv_stream_options options;
  pph_conv_stream_options_init(&options);
  options.longest = 12;
  pph_conv_stream *stream;
  pph_status status =
      (p->transposed ? pph_conv_stream_create_transposed
                     : pph_conv_stream_create)(&p->desc, &options, p->w,
                                               p->bias, &stream, NULL);
  if (status != PPH_OK)
    return;
  int64_t step = pph_conv_stream_explain(stream).step, written;
  size_t channels = (size_t)p->desc.out_channels, done = 0;
  float *output = malloc(p->outputs * sizeof *output + 1);
  for (int64_t at = 0, count; at < p->input[0]; at += count) {
    count = (1 + take(from, 12 / step - 1)) * step;
    count = count < p->input[0] - at ? count : p->input[0] - at;
    if (pph_conv_stream_push(stream, p->x + at * p->desc.in_channels, count,
                             output + done * channels, &written,
                             NULL) != PPH_OK)
      abort();
    done += (size_t)written;
  }
  if (pph_conv_stream_flush(stream, output + done * channels, &written,
                            NULL) != PPH_OK ||
      (done + (size_t)written) * channels != p->outputs)
    abort();
  for (size_t i = 0; i < p->outputs; i++)
    if (output[i] != right[i])
      fail(p, "stream", i, output[i], right[i]);
  free(output);
  pph_conv_stream_destroy(stream);
}

static bool is_streamed(const problem *p) {
  const pph_conv_desc *d = &p->desc;
  return d->axes == 1 && p->batch == 1 && !d->residual &&
         d->accuracy == PPH_ACCURACY_EXACT && !d->input_channels_first &&
         !d->output_channels_first &&
         (p->transposed || p->input[0] % d->stride[0] == 0);
}

/* Shapes and runs an operator once. */
static void run_once(problem *p, pph_conv_op *op, byte_source *from) {
  size_t workspace;
  if (pph_conv_op_reshape(op, p->batch, p->input, p->output, &workspace,
                          NULL) != PPH_OK ||
      !count_tensors(p))
    return;
  make_tensors(p, (uint32_t)p->inputs);
  float *result = run(p, op, workspace);
  float *right = run_reference(p, p->desc.activation);
  bool exact = p->desc.accuracy == PPH_ACCURACY_EXACT;
  if (is_streamed(p))
    run_stream(p, from, right);
  /* The largest E of small problems is a matter of chance. */
  compare(p, result, right,
          exact ? 0 : 4 * pph_conv_op_explain(op).error_bound);
  free(result);
  free(right);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  byte_source from = {data, size};
  problem p = {0};
  take_problem(&from, &p);
  float none = 0;
  bool countable = count_weights(&p);
  if (countable)
    make_weights(&p, (uint32_t)take_any(&from));
  else /* refused before they are read */
    p.w = &none;
  pph_heap heap;
  pph_heap_init(&heap, NULL, p.limits.heap_bytes);
  pph_conv_op *op = create(&p, &p.desc, &heap);
  if (op && !countable)
    abort();
  if (op)
    run_once(&p, op, &from);
  pph_conv_op_destroy(op);
  if (atomic_load(&heap.used))
    abort();
  if (!countable)
    p.w = NULL;
  drop(&p);
  return 0;
}
