/* Small ExecuTorch files that tests build: with every kind of place that data
   can be in. */
#ifndef TESTS_PTE_MAKER_H
#define TESTS_PTE_MAKER_H

#include "pte/container.h"
#include "pte/xnn_payload.h"

/* A program of two methods, "forward" and "again": inputs, constants in the
   constant segment and outside ("scale" in a .ptd), a state with and one
   without first contents, a delegate inline and one in a segment, named data
   ("one" and "two" share a segment), lists, jumps and moves. Bytes by malloc,
   here and below. */
pph_pte_bytes pte_make_program(void);

/* The constants beside it: "scale" and the named data "blob". */
pph_pte_bytes pte_make_external(void);

/* A bundle of `program` with a test case for "forward". */
pph_pte_bytes pte_make_bundle(pph_pte_bytes program);

/* A headerless program with its constant in a table, as old files have it. */
pph_pte_bytes pte_make_old_program(void);

/* The file of a program and the image's segments. */
pph_pte_bytes pte_write_program(const pph_pte_image *image,
                                pph_pte_program *program);

/* A payload's bytes; fails the test when they cannot be written. */
uint8_t *pte_write_payload(const pph_payload *payload, size_t *length);

void pte_release(pph_pte_bytes bytes);

#endif
