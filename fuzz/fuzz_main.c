/* Runs a fuzz target over files and folders, without libFuzzer. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz_common.h"

static int run_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return 1;
  }
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  /* Exactly as large as the data, so that a sanitizer sees reads past it. */
  uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
  size_t length = data ? fread(data, 1, (size_t)size, file) : 0;
  fclose(file);
  LLVMFuzzerTestOneInput(data, length);
  free(data);
  return 0;
}

static int run_folder(const char *path, int *files) {
  DIR *folder = opendir(path);
  int failures = 0;
  if (!folder)
    return 1;
  for (struct dirent *entry; (entry = readdir(folder));) {
    char name[4096];
    if (entry->d_name[0] == '.')
      continue;
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    failures += run_file(name);
    ++*files;
  }
  closedir(folder);
  return failures;
}

int main(int argc, char **argv) {
  int files = 0, failures = 0;
  for (int i = 1; i < argc; i++) {
    struct stat facts;
    if (stat(argv[i], &facts) == 0 && S_ISDIR(facts.st_mode)) {
      failures += run_folder(argv[i], &files);
    } else {
      failures += run_file(argv[i]);
      files++;
    }
  }
  printf("%d files, %d unreadable\n", files, failures);
  return failures || !files;
}
