/* SHA-256 (FIPS 180-4), which names constants by their content. */
#ifndef PPH_BASE_SHA256_H
#define PPH_BASE_SHA256_H

#include <stddef.h>

enum { PPH_SHA256_TEXT = 65 }; /* 64 hexadecimal digits and a final 0 */

/* The digest of `length` bytes in lower-case hexadecimal. */
void pph_sha256_print(const void *bytes, size_t length,
                      char text[PPH_SHA256_TEXT]);

#endif
