#include "model_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "graph/eval_rules.h"
#include "test_support.h"

static const char *way_text(const model_way *way, char *text, size_t size) {
  static const char *const engines[] = {"auto", "native", "xnnpack",
                                        "reference"};
  static const char *const lowerings[] = {"auto", "always", "never"};
  snprintf(text, size, "engine %s, %s, polyphase %s, %u threads",
           engines[way->engine], way->optimize ? "optimized" : "as it is",
           lowerings[way->lowering], way->threads);
  return text;
}

static void compare(const model_case *one, const char *way, uint32_t index,
                    const pph_tensor *found) {
  const pph_tensor *right = &one->outputs[index];
  char a[128], b[128];
  if (!pph_shape_equal(&found->shape, &right->shape) ||
      found->type != right->type)
    fail_msg("%s (%s): output %u is %s %s, should be %s %s", one->path, way,
             index, pph_dtype_name(found->type),
             pph_shape_text(&found->shape, a, sizeof a),
             pph_dtype_name(right->type),
             pph_shape_text(&right->shape, b, sizeof b));
  size_t count;
  assert_true(pph_shape_count(&right->shape, &count));
  for (size_t i = 0; i < count; i++) {
    double x = pph_number_real(found, (int64_t)i);
    double y = pph_number_real(right, (int64_t)i);
    if (isnan(x) && isnan(y))
      continue;
    if (!(x == y || fabs(x - y) <= one->absolute + one->relative * fabs(y)))
      fail_msg("%s (%s): output %u element %zu is %.9g, should be %.9g",
               one->path, way, index, i, x, y);
  }
}

static void run(const model_case *one, const model_way *way,
                const pph_model *model) {
  char text[128];
  way_text(way, text, sizeof text);
  pph_session_options options;
  pph_session_options_init(&options);
  options.engine = way->engine;
  options.optimize = way->optimize;
  options.lowering = way->lowering;
  options.threads = way->threads;
  pph_session *session;
  pph_error error = {0};
  test_assert_ok(pph_session_create(model, &options, &session, &error),
                 &error);
  pph_tensor outputs[CASE_MAX];
  /* Twice: what the first run leaves behind must not show. */
  int rounds = getenv("POLYPHASE_QUICK") ? 1 : 2;
  for (int round = 0; round < rounds; round++) {
    pph_status status =
        pph_session_run(session, one->inputs, one->input_count, outputs,
                        one->output_count, &error);
    if (status != PPH_OK)
      fail_msg("%s (%s): %s: %s: %s", one->path, text,
               pph_status_name(status), error.where, error.message);
    for (uint32_t i = 0; i < one->output_count; i++)
      compare(one, text, i, &outputs[i]);
  }
  pph_session_destroy(session);
}

void model_case_check(const model_case *one, const model_way *way) {
  pph_model *model;
  pph_error error = {0};
  pph_status status = pph_model_load(one->path, NULL, &model, &error);
  if (status != PPH_OK)
    fail_msg("%s: %s: %s: %s", one->path, pph_status_name(status), error.where,
             error.message);
  run(one, way, model);
  pph_model_destroy(model);
}

void model_case_check_model(const model_case *one, const pph_model *model) {
  static const pph_engine engines[] = {PPH_ENGINE_XNNPACK, PPH_ENGINE_NATIVE,
                                       PPH_ENGINE_REFERENCE};
  for (int engine = 0; engine < 3; engine++)
    for (int optimize = 0; optimize < 2; optimize++)
      run(one,
          &(model_way){engines[engine], optimize, PPH_LOWERING_AUTO, 1},
          model);
}

void model_case_check_all(const model_case *one) {
  static const pph_engine engines[] = {PPH_ENGINE_XNNPACK,
                                       PPH_ENGINE_REFERENCE};
  for (int engine = 0; engine < 2; engine++)
    for (uint32_t threads = 1; threads <= 2; threads++) {
      pph_lowering lowering;
      for (lowering = PPH_LOWERING_AUTO; lowering <= PPH_LOWERING_NEVER;
           lowering++)
        model_case_check(
            one, &(model_way){engines[engine], true, lowering, threads});
      model_case_check(one, &(model_way){engines[engine], false,
                                         PPH_LOWERING_AUTO, threads});
    }
}

void model_case_clear(model_case *one) {
  for (uint32_t i = 0; i < one->input_count; i++)
    free(one->inputs[i].data);
  for (uint32_t i = 0; i < one->output_count; i++)
    free(one->outputs[i].data);
  *one = (model_case){0};
}
