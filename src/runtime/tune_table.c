#include "runtime/tune_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/growing.h"
#include "runtime/loaded_model.h"

enum { MOST_BYTES = 1 << 20 };

static const char separator[] = " = ";

void pph_tune_table_init(pph_tune_table *table, pph_heap *heap) {
  *table = (pph_tune_table){.entries = NULL};
  pph_arena_init(&table->arena, heap);
}

void pph_tune_table_clear(pph_tune_table *table) {
  pph_arena_clear(&table->arena);
  table->entries = NULL;
  table->count = table->capacity = 0;
}

static uint32_t find(const pph_tune_table *table, const char *key) {
  for (uint32_t i = 0; i < table->count; i++)
    if (strcmp(table->entries[i].key, key) == 0)
      return i;
  return UINT32_MAX;
}

const char *pph_tune_table_find(const pph_tune_table *table, const char *key) {
  uint32_t index = find(table, key);
  return index == UINT32_MAX ? NULL : table->entries[index].choice;
}

bool pph_tune_table_is_fresh(const pph_tune_table *table, const char *key) {
  uint32_t index = find(table, key);
  return index != UINT32_MAX && table->entries[index].fresh;
}

static void drop(pph_tune_table *table, uint32_t index) {
  table->count--;
  memmove(table->entries + index, table->entries + index + 1,
          (table->count - index) * sizeof *table->entries);
}

/* The entry becomes the newest. */
static pph_status put(pph_tune_table *table, const char *key,
                      const char *choice, bool fresh, pph_error *error) {
  uint32_t old = find(table, key);
  if (old != UINT32_MAX)
    key = table->entries[old].key;
  else
    key = pph_arena_copy_text(&table->arena, key, strlen(key));
  choice = pph_arena_copy_text(&table->arena, choice, strlen(choice));
  if (!key || !choice)
    return pph_fail_memory(error);
  if (old != UINT32_MAX)
    drop(table, old);
  else if (table->count == PPH_TUNE_MOST)
    drop(table, 0);
  PPH_TRY(pph_grow(&table->arena, &table->entries, table->count,
                   &table->capacity, sizeof *table->entries, error));
  table->entries[table->count++] = (pph_tune_entry){key, choice, fresh};
  return PPH_OK;
}

pph_status pph_tune_table_set(pph_tune_table *table, const char *key,
                              const char *choice, pph_error *error) {
  return put(table, key, choice, true, error);
}

static bool is_printable(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (text[i] < ' ' || text[i] > '~')
      return false;
  return length > 0;
}

/* Takes a line apart; one that is no entry adds none. */
static pph_status read_line(pph_tune_table *table, const char *line,
                            size_t length, pph_error *error) {
  char text[PPH_TUNE_KEY_BYTES + PPH_TUNE_CHOICE_BYTES];
  if (length >= sizeof text || !is_printable(line, length))
    return PPH_OK;
  memcpy(text, line, length);
  text[length] = 0;
  char *choice = strstr(text, separator);
  if (!choice || choice == text)
    return PPH_OK;
  *choice = 0;
  choice += sizeof separator - 1;
  size_t rest = strlen(choice);
  if (strlen(text) >= PPH_TUNE_KEY_BYTES || rest == 0 ||
      rest >= PPH_TUNE_CHOICE_BYTES)
    return PPH_OK;
  return put(table, text, choice, false, error);
}

pph_status pph_tune_table_read(pph_tune_table *table, const char *path,
                               pph_error *error) {
  pph_limits limits;
  void *bytes;
  size_t length;
  pph_error unread = {0};
  pph_limits_init(&limits);
  limits.file_bytes = MOST_BYTES;
  pph_status status = pph_file_read(path, &limits, table->arena.heap, &bytes,
                                    &length, &unread);
  if (status == PPH_OUT_OF_MEMORY)
    return pph_fail_memory(error);
  if (status != PPH_OK)
    return PPH_OK;
  const char *at = bytes, *end = at + length;
  while (at < end && status == PPH_OK) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    stop = stop ? stop : end;
    status = read_line(table, at, (size_t)(stop - at), error);
    at = stop + 1;
  }
  pph_heap_release(table->arena.heap, bytes);
  return status;
}

uint32_t pph_tune_table_count_fresh(const pph_tune_table *table) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < table->count; i++)
    count += table->entries[i].fresh;
  return count;
}

/* Whether a file has bytes, but none that we wrote: it is somebody's. */
static bool is_foreign(const pph_tune_table *read, const char *path) {
  struct stat facts;
  return read->count == 0 && stat(path, &facts) == 0 && facts.st_size > 0;
}

/* What the file has now, and then ours. */
static pph_status merge(const pph_tune_table *table, const char *path,
                        pph_tune_table *all, pph_error *error) {
  PPH_TRY(pph_tune_table_read(all, path, error));
  if (is_foreign(all, path))
    return pph_fail(error, PPH_IO_FAILED, path,
                    "holds no choices of tune: it is not replaced");
  for (uint32_t i = 0; i < table->count; i++)
    if (table->entries[i].fresh)
      PPH_TRY(put(all, table->entries[i].key, table->entries[i].choice, false,
                  error));
  return PPH_OK;
}

/* How many of the newest entries fit into what read takes. */
static uint32_t find_first(const pph_tune_table *table) {
  size_t bytes = 0;
  uint32_t first = table->count;
  while (first > 0) {
    const pph_tune_entry *entry = &table->entries[first - 1];
    bytes += strlen(entry->key) + strlen(entry->choice) + sizeof separator;
    if (bytes > MOST_BYTES)
      break;
    first--;
  }
  return first;
}

static pph_status fail_io(const char *path, pph_error *error) {
  return pph_fail(error, PPH_IO_FAILED, path, "cannot be written: %s",
                  strerror(errno));
}

/* To a file of its own, which is renamed. */
static pph_status print(const pph_tune_table *table, const char *path,
                        char *temporary, pph_error *error) {
  int descriptor = mkstemp(temporary);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
  if (!file) {
    pph_status status = fail_io(path, error);
    if (descriptor >= 0) {
      close(descriptor);
      unlink(temporary);
    }
    return status;
  }
  for (uint32_t i = find_first(table); i < table->count; i++)
    fprintf(file, "%s%s%s\n", table->entries[i].key, separator,
            table->entries[i].choice);
  bool written = !ferror(file);
  written &= fclose(file) == 0;
  if (written && rename(temporary, path) == 0)
    return PPH_OK;
  pph_status status = fail_io(path, error);
  unlink(temporary);
  return status;
}

static pph_status replace(const pph_tune_table *table, const char *path,
                          pph_error *error) {
  static const char suffix[] = ".XXXXXX";
  size_t length = strlen(path);
  struct stat facts;
  if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
    return pph_fail(error, PPH_IO_FAILED, path, "is not a regular file");
  char *temporary = pph_heap_allocate(table->arena.heap,
                                      length + sizeof suffix, 1);
  if (!temporary)
    return pph_fail_memory(error);
  memcpy(temporary, path, length);
  memcpy(temporary + length, suffix, sizeof suffix);
  pph_status status = print(table, path, temporary, error);
  pph_heap_release(table->arena.heap, temporary);
  return status;
}

pph_status pph_tune_table_write(pph_tune_table *table, const char *path,
                                pph_error *error) {
  pph_tune_table all;
  pph_tune_table_init(&all, table->arena.heap);
  pph_status status = merge(table, path, &all, error);
  if (status == PPH_OK)
    status = replace(&all, path, error);
  pph_tune_table_clear(&all);
  for (uint32_t i = 0; status == PPH_OK && i < table->count; i++)
    table->entries[i].fresh = false;
  return status;
}
