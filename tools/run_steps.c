#include "run_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/loaded_model.h"
#include "sound_tensor.h"

static pph_shape declared(const pph_model *model, uint32_t input) {
  return pph_model_input(model, input).shape;
}

/* Whether the file has a first dimension of steps. */
static bool is_stacked(const step_inputs *all, const pph_model *model,
                       uint32_t file) {
  int32_t rank = declared(model, all->inputs[file]).rank;
  return rank >= 0 && rank < PPH_MAX_RANK &&
         all->files[file].shape.rank == rank + 1;
}

static int64_t count_in_file(const step_inputs *all, const pph_model *model,
                             uint32_t file) {
  return is_stacked(all, model, file) ? all->files[file].shape.dims[0] : 1;
}

static int64_t count_steps(const step_inputs *all, const pph_model *model,
                           uint32_t input) {
  int64_t count = all->made.tensors[input].data != NULL;
  for (uint32_t i = 0; i < all->file_count; i++)
    if (all->inputs[i] == input)
      count += count_in_file(all, model, i);
  return count;
}

/* Whether an output could be the input's next value, by what is declared. */
static bool could_feed(const pph_model *model, uint32_t output,
                       uint32_t input) {
  pph_value_info from = pph_model_output(model, output);
  pph_value_info to = pph_model_input(model, input);
  return from.type == to.type && to.shape.rank > 0 &&
         pph_shape_equal(&from.shape, &to.shape);
}

/* An input without values: where they may come from. */
static pph_status fail_missing(const pph_model *model, uint32_t input,
                               pph_error *error) {
  const char *name = pph_model_input(model, input).name;
  char outputs[160] = "";
  size_t at = 0;
  for (uint32_t i = 0; i < pph_model_output_count(model); i++)
    if (could_feed(model, i, input) && at < sizeof outputs)
      at += (size_t)snprintf(outputs + at, sizeof outputs - at, "%s\"%s\"",
                             at ? ", " : "", pph_model_output(model, i).name);
  return pph_fail(error, PPH_INVALID_ARGUMENT, "",
                  "input \"%s\" has no steps: give --input '%s=FILE.npy', or, "
                  "if it is a state, --feed 'OUTPUT=%s' with the output that "
                  "is its next value%s%s",
                  name, name, name, at ? ", perhaps " : "", outputs);
}

static pph_status agree(step_inputs *all, const pph_model *model,
                        pph_error *error) {
  uint32_t inputs = pph_model_input_count(model);
  all->steps = 1;
  for (uint32_t i = 0; i < inputs; i++) {
    int64_t count = count_steps(all, model, i);
    if (count < 1)
      return fail_missing(model, i, error);
    all->steps = pph_max_i64(all->steps, count);
  }
  for (uint32_t i = 0; i < inputs; i++) {
    int64_t count = count_steps(all, model, i);
    if (count != 1 && count != all->steps)
      return pph_fail(error, PPH_INVALID_ARGUMENT, "",
                      "input \"%s\" has %lld steps, another input %lld",
                      pph_model_input(model, i).name, (long long)count,
                      (long long)all->steps);
  }
  return PPH_OK;
}

static bool has_file(const step_inputs *all, uint32_t input) {
  for (uint32_t i = 0; i < all->file_count; i++)
    if (all->inputs[i] == input)
      return true;
  return false;
}

/* Zeros to begin with need a shape. */
static pph_status make_first(const tool_options *options,
                             const pph_model *model, uint32_t input,
                             step_inputs *all, pph_error *error) {
  pph_value_info info = pph_model_input(model, input);
  if (!pph_shape_known(&info.shape) &&
      !model_inputs_has_shape(options, model, input))
    return pph_fail(error, PPH_INVALID_ARGUMENT, info.name,
                    "its shape is not known: give its value at the first step "
                    "by --input '%s=FILE.npy'",
                    info.name);
  return model_inputs_make(options, model, input, &all->made.tensors[input],
                           error);
}

static pph_status load_feeds(const tool_options *options,
                             const pph_model *model, step_inputs *all,
                             pph_error *error) {
  for (uint32_t i = 0; i < options->feeds.count; i++) {
    const char *text = options->feeds.texts[i];
    uint32_t output, input;
    PPH_TRY(model_feed_require_known(model, text, &output, &input, error));
    if (all->feeds[input] != STEP_NO_FEED)
      return pph_fail(error, PPH_INVALID_ARGUMENT, text,
                      "input \"%s\" is fed twice",
                      pph_model_input(model, input).name);
    if (!has_file(all, input))
      PPH_TRY(make_first(options, model, input, all, error));
    int64_t count = count_steps(all, model, input);
    if (count != 1)
      return pph_fail(error, PPH_INVALID_ARGUMENT, text,
                      "input \"%s\" has %lld steps, must have the first alone",
                      pph_model_input(model, input).name, (long long)count);
    all->feeds[input] = output;
    all->made.given[input] = true;
  }
  return PPH_OK;
}

/* A state that stays as it was is seldom meant. */
static void tell_constants(const step_inputs *all, const pph_model *model) {
  for (uint32_t i = 0; i < pph_model_input_count(model); i++) {
    bool could = false;
    for (uint32_t k = 0; k < pph_model_output_count(model); k++)
      could |= could_feed(model, k, i);
    if (could && all->steps > 1 && all->feeds[i] == STEP_NO_FEED &&
        count_steps(all, model, i) == 1)
      fprintf(stderr,
              "%s: is the same at every step; --feed OUTPUT=%s would hand an "
              "output on\n",
              pph_model_input(model, i).name, pph_model_input(model, i).name);
  }
}

static pph_status init(const pph_model *model, step_inputs *all,
                       pph_error *error) {
  uint32_t count = pph_model_input_count(model);
  *all = (step_inputs){.file_count = 0};
  PPH_TRY(model_inputs_init(model, &all->made, error));
  all->feeds = calloc((size_t)count + 1, sizeof *all->feeds);
  if (!all->feeds)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < count; i++)
    all->feeds[i] = STEP_NO_FEED;
  return PPH_OK;
}

pph_status step_inputs_load(const tool_options *options,
                            const pph_model *model, bool fill,
                            step_inputs *all, pph_error *error) {
  PPH_TRY(init(model, all, error));
  for (uint32_t i = 0; i < options->inputs.count; i++) {
    const char *path;
    PPH_TRY(model_inputs_require_known(model, options->inputs.texts[i],
                                       &all->inputs[i], &path, error));
    pph_value_info info = pph_model_input(model, all->inputs[i]);
    PPH_TRY(sound_or_array_load(path, &info, &all->files[i], &all->sound_rate,
                                error));
    all->file_count++;
    all->made.given[all->inputs[i]] = true;
  }
  PPH_TRY(load_feeds(options, model, all, error));
  if (fill)
    PPH_TRY(model_inputs_fill(options, model, &all->made, error));
  PPH_TRY(agree(all, model, error));
  tell_constants(all, model);
  return PPH_OK;
}

void step_inputs_clear(step_inputs *all) {
  for (uint32_t i = 0; i < all->file_count; i++)
    free(all->files[i].data);
  model_inputs_clear(&all->made);
  free(all->feeds);
  all->feeds = NULL;
  all->file_count = 0;
}

/* One step of steps along the first dimension. */
static pph_tensor take_step(const pph_tensor *steps, int64_t step) {
  pph_tensor one = *steps;
  size_t bytes = 0;
  one.shape.rank--;
  memmove(one.shape.dims, one.shape.dims + 1,
          (size_t)one.shape.rank * sizeof *one.shape.dims);
  (void)pph_shape_bytes(&one.shape, one.type, &bytes);
  one.data = (char *)one.data + (size_t)step * bytes;
  return one;
}

/* The input at a step: a file, or a part of one. */
static pph_tensor find_step(const step_inputs *all, const pph_model *model,
                            uint32_t input, int64_t step) {
  if (count_steps(all, model, input) == 1)
    step = 0;
  for (uint32_t i = 0; i < all->file_count; i++) {
    if (all->inputs[i] != input)
      continue;
    int64_t count = count_in_file(all, model, i);
    if (step >= count) {
      step -= count;
      continue;
    }
    return is_stacked(all, model, i) ? take_step(&all->files[i], step)
                                     : all->files[i];
  }
  return all->made.tensors[input];
}

/* Appends what a step gave; the first one says how much room all take. */
static pph_status append(const pph_tensor *result, int64_t steps, int64_t step,
                         const char *name, pph_tensor *output,
                         pph_error *error) {
  pph_shape stacked = {.rank = result->shape.rank + 1, .dims = {steps}};
  char found[128];
  size_t bytes, all;
  if (result->shape.rank == PPH_MAX_RANK)
    return pph_fail(error, PPH_UNSUPPORTED, name,
                    "the output has %d dimensions, no room for steps",
                    result->shape.rank);
  memcpy(stacked.dims + 1, result->shape.dims,
         (size_t)result->shape.rank * sizeof *stacked.dims);
  if (!pph_shape_bytes(&result->shape, result->type, &bytes) ||
      !pph_shape_bytes(&stacked, result->type, &all))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, name, "too many steps");
  if (step == 0) {
    *output = (pph_tensor){result->type, stacked, malloc(all + 64)};
    if (!output->data)
      return pph_fail_memory(error);
  }
  if (!pph_shape_equal(&stacked, &output->shape))
    return pph_fail(error, PPH_INVALID_ARGUMENT, name,
                    "step %lld gives shape %s, the steps before another: they "
                    "cannot be put into one file",
                    (long long)step,
                    pph_shape_text(&result->shape, found, sizeof found));
  if (bytes)
    memcpy((char *)output->data + (size_t)step * bytes, result->data, bytes);
  return PPH_OK;
}

/* The plan for the first step knows what every output will be. */
static pph_status check_feeds(const step_inputs *all, const pph_model *model,
                              pph_session *session, const pph_tensor *first,
                              pph_error *error) {
  uint32_t count = pph_model_input_count(model);
  char found[128], wanted[128];
  PPH_TRY(pph_session_prepare(session, first, count, error));
  const pph_graph *graph = &session->current->graph;
  for (uint32_t i = 0; i < count; i++) {
    if (all->feeds[i] == STEP_NO_FEED)
      continue;
    const pph_value *from =
        pph_graph_value(graph, graph->outputs[all->feeds[i]]);
    if (from->type != first[i].type ||
        !pph_shape_equal(&from->shape, &first[i].shape))
      return pph_fail(error, PPH_INVALID_ARGUMENT,
                      pph_model_input(model, i).name,
                      "is %s %s, output \"%s\" that --feed hands to it %s %s",
                      pph_dtype_name(first[i].type),
                      pph_shape_text(&first[i].shape, wanted, sizeof wanted),
                      pph_model_output(model, all->feeds[i]).name,
                      pph_dtype_name(from->type),
                      pph_shape_text(&from->shape, found, sizeof found));
  }
  return PPH_OK;
}

/* What is fed is the last step of what the outputs hold so far. */
static void find_inputs(const step_inputs *all, const pph_model *model,
                        int64_t step, const pph_tensor *outputs,
                        pph_tensor *inputs) {
  for (uint32_t i = 0; i < pph_model_input_count(model); i++)
    inputs[i] = step > 0 && all->feeds[i] != STEP_NO_FEED
                    ? take_step(&outputs[all->feeds[i]], step - 1)
                    : find_step(all, model, i, step);
}

pph_status step_inputs_run(const step_inputs *all, const pph_model *model,
                           pph_session *session, pph_tensor *outputs,
                           pph_error *error) {
  uint32_t input_count = pph_model_input_count(model);
  uint32_t output_count = pph_model_output_count(model);
  pph_tensor *tensors =
      calloc((size_t)input_count + output_count + 1, sizeof *tensors);
  if (!tensors)
    return pph_fail_memory(error);
  pph_tensor *results = tensors + input_count;
  find_inputs(all, model, 0, outputs, tensors);
  pph_status status = check_feeds(all, model, session, tensors, error);
  for (int64_t k = 0; k < all->steps && status == PPH_OK; k++) {
    find_inputs(all, model, k, outputs, tensors);
    status = pph_session_run(session, tensors, input_count, results,
                             output_count, error);
    for (uint32_t i = 0; i < output_count && status == PPH_OK; i++)
      status = append(&results[i], all->steps, k,
                      pph_model_output(model, i).name, &outputs[i], error);
  }
  free(tensors);
  return status;
}
