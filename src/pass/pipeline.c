/* The list of passes and its order. */
#include <string.h>

#include "base/fail.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "pass/pass.h"

/* Why this order: shapes before all that reads them; constants early, since
   most patterns need them; pads, scales and biases go into convolutions before
   activations do, which come last in a convolution; activations before the
   phases, so that each phase gets them; layout when no node changes any more.
   drop_dead_nodes stands first because a dead node need not be legal. */
static const pph_pass passes[] = {
    {"drop_dead_nodes", "removes nodes whose results nobody reads", true,
     true, pph_pass_drop_dead_nodes},
    {"infer_shapes", "gives every value its type and shape", true, true,
     pph_pass_infer_shapes},
    {"fold_constants", "computes what does not depend on the inputs", true,
     false, pph_pass_fold_constants},
    {"simplify", "removes nodes that change nothing, joins what can be one",
     true, false, pph_pass_simplify},
    {"gather_to_slice", "turns gathers of one index into slices", true, false,
     pph_pass_gather_to_slice},
    {"dilation_from_space_to_batch",
     "turns convolutions between space-to-batch and back into dilated ones",
     true, false, pph_pass_dilation_from_space_to_batch},
    {"simplify", "removes nodes that change nothing, joins what can be one",
     true, false, pph_pass_simplify},
    {"drop_unit_height", "turns 2-D convolutions of height 1 into 1-D ones",
     true, false, pph_pass_drop_unit_height},
    {"simplify", "removes nodes that change nothing, joins what can be one",
     true, false, pph_pass_simplify},
    {"sink_transpose", "moves transposes to where they meet their inverses",
     true, false, pph_pass_sink_transpose},
    {"simplify", "removes nodes that change nothing, joins what can be one",
     true, false, pph_pass_simplify},
    {"fold_constants", "computes what does not depend on the inputs", true,
     false, pph_pass_fold_constants},
    {"recognize_activation", "finds activations that were spelled out", false,
     false, pph_pass_recognize_activation},
    {"drop_dead_nodes", "removes nodes whose results nobody reads", true,
     false, pph_pass_drop_dead_nodes},
    {"fuse_pad", "moves zero padding into the node that reads it", true,
     false, pph_pass_fuse_pad},
    {"fold_batch_normalization",
     "moves batch normalization into the convolution before it", false, false,
     pph_pass_fold_batch_normalization},
    {"fold_nearest",
     "makes a convolution behind nearest upsampling a transposed one", true,
     false, pph_pass_fold_nearest},
    {"fuse_bias",
     "moves per-channel constants into the convolution before them", false,
     false, pph_pass_fuse_bias},
    {"fuse_native",
     "moves residual adds and PReLU into convolutions of the native operator",
     true, false, pph_pass_fuse_native},
    {"fuse_activation", "moves activations into the node before them", true,
     false, pph_pass_fuse_activation},
    {"conv_transpose_to_polyphase",
     "turns transposed convolutions into one convolution per phase", true,
     true, pph_pass_conv_transpose_to_polyphase},
    {"merge_duplicates", "computes equal things once", true, false,
     pph_pass_merge_duplicates},
    {"drop_dead_nodes", "removes nodes whose results nobody reads", true,
     true, pph_pass_drop_dead_nodes},
    {"choose_layout", "decides which activations are channels-last", true,
     true, pph_pass_choose_layout},
};

void pph_pass_options_init(pph_pass_options *options) {
  *options = (pph_pass_options){.optimize = true,
                                .polyphase = PPH_POLYPHASE_AUTO,
                                .folds_upsampling = true,
                                .choose_layout = true};
}

const pph_pass *pph_pass_list(size_t *count) {
  *count = sizeof passes / sizeof *passes;
  return passes;
}

static pph_status dump(const pph_graph *graph, const pph_pass *pass,
                       const pph_pass_options *options, pph_error *error) {
  const size_t shown_elements = 16; /* longer constants as a checksum */
  if (!options->dump || !options->dump_file ||
      (strcmp(options->dump, "all") && strcmp(options->dump, pass->name)))
    return PPH_OK;
  char *text;
  PPH_TRY(pph_text_print(graph, shown_elements, &text, error));
  fprintf(options->dump_file, "# after %s\n%s\n", pass->name, text);
  pph_heap_release(graph->heap, text);
  return PPH_OK;
}

static pph_status run(pph_graph *graph, const pph_pass *pass,
                      const pph_pass_options *options, pph_error *error) {
  PPH_TRY(pass->run(graph, options, error));
#ifdef PPH_DEBUG
  pph_status status = pph_graph_verify(graph, error);
  if (status != PPH_OK) {
    pph_error_set_where(error, "after pass %s", pass->name);
    return status;
  }
#endif
  return dump(graph, pass, options, error);
}

pph_status pph_pipeline_run(pph_graph *graph, const pph_pass_options *options,
                            pph_error *error) {
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
    if (options->optimize || passes[i].required)
      PPH_TRY(run(graph, &passes[i], options, error));
  return PPH_OK;
}

pph_status pph_pass_run(pph_graph *graph, const char *name,
                        const pph_pass_options *options, pph_error *error) {
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
    if (strcmp(passes[i].name, name) == 0)
      return run(graph, &passes[i], options, error);
  return pph_fail(error, PPH_INVALID_ARGUMENT, "", "there is no pass \"%.80s\"",
                  name);
}
