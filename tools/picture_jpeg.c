/* JPEG, over libjpeg. Its errors come by longjmp into run. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/fail.h"
#include "picture_format.h"

/* A progressive file may have any number of scans, each of which walks over
   the whole picture; no encoder makes more than this. */
enum { MAX_SCANS = 200 };

typedef struct jpeg_job {
  struct jpeg_error_mgr errors; /* first: libjpeg gives its address */
  struct jpeg_progress_mgr progress;
  struct jpeg_decompress_struct decoder;
  jmp_buf jump;
  const char *path;
  picture *image;
  pph_error *error;
  char message[JMSG_LENGTH_MAX];
} jpeg_job;

static void on_error(j_common_ptr common) {
  jpeg_job *job = (jpeg_job *)(void *)common->err;
  job->errors.format_message(common, job->message);
  longjmp(job->jump, 1);
}

/* Warnings are passed over but for those of missing data, for which libjpeg
   would make pixels up. */
static void on_message(j_common_ptr common, int level) {
  int code = common->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
    on_error(common);
}

static void on_progress(j_common_ptr common) {
  jpeg_job *job = (jpeg_job *)(void *)common->err;
  if (job->decoder.input_scan_number <= MAX_SCANS)
    return;
  snprintf(job->message, sizeof job->message, "more than %d scans", MAX_SCANS);
  longjmp(job->jump, 1);
}

static pph_status choose_color(jpeg_job *job) {
  switch (job->decoder.num_components) {
  case 1:
    job->decoder.out_color_space = JCS_GRAYSCALE;
    return PPH_OK;
  case 3:
    job->decoder.out_color_space = JCS_RGB;
    return PPH_OK;
  default:
    return pph_fail(job->error, PPH_UNSUPPORTED, job->path,
                    "JPEG with %d color components, must be 1 or 3",
                    job->decoder.num_components);
  }
}

static pph_status read_jpeg(jpeg_job *job, FILE *file) {
  j_decompress_ptr decoder = &job->decoder;
  picture *image = job->image;
  jpeg_create_decompress(decoder);
  decoder->progress = &job->progress;
  jpeg_stdio_src(decoder, file);
  jpeg_read_header(decoder, TRUE);
  PPH_TRY(choose_color(job));
  image->width = decoder->image_width;
  image->height = decoder->image_height;
  image->channels = (uint32_t)decoder->num_components;
  /* Before libjpeg takes memory for the picture. */
  PPH_TRY(picture_allocate(job->path, image, job->error));
  jpeg_start_decompress(decoder);
  size_t stride = (size_t)image->width * image->channels;
  while (decoder->output_scanline < decoder->output_height) {
    JSAMPROW row = image->pixels + decoder->output_scanline * stride;
    jpeg_read_scanlines(decoder, &row, 1);
  }
  jpeg_finish_decompress(decoder);
  return PPH_OK;
}

/* The job lies with the caller: locals of the function that setjmp returns to
   would be lost. */
static pph_status run(jpeg_job *job, FILE *file) {
  if (setjmp(job->jump) == 0)
    return read_jpeg(job, file);
  return pph_fail(job->error, PPH_BAD_MODEL, job->path, "JPEG: %s",
                  job->message);
}

pph_status picture_read_jpeg(FILE *file, const char *path, picture *image,
                             pph_error *error) {
  jpeg_job job = {.path = path, .image = image, .error = error};
  job.decoder.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = on_error;
  job.errors.emit_message = on_message;
  job.progress.progress_monitor = on_progress;
  pph_status status = run(&job, file);
  jpeg_destroy_decompress(&job.decoder);
  return status;
}
