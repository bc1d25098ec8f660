/* ExecuTorch programs (.pte), bundles of a program with test cases (.bpte) and
   constants beside them (.ptd). All tables are those of program_tables.h; what
   open accepts keeps the promises told there, so that readers need not check
   again:
     - every number of a value, operator, delegate, segment or instruction is in
       range, and an argument's value has the type that its place needs;
     - a tensor's sizes are not negative and its bytes are countable, dim_order
       is a permutation of its sizes' places;
     - what a tensor or delegate keeps in the program lies in it, planned memory
       in its buffer.
   What a file of constants beside the program should give is not promised. */
#ifndef PPH_PTE_CONTAINER_H
#define PPH_PTE_CONTAINER_H

#include <stdbool.h>

#include "pte/file_image.h"
#include "pte/scalar_type.h"

/* A file's bytes with a name for messages; `name` may be "". */
typedef struct pph_pte_source {
  const char *name;
  pph_pte_bytes bytes;
} pph_pte_source;

/* A .ptd. */
typedef struct pph_pte_external {
  const char *name; /* in the arena */
  pph_pte_image image;
  pph_ptd_flat_tensor *tensors; /* the image's root */
} pph_pte_external;

typedef struct pph_pte {
  pph_heap *heap;
  pph_arena arena;
  pph_pte_image image;      /* the program's; no bytes for a .ptd alone */
  pph_pte_program *program; /* its root; NULL for a .ptd alone */
  pph_pte_image bundle_image;
  pph_bundle_program *bundle;  /* NULL unless a .bpte */
  pph_pte_external *externals; /* a .ptd alone is the only one */
  uint32_t external_count;
} pph_pte;

/* Members of the unions, as .val.type and .instr_args.type have them. */
typedef enum pph_pte_value_type {
  PPH_PTE_NULL = 1,
  PPH_PTE_INT,
  PPH_PTE_BOOL,
  PPH_PTE_DOUBLE,
  PPH_PTE_TENSOR,
  PPH_PTE_STRING,
  PPH_PTE_INT_LIST,
  PPH_PTE_DOUBLE_LIST,
  PPH_PTE_BOOL_LIST,
  PPH_PTE_TENSOR_LIST,
  PPH_PTE_OPTIONAL_TENSOR_LIST
} pph_pte_value_type;

typedef enum pph_pte_instruction_type {
  PPH_PTE_KERNEL_CALL = 1,
  PPH_PTE_DELEGATE_CALL,
  PPH_PTE_MOVE_CALL,
  PPH_PTE_JUMP_FALSE_CALL,
  PPH_PTE_FREE_CALL
} pph_pte_instruction_type;

typedef enum pph_bundle_value_type {
  PPH_BUNDLE_TENSOR = 1,
  PPH_BUNDLE_INT,
  PPH_BUNDLE_BOOL,
  PPH_BUNDLE_DOUBLE
} pph_bundle_value_type;

/* Opens a .pte, .bpte or .ptd by its identifier, with the .ptd files that it
   may need. All bytes must outlive *pte, which is NULL on failure. */
PPH_NODISCARD pph_status pph_pte_open(const pph_pte_source *main,
                                      const pph_pte_source *externals,
                                      uint32_t external_count, pph_heap *heap,
                                      pph_pte **pte, pph_error *error);
void pph_pte_close(pph_pte *pte); /* NULL is allowed */

/* Whether bytes are such a file, by their identifier, or a profile, which
   ExecuTorch writes too and pph_pte_open refuses by its name. */
bool pph_pte_is_container(const void *bytes, size_t length);

/* The method of that name; NULL when there is none. */
const pph_pte_plan *pph_pte_find_method(const pph_pte *pte, const char *name);

/* A text equals a C string, or another text. */
bool pph_flat_text_is(pph_flat_text text, const char *other);
bool pph_flat_text_equal(pph_flat_text a, pph_flat_text b);

/* A text's length for "%.*s", at most `most`. */
static inline int pph_flat_text_cut(pph_flat_text text, uint32_t most) {
  return (int)(text.count < most ? text.count : most);
}

/* The bytes of a delegate, wherever they are. */
pph_pte_bytes pph_pte_delegate_payload(const pph_pte *pte,
                                       const pph_pte_delegate *delegate);

/* Named data: a .ptd's comes before the program's. False when no file has the
   key. `external` (may be NULL) gets the .ptd, or NULL for the program. */
bool pph_pte_find_data(const pph_pte *pte, pph_flat_text key,
                       pph_pte_bytes *bytes,
                       const pph_pte_external **external);

/* Where a tensor's elements are. */
typedef enum pph_pte_storage {
  PPH_PTE_GIVEN,    /* the caller's, set before a run */
  PPH_PTE_PLANNED,  /* in a buffer of the method, undefined (or 0) at first */
  PPH_PTE_STATE,    /* the same, with first contents in the program */
  PPH_PTE_CONSTANT, /* in the program */
  PPH_PTE_EXTERNAL  /* in a .ptd, by name */
} pph_pte_storage;

pph_pte_storage pph_pte_tensor_storage(const pph_pte_tensor *tensor);

/* Whether the value keeps its contents from call to call: it has first ones, or
   an aten::copy_ writes it in place. */
bool pph_pte_is_state(const pph_pte_plan *plan, uint32_t value);

/* Whether its dimensions lie in memory in another order than their own. */
bool pph_pte_is_permuted(const pph_pte_tensor *tensor);

/* Bytes of all elements, at the upper bounds of dynamic sizes. */
size_t pph_pte_tensor_size(const pph_pte_tensor *tensor);

/* The elements of a CONSTANT or EXTERNAL tensor, the first contents of a STATE;
   exactly pph_pte_tensor_size bytes, not aligned. False when there are none, or
   when no .ptd has the name with the same type and sizes. */
bool pph_pte_tensor_bytes(const pph_pte *pte, const pph_pte_tensor *tensor,
                          pph_pte_bytes *bytes);

#endif
