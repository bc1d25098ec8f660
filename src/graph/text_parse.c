/* Parsing a graph; docs/text-form.md has the grammar. One statement a line,
   no recursion. Every value has to be defined before it is used, so that the
   result is in order. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "graph/text.h"
#include "graph/text_lexer.h"
#include "graph/text_names.h"
#include "graph/text_number.h"
#include "graph/verify.h"

typedef struct id_list {
  pph_id *ids; /* heap */
  uint32_t count, capacity;
} id_list;

typedef struct parser {
  pph_text_lexer lexer;
  pph_graph *graph;
  pph_text_names names;
  id_list inputs, outputs;           /* the graph's */
  id_list node_inputs, node_outputs; /* the current node's */
  int64_t *numbers;                  /* the current list's; heap */
  uint32_t number_capacity;
  bool named; /* the graph has its name */
} parser;

static pph_status append(parser *parse, id_list *list, pph_id id) {
  if (list->count == list->capacity) {
    uint32_t capacity = list->capacity ? list->capacity * 2 : 16;
    pph_id *grown = capacity <= list->capacity
                        ? NULL
                        : pph_heap_grow(parse->graph->heap, list->ids,
                                        list->count * sizeof *grown, capacity,
                                        sizeof *grown);
    if (!grown)
      return pph_fail_memory(parse->lexer.error);
    list->ids = grown;
    list->capacity = capacity;
  }
  list->ids[list->count++] = id;
  return PPH_OK;
}

/* A new value with the name that comes next. */
static pph_status define(parser *parse, pph_id *id) {
  pph_text_lexer *lexer = &parse->lexer;
  const char *name;
  pph_id existing;
  pph_text_skip(lexer, false);
  size_t at = lexer->at;
  PPH_TRY(pph_text_read_name(lexer, &name));
  PPH_TRY(pph_text_add_place(
      lexer, at, pph_graph_add_value(parse->graph, name, id, lexer->error)));
  PPH_TRY(pph_text_add_place(
      lexer, at,
      pph_text_names_add(&parse->names, *id, &existing, lexer->error)));
  if (existing != PPH_NO_VALUE)
    return pph_text_fail(lexer, at, "value \"%.100s\" is defined twice", name);
  return PPH_OK;
}

/* A value below `end` of the name that comes next. */
static pph_status find(parser *parse, pph_id end, pph_id *id) {
  const char *name;
  pph_text_skip(&parse->lexer, false);
  size_t at = parse->lexer.at;
  PPH_TRY(pph_text_read_name(&parse->lexer, &name));
  *id = pph_text_names_find(&parse->names, name, strlen(name));
  if (*id >= end)
    return pph_text_fail(&parse->lexer, at,
                         "value \"%.100s\" is not defined before", name);
  return PPH_OK;
}

/* Reads the next word as a number of that type. */
static pph_status read_number(pph_text_lexer *lexer, pph_dtype type,
                              void *data, size_t index) {
  char copy[PPH_TEXT_NUMBER_SIZE];
  pph_text_word word = pph_text_peek_word(lexer);
  if (!word.length)
    return pph_text_fail_expected(lexer, "a number");
  snprintf(copy, sizeof copy, "%.*s", (int)pph_min_i64((int64_t)word.length,
                                                       sizeof copy - 1),
           word.start);
  if (word.length >= sizeof copy ||
      !pph_text_parse_number(type, copy, data, index))
    return pph_text_fail(lexer, lexer->at, "%s is no number of type %s", copy,
                         pph_dtype_name(type));
  lexer->at += word.length;
  return PPH_OK;
}

static pph_status read_shape(parser *parse, pph_shape *shape) {
  pph_text_lexer *lexer = &parse->lexer;
  bool more;
  for (;;) {
    PPH_TRY(pph_text_next_element(lexer, ']', shape->rank == 0, &more));
    if (!more)
      return PPH_OK;
    if (shape->rank == PPH_MAX_RANK)
      return pph_text_fail(lexer, lexer->at,
                           "more than %d dimensions, the most there may be",
                           PPH_MAX_RANK);
    int64_t dim = -1;
    size_t at = lexer->at;
    if (!pph_text_take(lexer, '?')) {
      PPH_TRY(read_number(lexer, PPH_I64, &dim, 0));
      if (dim < 0)
        return pph_text_fail(lexer, at,
                             "dimension is %lld, must be at least 0 or ?",
                             (long long)dim);
    }
    shape->dims[shape->rank++] = dim;
  }
}

static pph_status read_dim_names(parser *parse, pph_value *value) {
  pph_text_lexer *lexer = &parse->lexer;
  size_t start = lexer->at;
  int32_t count = 0;
  bool more;
  for (;;) {
    PPH_TRY(pph_text_next_element(lexer, ')', count == 0, &more));
    if (!more)
      break;
    if (count == value->shape.rank)
      return pph_text_fail(lexer, lexer->at,
                           "more names than the shape's %d dimensions",
                           value->shape.rank);
    if (!pph_text_take_word(lexer, "_"))
      PPH_TRY(pph_text_read_string(lexer, &value->dim_names[count]));
    count++;
  }
  if (count != value->shape.rank)
    return pph_text_fail(lexer, start,
                         "%d names of dimensions, the shape has %d", count,
                         value->shape.rank);
  return PPH_OK;
}

/* [":"] [type] ["[" shape "]" ["(" names ")"]] ["channels_last"] */
static pph_status read_type(parser *parse, pph_id id) {
  pph_text_lexer *lexer = &parse->lexer;
  pph_value *value = pph_graph_value(parse->graph, id);
  pph_text_take(lexer, ':');
  pph_text_word word = pph_text_peek_word(lexer);
  value->type = pph_text_find_dtype(word.start, word.length);
  if (value->type != PPH_DTYPE_NONE)
    lexer->at += word.length;
  if (pph_text_take(lexer, '[')) {
    value->has_rank = true;
    PPH_TRY(read_shape(parse, &value->shape));
    if (pph_text_take(lexer, '('))
      PPH_TRY(read_dim_names(parse, value));
  }
  if (pph_text_take_word(lexer, "channels_last"))
    value->layout = PPH_LAYOUT_CHANNELS_LAST;
  else if (pph_text_peek_word(lexer).length)
    return pph_text_fail_expected(lexer,
                                  "an element type, a shape or channels_last");
  if (value->layout != PPH_LAYOUT_PLAIN && value->shape.rank < 3)
    return pph_text_fail(lexer, lexer->at,
                         "channels_last needs a shape of rank 3 or more");
  return PPH_OK;
}

static pph_status parse_graph_name(parser *parse) {
  size_t at = parse->lexer.at;
  if (parse->named)
    return pph_text_fail(&parse->lexer, at, "the graph has a name already");
  parse->named = true;
  return pph_text_read_string(&parse->lexer, &parse->graph->name);
}

static pph_status parse_input(parser *parse) {
  pph_id id;
  PPH_TRY(define(parse, &id));
  PPH_TRY(read_type(parse, id));
  return append(parse, &parse->inputs, id);
}

static pph_status parse_output(parser *parse) {
  pph_id id;
  PPH_TRY(find(parse, parse->graph->value_count, &id));
  return append(parse, &parse->outputs, id);
}

/* Constants */

/* Memory for the elements; only a splat may ask for more than the text's own
   length accounts for. */
static pph_status allocate_data(parser *parse, const pph_value *value,
                                size_t count, void **data) {
  pph_text_lexer *lexer = &parse->lexer;
  size_t bytes;
  if (!pph_checked_mul(count, pph_dtype_size(value->type), &bytes) ||
      !pph_shape_fits(&value->shape, value->type, parse->graph->tensor_limit) ||
      bytes > SIZE_MAX - 64)
    return pph_text_add_place(
        lexer, lexer->at,
        pph_fail(lexer->error, PPH_LIMIT_EXCEEDED, "",
                 "the constant is larger than the limit of %llu bytes",
                 (unsigned long long)parse->graph->tensor_limit));
  /* 64 more: XNNPACK may read past a tensor's end. */
  *data = pph_arena_allocate(&parse->graph->arena, bytes + 64, 1);
  if (!*data)
    return pph_text_add_place(lexer, lexer->at,
                              pph_fail_memory(lexer->error));
  return PPH_OK;
}

static pph_status read_splat(parser *parse, const pph_value *value,
                             size_t count, void **data) {
  uint64_t element = 0;
  PPH_TRY(read_number(&parse->lexer, value->type, &element, 0));
  PPH_TRY(allocate_data(parse, value, count, data));
  size_t size = pph_dtype_size(value->type), bytes = count * size;
  if (!bytes || !element)
    return PPH_OK; /* the arena gives zeros */
  char *elements = *data;
  memcpy(elements, &element, size);
  for (size_t done = size; done < bytes; done *= 2)
    memcpy(elements + done, elements,
           done < bytes - done ? done : bytes - done);
  return PPH_OK;
}

static pph_status read_elements(parser *parse, const pph_value *value,
                                size_t count, void **data) {
  pph_text_lexer *lexer = &parse->lexer;
  size_t start = lexer->at, seen = 0;
  bool more;
  PPH_TRY(pph_text_expect(lexer, '{'));
  if (count > lexer->length - lexer->at)
    return pph_text_fail(lexer, start,
                         "fewer elements than the shape's %zu", count);
  PPH_TRY(allocate_data(parse, value, count, data));
  for (;; seen++) {
    PPH_TRY(pph_text_next_element(lexer, '}', seen == 0, &more));
    if (!more)
      break;
    if (seen == count)
      return pph_text_fail(lexer, lexer->at,
                           "more elements than the shape's %zu", count);
    PPH_TRY(read_number(lexer, value->type, *data, seen));
  }
  if (seen != count)
    return pph_text_fail(lexer, start, "%zu elements, the shape has %zu", seen,
                         count);
  return PPH_OK;
}

static pph_status parse_constant(parser *parse) {
  pph_text_lexer *lexer = &parse->lexer;
  pph_id id;
  size_t count;
  void *data;
  pph_text_skip(lexer, false);
  size_t at = lexer->at;
  PPH_TRY(define(parse, &id));
  PPH_TRY(read_type(parse, id));
  pph_value *value = pph_graph_value(parse->graph, id);
  if (value->type == PPH_DTYPE_NONE || !value->has_rank)
    return pph_text_fail(lexer, at, "a constant needs a type and a shape");
  if (!pph_shape_count(&value->shape, &count))
    return pph_text_fail(lexer, at,
                         "a constant's shape is unknown or too large");
  PPH_TRY(pph_text_expect(lexer, '='));
  if (pph_text_take_word(lexer, "..."))
    return pph_text_fail(lexer, lexer->at,
                         "the constant's data was left out when it was "
                         "printed and cannot be read back");
  if (pph_text_take_word(lexer, "splat"))
    PPH_TRY(read_splat(parse, value, count, &data));
  else
    PPH_TRY(read_elements(parse, value, count, &data));
  value->data = data;
  if (pph_text_take_word(lexer, "external"))
    return pph_text_read_string(lexer, &value->origin.external);
  return PPH_OK;
}

/* Nodes */

static pph_status reserve_number(parser *parse, uint32_t count) {
  if (count < parse->number_capacity)
    return PPH_OK;
  uint32_t capacity = count ? count * 2 : 16;
  int64_t *grown = capacity <= count
                       ? NULL
                       : pph_heap_grow(parse->graph->heap, parse->numbers,
                                       count * sizeof *grown, capacity,
                                       sizeof *grown);
  if (!grown)
    return pph_fail_memory(parse->lexer.error);
  parse->numbers = grown;
  parse->number_capacity = capacity;
  return PPH_OK;
}

/* Into parse->numbers, as int64_t or float. */
static pph_status read_list(parser *parse, pph_dtype type, uint32_t *count) {
  bool more;
  PPH_TRY(pph_text_expect(&parse->lexer, '['));
  for (*count = 0;; ++*count) {
    PPH_TRY(
        pph_text_next_element(&parse->lexer, ']', *count == 0, &more));
    if (!more)
      return PPH_OK;
    PPH_TRY(reserve_number(parse, *count));
    PPH_TRY(read_number(&parse->lexer, type, parse->numbers, *count));
  }
}

static pph_status read_attribute_value(parser *parse,
                                       pph_attribute *attribute) {
  pph_text_lexer *lexer = &parse->lexer;
  switch (pph_attribute_key_type(attribute->key)) {
  case PPH_ATTRIBUTE_INT:
    return read_number(lexer, PPH_I64, &attribute->i, 0);
  case PPH_ATTRIBUTE_FLOAT:
    return read_number(lexer, PPH_F32, &attribute->f, 0);
  case PPH_ATTRIBUTE_TEXT:
    return pph_text_read_string(lexer, &attribute->text);
  case PPH_ATTRIBUTE_INTS:
    PPH_TRY(read_list(parse, PPH_I64, &attribute->count));
    attribute->ints = parse->numbers;
    break;
  case PPH_ATTRIBUTE_FLOATS:
    PPH_TRY(read_list(parse, PPH_F32, &attribute->count));
    attribute->floats = (const float *)parse->numbers;
    break;
  }
  return PPH_OK;
}

static pph_status read_attribute(parser *parse, pph_node *node) {
  pph_text_lexer *lexer = &parse->lexer;
  char name[48];
  size_t at = lexer->at;
  pph_text_word word = pph_text_next_word(lexer);
  if (!word.length)
    return pph_text_fail_expected(lexer, "an attribute's name");
  snprintf(name, sizeof name, "%.*s",
           (int)pph_min_i64((int64_t)word.length, sizeof name - 1),
           word.start);
  pph_attribute attribute = {.key = pph_attribute_key_find(name)};
  if (attribute.key == PPH_ATTRIBUTE_KEY_COUNT)
    return pph_text_fail(lexer, at, "unknown attribute %s", name);
  if (pph_node_find_attribute(node, attribute.key))
    return pph_text_fail(lexer, at, "attribute %s is given twice", name);
  PPH_TRY(pph_text_expect(lexer, '='));
  PPH_TRY(read_attribute_value(parse, &attribute));
  return pph_node_set_attribute(parse->graph, node, &attribute, lexer->error);
}

static pph_status read_activation(parser *parse, pph_node *node) {
  pph_text_lexer *lexer = &parse->lexer;
  PPH_TRY(pph_text_expect(lexer, '='));
  if (pph_text_take_word(lexer, "clamp"))
    node->activation = PPH_ACTIVATION_CLAMP;
  else if (pph_text_take_word(lexer, "leaky_relu"))
    node->activation = PPH_ACTIVATION_LEAKY_RELU;
  else if (pph_text_take_word(lexer, "prelu"))
    node->activation = PPH_ACTIVATION_PRELU;
  else
    return pph_text_fail_expected(lexer, "clamp, leaky_relu or prelu");
  return PPH_OK;
}

static pph_status read_kind(parser *parse, pph_node_kind *kind) {
  pph_text_lexer *lexer = &parse->lexer;
  char name[48];
  pph_text_skip(lexer, false);
  size_t at = lexer->at;
  pph_text_word word = pph_text_next_word(lexer);
  if (!word.length)
    return pph_text_fail_expected(lexer, "a node's kind");
  snprintf(name, sizeof name, "%.*s",
           (int)pph_min_i64((int64_t)word.length, sizeof name - 1),
           word.start);
  *kind = pph_node_kind_find(name);
  if (*kind == PPH_NODE_KIND_COUNT)
    return pph_text_fail(lexer, at, "unknown node kind %s", name);
  return PPH_OK;
}

static pph_status read_node_outputs(parser *parse) {
  pph_text_lexer *lexer = &parse->lexer;
  parse->node_outputs.count = 0;
  do {
    pph_id id = PPH_NO_VALUE;
    if (!pph_text_take_word(lexer, "_")) {
      PPH_TRY(define(parse, &id));
      PPH_TRY(read_type(parse, id));
    }
    PPH_TRY(append(parse, &parse->node_outputs, id));
  } while (pph_text_take(lexer, ','));
  return pph_text_expect(lexer, '=');
}

static pph_status read_node_inputs(parser *parse, pph_id end) {
  pph_text_lexer *lexer = &parse->lexer;
  bool more;
  parse->node_inputs.count = 0;
  PPH_TRY(pph_text_expect(lexer, '('));
  for (;;) {
    PPH_TRY(pph_text_next_element(lexer, ')', parse->node_inputs.count == 0,
                                  &more));
    if (!more)
      return PPH_OK;
    pph_id id = PPH_NO_VALUE;
    if (!pph_text_take_word(lexer, "_"))
      PPH_TRY(find(parse, end, &id));
    PPH_TRY(append(parse, &parse->node_inputs, id));
  }
}

static pph_status read_node_rest(parser *parse, pph_node *node, pph_id end) {
  pph_text_lexer *lexer = &parse->lexer;
  pph_graph *graph = parse->graph;
  PPH_TRY(read_node_inputs(parse, end));
  PPH_TRY(pph_node_set_inputs(graph, node, parse->node_inputs.ids,
                              parse->node_inputs.count, lexer->error));
  PPH_TRY(pph_node_set_outputs(graph, node, parse->node_outputs.ids,
                               parse->node_outputs.count, lexer->error));
  if (pph_text_take(lexer, '{')) {
    bool more;
    for (bool first = true;; first = false) {
      PPH_TRY(pph_text_next_element(lexer, '}', first, &more));
      if (!more)
        break;
      PPH_TRY(read_attribute(parse, node));
    }
  }
  if (pph_text_take_word(lexer, "activation"))
    PPH_TRY(read_activation(parse, node));
  return PPH_OK;
}

static pph_status check_counts(parser *parse, size_t at,
                               const pph_node_kind_info *info) {
  uint32_t ins = parse->node_inputs.count, outs = parse->node_outputs.count;
  if (ins < info->min_inputs || ins > info->max_inputs)
    return pph_text_fail(&parse->lexer, at,
                         "%s has %u inputs, must have %u to %u", info->name,
                         ins, info->min_inputs, info->max_inputs);
  if (outs < info->min_outputs || outs > info->max_outputs)
    return pph_text_fail(&parse->lexer, at,
                         "%s has %u outputs, must have %u to %u", info->name,
                         outs, info->min_outputs, info->max_outputs);
  return PPH_OK;
}

static pph_status parse_node(parser *parse) {
  pph_text_lexer *lexer = &parse->lexer;
  pph_id end = parse->graph->value_count;
  size_t at = lexer->at;
  const char *name = NULL;
  pph_node_kind kind;
  pph_node *node;
  PPH_TRY(read_node_outputs(parse));
  PPH_TRY(read_kind(parse, &kind));
  if (pph_text_peek(lexer) == '"')
    PPH_TRY(pph_text_read_string(lexer, &name));
  PPH_TRY(pph_graph_add_node(parse->graph, kind, name, NULL, &node,
                             lexer->error));
  PPH_TRY(read_node_rest(parse, node, end));
  return check_counts(parse, at, pph_node_kind_find_info(kind));
}

/* Lines */

static const struct {
  const char *word;
  pph_status (*parse)(parser *parse);
} statements[] = {{"graph", parse_graph_name},
                  {"input", parse_input},
                  {"const", parse_constant},
                  {"output", parse_output}};

static pph_status parse_statement(parser *parse) {
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
    if (pph_text_take_word(&parse->lexer, statements[i].word))
      return statements[i].parse(parse);
  char c = pph_text_peek(&parse->lexer);
  if (c == '%' || c == '_')
    return parse_node(parse);
  return pph_text_fail_expected(&parse->lexer,
                                "graph, input, const, output or %value");
}

static pph_status parse_lines(parser *parse) {
  pph_text_lexer *lexer = &parse->lexer;
  for (;;) {
    pph_text_skip(lexer, true);
    if (lexer->at >= lexer->length)
      break;
    size_t at = lexer->at;
    PPH_TRY(pph_text_add_place(lexer, at, parse_statement(parse)));
    pph_text_skip(lexer, false);
    if (lexer->at < lexer->length && lexer->text[lexer->at] != '\n')
      return pph_text_fail_expected(lexer, "a line's end");
  }
  PPH_TRY(pph_graph_set_inputs(parse->graph, parse->inputs.ids,
                               parse->inputs.count, lexer->error));
  PPH_TRY(pph_graph_set_outputs(parse->graph, parse->outputs.ids,
                                parse->outputs.count, lexer->error));
  return pph_graph_verify(parse->graph, lexer->error);
}

pph_status pph_text_parse(const char *text, size_t length, pph_graph *graph,
                          pph_error *error) {
  parser parse = {.lexer = {text, length, 0, &graph->arena, error},
                  .graph = graph};
  pph_text_names_init(&parse.names, graph);
  void *locale = pph_text_enter_locale();
  pph_status status = parse_lines(&parse);
  pph_text_leave_locale(locale);
  pph_text_names_clear(&parse.names);
  pph_heap_release(graph->heap, parse.numbers);
  pph_heap_release(graph->heap, parse.inputs.ids);
  pph_heap_release(graph->heap, parse.outputs.ids);
  pph_heap_release(graph->heap, parse.node_inputs.ids);
  pph_heap_release(graph->heap, parse.node_outputs.ids);
  return status;
}
