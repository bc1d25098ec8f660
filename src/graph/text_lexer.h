/* Reading the text form: a place in the text and what may stand there. Nothing
   here reads at or beyond `length`. */
#ifndef PPH_GRAPH_TEXT_LEXER_H
#define PPH_GRAPH_TEXT_LEXER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/heap.h"
#include "polyphase/status.h"

typedef struct pph_text_lexer {
  const char *text;
  size_t length, at;
  pph_arena *arena; /* decoded strings go here */
  pph_error *error;
} pph_text_lexer;

/* A run of [A-Za-z0-9_.+-:]; points into the text. */
typedef struct pph_text_word {
  const char *start;
  size_t length;
} pph_text_word;

/* Fails with PPH_BAD_MODEL at byte `at` as "line 3, column 14". */
pph_status pph_text_fail(const pph_text_lexer *lexer, size_t at,
                         const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "expected WHAT, found ..." at the current place. */
pph_status pph_text_fail_expected(const pph_text_lexer *lexer,
                                  const char *what);
/* Adds line and column of `at` to an error that has no place yet; returns
   `status`. */
pph_status pph_text_add_place(const pph_text_lexer *lexer, size_t at,
                              pph_status status);

/* Skips blanks and comments; line ends too when `lines`. */
void pph_text_skip(pph_text_lexer *lexer, bool lines);
/* The byte after blanks, 0 at a line's end or the end of the text. */
char pph_text_peek(pph_text_lexer *lexer);
/* Takes `c` if it comes next on the line. */
bool pph_text_take(pph_text_lexer *lexer, char c);
PPH_NODISCARD pph_status pph_text_expect(pph_text_lexer *lexer, char c);
/* Takes `word` if it is the next word of the line. */
bool pph_text_take_word(pph_text_lexer *lexer, const char *word);
/* The next word of the line, not taken; its length is 0 if there is none. */
pph_text_word pph_text_peek_word(pph_text_lexer *lexer);
/* The same, taken. */
pph_text_word pph_text_next_word(pph_text_lexer *lexer);

/* "quoted \"text\"", decoded. */
PPH_NODISCARD pph_status pph_text_read_string(pph_text_lexer *lexer,
                                              const char **string);
/* %name or %"quoted name"; not empty. */
PPH_NODISCARD pph_status pph_text_read_name(pph_text_lexer *lexer,
                                            const char **name);
/* One step of a list that `close` ends: at its start (`first`) or after an
   element. *more tells whether an element follows; if not, `close` is taken.
   Lines may break inside lists. */
PPH_NODISCARD pph_status pph_text_next_element(pph_text_lexer *lexer,
                                               char close, bool first,
                                               bool *more);

/* Bytes of a name that need no quotes. */
bool pph_text_is_name_byte(char c);

#endif
