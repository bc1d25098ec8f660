#include "picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "picture_format.h"

static const struct {
  const char *magic;
  size_t length;
  pph_status (*read)(FILE *, const char *, picture *, pph_error *);
} formats[] = {{"\x89PNG\r\n\x1a\n", 8, picture_read_png},
               {"\xff\xd8\xff", 3, picture_read_jpeg}};

void picture_clear(picture *image) {
  free(image->pixels);
  *image = (picture){0, 0, 0, NULL};
}

pph_status picture_allocate(const char *path, picture *image,
                            pph_error *error) {
  uint64_t pixels = (uint64_t)image->width * image->height;
  if (!pixels)
    return pph_fail(error, PPH_BAD_MODEL, path, "the picture has no pixels");
  if (image->width > PICTURE_MAX_SIDE || image->height > PICTURE_MAX_SIDE ||
      pixels > PICTURE_MAX_PIXELS)
    return pph_fail(error, PPH_LIMIT_EXCEEDED, path,
                    "%u x %u pixels, must be at most %d each way and %d in all",
                    image->width, image->height, PICTURE_MAX_SIDE,
                    PICTURE_MAX_PIXELS);
  image->pixels = malloc(pixels * image->channels);
  return image->pixels ? PPH_OK : pph_fail_memory(error);
}

enum { FORMATS = sizeof formats / sizeof *formats, START = 8 };

/* The format of what begins so; FORMATS: none. */
static size_t find_format(FILE *file) {
  char start[START] = {0};
  size_t i = 0, length = fread(start, 1, sizeof start, file);
  while (i < FORMATS && (length < formats[i].length ||
                         memcmp(start, formats[i].magic, formats[i].length)))
    i++;
  return i;
}

static pph_status load_file(FILE *file, const char *path, picture *image,
                            pph_error *error) {
  struct stat facts;
  if (fstat(fileno(file), &facts) == 0 && S_ISDIR(facts.st_mode))
    return pph_fail(error, PPH_IO_FAILED, path,
                    "is a folder, must be a PNG or JPEG picture");
  size_t format = find_format(file);
  if (fseek(file, 0, SEEK_SET) != 0)
    return pph_fail(error, PPH_IO_FAILED, path, "this is no plain file");
  return format < FORMATS
             ? formats[format].read(file, path, image, error)
             : pph_fail(error, PPH_UNSUPPORTED, path,
                        "this is neither a PNG nor a JPEG picture");
}

bool picture_is_one(const char *path) {
  struct stat facts; /* opening a pipe would wait */
  if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
    return false;
  FILE *file = fopen(path, "rb");
  bool is_one = file && find_format(file) < FORMATS;
  if (file)
    fclose(file);
  return is_one;
}

pph_status picture_load(const char *path, picture *image, pph_error *error) {
  *image = (picture){0, 0, 0, NULL};
  FILE *file = fopen(path, "rb");
  if (!file)
    return pph_fail(error, PPH_IO_FAILED, path, "cannot open the file: %s",
                    strerror(errno));
  pph_status status = load_file(file, path, image, error);
  fclose(file);
  if (status != PPH_OK)
    picture_clear(image);
  return status;
}
