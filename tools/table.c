#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void table_init(table *rows, const char *const *heads, const char *alignment) {
  *rows = (table){.heads = heads,
                  .alignment = alignment,
                  .columns = strlen(alignment)};
}

/* Takes `cell`, which may be NULL when memory ran out. */
static void append(table *rows, char *cell) {
  if (cell && rows->count == rows->capacity) {
    size_t capacity = rows->capacity ? rows->capacity * 2 : 64;
    char **grown = reallocarray(rows->cells, capacity, sizeof *grown);
    if (!grown) {
      free(cell);
      cell = NULL;
    } else {
      rows->cells = grown;
      rows->capacity = capacity;
    }
  }
  if (cell)
    rows->cells[rows->count++] = cell;
  else
    rows->failed = true;
}

void table_add(table *rows, const char *text) {
  append(rows, strdup(text ? text : ""));
}

void table_add_format(table *rows, const char *format, ...) {
  char *cell;
  va_list arguments;
  va_start(arguments, format);
  if (vasprintf(&cell, format, arguments) < 0)
    cell = NULL;
  va_end(arguments);
  append(rows, cell);
}

/* Characters, not bytes: UTF-8's continuation bytes take no room. */
static size_t measure(const char *text) {
  size_t width = 0;
  for (; *text; text++)
    width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

static void put_cell(const char *text, size_t width, char alignment,
                     FILE *file) {
  size_t own = measure(text);
  int padding = own < width ? (int)(width - own) : 0;
  if (alignment == 'r')
    fprintf(file, "%*s", padding, "");
  for (; *text; text++)
    fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, file);
  if (alignment != 'r')
    fprintf(file, "%*s", padding, "");
}

static void put_row(const table *rows, const char *const *cells,
                    const size_t *widths, FILE *file) {
  size_t last = rows->columns;
  /* No blanks at a line's end. */
  while (last > 0 && !cells[last - 1][0])
    last--;
  for (size_t i = 0; i < last; i++) {
    bool fill = i + 1 < last || rows->alignment[i] == 'r';
    fputs(i ? "  " : "", file);
    put_cell(cells[i], fill ? widths[i] : 0, rows->alignment[i], file);
  }
  fputc('\n', file);
}

void table_print(const table *rows, FILE *file) {
  size_t *widths = calloc(rows->columns + 1, sizeof *widths);
  if (rows->failed || !widths) {
    fputs("(no memory for the table)\n", file);
    free(widths);
    return;
  }
  for (size_t i = 0; i < rows->columns; i++)
    widths[i] = measure(rows->heads[i]);
  for (size_t i = 0; i < rows->count; i++) {
    size_t *width = &widths[i % rows->columns];
    size_t own = measure(rows->cells[i]);
    *width = own > *width ? own : *width;
  }
  put_row(rows, rows->heads, widths, file);
  for (size_t i = 0; i + rows->columns <= rows->count; i += rows->columns)
    put_row(rows, (const char *const *)rows->cells + i, widths, file);
  free(widths);
}

void table_clear(table *rows) {
  for (size_t i = 0; i < rows->count; i++)
    free(rows->cells[i]);
  free(rows->cells);
  *rows = (table){.columns = 0};
}
