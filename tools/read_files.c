#include "read_files.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "output_file.h"
#include "runtime/loaded_model.h"

/* NAME=FILE, where both may have a '=': one of the rests is the file. */
static pph_status spare_pairs(const option_pairs *pairs, const char *path,
                              pph_error *error) {
  for (uint32_t i = 0; i < pairs->count; i++)
    for (const char *equal = strchr(pairs->texts[i], '='); equal;
         equal = strchr(equal + 1, '='))
      PPH_TRY(output_file_spare(path, equal + 1, error));
  return PPH_OK;
}

/* External data lies beside the model. */
static pph_status spare_external(const char *model_path, const char *name,
                                 const char *path, pph_error *error) {
  const char *slash = strrchr(model_path, '/');
  int folder = slash ? (int)(slash + 1 - model_path) : 0;
  char data[4096];
  int length =
      snprintf(data, sizeof data, "%.*s%s", folder, model_path, name);
  return length > 0 && (size_t)length < sizeof data
             ? output_file_spare(path, data, error)
             : PPH_OK;
}

pph_status read_files_spare(const tool_options *options,
                            const pph_model *model, const char *path,
                            pph_error *error) {
  const char *last = "";
  if (!path)
    return PPH_OK;
  for (int i = 0; i < options->argument_count; i++)
    PPH_TRY(output_file_spare(path, options->arguments[i], error));
  for (uint32_t i = 0; i < options->constants.count; i++)
    PPH_TRY(output_file_spare(path, options->constants.texts[i], error));
  PPH_TRY(spare_pairs(&options->inputs, path, error));
  for (pph_id i = 0; model && i < model->graph.value_count; i++) {
    const char *name = pph_graph_value(&model->graph, i)->origin.external;
    if (!name || strcmp(name, last) == 0)
      continue;
    last = name;
    PPH_TRY(spare_external(options->arguments[0], name, path, error));
  }
  return PPH_OK;
}
