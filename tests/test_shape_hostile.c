/* Shape inference on nodes that no exporter writes: random nodes, and legal
   ones with a few things changed. It must accept or refuse, never crash (the
   sanitizer builds watch), and what it accepts must be sound: shapes within
   the limits, and the evaluator must be able to rely on them. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "graph/eval.h"
#include "graph/shape.h"
#include "graph/text.h"
#include "test_support.h"

static const int64_t integers[] = {
    0,  0,  1,  1,  1,  2,       2,         3,         4,         5,
    -1, -2, -3, 7,  64, 1 << 20, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
    6,  8,  1,  2,  (int64_t)1 << 40,       -((int64_t)1 << 62)};
static const float floats[] = {0.0f, 1.0f,  2.0f,   0.5f,  -1.0f,
                               1e30f, 1e-30f, 2.977f, 3e12f, 1e9f};
static const pph_dtype types[] = {PPH_F32,  PPH_F32, PPH_F32, PPH_I64, PPH_I64,
                                  PPH_BOOL, PPH_I32, PPH_U8,  PPH_F16, PPH_F64};
static const char *const texts[] = {
    "NOTSET",     "SAME_UPPER", "SAME_LOWER",    "VALID",      "DCR",
    "CRD",        "linear",     "nearest",       "reflect",    "edge",
    "not_larger", "wrap",       "bidirectional", "not_smaller", "nonsense", ""};

#define PICK(random, table)                                                    \
  table[test_random_next(random) % (sizeof(table) / sizeof *(table))]

static int64_t pick_dim(test_random *random) {
  int64_t dim = PICK(random, integers);
  if (test_random_next(random) % 4)
    return test_random_range(random, 1, 6);
  return dim < 0 ? 2 : dim;
}

static pph_shape pick_shape(test_random *random) {
  pph_shape shape = {0};
  shape.rank = (int32_t)test_random_range(random, 0, 5);
  if (test_random_next(random) % 16 == 0)
    shape.rank = PPH_MAX_RANK;
  for (int32_t i = 0; i < shape.rank; i++)
    shape.dims[i] = pick_dim(random);
  return shape;
}

static void fill(test_random *random, pph_dtype type, char *data,
                 size_t count) {
  for (size_t i = 0; i < count; i++) {
    int64_t integer = PICK(random, integers);
    float real = PICK(random, floats);
    double wide = (double)real;
    const void *source = type == PPH_F32   ? (const void *)&real
                         : type == PPH_F64 ? (const void *)&wide
                                           : (const void *)&integer;
    memcpy(data + i * pph_dtype_size(type), source, pph_dtype_size(type));
    if (type == PPH_BOOL)
      data[i] &= 1;
  }
}

static pph_id add_operand(test_random *random, pph_graph *graph) {
  pph_error error = {0};
  pph_id id = PPH_NO_VALUE;
  static char data[8 * 4096];
  pph_tensor tensor = {PICK(random, types), pick_shape(random), data};
  size_t count;
  if (test_random_next(random) % 12 == 0)
    return PPH_NO_VALUE;
  if (test_random_next(random) % 2) /* lists are what most kinds read */
    tensor.shape = (pph_shape){1, {test_random_range(random, 0, 8)}};
  bool small = pph_shape_fits(&tensor.shape, tensor.type, 4096) &&
               pph_shape_count(&tensor.shape, &count);
  if (small && test_random_next(random) % 3) {
    fill(random, tensor.type, data, count);
    test_assert_ok(
        pph_graph_add_constant(graph, NULL, &tensor, &id, &error), &error);
    return id;
  }
  test_assert_ok(pph_graph_add_value(graph, NULL, &id, &error), &error);
  pph_value *value = pph_graph_value(graph, id);
  value->type = test_random_next(random) % 20 ? tensor.type : PPH_DTYPE_NONE;
  value->has_rank = test_random_next(random) % 20 != 0;
  value->shape = value->has_rank ? tensor.shape : (pph_shape){0};
  if (value->shape.rank && test_random_next(random) % 12 == 0)
    value->shape.dims[0] = -1;
  return id;
}

static void add_attribute(test_random *random, pph_graph *graph,
                          pph_node *node) {
  pph_error error = {0};
  pph_attribute_key key =
      (pph_attribute_key)(test_random_next(random) % PPH_ATTRIBUTE_KEY_COUNT);
  pph_attribute attribute = {.key = key};
  int64_t ints[8];
  float reals[8];
  pph_attribute_type type = pph_attribute_key_type(key);
  attribute.count = (uint32_t)test_random_range(random, 0, 6);
  for (uint32_t i = 0; i < attribute.count; i++) {
    ints[i] = test_random_next(random) % 2 ? PICK(random, integers)
                                           : test_random_range(random, 1, 3);
    reals[i] = PICK(random, floats);
  }
  if (type == PPH_ATTRIBUTE_INT)
    attribute.i = PICK(random, integers);
  else if (type == PPH_ATTRIBUTE_FLOAT)
    attribute.f = PICK(random, floats);
  else if (type == PPH_ATTRIBUTE_TEXT)
    attribute.text = PICK(random, texts);
  else if (type == PPH_ATTRIBUTE_INTS)
    attribute.ints = ints;
  else
    attribute.floats = reals;
  test_assert_ok(pph_node_set_attribute(graph, node, &attribute, &error),
                 &error);
}

static pph_node *make_node(test_random *random, pph_graph *graph) {
  pph_error error = {0};
  pph_node *node;
  pph_id ids[6];
  pph_node_kind kind =
      (pph_node_kind)(test_random_next(random) % PPH_NODE_KIND_COUNT);
  const pph_node_kind_info *info = pph_node_kind_find_info(kind);
  uint32_t most = info->max_inputs < 6 ? info->max_inputs : 6;
  uint32_t count =
      (uint32_t)test_random_range(random, info->min_inputs, most);
  if (test_random_next(random) % 32 == 0)
    count = (uint32_t)test_random_range(random, 0, 6);
  test_assert_ok(pph_graph_add_node(graph, kind, "n", NULL, &node, &error),
                 &error);
  for (uint32_t i = 0; i < count; i++)
    ids[i] = i && test_random_next(random) % 5 == 0
                 ? ids[0]
                 : add_operand(random, graph);
  test_assert_ok(pph_node_set_inputs(graph, node, ids, count, &error), &error);
  count = (uint32_t)test_random_range(random, 1, info->max_outputs > 1 ? 4 : 1);
  if (test_random_next(random) % 32 == 0)
    count = 0;
  for (uint32_t i = 0; i < count; i++) {
    test_assert_ok(pph_graph_add_value(graph, NULL, &ids[i], &error), &error);
    if (test_random_next(random) % 16 == 0)
      ids[i] = PPH_NO_VALUE;
  }
  test_assert_ok(pph_node_set_outputs(graph, node, ids, count, &error),
                 &error);
  count = (uint32_t)test_random_range(random, 0, 4);
  for (uint32_t i = 0; i < count; i++)
    add_attribute(random, graph, node);
  return node;
}

/* Legal nodes of the kinds that chance alone hardly ever gets right. */
static const char *const seeds[] = {
#define X "input %x f32 [2,4,4,6]\n"
    X "const %w f32 [4,4,1,1] = {0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3}\n"
      "const %b f32 [4] = {0,1,2,3}\n"
      "%y = Conv(%x, %w, %b) {group=1, strides=[2,1], pads=[0,1,0,1], "
      "dilations=[1,1], kernel_shape=[1,1], auto_pad=\"NOTSET\"}\n",
    X "const %w f32 [4,1,2,2] = {0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3}\n"
      "const %b f32 [4] = {0,1,2,3}\n"
      "%y = ConvTranspose(%x, %w, %b) {group=4, strides=[2,2], "
      "pads=[0,0,1,1], dilations=[1,1], output_padding=[1,0]}\n",
    X "const %w f32 [4,1,2,2] = {0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3}\n"
      "%y = ConvTranspose(%x, %w) {strides=[2,2], output_shape=[8,13], "
      "auto_pad=\"SAME_UPPER\"}\n",
    X "%y = MaxPool(%x) {kernel_shape=[2,3], strides=[2,1], pads=[0,1,1,0], "
      "dilations=[1,1], ceil_mode=1}\n",
    X "%y = AveragePool(%x) {kernel_shape=[2,3], strides=[2,1], "
      "auto_pad=\"SAME_LOWER\", count_include_pad=1}\n",
    X "const %c f32 [4] = {1,2,3,4}\n"
      "%y = BatchNormalization(%x, %c, %c, %c, %c) {epsilon=1}\n",
    X "%y = DepthToSpace(%x) {blocksize=[2,2], mode=\"CRD\"}\n",
    X "%y = SpaceToDepth(%x) {blocksize=[2,3]}\n",
    X "const %s f32 [4] = {1,1,2,0.5}\n"
      "%y = Resize(%x, _, %s) {mode=\"linear\"}\n",
    X "const %s i64 [2] = {7,3}\n"
      "%y = Resize(%x, _, _, %s) {axes=[2,3], "
      "keep_aspect_ratio_policy=\"not_smaller\"}\n",
    X "const %r f32 [8] = {0,0,0,0,1,1,1,1}\nconst %s f32 [4] = {1,1,2,2}\n"
      "%y = Resize(%x, %r, %s) {coordinate_transformation_mode="
      "\"tf_crop_and_resize\"}\n",
    X "%y = Concat(%x, %x) {axis=1}\n",
    X "const %p i64 [8] = {0,0,1,-2,0,0,2,0}\nconst %v f32 [] = {1}\n"
      "%y = Pad(%x, %p, %v)\n",
    X "const %p i64 [4] = {1,1,0,2}\nconst %a i64 [2] = {2,3}\n"
      "%y = Pad(%x, %p, _, %a) {mode=\"reflect\"}\n",
    X "const %s i64 [3] = {0,-1,2}\n%y = Reshape(%x, %s)\n",
    X "const %s i64 [4] = {2,4,4,6}\n%y = Expand(%x, %s)\n",
    X "const %s i64 [4] = {1,2,1,1}\n%y = Tile(%x, %s)\n",
    X "%y = Transpose(%x) {perm=[0,2,3,1]}\n",
    X "const %i i64 [2,3] = {0,1,2,0,1,2}\n%y = Gather(%x, %i) {axis=1}\n",
    X "const %i i64 [2,2] = {0,1,1,2}\nconst %u f32 [2,4,6] = {0,0,0,0,0,0,0,"
      "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
      "0,0,0,0,0}\n%y = ScatterND(%x, %i, %u) {reduction=\"add\"}\n",
    X "const %s i64 [2] = {1,10}\nconst %e i64 [2] = {3,-10}\n"
      "const %a i64 [2] = {2,3}\nconst %t i64 [2] = {1,-2}\n"
      "%y = Slice(%x, %s, %e, %a, %t)\n",
    X "const %s i64 [2] = {1,3}\n%y, %z = Split(%x, %s) {axis=2}\n",
    X "%y, %z, %q = Split(%x) {axis=3}\n",
    X "const %a i64 [2] = {0,-1}\n%y = Unsqueeze(%x, %a)\n",
    "input %x f32 [1,4,1]\nconst %a i64 [1] = {-1}\n%y = Squeeze(%x, %a)\n",
    X "const %a i64 [2] = {2,3}\n%y = ReduceMean(%x, %a) {keepdims=0}\n",
    X "%y = Softmax(%x) {axis=1}\n",
    X "%y = Flatten(%x) {axis=2}\n",
    X "const %l f32 [] = {0}\n%y = Clip(%x, %l, %l)\n",
    X "const %s f32 [4,1,1] = {0,1,2,3}\n%y = PRelu(%x, %s)\n",
    X "const %s i64 [] = {2}\n%y = Pow(%x, %s)\n",
    X "%y = Cast(%x) {to=7}\n",
    "const %a i64 [] = {2}\nconst %b i64 [] = {9}\nconst %c i64 [] = {3}\n"
    "%y = Range(%a, %b, %c)\n",
    "const %a f32 [] = {2}\nconst %b f32 [] = {9}\nconst %c f32 [] = {0.5}\n"
    "%y = Range(%a, %b, %c)\n",
    "const %s i64 [2] = {2,3}\nconst %v f16 [1] = {1}\n"
    "%y = ConstantOfShape(%s, %v)\n",
    "input %a f32 [3,2]\ninput %b f32 [4,3]\nconst %c f32 [4] = {0,1,2,3}\n"
    "%y = Gemm(%a, %b, %c) {transA=1, transB=1, alpha=2}\n",
    "input %a f32 [2,1,3,2]\ninput %b f32 [2,2,4]\n%y = MatMul(%a, %b)\n",
    "input %x f32 [2,1,2]\ninput %w f32 [1,6,2]\ninput %r f32 [1,6,2]\n"
    "input %b f32 [1,12]\nconst %l i32 [1] = {2}\ninput %h f32 [1,1,2]\n"
    "%y, %z = GRU(%x, %w, %r, %b, %l, %h) {hidden_size=2, "
    "direction=\"reverse\", linear_before_reset=1}\n",
#undef X
};

/* Another constant with one element, type or dimension of the old changed. */
static void mutate_operand(test_random *random, pph_graph *graph, pph_id *id) {
  pph_error error = {0};
  pph_value *value = pph_graph_value(graph, *id);
  pph_shape *shape = &value->shape;
  uint64_t choice = test_random_next(random) % 6;
  char data[8 * 4096];
  pph_tensor tensor = {value->type, *shape, data};
  size_t bytes, size = pph_dtype_size(value->type);
  if (choice == 0 || !value->has_rank) {
    *id = add_operand(random, graph);
    return;
  }
  if (!value->data) {
    if (choice == 1)
      value->type = PICK(random, types);
    else if (choice == 2 && shape->rank < PPH_MAX_RANK)
      shape->dims[shape->rank++] = pick_dim(random);
    else if (choice == 3 && shape->rank)
      shape->rank--;
    else if (shape->rank)
      shape->dims[test_random_next(random) % (uint64_t)shape->rank] =
          pick_dim(random);
    return;
  }
  if (!pph_shape_fits(shape, value->type, 4096) ||
      !pph_shape_bytes(shape, value->type, &bytes))
    return;
  memcpy(data, value->data, bytes);
  if (choice == 1 && bytes) { /* the same bytes as another type */
    tensor.type = PICK(random, types);
    if (pph_dtype_size(tensor.type) > size || tensor.type == PPH_BOOL)
      fill(random, tensor.type, data, bytes / size);
  } else if (choice == 2 && shape->rank == 1 && shape->dims[0] > 0) {
    tensor.shape.dims[0] -= 1;
  } else if (bytes) {
    fill(random, tensor.type,
         data + test_random_next(random) % (bytes / size) * size, 1);
  }
  test_assert_ok(pph_graph_add_constant(graph, NULL, &tensor, id, &error),
                 &error);
}

static void mutate_attribute(test_random *random, pph_graph *graph,
                             pph_node *node) {
  if (!node->attribute_count || test_random_next(random) % 4 == 0) {
    add_attribute(random, graph, node);
    return;
  }
  pph_attribute *attribute =
      &node->attributes[test_random_next(random) % node->attribute_count];
  pph_attribute_type type = pph_attribute_key_type(attribute->key);
  if (type == PPH_ATTRIBUTE_INT) {
    attribute->i = PICK(random, integers);
  } else if (type == PPH_ATTRIBUTE_TEXT) {
    attribute->text = PICK(random, texts);
  } else if (type == PPH_ATTRIBUTE_INTS && attribute->count) {
    int64_t ints[8];
    pph_error error = {0};
    memcpy(ints, attribute->ints, attribute->count * sizeof *ints);
    ints[test_random_next(random) % attribute->count] = PICK(random, integers);
    test_assert_ok(pph_node_set_ints(graph, node, attribute->key, ints,
                                     attribute->count, &error),
                   &error);
  }
}

static pph_node *mutate_seed(test_random *random, pph_graph *graph) {
  char text[1024];
  pph_error error = {0};
  snprintf(text, sizeof text, "graph \"g\"\n%soutput %%y\n",
           PICK(random, seeds));
  test_assert_ok(pph_text_parse(text, strlen(text), graph, &error), &error);
  pph_node *node = graph->first;
  int64_t changes = test_random_range(random, 0, 3);
  for (int64_t i = 0; i < changes; i++) {
    if (node->input_count && test_random_next(random) % 2) {
      pph_id *id = &node->inputs[test_random_next(random) % node->input_count];
      if (*id != PPH_NO_VALUE)
        mutate_operand(random, graph, id);
    } else {
      mutate_attribute(random, graph, node);
    }
  }
  return node;
}

static void check_outputs(const pph_graph *graph, const pph_node *node) {
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i] == PPH_NO_VALUE)
      continue;
    const pph_value *value = pph_graph_value(graph, node->outputs[i]);
    assert_true(value->has_rank);
    assert_true(pph_dtype_size(value->type) > 0);
    assert_in_range(value->shape.rank, 0, PPH_MAX_RANK);
    assert_true(pph_shape_known(&value->shape));
    assert_true(
        pph_shape_fits(&value->shape, value->type, graph->tensor_limit));
  }
}

/* What verify asks of a node's counts, and the evaluator relies on. */
static bool is_complete(const pph_node *node) {
  const pph_node_kind_info *info = pph_node_kind_find_info(node->kind);
  return node->output_count >= 1 &&
         (info->max_outputs > 1 || node->outputs[0] != PPH_NO_VALUE);
}

/* A tensor for a value, exactly as large as it must be; false if that is more
   than `most` bytes. Elements are the constant's, else 1s in every byte. */
static bool make_tensor(const pph_value *value, size_t most,
                        pph_tensor *tensor) {
  size_t bytes;
  if (!pph_shape_bytes(&value->shape, value->type, &bytes) || bytes > most)
    return false;
  *tensor = (pph_tensor){value->type, value->shape, test_malloc(bytes)};
  if (value->data)
    memcpy(tensor->data, value->data, bytes);
  else
    memset(tensor->data, 1, bytes);
  return true;
}

static void evaluate(const pph_graph *graph, const pph_node *node) {
  pph_tensor tensors[12] = {{0}};
  pph_tensor *outputs = tensors + node->input_count;
  pph_error error = {0};
  bool small = true;
  for (uint32_t i = 0; small && i < node->input_count; i++) {
    const pph_value *value = pph_node_find_input(graph, node, i);
    small = !value || make_tensor(value, 1 << 12, &tensors[i]);
  }
  for (uint32_t i = 0; small && i < node->output_count; i++)
    small = node->outputs[i] == PPH_NO_VALUE ||
            make_tensor(pph_graph_value(graph, node->outputs[i]), 1 << 20,
                        &outputs[i]);
  if (small && pph_eval_node(graph, node, tensors, outputs, &error) != PPH_OK)
    assert_true(error.message[0]);
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
    if (tensors[i].data)
      test_free(tensors[i].data);
}

static void try_one(test_random *random) {
  pph_heap heap;
  pph_graph graph;
  pph_error error = {0};
  pph_window window;
  pph_heap_init(&heap, NULL, 64 << 20);
  pph_graph_init(&graph, &heap, NULL);
  pph_node *node = test_random_next(random) % 4 ? mutate_seed(random, &graph)
                                                : make_node(random, &graph);
  const char *kind = pph_node_kind_find_info(node->kind)->name;
  pph_status loaded = pph_shape_check_node(&graph, node, &error);
  if (loaded != PPH_OK)
    assert_true(error.message[0] && strstr(error.where, "node 0"));
  error = (pph_error){0};
  pph_status inferred = pph_shape_infer_node(&graph, node, &error);
  if (inferred != PPH_OK)
    assert_true(error.message[0] && strstr(error.where, "node 0"));
  else if (loaded != PPH_OK)
    fail_msg("%s is refused at load and accepted later", kind);
  if (inferred == PPH_OK) {
    check_outputs(&graph, node);
    if (is_complete(node))
      evaluate(&graph, node);
  }
  if (pph_shape_find_window(&graph, node, &window, NULL) == PPH_OK)
    assert_in_range(window.axes, 1, 3);
  pph_graph_clear(&graph);
  assert_int_equal(atomic_load(&heap.used), 0);
}

static void test_random_nodes(void **state) {
  test_random random = {test_seed("shape_hostile")};
  for (int i = 0; i < 20000; i++)
    try_one(&random);
}

/* What chance is not likely to find: lines of a graph whose last node is
   refused, and part of the message. */
static const struct {
  const char *lines, *message;
} refusals[] = {
    {"input %x u8 [0,1,1099511627776]\nconst %s i64 [2] = {1099511627776,1}\n"
     "%y = Resize(%x, _, _, %s) {axes=[1,2], "
     "keep_aspect_ratio_policy=\"not_smaller\"}\n",
     "keep_aspect_ratio_policy, which is too large"},
    {"input %x f32 [1,2,3]\nconst %c i64 [2] = {1,1}\n"
     "%y = BatchNormalization(%x, %c, %c, %c, %c)\n",
     "scale has type i64, must be a float"},
    {"input %x f32 [2,1,2]\ninput %w i64 [1,6,2]\ninput %r f32 [1,6,2]\n"
     "%y = GRU(%x, %w, %r)\n",
     "input 1 has type i64, input 0 has f32"},
    {"input %x f32 [2,1,2]\ninput %w f32 [1,6,2]\ninput %h f16 [1,1,2]\n"
     "%y = GRU(%x, %w, %w, _, _, %h)\n",
     "input 5 has type f16, input 0 has f32"},
    {"input %x f32 [3]\nconst %p i64 [2] = {1,1}\nconst %v i64 [] = {1}\n"
     "%y = Pad(%x, %p, %v)\n",
     "the pad value has type i64, the input has f32"},
    {"const %s i64 [1] = {2}\nconst %v f32 [2] = {1,2}\n"
     "%y = ConstantOfShape(%s, %v)\n",
     "must be one element"},
    {"input %x f32 [1,4,2,2,2,2]\n"
     "%y = DepthToSpace(%x) {blocksize=[1,1,2,2]}\n",
     "blocksize has 4 entries, at most 3"},
    {"input %x f32 [1,4]\n%y = DepthToSpace(%x) {blocksize=[]}\n",
     "blocksize is missing"},
    {"input %x f32 [1,4]\n%y = Concat(%x)\n",
     "the attribute axis is missing"},
};

static pph_node *parse(pph_heap *heap, pph_graph *graph, const char *lines) {
  char text[1024];
  pph_error error = {0};
  snprintf(text, sizeof text, "graph \"g\"\n%soutput %%y\n", lines);
  pph_heap_init(heap, NULL, 0);
  pph_graph_init(graph, heap, NULL);
  test_assert_ok(pph_text_parse(text, strlen(text), graph, &error), &error);
  return graph->last;
}

static void test_refusals(void **state) {
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    pph_heap heap;
    pph_graph graph;
    pph_error error = {0};
    parse(&heap, &graph, refusals[i].lines);
    if (pph_shape_infer(&graph, &error) == PPH_OK ||
        !strstr(error.message, refusals[i].message))
      fail_msg("%sfound    %s\nexpected %s", refusals[i].lines, error.message,
               refusals[i].message);
    pph_graph_clear(&graph);
  }
}

/* A graph output in the middle of the graph with a stale declaration: the
   model is legal, and inference knows better. */
static void test_stale_declaration(void **state) {
  static const char *const nodes[] = {
      "%y = Conv(%a, %w)", "%y = ConvTranspose(%a, %w)",
      "%y = MaxPool(%a) {kernel_shape=[2,2]}",
      "%y = DepthToSpace(%a) {blocksize=[2,2]}"};
  static const pph_shape stale[] = {{4, {1, 99, 4, 4}}, {2, {1, 99}}};
  for (size_t i = 0; i < 8; i++) {
    char lines[256];
    pph_heap heap;
    pph_graph graph;
    pph_error error = {0};
    snprintf(lines, sizeof lines,
             "input %%x f32 [1,4,4,4]\ninput %%w f32 [4,4,1,1]\n"
             "%%a = Relu(%%x)\n%s\n",
             nodes[i / 2]);
    pph_node *node = parse(&heap, &graph, lines);
    pph_value *claimed = pph_node_find_input(&graph, node, 0);
    claimed->type = PPH_F32;
    claimed->has_rank = true;
    claimed->shape = stale[i % 2];
    test_assert_ok(pph_shape_check_node(&graph, node, &error), &error);
    test_assert_ok(pph_shape_infer(&graph, &error), &error);
    pph_graph_clear(&graph);
  }
}

/* A node of `kind` reading `inputs` times %x and making `outputs` values. */
static void expect_counts(pph_node_kind kind, uint32_t inputs,
                          uint32_t outputs, const char *message) {
  pph_heap heap;
  pph_graph graph;
  pph_node *node;
  pph_error error = {0};
  parse(&heap, &graph, "input %x f32 [2,2]\n%y = Abs(%x)\n");
  pph_id ids[4] = {graph.inputs[0], graph.inputs[0], graph.inputs[0],
                   graph.inputs[0]};
  test_assert_ok(pph_graph_add_node(&graph, kind, "n", NULL, &node, &error),
                 &error);
  test_assert_ok(pph_node_set_inputs(&graph, node, ids, inputs, &error),
                 &error);
  for (uint32_t i = 0; i < outputs; i++)
    test_assert_ok(pph_graph_add_value(&graph, NULL, &ids[i], &error), &error);
  test_assert_ok(pph_node_set_outputs(&graph, node, ids, outputs, &error),
                 &error);
  assert_int_equal(pph_shape_infer_node(&graph, node, &error), PPH_BAD_MODEL);
  if (!strstr(error.message, message))
    fail_msg("found %s, expected %s", error.message, message);
  pph_graph_clear(&graph);
}

static void test_counts(void **state) {
  expect_counts(PPH_NODE_SPLIT, 1, 0, "has 0 outputs, must have at least 1");
  expect_counts(PPH_NODE_ABS, 1, 2, "has 2 outputs, must have at most 1");
  expect_counts(PPH_NODE_ABS, 2, 1, "has 2 inputs, must have at most 1");
  expect_counts(PPH_NODE_ADD, 1, 1, "has 1 inputs, must have at least 2");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_stale_declaration),
      cmocka_unit_test(test_random_nodes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
