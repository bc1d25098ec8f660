/* check of a bundle: a program that brings its test cases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "check.h"
#include "pte_file.h"

/* A method under test. */
typedef struct method {
  const tool_options *options;
  char name[128];
  pph_model *model;
  pph_session *session;
  pph_tensor *inputs, *outputs;
  bool same;
} method;

/* Elements of the case as a tensor of their own, by malloc: the file's are at
   any address. */
static pph_status take(const method *m, const pph_bundle_value *value,
                       pph_tensor *tensor, pph_error *error) {
  const pph_bundle_tensor *from = value->val.value;
  bool permuted = false;
  *tensor = (pph_tensor){.data = NULL};
  if (value->val.type != PPH_BUNDLE_TENSOR)
    return pph_fail(error, PPH_UNSUPPORTED, m->name,
                    "a test case has a number, only tensors are supported");
  for (uint32_t i = 0; i < from->dim_order.count; i++)
    permuted |= from->dim_order.at[i] != i;
  tensor->type = pph_scalar_type_find(from->scalar_type)->type;
  tensor->shape.rank = (int32_t)from->sizes.count;
  if (permuted || !tensor->type || from->sizes.count > PPH_MAX_RANK)
    return pph_fail(error, PPH_UNSUPPORTED, m->name,
                    "a test case has a tensor with another dim_order, type or "
                    "more than %d dimensions",
                    PPH_MAX_RANK);
  for (uint32_t i = 0; i < from->sizes.count; i++)
    tensor->shape.dims[i] = from->sizes.at[i];
  tensor->data = malloc((size_t)from->data.count + 1);
  if (!tensor->data)
    return pph_fail_memory(error);
  if (from->data.count)
    memcpy(tensor->data, from->data.at, from->data.count);
  return PPH_OK;
}

static pph_status compare_case(method *m, uint32_t number,
                               const pph_bundle_test_case *test,
                               pph_error *error) {
  for (uint32_t i = 0; i < test->expected_outputs.count; i++) {
    char name[200];
    pph_tensor right;
    snprintf(name, sizeof name, "%s, case %u, %s", m->name, number,
             pph_model_output(m->model, i).name);
    check_row row = {.name = name};
    PPH_TRY(take(m, &test->expected_outputs.at[i], &right, error));
    check_compare(m->options, &m->outputs[i], &right, &row);
    free(right.data);
    m->same &= row.same_shape && row.different == 0;
    check_report_add(&row, m->options->json);
  }
  return PPH_OK;
}

static pph_status run_case(method *m, uint32_t number,
                           const pph_bundle_test_case *test,
                           pph_error *error) {
  uint32_t outputs = pph_model_output_count(m->model);
  if (test->inputs.count != pph_model_input_count(m->model) ||
      test->expected_outputs.count != outputs)
    return pph_fail(error, PPH_BAD_MODEL, m->name,
                    "test case %u has %u inputs and %u outputs, the method %u "
                    "and %u",
                    number, test->inputs.count, test->expected_outputs.count,
                    pph_model_input_count(m->model), outputs);
  pph_status status = PPH_OK;
  for (uint32_t i = 0; i < test->inputs.count && status == PPH_OK; i++)
    status = take(m, &test->inputs.at[i], &m->inputs[i], error);
  if (status == PPH_OK)
    status = pph_session_run(m->session, m->inputs, test->inputs.count,
                             m->outputs, outputs, error);
  if (status == PPH_OK)
    status = compare_case(m, number, test, error);
  for (uint32_t i = 0; i < test->inputs.count; i++) {
    free(m->inputs[i].data);
    m->inputs[i].data = NULL;
  }
  return status;
}

static pph_status open_method(method *m, pph_error *error) {
  tool_options options = *m->options;
  options.method = m->name;
  PPH_TRY(tool_load_model(&options, options.arguments[0], &m->model, error));
  PPH_TRY(
      pph_session_create(m->model, &options.session, &m->session, error));
  m->inputs =
      calloc((size_t)pph_model_input_count(m->model) + 1, sizeof *m->inputs);
  m->outputs =
      calloc((size_t)pph_model_output_count(m->model) + 1, sizeof *m->outputs);
  return m->inputs && m->outputs ? PPH_OK : pph_fail_memory(error);
}

static pph_status run_suite(method *m, const pph_bundle_test_suite *suite,
                            pph_error *error) {
  snprintf(m->name, sizeof m->name, "%.*s",
           pph_flat_text_cut(suite->method_name, sizeof m->name - 1),
           suite->method_name.at);
  pph_status status = open_method(m, error);
  for (uint32_t i = 0; i < suite->test_cases.count && status == PPH_OK; i++)
    status = run_case(m, i, &suite->test_cases.at[i], error);
  free(m->inputs);
  free(m->outputs);
  pph_session_destroy(m->session);
  pph_model_destroy(m->model);
  return status;
}

static pph_status run_suites(const tool_options *options,
                             const pph_bundle_program *bundle, bool *same,
                             pph_error *error) {
  pph_status status = PPH_OK;
  check_report_begin(options->json);
  for (uint32_t i = 0;
       i < bundle->method_test_suites.count && status == PPH_OK; i++) {
    const pph_bundle_test_suite *suite = &bundle->method_test_suites.at[i];
    if (options->method && !pph_flat_text_is(suite->method_name,
                                             options->method))
      continue;
    method m = {.options = options, .same = true};
    status = run_suite(&m, suite, error);
    *same &= m.same && status == PPH_OK;
  }
  check_report_end(*same, options->json);
  return status;
}

pph_status check_bundle(const tool_options *options, bool *same,
                        pph_error *error) {
  pte_file file;
  *same = true;
  pph_status status = pte_file_open(options, &file, error);
  if (status == PPH_OK)
    status = run_suites(options, file.pte->bundle, same, error);
  pte_file_close(&file);
  return pph_error_in_file(error, options->arguments[0], status);
}
