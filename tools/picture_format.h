/* Between picture.c and the file formats. */
#ifndef TOOLS_PICTURE_FORMAT_H
#define TOOLS_PICTURE_FORMAT_H

#include <stdio.h>

#include "picture.h"

/* Read from a file at its start; image->pixels may be set on failure, the
   caller clears it. `path` is for messages. */
PPH_NODISCARD pph_status picture_read_png(FILE *file, const char *path,
                                          picture *image, pph_error *error);
PPH_NODISCARD pph_status picture_read_jpeg(FILE *file, const char *path,
                                           picture *image, pph_error *error);

/* Checks width, height and channels of *image against the limits and gives it
   its pixels. */
PPH_NODISCARD pph_status picture_allocate(const char *path, picture *image,
                                          pph_error *error);

#endif
