/* What a container must mean beyond what flatbuffers can say: the promises of
   container.h. Every check is made once, when a file is opened. */
#ifndef PPH_PTE_CONTAINER_CHECK_H
#define PPH_PTE_CONTAINER_CHECK_H

#include "pte/container.h"

/* BackendDelegateDataReference.location and ExtraTensorInfo.location. */
enum { PPH_PTE_INLINE, PPH_PTE_IN_SEGMENT };
enum { PPH_PTE_LOCATION_SEGMENT, PPH_PTE_LOCATION_EXTERNAL };

PPH_NODISCARD pph_status pph_pte_check_program(const pph_pte *pte,
                                               pph_error *error);
PPH_NODISCARD pph_status pph_pte_check_bundle(const pph_pte *pte,
                                              pph_error *error);
PPH_NODISCARD pph_status pph_pte_check_external(
    const pph_pte_external *external, pph_error *error);

/* Bytes of a dense tensor; false when the type is unknown, a size negative or
   the product too large. */
bool pph_pte_count_bytes(int8_t scalar_type, const int32_t *sizes,
                         uint32_t count, size_t *bytes);

/* The bytes from where a CONSTANT or STATE tensor's contents start to the end
   of what holds them; false for other tensors and when that place is none. */
bool pph_pte_find_stored(const pph_pte_program *program,
                         const pph_pte_image *image,
                         const pph_pte_tensor *tensor, pph_pte_bytes *bytes);

#endif
