/* Nearest upsampling: a convolution behind it becomes a transposed convolution
   of few pixels, whose phases have fewer taps; else pixels are repeated side by
   side, and lines one after the other. */
#include <stdio.h>

#include "base/checked.h"
#include "base/fail.h"
#include "optimize/delegate_edit.h"
#include "optimize/nearest.h"
#include "optimize/xnn_conv.h"

/* The convolution that alone reads the result and gains by being folded. */
static const pph_payload_node *find_conv(const pph_delegate_edit *edit,
                                         const pph_payload_resize *table,
                                         const uint32_t *times) {
  const pph_payload_node *user =
      pph_delegate_edit_find_user(edit, table->output_id);
  if (!user || user->xnode_union.type != PPH_PAYLOAD_CONV ||
      pph_nearest_axis(table) != 1)
    return NULL;
  const pph_payload_conv *conv = user->xnode_union.value;
  const pph_payload_tensor *filter = pph_edit_tensor(edit, conv->filter_id);
  uint64_t taps = (uint64_t)conv->kernel_height * conv->kernel_width;
  uint64_t fewer = (pph_divide_up(conv->kernel_height - 1, times[0]) + 1) *
                   (pph_divide_up(conv->kernel_width - 1, times[1]) + 1);
  bool fits = conv->subsampling_height == 1 && conv->subsampling_width == 1 &&
              conv->dilation_height == 1 && conv->dilation_width == 1 &&
              conv->padding_top < conv->kernel_height &&
              conv->padding_bottom < conv->kernel_height &&
              conv->padding_left < conv->kernel_width &&
              conv->padding_right < conv->kernel_width &&
              filter->datatype == PPH_PAYLOAD_F32 &&
              filter->constant_buffer_idx && filter->num_dims == 4 &&
              filter->dims.at[1] == conv->kernel_height &&
              filter->dims.at[2] == conv->kernel_width &&
              conv->input1_id == table->output_id;
  return fits && fewer < taps ? user : NULL;
}

/* Tap t of the new kernel is the sum of old taps K-1-t and the next `times`,
   those that there are: all that read one pixel's copies. */
static void fold_taps(const pph_payload_dims *old, const uint32_t *times,
                      const float *from, const pph_payload_dims *dims,
                      float *to) {
  size_t depth = old->at[3], count = 0;
  for (uint32_t row = 0; row < dims->at[0]; row++)
    for (uint32_t v = 0; v < dims->at[1]; v++)
      for (uint32_t u = 0; u < dims->at[2]; u++)
        for (size_t i = 0; i < depth; i++) {
          double sum = 0;
          for (uint32_t y = 0; y < times[0]; y++)
            for (uint32_t x = 0; x < times[1]; x++) {
              int64_t ky = (int64_t)old->at[1] - 1 - v + y;
              int64_t kx = (int64_t)old->at[2] - 1 - u + x;
              if (ky >= 0 && ky < old->at[1] && kx >= 0 && kx < old->at[2])
                sum += from[((row * old->at[1] + (size_t)ky) * old->at[2] +
                             (size_t)kx) * depth + i];
            }
          to[count++] = (float)sum;
        }
}

static pph_status fold_filter(pph_delegate_edit *edit,
                              const pph_payload_conv *conv,
                              const uint32_t *times, uint32_t *id) {
  pph_payload_dims old = pph_payload_dims_of(&edit->x, conv->filter_id);
  pph_made_constant made = {.like = &edit->x.values[conv->filter_id],
                            .dims = old};
  size_t count;
  const float *from;
  for (int i = 0; i < 2; i++)
    made.dims.at[1 + i] += times[i] - 1;
  pph_shape shape = {4, {made.dims.at[0], made.dims.at[1], made.dims.at[2],
                         made.dims.at[3]}};
  if (!pph_shape_count(&shape, &count))
    return pph_fail_memory(edit->x.error);
  PPH_TRY(pph_xnn_conv_read(edit, conv->filter_id, &from, &made.external));
  float *to = pph_arena_allocate(edit->x.arena, count, sizeof *to);
  if (!to)
    return pph_fail_memory(edit->x.error);
  fold_taps(&old, times, from, &made.dims, to);
  made.bytes = (pph_pte_bytes){(const uint8_t *)to, count * sizeof *to};
  return pph_delegate_edit_add_constant(edit, &made, id);
}

static pph_status fold(pph_delegate_edit *edit,
                       const pph_payload_resize *table,
                       const pph_payload_node *user, const uint32_t *times) {
  const pph_payload_conv *old = user->xnode_union.value;
  pph_payload_conv conv = *old;
  PPH_TRY(fold_filter(edit, old, times, &conv.filter_id));
  conv.input1_id = table->input_id;
  conv.padding_top = old->kernel_height - 1 - old->padding_top;
  conv.padding_bottom = old->kernel_height - 1 - old->padding_bottom;
  conv.padding_left = old->kernel_width - 1 - old->padding_left;
  conv.padding_right = old->kernel_width - 1 - old->padding_right;
  conv.kernel_height += times[0] - 1;
  conv.kernel_width += times[1] - 1;
  conv.subsampling_height = times[0];
  conv.subsampling_width = times[1];
  PPH_TRY(pph_delegate_edit_absorb(edit, old->output_id));
  return pph_payload_put_node(&edit->x, PPH_PAYLOAD_CONV_TRANSPOSE, &conv,
                              sizeof conv, user->output_min_max);
}

static pph_status repeat(pph_delegate_edit *edit,
                         const pph_payload_resize *table,
                         const uint32_t *times) {
  pph_payload_export *x = &edit->x;
  uint32_t axis = pph_nearest_axis(table), id = table->input_id;
  pph_payload_dims d = pph_payload_dims_of(x, id);
  uint32_t lead = 1, inner = 1, pixels;
  for (uint32_t i = 0; i < axis; i++)
    lead *= d.at[i];
  for (uint32_t i = axis + 2; i < d.count; i++)
    inner *= d.at[i];
  pixels = lead * d.at[axis] * d.at[axis + 1];
  const pph_payload_dims apart = {2, {pixels, inner}};
  const pph_payload_dims lines = {
      2, {lead * d.at[axis], d.at[axis + 1] * times[1] * inner}};
  x->like = &x->values[table->output_id];
  pph_payload_dims whole = pph_payload_dims_of(x, table->output_id);
  PPH_TRY(pph_payload_put_reshape(x, &apart, &id));
  PPH_TRY(pph_payload_put_repeat(x, times[1], 1, &id));
  PPH_TRY(pph_payload_put_reshape(x, &lines, &id));
  PPH_TRY(pph_payload_put_repeat(x, times[0], 1, &id));
  uint32_t before = x->node_count;
  PPH_TRY(pph_payload_put_reshape(x, &whole, &id));
  if (x->node_count == before) { /* as it was: a copy by another name */
    static const uint32_t same[] = {0, 1, 2, 3, 4, 5};
    PPH_TRY(pph_payload_put_transpose(x, same, &id));
  }
  pph_delegate_edit_rename_last(edit, table->output_id);
  return PPH_OK;
}

static pph_status visit(pph_delegate_edit *edit, const pph_payload_node *node,
                        bool *taken) {
  const pph_payload_resize *table = node->xnode_union.value;
  if (!pph_nearest_is(node))
    return PPH_OK;
  pph_payload_dims d = pph_payload_dims_of(&edit->x, table->input_id);
  uint32_t axis = pph_nearest_axis(table);
  const uint32_t times[2] = {table->new_height / d.at[axis],
                             table->new_width / d.at[axis + 1]};
  const pph_payload_node *conv =
      edit->options->never ? NULL : find_conv(edit, table, times);
  char text[96];
  *taken = true;
  edit->changes++;
  snprintf(text, sizeof text, "nearest upsampling by %ux%u: %s", times[0],
           times[1],
           conv ? "folded into the convolution behind it"
                : "pixels and lines repeated by concatenation");
  pph_delegate_edit_tell(edit, text);
  return conv ? fold(edit, table, conv, times) : repeat(edit, table, times);
}

pph_status pph_optimize_nearest(pph_delegate_edit *edit) {
  return pph_delegate_edit_walk(edit, visit);
}
