#include "pte/flat_read.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/flat_path.h"

/* Bytes of structs per byte of the file: an absent field still takes its place
   in the struct. */
enum { BUDGET_PER_BYTE = 64, BUDGET_BASE = 1 << 20 };

typedef struct reader {
  const uint8_t *bytes;
  size_t length;
  size_t budget; /* bytes that may still be taken from the arena */
  pph_arena *arena;
  pph_flat_unknown *unknown;
  pph_error *error;
  pph_flat_path path;
} reader;

/* A table whose vtable lies inside the file. */
typedef struct place {
  size_t at, size; /* of its fields, from the first byte */
  size_t vtable;
  uint32_t slots;
} place;

size_t pph_flat_kind_size(pph_flat_kind kind) {
  static const uint8_t sizes[] = {
      [PPH_FLAT_U8] = 1,   [PPH_FLAT_I8] = 1,    [PPH_FLAT_I16] = 2,
      [PPH_FLAT_U16] = 2,  [PPH_FLAT_I32] = 4,  [PPH_FLAT_U32] = 4,
      [PPH_FLAT_I64] = 8,  [PPH_FLAT_U64] = 8,  [PPH_FLAT_F32] = 4,
      [PPH_FLAT_F64] = 8,  [PPH_FLAT_TEXT] = 4, [PPH_FLAT_TABLE] = 4,
      [PPH_FLAT_UNION] = 4};
  return sizes[kind];
}

const pph_flat_table *pph_flat_member(const pph_flat_field *field,
                                      uint8_t type) {
  const pph_flat_members *members = field->members();
  return type && type < members->count ? members->tables[type]() : NULL;
}

size_t pph_flat_element_size(const pph_flat_field *field) {
  return field->kind == PPH_FLAT_TABLE ? field->table()->size
                                       : pph_flat_kind_size(field->kind);
}

static uint16_t load_u16(const reader *r, size_t at) {
  uint16_t value;
  memcpy(&value, r->bytes + at, sizeof value);
  return value;
}

static uint32_t load_u32(const reader *r, size_t at) {
  uint32_t value;
  memcpy(&value, r->bytes + at, sizeof value);
  return value;
}

/* Whether `size` bytes from `at` on are there. */
static bool inside(const reader *r, size_t at, size_t size) {
  return at <= r->length && size <= r->length - at;
}

static pph_status fail(reader *r, pph_status status, const char *message) {
  char where[sizeof r->error->where];
  pph_flat_path_text(&r->path, where, sizeof where);
  return pph_fail(r->error, status, where, "%s", message);
}

static pph_status fail_inside(reader *r, const char *what, size_t at,
                              uint64_t found) {
  char text[160];
  snprintf(text, sizeof text,
           "%s at byte %zu is %" PRIu64 ", which leads out of the %zu bytes of "
           "the flatbuffer",
           what, at, found, r->length);
  return fail(r, PPH_BAD_MODEL, text);
}

static void note_unknown(reader *r, const char *table, uint32_t number) {
  if (!r->unknown->table)
    *r->unknown = (pph_flat_unknown){table, number};
}

static pph_status take(reader *r, size_t count, size_t size, void **block) {
  size_t bytes;
  if (!pph_checked_mul(count, size, &bytes) || bytes > r->budget)
    return fail(r, PPH_LIMIT_EXCEEDED,
                "the tables take more memory than their bytes explain: many "
                "offsets share a target");
  r->budget -= bytes;
  *block = pph_arena_allocate(r->arena, count ? count : 1, size);
  return *block ? PPH_OK : pph_fail_memory(r->error);
}

/* The target of the offset at `at`, of which 4 bytes are there. */
static pph_status follow(reader *r, size_t at, size_t *target) {
  *target = 0;
  uint32_t offset = load_u32(r, at);
  if (offset < 4 || !inside(r, at, offset) || !inside(r, at + offset, 4))
    return fail_inside(r, "the offset", at, offset);
  *target = at + offset;
  return PPH_OK;
}

static pph_status open_table(reader *r, size_t at, place *table) {
  int32_t back = (int32_t)load_u32(r, at);
  int64_t vtable = (int64_t)at - back;
  if (vtable < 0 || !inside(r, (size_t)vtable, 4))
    return fail(r, PPH_BAD_MODEL,
                "the table's vtable is outside the flatbuffer");
  size_t bytes = load_u16(r, (size_t)vtable);
  if (bytes < 4 || bytes % 2 || !inside(r, (size_t)vtable, bytes))
    return fail_inside(r, "the vtable's length", (size_t)vtable, bytes);
  size_t size = load_u16(r, (size_t)vtable + 2);
  if (size < 4 || !inside(r, at, size))
    return fail_inside(r, "the table's length", (size_t)vtable + 2, size);
  *table = (place){at, size, (size_t)vtable, (uint32_t)(bytes - 4) / 2};
  return PPH_OK;
}

/* Where the field is in the file; 0 when absent. */
static pph_status find_slot(reader *r, const place *table, uint32_t slot,
                            size_t size, size_t *at) {
  *at = 0;
  if (slot >= table->slots)
    return PPH_OK;
  size_t offset = load_u16(r, table->vtable + 4 + 2 * (size_t)slot);
  if (!offset)
    return PPH_OK;
  if (offset < 4 || offset > table->size || size > table->size - offset) {
    char text[128];
    snprintf(text, sizeof text,
             "the field lies at byte %zu of a table of %zu bytes", offset,
             table->size);
    return fail(r, PPH_BAD_MODEL, text);
  }
  *at = table->at + offset;
  return PPH_OK;
}

static pph_status read_fields(reader *r, const pph_flat_table *schema,
                              const place *table, void *out);

static pph_status read_table(reader *r, const pph_flat_table *schema, size_t at,
                             void *out) {
  place table;
  PPH_TRY(open_table(r, at, &table));
  return read_fields(r, schema, &table, out);
}

static pph_status read_text(reader *r, size_t at, pph_flat_text *text) {
  uint32_t count = load_u32(r, at);
  if (!inside(r, at + 4, (size_t)count + 1))
    return fail_inside(r, "the text's length", at, count);
  if (r->bytes[at + 4 + count])
    return fail(r, PPH_BAD_MODEL, "the text does not end in a 0");
  *text = (pph_flat_text){(const char *)r->bytes + at + 4, count};
  return PPH_OK;
}

static pph_status read_elements(reader *r, const pph_flat_field *field,
                                size_t at, uint32_t count, char *out) {
  const pph_flat_table *schema = field->table();
  for (uint32_t i = 0; i < count; i++) {
    size_t target;
    pph_flat_path_index(&r->path, i);
    PPH_TRY(follow(r, at + 4 * (size_t)i, &target));
    PPH_TRY(read_table(r, schema, target, out + i * schema->size));
  }
  return PPH_OK;
}

static pph_status read_vector(reader *r, const pph_flat_field *field, size_t at,
                              pph_flat_span *span) {
  uint32_t count = load_u32(r, at);
  size_t size = pph_flat_kind_size(field->kind), bytes;
  if (!pph_checked_mul(count, size, &bytes) || !inside(r, at + 4, bytes))
    return fail_inside(r, "the vector's length", at, count);
  *span = (pph_flat_span){r->bytes + at + 4, count};
  if (size == 1)
    return PPH_OK;
  void *block;
  PPH_TRY(take(r, count, pph_flat_element_size(field), &block));
  span->at = block;
  if (field->kind == PPH_FLAT_TABLE)
    return read_elements(r, field, at + 4, count, block);
  memcpy(block, r->bytes + at + 4, bytes);
  return PPH_OK;
}

static pph_status read_new_table(reader *r, const pph_flat_table *schema,
                                 size_t at, void **value) {
  PPH_TRY(take(r, 1, schema->size, value));
  return read_table(r, schema, at, *value);
}

static pph_status read_union(reader *r, const pph_flat_field *field,
                             const place *table, pph_flat_choice *choice) {
  size_t type_at, at;
  PPH_TRY(find_slot(r, table, field->slot, 1, &type_at));
  PPH_TRY(find_slot(r, table, field->slot + 1u, 4, &at));
  choice->type = type_at ? r->bytes[type_at] : 0;
  if (!choice->type != !at)
    return fail(r, PPH_BAD_MODEL,
                at ? "the union has a value but no type"
                   : "the union has a type but no value");
  if (!at)
    return PPH_OK;
  const pph_flat_table *schema = pph_flat_member(field, choice->type);
  size_t target;
  PPH_TRY(follow(r, at, &target));
  if (schema)
    return read_new_table(r, schema, target, &choice->value);
  note_unknown(r, field->members()->name, choice->type);
  return PPH_OK;
}

static pph_status read_reference(reader *r, const pph_flat_field *field,
                                 size_t at, char *out) {
  size_t target;
  PPH_TRY(follow(r, at, &target));
  if (field->flags & PPH_FLAT_VECTOR) {
    pph_flat_span span;
    PPH_TRY(read_vector(r, field, target, &span));
    memcpy(out, &span, sizeof span);
  } else if (field->kind == PPH_FLAT_TEXT) {
    pph_flat_text text;
    PPH_TRY(read_text(r, target, &text));
    memcpy(out, &text, sizeof text);
  } else {
    void *value;
    PPH_TRY(read_new_table(r, field->table(), target, &value));
    memcpy(out, &value, sizeof value);
  }
  return PPH_OK;
}

static pph_status read_field(reader *r, const pph_flat_field *field,
                             const place *table, char *out) {
  if (field->kind == PPH_FLAT_UNION) {
    pph_flat_choice choice = {NULL, 0};
    PPH_TRY(read_union(r, field, table, &choice));
    memcpy(out, &choice, sizeof choice);
    return PPH_OK;
  }
  bool scalar =
      field->kind < PPH_FLAT_TEXT && !(field->flags & PPH_FLAT_VECTOR);
  size_t size = scalar ? pph_flat_kind_size(field->kind) : 4, at;
  PPH_TRY(find_slot(r, table, field->slot, size, &at));
  if (!at)
    return field->flags & PPH_FLAT_REQUIRED
               ? fail(r, PPH_BAD_MODEL, "is missing, and must be there")
               : PPH_OK;
  if (!scalar)
    return read_reference(r, field, at, out);
  memcpy(out, r->bytes + at, size);
  return PPH_OK;
}

static pph_status read_fields(reader *r, const pph_flat_table *schema,
                              const place *table, void *out) {
  uint32_t known = 0;
  for (uint32_t i = 0; i < schema->field_count; i++) {
    const pph_flat_field *field = &schema->fields[i];
    pph_flat_path_push(&r->path, field->name);
    PPH_TRY(read_field(r, field, table, (char *)out + field->offset));
    pph_flat_path_pop(&r->path);
    known = field->slot + (field->kind == PPH_FLAT_UNION ? 2u : 1u);
  }
  for (uint32_t slot = known; slot < table->slots; slot++)
    if (load_u16(r, table->vtable + 4 + 2 * (size_t)slot))
      note_unknown(r, schema->name, slot);
  return PPH_OK;
}

pph_status pph_flat_read(const void *bytes, size_t length,
                         const pph_flat_table *table, pph_arena *arena,
                         void **root, pph_flat_unknown *unknown,
                         pph_error *error) {
  reader r = {.bytes = bytes, .length = length, .arena = arena,
              .unknown = unknown, .error = error};
  *root = NULL;
  *unknown = (pph_flat_unknown){NULL, 0};
  if (!pph_checked_mul(length, BUDGET_PER_BYTE, &r.budget) ||
      !pph_checked_add(r.budget, BUDGET_BASE, &r.budget))
    r.budget = SIZE_MAX;
  pph_flat_path_push(&r.path, table->name);
  if (length < 8)
    return fail(&r, PPH_BAD_MODEL, "a flatbuffer has at least 8 bytes");
  size_t target;
  void *value;
  PPH_TRY(follow(&r, 0, &target));
  PPH_TRY(read_new_table(&r, table, target, &value));
  *root = value;
  return PPH_OK;
}

pph_status pph_flat_refuse_unknown(const pph_flat_unknown *unknown,
                                   pph_error *error) {
  if (!unknown->table)
    return PPH_OK;
  return pph_fail(error, PPH_UNSUPPORTED, unknown->table,
                  "cannot be written: its number %u is not known here, and "
                  "would be lost",
                  unknown->number);
}
