#include "pte_info.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "json.h"
#include "planned_model.h"
#include "pte/import_plan.h"
#include "pte/warnings.h"
#include "pte_file.h"
#include "report.h"
#include "runtime/loaded_model.h"

/* Everything is printed through JSON calls or as lines, side by side, so that
   both forms tell the same. */
typedef struct printer {
  const tool_options *options;
  const pph_pte *pte;
  const pph_pte_plan *only; /* the method to tell of; NULL: all */
  bool is_json;
  json_writer json;
} printer;

static const char *copy_text(pph_flat_text text, char *to, size_t size) {
  size_t count = text.at ? text.count : 0;
  count = count < size ? count : size - 1;
  for (size_t i = 0; i < count; i++)
    to[i] = (unsigned char)text.at[i] < ' ' ? '?' : text.at[i];
  to[count] = 0;
  return to;
}

static bool tells_of(const printer *p, pph_flat_text method) {
  return !p->only || pph_flat_text_equal(p->only->name, method);
}

static void begin(printer *p, const char *name) {
  if (p->is_json)
    json_begin_array(&p->json, name);
}
static void end(printer *p) {
  if (p->is_json)
    json_end_array(&p->json);
}

static void print_sizes(printer *p, const int32_t *sizes, uint32_t count) {
  for (uint32_t i = 0; i < count && p->is_json; i++)
    json_integer(&p->json, NULL, sizes[i]);
  for (uint32_t i = 0; i < count && !p->is_json; i++)
    printf("%s%d", i ? "," : "", sizes[i]);
}

static void print_tensor(printer *p, const char *name,
                         const pph_pte_tensor *tensor) {
  const char *type = pph_scalar_type_find(tensor->scalar_type)->name;
  bool dynamic = tensor->shape_dynamism > 0;
  if (p->is_json) {
    json_begin_object(&p->json, NULL);
    json_text(&p->json, "name", name);
    json_text(&p->json, "type", type);
    json_begin_array(&p->json, "shape");
    print_sizes(p, tensor->sizes.at, tensor->sizes.count);
    json_end_array(&p->json);
    json_bool(&p->json, "dynamic", dynamic);
    json_bool(&p->json, "permuted", pph_pte_is_permuted(tensor));
    json_end_object(&p->json);
    return;
  }
  printf("  %s %s [", name, type);
  print_sizes(p, tensor->sizes.at, tensor->sizes.count);
  printf("]%s%s\n", dynamic ? ", at most" : "",
         pph_pte_is_permuted(tensor) ? ", other dim_order" : "");
}

static void print_values(printer *p, const char *name, const char *what,
                         const pph_pte_plan *plan, const int32_t *numbers,
                         uint32_t count) {
  begin(p, name);
  for (uint32_t i = 0; i < count; i++) {
    const pph_flat_choice *value = &plan->values.at[numbers[i]].val;
    char given[32]; /* as an import calls it */
    snprintf(given, sizeof given, "%s%u", what, i);
    if (value->type == PPH_PTE_TENSOR)
      print_tensor(p, given, value->value);
    else if (p->is_json)
      json_null(&p->json, NULL);
    else
      printf("  %s, a value of type %u\n", given, value->type);
  }
  end(p);
}

/* One thing with a count, and bytes when it has them. */
static void print_count(printer *p, const char *what, const char *name,
                        uint64_t calls, const size_t *bytes) {
  if (p->is_json) {
    json_begin_object(&p->json, NULL);
    json_text(&p->json, "name", name);
    json_integer(&p->json, "calls", (int64_t)calls);
    if (bytes)
      json_integer(&p->json, "bytes", (int64_t)*bytes);
    json_end_object(&p->json);
    return;
  }
  printf("  %s %s, %" PRIu64 " call%s", what, name, calls,
         calls == 1 ? "" : "s");
  if (bytes)
    printf(", %zu bytes", *bytes);
  printf("\n");
}

/* How many instructions are of that type, and call that operator or delegate
   (their tables start alike). */
static uint64_t count_calls(const pph_pte_plan *plan, uint8_t type,
                            uint32_t number) {
  uint64_t calls = 0;
  for (uint32_t i = 0; i < plan->chains.count; i++) {
    const pph_pte_chain *chain = &plan->chains.at[i];
    for (uint32_t k = 0; k < chain->instructions.count; k++) {
      const pph_flat_choice *step = &chain->instructions.at[k].instr_args;
      const pph_pte_kernel_call *kernel = step->value;
      const pph_pte_delegate_call *delegate = step->value;
      if (step->type != type)
        continue;
      calls += type == PPH_PTE_KERNEL_CALL
                   ? (uint32_t)kernel->op_index == number
                   : type != PPH_PTE_DELEGATE_CALL ||
                         (uint32_t)delegate->delegate_index == number;
    }
  }
  return calls;
}

static void print_operators(printer *p, const pph_pte_plan *plan) {
  begin(p, "operators");
  for (uint32_t i = 0; i < plan->operators.count; i++) {
    char name[96], overload[64], full[164];
    copy_text(plan->operators.at[i].name, name, sizeof name);
    copy_text(plan->operators.at[i].overload, overload, sizeof overload);
    snprintf(full, sizeof full, "%s%s%s", name, overload[0] ? "." : "",
             overload);
    print_count(p, "operator", full,
                count_calls(plan, PPH_PTE_KERNEL_CALL, i), NULL);
  }
  end(p);
  begin(p, "delegates");
  for (uint32_t i = 0; i < plan->delegates.count; i++) {
    const pph_pte_delegate *delegate = &plan->delegates.at[i];
    char name[96];
    size_t bytes = pph_pte_delegate_payload(p->pte, delegate).count;
    print_count(p, "delegate", copy_text(delegate->id, name, sizeof name),
                count_calls(plan, PPH_PTE_DELEGATE_CALL, i), &bytes);
  }
  end(p);
}

static bool has_storage(const pph_pte_plan *plan, uint32_t value,
                        pph_pte_storage storage) {
  const pph_flat_choice *choice = &plan->values.at[value].val;
  if (storage == PPH_PTE_STATE)
    return pph_pte_is_state(plan, value);
  return choice->type == PPH_PTE_TENSOR &&
         pph_pte_tensor_storage(choice->value) == storage;
}

/* The tensors of a kind of storage, together. */
static void print_storage(printer *p, const pph_pte_plan *plan,
                          const char *name, pph_pte_storage storage) {
  uint64_t count = 0;
  size_t bytes = 0;
  for (uint32_t i = 0; i < plan->values.count; i++) {
    if (!has_storage(plan, i, storage))
      continue;
    count++;
    bytes += pph_pte_tensor_size(plan->values.at[i].val.value);
  }
  if (p->is_json) {
    json_begin_object(&p->json, name);
    json_integer(&p->json, "count", (int64_t)count);
    json_integer(&p->json, "bytes", (int64_t)bytes);
    json_end_object(&p->json);
  } else if (count) {
    printf("  %s: %" PRIu64 ", %zu bytes\n", name, count, bytes);
  }
}

/* Whether `run` takes the method: an import is made, for that is what knows. */
static bool print_runs(printer *p, const pph_pte_plan *plan) {
  pph_graph graph;
  pph_heap heap;
  pph_error error = {0};
  const pph_limits *limits = &p->options->limits;
  pph_heap_init(&heap, NULL, limits->heap_bytes);
  pph_graph_init(&graph, &heap, limits);
  bool runs = pph_pte_import(p->pte, plan, &graph, &error) == PPH_OK;
  pph_graph_clear(&graph);
  char why[TOOL_MESSAGE];
  tool_explain(&error, why);
  if (p->is_json) {
    json_bool(&p->json, "runs", runs);
    json_text(&p->json, "why_not", runs ? NULL : why);
  } else {
    printf("  runs: %s%s\n", runs ? "yes" : "no, because ", runs ? "" : why);
  }
  return runs;
}

static void print_notes(printer *p, const pph_session *session) {
  if (!p->is_json) {
    report_print_notes(session);
    return;
  }
  begin(p, "upsampling");
  for (uint32_t i = 0; i < pph_session_plan(session).notes; i++) {
    pph_note_info note = pph_session_note(session, i);
    json_begin_object(&p->json, NULL);
    json_text(&p->json, "name", note.name);
    json_text(&p->json, "kind", note.kind);
    json_text(&p->json, "lowered", note.lowered);
    json_text(&p->json, "reason", note.reason);
    json_end_object(&p->json);
  }
  end(p);
}

/* What becomes of upsampling nodes when the method runs with what it declares;
   dynamic sizes are at their bounds. */
static void print_upsampling(printer *p, const char *method) {
  tool_options options = *p->options;
  planned_model planned;
  pph_error error = {0};
  char why[TOOL_MESSAGE];
  options.method = method;
  pph_status status = planned_model_open(&options, &planned, &error);
  tool_explain(&error, why);
  if (status == PPH_OK)
    print_notes(p, planned.session);
  else if (p->is_json)
    json_text(&p->json, "no_plan", why);
  else
    printf("  no plan: %s\n", why);
  planned_model_close(&planned);
}

static void print_plan(printer *p, const pph_pte_plan *plan) {
  char name[128];
  copy_text(plan->name, name, sizeof name);
  if (p->is_json) {
    json_begin_object(&p->json, NULL);
    json_text(&p->json, "name", name);
  } else {
    printf("method %s\n", name);
  }
  bool runs = print_runs(p, plan);
  print_values(p, "inputs", "input", plan, plan->inputs.at,
               plan->inputs.count);
  print_values(p, "outputs", "output", plan, plan->outputs.at,
               plan->outputs.count);
  print_operators(p, plan);
  print_storage(p, plan, "constants", PPH_PTE_CONSTANT);
  print_storage(p, plan, "external", PPH_PTE_EXTERNAL);
  print_storage(p, plan, "state", PPH_PTE_STATE);
  if (runs)
    print_upsampling(p, name);
  if (p->is_json)
    json_end_object(&p->json);
}

/* Names that an exporter made of contents tell people nothing. */
static bool is_hash(const char *name) {
  return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

/* Those are counted for one line; JSON has them all. */
typedef struct hashed {
  uint32_t count;
  size_t bytes;
} hashed;

static void print_data(printer *p, const pph_pte_image *image,
                       pph_flat_text key, uint32_t segment, hashed *left_out) {
  char name[160];
  size_t bytes = image->segments[segment].count;
  copy_text(key, name, sizeof name);
  if (p->is_json) {
    json_begin_object(&p->json, NULL);
    json_text(&p->json, "key", name);
    json_integer(&p->json, "segment", segment);
    json_integer(&p->json, "bytes", (int64_t)bytes);
    json_end_object(&p->json);
  } else if (is_hash(name)) {
    left_out->count++;
    left_out->bytes += bytes;
  } else {
    printf("named data %s, segment %u, %zu bytes\n", name, segment, bytes);
  }
}

static void print_segments(printer *p, const pph_pte_image *image) {
  size_t bytes = 0;
  begin(p, "segments");
  for (uint32_t i = 0; i < image->segment_count; i++) {
    bytes += image->segments[i].count;
    if (p->is_json)
      json_integer(&p->json, NULL, (int64_t)image->segments[i].count);
  }
  end(p);
  if (!p->is_json)
    printf("segments: %u, %zu bytes\n", image->segment_count, bytes);
}

static void print_all_data(printer *p) {
  const pph_pte_program *program = p->pte->program;
  hashed left_out = {0};
  begin(p, "named_data");
  for (uint32_t i = 0; program && i < program->named_data.count; i++)
    print_data(p, &p->pte->image, program->named_data.at[i].key,
               program->named_data.at[i].segment_index, &left_out);
  for (uint32_t i = 0; i < p->pte->external_count; i++) {
    const pph_pte_external *external = &p->pte->externals[i];
    for (uint32_t k = 0; k < external->tensors->named_data.count; k++)
      print_data(p, &external->image, external->tensors->named_data.at[k].key,
                 external->tensors->named_data.at[k].segment_index, &left_out);
  }
  end(p);
  if (left_out.count)
    printf("named data: %u called by a hash, %zu bytes (listed by --json)\n",
           left_out.count, left_out.bytes);
}

static void print_warning(void *context, pph_flat_text method,
                          const char *text) {
  printer *p = context;
  char name[128], line[512];
  if (!tells_of(p, method))
    return;
  snprintf(line, sizeof line, "method %s: %s",
           copy_text(method, name, sizeof name), text);
  if (p->is_json)
    json_text(&p->json, NULL, line);
  else
    printf("warning: %s\n", line);
}

static void print_unknown(printer *p, const pph_flat_unknown *unknown) {
  if (p->is_json && unknown->table)
    json_text(&p->json, "unknown", unknown->table);
  else if (unknown->table)
    printf("unknown: number %u of %s; the file can be read but not written\n",
           unknown->number, unknown->table);
}

static void print_tests(printer *p) {
  const pph_bundle_program *bundle = p->pte->bundle;
  begin(p, "tests");
  for (uint32_t i = 0; bundle && i < bundle->method_test_suites.count; i++) {
    const pph_bundle_test_suite *suite = &bundle->method_test_suites.at[i];
    char name[128];
    copy_text(suite->method_name, name, sizeof name);
    if (!tells_of(p, suite->method_name))
      continue;
    if (p->is_json)
      json_integer(&p->json, NULL, suite->test_cases.count);
    else
      printf("tests of %s: %u\n", name, suite->test_cases.count);
  }
  end(p);
}

static void print_container(printer *p) {
  const pph_pte_program *program = p->pte->program;
  const pph_pte_image *image =
      program ? &p->pte->image : &p->pte->externals[0].image;
  if (p->is_json)
    json_begin_object(&p->json, NULL);
  begin(p, "methods");
  for (uint32_t i = 0; program && i < program->execution_plan.count; i++)
    if (tells_of(p, program->execution_plan.at[i].name))
      print_plan(p, &program->execution_plan.at[i]);
  end(p);
  print_segments(p, image);
  print_all_data(p);
  print_tests(p);
  print_unknown(p, &image->unknown);
  begin(p, "warnings");
  pph_pte_warn(p->pte, print_warning, p);
  end(p);
  if (p->is_json)
    json_end_object(&p->json);
}

pph_status pte_info_print(const tool_options *options, pph_error *error) {
  printer p = {.options = options, .is_json = options->json};
  pte_file file;
  pph_status status = pte_file_open(options, &file, error);
  p.pte = file.pte;
  json_init(&p.json, stdout);
  if (status == PPH_OK && options->method)
    status = pph_error_in_file(
        error, options->arguments[0],
        pph_loaded_model_find_method(p.pte, options->method, &p.only, error));
  if (status == PPH_OK)
    print_container(&p);
  pte_file_close(&file);
  return status;
}
