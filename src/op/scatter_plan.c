/* What scatter multiplies, and the room it takes. */
#include "op/scatter_plan.h"

#include "base/checked.h"

enum {
  MAX_WORKSPACE = 1 << 20,
  MAX_CHANNELS = 1 << 16,
  MAX_TAPS = 1 << 16,
  MAX_PIXELS = 1 << 14,
  MAX_OUTPUTS = 1 << 20,
  LINE_FLOATS = 16,
  LOT_FLOATS = 64 * 1024 /* sums that stay in level 2 beside weights */
};

/* Products */

/* Kernel columns [first, first + joined) of an axis. */
static pph_scatter_span find_span(const pph_axis *axis, bool transposed,
                                  int64_t first, int64_t joined) {
  int64_t step = axis->stride;
  int64_t shift = axis->pad_begin - first * axis->dilation;
  if (!transposed) { /* input = output * step - shift */
    int64_t begin = pph_max_i64(0, pph_ceil_div(shift, step));
    int64_t end = pph_min_i64(axis->output,
                              pph_ceil_div(axis->input + shift, step));
    return (pph_scatter_span){begin * step - shift, begin,
                              pph_max_i64(end - begin, 0), step, 1};
  }
  int64_t begin = pph_max_i64(0, pph_ceil_div(shift - joined + 1, step));
  int64_t end =
      pph_min_i64(axis->input, pph_ceil_div(axis->output + shift, step));
  return (pph_scatter_span){begin, begin * step - shift,
                            pph_max_i64(end - begin, 0), 1, step};
}

/* Joined columns lie within one stride, so that no output has two of them. */
static int64_t block_length(const pph_problem *problem) {
  return problem->transposed ? problem->axes[PPH_WIDTH].stride : 1;
}

pph_scatter_product pph_scatter_find(const pph_scatter_plan *plan,
                                     const pph_problem *problem,
                                     size_t index) {
  const pph_axis *axes = problem->axes, *width = &axes[PPH_WIDTH];
  pph_scatter_product product;
  /* Inputs in rising order: a transposed convolution's kernel falls. */
  if (problem->transposed)
    index = plan->all - 1 - index;
  int64_t block = block_length(problem);
  int64_t each = pph_ceil_div(block, plan->joined); /* products of a block */
  int64_t group = (int64_t)(index % plan->groups);
  index /= plan->groups;
  int64_t within = group % each * plan->joined;
  int64_t first = group / each * block + within;
  product.joined = pph_min_i64(plan->joined,
                               pph_min_i64(block - within,
                                           width->kernel - first));
  product.taps[PPH_WIDTH] = first;
  product.taps[PPH_HEIGHT] = (int64_t)index % axes[PPH_HEIGHT].kernel;
  product.taps[PPH_DEPTH] = (int64_t)index / axes[PPH_HEIGHT].kernel;
  product.rows = (size_t)problem->batch;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    product.spans[i] =
        find_span(&axes[i], problem->transposed, product.taps[i],
                  i == PPH_WIDTH ? product.joined : 1);
    product.rows *= (size_t)product.spans[i].count;
  }
  return product;
}

bool pph_scatter_same(const pph_scatter_product *a,
                      const pph_scatter_product *b) {
  bool same = true;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++)
    same = same && a->spans[i].input == b->spans[i].input &&
           a->spans[i].count == b->spans[i].count;
  return same;
}

/* Plan */

/* Whether sizes are such that nothing below can overflow. */
static bool is_short(const pph_problem *problem) {
  size_t pixels = 1, outputs = 1, taps = 1;
  if (problem->batch > PPH_SCATTER_MAX_ROWS ||
      problem->in_channels > MAX_CHANNELS ||
      problem->out_channels > MAX_CHANNELS)
    return false;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    const pph_axis *axis = &problem->axes[i];
    if (axis->input > MAX_PIXELS || axis->output > MAX_OUTPUTS ||
        axis->kernel > MAX_TAPS)
      return false;
    pixels *= (size_t)axis->input;
    outputs *= (size_t)axis->output;
    taps *= (size_t)axis->kernel;
    if (taps > MAX_TAPS || outputs > MAX_OUTPUTS || pixels > MAX_PIXELS)
      return false;
  }
  size_t rows = problem->transposed ? pixels : outputs;
  return rows * (size_t)problem->batch <= PPH_SCATTER_MAX_ROWS;
}

static void count_products(const pph_problem *problem,
                           pph_scatter_plan *plan) {
  const pph_axis *axes = problem->axes, *width = &axes[PPH_WIDTH];
  int64_t block = block_length(problem);
  int64_t groups = width->kernel / block * pph_ceil_div(block, plan->joined) +
                   pph_ceil_div(width->kernel % block, plan->joined);
  plan->groups = (size_t)groups;
  plan->all =
      (size_t)(axes[PPH_DEPTH].kernel * axes[PPH_HEIGHT].kernel * groups);
  for (size_t i = 0; i < plan->all; i++) {
    pph_scatter_product product = pph_scatter_find(plan, problem, i);
    if (!product.rows)
      continue;
    plan->count++;
    plan->rows = plan->rows > product.rows ? plan->rows : product.rows;
    plan->slice_floats +=
        (size_t)problem->in_channels *
        pph_scatter_width(plan, (size_t)product.joined * plan->channels);
  }
  plan->streams = sizeof(float) * plan->slice_floats * plan->slices >
                  pph_cpu_cache2() / 2;
}

/* Slices and lots: enough for the threads. */
static void choose_channels(const pph_conv_spec *spec,
                            pph_scatter_plan *plan) {
  size_t channels = (size_t)spec->problem.out_channels;
  size_t threads = spec->threads;
  plan->channels = plan->gemm->columns;
  while (plan->channels > plan->gemm->lanes &&
         pph_divide_up(channels, plan->channels) < threads)
    plan->channels -= plan->gemm->lanes;
  plan->channels = plan->channels < channels ? plan->channels : channels;
  plan->slices = pph_divide_up(channels, plan->channels);
  plan->lot_slices = LOT_FLOATS / (plan->outputs * plan->channels + 1);
  size_t most = threads > 1 ? plan->slices / (2 * threads) : plan->slices;
  plan->lot_slices = plan->lot_slices < most ? plan->lot_slices : most;
  plan->lot_slices += !plan->lot_slices;
  plan->lots = pph_divide_up(plan->slices, plan->lot_slices);
}

bool pph_scatter_make(const pph_conv_spec *spec, pph_scatter_plan *plan) {
  const pph_problem *p = &spec->problem;
  if (p->group != 1 || !is_short(p))
    return false;
  *plan = (pph_scatter_plan){.gemm = pph_kernel_find("f32_gemm", spec->cpu)};
  plan->pixels = plan->outputs = (size_t)p->batch;
  for (int i = 0; i < PPH_PROBLEM_AXES; i++) {
    plan->pixels *= (size_t)p->axes[i].input;
    plan->outputs *= (size_t)p->axes[i].output;
  }
  choose_channels(spec, plan);
  bool joins = p->transposed && p->axes[PPH_WIDTH].dilation == 1 &&
               plan->lot_slices == 1;
  plan->joined =
      joins ? (int64_t)(plan->gemm->columns / plan->channels) : 1;
  count_products(p, plan);
  size_t channels = (size_t)p->in_channels;
  plan->panel_floats = pph_round_up(channels, PPH_GEMM_CHUNK) * plan->rows;
  plan->input_floats =
      spec->input_channels_first && plan->pixels > 1
          ? pph_round_up(plan->pixels * channels, LINE_FLOATS)
          : 0;
  plan->sum_floats =
      pph_round_up(plan->outputs * plan->lot_slices * plan->channels,
                   LINE_FLOATS);
  plan->edge_floats =
      plan->joined > 1 ? (size_t)plan->gemm->rows * plan->gemm->columns : 0;
  size_t floats = plan->panel_floats + plan->input_floats + plan->sum_floats +
                  plan->edge_floats;
  plan->bytes = pph_round_up(sizeof(float) * floats, PPH_ALIGNMENT);
  return plan->bytes <= MAX_WORKSPACE;
}
