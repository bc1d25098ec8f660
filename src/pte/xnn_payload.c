#include "pte/xnn_payload.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/flat_build.h"

/* The header: "XH00" at 4, its length (u16) at 8, then where the flatbuffer
   (u32 offset, u32 size) and the constants (u32 offset, u64 size) are. */
enum { HEADER_BYTES = 30, FLAT_BEGIN = 32, CONSTANT_ALIGNMENT = 16 };
static const char HEADER_MAGIC[4] = {'X', 'H', '0', '0'};

typedef struct header {
  uint32_t flat_offset, flat_size, data_offset;
  uint64_t data_size;
} header;

static void load_header(const uint8_t *bytes, header *h) {
  memcpy(&h->flat_offset, bytes + 10, 4);
  memcpy(&h->flat_size, bytes + 14, 4);
  memcpy(&h->data_offset, bytes + 18, 4);
  memcpy(&h->data_size, bytes + 22, 8);
}

static bool inside(uint64_t offset, uint64_t size, uint64_t length) {
  return offset <= length && size <= length - offset;
}

static pph_status split(pph_pte_bytes bytes, pph_payload *payload,
                        pph_pte_bytes *flat, pph_error *error) {
  header h;
  *flat = bytes;
  payload->bare =
      bytes.count < 8 || memcmp(bytes.at + 4, HEADER_MAGIC, 4) != 0;
  payload->constants = (pph_pte_bytes){NULL, 0};
  if (payload->bare)
    return PPH_OK;
  if (bytes.count < HEADER_BYTES)
    return pph_fail(error, PPH_BAD_MODEL, "payload",
                    "it has %zu bytes, its header alone has %d", bytes.count,
                    HEADER_BYTES);
  load_header(bytes.at, &h);
  if (!inside(h.flat_offset, h.flat_size, bytes.count))
    return pph_fail(error, PPH_BAD_MODEL, "payload",
                    "its flatbuffer of %u bytes at %u leaves the %zu bytes",
                    h.flat_size, h.flat_offset, bytes.count);
  if (!inside(h.data_offset, h.data_size, bytes.count) ||
      h.data_offset < (uint64_t)h.flat_offset + h.flat_size)
    return pph_fail(error, PPH_BAD_MODEL, "payload",
                    "its constants of %llu bytes at %u overlap its flatbuffer "
                    "or leave the %zu bytes",
                    (unsigned long long)h.data_size, h.data_offset,
                    bytes.count);
  *flat = (pph_pte_bytes){bytes.at + h.flat_offset, h.flat_size};
  payload->constants =
      (pph_pte_bytes){bytes.at + h.data_offset, (size_t)h.data_size};
  return PPH_OK;
}

pph_status pph_payload_read(pph_pte_bytes bytes, pph_arena *arena,
                            pph_payload *payload, pph_error *error) {
  pph_pte_bytes flat;
  void *root;
  memset(payload, 0, sizeof *payload);
  PPH_TRY(split(bytes, payload, &flat, error));
  if (flat.count < 8 || (memcmp(flat.at + 4, "XN00", 4) != 0 &&
                         memcmp(flat.at + 4, "XN01", 4) != 0))
    return pph_fail(error, PPH_BAD_MODEL, "payload",
                    "it is no graph for XNNPACK: there is no \"XN00\" or "
                    "\"XN01\"");
  memcpy(payload->identifier, flat.at + 4, 4);
  PPH_TRY(pph_flat_read(flat.at, flat.count, pph_payload_graph_schema(), arena,
                        &root, &payload->unknown, error));
  payload->graph = root;
  return PPH_OK;
}

static pph_status join(const pph_payload *payload, const void *flat,
                       size_t flat_bytes, pph_heap *heap, void **bytes,
                       size_t *length, pph_error *error) {
  size_t begin, total;
  if (!pph_checked_round_up(flat_bytes, CONSTANT_ALIGNMENT, &begin) ||
      !pph_checked_add(begin, FLAT_BEGIN, &begin) || begin > UINT32_MAX ||
      !pph_checked_add(begin, payload->constants.count, &total))
    return pph_fail(error, PPH_LIMIT_EXCEEDED, "payload", "it is too large");
  uint8_t *block = pph_heap_allocate_zeroed(heap, total, 1);
  if (!block)
    return pph_fail_memory(error);
  const uint16_t header_bytes = HEADER_BYTES;
  const uint32_t numbers[3] = {FLAT_BEGIN, (uint32_t)flat_bytes,
                               (uint32_t)begin};
  const uint64_t data_size = payload->constants.count;
  memcpy(block + 4, HEADER_MAGIC, 4);
  memcpy(block + 8, &header_bytes, 2);
  memcpy(block + 10, numbers, sizeof numbers);
  memcpy(block + 22, &data_size, 8);
  memcpy(block + FLAT_BEGIN, flat, flat_bytes);
  if (data_size)
    memcpy(block + begin, payload->constants.at, payload->constants.count);
  *bytes = block;
  *length = total;
  return PPH_OK;
}

pph_status pph_payload_write(const pph_payload *payload, pph_heap *heap,
                             void **bytes, size_t *length, pph_error *error) {
  void *flat;
  size_t flat_bytes;
  *bytes = NULL;
  *length = 0;
  PPH_TRY(pph_flat_refuse_unknown(&payload->unknown, error));
  PPH_TRY(pph_flat_build(pph_payload_graph_schema(), payload->graph,
                         payload->identifier, heap, &flat, &flat_bytes,
                         error));
  if (payload->bare) {
    *bytes = flat;
    *length = flat_bytes;
    return PPH_OK;
  }
  pph_status status =
      join(payload, flat, flat_bytes, heap, bytes, length, error);
  pph_heap_release(heap, flat);
  return status;
}

bool pph_payload_equal(const pph_payload *a, const pph_payload *b) {
  return memcmp(a->identifier, b->identifier, 4) == 0 && a->bare == b->bare &&
         a->constants.count == b->constants.count &&
         (a->constants.count == 0 ||
          memcmp(a->constants.at, b->constants.at, a->constants.count) == 0) &&
         pph_flat_equal(pph_payload_graph_schema(), a->graph, b->graph);
}

static const struct {
  const char *name;
  const pph_flat_table *(*schema)(void);
  uint32_t inputs;
} kinds[PPH_PAYLOAD_KIND_COUNT] = {
    {"", NULL, 0},
#define PPH_PAYLOAD_ENTER(name, text, table, inputs)                           \
  {text, table##_schema, inputs},
    PPH_PAYLOAD_KINDS(PPH_PAYLOAD_ENTER)
#undef PPH_PAYLOAD_ENTER
};

const char *pph_payload_kind_name(uint32_t kind) {
  return kind < PPH_PAYLOAD_KIND_COUNT ? kinds[kind].name : "";
}

const char *pph_payload_type_name(int type) {
  static const char *const names[PPH_PAYLOAD_TYPE_COUNT] = {
      "",        "fp32",   "fp16",   "qint8",  "quint8", "qint32", "qcint8",
      "qcint32", "qcint4", "qdint8", "qbint4", "qpint8", "int32",  "pfp32",
      "bf16"};
  return type >= 0 && type < PPH_PAYLOAD_TYPE_COUNT ? names[type] : "";
}

const pph_flat_table *pph_payload_find_table(uint32_t kind) {
  return kind && kind < PPH_PAYLOAD_KIND_COUNT ? kinds[kind].schema() : NULL;
}

pph_payload_tensor *pph_payload_tensor_of(const pph_payload_value *value) {
  const pph_payload_quantized *quantized = value->xvalue_union.value;
  if (value->xvalue_union.type == 1)
    return value->xvalue_union.value;
  return value->xvalue_union.type == 2 ? quantized->tensor_value : NULL;
}

void pph_payload_find_uses(const pph_payload_node *node,
                           pph_payload_uses *uses) {
  memset(uses, 0, sizeof *uses);
  uint32_t kind = node->xnode_union.type;
  if (!kind || kind >= PPH_PAYLOAD_KIND_COUNT)
    return;
  const pph_flat_table *table = kinds[kind].schema();
  for (uint32_t i = 0; i < table->field_count; i++) {
    const pph_flat_field *field = &table->fields[i];
    uint32_t id;
    memcpy(&id, (const char *)node->xnode_union.value + field->offset,
           sizeof id);
    if (field->flags & PPH_PAYLOAD_WRITTEN) {
      uses->outputs[uses->output_count++] = id;
    } else if (field->flags & PPH_PAYLOAD_READ &&
               uses->input_count < kinds[kind].inputs) {
      uses->roles[uses->input_count] = field->flags;
      uses->inputs[uses->input_count++] = id;
    }
  }
}

void pph_payload_set_uses(pph_payload_node *node,
                          const pph_payload_uses *uses) {
  uint32_t kind = node->xnode_union.type, inputs = 0, outputs = 0;
  if (!kind || kind >= PPH_PAYLOAD_KIND_COUNT)
    return;
  const pph_flat_table *table = kinds[kind].schema();
  for (uint32_t i = 0; i < table->field_count; i++) {
    const pph_flat_field *field = &table->fields[i];
    const uint32_t *id = NULL;
    if (field->flags & PPH_PAYLOAD_WRITTEN && outputs < uses->output_count)
      id = &uses->outputs[outputs++];
    else if (field->flags & PPH_PAYLOAD_READ && inputs < uses->input_count)
      id = &uses->inputs[inputs++];
    if (id)
      memcpy((char *)node->xnode_union.value + field->offset, id, sizeof *id);
  }
}
