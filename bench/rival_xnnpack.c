/* The system's XNNPACK, through a session of the one-node model: its own
   deconvolution, or a convolution with all phases and the interleave. Timed is
   all but the layout changes at the graph's edges, which a net around the node
   would not have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contest.h"
#include "polyphase/session.h"

typedef struct xnnpack {
  const bench_case *one;
  pph_model *model;
  pph_session *session;
  pph_tensor input, output;
} xnnpack;

static pph_status run_session(xnnpack *it, pph_error *error) {
  return pph_session_run(it->session, &it->input, 1, &it->output, 1, error);
}

/* Whether XNNPACK and nothing else does the arithmetic. */
static bool is_pure(const pph_session *session) {
  for (uint32_t i = 0; i < pph_session_plan(session).steps; i++) {
    pph_step_info step = pph_session_step(session, i);
    if (strncmp(step.kind, "Conv", 4) == 0 &&
        strcmp(step.backend, "xnnpack") != 0)
      return false;
  }
  return true;
}

/* The note of the node, when it was to become phases and did not. */
static bool is_lowered(const pph_session *session) {
  for (uint32_t i = 0; i < pph_session_plan(session).notes; i++)
    if (!pph_session_note(session, i).lowered)
      return false;
  return true;
}

static void close_xnnpack(void *state) {
  xnnpack *it = state;
  pph_session_destroy(it->session);
  pph_model_destroy(it->model);
  free(it);
}

static void *open_xnnpack(const bench_case *one, const bench_options *options,
                          char *message) {
  const pph_problem *p = &one->problem;
  pph_error error = {0};
  pph_session_options session;
  pph_session_options_init(&session);
  session.engine = PPH_ENGINE_XNNPACK;
  session.threads = options->threads;
  bool phases = strcmp(options->form, "polyphase") == 0;
  session.lowering = phases ? PPH_LOWERING_ALWAYS : PPH_LOWERING_NEVER;
  xnnpack *it = calloc(1, sizeof *it);
  if (!it)
    return NULL;
  it->one = one;
  it->input =
      (pph_tensor){PPH_F32,
                   {4,
                    {p->batch, p->in_channels, p->axes[PPH_HEIGHT].input,
                     p->axes[PPH_WIDTH].input}},
                   one->input};
  if (pph_model_load_bytes(options->model, options->model_bytes, NULL, NULL,
                           &it->model, &error) == PPH_OK &&
      pph_session_create(it->model, &session, &it->session, &error) == PPH_OK &&
      run_session(it, &error) == PPH_OK) {
    if (is_pure(it->session) && (!phases || is_lowered(it->session)))
      return it;
    snprintf(error.message, sizeof error.message, "XNNPACK does not run it");
  }
  snprintf(message, BENCH_TEXT, "%s", error.message);
  close_xnnpack(it);
  return NULL;
}

static double run_xnnpack(void *state) {
  xnnpack *it = state;
  if (run_session(it, NULL) != PPH_OK)
    return -1;
  double sum = 0;
  for (uint32_t i = 0; i < pph_session_plan(it->session).steps; i++) {
    pph_step_info step = pph_session_step(it->session, i);
    if (strcmp(step.kind, "Relayout") != 0)
      sum += step.microseconds;
  }
  return sum;
}

static void read_xnnpack(void *state, float *output) {
  xnnpack *it = state;
  memcpy(output, it->output.data, it->one->output_count * sizeof(float));
}

const bench_rival bench_rival_xnnpack = {
    "xnnpack", open_xnnpack, run_xnnpack, read_xnnpack, NULL, close_xnnpack};
