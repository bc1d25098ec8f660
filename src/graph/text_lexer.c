/* Words, names and strings of the text form. */
#include "graph/text_lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.';
}

bool pph_text_is_name_byte(char c) {
  return is_alphanumeric(c) || c == '/' || c == '~' || c == '-';
}

static bool is_word_byte(char c) {
  return is_alphanumeric(c) || c == '+' || c == '-' || c == ':';
}

static void print_place(const pph_text_lexer *lexer, size_t at, char *place,
                        size_t size) {
  size_t line = 1, start = 0;
  for (size_t i = 0; i < at; i++)
    if (lexer->text[i] == '\n') {
      line++;
      start = i + 1;
    }
  snprintf(place, size, "line %zu, column %zu", line, at - start + 1);
}

pph_status pph_text_fail(const pph_text_lexer *lexer, size_t at,
                         const char *format, ...) {
  char place[64], message[sizeof lexer->error->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  print_place(lexer, at, place, sizeof place);
  return pph_fail(lexer->error, PPH_BAD_MODEL, place, "%s", message);
}

pph_status pph_text_add_place(const pph_text_lexer *lexer, size_t at,
                              pph_status status) {
  if (status == PPH_OK)
    return PPH_OK;
  char place[64];
  print_place(lexer, at, place, sizeof place);
  pph_error_set_where(lexer->error, "%s", place);
  return status;
}

pph_status pph_text_fail_expected(const pph_text_lexer *lexer,
                                  const char *what) {
  if (lexer->at >= lexer->length)
    return pph_text_fail(lexer, lexer->at, "expected %s, found the end", what);
  char c = lexer->text[lexer->at];
  if (c == '\n')
    return pph_text_fail(lexer, lexer->at, "expected %s, found a line's end",
                         what);
  size_t length = 1, left = lexer->length - lexer->at;
  if (is_word_byte(c))
    while (length < left && length < 40 &&
           is_word_byte(lexer->text[lexer->at + length]))
      length++;
  return pph_text_fail(lexer, lexer->at, "expected %s, found '%.*s'", what,
                       (int)length, lexer->text + lexer->at);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

void pph_text_skip(pph_text_lexer *lexer, bool lines) {
  for (; lexer->at < lexer->length; lexer->at++) {
    char c = lexer->text[lexer->at];
    if (c == '#') {
      size_t left = lexer->length - lexer->at;
      const char *end = memchr(lexer->text + lexer->at, '\n', left);
      lexer->at = end ? (size_t)(end - lexer->text) : lexer->length;
      if (!lines || !end)
        return;
    } else if (!is_blank(c) && !(lines && c == '\n')) {
      return;
    }
  }
}

char pph_text_peek(pph_text_lexer *lexer) {
  pph_text_skip(lexer, false);
  if (lexer->at >= lexer->length || lexer->text[lexer->at] == '\n')
    return 0;
  return lexer->text[lexer->at];
}

bool pph_text_take(pph_text_lexer *lexer, char c) {
  if (!c || pph_text_peek(lexer) != c)
    return false;
  lexer->at++;
  return true;
}

pph_status pph_text_expect(pph_text_lexer *lexer, char c) {
  char what[] = "'x'";
  what[1] = c;
  return pph_text_take(lexer, c) ? PPH_OK
                                 : pph_text_fail_expected(lexer, what);
}

pph_text_word pph_text_peek_word(pph_text_lexer *lexer) {
  pph_text_skip(lexer, false);
  pph_text_word word = {lexer->text + lexer->at, 0};
  while (word.length < lexer->length - lexer->at &&
         is_word_byte(word.start[word.length]))
    word.length++;
  return word;
}

pph_text_word pph_text_next_word(pph_text_lexer *lexer) {
  pph_text_word word = pph_text_peek_word(lexer);
  lexer->at += word.length;
  return word;
}

bool pph_text_take_word(pph_text_lexer *lexer, const char *expected) {
  pph_text_word word = pph_text_peek_word(lexer);
  if (strlen(expected) != word.length ||
      memcmp(expected, word.start, word.length) != 0)
    return false;
  lexer->at += word.length;
  return true;
}

/* Where the closing quote is, or `length`. */
static size_t find_quote(const pph_text_lexer *lexer) {
  size_t at = lexer->at;
  while (at < lexer->length && lexer->text[at] != '"' &&
         lexer->text[at] != '\n')
    at += lexer->text[at] == '\\' ? 2 : 1;
  bool found = at < lexer->length && lexer->text[at] == '"';
  return found ? at : lexer->length;
}

static int hex_value(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes what follows a backslash at `at` (before `end`): the byte, or -1;
   *used counts the bytes taken. */
static int decode_escape(const char *text, size_t at, size_t end,
                         size_t *used) {
  static const char codes[] = "nrt\"\\", bytes[] = "\n\r\t\"\\";
  const char *code = at < end ? strchr(codes, text[at]) : NULL;
  *used = 1;
  if (code && *code)
    return (unsigned char)bytes[code - codes];
  if (end - at < 3 || text[at] != 'x' || hex_value(text[at + 1]) < 0 ||
      hex_value(text[at + 2]) < 0)
    return -1;
  *used = 3;
  int byte = hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]);
  return byte ? byte : -1; /* a 0 would end the string early */
}

pph_status pph_text_read_string(pph_text_lexer *lexer, const char **string) {
  if (pph_text_peek(lexer) != '"')
    return pph_text_fail_expected(lexer, "a quoted text");
  size_t open = lexer->at++;
  size_t end = find_quote(lexer);
  if (end == lexer->length)
    return pph_text_fail(lexer, open, "the quoted text does not end");
  char *copy = pph_arena_allocate(lexer->arena, end - lexer->at + 1, 1);
  if (!copy)
    return pph_text_add_place(lexer, open, pph_fail_memory(lexer->error));
  size_t length = 0;
  while (lexer->at < end) {
    int byte = (unsigned char)lexer->text[lexer->at];
    size_t used = 0;
    if (byte == '\\')
      byte = decode_escape(lexer->text, lexer->at + 1, end, &used);
    if (byte <= 0)
      return pph_text_fail(lexer, lexer->at,
                           "bad byte or escape in a quoted text; legal are "
                           "\\\" \\\\ \\n \\r \\t \\x01..\\xff");
    copy[length++] = (char)byte;
    lexer->at += 1 + used;
  }
  lexer->at = end + 1;
  *string = copy;
  return PPH_OK;
}

pph_status pph_text_read_name(pph_text_lexer *lexer, const char **name) {
  if (pph_text_peek(lexer) != '%')
    return pph_text_fail_expected(lexer, "a value such as %x");
  size_t start = lexer->at++;
  if (lexer->at < lexer->length && lexer->text[lexer->at] == '"') {
    PPH_TRY(pph_text_read_string(lexer, name));
  } else {
    size_t first = lexer->at;
    while (lexer->at < lexer->length &&
           pph_text_is_name_byte(lexer->text[lexer->at]))
      lexer->at++;
    *name = pph_arena_copy_text(lexer->arena, lexer->text + first,
                                lexer->at - first);
    if (!*name)
      return pph_text_add_place(lexer, start, pph_fail_memory(lexer->error));
  }
  if (!**name)
    return pph_text_fail(lexer, start, "a value's name is empty");
  return PPH_OK;
}

pph_status pph_text_next_element(pph_text_lexer *lexer, char close, bool first,
                                 bool *more) {
  char what[] = "',' or 'x'";
  what[8] = close;
  pph_text_skip(lexer, true);
  *more = !pph_text_take(lexer, close);
  if (*more && !first && !pph_text_take(lexer, ','))
    return pph_text_fail_expected(lexer, what);
  if (*more)
    pph_text_skip(lexer, true);
  return PPH_OK;
}
