#include "optimize/filter_plan.h"

#include "base/checked.h"
#include "optimize/xnn_conv.h"

enum { MOST_TAPS = 64 };

static bool view_rows(const pph_payload_conv *conv,
                      const pph_payload_tensor *input,
                      const pph_payload_tensor *output,
                      pph_filter_view *view) {
  *view = (pph_filter_view){.rows = input->dims.at[1],
                            .columns = input->dims.at[2],
                            .taps = conv->kernel_height,
                            .pad = conv->padding_top,
                            .column_taps = conv->kernel_width,
                            .out_rows = output->dims.at[1],
                            .out_columns = output->dims.at[2]};
  return conv->kernel_height > 1 && conv->subsampling_height == 1 &&
         conv->dilation_height == 1 &&
         (uint64_t)view->rows + conv->padding_top + conv->padding_bottom ==
             (uint64_t)view->out_rows + view->taps - 1;
}

/* One row of columns, or one column of rows. */
static bool view_line(const pph_payload_conv *conv,
                      const pph_payload_tensor *input,
                      const pph_payload_tensor *output,
                      pph_filter_view *view) {
  bool is_row = input->dims.at[1] == 1 && output->dims.at[1] == 1;
  uint32_t across = is_row ? conv->kernel_height : conv->kernel_width;
  uint32_t taps = is_row ? conv->kernel_width : conv->kernel_height;
  uint32_t step = is_row ? conv->dilation_width : conv->dilation_height;
  uint32_t stride = is_row ? conv->subsampling_width : conv->subsampling_height;
  uint32_t begin = is_row ? conv->padding_left : conv->padding_top;
  uint32_t end = is_row ? conv->padding_right : conv->padding_bottom;
  uint32_t beside = is_row ? conv->padding_top + conv->padding_bottom
                           : conv->padding_left + conv->padding_right;
  uint32_t length = is_row ? input->dims.at[2] : input->dims.at[1];
  uint32_t out = is_row ? output->dims.at[2] : output->dims.at[1];
  if ((!is_row && (input->dims.at[2] != 1 || output->dims.at[2] != 1)) ||
      across != 1 || stride != 1 || beside || step < 1 || length % step ||
      out % step || begin % step)
    return false;
  *view = (pph_filter_view){.rows = length / step,
                            .columns = step,
                            .taps = taps,
                            .pad = begin / step,
                            .column_taps = 1,
                            .out_rows = out / step,
                            .out_columns = step,
                            .is_line = true};
  return (uint64_t)length + begin + end ==
         (uint64_t)out + (uint64_t)step * (taps - 1);
}

/* Points are not filtered again: their input is what a transform made. */
static bool is_point(const pph_delegate_edit *edit, uint32_t input) {
  for (uint32_t i = edit->x.node_count; i--;) {
    const pph_payload_conv *maker = edit->x.nodes[i].xnode_union.value;
    if (edit->x.nodes[i].xnode_union.type == PPH_PAYLOAD_DEPTHWISE &&
        maker->output_id == input)
      return maker->subsampling_height > 1 && maker->subsampling_width == 1 &&
             maker->kernel_width == 1;
  }
  return false;
}

static bool find_view(const pph_delegate_edit *edit,
                      const pph_payload_conv *conv, pph_filter_view *view) {
  const pph_payload_tensor *input = pph_edit_tensor(edit, conv->input1_id);
  const pph_payload_tensor *output = pph_edit_tensor(edit, conv->output_id);
  if (!pph_xnn_conv_is_plain(edit, conv) || is_point(edit, conv->input1_id) ||
      !(view_rows(conv, input, output, view) ||
        view_line(conv, input, output, view)))
    return false;
  view->batch = input->dims.at[0];
  view->in_channels = conv->group_input_channels;
  view->out_channels = conv->group_output_channels;
  return view->taps >= 2 && view->taps <= MOST_TAPS && view->pad < view->taps;
}

static uint32_t count_in_tiles(const pph_filter_plan *plan) {
  return plan->tiles + plan->groups - 1;
}

pph_filter_taps pph_filter_find_taps(const pph_filter_plan *plan,
                                     uint32_t point) {
  const double *row = plan->matrices.input[point];
  uint32_t stride = plan->form->outputs, last = 0;
  pph_filter_taps taps = {.first = PPH_FORM_MOST_POINTS, .step = 2};
  for (uint32_t i = 0; i < pph_filter_form_count(plan->form); i++)
    if (row[i] != 0) {
      last = i;
      taps.first = taps.first < i ? taps.first : i;
    }
  if (taps.first > plan->view.pad)
    taps.first = plan->view.pad;
  for (uint32_t i = 0; i < pph_filter_form_count(plan->form); i++)
    if (row[i] != 0 && (i - taps.first) % 2)
      taps.step = 1;
  if (last == taps.first)
    taps.step = 1;
  taps.count = (last - taps.first) / taps.step + 1;
  taps.pad_top = plan->view.pad - taps.first;
  uint32_t needed = (count_in_tiles(plan) - 1) * stride + last - taps.first + 1;
  uint32_t there = plan->view.rows + taps.pad_top;
  taps.pad_bottom = needed > there ? needed - there : 0;
  return taps;
}

/* Convolutions give as many rows as fit: that must be one a tile. */
static bool fits(const pph_filter_plan *plan) {
  for (uint32_t j = 0; j < pph_filter_form_count(plan->form); j++) {
    pph_filter_taps taps = pph_filter_find_taps(plan, j);
    uint32_t span = (taps.count - 1) * taps.step + 1;
    uint32_t rows = plan->view.rows + taps.pad_top + taps.pad_bottom;
    if (rows < span ||
        (rows - span) / plan->form->outputs + 1 != count_in_tiles(plan))
      return false;
  }
  return true;
}

static double count_sums(const pph_filter_view *view, double rows,
                         double taps) {
  return (double)view->batch * rows * view->out_columns * taps *
         view->column_taps * view->in_channels *
         pph_xnn_round_to_lanes(view->out_channels);
}

/* How often what comes behind the points reads or writes a value of a row per
   tile: sums, or points side by side and weighed; then rows in their places,
   once more where some are cut off. */
static double count_moves(const pph_filter_plan *plan) {
  const pph_filter_form *form = plan->form;
  bool cuts = plan->tiles * form->outputs != plan->view.out_rows;
  double sums = form->pairs < 2
                    ? 3 * (2 + 2 * form->pairs)
                    : 4 * form->pairs + form->outputs * (2 * form->pairs + 1) +
                          3 * (form->singles + 1);
  return sums + form->outputs * (cuts ? 6 : 4);
}

/* Bytes read and written by what is not sums over channels. */
static double count_bytes(const pph_filter_plan *plan) {
  const pph_filter_view *view = &plan->view;
  double taps = 0;
  for (uint32_t j = 0; j < pph_filter_form_count(plan->form); j++)
    taps += pph_filter_find_taps(plan, j).count + 1;
  double made = taps * view->columns * count_in_tiles(plan) *
                pph_xnn_round_to_lanes(view->in_channels);
  double joined = count_moves(plan) * view->out_columns * plan->tiles *
                  view->out_channels;
  double folded = view->is_line ? 2.0 * view->rows * view->columns *
                                      view->in_channels
                                : 0;
  return (double)view->batch * sizeof(float) * (made + joined + folded);
}

static double find_gain(const pph_filter_plan *plan) {
  const pph_filter_view *view = &plan->view;
  uint32_t points = pph_filter_form_count(plan->form);
  double nodes = 3 * points + 4;
  double old = count_sums(view, view->out_rows, view->taps);
  double made = count_sums(view, plan->tiles, (double)points * plan->groups);
  return old / pph_xnn_macs_per_us /
         (made / pph_xnn_macs_per_us +
          count_bytes(plan) / pph_xnn_bytes_per_us + nodes * pph_xnn_node_us);
}

/* Several groups of taps read whole tiles, so these have as many rows. */
static bool try_form(const pph_filter_form *form, pph_filter_plan *plan) {
  const pph_filter_view *view = &plan->view;
  plan->form = form;
  plan->groups = (uint32_t)pph_divide_up(view->taps, form->taps);
  plan->tiles = (uint32_t)pph_divide_up(view->out_rows, form->outputs);
  if (plan->groups > 1 && form->outputs != form->taps)
    return false;
  pph_filter_form_make(form, &plan->matrices);
  plan->gain = 0;
  if (!fits(plan))
    return false;
  plan->gain = find_gain(plan);
  return true;
}

bool pph_filter_plan_make(const pph_delegate_edit *edit,
                          const pph_payload_conv *conv, pph_filter_plan *plan) {
  uint32_t count;
  const pph_filter_form *forms = pph_filter_forms(&count);
  const pph_filter_form *best = NULL;
  double gain = pph_xnn_least_gain;
  if (edit->options->accuracy == PPH_ACCURACY_EXACT || edit->is_dynamic ||
      !find_view(edit, conv, &plan->view))
    return false;
  if (edit->options->only_filter)
    return edit->options->only_filter <= count &&
           try_form(&forms[edit->options->only_filter - 1], plan);
  for (uint32_t i = 0; i < count; i++) {
    if (forms[i].is_high || edit->options->accuracy == PPH_ACCURACY_NORMAL)
      if (try_form(&forms[i], plan) && plan->gain >= gain) {
        best = &forms[i];
        gain = plan->gain;
      }
  }
  return best && try_form(best, plan);
}
