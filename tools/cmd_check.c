/* polyphase check: do two models give the same outputs? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval_rules.h"
#include "check.h"
#include "npy.h"
#include "report.h"
#include "pte_file.h"
#include "run_steps.h"
#include "tuning.h"

/* A model with its session and last outputs. */
typedef struct side {
  const char *path;
  pph_model *model;
  pph_session *session;
  pph_tensor *outputs;
  uint32_t output_count;
  bool owned; /* the outputs' data, by malloc */
} side;

static void clear_side(side *one) {
  for (uint32_t i = 0; one->owned && i < one->output_count; i++)
    free(one->outputs[i].data);
  pph_session_destroy(one->session);
  pph_model_destroy(one->model);
  free(one->outputs);
}

/* One model alone is judged by the reference: its own graph as it is in the
   file, computed with sums in double. */
static pph_session_options judge_options(const tool_options *options) {
  pph_session_options judge = options->session;
  judge.engine = PPH_ENGINE_REFERENCE;
  judge.optimize = false;
  judge.lowering = PPH_LOWERING_NEVER;
  return judge;
}

static pph_status open_side(const tool_options *options, bool is_second,
                            side *one, pph_error *error) {
  bool judges = is_second && options->argument_count == 1;
  const char *path = options->arguments[is_second && !judges];
  pph_session_options session =
      judges ? judge_options(options) : options->session;
  one->path = path;
  PPH_TRY(tool_load_model(options, path, &one->model, error));
  PPH_TRY(pph_session_create(one->model, &session, &one->session, error));
  one->output_count = pph_model_output_count(one->model);
  one->outputs = calloc(one->output_count + 1, sizeof *one->outputs);
  one->owned = options->steps && one->outputs;
  return one->outputs ? PPH_OK : pph_fail_memory(error);
}

/* Of what is a number. */
static void find_range(const pph_tensor *b, size_t count,
                       check_row *result) {
  result->low = result->high = fabs((double)NAN); /* not -nan */
  for (size_t i = 0; i < count; i++) {
    double value = pph_number_real(b, (int64_t)i);
    result->low = fmin(result->low, value);
    result->high = fmax(result->high, value);
  }
}

void check_compare(const tool_options *options, const pph_tensor *a,
                   const pph_tensor *b, check_row *result) {
  size_t count = 0;
  result->same_shape = a->type == b->type &&
                       pph_shape_equal(&a->shape, &b->shape) &&
                       pph_shape_count(&a->shape, &count);
  result->types[0] = a->type;
  result->types[1] = b->type;
  result->shapes[0] = a->shape;
  result->shapes[1] = b->shape;
  find_range(b, count, result);
  double peak = fmax(fabs(result->low), fabs(result->high));
  double fixed = options->absolute +
                 (isfinite(peak) ? options->of_peak * peak : 0);
  result->tolerance = fixed + options->relative * peak;
  for (size_t i = 0; result->same_shape && i < count; i++) {
    double x = pph_number_real(a, (int64_t)i);
    double y = pph_number_real(b, (int64_t)i);
    if (isnan(x) && isnan(y))
      continue;
    double distance = x == y ? 0 : fabs(x - y);
    if (!(distance <= fixed + options->relative * fabs(y)))
      result->different++;
    if (isnan(distance) || distance > result->worst) {
      result->worst = distance;
      result->worst_at = i;
    }
  }
  result->elements = count;
}

static void report(const tool_options *options, const char *name,
                   const pph_tensor *a, const pph_tensor *b, bool *same) {
  check_row row = {.name = name};
  check_compare(options, a, b, &row);
  *same &= row.same_shape && row.different == 0;
  check_report_add(&row, options->json);
}

/* What the files of --expect hold, and of which outputs. */
typedef struct stored_outputs {
  pph_tensor tensors[MAX_PAIRS];
  uint32_t outputs[MAX_PAIRS], count;
} stored_outputs;

static pph_status load_stored(const tool_options *options,
                              const pph_model *model, stored_outputs *stored,
                              pph_error *error) {
  for (; stored->count < options->expected.count; stored->count++) {
    uint32_t i = stored->count;
    const char *path;
    PPH_TRY(model_output_require_known(model, options->expected.texts[i],
                                       &stored->outputs[i], &path, error));
    for (uint32_t k = 0; k < i; k++)
      if (stored->outputs[k] == stored->outputs[i])
        return pph_fail(error, PPH_INVALID_ARGUMENT, options->expected.texts[i],
                        "output \"%s\" is given twice",
                        pph_model_output(model, stored->outputs[i]).name);
    PPH_TRY(npy_load(path, &stored->tensors[i], error));
  }
  return PPH_OK;
}

static bool compare_stored(const tool_options *options, const side *a,
                           const stored_outputs *stored) {
  bool same = true;
  check_report_begin(options->json);
  for (uint32_t i = 0; i < stored->count; i++) {
    uint32_t index = stored->outputs[i];
    report(options, pph_model_output(a->model, index).name, &a->outputs[index],
           &stored->tensors[i], &same);
  }
  check_report_end(same, options->json);
  return same;
}

/* What goes into both sides. */
typedef struct given_inputs {
  model_inputs once;
  step_inputs stream; /* instead, with --steps */
} given_inputs;

/* `fill`: random values where none are given. */
static pph_status load_inputs(const tool_options *options,
                              const pph_model *model, bool fill,
                              given_inputs *inputs, pph_error *error) {
  if (options->steps)
    return step_inputs_load(options, model, fill, &inputs->stream, error);
  PPH_TRY(model_inputs_load(options, model, &inputs->once, error));
  return fill ? model_inputs_fill(options, model, &inputs->once, error)
              : model_inputs_require(model, &inputs->once, error);
}

/* Of two models an error tells which. */
static pph_status run_side(const tool_options *options,
                           const given_inputs *inputs, side *one,
                           pph_error *error) {
  pph_status status =
      options->steps
          ? step_inputs_run(&inputs->stream, one->model, one->session,
                            one->outputs, error)
          : pph_session_run(one->session, inputs->once.tensors,
                            inputs->once.count, one->outputs,
                            one->output_count, error);
  return options->argument_count > 1
             ? pph_error_in_file(error, one->path, status)
             : status;
}

/* Stored outputs belong to stored inputs. */
static pph_status run_inputs(const tool_options *options, side *a,
                             given_inputs *inputs, pph_error *error) {
  uint32_t count = options->inputs.count + options->feeds.count;
  if (count < pph_model_input_count(a->model))
    return pph_fail(error, PPH_INVALID_ARGUMENT, "check",
                    "--expect takes every input by --input: the model has %u, "
                    "%u given",
                    pph_model_input_count(a->model), count);
  PPH_TRY(load_inputs(options, a->model, false, inputs, error));
  PPH_TRY(run_side(options, inputs, a, error));
  tuning_report(options, a->session);
  return PPH_OK;
}

static pph_status check_stored(const tool_options *options, side *a,
                               given_inputs *inputs, bool *same,
                               pph_error *error) {
  if (options->argument_count > 1)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "check",
                    "--expect compares one model, two are given");
  PPH_TRY(open_side(options, false, a, error));
  stored_outputs stored = {.count = 0};
  pph_status status = load_stored(options, a->model, &stored, error);
  if (status == PPH_OK)
    status = run_inputs(options, a, inputs, error);
  if (status == PPH_OK)
    *same = compare_stored(options, a, &stored);
  for (uint32_t i = 0; i < stored.count; i++)
    free(stored.tensors[i].data);
  return status;
}

static pph_status compare_sides(const tool_options *options, side *a, side *b,
                                given_inputs *inputs, bool *same,
                                pph_error *error) {
  PPH_TRY(open_side(options, false, a, error));
  PPH_TRY(open_side(options, true, b, error));
  PPH_TRY(load_inputs(options, a->model, true, inputs, error));
  if (a->output_count != b->output_count)
    return pph_fail(error, PPH_INVALID_ARGUMENT, options->arguments[1],
                    "has %u outputs, %s has %u", b->output_count,
                    options->arguments[0], a->output_count);
  if (pph_model_input_count(a->model) != pph_model_input_count(b->model))
    return pph_fail(error, PPH_INVALID_ARGUMENT, options->arguments[1],
                    "has %u inputs, %s has %u",
                    pph_model_input_count(b->model), options->arguments[0],
                    pph_model_input_count(a->model));
  PPH_TRY(run_side(options, inputs, a, error));
  PPH_TRY(run_side(options, inputs, b, error));
  tuning_report(options, a->session);
  if (options->argument_count > 1)
    tuning_report(options, b->session);
  *same = true;
  if (!options->steps && !options->json)
    report_print_shapes(a->model, inputs->once.tensors, "for");
  check_report_begin(options->json);
  for (uint32_t i = 0; i < a->output_count; i++)
    report(options, pph_model_output(a->model, i).name, &a->outputs[i],
           &b->outputs[i], same);
  check_report_end(*same, options->json);
  return PPH_OK;
}

static int check_own_cases(const tool_options *options) {
  pph_error error = {0};
  bool same;
  if (check_bundle(options, &same, &error) != PPH_OK)
    return tool_fail(&error);
  return same ? EXIT_DONE : EXIT_NO;
}

int cmd_check(const tool_options *options) {
  pph_error error = {0};
  side a = {0}, b = {0};
  given_inputs inputs = {0};
  bool same = false;
  bool asks = options->inputs.count || options->shapes.count || options->steps;
  if (options->argument_count == 1 && !options->expected.count && !asks &&
      pte_file_is_bundle(options->arguments[0]))
    return check_own_cases(options);
  pph_status status =
      options->expected.count
          ? check_stored(options, &a, &inputs, &same, &error)
          : compare_sides(options, &a, &b, &inputs, &same, &error);
  model_inputs_clear(&inputs.once);
  step_inputs_clear(&inputs.stream);
  clear_side(&a);
  clear_side(&b);
  if (status != PPH_OK)
    return tool_fail(&error);
  return same ? EXIT_DONE : EXIT_NO;
}
