/* From a file to a graph. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "onnx/onnx.h"
#include "pte/import_plan.h"
#include "runtime/constant_files.h"
#include "runtime/loaded_model.h"

static pph_status read_open_file(FILE *file, const char *path,
                                 const pph_limits *limits, pph_heap *heap,
                                 void **bytes, size_t *length,
                                 pph_error *error);

pph_status pph_file_read(const char *path, const pph_limits *limits,
                         pph_heap *heap, void **bytes, size_t *length,
                         pph_error *error) {
  *bytes = NULL;
  *length = 0;
  /* NONBLOCK: opening a pipe that nobody writes to must not wait. */
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
  if (!file) {
    pph_fail(error, PPH_IO_FAILED, path, "cannot be opened: %s",
             strerror(errno));
    if (descriptor >= 0)
      close(descriptor);
    return PPH_IO_FAILED;
  }
  pph_status status =
      read_open_file(file, path, limits, heap, bytes, length, error);
  fclose(file);
  return status;
}

static pph_status read_open_file(FILE *file, const char *path,
                                 const pph_limits *limits, pph_heap *heap,
                                 void **bytes, size_t *length,
                                 pph_error *error) {
  struct stat facts;
  if (fstat(fileno(file), &facts) != 0 || !S_ISREG(facts.st_mode))
    return pph_fail(error, PPH_IO_FAILED, path, "is not a regular file");
  if ((uint64_t)facts.st_size > limits->file_bytes)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, path,
                    "has %llu bytes, the limit is %llu",
                    (unsigned long long)facts.st_size,
                    (unsigned long long)limits->file_bytes);
  size_t size = (size_t)facts.st_size;
  void *block = pph_heap_allocate(heap, size, 1);
  if (!block)
    return pph_fail_memory(error);
  if (fread(block, 1, size, file) != size) {
    pph_heap_release(heap, block);
    return pph_fail(error, PPH_IO_FAILED, path, "ended early while reading");
  }
  *bytes = block;
  *length = size;
  return PPH_OK;
}

static void list_methods(const pph_pte_program *program, char *text,
                         size_t size) {
  size_t used = 0;
  for (uint32_t i = 0; i < program->execution_plan.count && used < size; i++) {
    pph_flat_text name = program->execution_plan.at[i].name;
    used += (size_t)snprintf(text + used, size - used, "%s%.*s",
                             i ? ", " : "",
                             name.count < 60 ? (int)name.count : 60, name.at);
  }
}

pph_status pph_loaded_model_find_method(const pph_pte *pte, const char *name,
                                        const pph_pte_plan **plan,
                                        pph_error *error) {
  char methods[160];
  if (!pte->program)
    return pph_fail(error, PPH_UNSUPPORTED, "",
                    "a .ptd file has constants and no model");
  *plan = pph_pte_find_method(pte, name ? name : "forward");
  if (!*plan && !name && pte->program->execution_plan.count == 1)
    *plan = &pte->program->execution_plan.at[0];
  if (*plan)
    return PPH_OK;
  list_methods(pte->program, methods, sizeof methods);
  return pph_fail(error, PPH_INVALID_ARGUMENT, "",
                  name ? "has no method \"%.60s\"; its methods: %s"
                       : "has no method \"%.60s\", one must be chosen of: %s",
                  name ? name : "forward", methods);
}

static pph_status import_with(pph_model *model,
                              const pph_constant_files *files,
                              const char *method, pph_error *error) {
  pph_pte_source source = {"", {model->bytes, model->length}};
  const pph_pte_plan *plan;
  pph_pte *pte;
  PPH_TRY(pph_pte_open(&source, files->sources, files->count, &model->heap,
                       &pte, error));
  pph_status status = pph_loaded_model_find_method(pte, method, &plan, error);
  if (status == PPH_OK)
    status = pph_pte_import(pte, plan, &model->graph, error);
  pph_pte_close(pte);
  return status;
}

/* The graph copies constants, so the .ptd files' bytes are needed no longer
   than this. */
static pph_status import_pte(pph_model *model,
                             const pph_model_options *options,
                             pph_error *error) {
  pph_constant_files files;
  pph_status status = pph_constant_files_read(
      options ? options->constants : NULL,
      options ? options->constant_count : 0, &model->limits, &model->heap,
      &files, error);
  if (status == PPH_OK)
    status = import_with(model, &files, options ? options->method : NULL,
                         error);
  pph_constant_files_clear(&files);
  return status;
}

/* What is no container is taken for ONNX: protobuf has no magic. */
pph_status pph_loaded_model_import(pph_model *model, const char *folder,
                                   const pph_model_options *options,
                                   pph_error *error) {
  if (pph_pte_is_container(model->bytes, model->length))
    return import_pte(model, options, error);
  if (options && options->method)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "",
                    "is no ExecuTorch program, so it has no methods");
  if (options && options->constant_count)
    return pph_fail(error, PPH_INVALID_ARGUMENT, "",
                    "is no ExecuTorch program, so it takes no constants of "
                    "pph_model_options.constants");
  return pph_onnx_import(model->bytes, model->length, folder, &model->limits,
                         &model->graph, error);
}
