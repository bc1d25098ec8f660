/* Between channels and pixels. */
#include <string.h>

#include "base/fail.h"
#include "pte/xnn_export.h"

static const pph_layout LAST = PPH_LAYOUT_CHANNELS_LAST;

/* Rows and columns of a block; one axis is columns. */
static void find_block(const pph_node *node, uint32_t *block) {
  uint32_t count;
  const int64_t *sizes = pph_node_ints(node, PPH_ATTR_BLOCKSIZE, &count);
  block[0] = count == 2 ? (uint32_t)sizes[0] : 1;
  block[1] = count ? (uint32_t)sizes[count - 1] : 1;
}

static bool is_block_major(const pph_node *node) {
  return strcmp(pph_node_text(node, PPH_ATTR_MODE, "DCR"), "DCR") == 0;
}

static pph_status spread_open(pph_payload_export *x, int order,
                              const uint32_t *block, uint32_t *id) {
  const pph_payload_spread how = {.order = order,
                                  .block = {block[0], block[1]}};
  return pph_payload_put_spread(x, &how, id);
}

/* Channels [by][bx][c] to pixels. Within a row of blocks, columns are in place
   already; blocks of one row are all in place. */
static pph_status spread(pph_payload_export *x, const uint32_t *block,
                         uint32_t *id) {
  static const uint32_t perm[] = {0, 2, 1, 3};
  if (x->lengths == PPH_PAYLOAD_ANY)
    return spread_open(x, PPH_PAYLOAD_SPREAD_BLOCKS, block, id);
  pph_payload_dims d = pph_payload_dims_of(x, *id);
  uint32_t channels = d.at[3] / (block[0] * block[1]);
  const pph_payload_dims rows = {
      4, {d.at[0] * d.at[1], d.at[2], block[0], block[1] * channels}};
  const pph_payload_dims last = {
      4,
      {d.at[0], d.at[1] * block[0], d.at[2] * block[1], channels}};
  if (block[0] > 1 && d.at[2] > 1) {
    PPH_TRY(pph_payload_put_reshape(x, &rows, id));
    PPH_TRY(pph_payload_put_transpose(x, perm, id));
  }
  return pph_payload_put_reshape(x, &last, id);
}

/* Channels [c][by][bx] to pixels. */
static pph_status spread_channels(pph_payload_export *x, const uint32_t *block,
                                  uint32_t *id) {
  static const uint32_t perm[] = {0, 3, 1, 4, 2};
  if (x->lengths == PPH_PAYLOAD_ANY)
    return spread_open(x, PPH_PAYLOAD_SPREAD_CHANNELS, block, id);
  pph_payload_dims d = pph_payload_dims_of(x, *id);
  uint32_t channels = d.at[3] / (block[0] * block[1]);
  const pph_payload_dims whole = {
      5, {d.at[0] * d.at[1], d.at[2], channels, block[0], block[1]}};
  const pph_payload_dims last = {
      4,
      {d.at[0], d.at[1] * block[0], d.at[2] * block[1], channels}};
  PPH_TRY(pph_payload_put_reshape(x, &whole, id));
  PPH_TRY(pph_payload_put_transpose(x, perm, id));
  return pph_payload_put_reshape(x, &last, id);
}

/* The phases that a Concat joins before an interleaving that alone reads it,
   when each row of blocks is whole phases; NULL if not. */
static const pph_node *find_phases(const pph_graph *graph,
                                   const pph_node *node) {
  const pph_value *joined = pph_node_find_input(graph, node, 0);
  const pph_node *concat = joined ? joined->producer : NULL;
  uint32_t block[2];
  find_block(node, block);
  if (node->kind != PPH_NODE_DEPTH_TO_SPACE || !is_block_major(node) ||
      block[0] < 2 || joined->uses != 1 || joined->layout != LAST ||
      !concat || concat->kind != PPH_NODE_CONCAT || joined->shape.rank != 4 ||
      pph_node_int(concat, PPH_ATTR_AXIS, 0) != 1)
    return NULL;
  int64_t row = joined->shape.dims[1] / block[0], sum = 0;
  for (uint32_t i = 0; i < concat->input_count; i++) {
    sum += pph_node_find_input(graph, concat, i)->shape.dims[1];
    if (sum > row)
      return NULL;
    sum = sum == row ? 0 : sum;
  }
  return concat;
}

bool pph_payload_joins_phases(const pph_graph *graph, const pph_node *node) {
  const pph_value *value = pph_graph_value(graph, node->outputs[0]);
  return node->kind == PPH_NODE_CONCAT && value->uses == 1 && value->user &&
         find_phases(graph, value->user) == node;
}

/* One row of phases side by side, as lines of pixels. */
static pph_status join_row(pph_payload_export *x, uint32_t *ids,
                           uint32_t count, uint32_t *id) {
  PPH_TRY(pph_payload_put_concat(x, ids, count, 3, id));
  pph_payload_dims d = pph_payload_dims_of(x, *id);
  const pph_payload_dims lines = {
      2, {d.at[0] * d.at[1], d.at[2] * d.at[3]}};
  return pph_payload_put_reshape(x, &lines, id);
}

static uint32_t count_channels(const pph_payload_export *x,
                               const uint32_t *ids, uint32_t count) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < count; i++)
    sum += pph_payload_dims_of(x, ids[i]).at[3];
  return sum;
}

/* Whether each row of blocks is whole values. */
static bool has_whole_rows(const pph_payload_export *x, const uint32_t *ids,
                           uint32_t count, uint32_t row) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    sum += count_channels(x, ids + i, 1);
    if (sum > row)
      return false;
    sum = sum == row ? 0 : sum;
  }
  return true;
}

/* Phases side by side are lines; lines one after the other are the picture:
   each phase is copied in long runs, and no transpose is needed. */
static pph_status interleave_rows(pph_payload_export *x, uint32_t *ids,
                                  uint32_t count, uint32_t row,
                                  const uint32_t *block, uint32_t *id) {
  pph_payload_dims d = pph_payload_dims_of(x, ids[0]);
  const pph_payload_dims whole = {4,
                                  {d.at[0], d.at[1] * block[0],
                                   d.at[2] * block[1], row / block[1]}};
  uint32_t made = 0;
  for (uint32_t first = 0, i = 0; i < count; i++) {
    if (count_channels(x, ids + first, i + 1 - first) < row)
      continue;
    PPH_TRY(join_row(x, ids + first, i + 1 - first, id));
    ids[made++] = *id; /* behind what is still to be read */
    first = i + 1;
  }
  PPH_TRY(pph_payload_put_concat(x, ids, made, 1, id));
  return pph_payload_put_reshape(x, &whole, id);
}

pph_status pph_payload_put_interleaved(pph_payload_export *x, uint32_t *ids,
                                       uint32_t count, const uint32_t *block,
                                       uint32_t *id) {
  uint32_t row = count_channels(x, ids, count) / block[0];
  if (block[0] > 1 && count > 1 && x->lengths != PPH_PAYLOAD_ANY &&
      has_whole_rows(x, ids, count, row))
    return interleave_rows(x, ids, count, row, block, id);
  PPH_TRY(pph_payload_put_concat(x, ids, count, 3, id));
  return spread(x, block, id);
}

static pph_status interleave(pph_payload_export *x, const pph_node *concat,
                             const uint32_t *block) {
  const pph_node *node = x->node;
  uint32_t *ids = pph_arena_allocate(x->arena, concat->input_count,
                                     sizeof *ids);
  uint32_t id;
  if (!ids)
    return pph_fail_memory(x->error);
  x->node = concat;
  for (uint32_t i = 0; i < concat->input_count; i++)
    PPH_TRY(pph_payload_read_input(x, i, 4, LAST, &ids[i]));
  x->node = node;
  PPH_TRY(pph_payload_put_interleaved(x, ids, concat->input_count, block, &id));
  return pph_payload_write_output(x, 0, LAST, id);
}

static pph_status read_pixels(pph_payload_export *x, uint32_t *id) {
  int32_t rank = pph_payload_input_value(x, 0)->shape.rank;
  if (rank != 3 && rank != 4)
    return pph_payload_refuse(x, "a rank other than 3 and 4");
  return pph_payload_read_input(x, 0, rank, LAST, id);
}

pph_status pph_payload_export_depth_to_space(pph_payload_export *x) {
  const pph_node *phases = find_phases(x->graph, x->node);
  uint32_t block[2], id;
  find_block(x->node, block);
  if (phases)
    return interleave(x, phases, block);
  PPH_TRY(read_pixels(x, &id));
  if (is_block_major(x->node))
    PPH_TRY(spread(x, block, &id));
  else
    PPH_TRY(spread_channels(x, block, &id));
  return pph_payload_write_output(x, 0, LAST, id);
}

/* Pixels to channels [by][bx][c]. */
pph_status pph_payload_export_space_to_depth(pph_payload_export *x) {
  static const uint32_t perm[] = {0, 2, 1, 3};
  uint32_t block[2], id;
  find_block(x->node, block);
  PPH_TRY(read_pixels(x, &id));
  pph_payload_dims d = pph_payload_dims_of(x, id);
  const pph_payload_dims rows = {
      4,
      {d.at[0] * d.at[1] / block[0], block[0], d.at[2] / block[1],
       block[1] * d.at[3]}};
  const pph_payload_dims last = {
      4,
      {d.at[0], d.at[1] / block[0], d.at[2] / block[1],
       block[0] * block[1] * d.at[3]}};
  if (block[0] > 1) {
    PPH_TRY(pph_payload_put_reshape(x, &rows, &id));
    PPH_TRY(pph_payload_put_transpose(x, perm, &id));
  }
  PPH_TRY(pph_payload_put_reshape(x, &last, &id));
  return pph_payload_write_output(x, 0, LAST, id);
}
