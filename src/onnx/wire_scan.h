/* A walk over protobuf's wire format before protobuf-c unpacks it. */
#ifndef PPH_ONNX_WIRE_SCAN_H
#define PPH_ONNX_WIRE_SCAN_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "polyphase/memory.h"
#include "polyphase/status.h"

/* Checks `length` bytes as a message of `descriptor`: every tag, varint and
   length lies inside its message; messages nest at most limits->nesting deep
   (256 whatever the limit says, because protobuf-c recurses); their number is
   in proportion to limits->nodes; and a message that may occur once does,
   because protobuf-c merges repetitions in quadratic time. Fields that the
   descriptor does not know are skipped. Time is linear, memory constant.
   PPH_BAD_MODEL names the byte, PPH_LIMIT_EXCEEDED the limit. */
PPH_NODISCARD pph_status
pph_wire_scan(const void *bytes, size_t length,
              const ProtobufCMessageDescriptor *descriptor,
              const pph_limits *limits, pph_error *error);

#endif
