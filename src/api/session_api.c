/* polyphase/session.h */
#include "polyphase/session.h"

#include <string.h>

#include "backend/native_conv.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/public_struct.h"
#include "runtime/loaded_model.h"
#include "runtime/tune.h"

enum { MAX_PLANS = 1024 };

void pph_session_options_init(pph_session_options *options) {
  *options = (pph_session_options){.struct_size = sizeof *options,
                                   .optimize = true,
                                   .threads = 1,
                                   .plans = 4};
}

/* A dump after no pass at all would silently print nothing. */
static pph_status check_dump(const char *dump, pph_error *error) {
  if (!dump || strcmp(dump, "all") == 0)
    return PPH_OK;
  size_t count, at = 0;
  const pph_pass *passes = pph_pass_list(&count);
  char names[sizeof error->message - 64] = "";
  for (size_t i = 0; i < count; i++) {
    if (strcmp(passes[i].name, dump) == 0)
      return PPH_OK;
    if (at < sizeof names && !strstr(names, passes[i].name))
      at += (size_t)snprintf(names + at, sizeof names - at, " %s",
                             passes[i].name);
  }
  return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_session_options",
                  "dump is \"%.20s\", must be all or one of%s", dump, names);
}

static pph_status check_options(const pph_session_options *options,
                                pph_error *error) {
  const char *where = "pph_session_options";
  PPH_TRY(pph_check_struct_size(where, options->struct_size, sizeof *options,
                                error));
  const struct {
    const char *name;
    int64_t value, low, high;
  } rows[] = {{"engine", options->engine, 0, PPH_ENGINE_REFERENCE},
              {"accuracy", options->accuracy, 0, PPH_ACCURACY_EXACT},
              {"cpu", options->cpu, 0, PPH_CPU_NEON},
              {"lowering", options->lowering, 0, PPH_LOWERING_NEVER},
              {"threads", options->threads, 0, PPH_MAX_THREADS},
              {"plans", options->plans, 1, MAX_PLANS}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    PPH_TRY(pph_check_range(where, rows[i].name, rows[i].value, rows[i].low,
                            rows[i].high, error));
  if (options->tune_file && !options->tune_file[0])
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "tune_file must not be empty");
  return check_dump(options->dump, error);
}

static void fill_pass_options(pph_pass_options *passes,
                              const pph_session_options *options) {
  static const pph_polyphase_mode modes[] = {
      [PPH_LOWERING_AUTO] = PPH_POLYPHASE_AUTO,
      [PPH_LOWERING_ALWAYS] = PPH_POLYPHASE_ALWAYS,
      [PPH_LOWERING_NEVER] = PPH_POLYPHASE_NEVER};
  pph_pass_options_init(passes);
  passes->optimize = options->optimize;
  passes->polyphase = modes[options->lowering];
  passes->folds_upsampling = options->accuracy == PPH_ACCURACY_NORMAL;
  passes->choose_layout = options->engine != PPH_ENGINE_REFERENCE;
  if (options->engine == PPH_ENGINE_AUTO ||
      options->engine == PPH_ENGINE_NATIVE)
    passes->fuses_natively = pph_native_conv_supports;
  passes->dump = options->dump;
  passes->dump_file = options->dump_file ? options->dump_file : stderr;
}

static pph_status fill_session(pph_session *session,
                               const pph_session_options *options,
                               pph_error *error) {
  session->context.heap = &session->heap;
  session->context.accuracy = options->accuracy;
  session->context.cpu = options->cpu;
  session->context.progress = options->progress;
  session->context.progress_context = options->progress_context;
  session->options.engine = options->engine;
  fill_pass_options(&session->options.passes, options);
  session->plan_capacity = options->plans;
  session->plans = pph_heap_allocate_zeroed(&session->heap, options->plans,
                                            sizeof *session->plans);
  const pph_graph *graph = &session->model->graph;
  session->is_shape_input =
      pph_heap_allocate(&session->heap, graph->input_count, sizeof(bool));
  if (!session->plans || !session->is_shape_input)
    return pph_fail_memory(error);
  PPH_TRY(pph_session_find_shape_inputs(graph, &session->heap,
                                        session->is_shape_input, error));
  session->options.is_shape_input = session->is_shape_input;
  PPH_TRY(pph_session_open_state(session, error));
  if (options->tune)
    PPH_TRY(pph_tuner_create(options, &session->heap, &session->options.tuner,
                             error));
  if (pph_cpu_threads(options->threads) == 1)
    return PPH_OK;
  return pph_thread_pool_create(options->threads, &session->context.pool,
                                error);
}

pph_status pph_session_create(const pph_model *model,
                              const pph_session_options *options,
                              pph_session **session, pph_error *error) {
  PPH_TRY_POINTER("pph_session_create", session, error);
  *session = NULL;
  PPH_TRY_POINTER("pph_session_create", model, error);
  pph_session_options standard;
  pph_session_options_init(&standard);
  if (!options)
    options = &standard;
  PPH_TRY(check_options(options, error));
  pph_limits limits;
  PPH_TRY(pph_limits_take(options->limits, &model->limits, &limits, error));
  pph_heap first;
  pph_heap_init(&first, &model->heap.allocator, limits.heap_bytes);
  pph_session *made = pph_heap_allocate_zeroed(&first, 1, sizeof *made);
  if (!made)
    return pph_error_at(error, "pph_session_create", pph_fail_memory(error));
  made->model = model;
  pph_heap_init(&made->heap, &model->heap.allocator, limits.heap_bytes);
  pph_status status = fill_session(made, options, error);
  if (status != PPH_OK) {
    pph_session_destroy(made);
    return pph_error_at(error, "pph_session_create", status);
  }
  *session = made;
  return PPH_OK;
}

void pph_session_destroy(pph_session *session) {
  if (!session)
    return;
  for (uint32_t i = 0; i < session->plan_count; i++)
    pph_program_destroy(session->plans[i], &session->context);
  pph_heap_release(&session->heap, session->plans);
  pph_heap_release(&session->heap, session->is_shape_input);
  pph_session_close_state(session);
  pph_tuner_destroy(session->options.tuner);
  pph_heap_release(&session->heap, session->block);
  pph_thread_pool_destroy(session->context.pool);
  pph_heap last;
  pph_heap_init(&last, &session->heap.allocator, 0);
  pph_heap_release(&last, session);
}

static pph_status check_counts(const pph_session *session,
                               const pph_tensor *inputs, uint32_t input_count,
                               const char *where, pph_error *error) {
  PPH_TRY_POINTER(where, session, error);
  uint32_t legal = pph_model_input_count(session->model);
  if (input_count != legal)
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "input_count is %u, the model has %u inputs", input_count,
                    legal);
  if (!inputs && legal)
    return pph_fail(error, PPH_INVALID_ARGUMENT, where,
                    "inputs must not be NULL");
  return PPH_OK;
}

pph_status pph_session_prepare(pph_session *session, const pph_tensor *inputs,
                               uint32_t input_count, pph_error *error) {
  PPH_TRY(check_counts(session, inputs, input_count, "pph_session_prepare",
                       error));
  return pph_error_at(
      error, "pph_session_prepare",
      pph_session_find_plan(session, pph_session_add_state(session, inputs),
                            error));
}

void pph_session_reset(pph_session *session) {
  if (session)
    pph_session_reset_state(session);
}

static pph_status check_data(const pph_session *session,
                             const pph_tensor *inputs, pph_error *error) {
  const pph_graph *graph = &session->model->graph;
  for (uint32_t i = 0; i < graph->input_count; i++) {
    bool empty = false;
    for (int32_t k = 0; k < inputs[i].shape.rank; k++)
      empty |= inputs[i].shape.dims[k] == 0;
    if (!inputs[i].data && !empty)
      return pph_fail(error, PPH_INVALID_ARGUMENT,
                      pph_graph_value(graph, graph->inputs[i])->name,
                      "the input's data is NULL");
  }
  return PPH_OK;
}

static pph_status run(pph_session *session, const pph_tensor *inputs,
                      pph_error *error) {
  inputs = pph_session_add_state(session, inputs);
  PPH_TRY(pph_session_find_plan(session, inputs, error));
  PPH_TRY(check_data(session, inputs, error));
  PPH_TRY(pph_session_reserve_block(session, error));
  PPH_TRY(pph_program_run(session->current, &session->context, inputs,
                          session->block, session->outputs, error));
  return pph_session_keep_state(session, error);
}

pph_status pph_session_run(pph_session *session, const pph_tensor *inputs,
                           uint32_t input_count, pph_tensor *outputs,
                           uint32_t output_count, pph_error *error) {
  uint32_t legal =
      session ? pph_model_output_count(session->model) : output_count;
  /* A wrong count may be larger than the room that there is. */
  if (outputs && output_count)
    memset(outputs, 0,
           (output_count < legal ? output_count : legal) * sizeof *outputs);
  PPH_TRY(check_counts(session, inputs, input_count, "pph_session_run",
                       error));
  if (output_count != legal)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_session_run",
                    "output_count is %u, the model has %u outputs",
                    output_count, legal);
  if (!outputs && legal)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "pph_session_run",
                    "outputs must not be NULL");
  PPH_TRY(pph_error_at(error, "pph_session_run", run(session, inputs, error)));
  if (legal)
    memcpy(outputs, session->outputs, legal * sizeof *outputs);
  return PPH_OK;
}

pph_plan_info pph_session_plan(const pph_session *session) {
  pph_plan_info info = {0};
  const pph_program *program = session ? session->current : NULL;
  if (!program)
    return info;
  info.steps = program->step_count;
  for (const pph_note *note = program->graph.first_note; note;
       note = note->next)
    info.notes++;
  info.transposes = program->transposes;
  info.block_bytes = program->block_bytes;
  info.measured = program->measured;
  info.equal = program->equal;
  info.remembered = program->remembered;
  info.unwritten = program->unwritten;
  info.peak_bytes = atomic_load(&session->heap.peak);
  return info;
}

pph_step_info pph_session_step(const pph_session *session, uint32_t index) {
  pph_step_info info = {0};
  const pph_program *program = session ? session->current : NULL;
  if (!program || index >= program->step_count)
    return info;
  const pph_step *step = &program->steps[index];
  const pph_value *output =
      pph_graph_value(&program->graph, step->node->outputs[0]);
  info.name = step->node->name[0] ? step->node->name : output->name;
  info.kind = pph_node_kind_find_info(step->node->kind)->name;
  info.backend = step->backend->name;
  info.algorithm = step->algorithm;
  info.output_shape = output->shape;
  info.flops = pph_program_flops(&program->graph, step->node);
  info.microseconds = program->microseconds[index];
  return info;
}

pph_note_info pph_session_note(const pph_session *session, uint32_t index) {
  pph_note_info info = {0};
  if (!session || !session->current)
    return info;
  const pph_note *note = session->current->graph.first_note;
  while (note && index--)
    note = note->next;
  if (note)
    info = (pph_note_info){note->node_name, note->kind, note->lowered,
                           note->reason};
  return info;
}
