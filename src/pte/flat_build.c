#include "pte/flat_build.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"

/* FIELDS: more than any table has. */
enum { FIELDS = 32, FIRST_CAPACITY = 1 << 12 };
static const size_t MOST_BYTES = ((size_t)1 << 31) - 16;

/* The buffer grows from its end to its begin, because an offset may only point
   forward and children are written before their parents. Places are distances
   from the end. */
typedef struct builder {
  pph_heap *heap;
  uint8_t *block;
  size_t capacity, used;
  size_t alignment; /* the largest of any datum */
  uint32_t *vtables; /* their places */
  uint32_t vtable_count, vtable_capacity;
  pph_error *error;
} builder;

static pph_status reserve(builder *b, size_t bytes) {
  size_t needed, capacity = b->capacity;
  if (!pph_checked_add(b->used, bytes, &needed) || needed > MOST_BYTES)
    return pph_fail(b->error, PPH_LIMIT_EXCEEDED, "",
                    "the flatbuffer would have 2 GiB or more");
  if (needed <= capacity)
    return PPH_OK;
  while (capacity < needed)
    capacity = capacity ? 2 * capacity : FIRST_CAPACITY;
  uint8_t *block = pph_heap_allocate(b->heap, capacity, 1);
  if (!block)
    return pph_fail_memory(b->error);
  if (b->block)
    memcpy(block + capacity - b->used, b->block + b->capacity - b->used,
           b->used);
  pph_heap_release(b->heap, b->block);
  b->block = block;
  b->capacity = capacity;
  return PPH_OK;
}

static pph_status push(builder *b, const void *bytes, size_t count) {
  if (!count)
    return PPH_OK;
  PPH_TRY(reserve(b, count));
  b->used += count;
  uint8_t *to = b->block + b->capacity - b->used;
  if (bytes)
    memcpy(to, bytes, count);
  else
    memset(to, 0, count);
  return PPH_OK;
}

/* Zeros, so that after `bytes` more the place is a multiple of `step`. */
static pph_status align(builder *b, size_t bytes, size_t step) {
  if (step > b->alignment)
    b->alignment = step;
  return push(b, NULL, (step - (b->used + bytes) % step) % step);
}

static pph_status push_u32(builder *b, uint32_t value) {
  PPH_TRY(align(b, 4, 4));
  return push(b, &value, 4);
}

/* An offset from here to what lies at `target`. */
static pph_status push_offset(builder *b, size_t target) {
  PPH_TRY(align(b, 4, 4));
  uint32_t offset = (uint32_t)(b->used - target + 4);
  return push(b, &offset, 4);
}

static pph_status write_table(builder *b, const pph_flat_table *table,
                              const char *value, size_t *place);

static pph_status write_text(builder *b, const pph_flat_text *text,
                             size_t *place) {
  PPH_TRY(align(b, (size_t)text->count + 1, 4));
  PPH_TRY(push(b, NULL, 1));
  PPH_TRY(push(b, text->at, text->count));
  PPH_TRY(push_u32(b, text->count));
  *place = b->used;
  return PPH_OK;
}

static pph_status write_scalars(builder *b, const pph_flat_field *field,
                                const pph_flat_span *span, size_t *place) {
  size_t size = pph_flat_kind_size(field->kind), bytes;
  if (!pph_checked_mul(span->count, size, &bytes))
    return reserve(b, SIZE_MAX);
  PPH_TRY(align(b, bytes, 4));
  PPH_TRY(align(b, bytes, size));
  if (field->flags & (PPH_FLAT_ALIGN_16 | PPH_FLAT_ALIGN_32))
    PPH_TRY(align(b, bytes, field->flags & PPH_FLAT_ALIGN_16 ? 16 : 32));
  PPH_TRY(push(b, span->at, bytes));
  PPH_TRY(push_u32(b, span->count));
  *place = b->used;
  return PPH_OK;
}

static pph_status push_places(builder *b, const size_t *places,
                              uint32_t count, size_t *place) {
  PPH_TRY(align(b, 4 * (size_t)count, 4));
  for (uint32_t i = count; i--;)
    PPH_TRY(push_offset(b, places[i]));
  PPH_TRY(push_u32(b, count));
  *place = b->used;
  return PPH_OK;
}

static pph_status write_tables(builder *b, const pph_flat_field *field,
                               const pph_flat_span *span, size_t *place) {
  const pph_flat_table *table = field->table();
  size_t *places = pph_heap_allocate(b->heap, span->count, sizeof *places);
  pph_status status = places ? PPH_OK : pph_fail_memory(b->error);
  for (uint32_t i = 0; i < span->count && status == PPH_OK; i++)
    status = write_table(b, table, (const char *)span->at + i * table->size,
                         &places[i]);
  if (status == PPH_OK)
    status = push_places(b, places, span->count, place);
  pph_heap_release(b->heap, places);
  return status;
}

static pph_status write_choice(builder *b, const pph_flat_field *field,
                               const pph_flat_choice *choice, size_t *place) {
  const pph_flat_table *table = pph_flat_member(field, choice->type);
  if (!choice->type)
    return PPH_OK;
  if (!table || !choice->value)
    return pph_fail(b->error, PPH_UNSUPPORTED, field->name,
                    "type %d of %s cannot be written: its layout is not known",
                    choice->type, field->members()->name);
  return write_table(b, table, choice->value, place);
}

/* Writes what the field refers to; *place stays 0 when it is absent. */
static pph_status write_child(builder *b, const pph_flat_field *field,
                              const char *from, size_t *place) {
  if (field->kind == PPH_FLAT_UNION) {
    pph_flat_choice choice;
    memcpy(&choice, from, sizeof choice);
    return write_choice(b, field, &choice, place);
  }
  if (field->flags & PPH_FLAT_VECTOR || field->kind == PPH_FLAT_TEXT) {
    pph_flat_span span;
    memcpy(&span, from, sizeof span);
    if (!span.at)
      return PPH_OK;
    if (field->kind == PPH_FLAT_TABLE)
      return write_tables(b, field, &span, place);
    if (field->kind != PPH_FLAT_TEXT)
      return write_scalars(b, field, &span, place);
    pph_flat_text text = {span.at, span.count};
    return write_text(b, &text, place);
  }
  if (field->kind != PPH_FLAT_TABLE)
    return PPH_OK;
  const char *value;
  memcpy(&value, from, sizeof value);
  return value ? write_table(b, field->table(), value, place) : PPH_OK;
}

/* Pushes what the table itself holds of a field, and notes where. */
static pph_status push_part(builder *b, const pph_flat_field *field,
                            const char *from, size_t child, size_t *slots) {
  static const char zeros[8] = {0};
  size_t *slot = &slots[field->slot];
  if (field->kind == PPH_FLAT_UNION) {
    if (!child)
      return PPH_OK;
    pph_flat_choice choice;
    memcpy(&choice, from, sizeof choice);
    PPH_TRY(push(b, &choice.type, 1));
    *slot++ = b->used;
  }
  bool scalar =
      field->kind < PPH_FLAT_TEXT && !(field->flags & PPH_FLAT_VECTOR);
  if (scalar) {
    size_t size = pph_flat_kind_size(field->kind);
    if (memcmp(from, zeros, size) == 0)
      return PPH_OK;
    PPH_TRY(align(b, size, size));
    PPH_TRY(push(b, from, size));
  } else {
    if (!child)
      return PPH_OK;
    PPH_TRY(push_offset(b, child));
  }
  *slot = b->used;
  return PPH_OK;
}

static uint8_t *at_place(const builder *b, size_t place) {
  return b->block + b->capacity - place;
}

static pph_status remember_vtable(builder *b) {
  if (b->vtable_count == b->vtable_capacity) {
    uint32_t capacity = b->vtable_capacity ? 2 * b->vtable_capacity : 64;
    uint32_t *grown = pph_heap_grow(
        b->heap, b->vtables, b->vtable_count * sizeof *grown, capacity,
        sizeof *grown);
    if (!grown)
      return pph_fail_memory(b->error);
    b->vtables = grown;
    b->vtable_capacity = capacity;
  }
  b->vtables[b->vtable_count++] = (uint32_t)b->used;
  return PPH_OK;
}

/* Pushes the vtable, or finds an equal one, and ties the table to it. */
static pph_status end_table(builder *b, size_t start, const size_t *slots,
                            size_t *place) {
  uint16_t vtable[FIELDS + 2];
  uint32_t count = FIELDS;
  PPH_TRY(push_u32(b, 0));
  size_t table = *place = b->used;
  while (count && !slots[count - 1])
    count--;
  size_t bytes = 2 * (size_t)(count + 2);
  vtable[0] = (uint16_t)bytes;
  vtable[1] = (uint16_t)(table - start);
  for (uint32_t i = 0; i < count; i++)
    vtable[2 + i] = slots[i] ? (uint16_t)(table - slots[i]) : 0;
  size_t found = 0;
  for (uint32_t i = 0; i < b->vtable_count && !found; i++)
    if (b->vtables[i] >= bytes &&
        memcmp(at_place(b, b->vtables[i]), vtable, bytes) == 0)
      found = b->vtables[i];
  if (!found) {
    PPH_TRY(push(b, vtable, bytes));
    PPH_TRY(remember_vtable(b));
    found = b->used;
  }
  int32_t back = (int32_t)((int64_t)found - (int64_t)table);
  memcpy(at_place(b, table), &back, sizeof back);
  return PPH_OK;
}

static pph_status write_table(builder *b, const pph_flat_table *table,
                              const char *value, size_t *place) {
  size_t children[FIELDS] = {0}, slots[FIELDS] = {0};
  for (uint32_t i = 0; i < table->field_count; i++)
    PPH_TRY(write_child(b, &table->fields[i], value + table->fields[i].offset,
                        &children[i]));
  size_t start = b->used;
  for (uint32_t i = 0; i < table->field_count; i++)
    PPH_TRY(push_part(b, &table->fields[i], value + table->fields[i].offset,
                      children[i], slots));
  return end_table(b, start, slots, place);
}

static pph_status write_root(builder *b, const pph_flat_table *table,
                             const void *root, const char *identifier) {
  size_t place;
  PPH_TRY(write_table(b, table, root, &place));
  PPH_TRY(align(b, 8, b->alignment));
  PPH_TRY(push(b, identifier, 4));
  return push_offset(b, place);
}

pph_status pph_flat_build(const pph_flat_table *table, const void *root,
                          const char identifier[4], pph_heap *heap,
                          void **bytes, size_t *length, pph_error *error) {
  builder b = {.heap = heap, .alignment = 4, .error = error};
  *bytes = NULL;
  *length = 0;
  pph_status status = write_root(&b, table, root, identifier);
  pph_heap_release(heap, b.vtables);
  if (status != PPH_OK) {
    pph_heap_release(heap, b.block);
    return status;
  }
  memmove(b.block, b.block + b.capacity - b.used, b.used);
  *bytes = b.block;
  *length = b.used;
  return PPH_OK;
}

static bool equal_spans(const pph_flat_field *field, const char *a,
                        const char *b) {
  pph_flat_span x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  if (!x.at != !y.at || x.count != y.count)
    return false;
  if (!x.at || !x.count)
    return true;
  if (field->kind != PPH_FLAT_TABLE) {
    size_t size =
        field->kind == PPH_FLAT_TEXT ? 1 : pph_flat_kind_size(field->kind);
    return memcmp(x.at, y.at, size * x.count) == 0;
  }
  const pph_flat_table *table = field->table();
  for (uint32_t i = 0; i < x.count; i++)
    if (!pph_flat_equal(table, (const char *)x.at + i * table->size,
                        (const char *)y.at + i * table->size))
      return false;
  return true;
}

static bool equal_choices(const pph_flat_field *field, const char *a,
                          const char *b) {
  pph_flat_choice x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  if (x.type != y.type || !x.value != !y.value)
    return false;
  return !x.value ||
         pph_flat_equal(pph_flat_member(field, x.type), x.value, y.value);
}

static bool equal_fields(const pph_flat_field *field, const char *a,
                         const char *b) {
  if (field->kind == PPH_FLAT_UNION)
    return equal_choices(field, a, b);
  if (field->flags & PPH_FLAT_VECTOR || field->kind == PPH_FLAT_TEXT)
    return equal_spans(field, a, b);
  if (field->kind != PPH_FLAT_TABLE)
    return memcmp(a, b, pph_flat_kind_size(field->kind)) == 0;
  const void *x, *y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  if (!x || !y)
    return x == y;
  return pph_flat_equal(field->table(), x, y);
}

bool pph_flat_equal(const pph_flat_table *table, const void *a,
                    const void *b) {
  for (uint32_t i = 0; i < table->field_count; i++) {
    size_t offset = table->fields[i].offset;
    if (!equal_fields(&table->fields[i], (const char *)a + offset,
                      (const char *)b + offset))
      return false;
  }
  return true;
}
