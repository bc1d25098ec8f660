/* What is legal in a container, and yet worth a warning. */
#ifndef PPH_PTE_WARNINGS_H
#define PPH_PTE_WARNINGS_H

#include "pte/container.h"

/* Takes one warning: the method it is about and a sentence. */
typedef void (*pph_pte_report)(void *context, pph_flat_text method,
                               const char *text);

/* Reports all. Every kind of warning is a row of the table in warnings.c. */
void pph_pte_warn(const pph_pte *pte, pph_pte_report report, void *context);

#endif
