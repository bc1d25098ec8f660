#include "model_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "random_fill.h"
#include "shape_values.h"
#include "sound_tensor.h"

typedef pph_value_info describe(const pph_model *model, uint32_t index);

/* The value that `length` characters name, or whose position they are;
   UINT32_MAX: none. */
static uint32_t find_name(const pph_model *model, describe *info,
                          uint32_t count, const char *text, size_t length) {
  for (uint32_t i = 0; i < count; i++) {
    const char *name = info(model, i).name;
    if (strlen(name) == length && memcmp(name, text, length) == 0)
      return i;
  }
  char *end;
  unsigned long position = strtoul(text, &end, 10);
  return end != text && end == text + length && position < count
             ? (uint32_t)position
             : UINT32_MAX;
}

/* Among `count` values. */
static uint32_t find(const pph_model *model, describe *info, uint32_t count,
                     const char *text, const char **value) {
  /* The first '=' that leaves a known name: names may contain one. */
  for (const char *equal = strchr(text, '='); equal;
       equal = strchr(equal + 1, '=')) {
    uint32_t found =
        find_name(model, info, count, text, (size_t)(equal - text));
    *value = equal + 1;
    if (found != UINT32_MAX)
      return found;
  }
  return UINT32_MAX;
}

uint32_t model_inputs_find(const pph_model *model, const char *text,
                           const char **value) {
  return find(model, pph_model_input, pph_model_input_count(model), text,
              value);
}

static pph_status unknown(const pph_model *model, describe *info,
                          uint32_t count, const char *text, const char *what,
                          pph_error *error) {
  char names[256] = "";
  size_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    int n = snprintf(names + at, sizeof names - at, "%s\"%s\"", i ? ", " : "",
                     info(model, i).name);
    at += (size_t)n;
    if (at >= sizeof names)
      break;
  }
  return pph_fail(error, PPH_INVALID_ARGUMENT, text,
                  "the model has no such %s; it has %s", what, names);
}

static pph_status require(const pph_model *model, describe *info,
                          uint32_t count, const char *what, const char *text,
                          uint32_t *index, const char **value,
                          pph_error *error) {
  *index = find(model, info, count, text, value);
  if (*index == UINT32_MAX)
    return unknown(model, info, count, text, what, error);
  if (!**value)
    return pph_fail(error, PPH_INVALID_ARGUMENT, text,
                    "nothing follows the '='");
  return PPH_OK;
}

pph_status model_inputs_require_known(const pph_model *model, const char *text,
                                      uint32_t *index, const char **value,
                                      pph_error *error) {
  return require(model, pph_model_input, pph_model_input_count(model), "input",
                 text, index, value, error);
}

pph_status model_output_require_known(const pph_model *model, const char *text,
                                      uint32_t *index, const char **value,
                                      pph_error *error) {
  return require(model, pph_model_output, pph_model_output_count(model),
                 "output", text, index, value, error);
}

pph_status model_feed_require_known(const pph_model *model, const char *text,
                                    uint32_t *output, uint32_t *input,
                                    pph_error *error) {
  uint32_t count = pph_model_input_count(model);
  const char *name;
  PPH_TRY(model_output_require_known(model, text, output, &name, error));
  *input = find_name(model, pph_model_input, count, name, strlen(name));
  return *input == UINT32_MAX
             ? unknown(model, pph_model_input, count, text, "input", error)
             : PPH_OK;
}

pph_status model_inputs_init(const pph_model *model, model_inputs *inputs,
                             pph_error *error) {
  uint32_t count = pph_model_input_count(model);
  *inputs = (model_inputs){.count = count};
  inputs->tensors = calloc((size_t)count + 1, sizeof *inputs->tensors);
  inputs->given = calloc((size_t)count + 1, sizeof *inputs->given);
  return inputs->tensors && inputs->given ? PPH_OK : pph_fail_memory(error);
}

pph_status model_inputs_load(const tool_options *options,
                             const pph_model *model, model_inputs *inputs,
                             pph_error *error) {
  PPH_TRY(model_inputs_init(model, inputs, error));
  for (uint32_t i = 0; i < options->inputs.count; i++) {
    const char *path;
    uint32_t index;
    PPH_TRY(model_inputs_require_known(model, options->inputs.texts[i], &index,
                                       &path, error));
    if (inputs->given[index])
      return pph_fail(error, PPH_INVALID_ARGUMENT, options->inputs.texts[i],
                      "input \"%s\" is given twice",
                      pph_model_input(model, index).name);
    pph_value_info info = pph_model_input(model, index);
    PPH_TRY(sound_or_array_load(path, &info, &inputs->tensors[index],
                                &inputs->sound_rate, error));
    inputs->given[index] = true;
    if (model_inputs_has_shape(options, model, index))
      return pph_fail(error, PPH_INVALID_ARGUMENT, info.name,
                      "has its shape from %s: --shape is for inputs without a "
                      "file",
                      path);
  }
  return PPH_OK;
}

const char *model_inputs_shape_text(const pph_shape *shape, char *text,
                                    size_t size) {
  size_t at = 0;
  text[0] = 0;
  for (int32_t i = 0; i < shape->rank && at < size; i++)
    at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? "x" : "",
                           (long long)shape->dims[i]);
  return text;
}

static pph_status parse_shape(const char *text, const char *value,
                              pph_shape *shape, pph_error *error) {
  shape->rank = 0;
  for (;;) {
    char *end;
    long long dim = strtoll(value, &end, 10);
    if (end == value || dim < 0 || shape->rank == PPH_MAX_RANK)
      break;
    shape->dims[shape->rank++] = dim;
    value = end + 1;
    if (*end == 0)
      return PPH_OK;
    if (*end != 'x')
      break;
  }
  return pph_fail(error, PPH_INVALID_ARGUMENT, text,
                  "a shape is numbers with x between them, at most %d",
                  PPH_MAX_RANK);
}

bool model_inputs_has_shape(const tool_options *options,
                            const pph_model *model, uint32_t index) {
  const char *rest;
  for (uint32_t i = 0; i < options->shapes.count; i++)
    if (model_inputs_find(model, options->shapes.texts[i], &rest) == index)
      return true;
  return false;
}

pph_status model_inputs_shape(const tool_options *options,
                              const pph_model *model, uint32_t index,
                              pph_shape *shape, pph_error *error) {
  pph_value_info info = pph_model_input(model, index);
  *shape = info.shape;
  if (shape->rank < 0)
    shape->rank = 0;
  /* Which of a program's sizes may be less is not known: the bounds fit. */
  for (int32_t i = 0; i < shape->rank; i++)
    if (shape->dims[i] < 0)
      shape->dims[i] = info.bounds.dims[i] >= 0 ? info.bounds.dims[i]
                       : i == 0                 ? 1
                                                : 64;
  for (uint32_t i = 0; i < options->shapes.count; i++) {
    const char *value = ""; /* what follows a name that was found */
    const char *text = options->shapes.texts[i];
    if (model_inputs_find(model, text, &value) == index)
      PPH_TRY(parse_shape(text, value, shape, error));
  }
  return PPH_OK;
}

pph_status model_inputs_make(const tool_options *options,
                             const pph_model *model, uint32_t index,
                             pph_tensor *tensor, pph_error *error) {
  pph_value_info info = pph_model_input(model, index);
  pph_shape shape;
  size_t bytes;
  PPH_TRY(model_inputs_shape(options, model, index, &shape, error));
  if (!pph_shape_bytes(&shape, info.type, &bytes) ||
      bytes > options->limits.tensor_bytes)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, info.name,
                    "the input is too large");
  *tensor = (pph_tensor){info.type, shape, calloc(bytes + 1, 1)};
  return tensor->data ? PPH_OK : pph_fail_memory(error);
}

static pph_status fill_input(const tool_options *options,
                             const pph_model *model, uint32_t index,
                             pph_tensor *tensor, pph_error *error) {
  size_t count;
  PPH_TRY(model_inputs_make(options, model, index, tensor, error));
  if (tensor->type == PPH_F32 && pph_shape_count(&tensor->shape, &count))
    random_fill(tensor->data, count, 0, 12345);
  return PPH_OK;
}

pph_status model_inputs_check_shapes(const tool_options *options,
                                     const pph_model *model,
                                     pph_error *error) {
  for (uint32_t i = 0; i < options->shapes.count; i++) {
    const char *value;
    uint32_t index;
    const char *text = options->shapes.texts[i];
    PPH_TRY(model_inputs_require_known(model, text, &index, &value, error));
    for (uint32_t k = 0; k < i; k++)
      if (model_inputs_find(model, options->shapes.texts[k], &value) == index)
        return pph_fail(error, PPH_INVALID_ARGUMENT, text,
                        "the shape of input \"%s\" is given twice",
                        pph_model_input(model, index).name);
  }
  return PPH_OK;
}

pph_status model_inputs_fill(const tool_options *options,
                             const pph_model *model, model_inputs *inputs,
                             pph_error *error) {
  PPH_TRY(model_inputs_check_shapes(options, model, error));
  for (uint32_t i = 0; i < inputs->count; i++)
    if (!inputs->given[i])
      PPH_TRY(fill_input(options, model, i, &inputs->tensors[i], error));
  return shape_values_fill(model, inputs, error);
}

pph_status model_inputs_require(const pph_model *model,
                                const model_inputs *inputs,
                                pph_error *error) {
  for (uint32_t i = 0; i < inputs->count; i++)
    if (!inputs->given[i])
      return pph_fail(error, PPH_INVALID_ARGUMENT, "",
                      "input \"%s\" is missing: give --input '%s=FILE.npy', "
                      "or a picture after the model",
                      pph_model_input(model, i).name,
                      pph_model_input(model, i).name);
  return PPH_OK;
}

void model_inputs_clear(model_inputs *inputs) {
  for (uint32_t i = 0; inputs->tensors && i < inputs->count; i++)
    free(inputs->tensors[i].data);
  free(inputs->tensors);
  free(inputs->given);
  *inputs = (model_inputs){0};
}
