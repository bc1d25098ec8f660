/* PNG, over libpng. Its errors come by longjmp into run. */
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "output_file.h"
#include "picture_format.h"

/* Lives outside of the function that setjmp returns to. */
typedef struct png_job {
  jmp_buf jump;
  png_structp png;
  png_infop info;
  FILE *file;
  const char *path;
  picture *image;
  pph_error *error;
  pph_status status;
  png_bytep *rows;
  char message[160]; /* libpng's */
} png_job;

static void on_error(png_structp png, png_const_charp message) {
  png_job *job = png_get_error_ptr(png);
  snprintf(job->message, sizeof job->message, "%s", message);
  longjmp(job->jump, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
  (void)png;
  (void)message;
}

static bool make_rows(png_job *job, size_t stride) {
  const picture *image = job->image;
  job->rows = malloc(image->height * sizeof *job->rows);
  if (!job->rows)
    return false;
  for (uint32_t y = 0; y < image->height; y++)
    job->rows[y] = image->pixels + (size_t)y * stride;
  return true;
}

/* Deflate cannot make more than 1032 bytes of one, so that a short file cannot
   ask for a large picture. */
static bool is_plausible(png_job *job) {
  struct stat info;
  uint64_t raw = (uint64_t)png_get_rowbytes(job->png, job->info) *
                 png_get_image_height(job->png, job->info);
  return fstat(fileno(job->file), &info) == 0 && info.st_size > 0 &&
         raw / 1032 <= (uint64_t)info.st_size;
}

/* Whatever the file has becomes 8-bit gray, RGB or RGBA. */
static void set_transforms(png_job *job) {
  png_structp png = job->png;
  int type = png_get_color_type(png, job->info);
  bool transparent = png_get_valid(png, job->info, PNG_INFO_tRNS);
  png_set_expand(png);
  png_set_scale_16(png);
  if (type == PNG_COLOR_TYPE_GRAY_ALPHA ||
      (type == PNG_COLOR_TYPE_GRAY && transparent))
    png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, job->info);
}

static void read_png(png_job *job) {
  picture *image = job->image;
  png_init_io(job->png, job->file);
  png_set_user_limits(job->png, PICTURE_MAX_SIDE, PICTURE_MAX_SIDE);
  png_read_info(job->png, job->info);
  bool plausible = is_plausible(job);
  set_transforms(job);
  image->width = png_get_image_width(job->png, job->info);
  image->height = png_get_image_height(job->png, job->info);
  image->channels = png_get_channels(job->png, job->info);
  size_t stride = png_get_rowbytes(job->png, job->info);
  if (stride != (size_t)image->width * image->channels || !plausible)
    png_error(job->png, plausible ? "unexpected row size"
                                  : "the file is too short for its picture");
  job->status = picture_allocate(job->path, image, job->error);
  if (job->status != PPH_OK)
    return;
  if (!make_rows(job, stride)) {
    job->status = pph_fail_memory(job->error);
    return;
  }
  png_read_image(job->png, job->rows);
  png_read_end(job->png, NULL);
}

static void write_png(png_job *job) {
  static const int types[] = {[1] = PNG_COLOR_TYPE_GRAY,
                              [3] = PNG_COLOR_TYPE_RGB,
                              [4] = PNG_COLOR_TYPE_RGB_ALPHA};
  const picture *image = job->image;
  if (!make_rows(job, (size_t)image->width * image->channels)) {
    job->status = pph_fail_memory(job->error);
    return;
  }
  png_init_io(job->png, job->file);
  png_set_user_limits(job->png, PICTURE_MAX_SIDE, PICTURE_MAX_SIDE);
  png_set_IHDR(job->png, job->info, image->width, image->height, 8,
               types[image->channels], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(job->png, job->info);
  png_write_image(job->png, job->rows);
  png_write_end(job->png, job->info);
}

/* Does the work; libpng's errors end it with `failure`. */
static pph_status run(png_job *job, void (*work)(png_job *),
                      pph_status failure) {
  job->status = PPH_OK;
  if (!job->png || !(job->info = png_create_info_struct(job->png)))
    job->status = pph_fail_memory(job->error);
  else if (setjmp(job->jump) == 0)
    work(job);
  else
    job->status = pph_fail(job->error, failure, job->path, "PNG: %s",
                           job->message);
  free(job->rows);
  return job->status;
}

pph_status picture_read_png(FILE *file, const char *path, picture *image,
                            pph_error *error) {
  png_job job = {
      .file = file, .path = path, .image = image, .error = error};
  job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, on_error,
                                   on_warning);
  pph_status status = run(&job, read_png, PPH_BAD_MODEL);
  png_destroy_read_struct(&job.png, &job.info, NULL);
  return status;
}

static pph_status write_file(FILE *file, const char *path,
                             const picture *image, pph_error *error) {
  picture copy = *image; /* the job's is not const, its pixels stay */
  png_job job = {.file = file, .path = path, .image = &copy, .error = error};
  job.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, on_error,
                                    on_warning);
  pph_status status = run(&job, write_png, PPH_IO_FAILED);
  png_destroy_write_struct(&job.png, &job.info);
  return status;
}

pph_status picture_save(const char *path, const picture *image,
                        pph_error *error) {
  if (!image->width || !image->height || !image->pixels ||
      image->width > PICTURE_MAX_SIDE || image->height > PICTURE_MAX_SIDE ||
      (image->channels != 1 && image->channels != 3 && image->channels != 4))
    return pph_fail(error, PPH_INVALID_ARGUMENT, path,
                    "%u x %u pixels of %u channels, must be 1 to %d each way "
                    "and 1, 3 or 4 channels",
                    image->width, image->height, image->channels,
                    PICTURE_MAX_SIDE);
  output_file output;
  PPH_TRY(output_file_open(path, &output, error));
  pph_status status = write_file(output.file, path, image, error);
  return output_file_close(&output, status, error);
}
