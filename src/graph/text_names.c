/* The table of names. A branch asks one bit; below it all names agree in the
   bits before that one. */
#include "graph/text_names.h"

#include <string.h>

#include "base/fail.h"

void pph_text_names_init(pph_text_names *names, const pph_graph *graph) {
  *names = (pph_text_names){.graph = graph};
}

void pph_text_names_clear(pph_text_names *names) {
  pph_heap_release(names->graph->heap, names->branches);
  *names = (pph_text_names){.graph = names->graph};
}

/* Names end in 0, so that byte 0 stands for everything past the end. */
static unsigned byte_at(const char *name, size_t length, uint32_t at) {
  return at < length ? (unsigned char)name[at] : 0;
}

static unsigned side_of(const pph_text_branch *branch, unsigned byte) {
  return (1 + (branch->mask | byte)) >> 8;
}

static pph_id find_leaf(const pph_text_names *names, const char *name,
                        size_t length) {
  uint64_t at = names->root;
  while (at & 1) {
    const pph_text_branch *branch = &names->branches[at >> 1];
    at = branch->child[side_of(branch, byte_at(name, length, branch->byte))];
  }
  return (pph_id)(at >> 1);
}

pph_id pph_text_names_find(const pph_text_names *names, const char *name,
                           size_t length) {
  if (!names->any)
    return PPH_NO_VALUE;
  pph_id id = find_leaf(names, name, length);
  const char *found = names->graph->values[id].name;
  bool same = strncmp(found, name, length) == 0 && !found[length];
  return same ? id : PPH_NO_VALUE;
}

static pph_status reserve(pph_text_names *names, pph_error *error) {
  if (names->count < names->capacity)
    return PPH_OK;
  uint32_t capacity = names->capacity ? names->capacity * 2 : 64;
  pph_text_branch *grown = pph_heap_grow(
      names->graph->heap, names->branches, names->count * sizeof *grown,
      capacity, sizeof *grown);
  if (!grown)
    return pph_fail_memory(error);
  names->branches = grown;
  names->capacity = capacity;
  return PPH_OK;
}

/* The branch that tells `name` from `other`; false when they are the same. */
static bool differ(const char *name, const char *other,
                   pph_text_branch *branch) {
  size_t at = 0;
  while (name[at] == other[at]) {
    if (!name[at])
      return false;
    at++;
  }
  unsigned bits = (unsigned char)name[at] ^ (unsigned char)other[at];
  while (bits & (bits - 1))
    bits &= bits - 1; /* only the highest is left */
  branch->byte = (uint32_t)at;
  branch->mask = (uint8_t)~bits;
  return true;
}

/* Whether a walk for a new branch goes on below `old`: it asks an earlier bit.
   Of two masks the one of the higher bit is the smaller. */
static bool is_before(const pph_text_branch *old,
                      const pph_text_branch *branch) {
  return old->byte < branch->byte ||
         (old->byte == branch->byte && old->mask < branch->mask);
}

pph_status pph_text_names_add(pph_text_names *names, pph_id id,
                              pph_id *existing, pph_error *error) {
  const char *name = names->graph->values[id].name;
  size_t length = strlen(name);
  *existing = PPH_NO_VALUE;
  if (!names->any) {
    names->any = true;
    names->root = (uint64_t)id << 1;
    return PPH_OK;
  }
  pph_text_branch made;
  pph_id leaf = find_leaf(names, name, length);
  if (!differ(name, names->graph->values[leaf].name, &made)) {
    *existing = leaf;
    return PPH_OK;
  }
  PPH_TRY(reserve(names, error));
  uint64_t *link = &names->root;
  while (*link & 1) {
    pph_text_branch *old = &names->branches[*link >> 1];
    if (!is_before(old, &made))
      break;
    link = &old->child[side_of(old, byte_at(name, length, old->byte))];
  }
  unsigned side = side_of(&made, byte_at(name, length, made.byte));
  made.child[side] = (uint64_t)id << 1;
  made.child[!side] = *link;
  names->branches[names->count] = made;
  *link = ((uint64_t)names->count++ << 1) + 1;
  return PPH_OK;
}
