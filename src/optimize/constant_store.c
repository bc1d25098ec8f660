#include "optimize/constant_store.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/growing.h"
#include "base/sha256.h"
#include "pte/container_check.h"

static bool has_key(const pph_key_list *list, pph_flat_text key) {
  for (uint32_t i = 0; i < list->count; i++)
    if (pph_flat_text_equal(list->at[i], key))
      return true;
  return false;
}

/* Whether the file itself has the key. */
static bool file_has(const pph_constant_store *store,
                     const pph_pte_external *external, pph_flat_text key) {
  if (external) {
    for (uint32_t i = 0; i < external->tensors->named_data.count; i++)
      if (pph_flat_text_equal(external->tensors->named_data.at[i].key, key))
        return true;
    return false;
  }
  const pph_pte_program *program = store->pte->program;
  for (uint32_t i = 0; i < program->named_data.count; i++)
    if (pph_flat_text_equal(program->named_data.at[i].key, key))
      return true;
  return false;
}

static bool was_added(const pph_constant_store *store,
                      const pph_pte_external *external, pph_flat_text key) {
  for (uint32_t i = 0; i < store->added_count; i++)
    if (store->added[i].external == external &&
        pph_flat_text_equal(store->added[i].key, key))
      return true;
  return false;
}

const pph_new_constant *pph_constant_store_find(
    const pph_constant_store *store, pph_flat_text key) {
  for (uint32_t i = 0; key.at && i < store->added_count; i++)
    if (pph_flat_text_equal(store->added[i].key, key))
      return &store->added[i];
  return NULL;
}

pph_status pph_constant_store_add(pph_constant_store *store,
                                  pph_pte_bytes bytes, const char *prefix,
                                  const pph_pte_external *external,
                                  pph_flat_text *key, pph_error *error) {
  pph_arena *arena = &store->pte->arena;
  char digest[PPH_SHA256_TEXT], name[16 + PPH_SHA256_TEXT];
  size_t length = strlen(prefix) + PPH_SHA256_TEXT - 1;
  pph_sha256_print(bytes.at, bytes.count, digest);
  memcpy(name, prefix, strlen(prefix));
  memcpy(name + strlen(prefix), digest, PPH_SHA256_TEXT);
  key->at = pph_arena_copy_text(arena, name, length);
  key->count = (uint32_t)length;
  if (!key->at)
    return pph_fail_memory(error);
  if (file_has(store, external, *key) || was_added(store, external, *key))
    return PPH_OK;
  PPH_TRY(pph_grow(arena, &store->added, store->added_count,
                   &store->added_capacity, sizeof *store->added, error));
  store->added[store->added_count++] =
      (pph_new_constant){*key, bytes, external};
  return PPH_OK;
}

pph_status pph_constant_store_note(pph_constant_store *store,
                                   pph_key_list *list,
                                   const pph_payload_graph *graph,
                                   pph_error *error) {
  for (uint32_t i = 0; i < graph->constant_data.count; i++) {
    pph_flat_text key = graph->constant_data.at[i].named_key;
    if (!key.at || !key.count || has_key(list, key))
      continue;
    PPH_TRY(pph_grow(&store->pte->arena, &list->at, list->count,
                     &list->capacity, sizeof *list->at, error));
    list->at[list->count++] = key;
  }
  return PPH_OK;
}

static bool is_dead(const pph_constant_store *store, pph_flat_text key) {
  return !store->keeps_all && has_key(&store->before, key) &&
         !has_key(&store->after, key);
}

/* With a layout it is a tensor of the method's, whatever its name. */
static bool is_dead_row(const pph_constant_store *store,
                        const pph_ptd_named_data *row) {
  return !row->tensor_layout && is_dead(store, row->key);
}

/* Whether a new constant is written there: those between two steps are not. */
static bool goes_to(const pph_constant_store *store, uint32_t i,
                    const pph_pte_external *external) {
  return store->added[i].external == external &&
         has_key(&store->after, store->added[i].key);
}

/* A file's segments while they are renumbered. */
typedef struct segments {
  pph_pte_image *image;
  bool *leaves;      /* one per old segment */
  uint32_t *numbers; /* old to new */
  uint32_t kept, added;
} segments;

static pph_status open_segments(pph_constant_store *store,
                                const pph_pte_external *external,
                                pph_pte_image *image, segments *s,
                                pph_error *error) {
  pph_arena *arena = &store->pte->arena;
  *s = (segments){.image = image};
  s->leaves = pph_arena_allocate(arena, image->segment_count + 1, 1);
  s->numbers = pph_arena_allocate(arena, image->segment_count + 1,
                                  sizeof *s->numbers);
  if (!s->leaves || !s->numbers)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < store->added_count; i++)
    s->added += goes_to(store, i, external);
  return PPH_OK;
}

/* Rows and bytes without those that leave, with room for the new ones. */
static pph_status renumber(pph_constant_store *store, segments *s,
                           pph_pte_data_segment **rows, pph_error *error) {
  pph_pte_image *image = s->image;
  pph_arena *arena = &store->pte->arena;
  for (uint32_t i = 0; i < image->segment_count; i++) {
    s->numbers[i] = s->kept;
    s->kept += !s->leaves[i];
  }
  uint32_t count = s->kept + s->added;
  pph_pte_bytes *bytes =
      pph_arena_allocate(arena, (size_t)count + 1, sizeof *bytes);
  pph_pte_data_segment *made =
      pph_arena_allocate(arena, (size_t)count + 1, sizeof *made);
  if (!bytes || !made)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < image->segment_count; i++)
    if (!s->leaves[i]) {
      bytes[s->numbers[i]] = image->segments[i];
      made[s->numbers[i]] = (*rows)[i];
    }
  image->segments = bytes;
  image->segment_count = count;
  *rows = made;
  return PPH_OK;
}

static pph_status finish_external(pph_constant_store *store,
                                  pph_pte_external *external, bool *changed,
                                  pph_error *error) {
  pph_ptd_flat_tensor *root = external->tensors;
  segments s;
  uint32_t stays = 0, old = root->named_data.count;
  PPH_TRY(open_segments(store, external, &external->image, &s, error));
  for (uint32_t i = 0; i < old; i++)
    s.leaves[root->named_data.at[i].segment_index] |=
        is_dead_row(store, &root->named_data.at[i]);
  for (uint32_t i = 0; i < old; i++)
    if (!is_dead_row(store, &root->named_data.at[i])) {
      s.leaves[root->named_data.at[i].segment_index] = false;
      stays++;
    }
  if (stays == old && !s.added)
    return PPH_OK;
  *changed = true;
  PPH_TRY(renumber(store, &s, &root->segments.at, error));
  root->segments.count = external->image.segment_count;
  pph_ptd_named_data *list = pph_arena_allocate(
      &store->pte->arena, (size_t)stays + s.added + 1, sizeof *list);
  if (!list)
    return pph_fail_memory(error);
  uint32_t count = 0;
  for (uint32_t i = 0; i < old; i++)
    if (!is_dead_row(store, &root->named_data.at[i])) {
      list[count] = root->named_data.at[i];
      list[count].segment_index = s.numbers[list[count].segment_index];
      count++;
    }
  for (uint32_t i = 0; i < store->added_count; i++)
    if (goes_to(store, i, external)) {
      external->image.segments[s.kept] = store->added[i].bytes;
      list[count++] = (pph_ptd_named_data){.key = store->added[i].key,
                                           .segment_index = s.kept++};
    }
  root->named_data.at = list;
  root->named_data.count = count;
  return PPH_OK;
}

/* What else than named data the program has in segments. */
static void keep_others(const pph_pte_program *program, segments *s) {
  if (program->constant_segment &&
      program->constant_segment->segment_index < s->image->segment_count)
    s->leaves[program->constant_segment->segment_index] = false;
  for (uint32_t i = 0; i < program->mutable_data_segments.count; i++)
    s->leaves[program->mutable_data_segments.at[i].segment_index] = false;
  for (uint32_t i = 0; i < program->execution_plan.count; i++) {
    const pph_pte_plan *plan = &program->execution_plan.at[i];
    for (uint32_t k = 0; k < plan->delegates.count; k++)
      if (plan->delegates.at[k].processed->location == PPH_PTE_IN_SEGMENT)
        s->leaves[plan->delegates.at[k].processed->index] = false;
  }
}

static void renumber_others(const pph_pte_program *program,
                            const segments *s, uint32_t old_count) {
  if (program->constant_segment &&
      program->constant_segment->segment_index < old_count)
    program->constant_segment->segment_index =
        s->numbers[program->constant_segment->segment_index];
  for (uint32_t i = 0; i < program->mutable_data_segments.count; i++) {
    pph_pte_subsegment *part = &program->mutable_data_segments.at[i];
    part->segment_index = s->numbers[part->segment_index];
  }
  for (uint32_t i = 0; i < program->execution_plan.count; i++) {
    const pph_pte_plan *plan = &program->execution_plan.at[i];
    for (uint32_t k = 0; k < plan->delegates.count; k++) {
      pph_pte_data_reference *place = plan->delegates.at[k].processed;
      if (place->location == PPH_PTE_IN_SEGMENT)
        place->index = s->numbers[place->index];
    }
  }
}

static pph_status list_program(pph_constant_store *store, segments *s,
                               uint32_t stays, pph_error *error) {
  pph_pte_program *program = store->pte->program;
  uint32_t count = 0;
  pph_pte_named_data *list = pph_arena_allocate(
      &store->pte->arena, (size_t)stays + s->added + 1, sizeof *list);
  if (!list)
    return pph_fail_memory(error);
  for (uint32_t i = 0; i < program->named_data.count; i++)
    if (!is_dead(store, program->named_data.at[i].key)) {
      list[count] = program->named_data.at[i];
      list[count].segment_index = s->numbers[list[count].segment_index];
      count++;
    }
  for (uint32_t i = 0; i < store->added_count; i++)
    if (goes_to(store, i, NULL)) {
      s->image->segments[s->kept] = store->added[i].bytes;
      list[count++] =
          (pph_pte_named_data){store->added[i].key, s->kept++};
    }
  program->named_data.at = list;
  program->named_data.count = count;
  return PPH_OK;
}

static pph_status finish_program(pph_constant_store *store,
                                 pph_error *error) {
  pph_pte_program *program = store->pte->program;
  segments s;
  uint32_t stays = 0, old_count = store->pte->image.segment_count;
  PPH_TRY(open_segments(store, NULL, &store->pte->image, &s, error));
  for (uint32_t i = 0; i < program->named_data.count; i++) {
    bool dead = is_dead(store, program->named_data.at[i].key);
    s.leaves[program->named_data.at[i].segment_index] |= dead;
    stays += !dead;
  }
  for (uint32_t i = 0; i < program->named_data.count; i++)
    if (!is_dead(store, program->named_data.at[i].key))
      s.leaves[program->named_data.at[i].segment_index] = false;
  for (uint32_t i = 0; i < store->left_count; i++)
    s.leaves[store->left[i]] = true;
  keep_others(program, &s);
  if (!store->left_count && stays == program->named_data.count && !s.added)
    return PPH_OK;
  PPH_TRY(renumber(store, &s, &program->segments.at, error));
  program->segments.count = store->pte->image.segment_count;
  renumber_others(program, &s, old_count);
  return list_program(store, &s, stays, error);
}

pph_status pph_constant_store_finish(pph_constant_store *store,
                                     bool *external_changed,
                                     pph_error *error) {
  for (uint32_t i = 0; i < store->pte->external_count; i++)
    PPH_TRY(finish_external(store, &store->pte->externals[i],
                            &external_changed[i], error));
  return finish_program(store, error);
}
