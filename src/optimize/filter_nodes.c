#include "optimize/filter_nodes.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "optimize/xnn_conv.h"

enum { MOST = PPH_FORM_MOST_POINTS };

typedef struct builder {
  pph_delegate_edit *edit;
  const pph_payload_conv *conv; /* as it was */
  const pph_filter_plan *plan;
  const pph_payload_min_max *range;
  const float *weight;
  const pph_pte_external *external; /* the weight's file */
  uint32_t source;       /* the input as rows */
  uint32_t points[MOST]; /* sums over channels */
} builder;

static pph_payload_dims find_tile_dims(const builder *b, uint32_t rows,
                                       uint32_t columns, uint32_t channels) {
  return (pph_payload_dims){
      4, {b->plan->view.batch, rows, columns, channels}};
}

static uint32_t count_points(const builder *b) {
  return pph_filter_form_count(b->plan->form);
}

/* What a line of the input was reshaped to for the convolution before, if it
   was. */
static bool find_reshape(const pph_payload_export *x, uint32_t input,
                         const pph_payload_dims *dims, uint32_t *id) {
  for (uint32_t i = x->node_count; i--;) {
    const pph_payload_reshape *table = x->nodes[i].xnode_union.value;
    if (x->nodes[i].xnode_union.type == PPH_PAYLOAD_RESHAPE &&
        table->input_id == input && table->num_dims == dims->count &&
        !memcmp(table->new_shape.at, dims->at,
                dims->count * sizeof *dims->at)) {
      *id = table->output_id;
      return true;
    }
  }
  return false;
}

static pph_status put_source(builder *b) {
  const pph_filter_view *view = &b->plan->view;
  pph_payload_export *x = &b->edit->x;
  const pph_payload_dims dims =
      find_tile_dims(b, view->rows, view->columns, view->in_channels);
  b->source = b->conv->input1_id;
  x->like = &x->values[b->source];
  if (!view->is_line || find_reshape(x, b->source, &dims, &b->source))
    return PPH_OK;
  return pph_payload_put_reshape(x, &dims, &b->source);
}

/* A filter that does the same to every channel. */
static pph_status add_repeated(builder *b, const double *taps, uint32_t height,
                               uint32_t width, uint32_t channels,
                               uint32_t *id) {
  pph_delegate_edit *edit = b->edit;
  const uint32_t count = height * width;
  pph_made_constant made = {.like = &edit->x.values[b->conv->filter_id],
                            .external = b->external,
                            .dims = {4, {1, height, width, channels}}};
  float *to = pph_arena_allocate(edit->x.arena, (size_t)count * channels,
                                 sizeof *to);
  if (!to)
    return pph_fail_memory(edit->x.error);
  for (uint32_t t = 0; t < count; t++)
    for (uint32_t c = 0; c < channels; c++)
      to[(size_t)t * channels + c] = (float)taps[t];
  made.bytes = (pph_pte_bytes){(const uint8_t *)to,
                               (size_t)count * channels * sizeof *to};
  return pph_delegate_edit_add_constant(edit, &made, id);
}

static bool is_same_filter(const pph_delegate_edit *edit, uint32_t a,
                           uint32_t b) {
  const pph_payload_tensor *first = pph_edit_tensor(edit, a);
  const pph_payload_tensor *second = pph_edit_tensor(edit, b);
  return first->constant_buffer_idx == second->constant_buffer_idx;
}

/* A depthwise convolution, or the one there is that does the same. */
static pph_status put_depthwise(builder *b, pph_payload_conv *conv,
                                const pph_payload_dims *dims,
                                const pph_payload_min_max *range,
                                uint32_t *id) {
  pph_payload_export *x = &b->edit->x;
  for (uint32_t i = x->node_count; i--;) {
    const pph_payload_conv *other = x->nodes[i].xnode_union.value;
    pph_payload_conv same = *conv;
    if (x->nodes[i].xnode_union.type != PPH_PAYLOAD_DEPTHWISE || range ||
        other->input1_id != conv->input1_id ||
        !is_same_filter(b->edit, other->filter_id, conv->filter_id))
      continue;
    same.filter_id = other->filter_id;
    same.output_id = other->output_id;
    if (memcmp(&same, other, sizeof same))
      continue;
    *id = other->output_id;
    return PPH_OK;
  }
  x->like = &x->values[b->conv->output_id];
  PPH_TRY(pph_payload_put_value(x, dims, id));
  conv->output_id = *id;
  return pph_payload_put_node(x, PPH_PAYLOAD_DEPTHWISE, conv, sizeof *conv,
                              range);
}

/* Rows to a point of each tile. */
static pph_status put_transform(builder *b, uint32_t point, uint32_t *id) {
  const pph_filter_plan *plan = b->plan;
  const pph_filter_view *view = &plan->view;
  pph_filter_taps from = pph_filter_find_taps(plan, point);
  double taps[MOST];
  pph_payload_conv conv = {.padding_top = from.pad_top,
                           .padding_bottom = from.pad_bottom,
                           .kernel_height = from.count,
                           .kernel_width = 1,
                           .subsampling_height = plan->form->outputs,
                           .subsampling_width = 1,
                           .dilation_height = from.step,
                           .dilation_width = 1,
                           .group_input_channels = 1,
                           .group_output_channels = 1,
                           .groups = view->in_channels,
                           .input1_id = b->source,
                           .bias_id = PPH_PAYLOAD_NONE};
  const pph_payload_dims dims =
      find_tile_dims(b, plan->tiles + plan->groups - 1, view->columns,
                     view->in_channels);
  for (uint32_t i = 0; i < from.count; i++)
    taps[i] = plan->matrices.input[point][from.first + i * from.step];
  PPH_TRY(add_repeated(b, taps, from.count, 1, view->in_channels,
                       &conv.filter_id));
  return put_depthwise(b, &conv, &dims, NULL, id);
}

/* Weights [out][group][column][in] of a point; the old ones are
   [out][row][column][in]. */
static void fill_point(const builder *b, uint32_t point, float *to) {
  const pph_filter_plan *plan = b->plan;
  const uint32_t taps = plan->view.taps, of_group = plan->form->taps;
  const size_t row = (size_t)b->conv->kernel_width * plan->view.in_channels;
  /* A line's taps are columns: one row each, of one column. */
  const size_t size = plan->view.is_line ? plan->view.in_channels : row;
  const double *weights = plan->matrices.weight[point];
  for (uint32_t out = 0; out < plan->view.out_channels; out++)
    for (uint32_t g = 0; g < plan->groups; g++)
      for (size_t i = 0; i < size; i++) {
        double sum = 0;
        for (uint32_t t = 0; t < of_group && g * of_group + t < taps; t++)
          sum += weights[t] *
                 b->weight[((size_t)out * taps + g * of_group + t) * size + i];
        *to++ = (float)sum;
      }
}

static pph_status make_filter(builder *b, uint32_t point, uint32_t *id) {
  const pph_filter_plan *plan = b->plan;
  pph_delegate_edit *edit = b->edit;
  pph_made_constant made = {
      .like = &edit->x.values[b->conv->filter_id],
      .external = b->external,
      .dims = {4, {plan->view.out_channels, plan->groups,
                   plan->view.column_taps, plan->view.in_channels}}};
  const pph_shape shape = {4, {made.dims.at[0], made.dims.at[1],
                               made.dims.at[2], made.dims.at[3]}};
  size_t count;
  if (!pph_shape_count(&shape, &count))
    return pph_fail_memory(edit->x.error);
  float *to = pph_arena_allocate(edit->x.arena, count, sizeof *to);
  if (!to)
    return pph_fail_memory(edit->x.error);
  fill_point(b, point, to);
  made.bytes = (pph_pte_bytes){(const uint8_t *)to, count * sizeof *to};
  return pph_delegate_edit_add_constant(edit, &made, id);
}

/* Points whose sums reach the outputs as they are take the bias along: 1 is
   in all outputs. */
static bool takes_bias(const builder *b, uint32_t point) {
  return b->plan->form->pairs < 2 && b->plan->form->points[point] == 1 &&
         point + 1 < count_points(b);
}

/* Sums over channels, and taps along columns, of one point of all tiles. */
static pph_status put_point(builder *b, uint32_t point) {
  const pph_filter_plan *plan = b->plan;
  const pph_filter_view *view = &plan->view;
  pph_payload_export *x = &b->edit->x;
  pph_payload_conv conv = *b->conv;
  conv.padding_top = conv.padding_bottom = 0;
  conv.kernel_height = plan->groups;
  if (view->is_line) {
    conv.padding_left = conv.padding_right = 0;
    conv.kernel_width = conv.dilation_width = conv.dilation_height = 1;
  }
  conv.adjustment_height = conv.adjustment_width = 0;
  if (!takes_bias(b, point))
    conv.bias_id = PPH_PAYLOAD_NONE;
  PPH_TRY(put_transform(b, point, &conv.input1_id));
  PPH_TRY(make_filter(b, point, &conv.filter_id));
  const pph_payload_dims dims = find_tile_dims(
      b, plan->tiles, view->out_columns, view->out_channels);
  x->like = &x->values[b->conv->output_id];
  PPH_TRY(pph_payload_put_value(x, &dims, &b->points[point]));
  conv.output_id = b->points[point];
  return pph_payload_put_node(x, PPH_PAYLOAD_CONV, &conv, sizeof conv, NULL);
}

/* Sum and difference of p and -p, where p is 1: what each output is made of. */
typedef struct pair_sums {
  uint32_t even, odd;
} pair_sums;

static pph_status put_pair(builder *b, pair_sums *sums) {
  const pph_filter_form *form = b->plan->form;
  sums->even = sums->odd = PPH_PAYLOAD_NONE;
  if (!form->pairs)
    return PPH_OK;
  sums->even = sums->odd = b->points[form->singles];
  uint32_t other = b->points[form->singles + 1];
  PPH_TRY(pph_payload_put_binary(&b->edit->x, PPH_PAYLOAD_ADD, other, NULL,
                                 &sums->even));
  return pph_payload_put_binary(&b->edit->x, PPH_PAYLOAD_SUBTRACT, other, NULL,
                                &sums->odd);
}

/* The output of row `row` of A by sums: all factors are 1 or -1. */
static pph_status put_sum(builder *b, const pair_sums *sums, uint32_t row,
                          uint32_t *id) {
  const pph_filter_form *form = b->plan->form;
  uint32_t terms[MOST], count = 0, last = count_points(b) - 1;
  if (form->pairs)
    terms[count++] = row % 2 ? sums->odd : sums->even;
  for (uint32_t j = 0; j <= last; j++)
    if ((j < form->singles || j == last) &&
        b->plan->matrices.output[row][j] != 0)
      terms[count++] = b->points[j];
  *id = terms[0];
  for (uint32_t i = 1; i < count; i++)
    PPH_TRY(pph_payload_put_binary(&b->edit->x, PPH_PAYLOAD_ADD, terms[i],
                                   i + 1 == count ? b->range : NULL, id));
  if (count == 1 && b->range) /* a clamp of its own */
    PPH_TRY(pph_payload_put_unary(&b->edit->x, PPH_PAYLOAD_CLAMP, b->range,
                                  id));
  return PPH_OK;
}

static pph_status put_sums(builder *b, uint32_t *rows) {
  pair_sums sums;
  PPH_TRY(put_pair(b, &sums));
  for (uint32_t i = 0; i < b->plan->form->outputs; i++)
    PPH_TRY(put_sum(b, &sums, i, &rows[i]));
  return PPH_OK;
}

/* The output of row `row` of A: points side by side in `joined`, weighed by a
   depthwise convolution, and those of 0 and infinity. */
static pph_status put_weighed(builder *b, uint32_t joined, uint32_t row,
                              uint32_t *id) {
  const pph_filter_plan *plan = b->plan;
  const pph_filter_view *view = &plan->view;
  const pph_filter_form *form = plan->form;
  uint32_t width = 2 * form->pairs, last = count_points(b) - 1;
  uint32_t single = form->singles && row == 0 ? 0
                    : row + 1 == form->outputs ? last
                                               : MOST;
  pph_payload_conv conv = {.kernel_height = 1,
                           .kernel_width = width,
                           .subsampling_height = 1,
                           .subsampling_width = 1,
                           .dilation_height = 1,
                           .dilation_width = view->out_columns,
                           .group_input_channels = 1,
                           .group_output_channels = 1,
                           .groups = view->out_channels,
                           .input1_id = joined,
                           .bias_id = b->conv->bias_id};
  const pph_payload_dims dims = find_tile_dims(
      b, plan->tiles, view->out_columns, view->out_channels);
  PPH_TRY(add_repeated(b, &plan->matrices.output[row][form->singles], 1, width,
                       view->out_channels, &conv.filter_id));
  PPH_TRY(put_depthwise(b, &conv, &dims, single == MOST ? b->range : NULL,
                        id));
  if (single == MOST)
    return PPH_OK;
  return pph_payload_put_binary(&b->edit->x, PPH_PAYLOAD_ADD,
                                b->points[single], b->range, id);
}

static pph_status put_weighed_rows(builder *b, uint32_t *rows) {
  const pph_filter_form *form = b->plan->form;
  uint32_t pairs[MOST], joined;
  memcpy(pairs, b->points + form->singles, 2 * form->pairs * sizeof *pairs);
  PPH_TRY(pph_payload_put_concat(&b->edit->x, pairs, 2 * form->pairs, 2,
                                 &joined));
  for (uint32_t i = 0; i < form->outputs; i++)
    PPH_TRY(put_weighed(b, joined, i, &rows[i]));
  return PPH_OK;
}

/* Tiles' rows one after the other, without those that are over. */
static pph_status put_output(builder *b, uint32_t *rows) {
  const pph_filter_plan *plan = b->plan;
  const pph_filter_view *view = &plan->view;
  pph_payload_export *x = &b->edit->x;
  const uint32_t outputs = plan->form->outputs, block[2] = {outputs, 1};
  const pph_payload_dims whole =
      pph_payload_dims_of(x, b->conv->output_id), none = {4, {0}};
  const pph_payload_dims sizes = find_tile_dims(
      b, view->out_rows, view->out_columns, view->out_channels);
  uint32_t id;
  PPH_TRY(pph_payload_put_interleaved(x, rows, outputs, block, &id));
  if (plan->tiles * outputs != view->out_rows)
    PPH_TRY(pph_payload_put_slice(x, &none, &sizes, &id));
  PPH_TRY(pph_payload_put_reshape(x, &whole, &id));
  pph_delegate_edit_rename_last(b->edit, b->conv->output_id);
  return PPH_OK;
}

pph_status pph_filter_put_nodes(pph_delegate_edit *edit,
                                const pph_payload_conv *conv,
                                const pph_filter_plan *plan,
                                const pph_payload_min_max *range) {
  builder b = {.edit = edit, .conv = conv, .plan = plan, .range = range};
  uint32_t rows[PPH_FORM_MOST_OUTPUTS];
  PPH_TRY(pph_xnn_conv_read(edit, conv->filter_id, &b.weight, &b.external));
  PPH_TRY(put_source(&b));
  for (uint32_t j = 0; j < count_points(&b); j++)
    PPH_TRY(put_point(&b, j));
  edit->x.like = &edit->x.values[conv->output_id];
  if (plan->form->pairs < 2)
    PPH_TRY(put_sums(&b, rows));
  else
    PPH_TRY(put_weighed_rows(&b, rows));
  return put_output(&b, rows);
}
