/* Elements of tensors as words of the text form, so that every bit survives:
   floats as the shortest decimal that reads back to the same bits, `inf`,
   `-inf`, `nan` (the usual quiet one) or `nan:0x7fc00001` (any other). */
#ifndef PPH_GRAPH_TEXT_NUMBER_H
#define PPH_GRAPH_TEXT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "polyphase/tensor.h"

/* Longest word that is read or written, with its final 0. */
enum { PPH_TEXT_NUMBER_SIZE = 64 };

/* Prints element `index` of `data` into text[PPH_TEXT_NUMBER_SIZE]; returns
   `text`. The thread must be in the C locale (pph_text_enter_locale). */
const char *pph_text_print_number(pph_dtype type, const void *data,
                                  size_t index, char *text);

/* Reads `word` (ends in 0) as element `index` of `data`. False when it is no
   number of that type or out of its range; then nothing is written. */
bool pph_text_parse_number(pph_dtype type, const char *word, void *data,
                           size_t index);

/* The type of that name, PPH_DTYPE_NONE if there is none. */
pph_dtype pph_text_find_dtype(const char *name, size_t length);

/* Puts the calling thread into the C locale, so that a decimal point is a
   point; leave gives back what enter returned. */
void *pph_text_enter_locale(void);
void pph_text_leave_locale(void *previous);

#endif
