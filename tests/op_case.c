#include "op_case.h"

#include <math.h>
#include <pthreadpool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/heap.h"

/* A tensor that ends at a page which must not be touched. */
typedef struct guarded {
  float *data;
  size_t count, pages;
  void *map;
} guarded;

static guarded guard(size_t count) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = count * sizeof(float);
  guarded g = {.count = count, .pages = (bytes + page - 1) / page * page};
  g.map = mmap(NULL, g.pages + page, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(g.map != MAP_FAILED);
  assert_int_equal(mprotect((char *)g.map + g.pages, page, PROT_NONE), 0);
  g.data = (float *)((char *)g.map + g.pages - bytes);
  return g;
}

static void unguard(guarded *g) {
  munmap(g->map, g->pages + (size_t)sysconf(_SC_PAGESIZE));
}

static guarded fill(size_t count, test_random *random) {
  guarded g = guard(count);
  for (size_t i = 0; i < count; i++)
    g.data[i] = (float)test_random_range(random, -1000, 1000) / 512;
  return g;
}

typedef struct op_case {
  pph_conv_spec spec;
  guarded input, weights, bias, slopes, residual, output;
  float *expected;
  const char *text;
} op_case;

/* Scalar kernels round twice where the processor has no fused operation. */
static float multiply_add(pph_cpu cpu, float a, float b, float c) {
  return cpu == PPH_CPU_SCALAR ? a * b + c : fmaf(a, b, c);
}

/* The input position that tap k of output o reads, or -1. */
static int64_t read_at(const pph_problem *p, int axis, int64_t o, int64_t k) {
  const pph_axis *a = &p->axes[axis];
  int64_t at = p->transposed ? o + a->pad_begin - k * a->dilation
                             : o * a->stride - a->pad_begin + k * a->dilation;
  if (p->transposed && at % a->stride != 0)
    return -1;
  at = p->transposed ? at / a->stride : at;
  return at < a->input ? at : -1;
}

/* Transposed kernels meet inputs in falling order. */
static int64_t tap(const pph_problem *p, int axis, int64_t k) {
  return p->transposed ? p->axes[axis].kernel - 1 - k : k;
}

static float add_pixel(const op_case *c, float sum, int64_t pixel, int64_t taps,
                       int64_t o) {
  const pph_problem *p = &c->spec.problem;
  int64_t ins = p->in_channels / p->group, outs = p->out_channels / p->group;
  int64_t kernel = p->axes[PPH_HEIGHT].kernel * p->axes[PPH_WIDTH].kernel;
  for (int64_t i = 0; i < ins; i++) {
    int64_t in = o / outs * ins + i;
    int64_t w = p->transposed ? in * outs + o % outs : o * ins + i;
    sum = multiply_add(c->spec.cpu, c->input.data[pixel * p->in_channels + in],
                       c->weights.data[w * kernel + taps], sum);
  }
  return sum;
}

static float finish(const op_case *c, float sum, int64_t o, size_t at) {
  const pph_conv_spec *spec = &c->spec;
  if (spec->bias)
    sum += spec->bias[o];
  if (spec->residual)
    sum += c->residual.data[at];
  if (spec->slopes && sum < 0)
    sum *= spec->slopes[o];
  if (sum < spec->low)
    sum = spec->low;
  return sum > spec->high ? spec->high : sum;
}

static float define(const op_case *c, int64_t image, int64_t y, int64_t x,
                    int64_t o, size_t at) {
  const pph_problem *p = &c->spec.problem;
  const pph_axis *height = &p->axes[PPH_HEIGHT], *width = &p->axes[PPH_WIDTH];
  float sum = 0;
  for (int64_t i = 0; i < height->kernel; i++)
    for (int64_t j = 0; j < width->kernel; j++) {
      int64_t ky = tap(p, PPH_HEIGHT, i), kx = tap(p, PPH_WIDTH, j);
      int64_t iy = read_at(p, PPH_HEIGHT, y, ky);
      int64_t ix = read_at(p, PPH_WIDTH, x, kx);
      if (iy < 0 || ix < 0)
        continue;
      int64_t pixel = (image * height->input + iy) * width->input + ix;
      sum = add_pixel(c, sum, pixel, ky * width->kernel + kx, o);
    }
  return finish(c, sum, o, at);
}

static void define_all(const op_case *c) {
  const pph_problem *p = &c->spec.problem;
  size_t at = 0;
  for (int64_t image = 0; image < p->batch * p->axes[PPH_DEPTH].output; image++)
    for (int64_t y = 0; y < p->axes[PPH_HEIGHT].output; y++)
      for (int64_t x = 0; x < p->axes[PPH_WIDTH].output; x++)
        for (int64_t o = 0; o < p->out_channels; o++, at++)
          c->expected[at] = define(c, image, y, x, o, at);
}

static size_t count_pixels(const pph_problem *p, bool output) {
  size_t count = (size_t)p->batch;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    count *= (size_t)(output ? p->axes[i].output : p->axes[i].input);
  return count;
}

static void make_case(op_case *c, const char *text, uint64_t seed) {
  pph_error error = {0};
  test_random random = {seed};
  memset(c, 0, sizeof *c);
  c->text = text;
  pph_conv_spec *spec = &c->spec;
  pph_problem *p = &spec->problem;
  test_assert_ok(pph_problem_parse(text, p, &error), &error);
  size_t outputs = count_pixels(p, true) * (size_t)p->out_channels;
  size_t kernel =
      (size_t)(p->axes[PPH_HEIGHT].kernel * p->axes[PPH_WIDTH].kernel);
  c->input = fill(count_pixels(p, false) * (size_t)p->in_channels, &random);
  c->weights = fill(
      (size_t)(p->in_channels / p->group * p->out_channels) * kernel, &random);
  c->bias = fill((size_t)p->out_channels, &random);
  c->slopes = fill((size_t)p->out_channels, &random);
  c->residual = fill(outputs, &random);
  c->output = guard(outputs);
  c->expected = malloc((outputs + 1) * sizeof(float));
  assert_non_null(c->expected);
  spec->weights = c->weights.data;
  uint64_t kind = test_random_next(&random);
  spec->bias = kind & 1 ? c->bias.data : NULL;
  spec->slopes = (kind & 6) == 6 ? c->slopes.data : NULL;
  spec->residual = (kind & 24) == 24;
  spec->low = kind & 32 ? -INFINITY : -1;
  spec->high = kind & 32 ? INFINITY : 2;
}

static void free_case(op_case *c) {
  guarded *all[] = {&c->input,  &c->weights,  &c->bias,
                    &c->slopes, &c->residual, &c->output};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    unguard(all[i]);
  free(c->expected);
}

static void run_case(const pph_algo *algo, op_case *c, pph_thread_pool *pool) {
  pph_heap heap;
  pph_error error = {0};
  pph_algo_plan plan = {.algo = algo};
  pph_heap_init(&heap, NULL, 0);
  test_assert_ok(algo->prepare(algo, &c->spec, &heap, &plan, &error), &error);
  void *workspace =
      pph_heap_allocate(&heap, c->spec.threads, plan.thread_bytes);
  memset(c->output.data, 0xff, c->output.count * sizeof(float));
  algo->run(&plan, &c->spec,
            &(pph_conv_tensors){.input = c->input.data,
                                .residual =
                                    c->spec.residual ? c->residual.data : NULL,
                                .output = c->output.data,
                                .workspace = workspace,
                                .pool = pool});
  pph_heap_release(&heap, workspace);
  if (algo->release)
    algo->release(&heap, &plan);
  assert_int_equal(heap.used, 0);
}

static void compare(const op_case *c) {
  for (size_t i = 0; i < c->output.count; i++)
    if (c->output.data[i] != c->expected[i])
      fail_msg("%s: %s, %u threads: element %zu is %.9g, should be %.9g",
               c->text, pph_cpu_name(c->spec.cpu), c->spec.threads, i,
               (double)c->output.data[i], (double)c->expected[i]);
}

void op_case_check(const pph_algo *algo, const char *text, uint64_t seed) {
  static const uint32_t threads[] = {1, 3};
  op_case c;
  make_case(&c, text, seed);
  for (pph_cpu cpu = PPH_CPU_SCALAR; cpu <= PPH_CPU_NEON; cpu++) {
    if (pph_cpu_choose(cpu) != cpu)
      continue;
    c.spec.cpu = cpu;
    if (cpu != PPH_CPU_AVX512) /* the same as for AVX2 */
      define_all(&c);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
      c.spec.threads = threads[i];
      if (!algo->supports(algo, &c.spec))
        fail_msg("%s: not supported", text);
      pthreadpool_t pool =
          threads[i] > 1 ? pthreadpool_create(threads[i]) : NULL;
      run_case(algo, &c, pool);
      if (pool)
        pthreadpool_destroy(pool);
      compare(&c);
    }
  }
  free_case(&c);
}

static int64_t pick(test_random *random, const int64_t *values, size_t count) {
  return values[test_random_range(random, 0, (int64_t)count - 1)];
}

static void random_axes(test_random *random, bool transposed, char *text,
                        size_t size) {
  static const int64_t kernels[] = {1, 2, 3, 3, 4, 4, 5, 7};
  static const int64_t strides[] = {1, 1, 2, 2, 3, 4};
  int64_t k[2], s[2], d[2], op[2], pad[4];
  bool flat = test_random_range(random, 0, 3) == 0;
  for (int i = 0; i < 2; i++) {
    bool one = flat && i == 0;
    k[i] = one ? 1 : pick(random, kernels, 8);
    s[i] = one ? 1 : pick(random, strides, 6);
    d[i] = one || test_random_range(random, 0, 2) ? 1 : 2;
    op[i] = transposed && !one ? test_random_range(random, 0, s[i] - 1) : 0;
    pad[i] = one ? 0 : test_random_range(random, 0, k[i]);
    pad[i + 2] = one ? 0 : test_random_range(random, 0, k[i]);
  }
  int length = snprintf(text, size, "i%dx%d k%dx%d s%dx%d d%dx%d p%d,%d,%d,%d",
                        flat ? 1 : (int)test_random_range(random, 1, 9),
                        (int)test_random_range(random, 1, 24), (int)k[0],
                        (int)k[1], (int)s[0], (int)s[1], (int)d[0], (int)d[1],
                        (int)pad[0], (int)pad[1], (int)pad[2], (int)pad[3]);
  if (transposed)
    snprintf(text + length, size - (size_t)length, " op%dx%d", (int)op[0],
             (int)op[1]);
}

void op_case_random(const op_case_range *range, test_random *random, char *text,
                    size_t size) {
  for (;;) {
    bool transposed = test_random_range(random, 0, 1);
    int64_t group = test_random_range(random, 1, range->groups);
    int64_t ins = test_random_range(random, 1, range->ins);
    int64_t outs =
        range->equal ? ins : test_random_range(random, 1, range->outs);
    char axes[128];
    random_axes(random, transposed, axes, sizeof axes);
    snprintf(text, size, "%sf32 n%d g%d ci%d co%d %s",
             transposed ? "" : "conv ", (int)test_random_range(random, 1, 2),
             (int)group, (int)(group * ins), (int)(group * outs), axes);
    pph_problem problem;
    if (pph_problem_parse(text, &problem, NULL) == PPH_OK &&
        problem.axes[PPH_HEIGHT].output > 0 &&
        problem.axes[PPH_WIDTH].output > 0)
      return;
  }
}
