/* polyphase bench */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "measure.h"
#include "model_inputs.h"
#include "operator_bench.h"
#include "progress.h"
#include "report.h"
#include "tuning.h"

/* One session's timed runs. */
typedef struct model_run {
  pph_session *session;
  pph_tensor *outputs;
  uint32_t output_count;
  measure_samples whole;
  measure_samples *steps; /* per step */
  uint32_t step_count;
} model_run;

static void clear_run(model_run *run) {
  for (uint32_t i = 0; run->steps && i < run->step_count; i++)
    measure_clear(&run->steps[i]);
  free(run->steps);
  free(run->outputs);
  measure_clear(&run->whole);
  pph_session_destroy(run->session);
  *run = (model_run){0};
}

static pph_status start_run(const pph_model *model,
                            const pph_session_options *options,
                            const model_inputs *inputs, model_run *run,
                            pph_error *error) {
  *run = (model_run){.output_count = pph_model_output_count(model)};
  run->outputs = calloc(run->output_count + 1, sizeof *run->outputs);
  if (!run->outputs)
    return pph_fail_memory(error);
  progress bar;
  pph_session_options shown = *options;
  shown.tune_progress = tuning_show;
  shown.progress_context = &bar;
  progress_begin(&bar, "planning", 0);
  PPH_TRY(pph_session_create(model, &shown, &run->session, error));
  PPH_TRY(pph_session_run(run->session, inputs->tensors, inputs->count,
                          run->outputs, run->output_count, error));
  run->step_count = pph_session_plan(run->session).steps;
  run->steps = calloc(run->step_count + 1, sizeof *run->steps);
  return run->steps ? PPH_OK : pph_fail_memory(error);
}

static pph_status time_once(model_run *run, const model_inputs *inputs,
                            pph_error *error) {
  double start = measure_now();
  PPH_TRY(pph_session_run(run->session, inputs->tensors, inputs->count,
                          run->outputs, run->output_count, error));
  measure_add(&run->whole, measure_now() - start);
  for (uint32_t i = 0; i < run->step_count; i++)
    measure_add(&run->steps[i],
                pph_session_step(run->session, i).microseconds);
  return PPH_OK;
}

/* Interleaved, at least five rounds. */
static pph_status time_runs(model_run *runs, int count,
                            const model_inputs *inputs, double seconds,
                            pph_error *error) {
  double start = measure_now(), wanted = seconds * 1e6 * count;
  pph_status status = PPH_OK;
  progress bar;
  progress_begin(&bar, "measuring", (uint64_t)wanted);
  for (int rounds = 0; status == PPH_OK &&
                       (rounds < 5 || measure_now() - start < wanted);
       rounds++) {
    for (int i = 0; status == PPH_OK && i < count; i++)
      status = time_once(&runs[i], inputs, error);
    progress_update(&bar, (uint64_t)(measure_now() - start));
  }
  progress_end(&bar);
  return status;
}

static report_step describe_step(model_run *run, uint32_t index) {
  report_step row = {pph_session_step(run->session, index),
                     measure_median(&run->steps[index]), 0};
  if (row.us > 0)
    row.gflops = row.info.flops / row.us * 1e-3;
  return row;
}

static pph_status print_run(const tool_options *options, model_run *run,
                            pph_error *error) {
  report_step *rows = calloc(run->step_count + 1, sizeof *rows);
  if (!rows)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < run->step_count; i++)
    rows[i] = describe_step(run, i);
  report_bench bench = {.model = options->arguments[0],
                        .threads = options->session.threads,
                        .us = measure_median(&run->whole),
                        .us_min = measure_least(&run->whole),
                        .plan = pph_session_plan(run->session),
                        .steps = rows,
                        .step_count = run->step_count};
  report_print_bench(&bench, options->json);
  free(rows);
  return PPH_OK;
}

/* Median time of all steps that come from the node of this name. */
static double node_time(model_run *run, const char *name) {
  double sum = 0;
  for (uint32_t i = 0; i < run->step_count; i++) {
    pph_step_info step = pph_session_step(run->session, i);
    if (strcmp(step.name, name) == 0 && strcmp(step.kind, "Relayout") != 0)
      sum += measure_median(&run->steps[i]);
  }
  return sum;
}

/* --compare: run 0 keeps XNNPACK's own deconvolution, run 1 is ours. */
static void print_comparison(model_run *runs, bool json) {
  uint32_t count = pph_session_plan(runs[1].session).notes;
  report_compared whole = {.name = "the whole net",
                           .before = measure_median(&runs[0].whole),
                           .after = measure_median(&runs[1].whole)};
  report_begin_compared(json);
  for (uint32_t i = 0; i < count; i++) {
    pph_note_info note = pph_session_note(runs[1].session, i);
    report_compared row = {note.name, note.kind, note.lowered, note.reason,
                           node_time(&runs[0], note.name),
                           node_time(&runs[1], note.name)};
    report_print_compared(&row, json);
  }
  report_end_compared(&whole, json);
}

static pph_status bench_model(const tool_options *options,
                              const pph_model *model, model_inputs *inputs,
                              model_run *runs, pph_error *error) {
  PPH_TRY(model_inputs_load(options, model, inputs, error));
  PPH_TRY(model_inputs_fill(options, model, inputs, error));
  int count = 0;
  if (options->compare) {
    pph_session_options before = options->session;
    before.lowering = PPH_LOWERING_NEVER;
    before.engine = PPH_ENGINE_XNNPACK;
    PPH_TRY(start_run(model, &before, inputs, &runs[count++], error));
  }
  PPH_TRY(start_run(model, &options->session, inputs, &runs[count++], error));
  tuning_report(options, runs[count - 1].session);
  PPH_TRY(time_runs(runs, count, inputs, options->seconds, error));
  if (!options->json)
    report_print_shapes(model, inputs->tensors, "for");
  if (options->compare) {
    print_comparison(runs, options->json);
    return PPH_OK;
  }
  return print_run(options, &runs[0], error);
}

static int bench_file(const tool_options *options) {
  pph_error error = {0};
  pph_model *model;
  if (tool_load_model(options, options->arguments[0], &model, &error) != PPH_OK)
    return tool_fail(&error);
  model_inputs inputs = {0};
  model_run runs[2] = {0};
  pph_status status = bench_model(options, model, &inputs, runs, &error);
  clear_run(&runs[0]);
  clear_run(&runs[1]);
  model_inputs_clear(&inputs);
  pph_model_destroy(model);
  return status == PPH_OK ? EXIT_DONE : tool_fail(&error);
}

static int bench_operator(const tool_options *options) {
  pph_error error = {0};
  operator_bench bench;
  if (operator_bench_run(options, &bench, &error) != PPH_OK)
    return tool_fail(&error);
  report_print_operator(&bench, options->json);
  for (uint32_t i = 0; i < bench.count; i++)
    if (!bench.candidates[i].verified)
      return EXIT_NO;
  return EXIT_DONE;
}

/* What contradicts itself; NULL when nothing does. */
static const char *find_conflict(const tool_options *options) {
  bool xnnpack = options->session.engine == PPH_ENGINE_AUTO ||
                 options->session.engine == PPH_ENGINE_XNNPACK;
  if ((options->argument_count == 1) == (options->op != NULL))
    return "give either a MODEL or --op DESCRIPTOR";
  if (options->op && options->compare)
    return "--compare is for models; --op compares anyway";
  if (!xnnpack && options->compare)
    return "--compare measures XNNPACK: --engine must be auto or xnnpack";
  if (options->op && options->session.tune)
    return "--tune is for models; --op measures every algorithm anyway";
  if (options->op && options->session.engine == PPH_ENGINE_REFERENCE)
    return "--op verifies by the reference: --engine must be auto, native or "
           "xnnpack";
  return NULL;
}

int cmd_bench(const tool_options *options) {
  const char *conflict = find_conflict(options);
  if (conflict) {
    fprintf(stderr, "polyphase bench: %s\n", conflict);
    return EXIT_USAGE;
  }
  const char *ignored = tool_options_find_given(
      options, " input shape polyphase no-optimize dump method constants ");
  if (options->op && ignored) {
    fprintf(stderr, "polyphase bench: --%s is for models, --op has none\n",
            ignored);
    return EXIT_USAGE;
  }
  return options->op ? bench_operator(options) : bench_file(options);
}
