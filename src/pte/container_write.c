#include "pte/container_write.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/file_header.h"
#include "pte/flat_build.h"

enum { ALIGNMENT = 128, LARGEST_ALIGNMENT = 1 << 20 };

/* What goes into the file, in this order: flatbuffer with the header in it,
   padding, segments, trailing bytes. */
typedef struct writer {
  const pph_pte_image *image;
  const pph_flat_table *table;
  const void *root;
  const char *identifier;
  pph_pte_data_segment *rows;
  pph_heap *heap;
  pph_error *error;
  bool same_segments, same_tables;
  void *built;         /* a flatbuffer without header, unless same_tables */
  size_t built_bytes;
  size_t inserted, flat_bytes, base, data_bytes, file_bytes;
} writer;

/* The alignment that puts what follows `end` at `place`. */
static size_t shown_alignment(size_t end, size_t place) {
  for (size_t step = ALIGNMENT; step <= LARGEST_ALIGNMENT; step *= 2)
    if (place % step == 0 && place >= end && place - end < step)
      return step;
  size_t step = ALIGNMENT;
  while (place % step)
    step /= 2;
  return step;
}

/* Where segment i is in the old file, from the base on; false for a new one. */
static bool find_old_place(const writer *w, uint32_t i, size_t *place) {
  const pph_pte_image *image = w->image;
  uintptr_t at = (uintptr_t)image->segments[i].at;
  uintptr_t first = (uintptr_t)image->file.at + image->base;
  *place = at - first;
  return image->file.at && image->base && at >= first &&
         *place <= image->data_bytes;
}

static bool has_same_segments(const writer *w) {
  size_t place;
  for (uint32_t i = 0; i < w->image->segment_count; i++)
    if (!find_old_place(w, i, &place) || w->rows[i].offset != place ||
        w->rows[i].size != w->image->segments[i].count)
      return false;
  return true;
}

static pph_status fail_size(const writer *w) {
  return pph_fail(w->error, PPH_LIMIT_EXCEEDED, "",
                  "the file would have more bytes than can be counted");
}

/* Gives every segment its place. */
static pph_status place_segments(writer *w) {
  size_t end = 0, old_end = 0, old;
  w->same_segments = has_same_segments(w);
  w->data_bytes = w->image->data_bytes;
  if (w->same_segments)
    return PPH_OK;
  for (uint32_t i = 0; i < w->image->segment_count; i++) {
    size_t count = w->image->segments[i].count, step = ALIGNMENT, place;
    if (find_old_place(w, i, &old)) {
      step = shown_alignment(old_end, old);
      old_end = old + count;
    }
    if (!pph_checked_round_up(end, step, &place))
      return fail_size(w);
    if (!count) /* as exporters write it: no padding for nothing */
      place = 0;
    w->rows[i] = (pph_pte_data_segment){place, count};
    if (count && !pph_checked_add(place, count, &end))
      return fail_size(w);
  }
  w->data_bytes = end;
  return PPH_OK;
}

/* Whether the file's own tables say what is to be written. */
static pph_status compare_tables(writer *w) {
  const pph_pte_image *image = w->image;
  pph_arena arena;
  pph_flat_unknown unknown;
  void *root;
  if (!image->file.at)
    return PPH_OK;
  pph_arena_init(&arena, w->heap);
  pph_status status = pph_flat_read(image->file.at, image->flat_bytes,
                                    w->table, &arena, &root, &unknown,
                                    w->error);
  if (status == PPH_OK)
    w->same_tables = pph_flat_equal(w->table, root, w->root);
  pph_arena_clear(&arena);
  return status;
}

static pph_status make_tables(writer *w) {
  const pph_header_form *form = pph_header_form_find(w->identifier);
  PPH_TRY(compare_tables(w));
  w->inserted = w->image->inserted;
  w->flat_bytes = w->image->flat_bytes;
  if (w->same_tables)
    return PPH_OK;
  PPH_TRY(pph_flat_build(w->table, w->root, w->identifier, w->heap, &w->built,
                         &w->built_bytes, w->error));
  if (!w->inserted && form && w->data_bytes)
    w->inserted = pph_round_up(form->length, PPH_HEADER_STEP);
  w->flat_bytes = w->built_bytes + w->inserted; /* less than 2 GiB */
  return PPH_OK;
}

static pph_status place_parts(writer *w) {
  const pph_pte_image *image = w->image;
  w->base = image->base;
  bool keeps_base = image->file.at && w->flat_bytes == image->flat_bytes &&
                    (image->base || !w->data_bytes);
  size_t step = image->base ? shown_alignment(image->flat_bytes, image->base)
                            : ALIGNMENT;
  if (!keeps_base && (image->base || w->data_bytes) &&
      !pph_checked_round_up(w->flat_bytes, step, &w->base))
    return fail_size(w);
  size_t end = w->base ? w->base : w->flat_bytes;
  size_t old_end = image->base ? image->base + image->data_bytes
                               : image->flat_bytes;
  if (!pph_checked_add(end, w->data_bytes, &end) ||
      !pph_checked_add(end, image->file.count - old_end, &w->file_bytes))
    return fail_size(w);
  return PPH_OK;
}

/* A number of the header, when it has room for that one. */
static void store_number(uint8_t *bytes, uint32_t header, uint32_t at,
                         uint64_t value) {
  if (at && at + sizeof value <= PPH_HEADER_AT + header)
    memcpy(bytes + at, &value, sizeof value);
}

static void write_header(const writer *w, uint8_t *bytes) {
  const pph_header_form *form = pph_header_form_find(w->identifier);
  const pph_pte_image *image = w->image;
  uint32_t header = form->length;
  if (image->inserted) {
    size_t known = image->inserted;
    if (known > image->file.count - PPH_HEADER_AT)
      known = image->file.count - PPH_HEADER_AT;
    memcpy(bytes + PPH_HEADER_AT, image->file.at + PPH_HEADER_AT, known);
    memcpy(&header, bytes + PPH_HEADER_AT + 4, sizeof header);
  } else {
    memcpy(bytes + PPH_HEADER_AT, form->magic, 4);
    memcpy(bytes + PPH_HEADER_AT + 4, &header, sizeof header);
  }
  /* Two numbers have the old sum in more than one way. */
  if (!image->inserted || w->flat_bytes != image->flat_bytes) {
    size_t offset = form->flat_offset ? w->inserted : 0;
    store_number(bytes, header, form->flat_offset, offset);
    store_number(bytes, header, form->flat_size, w->flat_bytes - offset);
  }
  store_number(bytes, header, form->base, w->base);
  store_number(bytes, header, form->data_bytes, w->data_bytes);
}

static void write_tables(const writer *w, uint8_t *bytes) {
  const pph_pte_image *image = w->image;
  const uint8_t *built = w->built;
  if (w->same_tables) {
    memcpy(bytes, image->file.at, image->flat_bytes);
  } else {
    uint32_t root;
    memcpy(&root, built, sizeof root);
    root += (uint32_t)w->inserted;
    memcpy(bytes, &root, sizeof root);
    memcpy(bytes + 4, built + 4, 4);
    memcpy(bytes + PPH_HEADER_AT + w->inserted, built + PPH_HEADER_AT,
           w->built_bytes - PPH_HEADER_AT);
  }
  if (w->inserted)
    write_header(w, bytes);
  if (w->flat_bytes == image->flat_bytes && w->base == image->base && w->base)
    memcpy(bytes + w->flat_bytes, image->file.at + w->flat_bytes,
           w->base - w->flat_bytes);
}

static void write_file(const writer *w, uint8_t *bytes) {
  const pph_pte_image *image = w->image;
  size_t old_end = image->base ? image->base + image->data_bytes
                               : image->flat_bytes;
  size_t end = (w->base ? w->base : w->flat_bytes) + w->data_bytes;
  write_tables(w, bytes);
  if (w->same_segments && w->data_bytes)
    memcpy(bytes + w->base, image->file.at + image->base, w->data_bytes);
  for (uint32_t i = 0; i < image->segment_count && !w->same_segments; i++)
    if (image->segments[i].count)
      memcpy(bytes + w->base + w->rows[i].offset, image->segments[i].at,
             image->segments[i].count);
  if (image->file.at)
    memcpy(bytes + end, image->file.at + old_end, image->file.count - old_end);
}

static pph_status write_all(writer *w, void **bytes, size_t *length) {
  PPH_TRY(place_segments(w));
  PPH_TRY(make_tables(w));
  PPH_TRY(place_parts(w));
  *bytes = pph_heap_allocate_zeroed(w->heap, w->file_bytes, 1);
  if (!*bytes)
    return pph_fail_memory(w->error);
  *length = w->file_bytes;
  write_file(w, *bytes);
  return PPH_OK;
}

pph_status pph_pte_image_write(const pph_pte_image *image,
                               const pph_flat_table *table, const void *root,
                               const char identifier[4],
                               pph_pte_data_segment *rows, pph_heap *heap,
                               void **bytes, size_t *length,
                               pph_error *error) {
  writer w = {.image = image, .table = table, .root = root,
              .identifier = identifier, .rows = rows, .heap = heap,
              .error = error};
  *bytes = NULL;
  *length = 0;
  PPH_TRY(pph_flat_refuse_unknown(&image->unknown, error));
  pph_status status = write_all(&w, bytes, length);
  pph_heap_release(heap, w.built);
  return status;
}

pph_status pph_pte_write_external(pph_pte_external *external, pph_heap *heap,
                                  void **bytes, size_t *length,
                                  pph_error *error) {
  return pph_pte_image_write(&external->image, pph_ptd_flat_tensor_schema(),
                             external->tensors, "FT01",
                             external->tensors->segments.at, heap, bytes,
                             length, error);
}

/* The bundle around a program's new bytes, which it takes over. */
static pph_status write_bundle(pph_pte *pte, pph_heap *heap, void **bytes,
                               size_t *length, pph_error *error) {
  pph_bundle_program outer = *pte->bundle;
  void *inner = *bytes;
  pph_status status = PPH_OK;
  *bytes = NULL;
  if (*length > UINT32_MAX)
    status = pph_fail(error, PPH_LIMIT_EXCEEDED, "BundledProgram.program",
                      "would have %zu bytes; a bundle holds less than 2 GiB",
                      *length);
  outer.program.at = inner;
  outer.program.count = (uint32_t)*length;
  if (status == PPH_OK)
    status = pph_pte_image_write(&pte->bundle_image,
                                 pph_bundle_program_schema(), &outer, "BP08",
                                 NULL, heap, bytes, length, error);
  pph_heap_release(heap, inner);
  return status;
}

pph_status pph_pte_write(pph_pte *pte, pph_heap *heap, void **bytes,
                         size_t *length, pph_error *error) {
  if (!pte->program)
    return pph_pte_write_external(&pte->externals[0], heap, bytes, length,
                                  error);
  PPH_TRY(pph_pte_image_write(&pte->image, pph_pte_program_schema(),
                              pte->program, "ET12", pte->program->segments.at,
                              heap, bytes, length, error));
  return pte->bundle ? write_bundle(pte, heap, bytes, length, error) : PPH_OK;
}
