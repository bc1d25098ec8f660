/* Writing JSON, one line per top-level value. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "polyphase/tensor.h"

/* `key` is the member's name inside an object and NULL inside an array or at
   the top. Nesting has no limit: the state is one bit. */
typedef struct json_writer {
  FILE *file;
  bool comma; /* the next element needs one */
  int depth;
} json_writer;

void json_init(json_writer *json, FILE *file);
void json_begin_object(json_writer *json, const char *key);
void json_end_object(json_writer *json);
void json_begin_array(json_writer *json, const char *key);
void json_end_array(json_writer *json);

/* A text; NULL becomes null. What is not UTF-8 becomes U+FFFD. */
void json_text(json_writer *json, const char *key, const char *text);
/* The shortest digits that read back the same; nan and infinities: null. */
void json_number(json_writer *json, const char *key, double number);
void json_integer(json_writer *json, const char *key, int64_t number);
void json_bool(json_writer *json, const char *key, bool value);
void json_null(json_writer *json, const char *key);
/* An array of dimensions; null when the rank is unknown (below 0). */
void json_shape(json_writer *json, const char *key, const pph_shape *shape);

#endif
