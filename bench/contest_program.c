/* What run_speed.py calls: an ExecuTorch program in our runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contest.h"
#include "base/fail.h"
#include "polyphase/session.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct contest_program {
  pph_model *model;
  pph_session *session;
  uint32_t input_count, output_count;
  pph_tensor *inputs, *outputs;
} contest_program;

EXPORT contest_program *contest_program_open(const char *path,
                                             const char *constants,
                                             const char *method,
                                             char *message);
EXPORT bool contest_program_input(contest_program *it, uint32_t index,
                                  int type, const int64_t *dims, int rank,
                                  void *data);
EXPORT bool contest_program_run(contest_program *it);
EXPORT const void *contest_program_output(const contest_program *it,
                                          uint32_t index, int *type,
                                          int64_t *dims, int *rank);
EXPORT bool contest_program_step(const contest_program *it, uint32_t index,
                                 double *us, char *text);
EXPORT void contest_program_close(contest_program *it);

void contest_program_close(contest_program *it) {
  if (!it)
    return;
  pph_session_destroy(it->session);
  pph_model_destroy(it->model);
  free(it->inputs);
  free(it->outputs);
  free(it);
}

static pph_status load(contest_program *it, const char *path,
                       const char *constants, const char *method,
                       pph_error *error) {
  pph_model_options options;
  pph_model_options_init(&options);
  options.method = method;
  options.constants = &constants;
  options.constant_count = constants != NULL;
  PPH_TRY(pph_model_load(path, &options, &it->model, error));
  PPH_TRY(pph_session_create(it->model, NULL, &it->session, error));
  it->input_count = pph_model_input_count(it->model);
  it->output_count = pph_model_output_count(it->model);
  it->inputs = calloc(it->input_count + 1, sizeof *it->inputs);
  it->outputs = calloc(it->output_count + 1, sizeof *it->outputs);
  return it->inputs && it->outputs ? PPH_OK : PPH_OUT_OF_MEMORY;
}

/* One thread, every option as it is by default; `constants` may be NULL. NULL
   with a message when it cannot be run. */
contest_program *contest_program_open(const char *path, const char *constants,
                                      const char *method, char *message) {
  pph_error error = {0};
  contest_program *it = calloc(1, sizeof *it);
  if (it && load(it, path, constants, method, &error) == PPH_OK)
    return it;
  contest_program_close(it);
  snprintf(message, BENCH_TEXT, "%.60s: %.400s", error.where, error.message);
  return NULL;
}

/* The data is the caller's and read by every run. */
bool contest_program_input(contest_program *it, uint32_t index, int type,
                           const int64_t *dims, int rank, void *data) {
  if (index >= it->input_count || rank < 0 || rank > PPH_MAX_RANK)
    return false;
  pph_tensor *input = &it->inputs[index];
  *input = (pph_tensor){(pph_dtype)type, {rank, {0}}, data};
  memcpy(input->shape.dims, dims, (size_t)rank * sizeof *dims);
  return true;
}

bool contest_program_run(contest_program *it) {
  return pph_session_run(it->session, it->inputs, it->input_count, it->outputs,
                         it->output_count, NULL) == PPH_OK;
}

/* What the last run gave; NULL past the last output. */
const void *contest_program_output(const contest_program *it, uint32_t index,
                                   int *type, int64_t *dims, int *rank) {
  if (index >= it->output_count)
    return NULL;
  const pph_tensor *output = &it->outputs[index];
  *type = output->type;
  *rank = output->shape.rank;
  memcpy(dims, output->shape.dims, sizeof output->shape.dims);
  return output->data;
}

/* A step of the last run; false past the last one. */
bool contest_program_step(const contest_program *it, uint32_t index, double *us,
                          char *text) {
  if (index >= pph_session_plan(it->session).steps)
    return false;
  pph_step_info step = pph_session_step(it->session, index);
  int used = snprintf(text, BENCH_TEXT, "%.40s %.100s", step.kind,
                      step.algorithm);
  for (int i = 0; i < step.output_shape.rank; i++)
    used += snprintf(text + used, (size_t)(BENCH_TEXT - used), "%c%lld",
                     i ? 'x' : ' ', (long long)step.output_shape.dims[i]);
  *us = step.microseconds;
  return true;
}
