#include "onnx/external_data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

/* "../x", "a/../x", "..": any step upwards. */
static bool goes_up(const char *path) {
  while (path) {
    if (path[0] == '.' && path[1] == '.' && (path[2] == '/' || !path[2]))
      return true;
    path = strchr(path, '/');
    if (path)
      path++;
  }
  return false;
}

static pph_status check_location(const char *location, pph_error *error) {
  if (!location || !*location)
    return pph_fail(error, PPH_BAD_MODEL, "", "external data has no location");
  if (location[0] == '/' || goes_up(location))
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "external data \"%.120s\" is not inside the model's "
                    "folder",
                    location);
  return PPH_OK;
}

static bool is_inside(const char *path, const char *folder) {
  size_t length = strlen(folder);
  if (strncmp(path, folder, length) != 0)
    return false;
  return folder[length - 1] == '/' || path[length] == '/';
}

static pph_status fail_open(const char *path, pph_error *error) {
  return pph_fail(error, PPH_IO_FAILED, "",
                  "external data \"%.120s\" cannot be opened: %s", path,
                  strerror(errno));
}

/* The file's path with all links followed, which must stay in `folder`. */
static pph_status resolve(const char *folder, const char *location,
                          char *resolved, pph_error *error) {
  char root[PATH_MAX], joined[PATH_MAX];
  int length = snprintf(joined, sizeof joined, "%s/%s", folder, location);
  if (length < 0 || (size_t)length >= sizeof joined)
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "the path of external data is longer than %zu bytes",
                    sizeof joined - 1);
  if (!realpath(folder, root))
    return fail_open(folder, error);
  if (!realpath(joined, resolved))
    return fail_open(location, error);
  if (!is_inside(resolved, root))
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "external data \"%.120s\" leads out of the model's folder",
                    location);
  return PPH_OK;
}

static pph_status check_file(int file, const pph_external_place *place,
                             uint64_t bytes, pph_error *error) {
  struct stat facts;
  if (fstat(file, &facts) != 0)
    return fail_open(place->location, error);
  if (!S_ISREG(facts.st_mode))
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "external data \"%.120s\" is not a regular file",
                    place->location);
  uint64_t size = (uint64_t)facts.st_size;
  if (place->offset > size || bytes > size - place->offset)
    return pph_fail(error, PPH_BAD_MODEL, "",
                    "external data \"%.120s\" has %" PRIu64 " bytes, %" PRIu64
                    " from byte %" PRIu64 " are needed",
                    place->location, size, bytes, place->offset);
  return PPH_OK;
}

static pph_status read_all(int file, const pph_external_place *place,
                           char *data, uint64_t bytes, pph_error *error) {
  uint64_t done = 0;
  while (done < bytes) {
    uint64_t rest = bytes - done;
    size_t part = rest < (1u << 30) ? (size_t)rest : (size_t)1 << 30;
    ssize_t got = pread(file, data + done, part, (off_t)(place->offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return pph_fail(error, PPH_IO_FAILED, "",
                      "external data \"%.120s\" ended early while reading",
                      place->location);
    done += (uint64_t)got;
  }
  return PPH_OK;
}

pph_status pph_external_read(const char *folder,
                             const pph_external_place *place, void *data,
                             uint64_t bytes, pph_error *error) {
  char path[PATH_MAX];
  PPH_TRY(check_location(place->location, error));
  if (!folder)
    return pph_fail(error, PPH_IO_FAILED, "",
                    "external data \"%.120s\" has no folder: the model was "
                    "loaded from memory",
                    place->location);
  PPH_TRY(resolve(folder, place->location, path, error));
  /* The path has no links left: one that appears now is an attack. NONBLOCK:
     a pipe must not stop us. */
  int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return fail_open(place->location, error);
  pph_status status = check_file(file, place, bytes, error);
  if (status == PPH_OK)
    status = read_all(file, place, data, bytes, error);
  close(file);
  return status;
}
