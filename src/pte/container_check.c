#include "pte/container_check.h"

#include "base/fail.h"
#include "pte/check_path.h"

static pph_status check_program_tables(checker *c,
                                       const pph_pte_program *program) {
  uint32_t segments = program->segments.count;
  pph_flat_path_push(&c->path, "mutable_data_segments");
  for (uint32_t i = 0; i < program->mutable_data_segments.count; i++) {
    pph_flat_path_index(&c->path, i);
    PPH_TRY(pph_check_index(
        c, "segment_index", program->mutable_data_segments.at[i].segment_index,
        segments));
  }
  pph_flat_path_pop(&c->path);
  pph_flat_path_push(&c->path, "named_data");
  for (uint32_t i = 0; i < program->named_data.count; i++) {
    pph_flat_path_index(&c->path, i);
    PPH_TRY(pph_check_index(c, "segment_index",
                            program->named_data.at[i].segment_index,
                            segments));
  }
  pph_flat_path_pop(&c->path);
  /* With no more than the placeholder nothing is looked up. */
  const pph_pte_subsegment *constants = program->constant_segment;
  if (!constants || constants->offsets.count <= 1)
    return PPH_OK;
  pph_flat_path_push(&c->path, "constant_segment");
  PPH_TRY(pph_check_index(c, "segment_index", constants->segment_index,
                          segments));
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

pph_status pph_pte_check_program(const pph_pte *pte, pph_error *error) {
  checker c = {.pte = pte, .error = error};
  const pph_pte_program *program = pte->program;
  pph_flat_path_push(&c.path, "Program");
  PPH_TRY(check_program_tables(&c, program));
  pph_flat_path_push(&c.path, "execution_plan");
  if (!program->execution_plan.count)
    return pph_check_fail(&c, "is empty; a program has at least one method");
  for (uint32_t i = 0; i < program->execution_plan.count; i++) {
    pph_flat_path_index(&c.path, i);
    PPH_TRY(pph_check_plan(&c, &program->execution_plan.at[i]));
  }
  return PPH_OK;
}

static pph_status check_bundle_tensor(checker *c,
                                      const pph_bundle_tensor *tensor) {
  size_t bytes;
  PPH_TRY(pph_check_layout(c, tensor->scalar_type, tensor->sizes.at,
                           tensor->sizes.count, tensor->dim_order.at,
                           tensor->dim_order.count, &bytes));
  if (bytes != tensor->data.count)
    return pph_check_fail(c, "data has %u bytes, its type and sizes need %zu",
                          tensor->data.count, bytes);
  return PPH_OK;
}

static pph_status check_bundle_values(checker *c, const char *name,
                                      const pph_bundle_value *values,
                                      uint32_t count) {
  pph_flat_path_push(&c->path, name);
  for (uint32_t i = 0; i < count; i++) {
    pph_flat_path_index(&c->path, i);
    if (!values[i].val.value)
      return pph_check_fail(c, "has a value of type %u; tensors and numbers "
                               "are legal",
                            values[i].val.type);
    if (values[i].val.type == PPH_BUNDLE_TENSOR)
      PPH_TRY(check_bundle_tensor(c, values[i].val.value));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

static pph_status check_suite(checker *c, const pph_bundle_test_suite *suite) {
  bool known = false;
  for (uint32_t i = 0; i < c->pte->program->execution_plan.count; i++)
    known |= suite->method_name.at &&
             pph_flat_text_equal(c->pte->program->execution_plan.at[i].name,
                                 suite->method_name);
  if (!known)
    return pph_check_fail(c, "method_name is \"%.*s\", which is no method of "
                             "the program",
                          (int)(suite->method_name.count < 99
                                    ? suite->method_name.count
                                    : 99),
                          suite->method_name.at ? suite->method_name.at : "");
  pph_flat_path_push(&c->path, "test_cases");
  for (uint32_t i = 0; i < suite->test_cases.count; i++) {
    const pph_bundle_test_case *test = &suite->test_cases.at[i];
    pph_flat_path_index(&c->path, i);
    PPH_TRY(check_bundle_values(c, "inputs", test->inputs.at,
                                test->inputs.count));
    PPH_TRY(check_bundle_values(c, "expected_outputs",
                                test->expected_outputs.at,
                                test->expected_outputs.count));
  }
  pph_flat_path_pop(&c->path);
  return PPH_OK;
}

pph_status pph_pte_check_bundle(const pph_pte *pte, pph_error *error) {
  checker c = {.pte = pte, .error = error};
  pph_flat_path_push(&c.path, "BundledProgram");
  pph_flat_path_push(&c.path, "method_test_suites");
  for (uint32_t i = 0; i < pte->bundle->method_test_suites.count; i++) {
    pph_flat_path_index(&c.path, i);
    PPH_TRY(check_suite(&c, &pte->bundle->method_test_suites.at[i]));
  }
  return PPH_OK;
}

pph_status pph_pte_check_external(const pph_pte_external *external,
                                  pph_error *error) {
  checker c = {.error = error};
  const pph_pte_image *image = &external->image;
  pph_flat_path_push(&c.path, "FlatTensor");
  pph_flat_path_push(&c.path, "named_data");
  for (uint32_t i = 0; i < external->tensors->named_data.count; i++) {
    const pph_ptd_named_data *row = &external->tensors->named_data.at[i];
    const pph_ptd_layout *layout = row->tensor_layout;
    pph_flat_path_index(&c.path, i);
    PPH_TRY(pph_check_index(&c, "segment_index", row->segment_index,
                            image->segment_count));
    if (!layout)
      continue;
    size_t bytes, have = image->segments[row->segment_index].count;
    PPH_TRY(pph_check_layout(&c, layout->scalar_type, layout->sizes.at,
                             layout->sizes.count, layout->dim_order.at,
                             layout->dim_order.count, &bytes));
    if (bytes > have)
      return pph_check_fail(&c, "the tensor needs %zu bytes, its segment has "
                                "%zu",
                            bytes, have);
  }
  return PPH_OK;
}
