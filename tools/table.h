/* Tables for people: aligned columns. */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Cells are added row by row. A cell that finds no memory makes print say so
   instead of printing a wrong table. */
typedef struct table {
  const char *const *heads;
  const char *alignment; /* one of 'l', 'r' per column */
  size_t columns;
  char **cells; /* malloc */
  size_t count, capacity;
  bool failed;
} table;

/* `heads` are the columns' titles and `alignment` has one letter for each; both
   are kept. */
void table_init(table *rows, const char *const *heads, const char *alignment);
/* Copies; NULL is an empty cell. */
void table_add(table *rows, const char *text);
void table_add_format(table *rows, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Control characters become '?'. */
void table_print(const table *rows, FILE *file);
void table_clear(table *rows);

#endif
