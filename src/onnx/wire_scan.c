#include "onnx/wire_scan.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"

enum { MAX_NESTING = 256, MESSAGES_PER_NODE = 32, MESSAGES_BESIDE = 1 << 20 };

typedef struct scan_frame {
  const ProtobufCMessageDescriptor *descriptor;
  const uint8_t *end;
  uint64_t seen; /* single messages that occurred, by position in descriptor */
} scan_frame;

typedef struct scanner {
  const uint8_t *start, *at;
  scan_frame frames[MAX_NESTING];
  uint32_t depth, nesting;
  uint64_t messages, message_limit;
  pph_error *error;
} scanner;

static pph_status fail_at(const scanner *scan, const uint8_t *at,
                          pph_status status, const char *what) {
  char place[48];
  snprintf(place, sizeof place, "byte %zu", (size_t)(at - scan->start));
  return pph_fail(scan->error, status, place, "%s", what);
}

static pph_status read_varint(scanner *scan, uint64_t *value) {
  const uint8_t *end = scan->frames[scan->depth - 1].end;
  const uint8_t *start = scan->at;
  *value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (scan->at == end)
      return fail_at(scan, start, PPH_BAD_MODEL,
                     "a number is cut off: not an ONNX file or damaged");
    uint8_t byte = *scan->at++;
    if (shift < 64)
      *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return PPH_OK;
  }
  return fail_at(scan, start, PPH_BAD_MODEL,
                 "a number has more than 10 bytes: not an ONNX file or "
                 "damaged");
}

static pph_status skip(scanner *scan, uint64_t length) {
  const uint8_t *end = scan->frames[scan->depth - 1].end;
  if (length > (size_t)(end - scan->at))
    return fail_at(scan, scan->at, PPH_BAD_MODEL,
                   "a field is longer than what contains it: not an ONNX file "
                   "or damaged");
  scan->at += length;
  return PPH_OK;
}

static pph_status push(scanner *scan, const ProtobufCMessageDescriptor *type,
                       uint64_t length) {
  char text[96];
  if (scan->depth == scan->nesting) {
    snprintf(text, sizeof text,
             "messages nest deeper than the limit of %" PRIu32, scan->nesting);
    return fail_at(scan, scan->at, PPH_LIMIT_EXCEEDED, text);
  }
  if (++scan->messages > scan->message_limit) {
    snprintf(text, sizeof text, "more than %" PRIu64 " messages",
             scan->message_limit);
    return fail_at(scan, scan->at, PPH_LIMIT_EXCEEDED, text);
  }
  const uint8_t *start = scan->at;
  PPH_TRY(skip(scan, length));
  scan->at = start;
  scan->frames[scan->depth++] = (scan_frame){type, start + length, 0};
  return PPH_OK;
}

static pph_status note_single(scanner *scan,
                              const ProtobufCFieldDescriptor *field) {
  scan_frame *frame = &scan->frames[scan->depth - 1];
  uint64_t bit = UINT64_C(1) << (field - frame->descriptor->fields) % 64;
  if (frame->seen & bit) {
    char text[96];
    snprintf(text, sizeof text, "field %s of %s occurs twice", field->name,
             frame->descriptor->short_name);
    return fail_at(scan, scan->at, PPH_BAD_MODEL, text);
  }
  frame->seen |= bit;
  return PPH_OK;
}

static pph_status scan_delimited(scanner *scan, uint32_t number) {
  uint64_t length;
  PPH_TRY(read_varint(scan, &length));
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field(
          scan->frames[scan->depth - 1].descriptor, number);
  if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE)
    return skip(scan, length);
  if (field->label != PROTOBUF_C_LABEL_REPEATED)
    PPH_TRY(note_single(scan, field));
  return push(scan, field->descriptor, length);
}

static pph_status scan_field(scanner *scan) {
  const uint8_t *start = scan->at;
  uint64_t tag, value;
  PPH_TRY(read_varint(scan, &tag));
  if (tag >> 3 == 0 || tag > UINT32_MAX)
    return fail_at(scan, start, PPH_BAD_MODEL,
                   "a field's number is out of range: not an ONNX file or "
                   "damaged");
  switch (tag & 7) {
  case 0:
    return read_varint(scan, &value);
  case 1:
    return skip(scan, 8);
  case 2:
    return scan_delimited(scan, (uint32_t)(tag >> 3));
  case 5:
    return skip(scan, 4);
  default:
    return fail_at(scan, start, PPH_BAD_MODEL,
                   "an unknown kind of field: not an ONNX file or damaged");
  }
}

pph_status pph_wire_scan(const void *bytes, size_t length,
                         const ProtobufCMessageDescriptor *descriptor,
                         const pph_limits *limits, pph_error *error) {
  scanner scan = {.start = bytes, .at = bytes, .error = error};
  scan.nesting = limits->nesting < MAX_NESTING ? limits->nesting : MAX_NESTING;
  scan.message_limit =
      MESSAGES_BESIDE + (uint64_t)limits->nodes * MESSAGES_PER_NODE;
  PPH_TRY(scan.nesting ? PPH_OK
                       : fail_at(&scan, bytes, PPH_LIMIT_EXCEEDED,
                                 "the limit of nested messages is 0"));
  scan.frames[0] = (scan_frame){descriptor, (const uint8_t *)bytes + length, 0};
  scan.depth = 1;
  while (scan.depth) {
    if (scan.at == scan.frames[scan.depth - 1].end)
      scan.depth--;
    else
      PPH_TRY(scan_field(&scan));
  }
  return PPH_OK;
}
