/* Pictures: PNG and JPEG in, PNG out, 8 bits a channel. */
#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "polyphase/status.h"

/* Rows from the top, pixels from the left, channels interleaved: 1 gray,
   3 RGB, 4 RGBA (alpha not multiplied in). */
typedef struct picture {
  uint32_t width, height, channels;
  unsigned char *pixels; /* malloc; width * height * channels */
} picture;

/* Limits on a file: 65,500 pixels each way (JPEG's own), and this many. */
enum { PICTURE_MAX_SIDE = 65500, PICTURE_MAX_PIXELS = 1 << 27 };

/* Reads a PNG (8 or 16 bits, less is widened; palettes and transparency are
   resolved; gray with alpha becomes RGBA) or a JPEG (gray or RGB), told apart
   by their first bytes. On failure *image is zero. Errors: PPH_IO_FAILED,
   PPH_BAD_MODEL (damaged or cut off), PPH_UNSUPPORTED (another format, CMYK),
   PPH_LIMIT_EXCEEDED, PPH_OUT_OF_MEMORY. */
PPH_NODISCARD pph_status picture_load(const char *path, picture *image,
                                      pph_error *error);

/* Whether a file starts as such a picture; false when it cannot be read. */
bool picture_is_one(const char *path);

/* Writes a PNG; the file appears whole or not at all. */
PPH_NODISCARD pph_status picture_save(const char *path, const picture *image,
                                      pph_error *error);

/* All zeros is allowed. */
void picture_clear(picture *image);

#endif
