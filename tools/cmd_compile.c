/* polyphase compile: a model to an ExecuTorch program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "model_inputs.h"
#include "output_file.h"
#include "pte_file.h"
#include "read_files.h"
#include "report.h"
#include "runtime/compile.h"

/* LENGTH, LEAST..MOST or LEAST..MOST:STEP; *end is behind it, NULL when there
   is none. */
static pph_length_range parse_range(const char *text, const char **end) {
  char *after;
  pph_length_range range = {.step = 1};
  range.least = range.most = strtoll(text, &after, 10);
  *end = after == text || range.least < 0 ? NULL : after;
  if (!*end || strncmp(after, "..", 2) != 0)
    return range;
  text = after + 2;
  range.most = strtoll(text, &after, 10);
  *end = after == text ? NULL : after;
  if (!*end || *after != ':')
    return range;
  text = after + 1;
  range.step = strtoll(text, &after, 10);
  *end = after == text ? NULL : after;
  return range;
}

static pph_status parse_shape(const char *text, const char *value,
                              pph_shape_range *shape, pph_error *error) {
  shape->rank = 0;
  while (shape->rank < PPH_MAX_RANK) {
    const char *end;
    shape->dims[shape->rank++] = parse_range(value, &end);
    if (end && !*end)
      return PPH_OK;
    if (!end || *end != 'x')
      break;
    value = end + 1;
  }
  return pph_fail(error, PPH_INVALID_ARGUMENT, text,
                  "a shape is numbers, or LEAST..MOST[:STEP] for a length that "
                  "stays open, with x between them, at most %d",
                  PPH_MAX_RANK);
}

/* What --shape says, else what the model declares, which must be known. */
static pph_status find_shape(const tool_options *options,
                             const pph_model *model, uint32_t input,
                             pph_shape_range *shape, pph_error *error) {
  pph_value_info info = pph_model_input(model, input);
  for (uint32_t i = 0; i < options->shapes.count; i++) {
    const char *text = options->shapes.texts[i], *value;
    if (model_inputs_find(model, text, &value) == input)
      return parse_shape(text, value, shape, error);
  }
  if (!pph_shape_known(&info.shape)) {
    char declared[256], text[160];
    pph_shape example;
    PPH_TRY(model_inputs_shape(options, model, input, &example, error));
    return pph_fail(
        error, PPH_INVALID_ARGUMENT, info.name,
        "its shape is %s in the file, a program is made for one: give it, as "
        "--shape '%s=%s'",
        report_shape_text(&info, declared, sizeof declared), info.name,
        model_inputs_shape_text(&example, text, sizeof text));
  }
  shape->rank = info.shape.rank;
  for (int32_t i = 0; i < info.shape.rank; i++)
    shape->dims[i] =
        (pph_length_range){info.shape.dims[i], info.shape.dims[i], 1};
  return PPH_OK;
}

static pph_status compile(const tool_options *options, const pph_model *model,
                          pph_heap *heap, pph_pte_files *files,
                          pph_error *error) {
  uint32_t count = pph_model_input_count(model);
  const pph_compile_options how = {
      .lowering = options->session.lowering,
      .accuracy = options->session.accuracy,
      .external = options->external_constants != NULL};
  pph_shape_range *shapes =
      pph_heap_allocate_zeroed(heap, count, sizeof *shapes);
  if (!shapes)
    return pph_fail_memory(error);
  pph_status status = model_inputs_check_shapes(options, model, error);
  for (uint32_t i = 0; status == PPH_OK && i < count; i++)
    status = find_shape(options, model, i, &shapes[i], error);
  if (status == PPH_OK)
    status = pph_model_compile(model, shapes, &how, heap, files, error);
  pph_heap_release(heap, shapes);
  const output_content contents[] = {
      {options->output, files->program, files->program_bytes},
      {options->external_constants, files->constants, files->constant_bytes}};
  PPH_TRY(status);
  return output_files_write(contents, files->constants ? 2 : 1, error);
}

static void print_written(const tool_options *options,
                          const pph_pte_files *files) {
  FILE *to = output_file_teller(options->output);
  fprintf(to, "%s: %u node%s in %u delegate%s, %zu bytes\n", options->output,
          files->nodes, files->nodes == 1 ? "" : "s", files->delegates,
          files->delegates == 1 ? "" : "s", files->program_bytes);
  if (files->constants)
    fprintf(to, "%s: constants, %zu bytes\n", options->external_constants,
            files->constant_bytes);
}

/* Two names that are written one after the other must be two files: the same
   one would end as whichever came last. */
static pph_status check_outputs(const tool_options *options,
                                pph_error *error) {
  if (!options->output)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "compile",
                    "-o FILE.pte says where to write");
  if (options->external_constants &&
      output_file_same(options->output, options->external_constants))
    return pph_fail(error, PPH_INVALID_ARGUMENT, options->output,
                    "-o and --external-constants must be two files");
  return pte_file_check_name(options->output, false, error);
}

static pph_status spare_sources(const tool_options *options,
                                const pph_model *model, pph_error *error) {
  PPH_TRY(read_files_spare(options, model, options->output, error));
  return read_files_spare(options, model, options->external_constants, error);
}

int cmd_compile(const tool_options *options) {
  pph_error error = {0};
  pph_model *model;
  pph_heap heap;
  pph_pte_files files = {0};
  if (check_outputs(options, &error) != PPH_OK)
    return tool_fail(&error);
  if (tool_load_model(options, options->arguments[0], &model, &error) != PPH_OK)
    return tool_fail(&error);
  if (pte_file_is_bundle(options->arguments[0]))
    fprintf(stderr,
            "%s: its test cases are left out: a compiled program has none\n",
            options->arguments[0]);
  pph_heap_init(&heap, NULL, options->limits.heap_bytes);
  pph_status status = spare_sources(options, model, &error);
  if (status == PPH_OK)
    status = compile(options, model, &heap, &files, &error);
  if (status == PPH_OK)
    print_written(options, &files);
  pph_pte_files_clear(&files, &heap);
  pph_model_destroy(model);
  return status == PPH_OK ? EXIT_DONE : tool_fail(&error);
}
