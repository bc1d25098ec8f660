/* oneDNN, interface version 2. It chooses its layouts; bringing the data into
   them and back is not timed. */
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

#include "contest.h"
#include "measure.h"

enum { SOURCE, WEIGHTS, BIAS, TARGET, TENSORS };

typedef struct onednn {
  const bench_case *one;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_desc_t choice;
  dnnl_primitive_t primitive;
  dnnl_memory_t inside[TENSORS]; /* in its own layouts */
  dnnl_memory_desc_t plain[TENSORS];
} onednn;

#define TRY(call)                                                              \
  do {                                                                         \
    if ((call) != dnnl_success)                                                \
      return false;                                                            \
  } while (0)

static void describe_image(dnnl_memory_desc_t *desc, int64_t n, int64_t c,
                           int64_t h, int64_t w) {
  dnnl_dims_t dims = {n, c, h, w};
  (void)dnnl_memory_desc_init_by_tag(desc, 4, dims, dnnl_f32, dnnl_nchw);
}

/* oneDNN's order is [group,] out, in, height, width; ONNX has in before out in
   transposed ones: a matter of strides. */
static void describe_weights(const pph_problem *p, dnnl_memory_desc_t *desc) {
  int64_t ci = p->in_channels / p->group, co = p->out_channels / p->group;
  int64_t kh = p->axes[PPH_HEIGHT].kernel, kw = p->axes[PPH_WIDTH].kernel;
  int64_t taps = kh * kw;
  int64_t out = p->transposed ? taps : ci * taps;
  int64_t in = p->transposed ? co * taps : taps;
  dnnl_dims_t dims = {p->group, co, ci, kh, kw};
  dnnl_dims_t strides = {ci * co * taps, out, in, kw, 1};
  int skip = p->group == 1;
  (void)dnnl_memory_desc_init_by_strides(desc, 5 - skip, dims + skip, dnnl_f32,
                                         strides + skip);
}

static dnnl_memory_desc_t free_layout(const dnnl_memory_desc_t *plain) {
  dnnl_memory_desc_t any;
  (void)dnnl_memory_desc_init_by_tag(&any, plain->ndims, plain->dims, dnnl_f32,
                                     dnnl_format_tag_any);
  return any;
}

static bool choose(onednn *it) {
  const pph_problem *p = &it->one->problem;
  const pph_axis *y = &p->axes[PPH_HEIGHT], *x = &p->axes[PPH_WIDTH];
  dnnl_dims_t strides = {y->stride, x->stride};
  dnnl_dims_t dilates = {y->dilation - 1, x->dilation - 1};
  dnnl_dims_t begin = {y->pad_begin, x->pad_begin};
  dnnl_dims_t end = {y->pad_end - y->output_padding,
                     x->pad_end - x->output_padding};
  dnnl_memory_desc_t any[TENSORS];
  for (int i = 0; i < TENSORS; i++)
    any[i] = free_layout(&it->plain[i]);
  if (p->transposed) {
    dnnl_deconvolution_desc_t op;
    TRY(dnnl_dilated_deconvolution_forward_desc_init(
        &op, dnnl_forward_inference, dnnl_deconvolution_direct, &any[SOURCE],
        &any[WEIGHTS], &any[BIAS], &any[TARGET], strides, dilates, begin, end));
    TRY(dnnl_primitive_desc_create(&it->choice, &op, NULL, it->engine, NULL));
  } else {
    dnnl_convolution_desc_t op;
    TRY(dnnl_dilated_convolution_forward_desc_init(
        &op, dnnl_forward_inference, dnnl_convolution_auto, &any[SOURCE],
        &any[WEIGHTS], &any[BIAS], &any[TARGET], strides, dilates, begin, end));
    TRY(dnnl_primitive_desc_create(&it->choice, &op, NULL, it->engine, NULL));
  }
  TRY(dnnl_primitive_create(&it->primitive, it->choice));
  return true;
}

static bool reorder(onednn *it, dnnl_memory_t from, dnnl_memory_t to) {
  const dnnl_memory_desc_t *a, *b;
  dnnl_primitive_desc_t choice;
  dnnl_primitive_t primitive;
  TRY(dnnl_memory_get_memory_desc(from, &a));
  TRY(dnnl_memory_get_memory_desc(to, &b));
  TRY(dnnl_reorder_primitive_desc_create(&choice, a, it->engine, b, it->engine,
                                         NULL));
  dnnl_status_t status = dnnl_primitive_create(&primitive, choice);
  dnnl_primitive_desc_destroy(choice);
  TRY(status);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  status = dnnl_primitive_execute(primitive, it->stream, 2, args);
  if (status == dnnl_success)
    status = dnnl_stream_wait(it->stream);
  dnnl_primitive_destroy(primitive);
  return status == dnnl_success;
}

/* Between the plain tensor at `data` and the layout inside. */
static bool move(onednn *it, int which, float *data, bool in) {
  dnnl_memory_t outside;
  TRY(dnnl_memory_create(&outside, &it->plain[which], it->engine, data));
  bool ok = in ? reorder(it, outside, it->inside[which])
               : reorder(it, it->inside[which], outside);
  dnnl_memory_destroy(outside);
  return ok;
}

static bool make_tensors(onednn *it) {
  static const dnnl_query_t queries[] = {
      dnnl_query_src_md, dnnl_query_weights_md, 0, dnnl_query_dst_md};
  float *data[] = {it->one->input, it->one->weights, it->one->bias};
  for (int i = 0; i < TENSORS; i++) {
    const dnnl_memory_desc_t *desc =
        i == BIAS ? &it->plain[BIAS]
                  : dnnl_primitive_desc_query_md(it->choice, queries[i], 0);
    TRY(dnnl_memory_create(&it->inside[i], desc, it->engine,
                           DNNL_MEMORY_ALLOCATE));
    if (i != TARGET && !move(it, i, data[i], true))
      return false;
  }
  return true;
}

static bool make_all(onednn *it) {
  const pph_problem *p = &it->one->problem;
  const pph_axis *y = &p->axes[PPH_HEIGHT], *x = &p->axes[PPH_WIDTH];
  dnnl_dims_t channels = {p->out_channels};
  describe_image(&it->plain[SOURCE], p->batch, p->in_channels, y->input,
                 x->input);
  describe_image(&it->plain[TARGET], p->batch, p->out_channels, y->output,
                 x->output);
  describe_weights(p, &it->plain[WEIGHTS]);
  TRY(dnnl_memory_desc_init_by_tag(&it->plain[BIAS], 1, channels, dnnl_f32,
                                   dnnl_a));
  TRY(dnnl_engine_create(&it->engine, dnnl_cpu, 0));
  TRY(dnnl_stream_create(&it->stream, it->engine, dnnl_stream_default_flags));
  return choose(it) && make_tensors(it);
}

static void close_onednn(void *state) {
  onednn *it = state;
  for (int i = 0; i < TENSORS; i++)
    if (it->inside[i])
      dnnl_memory_destroy(it->inside[i]);
  if (it->primitive)
    dnnl_primitive_destroy(it->primitive);
  if (it->choice)
    dnnl_primitive_desc_destroy(it->choice);
  if (it->stream)
    dnnl_stream_destroy(it->stream);
  if (it->engine)
    dnnl_engine_destroy(it->engine);
  free(it);
}

/* The number of threads is OpenMP's: run.py sets OMP_NUM_THREADS. */
static void *open_onednn(const bench_case *one, const bench_options *options,
                         char *message) {
  (void)options;
  onednn *it = calloc(1, sizeof *it);
  if (!it)
    return NULL;
  it->one = one;
  if (make_all(it))
    return it;
  snprintf(message, BENCH_TEXT, "oneDNN does not run it");
  close_onednn(it);
  return NULL;
}

static double run_onednn(void *state) {
  onednn *it = state;
  dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, it->inside[SOURCE]},
                            {DNNL_ARG_WEIGHTS, it->inside[WEIGHTS]},
                            {DNNL_ARG_BIAS, it->inside[BIAS]},
                            {DNNL_ARG_DST, it->inside[TARGET]}};
  double start = measure_now();
  dnnl_status_t status =
      dnnl_primitive_execute(it->primitive, it->stream, TENSORS, args);
  if (status == dnnl_success)
    status = dnnl_stream_wait(it->stream);
  double stop = measure_now();
  return status == dnnl_success ? stop - start : -1;
}

static void read_onednn(void *state, float *output) {
  (void)move(state, TARGET, output, false);
}

static void describe_onednn(void *state, char *text) {
  onednn *it = state;
  const char *name = "";
  (void)dnnl_primitive_desc_query(it->choice, dnnl_query_impl_info_str, 0,
                                  &name);
  snprintf(text, BENCH_TEXT, "{\"algorithm\": \"%s\"}", name);
}

const bench_rival bench_rival_onednn = {"onednn",        open_onednn,
                                        run_onednn,      read_onednn,
                                        describe_onednn, close_onednn};
