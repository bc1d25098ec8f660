/* Conv and ConvTranspose by the operators of op. */
#ifndef PPH_BACKEND_NATIVE_CONV_H
#define PPH_BACKEND_NATIVE_CONV_H

#include "backend/backend.h"
#include "op/conv_op.h"

/* f32 with constant weights and bias, pads not negative; either layout. */
bool pph_native_conv_supports(const pph_graph *graph, const pph_node *node);

/* Whether it is expected to beat XNNPACK's kernel for a node it supports. With
   an Add or PRelu behind it, which it does while it stores, it always is: that
   saves a walk over the outputs. */
bool pph_native_conv_prefers(const pph_graph *graph, const pph_node *node);

/* The ways to run a node that is supported. */
typedef struct pph_native_ranking {
  pph_accuracy accuracy;
  pph_conv_choice choices[PPH_CONV_CHOICES]; /* see pph_conv_op_rank */
  uint32_t count;
  char text[360]; /* the same for nodes that take equally long */
} pph_native_ranking;

PPH_NODISCARD pph_status pph_native_conv_rank(
    const pph_backend_context *context, const pph_graph *graph,
    const pph_node *node, pph_native_ranking *ranking, pph_error *error);

/* An operator made for the node. */
typedef struct pph_native_conv pph_native_conv;

/* By step->wanted, or what is expected to be fastest. Sets step->algorithm and
   step->workspace; *conv is released by
   pph_native_conv_release, which takes NULL. */
PPH_NODISCARD pph_status pph_native_conv_prepare(pph_backend_context *context,
                                                 pph_step *step,
                                                 pph_native_conv **conv,
                                                 pph_error *error);
PPH_NODISCARD pph_status pph_native_conv_run(pph_backend_context *context,
                                             const pph_native_conv *conv,
                                             const pph_run_pointers *pointers,
                                             pph_error *error);
void pph_native_conv_release(pph_heap *heap, pph_native_conv *conv);

#endif
