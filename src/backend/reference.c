/* The reference backend: the evaluator of src/graph on every node. Values that
   lie channels last are copied to plain order before and back after. */
#include <string.h>

#include "backend/native_rows.h"
#include "base/checked.h"
#include "base/fail.h"
#include "graph/eval.h"

/* Where an operand is put in plain order, SIZE_MAX when it already is. */
typedef struct reference_state {
  size_t *offsets; /* inputs, then outputs */
  pph_tensor *tensors;
} reference_state;

static bool supports(const pph_graph *graph, const pph_node *node) {
  return pph_eval_supports(node->kind) || node->kind == PPH_NODE_RELAYOUT;
}

static pph_id operand(const pph_node *node, uint32_t i) {
  return i < node->input_count ? node->inputs[i]
                               : node->outputs[i - node->input_count];
}

/* Reserves scratch for one operand. */
static pph_status place(pph_step *step, reference_state *state, uint32_t i,
                        pph_error *error) {
  pph_id id = operand(step->node, i);
  state->offsets[i] = SIZE_MAX;
  if (id == PPH_NO_VALUE)
    return PPH_OK;
  const pph_value *value = pph_graph_value(step->graph, id);
  state->tensors[i] = (pph_tensor){value->type, value->shape, NULL};
  if (value->layout == PPH_LAYOUT_PLAIN || value->data)
    return PPH_OK;
  size_t bytes;
  state->offsets[i] = step->workspace;
  if (!pph_shape_bytes(&value->shape, value->type, &bytes) ||
      !pph_checked_round_up(bytes, PPH_ALIGNMENT, &bytes) ||
      !pph_checked_add(step->workspace, bytes, &step->workspace))
    return pph_node_fail(step->node, error, PPH_LIMIT_EXCEEDED,
                         "tensors too large");
  return PPH_OK;
}

static void release(pph_backend_context *context, pph_step *step) {
  reference_state *state = step->state;
  if (state) {
    pph_heap_release(context->heap, state->offsets);
    pph_heap_release(context->heap, state->tensors);
  }
  pph_heap_release(context->heap, state);
  step->state = NULL;
}

static pph_status prepare(pph_backend_context *context, pph_step *step,
                          pph_error *error) {
  const pph_node *node = step->node;
  size_t operands = (size_t)node->input_count + node->output_count;
  reference_state *state =
      pph_heap_allocate_zeroed(context->heap, 1, sizeof *state);
  step->state = state;
  if (!state)
    return pph_fail_memory(error);
  step->algorithm = "reference";
  state->offsets =
      pph_heap_allocate(context->heap, operands, sizeof *state->offsets);
  state->tensors =
      pph_heap_allocate_zeroed(context->heap, operands, sizeof(pph_tensor));
  pph_status status = PPH_OK;
  if (!state->offsets || !state->tensors)
    status = pph_fail_memory(error);
  for (uint32_t i = 0; status == PPH_OK && i < operands; i++)
    status = place(step, state, i, error);
  if (status != PPH_OK)
    release(context, step);
  return status;
}

/* Copies between a value's layout and plain order. */
static void reorder(const pph_value *value, pph_cpu cpu, const void *source,
                    void *target, bool to_plain) {
  pph_value plain = *value;
  plain.layout = PPH_LAYOUT_PLAIN;
  int64_t laid[PPH_MAX_RANK], rows[PPH_MAX_RANK];
  pph_layout_strides(value, laid);
  pph_layout_strides(&plain, rows);
  pph_strided_copy copy = {.rank = value->shape.rank,
                           .element_size = pph_dtype_size(value->type)};
  for (int32_t i = 0; i < copy.rank; i++) {
    copy.dims[i] = value->shape.dims[i];
    if (copy.dims[i] == 0)
      return;
    copy.source_strides[i] = to_plain ? laid[i] : rows[i];
    copy.target_strides[i] = to_plain ? rows[i] : laid[i];
  }
  pph_strided_copy_simplify(&copy);
  pph_strided_copy_speed_up(&copy, cpu);
  pph_strided_copy_run(&copy, source, target, 0,
                       copy.rank ? copy.dims[0] : 1);
}

static pph_status run(pph_backend_context *context, const pph_step *step,
                      const pph_run_pointers *pointers, pph_error *error) {
  const reference_state *state = step->state;
  const pph_node *node = step->node;
  uint32_t operands = node->input_count + node->output_count;
  char *scratch = pointers->workspace;
  for (uint32_t i = 0; i < operands; i++) {
    bool is_input = i < node->input_count;
    /* The evaluator does not write its inputs. */
    void *data = is_input ? (void *)(uintptr_t)pointers->inputs[i]
                          : pointers->outputs[i - node->input_count];
    if (state->offsets[i] != SIZE_MAX) {
      void *plain = scratch + state->offsets[i];
      if (is_input)
        reorder(pph_graph_value(step->graph, operand(node, i)), context->cpu,
                data, plain, true);
      data = plain;
    }
    state->tensors[i].data = data;
  }
  PPH_TRY(pph_eval_node(step->graph, node, state->tensors,
                        state->tensors + node->input_count, error));
  for (uint32_t i = node->input_count; i < operands; i++)
    if (state->offsets[i] != SIZE_MAX)
      reorder(pph_graph_value(step->graph, operand(node, i)),
              context->cpu, state->tensors[i].data,
              pointers->outputs[i - node->input_count], false);
  return PPH_OK;
}

const pph_backend pph_backend_reference = {
    "reference", supports, NULL, prepare, run, release};
