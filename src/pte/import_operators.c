/* The operators that are imported, by name and overload. */
#include <stdio.h>
#include <string.h>

#include "pte/import_call.h"

#define UNARY(name, kind)                                                      \
  {name, 1, pph_pte_import_unary, PPH_NODE_##kind}
#define BINARY(name, kind)                                                     \
  {name, 2, pph_pte_import_binary, PPH_NODE_##kind}

#define NUMBER(name, kind)                                                     \
  {"executorch_prim::" name ".Scalar", 2, pph_pte_import_number,               \
   PPH_NODE_##kind}

static const pph_pte_operator_row rows[] = {
    UNARY("aten::abs.out", ABS),
    UNARY("aten::ceil.out", CEIL),
    UNARY("aten::cos.out", COS),
    UNARY("aten::exp.out", EXP),
    UNARY("aten::floor.out", FLOOR),
    UNARY("aten::log.out", LOG),
    UNARY("aten::neg.out", NEG),
    UNARY("aten::relu.out", RELU),
    UNARY("aten::sigmoid.out", SIGMOID),
    UNARY("aten::sin.out", SIN),
    UNARY("aten::sqrt.out", SQRT),
    UNARY("aten::tanh.out", TANH),
    BINARY("aten::div.out", DIV),
    BINARY("aten::maximum.out", MAX),
    BINARY("aten::minimum.out", MIN),
    BINARY("aten::mul.out", MUL),
    {"aten::add.out", 3, pph_pte_import_scaled, PPH_NODE_ADD},
    {"aten::sub.out", 3, pph_pte_import_scaled, PPH_NODE_SUB},
    {"aten::clamp.out", 3, pph_pte_import_clamp, PPH_NODE_CLIP},
    {"aten::hardtanh.out", 3, pph_pte_import_clamp, PPH_NODE_CLIP},
    {"aten::leaky_relu.out", 2, pph_pte_import_leaky, PPH_NODE_LEAKY_RELU},
    {"aten::mean.out", 4, pph_pte_import_reduce, PPH_NODE_REDUCE_MEAN},
    {"aten::sum.IntList_out", 4, pph_pte_import_reduce, PPH_NODE_REDUCE_SUM},
    {"aten::convolution.out", 9, pph_pte_import_conv, PPH_NODE_CONV},
    {"aten::upsample_nearest2d.vec_out", 3, pph_pte_import_nearest,
     PPH_NODE_RESIZE},
    {"aten::native_layer_norm.out", 5, pph_pte_import_layer_norm,
     PPH_NODE_KIND_COUNT},
    {"aten::native_group_norm.out", 8, pph_pte_import_group_norm,
     PPH_NODE_KIND_COUNT},
    {"aten::upsample_bilinear2d.vec_out", 4, pph_pte_import_bilinear,
     PPH_NODE_RESIZE},
    {"aten::cumsum.out", 3, pph_pte_import_cumsum, PPH_NODE_CUM_SUM},
    {"aten::sort.values", 3, pph_pte_import_sort, PPH_NODE_TOP_K},
    {"aten::topk.values", 5, pph_pte_import_topk, PPH_NODE_TOP_K},
    {"aten::_softmax.out", 3, pph_pte_import_softmax, PPH_NODE_SOFTMAX},
    {"aten::copy_", 3, pph_pte_import_overwrite, PPH_NODE_CAST},
    {"aten::copy.out", 3, pph_pte_import_overwrite, PPH_NODE_CAST},
    {"aten::clone.out", 2, pph_pte_import_copy, PPH_NODE_CAST},
    {"dim_order_ops::_clone_dim_order.out", 3, pph_pte_import_copy,
     PPH_NODE_CAST},
    {"dim_order_ops::_to_dim_order_copy.out", 3, pph_pte_import_copy,
     PPH_NODE_CAST},
    {"aten::view_copy.out", 2, pph_pte_import_reshape, PPH_NODE_RESHAPE},
    {"executorch_prim::et_view.default", 2, pph_pte_import_reshape,
     PPH_NODE_RESHAPE},
    {"aten::permute_copy.out", 2, pph_pte_import_permute, PPH_NODE_TRANSPOSE},
    {"aten::unsqueeze_copy.out", 2, pph_pte_import_axis, PPH_NODE_UNSQUEEZE},
    {"aten::squeeze_copy.dim_out", 2, pph_pte_import_axis, PPH_NODE_SQUEEZE},
    {"aten::cat.out", 2, pph_pte_import_cat, PPH_NODE_CONCAT},
    {"aten::slice_copy.Tensor_out", 5, pph_pte_import_slice, PPH_NODE_SLICE},
    {"aten::pixel_shuffle.out", 2, pph_pte_import_shuffle,
     PPH_NODE_DEPTH_TO_SPACE},
    {"aten::select_copy.int_out", 3, pph_pte_import_select, PPH_NODE_GATHER},
    {"executorch_prim::et_copy_index.tensor", 2, pph_pte_import_row,
     PPH_NODE_CONCAT},
    NUMBER("add", ADD),
    NUMBER("sub", SUB),
    NUMBER("mul", MUL),
    NUMBER("floordiv", DIV),
    NUMBER("mod", MOD),
    NUMBER("sym_max", MAX),
    NUMBER("sym_min", MIN),
    NUMBER("eq", EQUAL),
    NUMBER("gt", GREATER),
    NUMBER("ge", GREATER_OR_EQUAL),
    NUMBER("lt", LESS),
    NUMBER("le", LESS_OR_EQUAL),
    {"quantized_decomposed::quantize_per_tensor.out", 6,
     pph_pte_import_quantize, PPH_NODE_CAST},
    {"quantized_decomposed::dequantize_per_tensor.out", 6,
     pph_pte_import_dequantize, PPH_NODE_CAST},
    {"quantized_decomposed::quantize_per_channel.out", 7,
     pph_pte_import_quantize, PPH_NODE_MUL},
    {"quantized_decomposed::dequantize_per_channel.out", 7,
     pph_pte_import_dequantize, PPH_NODE_MUL},
    {"aten::sym_size.int", 2, pph_pte_import_size, PPH_NODE_GATHER},
    {"aten::embedding.out", 5, pph_pte_import_embedding, PPH_NODE_GATHER},
};

void pph_pte_operator_name(const pph_pte_operator *operator, char *name,
                           size_t size) {
  bool has_overload = operator->overload.count > 0;
  snprintf(name, size, "%.*s%s%.*s", pph_flat_text_cut(operator->name, 60),
           operator->name.at, has_overload ? "." : "",
           pph_flat_text_cut(operator->overload, 30),
           has_overload ? operator->overload.at : "");
}

const pph_pte_operator_row *pph_pte_operator_find(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0)
      return &rows[i];
  return NULL;
}
