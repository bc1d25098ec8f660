#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void json_init(json_writer *json, FILE *file) {
  *json = (json_writer){.file = file};
}

/* Bytes of the UTF-8 character at `text`, 0 when there is none. Overlong forms,
   surrogates and what lies above U+10FFFF are none. */
static int measure_utf8(const unsigned char *text) {
  unsigned char c = text[0], low = 0x80, high = 0xbf;
  int length = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
  if (c < 0x80)
    return 1;
  if (c < 0xc2 || c > 0xf4)
    return 0;
  if (c == 0xe0)
    low = 0xa0;
  if (c == 0xed)
    high = 0x9f;
  if (c == 0xf0)
    low = 0x90;
  if (c == 0xf4)
    high = 0x8f;
  if (text[1] < low || text[1] > high)
    return 0;
  for (int i = 2; i < length; i++)
    if ((text[i] & 0xc0) != 0x80)
      return 0;
  return length;
}

static void put_string(FILE *file, const char *text) {
  static const char codes[] = "\"\"\\\\b\bf\fn\nr\rt\t";
  const unsigned char *at = (const unsigned char *)text;
  fputc('"', file);
  while (*at) {
    int length = measure_utf8(at);
    const char *code = codes;
    while (*code && (unsigned char)code[1] != *at)
      code += 2;
    if (length == 0)
      fputs("\\ufffd", file);
    else if (*code)
      fprintf(file, "\\%c", *code);
    else if (*at < 0x20 || *at == 0x7f)
      fprintf(file, "\\u%04x", *at);
    else
      fwrite(at, 1, (size_t)length, file);
    at += length ? length : 1;
  }
  fputc('"', file);
}

static void begin_element(json_writer *json, const char *key) {
  if (json->comma)
    fputs(", ", json->file);
  json->comma = true;
  if (!key)
    return;
  put_string(json->file, key);
  fputs(": ", json->file);
}

static void end_element(json_writer *json) {
  if (json->depth > 0)
    return;
  fputc('\n', json->file);
  json->comma = false;
}

static void open_group(json_writer *json, const char *key, char bracket) {
  begin_element(json, key);
  fputc(bracket, json->file);
  json->depth++;
  json->comma = false;
}

static void close_group(json_writer *json, char bracket) {
  fputc(bracket, json->file);
  json->depth--;
  json->comma = true;
  end_element(json);
}

void json_begin_object(json_writer *json, const char *key) {
  open_group(json, key, '{');
}
void json_end_object(json_writer *json) { close_group(json, '}'); }
void json_begin_array(json_writer *json, const char *key) {
  open_group(json, key, '[');
}
void json_end_array(json_writer *json) { close_group(json, ']'); }

void json_text(json_writer *json, const char *key, const char *text) {
  begin_element(json, key);
  if (text)
    put_string(json->file, text);
  else
    fputs("null", json->file);
  end_element(json);
}

void json_number(json_writer *json, const char *key, double number) {
  char text[40] = "null";
  for (int digits = 15; isfinite(number) && digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, number);
    if (strtod(text, NULL) == number)
      break;
  }
  begin_element(json, key);
  fputs(text, json->file);
  end_element(json);
}

void json_integer(json_writer *json, const char *key, int64_t number) {
  begin_element(json, key);
  fprintf(json->file, "%lld", (long long)number);
  end_element(json);
}

void json_bool(json_writer *json, const char *key, bool value) {
  begin_element(json, key);
  fputs(value ? "true" : "false", json->file);
  end_element(json);
}

void json_null(json_writer *json, const char *key) {
  json_text(json, key, NULL);
}

void json_shape(json_writer *json, const char *key, const pph_shape *shape) {
  if (shape->rank < 0) {
    json_null(json, key);
    return;
  }
  json_begin_array(json, key);
  for (int32_t i = 0; i < shape->rank; i++)
    json_integer(json, NULL, shape->dims[i]);
  json_end_array(json);
}
