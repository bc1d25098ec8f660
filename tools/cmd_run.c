/* polyphase run */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval_rules.h"
#include "json.h"
#include "npy.h"
#include "output_file.h"
#include "picture_tensor.h"
#include "progress.h"
#include "read_files.h"
#include "run_steps.h"
#include "sound_tensor.h"
#include "table.h"
#include "tuning.h"

typedef struct job {
  const tool_options *options;
  pph_model *model;
  pph_session *session;
  model_inputs inputs;
  step_inputs stream; /* instead, with --steps */
  pph_tensor *outputs; /* with --steps their data is by malloc */
  uint32_t output_count;
} job;

/* What the model does not get as it is in the file, on stderr. */
static void report_channels(const char *path, const picture *image,
                            const pph_tensor *tensor) {
  size_t elements = 0, pixels = (size_t)image->width * image->height;
  (void)pph_shape_count(&tensor->shape, &elements);
  size_t channels =
      elements / pixels / (size_t)pph_max_i64(tensor->shape.dims[0], 1);
  if (channels == 1 && image->channels > 1)
    fprintf(stderr, "%s: has colours, the model gets its brightness\n", path);
  if (channels > 1 && image->channels == 1)
    fprintf(stderr, "%s: is gray, the model gets it as every colour\n", path);
  if (channels < 4 && image->channels == 4)
    fprintf(stderr, "%s: the model gets nothing of its transparency\n", path);
}

static pph_status load_picture(job *work, pph_error *error) {
  picture image;
  if (work->inputs.given[0])
    return pph_fail(error, PPH_INVALID_ARGUMENT, work->options->arguments[1],
                    "the picture's input is given by --input too");
  PPH_TRY(picture_load(work->options->arguments[1], &image, error));
  pph_tensor *tensor = &work->inputs.tensors[0];
  pph_status status =
      picture_to_tensor(work->options, work->model, &image, tensor, error);
  if (status == PPH_OK)
    report_channels(work->options->arguments[1], &image, tensor);
  picture_clear(&image);
  work->inputs.given[0] = status == PPH_OK;
  return status;
}

/* Before the run, so that a long one is not lost. */
static pph_status check_output_name(const tool_options *options,
                                    pph_error *error) {
  static const char *const endings[] = {".png", ".npy", ".wav"};
  for (int i = 0; options->output && i < 3; i++)
    if (output_file_ends_in(options->output, endings[i]))
      return output_file_check(options->output, error);
  if (!options->output)
    return PPH_OK;
  return pph_fail(error, PPH_INVALID_ARGUMENT, options->output,
                  "an output file ends in .png, .npy or .wav");
}

/* What would change nothing is a mistake. */
static pph_status check_ignored(const tool_options *options,
                                pph_error *error) {
  const char *output = options->output ? options->output : "";
  const char *range = tool_options_find_given(options, " scale mean std ");
  if (range && options->argument_count < 2 &&
      !output_file_ends_in(output, ".png"))
    return pph_fail(error, PPH_INVALID_ARGUMENT, "run",
                    "--%s is for pictures, of which none is given or written",
                    range);
  if (options->rate && !output_file_ends_in(output, ".wav"))
    return pph_fail(error, PPH_INVALID_ARGUMENT, "run",
                    "--rate is for -o FILE.wav, which is not given");
  return PPH_OK;
}

/* --rate, else an input's, else the usual one. */
static uint32_t find_rate(const job *work) {
  const tool_options *options = work->options;
  uint32_t given = options->steps ? work->stream.sound_rate
                                  : work->inputs.sound_rate;
  return options->rate ? options->rate : given ? given : SOUND_DEFAULT_RATE;
}

static pph_status save_output(const job *work, pph_error *error) {
  const char *path = work->options->output;
  const pph_tensor *tensor = &work->outputs[0];
  if (output_file_ends_in(path, ".npy"))
    return npy_save(path, tensor, error);
  if (output_file_ends_in(path, ".wav"))
    return sound_save(path, tensor, work->options->steps, find_rate(work),
                      error);
  picture image;
  PPH_TRY(picture_from_tensor(&work->options->range, tensor, &image, error));
  pph_status status = picture_save(path, &image, error);
  picture_clear(&image);
  return status;
}

/* OUTPUTNAME.npy with characters outside [A-Za-z0-9_] as '_'; two outputs
   whose names become the same get their position added. */
static void file_name(const job *work, uint32_t index, char *name,
                      size_t size) {
  const char *text = pph_model_output(work->model, index).name;
  size_t i = 0;
  for (; text[i] && i + 1 < size; i++) {
    char c = text[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '_';
    name[i] = plain ? c : '_';
  }
  name[i] = 0;
}

static bool is_taken(const job *work, uint32_t index, const char *name) {
  char other[200];
  for (uint32_t i = 0; i < index; i++) {
    file_name(work, i, other, sizeof other);
    if (strcmp(name, other) == 0)
      return true;
  }
  return false;
}

/* One line to stderr: what went where. */
static void report_written(const job *work, uint32_t index, const char *path) {
  char shape[128];
  fprintf(stderr, "%s %s -> %s\n", pph_model_output(work->model, index).name,
          pph_shape_text(&work->outputs[index].shape, shape, sizeof shape),
          path);
}

static pph_status output_path(const job *work, uint32_t index, char *path,
                              size_t size, pph_error *error) {
  const char *folder = work->options->output_dir;
  char name[200];
  file_name(work, index, name, sizeof name);
  int n = is_taken(work, index, name)
              ? snprintf(path, size, "%s/%s_%u.npy", folder, name, index)
              : snprintf(path, size, "%s/%s.npy", folder, name);
  return n >= 0 && (size_t)n < size
             ? PPH_OK
             : pph_fail(error, PPH_INVALID_ARGUMENT, folder,
                        "the path is too long");
}

static pph_status save_all(const job *work, pph_error *error) {
  for (uint32_t i = 0; i < work->output_count; i++) {
    char path[4096];
    PPH_TRY(output_path(work, i, path, sizeof path, error));
    PPH_TRY(npy_save(path, &work->outputs[i], error));
    report_written(work, i, path);
  }
  return PPH_OK;
}

/* Nothing that is read is written over. */
static pph_status spare_sources(const job *work, pph_error *error) {
  const tool_options *options = work->options;
  PPH_TRY(read_files_spare(options, work->model, options->output, error));
  for (uint32_t i = 0; options->output_dir && i < work->output_count; i++) {
    char path[4096];
    PPH_TRY(output_path(work, i, path, sizeof path, error));
    PPH_TRY(read_files_spare(options, work->model, path, error));
  }
  return PPH_OK;
}

/* Smallest, largest and mean value of an output. */
static void summarise(const pph_tensor *tensor, double *low, double *high,
                      double *mean) {
  size_t count = 0;
  *low = *high = *mean = fabs((double)NAN); /* prints as nan, not -nan */
  if (!pph_shape_count(&tensor->shape, &count) || !count)
    return;
  double sum = 0;
  *low = *high = pph_number_real(tensor, 0);
  for (size_t i = 0; i < count; i++) {
    double value = pph_number_real(tensor, (int64_t)i);
    *low = value < *low ? value : *low;
    *high = value > *high ? value : *high;
    sum += value;
  }
  *mean = isnan(sum) ? fabs((double)NAN) : sum / (double)count;
}

static void print_json(const job *work) {
  json_writer json;
  json_init(&json, stdout);
  json_begin_object(&json, NULL);
  json_begin_array(&json, "outputs");
  for (uint32_t i = 0; i < work->output_count; i++) {
    double low, high, mean;
    summarise(&work->outputs[i], &low, &high, &mean);
    json_begin_object(&json, NULL);
    json_text(&json, "name", pph_model_output(work->model, i).name);
    json_text(&json, "type", pph_dtype_name(work->outputs[i].type));
    json_shape(&json, "shape", &work->outputs[i].shape);
    json_number(&json, "min", low);
    json_number(&json, "max", high);
    json_number(&json, "mean", mean);
    json_end_object(&json);
  }
  json_end_array(&json);
  json_end_object(&json);
}

static void print_table(const job *work) {
  static const char *const heads[] = {"output", "type", "shape",
                                      "min",    "max",  "mean"};
  table rows;
  table_init(&rows, heads, "lllrrr");
  for (uint32_t i = 0; i < work->output_count; i++) {
    char shape[128];
    double low, high, mean;
    summarise(&work->outputs[i], &low, &high, &mean);
    table_add(&rows, pph_model_output(work->model, i).name);
    table_add(&rows, pph_dtype_name(work->outputs[i].type));
    table_add(&rows,
              pph_shape_text(&work->outputs[i].shape, shape, sizeof shape));
    table_add_format(&rows, "%g", low);
    table_add_format(&rows, "%g", high);
    table_add_format(&rows, "%g", mean);
  }
  table_print(&rows, stdout);
  table_clear(&rows);
}

static pph_status load_inputs(job *work, pph_error *error) {
  const tool_options *options = work->options;
  bool has_picture = options->argument_count == 2;
  if (options->steps && has_picture)
    return pph_fail(error, PPH_INVALID_ARGUMENT, options->arguments[1],
                    "a picture has no steps");
  if (options->steps)
    return step_inputs_load(options, work->model, false, &work->stream,
                            error);
  PPH_TRY(model_inputs_load(options, work->model, &work->inputs, error));
  if (has_picture)
    PPH_TRY(load_picture(work, error));
  return model_inputs_require(work->model, &work->inputs, error);
}

static pph_status load_job(job *work, pph_error *error) {
  const tool_options *options = work->options;
  PPH_TRY(check_output_name(options, error));
  PPH_TRY(check_ignored(options, error));
  PPH_TRY(
      tool_load_model(options, options->arguments[0], &work->model, error));
  uint32_t count = pph_model_output_count(work->model);
  work->outputs = calloc((size_t)count + 1, sizeof *work->outputs);
  if (!work->outputs)
    return pph_fail_memory(error);
  work->output_count = count;
  PPH_TRY(spare_sources(work, error));
  PPH_TRY(load_inputs(work, error));
  return options->output_dir ? output_folder_make(options->output_dir, error)
                             : PPH_OK;
}

static void show_progress(void *bar, uint32_t done, uint32_t steps) {
  ((progress *)bar)->total = steps;
  progress_update(bar, done);
}

static pph_status run_session(job *work, pph_error *error) {
  progress bar;
  pph_session_options options = work->options->session;
  options.progress = show_progress;
  options.progress_context = &bar;
  options.tune_progress = tuning_show;
  progress_begin(&bar, "running", 0);
  PPH_TRY(pph_session_create(work->model, &options, &work->session, error));
  pph_status status =
      work->options->steps
          ? step_inputs_run(&work->stream, work->model, work->session,
                            work->outputs, error)
          : pph_session_run(work->session, work->inputs.tensors,
                            work->inputs.count, work->outputs,
                            work->output_count, error);
  progress_end(&bar);
  if (status == PPH_OK)
    tuning_report(work->options, work->session);
  return status;
}

static pph_status do_job(job *work, pph_error *error) {
  PPH_TRY(load_job(work, error));
  PPH_TRY(run_session(work, error));
  if (work->options->output && work->output_count) {
    PPH_TRY(save_output(work, error));
    report_written(work, 0, work->options->output);
    if (work->output_count > 1 && !work->options->output_dir)
      fprintf(stderr, "%u more output%s not written: --output-dir DIR does\n",
              work->output_count - 1,
              work->output_count == 2 ? " is" : "s are");
    if (output_file_ends_in(work->options->output, ".wav"))
      fprintf(stderr, "%u samples a second\n", find_rate(work));
  }
  if (work->options->output_dir)
    PPH_TRY(save_all(work, error));
  if (work->options->json)
    print_json(work);
  else if (!work->options->output && !work->options->output_dir)
    print_table(work);
  return PPH_OK;
}

int cmd_run(const tool_options *options) {
  pph_error error = {0};
  job work = {.options = options};
  pph_status status = do_job(&work, &error);
  model_inputs_clear(&work.inputs);
  step_inputs_clear(&work.stream);
  for (uint32_t i = 0; options->steps && i < work.output_count; i++)
    free(work.outputs[i].data);
  free(work.outputs);
  pph_session_destroy(work.session);
  pph_model_destroy(work.model);
  return status == PPH_OK ? EXIT_DONE : tool_fail(&error);
}
