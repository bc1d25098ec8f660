#include "model_writer.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

/* Bytes */

static void append(model_bytes *bytes, const void *data, size_t length) {
  if (bytes->length + length > bytes->capacity) {
    bytes->capacity = 2 * (bytes->length + length) + 64;
    bytes->data = realloc(bytes->data, bytes->capacity);
    assert_non_null(bytes->data);
  }
  if (length)
    memcpy(bytes->data + bytes->length, data, length);
  bytes->length += length;
}

void model_bytes_free(model_bytes *bytes) {
  free(bytes->data);
  *bytes = (model_bytes){0};
}

void model_put_varint(model_bytes *bytes, uint64_t value) {
  do {
    unsigned char byte = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
    append(bytes, &byte, 1);
    value >>= 7;
  } while (value);
}

void model_put_number(model_bytes *bytes, unsigned field, uint64_t value) {
  model_put_varint(bytes, field << 3);
  model_put_varint(bytes, value);
}

void model_put_float(model_bytes *bytes, unsigned field, float value) {
  model_put_varint(bytes, field << 3 | 5);
  append(bytes, &value, sizeof value);
}

void model_put_bytes(model_bytes *bytes, unsigned field, const void *data,
                     size_t length) {
  model_put_varint(bytes, field << 3 | 2);
  model_put_varint(bytes, length);
  append(bytes, data, length);
}

void model_put_text(model_bytes *bytes, unsigned field, const char *text) {
  model_put_bytes(bytes, field, text, strlen(text));
}

void model_put_message(model_bytes *bytes, unsigned field, model_bytes *part) {
  model_put_bytes(bytes, field, part->data, part->length);
  model_bytes_free(part);
}

/* Types and dimensions */

typedef struct element_type {
  const char *name;
  int number;
  size_t size;
  unsigned field; /* of TensorProto where the typed data lies */
  char kind;      /* how text is read: float, double, integer */
} element_type;

static const element_type element_types[] = {
    {"f32", 1, 4, 4, 'f'},   {"u8", 2, 1, 5, 'i'},    {"i8", 3, 1, 5, 'i'},
    {"u16", 4, 2, 5, 'i'},   {"i16", 5, 2, 5, 'i'},   {"i32", 6, 4, 5, 'i'},
    {"i64", 7, 8, 7, 'i'},   {"str", 8, 1, 6, 'i'},   {"bool", 9, 1, 5, 'i'},
    {"f16", 10, 2, 5, 'i'},  {"f64", 11, 8, 10, 'd'}, {"u32", 12, 4, 11, 'i'},
    {"u64", 13, 8, 11, 'i'}, {"bf16", 16, 2, 5, 'i'},
};

static const element_type *find_type(const char *name) {
  for (size_t i = 0; i < sizeof element_types / sizeof *element_types; i++)
    if (strcmp(element_types[i].name, name) == 0)
      return &element_types[i];
  fail_msg("model_write: no type %s", name);
  return NULL;
}

/* The next word of `*text` up to `end`, cut out; NULL at the end. */
static char *cut(char **text, char end) {
  char separators[2] = {end, 0};
  char *word = *text;
  if (!word)
    return NULL;
  if (end == ' ')
    word += strspn(word, " ");
  if (end == ' ' && !*word)
    return NULL;
  char *stop = strpbrk(word, separators);
  *text = stop ? stop + 1 : NULL;
  if (stop)
    *stop = 0;
  return word;
}

static char *need(char **text, char end) {
  char *word = cut(text, end);
  if (!word)
    fail_msg("model_write: a word is missing");
  return word;
}

static void put_dims(model_bytes *tensor, char *dims) {
  char *dim;
  if (strcmp(dims, "scalar") == 0)
    return;
  while ((dim = cut(&dims, 'x')))
    model_put_number(tensor, 1, (uint64_t)strtoll(dim, NULL, 10));
}

/* Data */

static void append_element(model_bytes *data, const element_type *type,
                           const char *word) {
  float f = strtof(word, NULL);
  double d = strtod(word, NULL);
  int64_t i = word[0] == '-' ? strtoll(word, NULL, 0)
                             : (int64_t)strtoull(word, NULL, 0);
  const void *source = &i;
  if (type->kind == 'f')
    source = &f;
  if (type->kind == 'd')
    source = &d;
  append(data, source, type->size);
}

/* An element as the typed field has it: a varint or fixed bytes. */
static void append_typed(model_bytes *data, const element_type *type,
                         const char *word) {
  if (type->kind == 'i')
    model_put_varint(data, (uint64_t)strtoll(word, NULL, 0));
  else
    append_element(data, type, word);
}

static void put_unpacked(model_bytes *tensor, const element_type *type,
                         const char *word) {
  unsigned wire = type->kind == 'f' ? 5 : type->kind == 'd' ? 1 : 0;
  model_put_varint(tensor, type->field << 3 | wire);
  append_typed(tensor, type, word);
}

/* `style`: the statement's word. */
static model_bytes make_tensor(const char *style, const char *name,
                               const element_type *type, char *dims,
                               char *words, char separator) {
  model_bytes tensor = {0}, data = {0};
  put_dims(&tensor, dims);
  model_put_number(&tensor, 2, (uint64_t)type->number);
  if (*name)
    model_put_text(&tensor, 8, name);
  char *word;
  while ((word = cut(&words, separator))) {
    if (style[0] == 'i')
      append_element(&data, type, word);
    else if (style[0] == 't')
      append_typed(&data, type, word);
    else
      put_unpacked(&tensor, type, word);
  }
  if (style[0] == 'i')
    model_put_bytes(&tensor, 9, data.data, data.length);
  if (style[0] == 't')
    model_put_bytes(&tensor, type->field, data.data, data.length);
  model_bytes_free(&data);
  return tensor;
}

static void write_init(model_bytes *graph, const char *style, char *rest) {
  const char *name = need(&rest, ' ');
  const element_type *type = find_type(need(&rest, ' '));
  char *dims = need(&rest, ' ');
  model_bytes tensor = make_tensor(style, name, type, dims, rest, ' ');
  model_put_message(graph, 5, &tensor);
}

static void write_external(model_bytes *graph, char *rest) {
  const char *name = need(&rest, ' ');
  const element_type *type = find_type(need(&rest, ' '));
  model_bytes tensor = {0};
  char *word;
  put_dims(&tensor, need(&rest, ' '));
  model_put_number(&tensor, 2, (uint64_t)type->number);
  model_put_text(&tensor, 8, name);
  model_put_number(&tensor, 14, 1);
  while ((word = cut(&rest, ' '))) {
    model_bytes entry = {0};
    model_put_text(&entry, 1, need(&word, '='));
    model_put_text(&entry, 2, word ? word : "");
    model_put_message(&tensor, 13, &entry);
  }
  model_put_message(graph, 5, &tensor);
}

/* Inputs and outputs */

static model_bytes make_shape(char *dims) {
  model_bytes shape = {0};
  char *word;
  if (strcmp(dims, "scalar") == 0)
    return shape;
  while ((word = cut(&dims, 'x'))) {
    model_bytes dim = {0};
    if (*word == '-' || (*word >= '0' && *word <= '9'))
      model_put_number(&dim, 1, (uint64_t)strtoll(word, NULL, 10));
    else if (*word != '?')
      model_put_text(&dim, 2, word);
    model_put_message(&shape, 1, &dim);
  }
  return shape;
}

static void write_info(model_bytes *graph, unsigned field, char *rest) {
  model_bytes info = {0}, type = {0}, tensor = {0};
  model_put_text(&info, 1, need(&rest, ' '));
  char *name = cut(&rest, ' ');
  if (name) {
    model_put_number(&tensor, 1, (uint64_t)find_type(name)->number);
    char *dims = cut(&rest, ' ');
    if (dims) {
      model_bytes shape = make_shape(dims);
      model_put_message(&tensor, 2, &shape);
    }
    model_put_message(&type, 1, &tensor);
    model_put_message(&info, 2, &type);
  }
  model_put_message(graph, field, &info);
}

/* Nodes */

static void put_list(model_bytes *attribute, char kind, char *words) {
  char *word;
  while ((word = cut(&words, ','))) {
    if (!*word)
      continue;
    if (kind == 'i')
      model_put_number(attribute, 8, (uint64_t)strtoll(word, NULL, 10));
    else if (kind == 'f')
      model_put_float(attribute, 7, strtof(word, NULL));
    else
      model_put_text(attribute, 9, word);
  }
}

static void put_single(model_bytes *attribute, char kind, char *rest) {
  model_bytes part = {0};
  if (kind == 'i') {
    model_put_number(attribute, 3, (uint64_t)strtoll(rest, NULL, 10));
  } else if (kind == 'f') {
    model_put_float(attribute, 2, strtof(rest, NULL));
  } else if (kind == 's') {
    model_put_text(attribute, 4, rest);
  } else if (kind == 'g') {
    model_put_message(attribute, 6, &part);
  } else {
    const element_type *type = find_type(need(&rest, ':'));
    char *dims = need(&rest, ':');
    part = make_tensor("init", "", type, dims, rest, ',');
    model_put_message(attribute, 5, &part);
  }
}

static void write_attribute(model_bytes *node, char *word) {
  static const struct {
    const char *name;
    unsigned number;
  } types[] = {{"f", 1}, {"i", 2},  {"s", 3},  {"t", 4},
               {"g", 5}, {"fs", 6}, {"is", 7}, {"ss", 8}};
  model_bytes attribute = {0};
  model_put_text(&attribute, 1, need(&word, '='));
  char empty[] = "", *type = need(&word, ':');
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, type) == 0)
      model_put_number(&attribute, 20, types[i].number);
  if (type[1])
    put_list(&attribute, type[0], word);
  else
    put_single(&attribute, type[0], word ? word : empty);
  model_put_message(node, 5, &attribute);
}

static void write_op_type(model_bytes *node, char *word) {
  char *colons = strstr(word, "::");
  if (colons) {
    *colons = 0;
    model_put_text(node, 7, word);
    word = colons + 2;
  }
  model_put_text(node, 4, word);
}

static void write_node(model_bytes *graph, char *rest) {
  model_bytes node = {0};
  bool outputs = false;
  char *word;
  write_op_type(&node, need(&rest, ' '));
  while ((word = cut(&rest, ' '))) {
    if (strcmp(word, "->") == 0)
      outputs = true;
    else if (strncmp(word, "@name=", 6) == 0)
      model_put_text(&node, 3, word + 6);
    else if (strchr(word, '='))
      write_attribute(&node, word);
    else
      model_put_text(&node, outputs ? 2 : 1,
                     strcmp(word, "_") == 0 ? "" : word);
  }
  model_put_message(graph, 1, &node);
}

/* The whole */

static void write_opset(model_bytes *model, char *rest) {
  model_bytes set = {0};
  char *first = need(&rest, ' ');
  char *second = cut(&rest, ' ');
  model_put_text(&set, 1, second ? first : "");
  model_put_number(&set, 2, strtoull(second ? second : first, NULL, 10));
  model_put_message(model, 8, &set);
}

static void write_statement(model_bytes *model, model_bytes *graph,
                            char *statement) {
  char *rest = statement;
  const char *word = cut(&rest, ' ');
  if (!word)
    return;
  if (strcmp(word, "opset") == 0)
    write_opset(model, rest);
  else if (strcmp(word, "ir") == 0)
    model_put_number(model, 1, strtoull(need(&rest, ' '), NULL, 10));
  else if (strcmp(word, "in") == 0)
    write_info(graph, 11, rest);
  else if (strcmp(word, "out") == 0)
    write_info(graph, 12, rest);
  else if (strcmp(word, "node") == 0)
    write_node(graph, rest);
  else if (strcmp(word, "external") == 0)
    write_external(graph, rest);
  else
    write_init(graph, word, rest);
}

model_bytes model_write(const char *text) {
  model_bytes model = {0}, graph = {0};
  char *copy = strdup(text), *rest = copy, *statement;
  assert_non_null(copy);
  for (char *at = copy; *at; at++)
    if (*at == '\n')
      *at = ';';
  model_put_text(&graph, 2, "test");
  while ((statement = cut(&rest, ';')))
    write_statement(&model, &graph, statement);
  model_put_message(&model, 7, &graph);
  free(copy);
  return model;
}

/* Summaries */

static char summary[16384];
static size_t summary_length;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(summary + summary_length,
                         sizeof summary - summary_length, format, arguments);
  va_end(arguments);
  summary_length += (size_t)length;
  assert_true(summary_length < sizeof summary);
}

static double read_element(const pph_value *value, size_t at) {
  const char *data = (const char *)value->data;
  data += at * pph_dtype_size(value->type);
  switch ((int)value->type) {
  case PPH_F32:
    return *(const float *)(const void *)data;
  case PPH_F64:
    return *(const double *)(const void *)data;
  case PPH_I64:
    return (double)*(const int64_t *)(const void *)data;
  case PPH_I32:
    return *(const int32_t *)(const void *)data;
  default:
    return *(const unsigned char *)data;
  }
}

static void say_constant(const pph_value *value) {
  int64_t count = 1;
  for (int32_t i = 0; i < value->shape.rank; i++)
    count *= value->shape.dims[i];
  say("{");
  for (int64_t i = 0; i < count; i++)
    say("%s%g", i ? " " : "", read_element(value, (size_t)i));
  say("}");
}

static uint32_t position_of(const pph_graph *graph, const pph_node *wanted) {
  uint32_t position = 0;
  for (const pph_node *node = graph->first; node && node != wanted;
       node = node->next)
    position++;
  return position;
}

static void say_value(const pph_graph *graph, pph_id id) {
  const pph_value *value = id == PPH_NO_VALUE ? NULL : &graph->values[id];
  if (!value)
    say("_");
  else if (!strchr(value->name, '~'))
    say("%s", value->name);
  else if (value->data)
    say_constant(value);
  else
    say("#%u", position_of(graph, value->producer));
}

static void say_attribute(const pph_attribute *attribute) {
  say(" %s=", pph_attribute_key_name(attribute->key));
  switch (pph_attribute_key_type(attribute->key)) {
  case PPH_ATTRIBUTE_INT:
    say("%lld", (long long)attribute->i);
    break;
  case PPH_ATTRIBUTE_FLOAT:
    say("%g", (double)attribute->f);
    break;
  case PPH_ATTRIBUTE_TEXT:
    say("%s", attribute->text);
    break;
  case PPH_ATTRIBUTE_INTS:
    for (uint32_t i = 0; i < attribute->count; i++)
      say("%s%lld", i ? "," : "", (long long)attribute->ints[i]);
    break;
  case PPH_ATTRIBUTE_FLOATS:
    for (uint32_t i = 0; i < attribute->count; i++)
      say("%s%g", i ? "," : "", (double)attribute->floats[i]);
    break;
  }
}

static void say_node(const pph_graph *graph, const pph_node *node) {
  say("%s(", pph_node_kind_find_info(node->kind)->name);
  for (uint32_t i = 0; i < node->input_count; i++) {
    say("%s", i ? "," : "");
    say_value(graph, node->inputs[i]);
  }
  say(")");
  for (uint32_t i = 0; i < node->attribute_count; i++)
    say_attribute(&node->attributes[i]);
  say(" -> ");
  for (uint32_t i = 0; i < node->output_count; i++) {
    say("%s", i ? "," : "");
    say_value(graph, node->outputs[i]);
  }
}

const char *model_summary(const pph_graph *graph) {
  summary_length = 0;
  summary[0] = 0;
  for (const pph_node *node = graph->first; node; node = node->next) {
    say_node(graph, node);
    say("%s", node->next ? "; " : "");
  }
  return summary;
}
