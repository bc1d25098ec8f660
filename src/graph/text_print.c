/* Printing a graph; docs/text-form.md has the grammar. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/text.h"
#include "graph/text_lexer.h"
#include "graph/text_number.h"

/* Fewer equal elements than this are written out. */
enum { SPLAT_COUNT = 9 };

/* The text so far. A failure sticks, so that it is asked for once. */
typedef struct writer {
  const pph_graph *graph;
  char *text;
  size_t length, capacity;
  size_t data_limit;
  bool failed;
} writer;

static bool reserve(writer *out, size_t more) {
  size_t needed, doubled;
  if (out->failed)
    return false;
  if (pph_checked_add(out->length, more, &needed) &&
      needed <= out->capacity)
    return true;
  out->failed = true;
  if (!pph_checked_add(out->length, more, &needed) ||
      !pph_checked_mul(out->capacity, 2, &doubled))
    return false;
  size_t capacity = needed > doubled ? needed : doubled;
  char *grown = pph_heap_grow(out->graph->heap, out->text, out->length,
                              capacity, 1);
  if (!grown)
    return false;
  out->text = grown;
  out->capacity = capacity;
  out->failed = false;
  return true;
}

static void put_bytes(writer *out, const char *text, size_t length) {
  if (!reserve(out, length))
    return;
  memcpy(out->text + out->length, text, length);
  out->length += length;
}

static void put(writer *out, const char *text) {
  put_bytes(out, text, strlen(text));
}

/* For numbers and other short texts. */
static void put_format(writer *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_format(writer *out, const char *format, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  put(out, text);
}

static bool is_continuation(char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

/* Bytes of the character at `text` that may be printed as they are, 0 when the
   first has to be escaped: control characters (C1 ones too, terminals obey
   them) and what is not UTF-8. */
static size_t measure_plain(const char *text) {
  unsigned char c = (unsigned char)*text;
  if (c < 0x80)
    return c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
  size_t length = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 && c < 0xf0 ? 3 : 2;
  if (c < 0xc2 || c >= 0xf5)
    return 0;
  for (size_t i = 1; i < length; i++)
    if (!is_continuation(text[i]))
      return 0;
  unsigned char second = (unsigned char)text[1];
  if (c == 0xc2 && second < 0xa0)
    return 0;
  return length;
}

static void put_quoted(writer *out, const char *text) {
  static const char codes[] = "n\nr\rt\t\"\"\\\\";
  put(out, "\"");
  while (*text && !out->failed) {
    size_t plain = measure_plain(text);
    if (plain) {
      put_bytes(out, text, plain);
      text += plain;
      continue;
    }
    const char *code = codes + 1;
    while (code < codes + sizeof codes - 1 && *code != *text)
      code += 2;
    if (code < codes + sizeof codes - 1)
      put_format(out, "\\%c", code[-1]);
    else
      put_format(out, "\\x%02x", (unsigned)(unsigned char)*text);
    text++;
  }
  put(out, "\"");
}

static void put_name(writer *out, pph_id id) {
  if (id == PPH_NO_VALUE) {
    put(out, "_");
    return;
  }
  const char *name = out->graph->values[id].name;
  size_t plain = 0;
  while (pph_text_is_name_byte(name[plain]))
    plain++;
  put(out, "%");
  if (*name && !name[plain])
    put(out, name);
  else
    put_quoted(out, name);
}

static void put_dim_names(writer *out, const pph_value *value) {
  int32_t named = 0;
  for (int32_t i = 0; i < value->shape.rank; i++)
    named += value->dim_names[i] != NULL;
  if (!named)
    return;
  for (int32_t i = 0; i < value->shape.rank; i++) {
    put(out, i ? "," : " (");
    if (value->dim_names[i])
      put_quoted(out, value->dim_names[i]);
    else
      put(out, "_");
  }
  put(out, ")");
}

/* " f32 [1,3,?] (_,_,"w") channels_last", as much of it as is known. */
static void put_type(writer *out, const pph_value *value) {
  char shape[24 * PPH_MAX_RANK];
  if (value->type != PPH_DTYPE_NONE)
    put_format(out, " %s", pph_dtype_name(value->type));
  if (value->has_rank) {
    put_format(out, " ");
    put(out, pph_shape_text(&value->shape, shape, sizeof shape));
    put_dim_names(out, value);
  }
  if (value->layout == PPH_LAYOUT_CHANNELS_LAST)
    put(out, " channels_last");
}

static bool is_splat(const char *data, size_t count, size_t size) {
  if (count < SPLAT_COUNT)
    return false;
  /* Equal to itself one element further on. */
  return memcmp(data, data + size, (count - 1) * size) == 0;
}

/* FNV-1a: shows whether left-out data changed, guards against nothing. */
static unsigned long long hash(const unsigned char *data, size_t bytes) {
  uint64_t state = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; i++)
    state = (state ^ data[i]) * 0x100000001b3;
  return state;
}

static void put_data(writer *out, const pph_value *value) {
  char number[PPH_TEXT_NUMBER_SIZE];
  size_t count = 0, bytes = 0;
  if (!pph_shape_count(&value->shape, &count) ||
      !pph_shape_bytes(&value->shape, value->type, &bytes) ||
      (count && !bytes)) {
    put(out, " = ... bad"); /* verify refuses such a constant */
    return;
  }
  if (is_splat(value->data, count, pph_dtype_size(value->type))) {
    put(out, " = splat ");
    put(out, pph_text_print_number(value->type, value->data, 0, number));
    return;
  }
  if (count > out->data_limit) {
    put_format(out, " = ... fnv 0x%016llx", hash(value->data, bytes));
    return;
  }
  put(out, " = {");
  for (size_t i = 0; i < count && !out->failed; i++) {
    put(out, i ? ", " : "");
    put(out, pph_text_print_number(value->type, value->data, i, number));
  }
  put(out, "}");
}

static void put_constant(writer *out, pph_id id) {
  const pph_value *value = &out->graph->values[id];
  put(out, "const ");
  put_name(out, id);
  put_type(out, value);
  put_data(out, value);
  if (value->origin.external) {
    put(out, " external ");
    put_quoted(out, value->origin.external);
  }
  put(out, "\n");
}

static void put_list(writer *out, pph_dtype type, const void *data,
                     uint32_t count) {
  char number[PPH_TEXT_NUMBER_SIZE];
  put(out, "[");
  for (uint32_t i = 0; i < count && !out->failed; i++) {
    put(out, i ? "," : "");
    put(out, pph_text_print_number(type, data, i, number));
  }
  put(out, "]");
}

static void put_attribute(writer *out, const pph_attribute *attribute) {
  char number[PPH_TEXT_NUMBER_SIZE];
  put_format(out, "%s=", pph_attribute_key_name(attribute->key));
  switch (pph_attribute_key_type(attribute->key)) {
  case PPH_ATTRIBUTE_INT:
    put(out, pph_text_print_number(PPH_I64, &attribute->i, 0, number));
    break;
  case PPH_ATTRIBUTE_FLOAT:
    put(out, pph_text_print_number(PPH_F32, &attribute->f, 0, number));
    break;
  case PPH_ATTRIBUTE_TEXT:
    put_quoted(out, attribute->text);
    break;
  case PPH_ATTRIBUTE_INTS:
    put_list(out, PPH_I64, attribute->ints, attribute->count);
    break;
  case PPH_ATTRIBUTE_FLOATS:
    put_list(out, PPH_F32, attribute->floats, attribute->count);
    break;
  }
}

static void put_node_outputs(writer *out, const pph_node *node) {
  for (uint32_t i = 0; i < node->output_count; i++) {
    pph_id id = node->outputs[i];
    put(out, i ? ", " : "");
    put_name(out, id);
    if (id == PPH_NO_VALUE)
      continue;
    const pph_value *value = &out->graph->values[id];
    if (value->type != PPH_DTYPE_NONE || value->has_rank ||
        value->layout != PPH_LAYOUT_PLAIN)
      put(out, ":");
    put_type(out, value);
  }
}

static void put_node(writer *out, const pph_node *node) {
  static const char *const activations[] = {
      [PPH_ACTIVATION_CLAMP] = "clamp",
      [PPH_ACTIVATION_LEAKY_RELU] = "leaky_relu",
      [PPH_ACTIVATION_PRELU] = "prelu"};
  if (node->lowered) {
    put(out, "# lowered ");
    put_quoted(out, node->lowered);
    put(out, "\n");
  }
  put_node_outputs(out, node);
  put_format(out, " = %s", pph_node_kind_find_info(node->kind)->name);
  if (node->name[0]) {
    put(out, " ");
    put_quoted(out, node->name);
  }
  put(out, "(");
  for (uint32_t i = 0; i < node->input_count; i++) {
    put(out, i ? ", " : "");
    put_name(out, node->inputs[i]);
  }
  put(out, ")");
  for (uint32_t i = 0; i < node->attribute_count; i++) {
    put(out, i ? ", " : " {");
    put_attribute(out, &node->attributes[i]);
  }
  if (node->attribute_count)
    put(out, "}");
  if (node->activation != PPH_ACTIVATION_NONE)
    put_format(out, " activation=%s", activations[node->activation]);
  put(out, "\n");
}

static void put_note(writer *out, const pph_note *note) {
  put_format(out, "# note %s ", note->kind);
  put_quoted(out, note->node_name);
  if (note->lowered) {
    put(out, " lowered ");
    put_quoted(out, note->lowered);
  }
  if (note->reason) {
    put(out, " because ");
    put_quoted(out, note->reason);
  }
  put(out, "\n");
}

static void put_graph(writer *out) {
  const pph_graph *graph = out->graph;
  if (graph->name && graph->name[0]) {
    put(out, "graph ");
    put_quoted(out, graph->name);
    put(out, "\n");
  }
  for (uint32_t i = 0; i < graph->input_count; i++) {
    put(out, "input ");
    put_name(out, graph->inputs[i]);
    put_type(out, &graph->values[graph->inputs[i]]);
    put(out, "\n");
  }
  for (pph_id id = 0; id < graph->value_count; id++)
    if (graph->values[id].data)
      put_constant(out, id);
  for (const pph_node *node = graph->first; node; node = node->next)
    put_node(out, node);
  for (uint32_t i = 0; i < graph->output_count; i++) {
    put(out, "output ");
    put_name(out, graph->outputs[i]);
    put(out, "\n");
  }
  for (const pph_note *note = graph->first_note; note; note = note->next)
    put_note(out, note);
}

pph_status pph_text_print(const pph_graph *graph, size_t data_limit,
                          char **text, pph_error *error) {
  writer out = {.graph = graph, .data_limit = data_limit, .capacity = 4096};
  *text = NULL;
  out.text = pph_heap_allocate(graph->heap, out.capacity, 1);
  if (!out.text)
    return pph_fail_memory(error);
  void *locale = pph_text_enter_locale();
  put_graph(&out);
  pph_text_leave_locale(locale);
  if (reserve(&out, 1))
    out.text[out.length] = 0;
  if (out.failed) {
    pph_heap_release(graph->heap, out.text);
    return pph_fail_memory(error);
  }
  *text = out.text;
  return PPH_OK;
}
