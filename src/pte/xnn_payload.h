/* The payload that ExecuTorch's XNNPACK backend is given: a header, a
   flatbuffer with a graph, and constants behind it or kept elsewhere by name.
   docs/formats/xnn-payload.md has the bytes. */
#ifndef PPH_PTE_XNN_PAYLOAD_H
#define PPH_PTE_XNN_PAYLOAD_H

#include <stdbool.h>

#include "pte/file_image.h"
#include "pte/xnn_tables.h"

typedef struct pph_payload {
  pph_payload_graph *graph;
  char identifier[4];      /* "XN00" or "XN01" */
  bool bare;               /* a flatbuffer without a header, of old files */
  pph_pte_bytes constants; /* behind the flatbuffer */
  pph_flat_unknown unknown; /* such a payload can be shown, but not written */
} pph_payload;

/* Reads header and tables into `arena`; `bytes` must outlive the payload. What
   the tables mean is not checked: xnn_check.h. */
PPH_NODISCARD pph_status pph_payload_read(pph_pte_bytes bytes,
                                          pph_arena *arena,
                                          pph_payload *payload,
                                          pph_error *error);

/* Writes into a heap block that the caller releases; *bytes is NULL on failure.
   What was read and not changed comes out equal. PPH_UNSUPPORTED, with the
   field named, for a payload with something unknown. */
PPH_NODISCARD pph_status pph_payload_write(const pph_payload *payload,
                                           pph_heap *heap, void **bytes,
                                           size_t *length, pph_error *error);

/* Same tables, same constants. */
bool pph_payload_equal(const pph_payload *a, const pph_payload *b);

/* "ConvTranspose2d"; "" for a number of no kind. */
const char *pph_payload_kind_name(uint32_t kind);
/* "qint8"; "" for a number of no type. */
const char *pph_payload_type_name(int type);

/* The ids that a node reads (one that is absent is PPH_PAYLOAD_NONE) and
   makes, in the order of its table. */
enum { PPH_PAYLOAD_MOST_INPUTS = 5, PPH_PAYLOAD_MOST_OUTPUTS = 2 };
typedef struct pph_payload_uses {
  uint32_t inputs[PPH_PAYLOAD_MOST_INPUTS];
  uint16_t roles[PPH_PAYLOAD_MOST_INPUTS]; /* PPH_PAYLOAD_PACKED, ... */
  uint32_t outputs[PPH_PAYLOAD_MOST_OUTPUTS];
  uint32_t input_count, output_count;
} pph_payload_uses;
/* Nothing for a node of unknown kind. */
void pph_payload_find_uses(const pph_payload_node *node,
                           pph_payload_uses *uses);
/* Puts other ids into the node's table; as many as were found. */
void pph_payload_set_uses(pph_payload_node *node, const pph_payload_uses *uses);

/* The table of that kind of node; NULL for an unknown kind. */
const pph_flat_table *pph_payload_find_table(uint32_t kind);

/* What plain and quantized values share; NULL for a value of unknown type. */
pph_payload_tensor *pph_payload_tensor_of(const pph_payload_value *value);

#endif
