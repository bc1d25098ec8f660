#include "pte/program_export.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "pte/container_write.h"
#include "pte/xnn_export.h"

/* Places of data: of a constant in its segment, of a value in memory. */
enum { STEP = 16, DELEGATE_SEGMENT = 1, NAMED_SEGMENTS = 2, FLOAT = 6 };
enum { UPPER_BOUNDS = 1 }; /* of shape_dynamism */

typedef struct writer {
  const pph_graph *graph;
  pph_payload_export x;
  pph_heap *heap;
  pph_arena arena;
  pph_error *error;
  const pph_pte_export_options *options;
  pph_pte_value *values; /* inputs, operands, outputs, as the call has them */
  int32_t *numbers;      /* 0, 1, 2, ... */
  uint32_t value_count;
  uint64_t *offsets; /* of operands in the constant segment; [0] is none */
  uint8_t *constants;
  size_t constant_bytes, planned_bytes;
  void *payload;
  size_t payload_bytes;
} writer;

static pph_status make(writer *w, size_t count, size_t size, void *block) {
  void *made = pph_arena_allocate(&w->arena, count + 1, size);
  if (!made)
    return pph_fail_memory(w->error);
  memcpy(block, &made, sizeof made);
  return PPH_OK;
}

static pph_flat_text text_of(const char *text) {
  return (pph_flat_text){text, (uint32_t)strlen(text)};
}

static pph_status fail_size(const writer *w) {
  return pph_fail(w->error, PPH_LIMIT_EXCEEDED, "",
                  "the program would have more bytes than can be counted");
}

/* A tensor of the method with the shape that its value in the payload has. */
static pph_status make_tensor(writer *w, const pph_shape *shape,
                              pph_pte_tensor **made) {
  int32_t *sizes = NULL;
  uint8_t *order = NULL;
  PPH_TRY(make(w, (size_t)shape->rank, sizeof *sizes, &sizes));
  PPH_TRY(make(w, (size_t)shape->rank, sizeof *order, &order));
  PPH_TRY(make(w, 1, sizeof **made, made));
  for (int32_t i = 0; i < shape->rank; i++) {
    sizes[i] = (int32_t)shape->dims[i];
    order[i] = (uint8_t)i;
  }
  **made = (pph_pte_tensor){.scalar_type = FLOAT,
                            .sizes = {sizes, (uint32_t)shape->rank},
                            .dim_order = {order, (uint32_t)shape->rank}};
  w->values[w->value_count++] = (pph_pte_value){{*made, PPH_PTE_TENSOR}};
  return PPH_OK;
}

/* An input or output, of shape `other` at other sizes (NULL: there are none):
   it gets a place in planned memory of its own. */
static pph_status add_planned(writer *w, pph_id id, const pph_shape *other) {
  const pph_value *value = pph_graph_value(w->graph, id);
  pph_pte_tensor *tensor = NULL;
  pph_pte_allocation *place = NULL;
  size_t bytes;
  PPH_TRY(make_tensor(w, &value->shape, &tensor));
  PPH_TRY(make(w, 1, sizeof *place, &place));
  *place = (pph_pte_allocation){
      .memory_id = 1,
      .memory_offset_low = (uint32_t)w->planned_bytes,
      .memory_offset_high = (uint32_t)((uint64_t)w->planned_bytes >> 32)};
  tensor->allocation_info = place;
  if (other && !pph_shape_equal(other, &value->shape))
    tensor->shape_dynamism = UPPER_BOUNDS;
  if (!pph_shape_bytes(&value->shape, PPH_F32, &bytes) ||
      !pph_checked_round_up(bytes, STEP, &bytes) ||
      !pph_checked_add(w->planned_bytes, bytes, &w->planned_bytes))
    return fail_size(w);
  return PPH_OK;
}

static pph_status add_operand(writer *w, uint32_t index) {
  const pph_payload_constant *operand = &w->x.operands.at[index];
  pph_payload_dims dims = pph_payload_dims_of(&w->x, operand->value);
  pph_shape shape = {.rank = (int32_t)dims.count};
  pph_pte_tensor *tensor = NULL;
  for (uint32_t i = 0; i < dims.count; i++)
    shape.dims[i] = dims.at[i];
  PPH_TRY(make_tensor(w, &shape, &tensor));
  tensor->data_buffer_idx = index + 1;
  w->offsets[index + 1] = w->constant_bytes;
  if (!pph_checked_add(w->constant_bytes, operand->bytes,
                       &w->constant_bytes) ||
      !pph_checked_round_up(w->constant_bytes, STEP, &w->constant_bytes))
    return fail_size(w);
  return PPH_OK;
}

static const pph_shape *find_other(const writer *w, bool is_input,
                                   uint32_t index) {
  const pph_graph *other = w->options->other;
  if (!other)
    return NULL;
  const pph_id *ids = is_input ? other->inputs : other->outputs;
  return &pph_graph_value(other, ids[index])->shape;
}

static pph_status make_values(writer *w) {
  const pph_graph *graph = w->graph;
  uint32_t operands = w->x.operands.count;
  size_t count = (size_t)graph->input_count + operands + graph->output_count;
  PPH_TRY(make(w, count, sizeof *w->values, &w->values));
  PPH_TRY(make(w, count, sizeof *w->numbers, &w->numbers));
  PPH_TRY(make(w, (size_t)operands, sizeof *w->offsets, &w->offsets));
  for (size_t i = 0; i < count; i++)
    w->numbers[i] = (int32_t)i;
  for (uint32_t i = 0; i < graph->input_count; i++)
    PPH_TRY(add_planned(w, graph->inputs[i], find_other(w, true, i)));
  for (uint32_t i = 0; i < operands; i++)
    PPH_TRY(add_operand(w, i));
  for (uint32_t i = 0; i < graph->output_count; i++)
    PPH_TRY(add_planned(w, graph->outputs[i], find_other(w, false, i)));
  PPH_TRY(make(w, w->constant_bytes, 1, &w->constants));
  for (uint32_t i = 0; i < operands; i++)
    memcpy(w->constants + w->offsets[i + 1], w->x.operands.at[i].data,
           w->x.operands.at[i].bytes);
  return PPH_OK;
}

static pph_status write_payload(writer *w) {
  pph_payload_export *x = &w->x;
  pph_payload_data *data = NULL;
  uint32_t inputs = w->graph->input_count + x->operands.count;
  uint32_t externals = inputs + w->graph->output_count;
  uint32_t *ids = NULL;
  PPH_TRY(make(w, (size_t)x->named.count, sizeof *data, &data));
  PPH_TRY(make(w, externals, sizeof *ids, &ids));
  data[0].named_key = text_of(""); /* stands for no constant */
  for (uint32_t i = 0; i < x->named.count; i++)
    data[i + 1] = (pph_payload_data){
        .offset = UINT64_MAX, .named_key = text_of(x->named.at[i].key)};
  for (uint32_t i = 0; i < x->value_count; i++) {
    const pph_payload_tensor *tensor = x->values[i].xvalue_union.value;
    if (tensor->flags)
      ids[tensor->external_id] = i;
  }
  pph_payload_graph graph = {
      .version = text_of("0"),
      .xnodes = {x->nodes, x->node_count},
      .xvalues = {x->values, x->value_count},
      .num_externs = externals,
      .input_ids = {ids, inputs},
      .output_ids = {ids + inputs, w->graph->output_count},
      .constant_data = {data, x->named.count + 1}};
  const pph_payload payload = {.graph = &graph,
                               .identifier = {'X', 'N', '0', '1'}};
  return pph_payload_write(&payload, w->heap, &w->payload, &w->payload_bytes,
                           w->error);
}

/* How Python flattens and rebuilds arguments: a tuple of `count` leaves, for
   inputs inside the pair of positional and named ones. */
static pph_status print_tree(writer *w, uint32_t count, bool is_input,
                             pph_flat_text *tree) {
  static const char leaf[] =
      "{\"type\": null, \"context\": null, \"children_spec\": []}";
  static const char tuple[] =
      "{\"type\": \"builtins.tuple\", \"context\": \"null\", "
      "\"children_spec\": [";
  size_t size = 400 + count * (sizeof leaf + 2), used;
  char *text = NULL;
  PPH_TRY(make(w, size, 1, &text));
  used = (size_t)snprintf(text, size, "[1, %s%s", is_input ? tuple : "",
                          is_input || count != 1 ? tuple : "");
  for (uint32_t i = 0; i < count; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                             leaf);
  if (is_input)
    snprintf(text + used, size - used,
             "]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", "
             "\"children_spec\": []}]}]");
  else
    snprintf(text + used, size - used, count != 1 ? "]}]" : "]");
  *tree = text_of(text);
  return PPH_OK;
}

/* The file with the filters and biases beside the program. */
static pph_status write_constants(writer *w, pph_pte_files *files) {
  const pph_payload_constants *named = &w->x.named;
  pph_pte_data_segment *rows = NULL;
  pph_ptd_named_data *list = NULL;
  pph_pte_image image = {.segment_count = named->count};
  PPH_TRY(make(w, (size_t)named->count, sizeof *rows, &rows));
  PPH_TRY(make(w, (size_t)named->count, sizeof *list, &list));
  PPH_TRY(make(w, (size_t)named->count, sizeof *image.segments,
               &image.segments));
  for (uint32_t i = 0; i < named->count; i++) {
    image.segments[i] =
        (pph_pte_bytes){(const uint8_t *)named->at[i].data,
                        named->at[i].bytes};
    list[i] = (pph_ptd_named_data){.key = text_of(named->at[i].key),
                                   .segment_index = i};
  }
  pph_ptd_flat_tensor root = {.segments = {rows, named->count},
                              .named_data = {list, named->count}};
  return pph_pte_image_write(&image, pph_ptd_flat_tensor_schema(), &root,
                             "FT01", rows, w->heap, &files->constants,
                             &files->constant_bytes, w->error);
}

static pph_status fill_segments(writer *w, pph_pte_image *image,
                                pph_pte_program *program) {
  const pph_payload_constants *named = &w->x.named;
  uint32_t inside = w->options->external ? 0 : named->count;
  pph_pte_data_segment *rows = NULL;
  pph_pte_named_data *list = NULL;
  image->segment_count = NAMED_SEGMENTS + inside;
  PPH_TRY(make(w, image->segment_count, sizeof *rows, &rows));
  PPH_TRY(make(w, inside, sizeof *list, &list));
  PPH_TRY(make(w, image->segment_count, sizeof *image->segments,
               &image->segments));
  image->segments[0] = (pph_pte_bytes){w->constants, w->constant_bytes};
  image->segments[DELEGATE_SEGMENT] =
      (pph_pte_bytes){w->payload, w->payload_bytes};
  for (uint32_t i = 0; i < inside; i++) {
    image->segments[NAMED_SEGMENTS + i] = (pph_pte_bytes){
        (const uint8_t *)named->at[i].data, named->at[i].bytes};
    list[i] = (pph_pte_named_data){.key = text_of(named->at[i].key),
                                   .segment_index = NAMED_SEGMENTS + i};
  }
  program->segments.at = rows;
  program->segments.count = image->segment_count;
  if (inside) {
    program->named_data.at = list;
    program->named_data.count = inside;
  }
  return PPH_OK;
}

static pph_status write_program(writer *w, pph_pte_files *files) {
  const pph_graph *graph = w->graph;
  uint32_t outputs_at = graph->input_count + w->x.operands.count;
  pph_pte_delegate_call call = {.args = {w->numbers, w->value_count}};
  pph_pte_instruction instruction = {{&call, PPH_PTE_DELEGATE_CALL}};
  pph_pte_chain chain = {.inputs = {w->numbers, 0},
                         .outputs = {w->numbers, 0},
                         .instructions = {&instruction, 1}};
  pph_pte_data_reference place = {.location = 1, .index = DELEGATE_SEGMENT};
  pph_pte_compile_spec no_spec;
  pph_pte_operator no_operator;
  pph_pte_delegate delegate = {.id = text_of("XnnpackBackend"),
                               .processed = &place,
                               .compile_specs = {&no_spec, 0}};
  const int64_t buffers[] = {0, (int64_t)w->planned_bytes};
  pph_pte_container_metadata trees;
  pph_pte_plan plan = {
      .name = text_of(graph->method ? graph->method : "forward"),
      .container_meta_type = &trees,
      .values = {w->values, w->value_count},
      .inputs = {w->numbers, graph->input_count},
      .outputs = {w->numbers + outputs_at, graph->output_count},
      .chains = {&chain, 1},
      .operators = {&no_operator, 0},
      .delegates = {&delegate, 1},
      .non_const_buffer_sizes = {buffers, 2}};
  pph_pte_subsegment constants = {
      .offsets = {w->offsets, w->x.operands.count + 1}};
  pph_pte_program program = {.execution_plan = {&plan, 1},
                             .constant_segment = &constants};
  pph_pte_image image = {.root = &program};
  PPH_TRY(print_tree(w, graph->input_count, true, &trees.encoded_inp_str));
  PPH_TRY(print_tree(w, graph->output_count, false, &trees.encoded_out_str));
  PPH_TRY(fill_segments(w, &image, &program));
  return pph_pte_image_write(&image, pph_pte_program_schema(), &program,
                             "ET12", program.segments.at, w->heap,
                             &files->program, &files->program_bytes, w->error);
}

static pph_status export_graphs(writer *w) {
  const pph_pte_export_options *options = w->options;
  pph_payload_export other;
  pph_payload_lengths lengths = !options->other        ? PPH_PAYLOAD_FIXED
                                : options->any_lengths ? PPH_PAYLOAD_ANY
                                                       : PPH_PAYLOAD_OPEN;
  PPH_TRY(pph_payload_export_graph(&w->x, w->graph, lengths, &w->arena,
                                   w->error));
  if (!options->other)
    return PPH_OK;
  PPH_TRY(pph_payload_export_graph(&other, options->other, lengths, &w->arena,
                                   w->error));
  return pph_payload_open_lengths(&w->x, &other);
}

static pph_status export_all(writer *w, pph_pte_files *files) {
  PPH_TRY(export_graphs(w));
  PPH_TRY(make_values(w));
  PPH_TRY(write_payload(w));
  files->nodes = w->x.node_count;
  files->delegates = 1;
  if (w->options->external)
    PPH_TRY(write_constants(w, files));
  return write_program(w, files);
}

pph_status pph_pte_export(pph_graph *graph,
                          const pph_pte_export_options *options,
                          pph_pte_files *files, pph_error *error) {
  writer w = {.graph = graph, .heap = graph->heap, .error = error,
              .options = options};
  *files = (pph_pte_files){.program = NULL};
  pph_arena_init(&w.arena, graph->heap);
  pph_graph_index_uses(graph);
  if (options->other)
    pph_graph_index_uses(options->other);
  pph_status status = export_all(&w, files);
  pph_heap_release(graph->heap, w.payload);
  pph_arena_clear(&w.arena);
  if (status != PPH_OK)
    pph_pte_files_clear(files, graph->heap);
  return status;
}

pph_status pph_pte_files_open(const pph_pte_files *files, pph_heap *heap,
                              pph_pte **pte, pph_error *error) {
  const pph_pte_source program = {"", {files->program, files->program_bytes}};
  const pph_pte_source beside = {"",
                                 {files->constants, files->constant_bytes}};
  return pph_pte_open(&program, &beside, files->constants != NULL, heap, pte,
                      error);
}

void pph_pte_files_clear(pph_pte_files *files, pph_heap *heap) {
  pph_heap_release(heap, files->program);
  pph_heap_release(heap, files->constants);
  *files = (pph_pte_files){.program = NULL};
}
