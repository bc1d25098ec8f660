#include "check_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "json.h"
#include "table.h"

static table rows;
static json_writer json_out;
static FILE *remarks; /* writes into the text; NULL when memory is out */
static char *remark_text;
static size_t remark_length;
static uint32_t row_count, doubtful_count;

void check_report_begin(bool json) {
  static const char *const heads[] = {
      "output", "elements", "different", "min", "max",
      "largest difference", "at", "of largest"};
  row_count = doubtful_count = 0;
  if (json) {
    json_init(&json_out, stdout);
    json_begin_object(&json_out, NULL);
    json_begin_array(&json_out, "outputs");
    return;
  }
  table_init(&rows, heads, "lrrrrrrr");
  remarks = open_memstream(&remark_text, &remark_length);
}

static bool is_float(pph_dtype type) {
  return type == PPH_F32 || type == PPH_F16 || type == PPH_F64;
}

static double find_peak(const check_row *row) {
  return fmax(fabs(row->low), fabs(row->high));
}

/* Why agreement proves nothing, or NULL. A tolerance below 1 lets no two whole
   numbers pass for each other. */
static const char *find_doubt(const check_row *row, char *text, size_t size) {
  double peak = find_peak(row);
  if (!row->same_shape || row->different)
    return NULL;
  if (!row->elements)
    return "has no elements: nothing was compared";
  if (isnan(peak))
    return "every element is nan: no value was compared";
  if (!(peak <= row->tolerance) || row->tolerance == 0 || isinf(peak) ||
      (!is_float(row->types[0]) && row->tolerance < 1))
    return NULL;
  snprintf(text, size,
           "zeros would agree too: no magnitude is over %.3g, the tolerance "
           "is %.3g;\n  see \"of largest\", or give --atol 0 --ptol 1e-4",
           peak, row->tolerance);
  return text;
}

static double find_part(const check_row *row) {
  return row->worst == 0 ? 0 : row->worst / find_peak(row);
}

static void add_json(const check_row *row, const char *doubt) {
  json_begin_object(&json_out, NULL);
  json_text(&json_out, "name", row->name);
  json_bool(&json_out, "same_shape", row->same_shape);
  json_text(&json_out, "type", pph_dtype_name(row->types[0]));
  json_shape(&json_out, "shape", &row->shapes[0]);
  json_text(&json_out, "other_type", pph_dtype_name(row->types[1]));
  json_shape(&json_out, "other_shape", &row->shapes[1]);
  json_integer(&json_out, "elements", (int64_t)row->elements);
  json_integer(&json_out, "different", (int64_t)row->different);
  json_number(&json_out, "min", row->low);
  json_number(&json_out, "max", row->high);
  json_number(&json_out, "largest_difference", row->worst);
  json_number(&json_out, "relative_to_peak", find_part(row));
  json_text(&json_out, "doubt", doubt);
  json_end_object(&json_out);
}

static void remark(const char *name, const char *text) {
  fprintf(remarks ? remarks : stdout, "%s: %s\n", name, text);
}

/* Without elements in common there is nothing to count. */
static void add_mismatch(const check_row *row) {
  char found[128], right[128], text[320];
  table_add(&rows, row->name);
  table_add(&rows, "");
  table_add(&rows, "all");
  for (int i = 3; i < 8; i++)
    table_add(&rows, "");
  snprintf(text, sizeof text, "is %s %s, must be %s %s",
           pph_dtype_name(row->types[0]),
           pph_shape_text(&row->shapes[0], found, sizeof found),
           pph_dtype_name(row->types[1]),
           pph_shape_text(&row->shapes[1], right, sizeof right));
  remark(row->name, text);
}

static void add_numbers(const check_row *row) {
  table_add(&rows, row->name);
  table_add_format(&rows, "%zu", row->elements);
  table_add_format(&rows, "%zu", row->different);
  table_add_format(&rows, "%g", row->low);
  table_add_format(&rows, "%g", row->high);
  table_add_format(&rows, "%g", row->worst);
  table_add_format(&rows, "%zu", row->worst_at);
  table_add_format(&rows, "%.2g", find_part(row));
}

void check_report_add(const check_row *row, bool json) {
  char text[200];
  const char *doubt = find_doubt(row, text, sizeof text);
  row_count++;
  doubtful_count += doubt != NULL;
  if (json) {
    add_json(row, doubt);
    return;
  }
  if (row->same_shape)
    add_numbers(row);
  else
    add_mismatch(row);
  if (doubt)
    remark(row->name, doubt);
}

static void print_verdict(bool same) {
  if (!same)
    printf("the outputs differ\n");
  else if (!row_count)
    printf("there are no outputs to compare\n");
  else if (doubtful_count == row_count)
    printf("the outputs agree, but this proves nothing\n");
  else if (doubtful_count)
    printf("the outputs agree; of %u of %u this proves nothing\n",
           doubtful_count, row_count);
  else
    printf("the outputs agree\n");
}

void check_report_end(bool same, bool json) {
  if (json) {
    json_end_array(&json_out);
    json_bool(&json_out, "same", same);
    json_integer(&json_out, "doubtful", doubtful_count);
    json_end_object(&json_out);
    return;
  }
  table_print(&rows, stdout);
  table_clear(&rows);
  printf("min, max: of what is compared with; of largest: the difference as a "
         "part of\nthe largest magnitude there\n");
  if (remarks && fclose(remarks) == 0)
    fputs(remark_text, stdout);
  free(remark_text);
  remark_text = NULL;
  remarks = NULL;
  print_verdict(same);
}
