#include "pte/file_image.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/file_header.h"

static const pph_header_form forms[] = {
    {"ET12", "eh00", 24, 32, 0, 16, 24, 32},
    {"FT01", "FH01", 40, 40, 16, 24, 32, 40}};
enum { FORMS = sizeof forms / sizeof *forms };

const pph_header_form *pph_header_form_find(const char *identifier) {
  for (int i = 0; i < FORMS; i++)
    if (memcmp(identifier, forms[i].identifier, 4) == 0)
      return &forms[i];
  return NULL;
}

/* The header's form, when the file has one. */
static const pph_header_form *find_form(pph_pte_bytes file) {
  if (file.count < PPH_HEADER_AT + 4)
    return NULL;
  const pph_header_form *form =
      pph_header_form_find((const char *)file.at + 4);
  return form && memcmp(file.at + PPH_HEADER_AT, form->magic, 4) == 0 ? form
                                                                      : NULL;
}

/* The number at byte `at`, 0 when the header has no room for it. */
static uint64_t load_number(pph_pte_bytes file, size_t header, uint32_t at) {
  uint64_t value = 0;
  if (at && at + sizeof value <= PPH_HEADER_AT + header)
    memcpy(&value, file.at + at, sizeof value);
  return value;
}

static pph_status fail(pph_error *error, const pph_header_form *form,
                       const char *what, uint64_t found, uint64_t low,
                       uint64_t high) {
  return pph_fail(error, PPH_BAD_MODEL, "extended header",
                  "%s of %s is %" PRIu64 ", legal is %" PRIu64 " to %" PRIu64,
                  what, form->magic, found, low, high);
}

static pph_status read_header(pph_pte_image *image, const pph_header_form *form,
                              pph_error *error) {
  pph_pte_bytes file = image->file;
  uint32_t header = 0;
  if (file.count < PPH_HEADER_AT + form->least)
    return fail(error, form, "the file's length", file.count,
                PPH_HEADER_AT + form->least, SIZE_MAX);
  memcpy(&header, file.at + PPH_HEADER_AT + 4, sizeof header);
  if (header < form->least || header > file.count - PPH_HEADER_AT)
    return fail(error, form, "the length", header, form->least,
                file.count - PPH_HEADER_AT);
  image->inserted = pph_round_up(header, PPH_HEADER_STEP);
  uint64_t offset = load_number(file, header, form->flat_offset);
  uint64_t size = load_number(file, header, form->flat_size);
  uint64_t least = PPH_HEADER_AT + image->inserted;
  if (offset > file.count || size > file.count - offset ||
      offset + size < least)
    return fail(error, form, "the flatbuffer's end", offset + size, least,
                file.count);
  image->flat_bytes = (size_t)(offset + size);
  uint64_t base = load_number(file, header, form->base);
  if (base && (base < image->flat_bytes || base > file.count))
    return fail(error, form, "the segments' place", base, image->flat_bytes,
                file.count);
  image->base = (size_t)base;
  uint64_t room = base ? file.count - base : 0;
  uint64_t bytes = load_number(file, header, form->data_bytes);
  if (bytes > room)
    return fail(error, form, "the segments' size", bytes, 0, room);
  /* A header of an older kind does not tell the size. */
  bool told = PPH_HEADER_AT + header >= form->data_bytes + sizeof bytes;
  image->data_bytes = (size_t)(told ? bytes : room);
  return PPH_OK;
}

pph_status pph_pte_image_read(pph_pte_bytes file, const pph_flat_table *table,
                              pph_arena *arena, pph_pte_image *image,
                              pph_error *error) {
  const pph_header_form *form = find_form(file);
  *image = (pph_pte_image){.file = file, .flat_bytes = file.count};
  if (form)
    PPH_TRY(read_header(image, form, error));
  return pph_flat_read(file.at, image->flat_bytes, table, arena, &image->root,
                       &image->unknown, error);
}

pph_status pph_pte_image_read_segments(pph_pte_image *image,
                                       const pph_pte_data_segment *rows,
                                       uint32_t count, pph_arena *arena,
                                       pph_error *error) {
  image->segments = pph_arena_allocate(arena, count ? count : 1,
                                       sizeof *image->segments);
  if (!image->segments)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t offset = rows[i].offset, size = rows[i].size;
    if (offset > image->data_bytes || size > image->data_bytes - offset) {
      char where[32];
      snprintf(where, sizeof where, "segments[%u]", i);
      return pph_fail(error, PPH_BAD_MODEL, where,
                      "%" PRIu64 " bytes from byte %" PRIu64
                      " on leave the %zu bytes of all segments",
                      size, offset, image->data_bytes);
    }
    image->segments[i] = (pph_pte_bytes){
        image->file.at + image->base + (size_t)offset, (size_t)size};
  }
  image->segment_count = count;
  return PPH_OK;
}
