#include "base/sha256.h"

#include <assert.h>
#include <sha2.h>

static_assert(PPH_SHA256_TEXT == SHA256_DIGEST_STRING_LENGTH,
              "room for libmd's text");

void pph_sha256_print(const void *bytes, size_t length,
                      char text[PPH_SHA256_TEXT]) {
  SHA256Data(bytes, length, text);
}
