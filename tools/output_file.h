/* Files that appear whole or not at all: written beside their place, then
   renamed onto it. */
#ifndef TOOLS_OUTPUT_FILE_H
#define TOOLS_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "polyphase/status.h"

typedef struct output_file {
  FILE *file;
  char *path;      /* where the file goes; malloc */
  char *temporary; /* what is written now, NULL when it is `path` itself
                      (a device or pipe); malloc */
} output_file;

/* On failure *output is zero. PPH_IO_FAILED names path and reason. */
PPH_NODISCARD pph_status output_file_open(const char *path,
                                          output_file *output,
                                          pph_error *error);

/* Whether a file could be made at `path` now: its folder is there and may be
   written to. Makes nothing. PPH_IO_FAILED says why not. */
PPH_NODISCARD pph_status output_file_check(const char *path, pph_error *error);

/* Whether a name ends in `ending` (".npy"), in letters of any case. */
bool output_file_ends_in(const char *path, const char *ending);

/* PPH_INVALID_ARGUMENT when writing `path` would replace `source`, which the
   command reads. NULLs are different files. */
PPH_NODISCARD pph_status output_file_spare(const char *path,
                                           const char *source,
                                           pph_error *error);

/* Where to tell about a file that was written: stdout, unless that is where it
   went (/dev/stdout), then stderr. */
FILE *output_file_teller(const char *path);

/* Makes the folder and those above it that are missing. */
PPH_NODISCARD pph_status output_folder_make(const char *path,
                                            pph_error *error);

/* Whether two paths name one file, be it there or not yet. */
bool output_file_same(const char *a, const char *b);

/* Closes and moves it into place. With `status` not PPH_OK, or when the file
   could not be written, nothing is left behind. Returns `status` or what went
   wrong here. */
PPH_NODISCARD pph_status output_file_close(output_file *output,
                                           pph_status status,
                                           pph_error *error);

typedef struct output_content {
  const char *path;
  const void *bytes;
  size_t length;
} output_content;

/* All of that in one, for files that belong together: none of them takes its
   place before all are written. */
PPH_NODISCARD pph_status output_files_write(const output_content *contents,
                                            uint32_t count, pph_error *error);

#endif
