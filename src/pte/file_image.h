/* One file of ExecuTorch: a flatbuffer, perhaps with an extended header behind
   its identifier, and behind it segments of raw bytes. */
#ifndef PPH_PTE_FILE_IMAGE_H
#define PPH_PTE_FILE_IMAGE_H

#include "pte/flat_read.h"
#include "pte/program_tables.h"

typedef struct pph_pte_bytes {
  const uint8_t *at;
  size_t count;
} pph_pte_bytes;

typedef struct pph_pte_image {
  pph_pte_bytes file;
  size_t inserted;   /* bytes of the extended header, padded; 0: none */
  size_t flat_bytes; /* of the flatbuffer with the header, from byte 0 */
  size_t base;       /* of the segments; 0: there are none */
  size_t data_bytes; /* from the base on */
  void *root;
  pph_flat_unknown unknown; /* such a file can be shown, but not written */
  pph_pte_bytes *segments;  /* in the arena */
  uint32_t segment_count;
} pph_pte_image;

/* Reads header and flatbuffer; `file` must outlive the image. */
PPH_NODISCARD pph_status pph_pte_image_read(pph_pte_bytes file,
                                            const pph_flat_table *table,
                                            pph_arena *arena,
                                            pph_pte_image *image,
                                            pph_error *error);

/* Finds the segments' bytes; PPH_BAD_MODEL when one leaves the file. */
PPH_NODISCARD pph_status pph_pte_image_read_segments(
    pph_pte_image *image, const pph_pte_data_segment *rows, uint32_t count,
    pph_arena *arena, pph_error *error);

#endif
