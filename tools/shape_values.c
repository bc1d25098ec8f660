#include "shape_values.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/fail.h"
#include "runtime/loaded_model.h"

enum { SCALES = 2, SIZES = 3, SPATIAL = 2 };

/* The Resize that takes the input in one of those slots. */
static const pph_node *find_resize(const pph_graph *graph, pph_id input,
                                   uint32_t *slot) {
  for (const pph_node *node = graph->first; node; node = node->next)
    for (*slot = SCALES; *slot <= SIZES; ++*slot)
      if (node->kind == PPH_NODE_RESIZE && *slot < node->input_count &&
          node->inputs[*slot] == input)
        return node;
  return NULL;
}

/* The shape of what is resized; NULL when only a run would tell. */
static const pph_shape *find_resized(const pph_graph *graph,
                                     const pph_node *node,
                                     const model_inputs *inputs) {
  for (uint32_t i = 0; i < inputs->count; i++)
    if (graph->inputs[i] == node->inputs[0])
      return inputs->tensors[i].data ? &inputs->tensors[i].shape : NULL;
  return NULL;
}

/* Twice the size along the spatial axes, for the axes that the node names. What
   is declared with another count (0: the node takes the other input) stays. */
static pph_status double_size(const pph_node *node, const pph_shape *from,
                              const pph_value *declared, pph_tensor *tensor,
                              pph_error *error) {
  uint32_t count;
  const int64_t *named = pph_node_ints(node, PPH_ATTR_AXES, &count);
  bool is_scales = declared->type == PPH_F32;
  if (!named)
    count = (uint32_t)from->rank;
  if (declared->has_rank && pph_shape_known(&declared->shape) &&
      (declared->shape.rank != 1 || declared->shape.dims[0] != count))
    return PPH_OK;
  int64_t *values = calloc((size_t)count + 1, sizeof *values);
  if (!values)
    return pph_fail_memory(error);
  free(tensor->data);
  *tensor = (pph_tensor){tensor->type, {1, {count}}, values};
  for (uint32_t i = 0; i < count; i++) {
    int64_t axis = named ? named[i] + (named[i] < 0 ? from->rank : 0) : i;
    if (axis < 0 || axis >= from->rank)
      continue; /* the node is refused for it */
    int64_t scale = axis < SPATIAL ? 1 : 2;
    if (is_scales)
      ((float *)tensor->data)[i] = (float)scale;
    else
      values[i] = from->dims[axis] * scale;
  }
  return PPH_OK;
}

static pph_status fill_resize(const pph_graph *graph, const pph_node *node,
                              uint32_t slot, uint32_t input,
                              model_inputs *inputs, pph_error *error) {
  const pph_value *declared = pph_graph_value(graph, graph->inputs[input]);
  const char *name = declared->name;
  const char *what = slot == SCALES ? "scales" : "sizes";
  const pph_shape *from = find_resized(graph, node, inputs);
  pph_dtype type = inputs->tensors[input].type;
  if (type != (slot == SCALES ? PPH_F32 : PPH_I64))
    return PPH_OK; /* the node is refused for it */
  if (!from)
    return pph_fail(error, PPH_INVALID_ARGUMENT, name,
                    "has the %s of Resize \"%s\", which cannot be made up: "
                    "give --input '%s=FILE.npy'",
                    what, node->name, name);
  return double_size(node, from, declared, &inputs->tensors[input], error);
}

static pph_status fill(const pph_graph *graph, const bool *decides,
                       model_inputs *inputs, pph_error *error) {
  for (uint32_t i = 0; i < inputs->count; i++) {
    uint32_t slot;
    const pph_node *resize = find_resize(graph, graph->inputs[i], &slot);
    const char *name = pph_graph_value(graph, graph->inputs[i])->name;
    if (inputs->given[i])
      continue;
    if (resize)
      PPH_TRY(fill_resize(graph, resize, slot, i, inputs, error));
    else if (decides[i] && inputs->tensors[i].type != PPH_F32)
      fprintf(stderr,
              "%s: decides shapes, and is taken as zeros; --input "
              "'%s=FILE.npy' gives other values\n",
              name, name);
  }
  return PPH_OK;
}

pph_status shape_values_fill(const pph_model *model, model_inputs *inputs,
                             pph_error *error) {
  const pph_graph *graph = &model->graph;
  pph_heap heap;
  pph_heap_init(&heap, NULL, model->limits.heap_bytes);
  bool *decides =
      pph_heap_allocate_zeroed(&heap, (size_t)graph->input_count + 1, 1);
  if (!decides)
    return pph_fail_memory(error);
  pph_status status =
      pph_session_find_shape_inputs(graph, &heap, decides, error);
  if (status == PPH_OK)
    status = fill(graph, decides, inputs, error);
  pph_heap_release(&heap, decides);
  return status;
}
