#include "output_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

static pph_status fail_io(const char *path, const char *what,
                          pph_error *error) {
  return pph_fail(error, PPH_IO_FAILED, path, "cannot %s: %s", what,
                  strerror(errno));
}

/* A symbolic link stays; what it points to is replaced. */
static char *resolve(const char *path) {
  char *real = realpath(path, NULL);
  return real ? real : strdup(path);
}

/* mkstemp makes files that only their owner may read; ours are ordinary. */
static void set_ordinary_mode(int descriptor) {
  mode_t mask = umask(0);
  umask(mask);
  if (fchmod(descriptor, 0666 & ~mask) != 0)
    errno = 0; /* a file system without modes */
}

static FILE *open_beside(output_file *output) {
  static const char suffix[] = ".XXXXXX";
  size_t length = strlen(output->path);
  output->temporary = malloc(length + sizeof suffix);
  if (!output->temporary)
    return NULL;
  memcpy(output->temporary, output->path, length);
  memcpy(output->temporary + length, suffix, sizeof suffix);
  int descriptor = mkstemp(output->temporary);
  if (descriptor < 0) {
    free(output->temporary);
    output->temporary = NULL;
    return NULL;
  }
  set_ordinary_mode(descriptor);
  FILE *file = fdopen(descriptor, "w+b");
  if (!file)
    close(descriptor);
  return file;
}

static void clear(output_file *output) {
  if (output->temporary)
    unlink(output->temporary);
  free(output->temporary);
  free(output->path);
  *output = (output_file){NULL, NULL, NULL};
}

pph_status output_file_open(const char *path, output_file *output,
                            pph_error *error) {
  struct stat info;
  *output = (output_file){NULL, resolve(path), NULL};
  if (!output->path)
    return pph_fail_memory(error);
  if (stat(output->path, &info) == 0 && !S_ISREG(info.st_mode))
    output->file = fopen(output->path, "wb");
  else
    output->file = open_beside(output);
  if (output->file)
    return PPH_OK;
  pph_status status = fail_io(path, "create the file", error);
  clear(output);
  return status;
}

/* Writes out what is buffered. */
static pph_status finish(output_file *output, pph_status status,
                         pph_error *error) {
  bool written = !ferror(output->file);
  if (fclose(output->file) != 0)
    written = false;
  output->file = NULL;
  return status == PPH_OK && !written
             ? fail_io(output->path, "write the file", error)
             : status;
}

/* Into its place. */
static pph_status place(output_file *output, pph_error *error) {
  if (!output->temporary)
    return PPH_OK;
  if (rename(output->temporary, output->path) != 0)
    return fail_io(output->path, "replace the file", error);
  free(output->temporary);
  output->temporary = NULL;
  return PPH_OK;
}

pph_status output_file_close(output_file *output, pph_status status,
                             pph_error *error) {
  status = finish(output, status, error);
  if (status == PPH_OK)
    status = place(output, error);
  clear(output);
  return status;
}

static void get_folder(const char *path, char *folder, size_t size) {
  const char *slash = strrchr(path, '/');
  int length = !slash || slash == path ? 1 : (int)(slash - path);
  snprintf(folder, size, "%.*s", length, slash ? path : ".");
}

pph_status output_file_check(const char *path, pph_error *error) {
  char folder[4096];
  get_folder(path, folder, sizeof folder);
  if (access(folder, W_OK | X_OK) == 0)
    return PPH_OK;
  return pph_fail(error, PPH_IO_FAILED, path,
                  "cannot be written, its folder: %s", strerror(errno));
}

static bool same_file(const char *a, const char *b) {
  struct stat info_a, info_b;
  return stat(a, &info_a) == 0 && stat(b, &info_b) == 0 &&
         info_a.st_dev == info_b.st_dev && info_a.st_ino == info_b.st_ino;
}

/* Files that are not there yet are compared by folder and name. */
static bool same_place(const char *a, const char *b) {
  const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
  if (strcmp(slash_a ? slash_a + 1 : a, slash_b ? slash_b + 1 : b) != 0)
    return false;
  char folder_a[4096], folder_b[4096];
  get_folder(a, folder_a, sizeof folder_a);
  get_folder(b, folder_b, sizeof folder_b);
  return same_file(folder_a, folder_b);
}

bool output_file_same(const char *a, const char *b) {
  return same_file(a, b) || same_place(a, b);
}

bool output_file_ends_in(const char *path, const char *ending) {
  size_t length = strlen(path), tail = strlen(ending);
  return length > tail && strcasecmp(path + length - tail, ending) == 0;
}

pph_status output_file_spare(const char *path, const char *source,
                             pph_error *error) {
  if (!path || !source || !output_file_same(path, source))
    return PPH_OK;
  return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                  "would be written over %s, which is read", source);
}

FILE *output_file_teller(const char *path) {
  struct stat to, out;
  bool same = stat(path, &to) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
              to.st_dev == out.st_dev && to.st_ino == out.st_ino;
  return same ? stderr : stdout;
}

pph_status output_folder_make(const char *path, pph_error *error) {
  char *part = strdup(path);
  struct stat info;
  if (!part)
    return pph_fail_memory(error);
  bool made = true;
  for (char *end = part; made && *end; end++) {
    char next = end[1];
    if (next != '/' && next != 0)
      continue;
    end[1] = 0;
    made = mkdir(part, 0777) == 0 || errno == EEXIST;
    end[1] = next;
  }
  free(part);
  if (made && stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) {
    made = false;
    errno = ENOTDIR;
  }
  return made ? PPH_OK
              : pph_fail(error, PPH_IO_FAILED, path, "cannot be made: %s",
                         strerror(errno));
}

static pph_status write_one(const output_content *content, output_file *output,
                            pph_error *error) {
  PPH_TRY(output_file_open(content->path, output, error));
  pph_status status = PPH_OK;
  if (fwrite(content->bytes, 1, content->length, output->file) !=
      content->length)
    status = fail_io(content->path, "write the file", error);
  return finish(output, status, error);
}

pph_status output_files_write(const output_content *contents, uint32_t count,
                              pph_error *error) {
  output_file *outputs = calloc((size_t)count + 1, sizeof *outputs);
  if (!outputs)
    return pph_fail_memory(error);
  pph_status status = PPH_OK;
  for (uint32_t i = 0; status == PPH_OK && i < count; i++)
    status = write_one(&contents[i], &outputs[i], error);
  for (uint32_t i = 0; status == PPH_OK && i < count; i++)
    status = place(&outputs[i], error);
  for (uint32_t i = 0; i < count; i++)
    clear(&outputs[i]);
  free(outputs);
  return status;
}
