#include "runtime/compile.h"

#include "base/checked.h"
#include "base/fail.h"
#include "pte/import_plan.h"
#include "runtime/compile_optimize.h"
#include "runtime/compile_sizes.h"
#include "runtime/input_shapes.h"
#include "runtime/loaded_model.h"

typedef struct compiler {
  const pph_model *model;
  const pph_compile_options *options;
  pph_size_plan sizes;
  pph_heap *heap;
  pph_pte_files *files;
  pph_error *error;
} compiler;

static pph_status set_shapes(pph_graph *graph, const pph_shape *shapes,
                             pph_error *error) {
  char text[128];
  for (uint32_t i = 0; i < graph->input_count; i++) {
    pph_value *value = pph_graph_value(graph, graph->inputs[i]);
    if (!pph_shape_known(&shapes[i]))
      return pph_fail(error, PPH_INVALID_ARGUMENT, value->name,
                      "has the shape %s; a program is compiled for shapes "
                      "that are known",
                      pph_shape_text(&shapes[i], text, sizeof text));
    pph_tensor tensor = {value->type, shapes[i], NULL};
    PPH_TRY(pph_input_check(value, &tensor, error));
    if (!pph_shape_fits(&shapes[i], value->type, graph->tensor_limit))
      return pph_fail(error, PPH_LIMIT_EXCEEDED, value->name,
                      "the input is larger than the limit of %llu bytes",
                      (unsigned long long)graph->tensor_limit);
    value->shape = shapes[i];
    value->has_rank = true;
  }
  return PPH_OK;
}

static const pph_shape *find_shape(const void *shapes, uint32_t input) {
  return (const pph_shape *)shapes + input;
}

/* A copy of `source` after the passes, for inputs of these shapes; on failure
   there is none. */
static pph_status specialise(const compiler *c, const pph_graph *source,
                             const pph_shape *shapes,
                             const pph_pass_options *options,
                             pph_graph *graph, pph_error *error) {
  PPH_TRY(pph_graph_copy(graph, source, c->heap, error));
  pph_status status = set_shapes(graph, shapes, error);
  if (status == PPH_OK)
    status = pph_blame_inputs(source, find_shape, shapes,
                              pph_pipeline_run(graph, options, error), error);
  if (status != PPH_OK)
    pph_graph_clear(graph);
  return status;
}

/* How a program is written: phases, and what states lengths or not. */
typedef struct form {
  pph_polyphase_mode polyphase;
  bool any_lengths;
} form;

static pph_status write_with(const compiler *c, const form *how,
                             pph_graph *most, pph_graph *other) {
  const pph_pte_export_options options = {.external = c->options->external,
                                          .other = other,
                                          .any_lengths = how->any_lengths};
  return pph_pte_export(most, &options, c->files, c->error);
}

/* What the program that was written says of its outputs, at the sizes in
   `c->sizes.shapes`, is what the model says, if these are sizes that it can
   have. */
static pph_status compare(const compiler *c, const pph_graph *program) {
  char found[128], legal[128], inputs[256];
  pph_graph right, written;
  pph_pass_options options;
  pph_error failure = {0};
  pph_pass_options_init(&options);
  options.optimize = false;
  if (specialise(c, &c->model->graph, c->sizes.shapes, &options, &right,
                 &failure) != PPH_OK)
    return PPH_OK;
  pph_size_plan_print(&c->sizes, inputs, sizeof inputs);
  pph_status status = specialise(c, program, c->sizes.shapes, &options,
                                 &written, &failure);
  if (status != PPH_OK) {
    pph_graph_clear(&right);
    return pph_fail(c->error, PPH_UNSUPPORTED, "compile",
                    "a program of open sizes would not run for %s: %s; a step "
                    "(64..256:2) can leave such sizes out",
                    inputs, failure.message);
  }
  for (uint32_t i = 0; status == PPH_OK && i < right.output_count; i++) {
    const pph_value *a = pph_graph_value(&right, right.outputs[i]);
    const pph_value *b = pph_graph_value(&written, written.outputs[i]);
    if (!pph_shape_equal(&a->shape, &b->shape))
      status = pph_fail(c->error, PPH_UNSUPPORTED, a->name,
                        "a program of open sizes would give %s and not %s for "
                        "%s; a step (64..256:2) can leave such sizes out",
                        pph_shape_text(&b->shape, found, sizeof found),
                        pph_shape_text(&a->shape, legal, sizeof legal),
                        inputs);
  }
  pph_graph_clear(&right);
  pph_graph_clear(&written);
  return status;
}

static pph_status compare_all(const compiler *c, const pph_pte *pte) {
  pph_graph program;
  pph_graph_init(&program, c->heap, &c->model->limits);
  pph_status status = pph_pte_import(pte, &pte->program->execution_plan.at[0],
                                     &program, c->error);
  for (uint32_t i = 0;
       status == PPH_OK && pph_size_plan_find_within(&c->sizes, i); i++)
    status = compare(c, &program);
  pph_graph_clear(&program);
  return status;
}

/* Reads the program that was written back. */
static pph_status check_sizes(const compiler *c) {
  pph_pte *pte;
  PPH_TRY(pph_pte_files_open(c->files, c->heap, &pte, c->error));
  pph_status status = compare_all(c, pte);
  pph_pte_close(pte);
  return status;
}

/* Writes and checks a program of open lengths; which these are, `other` tells:
   the model at a second combination of sizes. */
static pph_status write_pair(const compiler *c, const form *how,
                             pph_graph *most, pph_graph *other) {
  PPH_TRY(write_with(c, how, most, other));
  pph_status status = check_sizes(c);
  if (status != PPH_OK)
    pph_pte_files_clear(c->files, c->heap);
  return status;
}

/* Any sizes that the model can have will do, but where few lengths differ, or
   layouts do, others may; the error is that of the first. */
static pph_status write_open(const compiler *c, const form *how,
                             const pph_pass_options *options,
                             pph_graph *most) {
  pph_status first = PPH_OK, status = PPH_INVALID_ARGUMENT;
  for (uint32_t i = 0;
       status != PPH_OK && pph_size_plan_find_other(&c->sizes, i); i++) {
    pph_graph other;
    pph_error unused;
    compiler attempt = *c;
    if (first == PPH_UNSUPPORTED)
      attempt.error = &unused;
    status = specialise(&attempt, &c->model->graph, c->sizes.shapes, options,
                        &other, attempt.error);
    if (status == PPH_OK) {
      status = write_pair(&attempt, how, most, &other);
      pph_graph_clear(&other);
    }
    if (first != PPH_UNSUPPORTED)
      first = status;
  }
  return status == PPH_OK ? PPH_OK : first;
}

static pph_status write(const compiler *c, const form *how) {
  pph_pass_options options;
  pph_graph most;
  pph_pass_options_init(&options);
  options.polyphase = how->polyphase;
  options.folds_upsampling = c->options->accuracy == PPH_ACCURACY_NORMAL;
  pph_size_plan_find_most(&c->sizes);
  PPH_TRY(specialise(c, &c->model->graph, c->sizes.shapes, &options, &most,
                     c->error));
  pph_status status = c->sizes.open_count
                          ? write_open(c, how, &options, &most)
                          : write_with(c, how, &most, NULL);
  pph_graph_clear(&most);
  return status;
}

/* Phases interleave where one length is open; else transposed convolutions
   stay, and other nodes take forms that state no lengths. */
static pph_status try_forms(const compiler *c) {
  pph_lowering lowering = c->options->lowering;
  const form forms[] = {
      {lowering == PPH_LOWERING_ALWAYS  ? PPH_POLYPHASE_ALWAYS
       : lowering == PPH_LOWERING_NEVER ? PPH_POLYPHASE_NEVER
                                        : PPH_POLYPHASE_AUTO,
       false},
      {PPH_POLYPHASE_NEVER, true}};
  pph_status status = write(c, &forms[0]);
  if (status == PPH_UNSUPPORTED && c->sizes.open_count &&
      lowering != PPH_LOWERING_ALWAYS)
    status = write(c, &forms[1]);
  return status;
}

pph_status pph_model_compile(const pph_model *model,
                             const pph_shape_range *inputs,
                             const pph_compile_options *options,
                             pph_heap *heap, pph_pte_files *files,
                             pph_error *error) {
  compiler c = {.model = model, .options = options, .heap = heap,
                .files = files, .error = error};
  *files = (pph_pte_files){.program = NULL};
  if (model->graph.state_count)
    return pph_fail(error, PPH_UNSUPPORTED, "compile",
                    "the model keeps state from run to run, which a program "
                    "that is written here cannot");
  PPH_TRY(pph_size_plan_init(&c.sizes, &model->graph, inputs, heap, error));
  pph_status status = try_forms(&c);
  /* Forms of open lengths were compared with the model as they were written. */
  if (status == PPH_OK && !c.sizes.open_count)
    status = pph_compile_optimize(options, heap, files, error);
  if (status != PPH_OK)
    pph_pte_files_clear(files, heap);
  pph_size_plan_clear(&c.sizes, heap);
  return status;
}
