#include "report.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "json.h"
#include "runtime/loaded_model.h"
#include "table.h"

static void add_shape(table *rows, const pph_shape *shape) {
  char text[128];
  table_add(rows, pph_shape_text(shape, text, sizeof text));
}

static void finish_table(table *rows) {
  table_print(rows, stdout);
  table_clear(rows);
}

/* bench MODEL */

static void print_bench_json(const report_bench *bench) {
  json_writer json;
  json_init(&json, stdout);
  json_begin_object(&json, NULL);
  json_text(&json, "model", bench->model);
  json_integer(&json, "threads", bench->threads);
  json_number(&json, "us", bench->us);
  json_number(&json, "us_min", bench->us_min);
  json_integer(&json, "peak_bytes", (int64_t)bench->plan.peak_bytes);
  json_integer(&json, "transposes", bench->plan.transposes);
  json_begin_array(&json, "nodes");
  for (uint32_t i = 0; i < bench->step_count; i++) {
    const report_step *step = &bench->steps[i];
    json_begin_object(&json, NULL);
    json_text(&json, "name", step->info.name);
    json_text(&json, "kind", step->info.kind);
    json_shape(&json, "output_shape", &step->info.output_shape);
    json_text(&json, "algorithm", step->info.algorithm);
    json_number(&json, "us", step->us);
    json_number(&json, "gflops", step->gflops);
    json_end_object(&json);
  }
  json_end_array(&json);
  json_end_object(&json);
}

void report_print_bench(const report_bench *bench, bool json) {
  if (json) {
    print_bench_json(bench);
    return;
  }
  static const char *const heads[] = {"node",      "kind", "output",
                                      "algorithm", "us",   "%",
                                      "GFLOP/s"};
  table rows;
  table_init(&rows, heads, "llllrrr");
  double sum = 0;
  for (uint32_t i = 0; i < bench->step_count; i++)
    sum += bench->steps[i].us;
  for (uint32_t i = 0; i < bench->step_count; i++) {
    const report_step *step = &bench->steps[i];
    table_add(&rows, step->info.name);
    table_add(&rows, step->info.kind);
    add_shape(&rows, &step->info.output_shape);
    table_add(&rows, step->info.algorithm);
    table_add_format(&rows, "%.1f", step->us);
    table_add_format(&rows, "%.1f", sum > 0 ? 100 * step->us / sum : 0);
    if (step->gflops > 0)
      table_add_format(&rows, "%.1f", step->gflops);
    else
      table_add(&rows, "");
  }
  finish_table(&rows);
  printf("medians of each node; the whole net, %s: median %.0f us, least "
         "%.0f us,\nthreads %u, %.1f MiB at most, layout changes %u\n",
         bench->model, bench->us, bench->us_min, bench->threads,
         (double)bench->plan.peak_bytes / (1 << 20), bench->plan.transposes);
}

/* bench --op */

static void print_operator_json(const operator_bench *bench) {
  char descriptor[256];
  json_writer json;
  json_init(&json, stdout);
  json_begin_object(&json, NULL);
  json_text(&json, "op",
            pph_problem_print(&bench->problem, descriptor, sizeof descriptor));
  json_integer(&json, "threads", bench->threads);
  json_number(&json, "peak_gflops", bench->peak_gflops);
  json_number(&json, "memcpy_us", bench->memcpy_us);
  json_text(&json, "chosen", bench->chosen);
  json_begin_array(&json, "candidates");
  for (uint32_t i = 0; i < bench->count; i++) {
    const bench_candidate *one = &bench->candidates[i];
    json_begin_object(&json, NULL);
    json_text(&json, "name", one->name);
    if (one->kernel) {
      json_text(&json, "kernel", one->kernel);
      json_number(&json, "error_bound", one->error_bound);
    }
    json_bool(&json, "verified", one->verified);
    json_number(&json, "us", one->median);
    json_number(&json, "us_min", one->least);
    json_number(&json, "gflops",
                one->median > 0 ? bench->flops / one->median * 1e-3 : 0);
    json_end_object(&json);
  }
  json_end_array(&json);
  json_end_object(&json);
}

/* Long times need no decimals, and a line has 80 columns. */
static void add_microseconds(table *rows, double us) {
  table_add_format(rows, "%.*f", us < 1e5 ? 1 : 0, us);
}

void report_print_operator(const operator_bench *bench, bool json) {
  if (json) {
    print_operator_json(bench);
    return;
  }
  static const char *const heads[] = {"algorithm", "us",   "least us",
                                      "GFLOP/s",   "% peak", "gain",
                                      "E",         "verified"};
  char descriptor[256];
  table rows;
  table_init(&rows, heads, "lrrrrrrl");
  double first = bench->candidates[0].median;
  bool exceeds = false;
  for (uint32_t i = 0; i < bench->count; i++) {
    const bench_candidate *one = &bench->candidates[i];
    double gflops = one->median > 0 ? bench->flops / one->median * 1e-3 : 0;
    table_add(&rows, one->name);
    add_microseconds(&rows, one->median);
    add_microseconds(&rows, one->least);
    table_add_format(&rows, "%.1f", gflops);
    double share = bench->peak_gflops > 0
                       ? 100 * gflops / bench->peak_gflops / bench->threads
                       : 0;
    exceeds |= share > 100;
    table_add_format(&rows, "%.1f", share);
    table_add_format(&rows, "%.2fx",
                     one->median > 0 ? first / one->median : 0);
    if (one->kernel)
      table_add_format(&rows, "%g", one->error_bound);
    else
      table_add(&rows, "");
    table_add_format(&rows, one->verified ? "yes" : "NO: off by %g",
                     one->worst);
  }
  printf("%s\n",
         pph_problem_print(&bench->problem, descriptor, sizeof descriptor));
  finish_table(&rows);
  printf("us: median; gain: over the first row; E: bound of the rounding error"
         "\npeak %.1f GFLOP/s a core, memcpy of the output %.1f us, threads %u"
         "\nfastest %s, our own choice %s\n",
         bench->peak_gflops, bench->memcpy_us, bench->threads,
         bench->candidates[bench->fastest].name, bench->chosen);
  if (exceeds)
    printf("over 100 %% of the peak: minimal filtering multiplies less often "
           "than the\nproblem says, whose operations GFLOP/s counts\n");
}

/* bench --compare: rows are kept between begin and end. */

static table compared_rows;
static json_writer compared_json;

void report_begin_compared(bool json) {
  static const char *const heads[] = {"upsampling node", "became",
                                      "before us",       "after us",
                                      "gain",            "why"};
  if (json) {
    json_init(&compared_json, stdout);
    json_begin_object(&compared_json, NULL);
    json_begin_array(&compared_json, "nodes");
  } else {
    table_init(&compared_rows, heads, "llrrrl");
  }
}

static void json_times(const report_compared *row) {
  json_number(&compared_json, "before_us", row->before);
  json_number(&compared_json, "after_us", row->after);
}

static void table_times(const report_compared *row) {
  table_add_format(&compared_rows, "%.0f", row->before);
  table_add_format(&compared_rows, "%.0f", row->after);
  table_add_format(&compared_rows, "%.2fx",
                   row->after > 0 ? row->before / row->after : 0);
}

void report_print_compared(const report_compared *row, bool json) {
  if (json) {
    json_begin_object(&compared_json, NULL);
    json_text(&compared_json, "name", row->name);
    json_text(&compared_json, "kind", row->kind);
    json_text(&compared_json, "lowered", row->lowered);
    json_text(&compared_json, "reason", row->reason);
    json_times(row);
    json_end_object(&compared_json);
    return;
  }
  table_add_format(&compared_rows, "%s (%s)", row->name, row->kind);
  table_add(&compared_rows, row->lowered ? row->lowered : "left alone");
  table_times(row);
  table_add(&compared_rows, row->reason);
}

void report_end_compared(const report_compared *whole, bool json) {
  if (json) {
    json_end_array(&compared_json);
    json_begin_object(&compared_json, "whole");
    json_times(whole);
    json_end_object(&compared_json);
    json_end_object(&compared_json);
    return;
  }
  table_add(&compared_rows, whole->name);
  table_add(&compared_rows, "");
  table_times(whole);
  table_add(&compared_rows, "");
  finish_table(&compared_rows);
  printf("medians of interleaved runs; before: XNNPACK's own deconvolution\n");
}

/* info */

const char *report_shape_text(const pph_value_info *info, char *text,
                              size_t size) {
  FILE *to = fmemopen(text, size, "w");
  text[0] = 0;
  if (!to)
    return text;
  if (info->shape.rank < 0)
    fputs("unknown", to);
  for (int32_t i = 0; i < info->shape.rank; i++) {
    fputs(i ? "," : "[", to);
    if (info->shape.dims[i] >= 0)
      fprintf(to, "%lld", (long long)info->shape.dims[i]);
    else if (info->dim_names[i])
      fputs(info->dim_names[i], to);
    else if (info->bounds.dims[i] >= 0)
      fprintf(to, "<=%lld", (long long)info->bounds.dims[i]);
    else
      fputs("?", to);
  }
  if (info->shape.rank >= 0)
    fputs(info->shape.rank ? "]" : "[]", to);
  fclose(to);
  text[size - 1] = 0;
  return text;
}

static void json_values(json_writer *json, const char *key,
                        const pph_model *model, bool inputs) {
  uint32_t count = inputs ? pph_model_input_count(model)
                          : pph_model_output_count(model);
  json_begin_array(json, key);
  for (uint32_t i = 0; i < count; i++) {
    pph_value_info info =
        inputs ? pph_model_input(model, i) : pph_model_output(model, i);
    json_begin_object(json, NULL);
    json_text(json, "name", info.name);
    json_text(json, "type", pph_dtype_name(info.type));
    json_shape(json, "shape", &info.shape);
    json_begin_array(json, "dim_names");
    for (int32_t k = 0; k < info.shape.rank; k++)
      json_text(json, NULL, info.dim_names[k]);
    json_end_array(json);
    json_end_object(json);
  }
  json_end_array(json);
}

/* The note about the upsampling node that a step came from. */
static pph_note_info find_note(const pph_session *session, const char *name) {
  uint32_t notes = pph_session_plan(session).notes;
  for (uint32_t i = 0; i < notes; i++) {
    pph_note_info note = pph_session_note(session, i);
    if (strcmp(note.name, name) == 0)
      return note;
  }
  return (pph_note_info){0};
}

static void print_info_json(const pph_model *model,
                            const pph_session *session) {
  json_writer json;
  pph_plan_info plan = pph_session_plan(session);
  json_init(&json, stdout);
  json_begin_object(&json, NULL);
  json_values(&json, "inputs", model, true);
  json_values(&json, "outputs", model, false);
  json_integer(&json, "transposes", plan.transposes);
  json_integer(&json, "block_bytes", (int64_t)plan.block_bytes);
  json_begin_array(&json, "nodes");
  for (uint32_t i = 0; i < plan.steps; i++) {
    pph_step_info step = pph_session_step(session, i);
    pph_note_info note = find_note(session, step.name);
    json_begin_object(&json, NULL);
    json_text(&json, "name", step.name);
    json_text(&json, "kind", step.kind);
    json_text(&json, "algorithm", step.algorithm);
    json_shape(&json, "output_shape", &step.output_shape);
    json_text(&json, "lowered", note.lowered);
    json_text(&json, "reason", note.reason);
    json_end_object(&json);
  }
  json_end_array(&json);
  json_end_object(&json);
}

static void print_values(const char *title, const pph_model *model,
                         bool inputs) {
  uint32_t count = inputs ? pph_model_input_count(model)
                          : pph_model_output_count(model);
  for (uint32_t i = 0; i < count; i++) {
    pph_value_info info =
        inputs ? pph_model_input(model, i) : pph_model_output(model, i);
    char text[256];
    report_shape_text(&info, text, sizeof text);
    printf("%-7s %s  %s %s\n", i ? "" : title, info.name,
           pph_dtype_name(info.type), text);
  }
}

void report_print_shapes(const pph_model *model, const pph_tensor *inputs,
                         const char *title) {
  for (uint32_t i = 0; i < pph_model_input_count(model); i++) {
    char text[128];
    printf("%s %s %s\n", title, pph_model_input(model, i).name,
           pph_shape_text(&inputs[i].shape, text, sizeof text));
  }
}

/* What the plan gives: the model may leave it open. */
static void print_planned(const pph_model *model, const pph_session *session) {
  const pph_graph *graph = &session->current->graph;
  for (uint32_t i = 0; i < pph_model_output_count(model); i++) {
    char text[128];
    const pph_value *value = pph_graph_value(graph, graph->outputs[i]);
    printf("gives   %s %s %s\n", pph_model_output(model, i).name,
           pph_dtype_name(value->type),
           pph_shape_text(&value->shape, text, sizeof text));
  }
}

void report_print_info(const pph_model *model, const pph_tensor *inputs,
                       const pph_session *session, bool json) {
  if (json) {
    print_info_json(model, session);
    return;
  }
  pph_plan_info plan = pph_session_plan(session);
  print_values("inputs", model, true);
  print_values("outputs", model, false);
  report_print_shapes(model, inputs, "for    ");
  print_planned(model, session);
  printf("steps   %u, of which %u change the layout (Relayout, Transpose);\n"
         "        block of %.1f MiB\n\n",
         plan.steps, plan.transposes,
         (double)plan.block_bytes / (1 << 20));
  report_print_notes(session);
}

void report_print_notes(const pph_session *session) {
  uint32_t notes = pph_session_plan(session).notes;
  if (!notes) {
    printf("no upsampling nodes\n");
    return;
  }
  static const char *const heads[] = {"upsampling node", "kind", "became",
                                      "why"};
  table rows;
  table_init(&rows, heads, "llll");
  for (uint32_t i = 0; i < notes; i++) {
    pph_note_info note = pph_session_note(session, i);
    table_add(&rows, note.name);
    table_add(&rows, note.kind);
    table_add(&rows, note.lowered ? note.lowered : "left alone");
    table_add(&rows, note.reason);
  }
  finish_table(&rows);
}
