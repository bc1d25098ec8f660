/* polyphase optimize: a faster program from an ExecuTorch program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "optimize/optimize.h"
#include "output_file.h"
#include "pte/container_write.h"
#include "pte_file.h"
#include "read_files.h"

/* What was changed, told when it is written. */
typedef struct told {
  char *text;
  size_t length;
  FILE *file; /* writes into the text */
} told;

static void keep_line(void *context, const char *line) {
  fprintf(((told *)context)->file, "%s\n", line);
}

/* Every .ptd that changes needs a name to be written under. */
static pph_status check_names(const tool_options *options, const pph_pte *pte,
                              const pph_optimize_result *result,
                              pph_error *error) {
  for (uint32_t i = 0; i < pte->external_count; i++)
    if (result->external_changed[i] && i >= options->constants_out.count)
      return pph_fail(error, PPH_INVALID_ARGUMENT, options->constants.texts[i],
                      "its constants change too: --constants-out FILE.ptd says "
                      "where to write them");
  return PPH_OK;
}

/* No file that is written may be another one of them, or one that is read. */
static pph_status check_places(const tool_options *options,
                               const pph_pte *pte, pph_error *error) {
  const option_pairs *out = &options->constants_out;
  if (out->count > options->constants.count)
    return pph_fail(error, PPH_INVALID_ARGUMENT,
                    out->texts[options->constants.count],
                    "%u of --constants-out for %u of --constants, must be at "
                    "most as many",
                    out->count, options->constants.count);
  PPH_TRY(pte_file_check_name(options->output, pte->bundle != NULL, error));
  PPH_TRY(read_files_spare(options, NULL, options->output, error));
  for (uint32_t i = 0; i < out->count; i++) {
    PPH_TRY(read_files_spare(options, NULL, out->texts[i], error));
    bool same = output_file_same(options->output, out->texts[i]);
    for (uint32_t k = 0; k < i; k++)
      same |= output_file_same(out->texts[k], out->texts[i]);
    if (same)
      return pph_fail(error, PPH_INVALID_ARGUMENT, out->texts[i],
                      "-o and every --constants-out must be different files");
  }
  return PPH_OK;
}

/* The program, then its constants; blocks of the container's heap. */
static pph_status make_contents(const tool_options *options, pph_pte *pte,
                                output_content *contents, uint32_t count,
                                pph_error *error) {
  void *bytes;
  PPH_TRY(pph_pte_write(pte, pte->heap, &bytes, &contents[0].length, error));
  contents[0].path = options->output;
  contents[0].bytes = bytes;
  for (uint32_t i = 1; i < count; i++) {
    PPH_TRY(pph_pte_write_external(&pte->externals[i - 1], pte->heap, &bytes,
                                   &contents[i].length, error));
    contents[i].path = options->constants_out.texts[i - 1];
    contents[i].bytes = bytes;
  }
  return PPH_OK;
}

static pph_status write_all(const tool_options *options, pph_pte *pte,
                            pph_error *error) {
  uint32_t externals = options->constants_out.count;
  if (externals > pte->external_count)
    externals = pte->external_count;
  output_content *contents =
      pph_heap_allocate_zeroed(pte->heap, externals + 1, sizeof *contents);
  if (!contents)
    return pph_fail_memory(error);
  pph_status status =
      make_contents(options, pte, contents, externals + 1, error);
  if (status == PPH_OK)
    status = output_files_write(contents, externals + 1, error);
  for (uint32_t i = 0; i <= externals; i++)
    pph_heap_release(pte->heap, (void *)(uintptr_t)contents[i].bytes);
  pph_heap_release(pte->heap, contents);
  return status;
}

static pph_status optimize(const tool_options *options, pph_pte *pte,
                           told *lines, pph_error *error) {
  const pph_optimize_options how = {
      .always = options->session.lowering == PPH_LOWERING_ALWAYS,
      .never = options->session.lowering == PPH_LOWERING_NEVER,
      .accuracy = options->session.accuracy,
      .report = keep_line,
      .context = lines};
  pph_optimize_result result;
  PPH_TRY(check_places(options, pte, error));
  PPH_TRY(pph_error_in_file(error, options->arguments[0],
                            pph_pte_optimize(pte, &how, &result, error)));
  PPH_TRY(check_names(options, pte, &result, error));
  if (fflush(lines->file) != 0)
    return pph_fail_memory(error);
  PPH_TRY(write_all(options, pte, error));
  FILE *to = output_file_teller(options->output);
  fputs(lines->text, to);
  if (result.changes)
    fprintf(to, "%u change%s\n", result.changes,
            result.changes == 1 ? "" : "s");
  else
    fprintf(to, "nothing to change: the program is written as it was\n");
  return PPH_OK;
}

static pph_status optimize_file(const tool_options *options, pph_pte *pte,
                                pph_error *error) {
  told lines = {NULL};
  lines.file = open_memstream(&lines.text, &lines.length);
  if (!lines.file)
    return pph_fail_memory(error);
  pph_status status = optimize(options, pte, &lines, error);
  fclose(lines.file);
  free(lines.text);
  return status;
}

/* A model of another format has no magic: it is what is no container. */
static pph_status open_program(const tool_options *options, pte_file *file,
                               pph_error *error) {
  pph_status status = pte_file_open(options, file, error);
  if (status == PPH_BAD_MODEL && !pte_file_is_container(options->arguments[0]))
    return pph_fail(error, PPH_BAD_MODEL, options->arguments[0],
                    "is no ExecuTorch program; \"polyphase compile\" makes "
                    "a fast one of an ONNX model");
  return status;
}

int cmd_optimize(const tool_options *options) {
  pph_error error = {0};
  pte_file file;
  if (!options->output) {
    pph_fail(&error, PPH_INVALID_ARGUMENT, "optimize",
             "-o FILE.pte says where to write");
    return tool_fail(&error);
  }
  pph_status status = open_program(options, &file, &error);
  if (status == PPH_OK)
    status = optimize_file(options, file.pte, &error);
  pte_file_close(&file);
  return status == PPH_OK ? EXIT_DONE : tool_fail(&error);
}
