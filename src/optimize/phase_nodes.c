#include "optimize/phase_nodes.h"

#include "base/checked.h"
#include "base/fail.h"

static void set_axes(const pph_payload_conv *conv,
                     const pph_payload_tensor *input, pph_axis *axes) {
  axes[0] = (pph_axis){.input = input->dims.at[1],
                       .kernel = conv->kernel_height,
                       .stride = conv->subsampling_height,
                       .dilation = conv->dilation_height,
                       .pad_begin = conv->padding_top,
                       .pad_end = conv->padding_bottom,
                       .output_padding = conv->adjustment_height};
  axes[1] = (pph_axis){.input = input->dims.at[2],
                       .kernel = conv->kernel_width,
                       .stride = conv->subsampling_width,
                       .dilation = conv->dilation_width,
                       .pad_begin = conv->padding_left,
                       .pad_end = conv->padding_right,
                       .output_padding = conv->adjustment_width};
}

/* Exporters give what is quantized at run time the dimensions before its
   transpose; those of what it is made from are right. */
static const pph_payload_tensor *find_input(const pph_delegate_edit *edit,
                                            uint32_t id) {
  const pph_payload_tensor *tensor = pph_edit_tensor(edit, id);
  for (uint32_t i = edit->x.node_count;
       tensor->datatype == PPH_PAYLOAD_QD8 && i--;) {
    const pph_payload_unary *convert = edit->x.nodes[i].xnode_union.value;
    if (edit->x.nodes[i].xnode_union.type == PPH_PAYLOAD_CONVERT &&
        convert->output_id == id)
      return pph_edit_tensor(edit, convert->input_id);
  }
  return tensor;
}

const char *pph_phase_open_window(const pph_delegate_edit *edit,
                                  const pph_payload_conv *conv,
                                  pph_window *window) {
  const pph_payload_tensor *input = find_input(edit, conv->input1_id);
  const pph_payload_tensor *output = pph_edit_tensor(edit, conv->output_id);
  const pph_payload_tensor *filter = pph_edit_tensor(edit, conv->filter_id);
  int64_t inner = conv->group_input_channels;
  int64_t outer = conv->group_output_channels, group = conv->groups;
  pph_axis axes[2];
  if (input->num_dims != 4 || output->num_dims != 4 || filter->num_dims != 4)
    return "its values have other than 4 dimensions";
  if (inner < 1 || outer < 1 || group < 1 ||
      input->dims.at[3] != inner * group ||
      output->dims.at[3] != outer * group ||
      filter->dims.at[0] != outer * group || filter->dims.at[3] != inner ||
      filter->dims.at[1] != conv->kernel_height ||
      filter->dims.at[2] != conv->kernel_width)
    return "its values have other channels than it says";
  set_axes(conv, input, axes);
  *window = (pph_window){.axes = 2,
                         .group = group,
                         .in_channels = inner * group,
                         .out_channels = outer * group,
                         .batch = input->dims.at[0]};
  for (uint32_t i = 0; i < 2; i++) {
    if (pph_axis_resolve_transposed(&axes[i], PPH_AUTO_PAD_NOTSET, -1, NULL) !=
            PPH_OK ||
        axes[i].input < 1 || axes[i].output < 1 ||
        axes[i].output != output->dims.at[1 + i])
      return "its output has another size than its numbers give";
    pph_window_set_axis(window, i, &axes[i]);
    if (axes[i].stride > PPH_POLYPHASE_MAX_PHASES)
      return "it has more than 4096 phases";
  }
  if (window->batch < 1)
    return "its input is empty";
  if (window->stride[0] * window->stride[1] >
      (group > 1 ? PPH_POLYPHASE_MAX_CONVS : PPH_POLYPHASE_MAX_PHASES))
    return "it has too many phases";
  return NULL;
}

static bool trims(const pph_polyphase_plan *plan) {
  return plan->axes[0].frame.trim_begin || plan->axes[0].frame.trim_end ||
         plan->axes[1].frame.trim_begin || plan->axes[1].frame.trim_end;
}

const char *pph_phase_find_form_obstacle(const pph_delegate_edit *edit,
                                         const pph_payload_conv *conv,
                                         const pph_polyphase_plan *plan) {
  const pph_payload_tensor *input = pph_edit_tensor(edit, conv->input1_id);
  bool interleaves_width =
      plan->axes[1].frame.stride > 1 || plan->axes[1].frame.length > 1;
  uint32_t position = 0;
  pph_phase_block block;
  bool crops = false;
  while (pph_polyphase_plan_next(plan, &position, &block)) {
    pph_phase_window w = pph_phase_find_window(plan, &block);
    for (int i = 0; i < 2; i++)
      crops |= w.pad_begin[i] < 0 || w.pad_end[i] < 0;
  }
  if (crops && input->datatype == PPH_PAYLOAD_QD8)
    return "its input is quantized as it runs, and would have to be cropped";
  /* A reshape infers one length, a slice none. */
  if (edit->is_dynamic && (crops || trims(plan) || plan->window.batch > 1 ||
                           interleaves_width))
    return "its sizes may change from run to run, and XNNPACK infers only one";
  return NULL;
}

/* Rows and columns off a value; rows are axis `axis`. */
static pph_status cut(pph_delegate_edit *edit, uint32_t axis,
                      const int64_t *begin, const int64_t *end, uint32_t *id) {
  pph_payload_dims sizes = pph_payload_dims_of(&edit->x, *id);
  pph_payload_dims offsets = {4, {0}};
  if (begin[0] == 0 && begin[1] == 0 && end[0] == 0 && end[1] == 0)
    return PPH_OK;
  edit->x.like = &edit->x.values[*id];
  for (int i = 0; i < 2; i++) {
    offsets.at[axis + i] = (uint32_t)begin[i];
    sizes.at[axis + i] -= (uint32_t)(begin[i] + end[i]);
  }
  return pph_payload_put_slice(&edit->x, &offsets, &sizes, id);
}

static pph_status put_conv(pph_delegate_edit *edit,
                           const pph_phase_source *source,
                           const pph_phase_block *block,
                           const pph_payload_min_max *range, uint32_t *id) {
  const pph_payload_conv *old = source->conv;
  const pph_polyphase_plan *plan = source->plan;
  pph_phase_window w = pph_phase_find_window(plan, block);
  uint32_t rows = (uint32_t)(block->count[0] * block->count[1] *
                             plan->window.out_channels);
  pph_payload_conv conv = {
      .padding_top = (uint32_t)pph_max_i64(w.pad_begin[0], 0),
      .padding_right = (uint32_t)pph_max_i64(w.pad_end[1], 0),
      .padding_bottom = (uint32_t)pph_max_i64(w.pad_end[0], 0),
      .padding_left = (uint32_t)pph_max_i64(w.pad_begin[1], 0),
      .kernel_height = (uint32_t)w.taps[0],
      .kernel_width = (uint32_t)w.taps[1],
      .subsampling_height = 1,
      .subsampling_width = 1,
      .dilation_height = (uint32_t)w.step[0],
      .dilation_width = (uint32_t)w.step[1],
      .group_input_channels = old->group_input_channels,
      .group_output_channels = rows / old->groups,
      .groups = old->groups,
      .input1_id = old->input1_id,
      .flags = old->flags};
  const int64_t begin[2] = {pph_max_i64(-w.pad_begin[0], 0),
                            pph_max_i64(-w.pad_begin[1], 0)};
  const int64_t end[2] = {pph_max_i64(-w.pad_end[0], 0),
                          pph_max_i64(-w.pad_end[1], 0)};
  const pph_payload_dims dims = {4,
                                 {(uint32_t)plan->window.batch,
                                  (uint32_t)plan->axes[0].frame.length,
                                  (uint32_t)plan->axes[1].frame.length, rows}};
  PPH_TRY(cut(edit, 1, begin, end, &conv.input1_id));
  PPH_TRY(pph_phase_make_filter(edit, source, block, &conv.filter_id));
  PPH_TRY(pph_phase_make_bias(edit, source, block, &conv.bias_id));
  edit->x.like = &edit->x.values[old->output_id];
  PPH_TRY(pph_payload_put_value(&edit->x, &dims, id));
  conv.output_id = *id;
  return pph_payload_put_node(
      &edit->x, source->depthwise ? PPH_PAYLOAD_DEPTHWISE : PPH_PAYLOAD_CONV,
      &conv, sizeof conv, range);
}

/* Reshapes made since `first` follow the rows at run time. */
static pph_status infer_rows(pph_delegate_edit *edit, uint32_t first) {
  for (uint32_t i = first; i < edit->x.node_count; i++) {
    pph_payload_reshape *table = edit->x.nodes[i].xnode_union.value;
    if (edit->x.nodes[i].xnode_union.type != PPH_PAYLOAD_RESHAPE)
      continue;
    uint32_t *shape = pph_arena_allocate(edit->x.arena, table->num_dims,
                                         sizeof *shape);
    if (!shape)
      return pph_fail_memory(edit->x.error);
    for (uint32_t k = 0; k < table->num_dims; k++)
      shape[k] = k == 1 ? 0 : table->new_shape.at[k];
    table->new_shape.at = shape;
  }
  return PPH_OK;
}

static pph_status put_convs(pph_delegate_edit *edit,
                            const pph_phase_source *source,
                            const pph_payload_min_max *range, uint32_t **ids) {
  uint32_t position = 0;
  pph_phase_block block;
  *ids = pph_arena_allocate(edit->x.arena,
                            pph_polyphase_plan_count(source->plan),
                            sizeof **ids);
  if (!*ids)
    return pph_fail_memory(edit->x.error);
  for (uint32_t i = 0;
       pph_polyphase_plan_next(source->plan, &position, &block); i++)
    PPH_TRY(put_conv(edit, source, &block, range, &(*ids)[i]));
  edit->x.like = &edit->x.values[source->conv->output_id];
  return PPH_OK;
}

pph_status pph_phase_put_nodes(pph_delegate_edit *edit,
                               const pph_phase_source *source,
                               const pph_payload_min_max *range) {
  const pph_polyphase_plan *plan = source->plan;
  const pph_phase_frame *y = &plan->axes[0].frame, *x = &plan->axes[1].frame;
  uint32_t first = edit->x.node_count, id, *ids;
  const uint32_t block[2] = {(uint32_t)y->stride, (uint32_t)x->stride};
  PPH_TRY(put_convs(edit, source, range, &ids));
  PPH_TRY(pph_payload_put_interleaved(
      &edit->x, ids, pph_polyphase_plan_count(plan), block, &id));
  const int64_t begin[2] = {y->trim_begin, x->trim_begin};
  const int64_t end[2] = {y->trim_end, x->trim_end};
  PPH_TRY(cut(edit, 1, begin, end, &id));
  if (edit->is_dynamic)
    PPH_TRY(infer_rows(edit, first));
  pph_delegate_edit_rename_last(edit, source->conv->output_id);
  return PPH_OK;
}

/* One convolution, or one for each phase: then their channels can be ordered
   by columns first. */
bool pph_phase_has_columns(const pph_polyphase_plan *plan) {
  uint32_t count = pph_polyphase_plan_count(plan);
  int64_t phases = plan->axes[0].frame.stride * plan->axes[1].frame.stride;
  return plan->axes[0].frame.stride > 1 && plan->axes[1].frame.length > 1 &&
         (count == 1 || count == phases);
}

/* Phases [y][x] as [x][y]. */
static pph_status sort_columns(pph_delegate_edit *edit,
                               const pph_polyphase_plan *plan,
                               uint32_t **ids) {
  uint32_t rows = (uint32_t)plan->axes[0].frame.stride;
  uint32_t columns = (uint32_t)plan->axes[1].frame.stride;
  uint32_t *sorted;
  if (pph_polyphase_plan_count(plan) == 1)
    return PPH_OK;
  sorted = pph_arena_allocate(edit->x.arena, (size_t)rows * columns,
                              sizeof *sorted);
  if (!sorted)
    return pph_fail_memory(edit->x.error);
  for (uint32_t y = 0; y < rows; y++)
    for (uint32_t x = 0; x < columns; x++)
      sorted[x * rows + y] = (*ids)[y * columns + x];
  *ids = sorted;
  return PPH_OK;
}

/* [N,H,W,x,y,C] is [N,H,W*x,y,C] as it lies, so that interleaving the rows and
   moving the channels is one transpose with long runs on both sides. */
pph_status pph_phase_put_nodes_first(pph_delegate_edit *edit,
                                     const pph_phase_source *source,
                                     const pph_payload_min_max *range,
                                     uint32_t output) {
  static const uint32_t perm[] = {0, 4, 1, 3, 2};
  const pph_polyphase_plan *plan = source->plan;
  const pph_phase_frame *y = &plan->axes[0].frame, *x = &plan->axes[1].frame;
  const uint32_t n = (uint32_t)plan->window.batch;
  const uint32_t c = (uint32_t)plan->window.out_channels;
  const uint32_t rows = (uint32_t)y->length;
  const uint32_t width = (uint32_t)(x->length * x->stride);
  const uint32_t stride = (uint32_t)y->stride;
  const pph_payload_dims wide = {5, {n, rows, width, stride, c}};
  const pph_payload_dims planes = {4, {n, c, rows * stride, width}};
  const int64_t begin[2] = {y->trim_begin, x->trim_begin};
  const int64_t end[2] = {y->trim_end, x->trim_end};
  uint32_t id, *ids;
  PPH_TRY(put_convs(edit, source, range, &ids));
  PPH_TRY(sort_columns(edit, plan, &ids));
  PPH_TRY(pph_payload_put_concat(&edit->x, ids, pph_polyphase_plan_count(plan),
                                 3, &id));
  PPH_TRY(pph_payload_put_reshape(&edit->x, &wide, &id));
  PPH_TRY(pph_payload_put_transpose(&edit->x, perm, &id));
  PPH_TRY(pph_payload_put_reshape(&edit->x, &planes, &id));
  PPH_TRY(cut(edit, 2, begin, end, &id));
  pph_delegate_edit_rename_last(edit, output);
  return PPH_OK;
}
