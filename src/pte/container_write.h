/* Writes containers. What was read and not changed comes out byte for byte. */
#ifndef PPH_PTE_CONTAINER_WRITE_H
#define PPH_PTE_CONTAINER_WRITE_H

#include "pte/container.h"

/* Writes a file of `root`, which is image->root or takes its place, and of
   image->segments; rows[i] gets the place of segments[i]. Parts that are as
   they were in image->file are copied from there, padding, unknown numbers of
   the header and trailing bytes too. Others are made anew, segments aligned as
   their old places show, to 128 bytes when they have none. For a new file the
   image is zero but for segments and segment_count. *bytes is a block of `heap`
   that the caller releases, NULL on failure. PPH_UNSUPPORTED with the field's
   name when the file had one that is not known here. */
PPH_NODISCARD pph_status pph_pte_image_write(
    const pph_pte_image *image, const pph_flat_table *table, const void *root,
    const char identifier[4], pph_pte_data_segment *rows, pph_heap *heap,
    void **bytes, size_t *length, pph_error *error);

/* The main file: a program, its bundle, or a .ptd that was opened alone. */
PPH_NODISCARD pph_status pph_pte_write(pph_pte *pte, pph_heap *heap,
                                       void **bytes, size_t *length,
                                       pph_error *error);

PPH_NODISCARD pph_status pph_pte_write_external(pph_pte_external *external,
                                                pph_heap *heap, void **bytes,
                                                size_t *length,
                                                pph_error *error);

#endif
