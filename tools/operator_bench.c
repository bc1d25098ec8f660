#include "operator_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "operator_native.h"
#include "progress.h"
#include "random_fill.h"
#include "runtime/program.h"

/* The ways to run the operator by XNNPACK. */
static const struct {
  const char *name;
  pph_engine engine;
  pph_polyphase_mode mode;
  bool transposed_only;
} ways[] = {
    {"xnnpack.deconvolution", PPH_ENGINE_XNNPACK, PPH_POLYPHASE_NEVER, true},
    {"xnnpack.polyphase", PPH_ENGINE_XNNPACK, PPH_POLYPHASE_ALWAYS, true},
    {"xnnpack.convolution", PPH_ENGINE_XNNPACK, PPH_POLYPHASE_NEVER, false},
};
enum { WAYS = sizeof ways / sizeof *ways };

typedef struct contender {
  pph_conv_op *op;      /* a native one, or */
  pph_program *program; /* a graph with its block */
  void *block;
  measure_samples samples;
} contender;

typedef struct bench_state {
  pph_heap heap;
  pph_graph graph;
  pph_backend_context context;
  pph_tensor input, expected;
  pph_conv_weights weights; /* the graph's constants */
  operator_native native;
  double magnitude; /* what sum |x||w| of an output is about */
  contender contenders[MAX_CANDIDATES];
} bench_state;

static pph_status make_tensor(pph_heap *heap, const pph_shape *shape,
                              pph_tensor *tensor, pph_error *error) {
  size_t count;
  if (!pph_shape_count(shape, &count))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "--op", "tensors too large");
  *tensor = (pph_tensor){PPH_F32, *shape, NULL};
  tensor->data = pph_heap_allocate(heap, count + 16, sizeof(float));
  if (!tensor->data)
    return pph_fail_memory(error);
  random_fill(tensor->data, count, -1, (uint32_t)count + 1);
  return PPH_OK;
}

static pph_status add_weights(bench_state *state, const pph_problem *problem,
                              pph_id *ids, pph_error *error) {
  int64_t per_group = problem->transposed
                          ? problem->out_channels / problem->group
                          : problem->in_channels / problem->group;
  int axes = pph_problem_count_axes(problem);
  pph_shape shapes[2] = {{2 + axes,
                          {problem->transposed ? problem->in_channels
                                               : problem->out_channels,
                           per_group}},
                         {1, {problem->out_channels}}};
  for (int i = 0; i < axes; i++)
    shapes[0].dims[2 + i] = problem->axes[PPH_PROBLEM_AXES - axes + i].kernel;
  for (int i = 0; i < 2; i++) {
    pph_tensor tensor;
    PPH_TRY(make_tensor(&state->heap, &shapes[i], &tensor, error));
    PPH_TRY(pph_graph_add_constant(&state->graph, i ? "b" : "w", &tensor,
                                   &ids[i], error));
    pph_heap_release(&state->heap, tensor.data);
  }
  state->weights = (pph_conv_weights){
      .transposed = problem->transposed,
      .borrowed = true,
      .weights = pph_graph_value(&state->graph, ids[0])->data,
      .bias = pph_graph_value(&state->graph, ids[1])->data};
  return PPH_OK;
}

static pph_status set_geometry(bench_state *state, const pph_problem *problem,
                               pph_node *node, pph_error *error) {
  size_t axes = (size_t)pph_problem_count_axes(problem);
  int64_t strides[PPH_MAX_AXES], dilations[PPH_MAX_AXES];
  int64_t pads[2 * PPH_MAX_AXES], extra[PPH_MAX_AXES];
  for (size_t i = 0; i < axes; i++) {
    const pph_axis *axis = &problem->axes[PPH_PROBLEM_AXES - axes + i];
    strides[i] = axis->stride;
    dilations[i] = axis->dilation;
    pads[i] = axis->pad_begin;
    pads[axes + i] = axis->pad_end;
    extra[i] = axis->output_padding;
  }
  pph_graph *graph = &state->graph;
  PPH_TRY(pph_node_set_int(graph, node, PPH_ATTR_GROUP, problem->group,
                           error));
  PPH_TRY(
      pph_node_set_ints(graph, node, PPH_ATTR_STRIDES, strides, axes, error));
  PPH_TRY(pph_node_set_ints(graph, node, PPH_ATTR_DILATIONS, dilations, axes,
                            error));
  PPH_TRY(
      pph_node_set_ints(graph, node, PPH_ATTR_PADS, pads, 2 * axes, error));
  if (!problem->transposed)
    return PPH_OK;
  return pph_node_set_ints(graph, node, PPH_ATTR_OUTPUT_PADDING, extra, axes,
                           error);
}

static pph_status build_graph(bench_state *state, const pph_problem *problem,
                              pph_error *error) {
  pph_graph *graph = &state->graph;
  pph_id x, y, ids[3];
  pph_node *node;
  int axes = pph_problem_count_axes(problem);
  pph_shape shape = {2 + axes, {problem->batch, problem->in_channels}};
  for (int i = 0; i < axes; i++)
    shape.dims[2 + i] = problem->axes[PPH_PROBLEM_AXES - axes + i].input;
  PPH_TRY(make_tensor(&state->heap, &shape, &state->input, error));
  PPH_TRY(pph_graph_add_value(graph, "x", &x, error));
  pph_value *value = pph_graph_value(graph, x);
  value->type = PPH_F32;
  value->has_rank = true;
  value->shape = shape;
  ids[0] = x;
  PPH_TRY(add_weights(state, problem, ids + 1, error));
  PPH_TRY(pph_graph_add_node(
      graph, problem->transposed ? PPH_NODE_CONV_TRANSPOSE : PPH_NODE_CONV,
      "op", NULL, &node, error));
  PPH_TRY(pph_node_set_inputs(graph, node, ids, 3, error));
  PPH_TRY(pph_graph_add_value(graph, "y", &y, error));
  PPH_TRY(pph_node_set_outputs(graph, node, &y, 1, error));
  PPH_TRY(set_geometry(state, problem, node, error));
  PPH_TRY(pph_graph_set_inputs(graph, &x, 1, error));
  return pph_graph_set_outputs(graph, &y, 1, error);
}

static pph_status make_program(bench_state *state, pph_engine engine,
                               pph_polyphase_mode mode, contender *made,
                               pph_error *error) {
  pph_program_options options = {.engine = engine};
  pph_pass_options_init(&options.passes);
  options.passes.polyphase = mode;
  options.passes.choose_layout = engine != PPH_ENGINE_REFERENCE;
  PPH_TRY(pph_program_create(&state->graph, &state->input, &options,
                             &state->context, &made->program, error));
  made->block =
      pph_heap_allocate(&state->heap, made->program->block_bytes, 1);
  return made->block ? PPH_OK : pph_fail_memory(error);
}

static pph_status run_once(bench_state *state, contender *one,
                           pph_tensor *output, pph_error *error) {
  return pph_program_run(one->program, &state->context, &state->input,
                         one->block, output, error);
}

/* Everything but the layout changes at the graph's edges, which a net around
   the operator would not have. */
static double step_time(const pph_program *program) {
  double sum = 0;
  for (uint32_t i = 0; i < program->step_count; i++)
    if (program->steps[i].node->kind != PPH_NODE_RELAYOUT)
      sum += program->microseconds[i];
  return sum;
}

/* Whether any step of the main work fell back to another backend. */
static bool stays_in(const pph_program *program, const char *backend) {
  for (uint32_t i = 0; i < program->step_count; i++) {
    pph_node_kind kind = program->steps[i].node->kind;
    if ((kind == PPH_NODE_CONV || kind == PPH_NODE_CONV_TRANSPOSE) &&
        strcmp(program->steps[i].backend->name, backend) != 0)
      return false;
  }
  return true;
}

/* The largest |a-b|; close: within 1e-4, or within `rounding`, what long sums
   may lose, where that is more. */
static double compare(const pph_tensor *a, const pph_tensor *b,
                      double rounding, bool *close) {
  size_t count = 0;
  double worst = 0, absolute = fmax(1e-4, rounding);
  *close = pph_shape_equal(&a->shape, &b->shape) &&
           pph_shape_count(&a->shape, &count);
  const float *x = a->data, *y = b->data;
  for (size_t i = 0; *close && i < count; i++) {
    double distance = fabs((double)x[i] - (double)y[i]);
    if (distance > worst)
      worst = distance;
    if (!(distance <= absolute + 1e-4 * fabs((double)y[i])))
      *close = false;
  }
  return worst;
}

static pph_status make_reference(bench_state *state, pph_error *error) {
  contender judge = {0};
  pph_tensor output = {0};
  pph_status status = make_program(state, PPH_ENGINE_REFERENCE,
                                   PPH_POLYPHASE_NEVER, &judge, error);
  if (status == PPH_OK)
    status = run_once(state, &judge, &output, error);
  if (status == PPH_OK)
    status = make_tensor(&state->heap, &output.shape, &state->expected, error);
  size_t bytes;
  if (status == PPH_OK && pph_shape_bytes(&output.shape, PPH_F32, &bytes))
    memcpy(state->expected.data, output.data, bytes);
  pph_heap_release(&state->heap, judge.block);
  pph_program_destroy(judge.program, &state->context);
  return status;
}

/* Verifies and counts one. */
static void add_candidate(bench_state *state, operator_bench *bench,
                          const pph_tensor *output,
                          const bench_candidate *made) {
  const double epsilon = 0x1p-23;
  bench_candidate *candidate = &bench->candidates[bench->count++];
  *candidate = *made;
  double bound = made->kernel ? made->error_bound : PPH_HIGH_BOUND;
  candidate->worst =
      compare(output, &state->expected, bound * epsilon * state->magnitude,
              &candidate->verified);
}

static pph_status add_program(bench_state *state, operator_bench *bench,
                                int way, pph_error *error) {
  contender *one = &state->contenders[bench->count];
  PPH_TRY(make_program(state, ways[way].engine, ways[way].mode, one, error));
  if (!stays_in(one->program, "xnnpack")) {
    pph_heap_release(&state->heap, one->block);
    pph_program_destroy(one->program, &state->context);
    *one = (contender){0};
    return PPH_OK;
  }
  pph_tensor output;
  PPH_TRY(run_once(state, one, &output, error));
  bench_candidate made = {0};
  snprintf(made.name, sizeof made.name, "%s", ways[way].name);
  add_candidate(state, bench, &output, &made);
  return PPH_OK;
}

static pph_status add_algorithm(bench_state *state, operator_bench *bench,
                                const pph_algo *algo, pph_tensor *output,
                                pph_error *error) {
  contender *one = &state->contenders[bench->count];
  double unused;
  PPH_TRY(operator_native_make(&state->native, algo->name, &one->op, error));
  PPH_TRY(operator_native_run(&state->native, one->op, &unused, error));
  operator_native_read(&state->native, output->data);
  pph_operator_info info = pph_conv_op_explain(one->op);
  bench_candidate made = {.kernel = info.kernel,
                          .error_bound = info.error_bound};
  snprintf(made.name, sizeof made.name, "native.%s", info.algorithm);
  add_candidate(state, bench, output, &made);
  return PPH_OK;
}

static pph_status add_algorithms(bench_state *state, operator_bench *bench,
                                 pph_error *error) {
  size_t count;
  const pph_algo *const *list = pph_algo_list(&count);
  pph_tensor output;
  PPH_TRY(make_tensor(&state->heap, &state->expected.shape, &output, error));
  pph_status status = PPH_OK;
  for (size_t i = 0; status == PPH_OK && i < count; i++)
    if (bench->count < MAX_CANDIDATES &&
        operator_native_allows(&state->native, list[i]))
      status = add_algorithm(state, bench, list[i], &output, error);
  pph_heap_release(&state->heap, output.data);
  return status;
}

/* What the operator takes when it is left the choice. */
static pph_status ask_native(bench_state *state, operator_bench *bench,
                             pph_error *error) {
  pph_conv_op *op;
  PPH_TRY(operator_native_make(&state->native, NULL, &op, error));
  snprintf(bench->chosen, sizeof bench->chosen, "native.%s",
           pph_conv_op_explain(op).algorithm);
  pph_conv_op_destroy(op);
  return PPH_OK;
}

static pph_status time_once(bench_state *state, contender *one,
                            pph_error *error) {
  double microseconds;
  if (one->op) {
    PPH_TRY(operator_native_run(&state->native, one->op, &microseconds, error));
  } else {
    pph_tensor output;
    PPH_TRY(run_once(state, one, &output, error));
    microseconds = step_time(one->program);
  }
  measure_add(&one->samples, microseconds);
  return PPH_OK;
}

static pph_status time_round(bench_state *state, const operator_bench *bench,
                             pph_error *error) {
  for (uint32_t i = 0; i < bench->count; i++)
    if (bench->candidates[i].verified)
      PPH_TRY(time_once(state, &state->contenders[i], error));
  return PPH_OK;
}

static void summarize(bench_state *state, operator_bench *bench) {
  for (uint32_t i = 0; i < bench->count; i++) {
    bench_candidate *candidate = &bench->candidates[i];
    candidate->least = measure_least(&state->contenders[i].samples);
    candidate->median = measure_median(&state->contenders[i].samples);
    if (candidate->verified &&
        (!bench->candidates[bench->fastest].verified ||
         candidate->median < bench->candidates[bench->fastest].median))
      bench->fastest = i;
  }
}

/* Rounds over all candidates, so that what disturbs one disturbs all. */
static pph_status time_all(bench_state *state, operator_bench *bench,
                           double seconds, pph_error *error) {
  double start = measure_now(), wanted = seconds * 1e6 * bench->count;
  pph_status status = PPH_OK;
  progress bar;
  progress_begin(&bar, "measuring", (uint64_t)wanted);
  for (int rounds = 0; status == PPH_OK &&
                       (rounds < 5 || measure_now() - start < wanted);
       rounds++) {
    status = time_round(state, bench, error);
    progress_update(&bar, (uint64_t)(measure_now() - start));
  }
  progress_end(&bar);
  summarize(state, bench);
  return status;
}

/* --engine leaves out the other's. */
static pph_status make_candidates(bench_state *state,
                                  const tool_options *options,
                                  operator_bench *bench, pph_error *error) {
  const pph_problem *problem = &bench->problem;
  pph_engine engine = options->session.engine;
  size_t outputs;
  PPH_TRY(build_graph(state, problem, error));
  PPH_TRY(make_reference(state, error));
  bench->flops = pph_problem_flops(problem);
  /* flops counts two per term, and random |x||w| are 1/4 on average */
  if (pph_shape_count(&state->expected.shape, &outputs))
    state->magnitude = bench->flops / (double)outputs / 8;
  for (int way = 0; way < WAYS; way++)
    if (engine != PPH_ENGINE_NATIVE &&
        ways[way].transposed_only == problem->transposed)
      PPH_TRY(add_program(state, bench, way, error));
  PPH_TRY(operator_native_init(options, problem, &state->weights,
                               state->input.data, state->context.pool,
                               &state->heap, &state->native, error));
  if (engine != PPH_ENGINE_XNNPACK)
    PPH_TRY(add_algorithms(state, bench, error));
  return ask_native(state, bench, error);
}

static pph_status run_bench(bench_state *state, const tool_options *options,
                            operator_bench *bench, pph_error *error) {
  pph_engine engine = options->session.engine;
  PPH_TRY(make_candidates(state, options, bench, error));
  if (!bench->count)
    return pph_fail(error, PPH_UNSUPPORTED, "--op",
                    "only the reference runs this operator%s",
                    engine == PPH_ENGINE_XNNPACK ? " besides our own code"
                                                 : "");
  bench->peak_gflops = measure_peak_gflops(100);
  size_t bytes;
  if (pph_shape_bytes(&state->expected.shape, PPH_F32, &bytes))
    bench->memcpy_us = measure_memcpy(bytes);
  return time_all(state, bench, options->seconds, error);
}

static void clear_state(bench_state *state) {
  for (int i = 0; i < MAX_CANDIDATES; i++) {
    pph_conv_op_destroy(state->contenders[i].op);
    pph_heap_release(&state->heap, state->contenders[i].block);
    pph_program_destroy(state->contenders[i].program, &state->context);
    measure_clear(&state->contenders[i].samples);
  }
  operator_native_clear(&state->native);
  pph_heap_release(&state->heap, state->input.data);
  pph_heap_release(&state->heap, state->expected.data);
  pph_graph_clear(&state->graph);
  pph_thread_pool_destroy(state->context.pool);
}

pph_status operator_bench_run(const tool_options *options,
                              operator_bench *bench, pph_error *error) {
  *bench = (operator_bench){.threads = options->session.threads};
  PPH_TRY(pph_problem_parse(options->op, &bench->problem, error));
  bench_state state = {0};
  pph_heap_init(&state.heap, NULL, options->limits.heap_bytes);
  pph_graph_init(&state.graph, &state.heap, &options->limits);
  state.context.heap = &state.heap;
  pph_status status = PPH_OK;
  if (options->session.threads != 1)
    status = pph_thread_pool_create(options->session.threads,
                                    &state.context.pool, error);
  if (status == PPH_OK)
    status = run_bench(&state, options, bench, error);
  clear_state(&state);
  return status;
}
