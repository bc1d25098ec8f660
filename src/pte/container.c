#include "pte/container.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/container_check.h"

/* What a file starts with, at byte 4. */
static const char PROGRAM[] = "ET12", BUNDLE[] = "BP08", DATA[] = "FT01";

static bool has_identifier(pph_pte_bytes file, const char *identifier) {
  return file.count >= 8 && memcmp(file.at + 4, identifier, 4) == 0;
}

/* A recording of a run, often with its size before it. */
static bool is_profile(pph_pte_bytes file) {
  return has_identifier(file, "ED00") ||
         (file.count >= 12 && memcmp(file.at + 8, "ED00", 4) == 0);
}

bool pph_pte_is_container(const void *bytes, size_t length) {
  pph_pte_bytes file = {bytes, length};
  return has_identifier(file, PROGRAM) || has_identifier(file, BUNDLE) ||
         has_identifier(file, DATA) || is_profile(file);
}

bool pph_flat_text_is(pph_flat_text text, const char *other) {
  size_t length = strlen(other);
  return text.at && text.count == length &&
         memcmp(text.at, other, length) == 0;
}

bool pph_flat_text_equal(pph_flat_text a, pph_flat_text b) {
  return a.count == b.count && memcmp(a.at, b.at, a.count) == 0;
}

/* Puts the file's name before the place of an error. */
static pph_status name_file(const char *name, pph_status status,
                            pph_error *error) {
  if (status == PPH_OK || !error || !name || !name[0])
    return status;
  char place[sizeof error->where];
  memcpy(place, error->where, sizeof place);
  snprintf(error->where, sizeof error->where, "%s%s%.150s", name,
           place[0] ? ": " : "", place);
  return status;
}

static pph_status read_program(pph_pte *pte, pph_pte_bytes file,
                               pph_error *error) {
  if (is_profile(file))
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "is a profile of a run by ExecuTorch (.etdp), must be a "
                    "program or a model");
  if (!has_identifier(file, PROGRAM))
    return pph_fail(error, PPH_BAD_MODEL, "", "is no program: bytes 4 to 7 "
                                              "must be ET12");
  PPH_TRY(pph_pte_image_read(file, pph_pte_program_schema(), &pte->arena,
                             &pte->image, error));
  pph_pte_program *program = pte->program = pte->image.root;
  PPH_TRY(pph_pte_image_read_segments(&pte->image, program->segments.at,
                                      program->segments.count, &pte->arena,
                                      error));
  return pph_pte_check_program(pte, error);
}

static pph_status read_bundle(pph_pte *pte, pph_pte_bytes file,
                              pph_error *error) {
  PPH_TRY(pph_pte_image_read(file, pph_bundle_program_schema(), &pte->arena,
                             &pte->bundle_image, error));
  pte->bundle = pte->bundle_image.root;
  pph_pte_bytes inner = {pte->bundle->program.at, pte->bundle->program.count};
  PPH_TRY(read_program(pte, inner, error));
  return pph_pte_check_bundle(pte, error);
}

static pph_status read_external(pph_pte *pte, const pph_pte_source *source,
                                pph_error *error) {
  pph_pte_external *made = &pte->externals[pte->external_count++];
  const char *name = source->name ? source->name : "";
  if (!has_identifier(source->bytes, DATA))
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "is no file of constants: bytes 4 to 7 must be FT01");
  made->name = pph_arena_copy_text(&pte->arena, name, strlen(name));
  if (!made->name)
    return pph_fail_memory(error);
  PPH_TRY(pph_pte_image_read(source->bytes, pph_ptd_flat_tensor_schema(),
                             &pte->arena, &made->image, error));
  made->tensors = made->image.root;
  PPH_TRY(pph_pte_image_read_segments(
      &made->image, made->tensors->segments.at, made->tensors->segments.count,
      &pte->arena, error));
  return pph_pte_check_external(made, error);
}

static pph_status read_main(pph_pte *pte, const pph_pte_source *source,
                            pph_error *error) {
  if (has_identifier(source->bytes, DATA))
    return read_external(pte, source, error);
  if (has_identifier(source->bytes, BUNDLE))
    return read_bundle(pte, source->bytes, error);
  return read_program(pte, source->bytes, error);
}

static pph_status read_all(pph_pte *pte, const pph_pte_source *source,
                           const pph_pte_source *externals, uint32_t count,
                           pph_error *error) {
  pte->externals = pph_arena_allocate(&pte->arena, (size_t)count + 1,
                                      sizeof *pte->externals);
  if (!pte->externals)
    return pph_fail_memory(error);
  PPH_TRY(name_file(source->name, read_main(pte, source, error), error));
  for (uint32_t i = 0; i < count; i++)
    PPH_TRY(name_file(externals[i].name,
                      read_external(pte, &externals[i], error), error));
  return PPH_OK;
}

pph_status pph_pte_open(const pph_pte_source *main,
                        const pph_pte_source *externals,
                        uint32_t external_count, pph_heap *heap, pph_pte **pte,
                        pph_error *error) {
  *pte = NULL;
  pph_pte *made = pph_heap_allocate_zeroed(heap, 1, sizeof *made);
  if (!made)
    return pph_fail_memory(error);
  made->heap = heap;
  pph_arena_init(&made->arena, heap);
  pph_status status = read_all(made, main, externals, external_count, error);
  if (status == PPH_OK)
    *pte = made;
  else
    pph_pte_close(made);
  return status;
}

void pph_pte_close(pph_pte *pte) {
  if (!pte)
    return;
  pph_arena_clear(&pte->arena);
  pph_heap_release(pte->heap, pte);
}

const pph_pte_plan *pph_pte_find_method(const pph_pte *pte, const char *name) {
  for (uint32_t i = 0; pte->program && i < pte->program->execution_plan.count;
       i++)
    if (pph_flat_text_is(pte->program->execution_plan.at[i].name, name))
      return &pte->program->execution_plan.at[i];
  return NULL;
}

pph_pte_bytes pph_pte_delegate_payload(const pph_pte *pte,
                                       const pph_pte_delegate *delegate) {
  uint32_t index = delegate->processed->index;
  if (delegate->processed->location == PPH_PTE_IN_SEGMENT)
    return pte->image.segments[index];
  const pph_pte_inline_data *data =
      &pte->program->backend_delegate_data.at[index];
  return (pph_pte_bytes){data->data.at, data->data.count};
}

static const pph_ptd_named_data *find_external(const pph_pte *pte,
                                               pph_flat_text key,
                                               const pph_pte_external **from) {
  for (uint32_t i = 0; i < pte->external_count; i++) {
    const pph_ptd_flat_tensor *tensors = pte->externals[i].tensors;
    *from = &pte->externals[i];
    for (uint32_t k = 0; k < tensors->named_data.count; k++)
      if (pph_flat_text_equal(tensors->named_data.at[k].key, key))
        return &tensors->named_data.at[k];
  }
  return NULL;
}

bool pph_pte_find_data(const pph_pte *pte, pph_flat_text key,
                       pph_pte_bytes *bytes,
                       const pph_pte_external **external) {
  const pph_pte_external *from;
  const pph_ptd_named_data *found = find_external(pte, key, &from);
  if (external)
    *external = found ? from : NULL;
  if (found) {
    *bytes = from->image.segments[found->segment_index];
    return true;
  }
  for (uint32_t i = 0; pte->program && i < pte->program->named_data.count;
       i++) {
    const pph_pte_named_data *row = &pte->program->named_data.at[i];
    if (!pph_flat_text_equal(row->key, key))
      continue;
    *bytes = pte->image.segments[row->segment_index];
    return true;
  }
  return false;
}

pph_pte_storage pph_pte_tensor_storage(const pph_pte_tensor *tensor) {
  const pph_pte_extra_info *extra = tensor->extra_tensor_info;
  if (tensor->allocation_info)
    return tensor->data_buffer_idx ? PPH_PTE_STATE : PPH_PTE_PLANNED;
  if (extra && extra->location == PPH_PTE_LOCATION_EXTERNAL)
    return PPH_PTE_EXTERNAL;
  return tensor->data_buffer_idx ? PPH_PTE_CONSTANT : PPH_PTE_GIVEN;
}

static bool copies_to(const pph_pte_plan *plan,
                      const pph_pte_instruction *step, uint32_t value) {
  const pph_pte_kernel_call *call = step->instr_args.value;
  return step->instr_args.type == PPH_PTE_KERNEL_CALL && call->args.count &&
         (uint32_t)call->args.at[0] == value &&
         pph_flat_text_is(plan->operators.at[call->op_index].name,
                          "aten::copy_");
}

bool pph_pte_is_state(const pph_pte_plan *plan, uint32_t value) {
  const pph_flat_choice *choice = &plan->values.at[value].val;
  if (choice->type != PPH_PTE_TENSOR)
    return false;
  pph_pte_storage storage = pph_pte_tensor_storage(choice->value);
  bool found = storage == PPH_PTE_STATE;
  for (uint32_t i = 0; i < plan->chains.count && !found; i++)
    for (uint32_t k = 0; k < plan->chains.at[i].instructions.count; k++)
      found |= copies_to(plan, &plan->chains.at[i].instructions.at[k], value);
  return found && (storage == PPH_PTE_STATE || storage == PPH_PTE_PLANNED);
}

bool pph_pte_count_bytes(int8_t scalar_type, const int32_t *sizes,
                         uint32_t count, size_t *bytes) {
  const pph_scalar_type *type = pph_scalar_type_find(scalar_type);
  *bytes = type ? type->bytes : 0;
  for (uint32_t i = 0; i < count; i++)
    if (sizes[i] < 0 || !pph_checked_mul(*bytes, (size_t)sizes[i], bytes))
      return false;
  return type != NULL && *bytes <= PTRDIFF_MAX;
}

bool pph_pte_is_permuted(const pph_pte_tensor *tensor) {
  for (uint32_t i = 0; i < tensor->dim_order.count; i++)
    if (tensor->dim_order.at[i] != i)
      return true;
  return false;
}

size_t pph_pte_tensor_size(const pph_pte_tensor *tensor) {
  size_t bytes;
  bool counted = pph_pte_count_bytes(tensor->scalar_type, tensor->sizes.at,
                                     tensor->sizes.count, &bytes);
  return counted ? bytes : 0;
}

/* The .ptd's tensor must be the program's, type, sizes and order. */
static bool same_layout(const pph_pte_tensor *tensor,
                        const pph_ptd_layout *layout) {
  return layout && layout->scalar_type == tensor->scalar_type &&
         layout->sizes.count == tensor->sizes.count &&
         memcmp(layout->sizes.at, tensor->sizes.at,
                tensor->sizes.count * sizeof *tensor->sizes.at) == 0 &&
         memcmp(layout->dim_order.at, tensor->dim_order.at,
                tensor->dim_order.count) == 0;
}

static bool find_external_tensor(const pph_pte *pte,
                                 const pph_pte_tensor *tensor,
                                 pph_pte_bytes *bytes) {
  const pph_pte_external *from;
  const pph_ptd_named_data *found = find_external(
      pte, tensor->extra_tensor_info->fully_qualified_name, &from);
  if (!found || !same_layout(tensor, found->tensor_layout))
    return false;
  *bytes = from->image.segments[found->segment_index];
  return true;
}

bool pph_pte_tensor_bytes(const pph_pte *pte, const pph_pte_tensor *tensor,
                          pph_pte_bytes *bytes) {
  pph_pte_storage storage = pph_pte_tensor_storage(tensor);
  bool found = storage == PPH_PTE_EXTERNAL
                   ? find_external_tensor(pte, tensor, bytes)
                   : pph_pte_find_stored(pte->program, &pte->image, tensor,
                                         bytes);
  bytes->count = found ? pph_pte_tensor_size(tensor) : 0;
  return found;
}
