/* polyphase compile: a model to an ExecuTorch program. */
#include <stdio.h>

#include "base/checked.h"
#include "base/fail.h"
#include "model_inputs.h"
#include "output_file.h"
#include "pte_file.h"
#include "read_files.h"
#include "report.h"
#include "runtime/compile.h"

/* What --shape says, else what the model declares, which must be known. */
static pph_status find_shapes(const tool_options *options,
                              const pph_model *model, pph_shape *shapes,
                              pph_error *error) {
  PPH_TRY(model_inputs_check_shapes(options, model, error));
  for (uint32_t i = 0; i < pph_model_input_count(model); i++) {
    pph_value_info info = pph_model_input(model, i);
    char declared[256], example[160];
    PPH_TRY(model_inputs_shape(options, model, i, &shapes[i], error));
    if (!model_inputs_has_shape(options, model, i) &&
        !pph_shape_known(&info.shape))
      return pph_fail(error, PPH_INVALID_ARGUMENT, info.name,
                      "its shape is %s in the file, a program is made for "
                      "one: give it, as --shape '%s=%s'",
                      report_shape_text(&info, declared, sizeof declared),
                      info.name,
                      model_inputs_shape_text(&shapes[i], example,
                                              sizeof example));
  }
  return PPH_OK;
}

static pph_status compile(const tool_options *options, const pph_model *model,
                          pph_heap *heap, pph_pte_files *files,
                          pph_error *error) {
  uint32_t count = pph_model_input_count(model);
  pph_shape *shapes = pph_heap_allocate_zeroed(heap, count, sizeof *shapes);
  if (!shapes)
    return pph_fail_memory(error);
  pph_status status = find_shapes(options, model, shapes, error);
  if (status == PPH_OK)
    status = pph_model_compile(model, shapes, options->session.lowering,
                               options->external_constants != NULL, heap,
                               files, error);
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
