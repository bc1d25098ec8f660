#include "run_steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "model_inputs.h"
#include "npy.h"

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
  int64_t count = 0;
  for (uint32_t i = 0; i < all->file_count; i++)
    if (all->inputs[i] == input)
      count += count_in_file(all, model, i);
  return count;
}

static pph_status agree(step_inputs *all, const pph_model *model,
                        pph_error *error) {
  uint32_t inputs = pph_model_input_count(model);
  all->steps = 1;
  for (uint32_t i = 0; i < inputs; i++) {
    int64_t count = count_steps(all, model, i);
    if (count < 1)
      return pph_fail(error, PPH_INVALID_ARGUMENT, "",
                      "input \"%s\" has no steps: give --input '%s=FILE.npy'",
                      pph_model_input(model, i).name,
                      pph_model_input(model, i).name);
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

pph_status step_inputs_load(const tool_options *options,
                            const pph_model *model, step_inputs *all,
                            pph_error *error) {
  *all = (step_inputs){.file_count = 0};
  for (uint32_t i = 0; i < options->inputs.count; i++) {
    const char *path;
    PPH_TRY(model_inputs_require_known(model, options->inputs.texts[i],
                                       &all->inputs[i], &path, error));
    PPH_TRY(npy_load(path, &all->files[i], error));
    all->file_count++;
  }
  return agree(all, model, error);
}

void step_inputs_clear(step_inputs *all) {
  for (uint32_t i = 0; i < all->file_count; i++)
    free(all->files[i].data);
  all->file_count = 0;
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
    pph_tensor found = all->files[i];
    if (!is_stacked(all, model, i))
      return found;
    size_t bytes = 0;
    found.shape.rank--;
    memmove(found.shape.dims, found.shape.dims + 1,
            (size_t)found.shape.rank * sizeof *found.shape.dims);
    (void)pph_shape_bytes(&found.shape, found.type, &bytes);
    found.data = (char *)found.data + (size_t)step * bytes;
    return found;
  }
  return (pph_tensor){.data = NULL};
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
  pph_status status = PPH_OK;
  for (int64_t k = 0; k < all->steps && status == PPH_OK; k++) {
    for (uint32_t i = 0; i < input_count; i++)
      tensors[i] = find_step(all, model, i, k);
    status = pph_session_run(session, tensors, input_count, results,
                             output_count, error);
    for (uint32_t i = 0; i < output_count && status == PPH_OK; i++)
      status = append(&results[i], all->steps, k,
                      pph_model_output(model, i).name, &outputs[i], error);
  }
  free(tensors);
  return status;
}
